//! Lines over two axes as SVG, readable on light and on dark pages.

use std::fmt::Write;

/// What is drawn.
#[derive(Debug)]
pub struct Chart {
    pub title: &'static str,
    pub x: &'static str,
    pub y: &'static str,
    pub lines: Vec<Line>,
}

#[derive(Debug)]
pub struct Line {
    pub name: String,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
/// The plane of the lines; names stand to its right.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 570.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 304.0;

const STYLE: &str = "<style>
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .title { font-weight: 600; }
  .page { fill: #ffffff; }
  .grid { stroke: #d1d9e0; }
  polyline { fill: none; stroke-width: 2; }
  .l0 { stroke: #0969da; } .l1 { stroke: #bc4c00; } .l2 { stroke: #1a7f37; } .l3 { stroke: #8250df; }
  .n0 { fill: #0969da; } .n1 { fill: #bc4c00; } .n2 { fill: #1a7f37; } .n3 { fill: #8250df; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .page { fill: #0d1117; }
    .grid { stroke: #3d444d; }
    .l0 { stroke: #58a6ff; } .l1 { stroke: #f0883e; } .l2 { stroke: #3fb950; } .l3 { stroke: #bc8cff; }
    .n0 { fill: #58a6ff; } .n1 { fill: #f0883e; } .n2 { fill: #3fb950; } .n3 { fill: #bc8cff; }
  }
</style>
";

/// A round number that cuts `most` into four to ten parts.
fn step(most: f64) -> f64 {
    let magnitude = 10f64.powf((most.max(1e-9) / 4.0).log10().floor());
    let steps = [5.0, 2.0, 1.0].map(|digit| digit * magnitude);
    let fits = |step: &f64| most / step >= 4.0;
    steps.into_iter().find(fits).unwrap_or(magnitude)
}

impl Chart {
    pub fn draw(&self) -> String {
        let all = || self.lines.iter().flat_map(|line| line.points.iter());
        let most_x = all().map(|point| point.0).fold(0.0, f64::max);
        let most_y = all().map(|point| point.1).fold(0.0, f64::max);
        let (step_x, step_y) = (step(most_x), step(most_y));
        let end_y = (most_y / step_y).ceil() * step_y;
        let x = |value: f64| LEFT + value / most_x * (RIGHT - LEFT);
        let y = |value: f64| BOTTOM - value / end_y * (BOTTOM - TOP);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" aria-labelledby=\"about\">\n\
             <title id=\"about\">{title}</title>\n{STYLE}<rect class=\"page\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\" rx=\"8\"/>\n<text class=\"title\" x=\"16\" y=\"24\">{title}</text>\n",
            title = self.title
        );
        for mark in marks(end_y, step_y) {
            let (at, below) = (y(mark), y(mark) + 4.0);
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text x=\"{}\" y=\"{below:.1}\" text-anchor=\"end\">{mark}</text>",
                LEFT - 8.0
            );
        }
        for mark in marks(most_x, step_x) {
            let at = x(mark);
            let _ = writeln!(
                out,
                "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{mark}</text>",
                BOTTOM + 20.0
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{LEFT}\" y=\"{}\">{}</text>\n<text x=\"16\" y=\"38\" opacity=\"0.7\">{}</text>",
            BOTTOM + 42.0,
            self.x,
            self.y
        );
        let mut names = self.names(y);
        names.sort_by(|one, other| one.0.total_cmp(&other.0));
        for (index, line) in self.lines.iter().enumerate() {
            let points = line
                .points
                .iter()
                .map(|&(a, b)| format!("{:.1},{:.1}", x(a), y(b)));
            let points: Vec<String> = points.collect();
            let _ = writeln!(
                out,
                "<polyline class=\"l{index}\" points=\"{}\"/>",
                points.join(" ")
            );
        }
        let mut free = 0.0;
        for (at, index) in names {
            // Names do not stand on each other.
            let at = f64::max(at, free);
            free = at + 16.0;
            let name = &self.lines[index].name;
            let (left, base) = (RIGHT + 8.0, at + 4.0);
            let _ = writeln!(
                out,
                "<text class=\"n{index}\" x=\"{left}\" y=\"{base:.1}\">{name}</text>"
            );
        }
        out + "</svg>\n"
    }

    /// Where each line ends, and which it is.
    fn names(&self, y: impl Fn(f64) -> f64) -> Vec<(f64, usize)> {
        let ends = self.lines.iter().enumerate();
        let end = ends.filter_map(|(index, line)| Some((y(line.points.last()?.1), index)));
        end.collect()
    }
}

fn marks(most: f64, step: f64) -> Vec<f64> {
    let count = (most / step).round() as u32;
    let tidy = |value: f64| (value * 1e6).round() / 1e6;
    let marks = (0..=count).map(|index| tidy(f64::from(index) * step));
    marks.filter(|mark| *mark <= most * 1.000_001).collect()
}

#[test]
fn axes_are_cut_at_round_numbers() {
    assert_eq!([10.0, 16.0, 100.0, 3.0].map(step), [2.0, 2.0, 20.0, 0.5]);
    assert_eq!(marks(3.0, 0.5).last(), Some(&3.0));
}
