//! The table of expectations as DESIGN.md shows it.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::expected::{Expected, Left, expected};
use crate::fault::{FAULTS, PHASES};

const BEGIN: &str = "<!-- the fault matrix: written by tests/matrix, QUORUMLOCK_BLESS=1 -->\n";
const END: &str = "<!-- end of the fault matrix -->\n";

fn text(expected: &Expected) -> String {
    let keys = match expected.left {
        Left::Nothing => String::new(),
        left => format!("; keys left {left}"),
    };
    format!("{}, {}{keys}", expected.outcome, expected.bound)
}

fn table() -> String {
    let mut table = String::from("| fault | phase | 1 or 2 bad | 3 bad |\n|---|---|---|---|\n");
    for fault in FAULTS {
        for phase in PHASES {
            let [one, two, three] = [1, 2, 3].map(|bad| expected(fault, bad, phase));
            assert_eq!(one, two, "the table has one column for both");
            let (few, many) = (text(&one), text(&three));
            writeln!(table, "| {fault} | {phase} | {few} | {many} |").expect("text");
        }
    }
    table
}

#[test]
fn the_design_page_shows_what_is_expected() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("DESIGN.md");
    let page = fs::read_to_string(&path).expect("DESIGN.md");
    let (before, rest) = page.split_once(BEGIN).expect("the table's beginning");
    let (shown, after) = rest.split_once(END).expect("the table's end");
    let table = table();
    if std::env::var("QUORUMLOCK_BLESS").is_ok_and(|value| value == "1") {
        fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).expect("written");
        return;
    }
    assert!(
        shown == table,
        "the fault matrix in DESIGN.md is not what tests/matrix/expected.rs says. To have it \
         written anew:\n\n    QUORUMLOCK_BLESS=1 cargo test --test matrix design_page\n\n{table}"
    );
}
