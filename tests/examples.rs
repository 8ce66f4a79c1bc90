//! Runs the examples that need servers, on servers of their own, so that they cannot rot.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use support::{Cluster, Postgres};

/// The example's program. `cargo test` has built it as a rule; where only this test was asked for,
/// cargo builds it now, with the features and the profile of this test.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this program");
    let directory = test
        .parent()
        .and_then(Path::parent)
        .expect("a profile's directory");
    let profile = match directory.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--quiet", "--example", name, "--profile", profile]);
    build.arg("--features").arg(features().join(","));
    build
        .arg("--target-dir")
        .arg(directory.parent().expect("a target directory"));
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    // What cargo tells a test of its package: a build script that looks would run again.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CARGO_MANIFEST")
            || name.to_string_lossy().starts_with("CARGO_PKG")
        {
            build.env_remove(name);
        }
    }
    let built = build.output().expect("cargo runs");
    assert!(built.status.success(), "{}", text(&built.stderr));
    directory.join("examples").join(name)
}

/// Those of this build, so that nothing is built twice.
fn features() -> Vec<&'static str> {
    let all = [
        ("cli", cfg!(feature = "cli")),
        ("postgres", cfg!(feature = "postgres")),
        ("serde", cfg!(feature = "serde")),
        ("test-util", cfg!(feature = "test-util")),
        ("tls", cfg!(feature = "tls")),
    ];
    all.iter()
        .filter(|(_, on)| *on)
        .map(|(name, _)| *name)
        .collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn run(name: &str, nodes: &Cluster, postgres: Option<&Postgres>) -> String {
    let mut command = Command::new(program(name));
    command.env("QUORUMLOCK_NODES", nodes.urls().join(","));
    if let Some(postgres) = postgres {
        command.env("QUORUMLOCK_POSTGRES", postgres.config("postgres"));
    }
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .stdin(Stdio::null())
        .output()
        .expect("the example runs");
    let told = text(&stdout);
    assert!(
        status.success(),
        "{name}: {status}\n{told}{}",
        text(&stderr)
    );
    told
}

#[test]
fn seat_booking_sells_no_seat_twice() {
    let (nodes, postgres) = (Cluster::start(5), Postgres::shared());
    let told = run("seat_booking", &nodes, Some(&postgres));
    assert!(told.contains("each sold once"), "{told}");
    println!("{told}");
}

#[test]
fn the_operator_sees_a_lock_and_frees_it() {
    let nodes = Cluster::start(3);
    for node in nodes.iter() {
        let (owner, ttl) = ("ab".repeat(20), std::time::Duration::from_secs(60));
        let mut probe = node.probe();
        probe.set_raw("quorumlock:{job}", owner, Some(ttl));
    }
    let operator = |verb: &str, name: &str| {
        let mut command = Command::new(program("operator"));
        command.env("QUORUMLOCK_NODES", nodes.urls().join(","));
        let output = command.args([verb, name]).output();
        let output = output.expect("the example runs");
        (output.status.code(), text(&output.stdout))
    };
    let (code, told) = operator("status", "job");
    assert!(code == Some(0) && told.contains("by abababab…"), "{told}");
    println!("{told}");
    let (code, told) = operator("list", "j");
    assert!(code == Some(0) && told.contains("\n\"job\"  "), "{told}");
    println!("{told}");
    let (code, told) = operator("force-release", "job");
    assert!(
        code == Some(0) && told.contains("it held the lock"),
        "{told}"
    );
    println!("{told}");
    assert_eq!(operator("status", "job").0, Some(1));
}

#[test]
fn shared_file_refuses_the_stale_line() {
    let told = run("shared_file", &Cluster::start(5), None);
    assert!(told.contains("Ada's second line is not in it"), "{told}");
    println!("{told}");
}
