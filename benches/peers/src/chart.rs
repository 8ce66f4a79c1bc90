//! The chart: three groups of bars, drawn by hand, readable on light and on dark pages.

use std::fmt::Write;

use crate::{contenders::ALL, report::Report, scenario::Scenario};

const WIDTH: f64 = 720.0;
/// Where the bars begin, and how long the longest is.
const LEFT: f64 = 206.0;
const LONGEST: f64 = 400.0;
const BAR: f64 = 18.0;
const STEP: f64 = 26.0;
const TITLE: f64 = 34.0;
const MARGIN: f64 = 16.0;

const GROUPS: [(Scenario, &str, &str); 3] = [
    (
        Scenario::Distinct(64),
        "rate",
        "Acquire and release pairs per second, 64 tasks, no contention",
    ),
    (
        Scenario::Tasks(1_000),
        "hand_overs",
        "Hand-overs per second between 8 tasks of one process, 1 ms of work",
    ),
    (
        Scenario::Processes,
        "hand_overs",
        "Hand-overs per second between 8 processes, 1 ms of work",
    ),
];

const STYLE: &str = "<style>
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .title { font-weight: 600; }
  .page { fill: #ffffff; }
  .ours { fill: #0969da; }
  .peer { fill: #8c959f; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .page { fill: #0d1117; }
    .ours { fill: #58a6ff; }
    .peer { fill: #6e7681; }
  }
</style>
";

/// The medians of the run as bars; who has no figure in a group has no bar there.
pub fn draw(report: &Report) -> String {
    let mut body = String::new();
    let mut y = MARGIN;
    for (scenario, key, title) in GROUPS {
        let bars: Vec<(&str, f64)> = ALL
            .iter()
            .filter_map(|peer| Some((peer.name, report.median(scenario, peer.name, key)?)))
            .collect();
        y = group(&mut body, y, title, &bars);
    }
    let height = y + MARGIN - (STEP - BAR);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" aria-labelledby=\"about\">\n\
         <title id=\"about\">quorumlock beside other Redlock libraries on five local nodes</title>\n\
         {STYLE}<rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\" rx=\"8\"/>\n{body}</svg>\n"
    )
}

/// Draws a title and its bars from `y` on, and says where the next ones begin.
fn group(body: &mut String, y: f64, title: &str, bars: &[(&str, f64)]) -> f64 {
    let _ = writeln!(
        body,
        "<text class=\"title\" x=\"{MARGIN}\" y=\"{}\">{title}</text>",
        y + 16.0
    );
    let most = bars.iter().map(|(_, value)| *value).fold(1e-9, f64::max);
    let mut top = y + TITLE - 6.0;
    for (name, value) in bars {
        let class = if name.starts_with("quorumlock") {
            "ours"
        } else {
            "peer"
        };
        // So short a bar is there, but not to be seen.
        let length = (value / most * LONGEST).max(1.0);
        let (label, text) = (top + 14.0, number(*value));
        let _ = writeln!(
            body,
            "<text x=\"{}\" y=\"{label}\" text-anchor=\"end\">{name}</text>\
             <rect class=\"{class}\" x=\"{LEFT}\" y=\"{top}\" width=\"{length:.1}\" height=\"{BAR}\"/>\
             <text x=\"{:.1}\" y=\"{label}\">{text}</text>",
            LEFT - 8.0,
            LEFT + length + 6.0
        );
        top += STEP;
    }
    top + 12.0
}

/// With commas, and a decimal where it matters.
fn number(value: f64) -> String {
    if value < 10.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;

    #[test]
    fn numbers_are_written_to_be_read() {
        assert_eq!(number(0.44), "0.4");
        assert_eq!(number(999.6), "1,000");
        assert_eq!(number(12_345.0), "12,345");
        assert_eq!(number(123.0), "123");
    }

    #[test]
    fn the_longest_bar_has_the_whole_length_and_text_is_text() {
        let mut report = Report::default();
        for (peer, rate) in ALL.iter().zip([20_000.0, 5_000.0]) {
            let figures = Figures::from([("rate", rate)]);
            report.add(Scenario::Distinct(64), peer.name, Ok(figures));
        }
        let chart = draw(&report);
        assert!(chart.contains("width=\"400.0\""), "{chart}");
        assert!(chart.contains("width=\"100.0\""), "{chart}");
        assert!(chart.contains(">5,000</text>"), "{chart}");
    }
}
