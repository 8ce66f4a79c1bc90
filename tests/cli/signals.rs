//! Signals to the command while its child runs (F06).

use std::time::{Duration, Instant};

use crate::common::*;
use crate::helpers::*;
use crate::support::*;

/// Every signal that is passed on, with what its handler leaves behind.
const PASSED: [(i32, &str); 6] = [
    (libc::SIGTERM, "TERM"),
    (libc::SIGINT, "INT"),
    (libc::SIGHUP, "HUP"),
    (libc::SIGQUIT, "QUIT"),
    (libc::SIGUSR1, "USR1"),
    (libc::SIGUSR2, "USR2"),
];

#[test]
fn the_child_gets_the_signal_and_the_lock_stays_until_it_is_gone() {
    let site = Site::with(5, Duration::from_secs(1));
    for _ in 0..pick(1, 5) {
        std::thread::scope(|scope| {
            for (signal, name) in PASSED {
                let site = &site;
                scope.spawn(move || works_on_after(site, signal, name));
            }
        });
    }
}

/// A child that works for longer than a third of the TTL after it was told, then ends with 7.
fn works_on_after(site: &Site, signal: i32, name: &str) {
    let script = format!(
        "trap 'touch got-{name}; sleep 0.4; exit 7' {name}; touch up-{name}; \
         while :; do sleep 0.01; done"
    );
    let resource = format!("job-{name}");
    let mut run = site.spawn(&["run", &resource, "--", "sh", "-c", &script]);
    site.await_file(&format!("up-{name}"));
    run.signal(signal);
    let begin = Instant::now();
    site.await_file(&format!("got-{name}"));
    let took = begin.elapsed();
    assert!(took < 50 * MS + SLACK, "{name}: {took:?}");
    let probe = site.cluster.probe();
    while !run.has_ended() && begin.elapsed() < 350 * MS {
        let held = probe.holder_by_quorum(key(&resource)).is_some();
        assert!(held, "{name}: free while its child works");
        std::thread::sleep(20 * MS);
    }
    let done = run.finish();
    assert_eq!(done.code(), 7, "{name}: {done:?}");
    assert!(site.no_key(&resource, site.ttl / 10 + SLACK), "{name}");
    for mark in ["up", "got"] {
        let _ = std::fs::remove_file(site.path(&format!("{mark}-{name}")));
    }
}

#[test]
fn a_child_that_dies_of_the_signal_shows_in_the_status() {
    let site = Site::start(3);
    for _ in 0..times() {
        for (signal, name) in PASSED {
            let up = format!("up-{name}");
            let script = format!("touch {up}; exec sleep 30");
            let run = site.spawn(&["run", "job", "--", "sh", "-c", &script]);
            site.await_file(&up);
            run.signal(signal);
            assert_eq!(run.finish().code(), 128 + signal, "{name}");
            let _ = std::fs::remove_file(site.path(&up));
        }
    }
}

#[test]
fn the_whole_group_gets_it_and_the_lock_waits_for_the_last_of_it() {
    let site = Site::with(5, Duration::from_secs(1));
    // The leader ends at once; a grandchild works on for longer than the TTL.
    let script = "(trap 'touch told' TERM; touch up; sleep 0.7; sleep 0.7; touch done) & exit 3";
    let run = site.spawn(&["run", "job", "--", "sh", "-c", script]);
    site.await_file("up");
    std::thread::sleep(50 * MS);
    run.signal(libc::SIGTERM);
    site.await_file("told");
    let probe = site.cluster.probe();
    while !site.exists("done") {
        let holder = probe.holder_by_quorum(key("job"));
        assert!(
            holder.is_some() || site.exists("done"),
            "free before the end"
        );
        std::thread::sleep(10 * MS);
    }
    let done = run.finish();
    assert_eq!(done.code(), 3, "{done:?}");
    assert!(site.no_key("job", SLACK));
}

#[test]
fn a_stopped_child_keeps_its_lock_and_goes_on() {
    let site = Site::with(3, Duration::from_secs(1));
    let script = "touch up; while [ ! -e enough ]; do sleep 0.01; done; exit 5";
    let run = site.spawn(&["run", "job", "--", "sh", "-c", script]);
    site.await_file("up");
    let child = only_child(run.pid());
    run.signal(libc::SIGTSTP);
    assert!(
        eventually(LIMIT, || state_of(child) == Some('T')),
        "not stopped"
    );
    // Without a terminal nobody stops the command: it goes on extending.
    std::thread::sleep(site.ttl + SLACK);
    assert!(site.cluster.probe().holder_by_quorum(key("job")).is_some());
    run.signal(libc::SIGCONT);
    assert!(
        eventually(LIMIT, || state_of(child) != Some('T')),
        "still stopped"
    );
    std::fs::write(site.path("enough"), "").expect("a file");
    assert_eq!(run.finish().code(), 5);
}

#[test]
fn a_signal_that_was_ignored_before_stays_ignored_for_the_child() {
    let site = Site::start(3);
    let program = env!("CARGO_BIN_EXE_quorumlock");
    let script = format!(
        "trap '' HUP; exec {program} run job -- sh -c 'grep SigIgn /proc/self/status; \
         kill -HUP $$; echo alive'"
    );
    let mut command = site.command(&[]);
    let envs: Vec<_> = command
        .get_envs()
        .map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)))
        .collect();
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).current_dir(site.dir.path());
    for (name, value) in envs {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    command = shell;
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let done = Running::start(command).finish();
    assert!(done.out.ends_with("alive\n"), "{done:?}");
}

/// The one child of a process.
fn only_child(pid: u32) -> u32 {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let mut found = None;
    let one = eventually(LIMIT, || {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        found = text
            .split_whitespace()
            .next()
            .and_then(|pid| pid.parse().ok());
        found.is_some()
    });
    assert!(one, "no child");
    found.expect("a child")
}
