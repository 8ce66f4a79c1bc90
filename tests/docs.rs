//! What the documents refer to is there.

use std::fs;
use std::path::Path;

/// The text between backticks, in pairs: what stands there, and what follows in backticks after one
/// space.
fn references(text: &str) -> Vec<(String, Option<String>)> {
    let parts: Vec<&str> = text.split('`').collect();
    let quoted = |at: usize| parts.get(at).filter(|_| at % 2 == 1);
    (1..parts.len())
        .step_by(2)
        .filter(|at| parts[*at].contains('/') && parts[*at].ends_with(".rs"))
        .map(|at| {
            let next = quoted(at + 2).filter(|_| parts[at + 1].trim().is_empty());
            (parts[at].to_owned(), next.map(|name| (*name).to_owned()))
        })
        .collect()
}

/// Every reference that leads nowhere.
fn dangling(text: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    references(text)
        .into_iter()
        .filter(|(file, function)| {
            let found = read(file);
            let has = |name: &String| {
                found
                    .as_ref()
                    .is_some_and(|text| text.contains(&format!("fn {name}(")))
            };
            found.is_none() || !function.as_ref().is_none_or(has)
        })
        .map(|(file, function)| format!("{file} {}", function.unwrap_or_default()))
        .collect()
}

#[test]
fn every_claim_names_a_test_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("docs/guarantees.md")).unwrap();
    assert!(references(&text).len() > 30, "the references are not read");
    let lost = dangling(&text, |file| fs::read_to_string(root.join(file)).ok());
    assert!(lost.is_empty(), "\n{}\n", lost.join("\n"));
}

#[test]
fn a_claim_without_its_test_is_caught() {
    let read = |file: &str| (file == "tests/a.rs").then(|| "fn here() {}".to_owned());
    let text = "`tests/a.rs` `here`, `tests/a.rs`, `x`; `tests/a.rs` `gone` `tests/b.rs` and `y/z`";
    assert_eq!(dangling(text, read), ["tests/a.rs gone", "tests/b.rs "]);
}
