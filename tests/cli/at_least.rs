//! `--at-least`: a short job that one of several hosts runs, whose clocks differ.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use crate::common::*;
use crate::helpers::*;
use crate::support::*;

#[test]
fn the_key_stays_for_so_long_from_the_start_and_no_longer() {
    let site = Site::start(5);
    // Longer than the TTL, and shorter.
    for (name, least) in [("longer", 4_000), ("shorter", 1_000)] {
        let at_least = format!("{least}ms");
        let args = [
            "run",
            "--at-least",
            &at_least,
            "--label",
            "by hand",
            name,
            "--",
        ];
        let done = site.run(&[&args[..], &["sleep", "0.1"]].concat());
        assert_eq!((done.code(), &*done.err), (0, ""), "{done:?}");
        let owners = site.cluster.probe().owners(key(name));
        let lefts = owners.iter().flatten().map(|(_, left)| *left);
        let within = lefts.filter(|left| *left <= least - 100 && *left > least - 1_500);
        assert!(within.count() >= 3, "{name}: {owners:?}");
        let done = site.run(&["status", name]);
        assert_eq!(done.code(), 0, "{done:?}");
        assert!(done.out.contains("done, kept until 20"), "{done:?}");
        assert!(done.out.contains(": by hand"), "{done:?}");
        let again = site.run(&["run", "--at-least", &at_least, name, "--", "true"]);
        assert_eq!(again.code(), 75, "{again:?}");
    }
    assert!(site.no_key("shorter", Duration::from_secs(15)));
}

#[test]
fn a_job_that_took_longer_leaves_nothing() {
    let site = Site::start(3);
    let done = site.run(&["run", "--at-least", "100ms", "job", "--", "sleep", "0.2"]);
    assert_eq!(done.code(), 0, "{done:?}");
    assert!(site.no_key("job", SLACK));
}

#[test]
fn a_job_that_fails_is_not_run_again_by_the_next_host() {
    let site = Site::start(3);
    let done = site.run(&["run", "--at-least", "5s", "job", "--", "false"]);
    assert_eq!(done.code(), 1, "{done:?}");
    let done = site.run(&["run", "--at-least", "5s", "job", "--", "touch", "ran"]);
    assert_eq!(done.code(), 75, "{done:?}");
    assert!(!site.exists("ran"));
}

/// Where libfaketime's library is, if it is there.
fn faketime() -> Option<String> {
    let output = Command::new("sh")
        .args([
            "-c",
            "ls /usr/lib/*/faketime/libfaketimeMT.so.1 2>/dev/null",
        ])
        .output();
    let text = String::from_utf8(output.ok()?.stdout).ok()?;
    text.lines().next().map(str::to_owned)
}

/// Two hosts whose wall clocks are three minutes apart begin the same job at about one moment, in
/// each period: no wall clock has a say in who runs it, or for how long the key stays.
#[test]
fn two_hosts_with_other_wall_clocks_run_it_once_per_period() {
    let Some(library) = faketime() else {
        eprintln!("left out: libfaketime is not here");
        return;
    };
    let site = Site::start(5);
    let (periods, together) = pick((6, 6), (200, 10));
    let periods: Vec<_> = (0..periods).collect();
    let mut dice = Dice::new();
    for batch in periods.chunks(together) {
        let mut runs = Vec::new();
        let resources: Vec<_> = batch.iter().map(|it| format!("job-{it}")).collect();
        for resource in &resources {
            for skew in ["+0", "+180s"] {
                let script = "echo $(date +%s) >> $QUORUMLOCK_RESOURCE; sleep 0.02";
                let args = ["run", "--if-held", "skip", "--at-least", "10s", resource];
                let mut command = site.command(&[&args[..], &["--", "sh", "-c", script]].concat());
                command.env("LD_PRELOAD", &library).env("FAKETIME", skew);
                command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
                command.arg0("quorumlock");
                runs.push(Running::start(command));
                std::thread::sleep(dice.span(30 * MS));
            }
        }
        for run in runs {
            let done = run.finish();
            assert_eq!(done.code(), 0, "{done:?}");
        }
        for resource in &resources {
            let lines = site.read(resource).lines().count();
            assert_eq!(lines, 1, "{resource} ran {lines} times");
        }
    }
    // The skew was there.
    let time = |skew: &str| {
        let mut command = site.command(&["run", "clock", "--", "date", "+%s"]);
        command.env("LD_PRELOAD", &library).env("FAKETIME", skew);
        command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        let done = Running::start(command).finish();
        done.out.trim().parse::<u64>().expect("seconds")
    };
    let (early, late) = (time("+0"), time("+180s"));
    assert!((179..=240).contains(&(late - early)), "{early} {late}");
}
