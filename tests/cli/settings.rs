//! Where the settings come from, and what `config` says of it.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::*;

fn shown(command: std::process::Command) -> Value {
    let done = Running::start(command).finish();
    assert_eq!(done.code(), 0, "{done:?}");
    serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {done:?}"))
}

fn row<'a>(shown: &'a Value, name: &str) -> &'a Value {
    let rows = shown["settings"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["name"] == name);
    row.unwrap_or_else(|| panic!("no {name} in {shown}"))
}

fn write(path: &Path, prefix: &str) {
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    let text = format!("nodes = [\"redis://127.0.0.1:1\"]\nprefix = \"{prefix}\"\nttl = \"5s\"\n");
    fs::write(path, text).expect("a file");
}

#[test]
fn the_first_file_that_is_there_is_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let home = dir.path();
    let prefix = |vars: &[(&str, &Path)], args: &[&str]| {
        let mut command = command(home, &[&["config", "--json"], args].concat());
        command.envs(vars.iter().copied());
        row(&shown(command), "prefix")["value"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    // From the last place to the first; only /etc is not ours to write.
    write(&home.join(".config/quorumlock/quorumlock.toml"), "home");
    assert_eq!(prefix(&[], &[]), "home");
    let xdg = home.join("xdg");
    write(&xdg.join("quorumlock/quorumlock.toml"), "xdg");
    let vars = [("XDG_CONFIG_HOME", &*xdg)];
    assert_eq!(prefix(&vars, &[]), "xdg");
    write(&home.join("quorumlock.toml"), "folder");
    assert_eq!(prefix(&vars, &[]), "folder");
    let named = home.join("named.toml");
    write(&named, "variable");
    let vars = [vars[0], ("QUORUMLOCK_CONFIG", &*named)];
    assert_eq!(prefix(&vars, &[]), "variable");
    write(&home.join("flag.toml"), "flag");
    assert_eq!(prefix(&vars, &["--config", "flag.toml"]), "flag");

    // One that was named must be there, and one that is there must be readable.
    let mut missing = command(home, &["config"]);
    missing.env("QUORUMLOCK_CONFIG", home.join("none.toml"));
    let done = Running::start(missing).finish();
    assert!(
        done.code() == 64 && done.err.contains("none.toml"),
        "{done:?}"
    );
    fs::remove_file(home.join("quorumlock.toml")).expect("the file");
    fs::create_dir(home.join("quorumlock.toml")).expect("a directory");
    let done = Running::start(command(home, &["config"])).finish();
    assert!(
        done.code() == 64 && done.err.contains("quorumlock.toml"),
        "{done:?}"
    );
}

#[test]
fn every_value_is_shown_with_its_origin() {
    let dir = tempfile::tempdir().expect("a directory");
    write(&dir.path().join("quorumlock.toml"), "billing:");
    let mut given = command(dir.path(), &["config", "--json"]);
    given.env("QUORUMLOCK_WAIT", "forever");
    let all = shown(given);
    assert_eq!(all["file"], "quorumlock.toml");
    for (name, value, from, origin) in [
        ("nodes[0]", "127.0.0.1:1", "file", "quorumlock.toml, line 1"),
        ("prefix", "billing:", "file", "quorumlock.toml, line 2"),
        ("ttl", "5s", "file", "quorumlock.toml, line 3"),
        (
            "wait",
            "forever",
            "env",
            "environment variable QUORUMLOCK_WAIT",
        ),
        ("node_timeout", "250ms", "default", "default"),
        ("max_hold", "none", "default", "default"),
    ] {
        let row = row(&all, name);
        assert_eq!(
            (&row["value"], &row["from"], &row["origin"]),
            (&value.into(), &from.into(), &origin.into())
        );
    }
    assert_eq!(row(&all, "fencing")["value"], true);
    let args = [
        "config",
        "--node",
        "redis://127.0.0.1:2",
        "--node",
        "redis://127.0.0.1:3",
    ];
    let done = Running::start(command(dir.path(), &args)).finish();
    let line = done.out.lines().find(|line| line.starts_with("nodes[1]"));
    assert!(
        line.is_some_and(|line| line.ends_with("# argument --node")),
        "{done:?}"
    );
    assert!(
        done.out.contains("\"127.0.0.1:3\"") && !done.out.contains("nodes[2]"),
        "{done:?}"
    );
}

/// The example has every setting, as a setting or as a comment, with its default.
#[test]
fn the_example_file_is_the_table_of_settings() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("quorumlock.example.toml")).expect("the example");
    // What is commented out follows from other settings, and must be right as well.
    let mut commented = 0;
    let lines = text.lines().map(|line| match line.strip_prefix("# ") {
        Some(rest)
            if rest
                .split_once(" = ")
                .is_some_and(|(key, _)| !key.contains(' ')) =>
        {
            commented += 1;
            rest
        }
        _ => line,
    });
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    assert!(commented >= 3, "{commented}");
    fs::write(dir.path().join("example.toml"), text).expect("a file");
    let example = shown(command(
        dir.path(),
        &["config", "--json", "--config", "example.toml"],
    ));
    let defaults = shown(command(
        dir.path(),
        &["config", "--json", "--node", "redis://127.0.0.1:1"],
    ));
    let settings = |shown: &Value| {
        let rows = shown["settings"].as_array().expect("rows").clone();
        let rows = rows.into_iter().filter(|row| {
            !row["name"]
                .as_str()
                .is_some_and(|name| name.starts_with("nodes"))
        });
        rows.collect::<Vec<_>>()
    };
    let (example, defaults) = (settings(&example), settings(&defaults));
    assert_eq!(example.len(), defaults.len());
    for (example, default) in example.iter().zip(&defaults) {
        assert_eq!(example["name"], default["name"]);
        assert_eq!(example["value"], default["value"], "{example}");
        assert_eq!(example["from"], "file", "{example}: not in the example");
        assert_eq!(default["from"], "default");
    }
}
