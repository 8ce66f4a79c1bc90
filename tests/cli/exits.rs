//! Every exit status (F20).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::common::*;
use crate::helpers::*;
use crate::support::*;

const HELD: i32 = 75;
const UNAVAILABLE: i32 = 69;
const LOST: i32 = 76;
const USAGE: i32 = 64;

#[test]
fn a_childs_status_is_the_commands_own() {
    let site = Site::start(3);
    for _ in 0..times() {
        for code in [0, 1, 2, 42, 64, 126, 255] {
            let script = format!("exit {code}");
            let done = site.run(&["run", "job", "--", "sh", "-c", &script]);
            assert_eq!((done.code(), &*done.out, &*done.err), (code, "", ""));
        }
        for signal in [libc::SIGKILL, libc::SIGTERM, libc::SIGSEGV, libc::SIGHUP] {
            let script = format!("kill -{signal} $$");
            let done = site.run(&["run", "job", "--", "sh", "-c", &script]);
            assert_eq!(done.code(), 128 + signal, "{done:?}");
        }
        assert!(site.no_key("job", TTL / 10 + SLACK));
    }
}

#[test]
fn a_program_that_cannot_be_run_gives_the_lock_back() {
    let site = Site::start(3);
    let plain = site.path("plain");
    fs::write(&plain, "exit 0\n").expect("a file");
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).expect("a mode");
    let plain = plain.display().to_string();
    for _ in 0..times() {
        for (program, code) in [("no-such-program", 127), ("./nothing", 127), (&plain, 126)] {
            // Nothing ran, so nothing is kept.
            let done = site.run(&["run", "--at-least", "5s", "job", "--", program]);
            assert_eq!(done.code(), code, "{done:?}");
            assert!(done.err.contains("cannot be run"), "{done:?}");
            assert!(site.no_key("job", TTL / 10 + SLACK), "{program}");
        }
    }
}

#[test]
fn a_lock_that_is_held_elsewhere_is_told_or_skipped() {
    let site = Site::start(5);
    for _ in 0..times() {
        site.occupy("job", LIMIT);
        let skip = ["run", "--if-held", "skip", "job", "--", "touch", "ran"];
        let done = site.run(&skip);
        assert_eq!(
            (done.code(), &*done.out, &*done.err),
            (0, "", ""),
            "{done:?}"
        );
        for args in [
            &["run", "--wait", "0s", "job", "--", "touch", "ran"][..],
            &["run", "--wait", "100ms", "job", "--", "touch", "ran"],
            &["run", "--at-least", "1s", "job", "--", "touch", "ran"],
        ] {
            let done = site.run(args);
            assert_eq!(done.code(), HELD, "{done:?}");
            assert!(done.err.contains("held"), "{done:?}");
        }
        assert!(!site.exists("ran"));
        site.vacate("job");
        assert_eq!(site.run(&skip).code(), 0);
        assert!(site.exists("ran"));
        fs::remove_file(site.path("ran")).expect("the mark");
    }
}

#[test]
fn too_few_nodes_are_no_holder() {
    let site = Site::start(5);
    for node in 0..3 {
        site.cluster[node].kill();
    }
    for _ in 0..times() {
        for more in [&[][..], &["--if-held", "skip"]] {
            let mut args = vec!["run", "--wait", "100ms"];
            args.extend(more);
            args.extend(["job", "--", "touch", "ran"]);
            let done = site.run(&args);
            assert_eq!(done.code(), UNAVAILABLE, "{done:?}");
            assert!(done.err.contains("refused"), "{done:?}");
        }
    }
    assert!(!site.exists("ran"));
}

