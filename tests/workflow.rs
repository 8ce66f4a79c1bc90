//! The workflow that CI runs can be read, names the oldest Rust of the manifest, runs the suite that
//! people run, and takes no action that moves under it.

use std::fs;
use std::path::Path;

use saphyr::{LoadableYamlNode, Yaml};

/// Everything that is wrong with a workflow, in words, for a crate of this `rust-version`.
fn faults(text: &str, oldest: &str) -> Vec<String> {
    let documents = match Yaml::load_from_str(text) {
        Ok(documents) => documents,
        Err(error) => return vec![format!("no YAML: {error}")],
    };
    let top = documents.first();
    let Some(jobs) = top
        .and_then(|top| top.as_mapping_get("jobs"))
        .and_then(Yaml::as_mapping)
    else {
        return vec!["no jobs".to_owned()];
    };
    let mut faults = Vec::new();
    let mut all = String::new();
    for (name, job) in jobs {
        let name = name.as_str().unwrap_or("?");
        if job.as_mapping_get("timeout-minutes").is_none() {
            faults.push(format!("{name}: may run for hours"));
        }
        let steps = job.as_mapping_get("steps").and_then(Yaml::as_sequence);
        for step in steps.into_iter().flatten() {
            if let Some(action) = text_of(step, "uses").filter(|action| !is_pinned(action)) {
                faults.push(format!("{name}: {action} is not pinned to a major version"));
            }
            all.push_str(text_of(step, "run").unwrap_or_default());
            all.push('\n');
        }
        if name == "msrv" && !all.contains(&format!("cargo +{oldest} check")) {
            faults.push(format!("msrv: does not check with Rust {oldest}"));
        }
    }
    for (what, sign) in [
        ("the format", "fmt --check"),
        ("lints", "clippy"),
        ("the suite", ".ci/run"),
        ("the oldest Rust", "cargo +1."),
        ("documentation", " doc "),
        ("features", "scripts/features"),
    ] {
        if !all.contains(sign) {
            faults.push(format!("nobody checks {what}"));
        }
    }
    for (what, sign) in [
        ("macOS", "macos-"),
        ("Windows", "windows-"),
        ("dependencies", "cargo-deny-action"),
    ] {
        if !text.contains(sign) {
            faults.push(format!("nobody checks {what}"));
        }
    }
    faults
}

fn text_of<'a>(step: &'a Yaml<'a>, name: &str) -> Option<&'a str> {
    step.as_mapping_get(name).and_then(Yaml::as_str)
}

/// `owner/name@v5`.
fn is_pinned(action: &str) -> bool {
    let version = action.split_once("@v").map(|(_, version)| version);
    version.is_some_and(|version| version.parse::<u32>().is_ok())
}

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

#[test]
fn the_workflow_fits_the_manifest() {
    let oldest = env!("CARGO_PKG_RUST_VERSION");
    let found = faults(&read(".github/workflows/ci.yml"), oldest);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn each_way_to_break_the_workflow_is_noticed() {
    let file = read(".github/workflows/ci.yml");
    let oldest = env!("CARGO_PKG_RUST_VERSION");
    for (broken, fault) in [
        (
            file.replace(&format!("cargo +{oldest}"), "cargo +1.70"),
            "does not check with",
        ),
        (file.replace("checkout@v5", "checkout@main"), "not pinned"),
        (file.replace("checkout@v5", "checkout"), "not pinned"),
        (
            file.replace("    timeout-minutes: 60\n", ""),
            "may run for hours",
        ),
        (file.replace("run: .ci/run", "run: true"), "the suite"),
        (file.replace("fmt --check", "fmt"), "the format"),
        (
            file.replace("cargo +stable clippy", "cargo +stable check")
                .replace("clippy", "x"),
            "lints",
        ),
        (file.replace("stable doc", "stable build"), "documentation"),
        (
            file.replace("run: scripts/features", "run: true"),
            "features",
        ),
        (file.replace("macos-", "linux-"), "macOS"),
        (file.replace("windows-", "linux-"), "Windows"),
        (file.replace("cargo-deny-action", "x"), "dependencies"),
        ("jobs: [".to_owned(), "no YAML"),
        ("name: x\n".to_owned(), "no jobs"),
    ] {
        assert_ne!(
            broken, file,
            "{fault}: the text to break is not there any more"
        );
        let found = faults(&broken, oldest);
        assert!(
            found.iter().any(|f| f.contains(fault)),
            "{fault} went unnoticed: {found:?}"
        );
    }
}
