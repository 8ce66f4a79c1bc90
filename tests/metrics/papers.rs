//! Dashboard, alerts and documents name metrics that are there, with labels that they have.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use saphyr::{LoadableYamlNode, Yaml};

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

/// The metrics that a text names, without what a histogram adds to its name.
fn named(text: &str) -> BTreeSet<String> {
    let letter = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let words = text.split(|other| !letter(other));
    let words = words.filter(|word| word.starts_with("quorumlock_"));
    let plain = |word: &str| {
        let ends = ["_bucket", "_count", "_sum"];
        let end = ends.iter().find_map(|end| word.strip_suffix(end));
        end.unwrap_or(word).to_owned()
    };
    words.map(plain).collect()
}

/// Those that are no metric of ours.
fn strangers(text: &str) -> Vec<String> {
    let known: BTreeSet<&str> = quorumlock::metrics::names().collect();
    let named = named(text).into_iter();
    named
        .filter(|name| !known.contains(name.as_str()))
        .collect()
}

/// The expressions of every alert, by its name.
fn alerts(text: &str) -> Vec<(String, String)> {
    let documents = Yaml::load_from_str(text).expect("YAML");
    let groups = documents[0].as_mapping_get("groups");
    let groups = groups.and_then(Yaml::as_sequence).expect("groups");
    let mut alerts = Vec::new();
    for group in groups {
        let rules = group.as_mapping_get("rules").and_then(Yaml::as_sequence);
        for rule in rules.expect("rules") {
            let text = |name: &str| {
                let text = rule.as_mapping_get(name).and_then(Yaml::as_str);
                text.unwrap_or_else(|| panic!("a rule without {name}"))
                    .to_owned()
            };
            for part in ["labels", "annotations"] {
                assert!(rule.as_mapping_get(part).is_some(), "{part}");
            }
            alerts.push((text("alert"), text("expr")));
        }
    }
    alerts
}

/// The expressions of every panel, by its title.
fn panels(text: &str) -> Vec<(String, String)> {
    let dashboard: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let mut panels = Vec::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        let title = panel["title"].as_str().expect("a title");
        for target in panel["targets"].as_array().expect("targets") {
            let expression = target["expr"].as_str().expect("an expression");
            panels.push((title.to_owned(), expression.to_owned()));
        }
    }
    panels
}

#[test]
fn a_name_is_found_wherever_it_stands() {
    let text = r#"sum(rate(quorumlock_a_seconds_bucket{x="1"}[5m])) / quorumlock_b_total"#;
    let found: Vec<_> = named(text).into_iter().collect();
    assert_eq!(found, ["quorumlock_a_seconds", "quorumlock_b_total"]);
    assert_eq!(strangers(text).len(), 2);
}

#[test]
fn each_alert_and_each_panel_names_metrics_that_are_there() {
    let alerts = alerts(&read("docs/observability/alerts.yml"));
    let panels = panels(&read("docs/observability/dashboard.json"));
    assert!(alerts.len() >= 5 && panels.len() >= 15);
    for (name, expression) in alerts.iter().chain(&panels) {
        assert!(!named(expression).is_empty(), "{name}");
        assert_eq!(strangers(expression), Vec::<String>::new(), "{name}");
    }
    let shown: String = panels.into_iter().map(|(_, text)| text + "\n").collect();
    let shown = named(&shown);
    for name in quorumlock::metrics::names() {
        assert!(shown.contains(name), "{name} is in no panel");
    }
}

/// The labels in expressions are among those that the series have.
#[test]
fn each_alert_asks_for_values_of_labels_that_occur() {
    let all = read("docs/observability/alerts.yml") + &read("docs/observability/dashboard.json");
    let module = read("src/metrics.rs");
    for value in [
        "down",
        "suspect",
        "excluded",
        "restarting",
        "unavailable",
        "rejected",
    ] {
        assert!(all.contains(value), "{value}");
        assert!(module.contains(value), "{value}");
    }
}

#[test]
fn each_metric_is_in_the_documents_and_each_one_there_exists() {
    for page in ["src/metrics.rs", "docs/operations.md"] {
        let text = read(page);
        for name in quorumlock::metrics::names() {
            assert!(text.contains(&format!("`{name}`")), "{page}: {name}");
        }
        assert_eq!(strangers(&text), Vec::<String>::new(), "{page}");
    }
}

/// Each alert has its row in the page for operators, and its scene in the demonstration.
#[test]
fn each_alert_is_explained_and_shown() {
    let (page, demo) = (read("docs/operations.md"), read("scripts/demo-observe"));
    for (alert, _) in alerts(&read("docs/observability/alerts.yml")) {
        assert!(page.contains(&format!("`{alert}`")), "{alert}");
        assert!(demo.contains(&alert), "{alert}");
    }
}