#[test]
fn what_cannot_be_used_is_told_before_anything_is_sent() {
    let site = Site::start(3);
    let run = |flags: &[&str]| {
        let mut args = vec!["run"];
        args.extend(flags);
        args.extend(["job", "--", "touch", "ran"]);
        let done = site.run(&args);
        assert_eq!(done.code(), USAGE, "{flags:?}: {done:?}");
        assert!(done.out.is_empty(), "{done:?}");
        done.err
    };
    for _ in 0..times() {
        let text = run(&["--ttl", "5"]);
        assert!(text.contains("ttl = \"5\" (argument --ttl): "), "{text}");
        let text = run(&["--ttl", "11s"]);
        assert!(
            text.contains("ttl = 11s (argument --ttl): is longer than max_ttl, which is 10s"),
            "{text}"
        );
        let text = run(&["--grace", "2s"]);
        assert!(text.contains("--grace = 2s: does not fit"), "{text}");
        let text = run(&["--at-least", "11s"]);
        assert!(
            text.contains("--at-least = 11s: is longer than max_ttl"),
            "{text}"
        );
        run(&["--grace", "soon"]);
        run(&["--wait", "-1s"]);
        run(&["--if-held", "maybe"]);
        run(&["--no-such-flag"]);
        let text = run(&["--config", "nowhere.toml"]);
        assert!(text.contains("nowhere.toml"), "{text}");
        let text = run(&["--node", "redis://:hunter2@127.0.0.1:1"]);
        assert!(!text.contains("hunter2"), "{text}");
        fs::write(
            site.path("bad.toml"),
            "nodes = [\"redis://a\"]\ntll = \"1s\"",
        )
        .expect("a file");
        let text = run(&["--config", "bad.toml"]);
        assert!(text.contains("bad.toml, line 2"), "{text}");
        assert!(text.contains("did you mean ttl?"), "{text}");
    }
    for args in [&["run", "job"][..], &["run", "", "--", "true"], &[]] {
        assert_eq!(site.run(args).code(), USAGE, "{args:?}");
    }
    assert!(!site.exists("ran"));
    for node in site.cluster.iter() {
        assert_eq!(node.probe().keys("*"), Vec::<Vec<u8>>::new());
    }
    assert_eq!(site.run(&["--help"]).code(), 0);
    assert_eq!(site.run(&["run", "--help"]).code(), 0);
}

#[test]
fn a_lost_lock_is_told_although_the_child_ended_well() {
    let site = Site::with(5, Duration::from_secs(1));
    for _ in 0..times() {
        // Deleted behind its back: nobody may work on.
        let script = "trap 'exit 0' TERM; touch ran; while :; do sleep 0.01; done";
        let run = site.spawn(&["run", "job", "--", "sh", "-c", script]);
        site.await_file("ran");
        site.vacate("job");
        let done = run.finish();
        assert_eq!(done.code(), LOST, "{done:?}");
        assert!(done.err.contains("deleted"), "{done:?}");
        fs::remove_file(site.path("ran")).expect("the mark");
    }
    // The nodes are away: the child is told in time, and ends with 0.
    for _ in 0..pick(1, 5) {
        let script = "trap 'touch told; exit 0' TERM; touch ran; while :; do sleep 0.01; done";
        let run = site.spawn(&["run", "job", "--", "sh", "-c", script]);
        site.await_file("ran");
        for node in 0..3 {
            site.cluster[node].pause();
        }
        let done = run.finish();
        assert_eq!(done.code(), LOST, "{done:?}");
        assert!(site.exists("told"), "{done:?}");
        for node in 0..3 {
            site.cluster[node].resume();
        }
        for mark in ["ran", "told"] {
            fs::remove_file(site.path(mark)).expect("the mark");
        }
        assert!(site.no_key("job", site.ttl + SLACK * 4));
    }
}

#[test]
fn all_of_them_are_different() {
    let own = [HELD, UNAVAILABLE, LOST, USAGE, 70];
    for (index, code) in own.iter().enumerate() {
        assert!(!own[..index].contains(code));
        assert!(![0, 1, 2, 126, 127].contains(code) && *code < 128);
    }
}
