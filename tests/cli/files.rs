//! What comes along: completions, the manual page, and the examples of how to use the command.

use std::fs;
use std::path::Path;

use saphyr::{LoadableYamlNode, Yaml};

use crate::common::*;

fn example(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    fs::read_to_string(root.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn completions_and_pages_are_made() {
    let dir = tempfile::tempdir().expect("a directory");
    let print = |args: &[&str]| {
        let done = Running::start(command(dir.path(), args)).finish();
        assert_eq!(done.code(), 0, "{done:?}");
        done.out
    };
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = print(&["completions", shell]);
        for word in ["quorumlock", "at-least", "release", "force"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let page = print(&["man"]);
    assert!(
        page.contains(".SH NAME") && page.contains("quorumlock.toml"),
        "{page}"
    );
    let page = print(&["man", "run"]);
    assert!(
        page.contains("the lock was lost while the child ran"),
        "{page}"
    );
    let wrong = Running::start(command(dir.path(), &["man", "walk"])).finish();
    assert_eq!(wrong.code(), 64, "{wrong:?}");
}

/// The command lines of an example, up to the dashes.
fn lines(text: &str) -> Vec<Vec<String>> {
    let runs = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let runs = runs.filter_map(|line| Some(line.split_once("quorumlock run ")?.1));
    let words = runs.filter_map(|line| {
        let flags = line.split_once(" -- ")?.0;
        // Quotes as a shell has them, in the one way that the examples use.
        let parts = flags
            .split('"')
            .enumerate()
            .flat_map(|(index, part)| match index % 2 {
                0 => part
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>(),
                _ => vec![part.to_owned()],
            });
        Some(parts.collect())
    });
    words.collect()
}

#[test]
fn the_command_lines_of_the_examples_work() {
    let site = Site::start(3);
    let text = site
        .read("quorumlock.toml")
        .replace("max_ttl = \"10s\"", "max_ttl = \"60s\"");
    fs::write(site.path("quorumlock.toml"), text).expect("a file");
    let mut all = lines(&example("crontab.md"));
    assert_eq!(all.len(), 3);
    all.extend(lines(&example("systemd/nightly.service")));
    assert_eq!(all.len(), 4);
    all.push(kubernetes_run());
    for words in all {
        let mut args = vec!["run"];
        args.extend(words.iter().map(String::as_str));
        args.extend(["--", "true"]);
        let done = site.run(&args);
        assert_eq!((done.code(), &*done.err), (0, ""), "{args:?}: {done:?}");
    }
}

/// The arguments of the CronJob's container, without the command itself and its child.
fn kubernetes_run() -> Vec<String> {
    let text = example("kubernetes/nightly.yaml");
    let documents = Yaml::load_from_str(&text).expect("YAML");
    let kind = |document: &&Yaml<'_>| document["kind"].as_str() == Some("CronJob");
    let job = documents.iter().find(kind).expect("a CronJob");
    let pod = &job["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    let words = pod["containers"][0]["command"].as_vec().expect("a list");
    let words: Vec<_> = words
        .iter()
        .filter_map(Yaml::as_str)
        .map(str::to_owned)
        .collect();
    let (head, _) = words.split_at(
        words
            .iter()
            .position(|word| word == "--")
            .expect("the dashes"),
    );
    assert_eq!(head[..2], ["quorumlock", "run"]);
    head[2..].to_vec()
}

#[test]
fn the_kubernetes_example_has_five_nodes_and_names_them_all() {
    let text = example("kubernetes/nightly.yaml");
    let documents = Yaml::load_from_str(&text).expect("YAML");
    let find = |kind: &str| {
        let found = documents
            .iter()
            .find(|one| one["kind"].as_str() == Some(kind));
        found.unwrap_or_else(|| panic!("no {kind}"))
    };
    let set = find("StatefulSet");
    assert_eq!(set["spec"]["replicas"].as_integer(), Some(5));
    let (name, service) = (&set["metadata"]["name"], &set["spec"]["serviceName"]);
    assert_eq!(
        find("Service")["metadata"]["name"].as_str(),
        service.as_str()
    );
    let config = find("ConfigMap")["data"]["quorumlock.toml"]
        .as_str()
        .expect("a file");
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("quorumlock.toml"), config).expect("a file");
    let done = Running::start(command(dir.path(), &["config", "--json"])).finish();
    assert_eq!(done.code(), 0, "{done:?}");
    let shown: serde_json::Value = serde_json::from_str(&done.out).expect("JSON");
    let rows = shown["settings"].as_array().expect("rows");
    let nodes = rows.iter().filter(|row| {
        row["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("nodes["))
    });
    let nodes: Vec<_> = nodes
        .map(|row| row["value"].as_str().expect("text"))
        .collect();
    let (name, service) = (
        name.as_str().expect("a name"),
        service.as_str().expect("a name"),
    );
    let expected: Vec<_> = (0..5)
        .map(|index| format!("{name}-{index}.{service}:6379"))
        .collect();
    assert_eq!(nodes, expected);
    // A rolling update must not go on before the last node has its vote again.
    let delay = rows
        .iter()
        .find(|row| row["name"] == "restart_delay")
        .expect("a row");
    let delay = delay["value"]
        .as_str()
        .and_then(|text| text.strip_suffix('s')?.parse::<i64>().ok());
    assert!(
        set["spec"]["minReadySeconds"].as_integer() >= delay,
        "{delay:?}"
    );
}
