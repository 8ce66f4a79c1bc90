//! What an operator does at night: `status`, `list`, `release --force`, `check`.

use serde_json::Value;

use crate::common::*;
use crate::helpers::*;
use crate::support::*;

fn json(done: &Done) -> Value {
    serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {done:?}"))
}

/// A child that waits for a file.
const UNTIL_ENOUGH: &str = "touch up; while [ ! -e enough ]; do sleep 0.01; done";

#[test]
fn the_exit_status_tells_who_holds_a_lock() {
    let site = Site::start(5);
    let free = site.run(&["status", "job"]);
    assert_eq!(free.code(), 1, "{free:?}");
    assert!(free.out.starts_with("lock \"job\": free\n"), "{free:?}");
    assert_eq!(
        json(&site.run(&["status", "--json", "job"]))["state"],
        "free"
    );

    let args = [
        "run",
        "--label",
        "by hand",
        "job",
        "--",
        "sh",
        "-c",
        UNTIL_ENOUGH,
    ];
    let run = site.spawn(&args);
    site.await_file("up");
    let pid = run.pid();
    // The label is written beside the child's work.
    let mut held = None;
    let labelled = eventually(LIMIT, || {
        let done = site.run(&["status", "--json", "job"]);
        assert_eq!(done.code(), 0, "{done:?}");
        let status = json(&done);
        let there = status["label"].is_string();
        held = Some(status);
        there
    });
    assert!(labelled, "{held:?}");
    let held = held.expect("a status");
    let label = held["label"].as_str().expect("a label");
    assert!(
        label.contains(&format!("process {pid}, since 20")),
        "{label}"
    );
    assert!(label.ends_with(": by hand"), "{label}");
    assert!(held["left_ms"].as_u64().is_some_and(|left| left <= 2_000));
    assert_eq!(held["nodes"].as_array().map(Vec::len), Some(5));

    let listed = site.run(&["list", "j"]);
    assert_eq!(listed.code(), 0, "{listed:?}");
    assert!(
        listed.out.contains("\n\"job\" ") && listed.out.contains("process "),
        "{listed:?}"
    );
    let none = json(&site.run(&["list", "--json", "other"]));
    assert_eq!(none["locks"].as_array().map(Vec::len), Some(0));
    let one = json(&site.run(&["--json", "list"]));
    assert_eq!(one["locks"][0]["label"], label);

    for node in 0..3 {
        site.cluster[node].kill();
    }
    let unknown = site.run(&["status", "job"]);
    assert_eq!(unknown.code(), 69, "{unknown:?}");
    let partial = site.run(&["list"]);
    assert_eq!(partial.code(), 69, "{partial:?}");
    std::fs::write(site.path("enough"), "").expect("a file");
    run.finish();
    assert_eq!(site.run(&["status", ""]).code(), 64);
}

#[test]
fn a_lock_that_is_taken_away_is_not_set_again() {
    let site = Site::start(5);
    let run = site.spawn(&["run", "job", "--", "sh", "-c", UNTIL_ENOUGH]);
    site.await_file("up");
    let labelled = eventually(LIMIT, || {
        site.run(&["status", "job"]).out.contains("process")
    });
    assert!(labelled, "no label");
    let without = site.run(&["release", "job"]);
    assert_eq!(without.code(), 64, "{without:?}");
    assert!(without.err.contains("--force"), "{without:?}");
    assert_eq!(
        site.run(&["status", "job"]).code(),
        0,
        "nothing has happened"
    );

    let pid = run.pid();
    let freed = site.run(&["release", "--force", "job"]);
    assert_eq!(freed.code(), 0, "{freed:?}");
    assert!(freed.out.contains("it held the lock"), "{freed:?}");
    assert!(
        freed.out.contains(&format!("process {pid}")),
        "whose it was: {freed:?}"
    );
    let done = run.finish();
    assert_eq!(done.code(), 76, "{done:?}");
    assert!(done.err.contains("deleted"), "{done:?}");
    assert!(
        site.no_key("job", SLACK),
        "it was set again, or a label is left"
    );

    let nothing = site.run(&["release", "--force", "--json", "job"]);
    assert_eq!(nothing.code(), 1, "{nothing:?}");
    assert_eq!(json(&nothing)["deleted"], 0);
    site.occupy("job", LIMIT);
    for node in 0..3 {
        site.cluster[node].pause();
    }
    let unsure = site.run(&["release", "--force", "job"]);
    assert_eq!(unsure.code(), 69, "{unsure:?}");
    for node in 0..3 {
        site.cluster[node].resume();
    }
}

#[test]
fn a_check_says_how_the_nodes_are() {
    let site = Site::start(3);
    let asked = [&["check"][..], &["check", "--json"]].map(|args| site.spawn(args));
    let [good, report] = asked.map(Running::finish);
    // A busy machine may be slow enough for a finding; critical it is not.
    assert!([0, 1].contains(&good.code()), "{good:?}");
    assert!(good.out.starts_with("3 nodes, quorum 2"), "{good:?}");
    assert_eq!(json(&report)["nodes"].as_array().map(Vec::len), Some(3));
    // New nodes have a vote once all of them have answered; not for this guard.
    let check = || {
        let mut command = site.command(&["check"]);
        command.env("QUORUMLOCK_RESTART_GUARD", "off");
        Running::start(command).finish()
    };
    site.cluster[0].kill();
    let one = check();
    assert_eq!(one.code(), 1, "{one:?}");
    site.cluster[1].kill();
    let two = check();
    assert_eq!(two.code(), 69, "{two:?}");
}

#[test]
fn what_a_run_says_can_be_read_by_programs() {
    let site = Site::start(3);
    site.occupy("job", LIMIT);
    let done = site.run(&["run", "--json", "--wait", "0s", "job", "--", "true"]);
    assert_eq!(done.code(), 75, "{done:?}");
    let line: Value = serde_json::from_str(&done.err).expect("JSON on standard error");
    assert_eq!(line["event"], "held");
    let done = site.run(&["--json", "run", "--ttl", "5", "job", "--", "true"]);
    let line: Value = serde_json::from_str(&done.err).expect("JSON on standard error");
    assert_eq!((done.code(), &line["event"]), (64, &Value::from("usage")));
}
