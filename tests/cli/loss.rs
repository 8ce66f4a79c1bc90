//! The lock is lost while the command runs: nobody of its group outlives the validity.

use std::time::Duration;

use crate::common::*;
use crate::helpers::*;
use crate::support::*;

/// A grandchild that ignores TERM and leaves a heartbeat, on the boot clock, every few
/// milliseconds.
const BEATS: &str = "(trap '' TERM; while :; do cut -d' ' -f1 /proc/uptime >> beats-$N; done) & \
                     trap '' TERM; touch up-$N; wait; sleep 60";

/// The last heartbeat, in hundredths of a second since the boot.
fn last(text: &str) -> u64 {
    let line = text.lines().rfind(|line| line.contains('.'));
    let line = line.unwrap_or_else(|| panic!("no time in {text:?}"));
    line.replace('.', "").parse().expect("a number")
}

#[test]
fn the_last_heartbeat_is_earlier_than_the_rivals_start() {
    let site = Site::with(5, Duration::from_secs(1));
    let (rounds, together) = pick((1, 3), (20, 5));
    for round in 0..rounds {
        let proxies = Proxy::in_front_of_all(site.cluster.ports());
        let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
        site.configure("dark.toml", &urls);
        let name = |index: usize| format!("{round}-{index}");
        let runs: Vec<_> = (0..together)
            .map(|index| {
                let name = name(index);
                let resource = format!("job-{name}");
                let args = ["run", "--config", "dark.toml", "--grace", "200ms"];
                let args = [&args[..], &[&*resource, "--", "sh", "-c", BEATS]].concat();
                let mut command = site.command(&args);
                command.env("N", &name);
                let holder = Running::start(command);
                site.await_file(&format!("up-{name}"));
                let script = format!("cut -d' ' -f1 /proc/uptime > rival-{name}");
                let rival = ["run", "--wait", "20s", &resource, "--", "sh", "-c", &script];
                (name, holder, site.spawn(&rival))
            })
            .collect();
        std::thread::sleep(100 * MS);
        for proxy in &proxies {
            proxy.blackhole();
        }
        for (name, holder, rival) in runs {
            let done = holder.finish();
            assert_eq!(done.code(), 76, "{done:?}");
            assert!(done.err.contains("about to be lost"), "{done:?}");
            let done = rival.finish();
            assert_eq!(done.code(), 0, "{done:?}");
            let beat = last(&site.read(&format!("beats-{name}")));
            let start = last(&site.read(&format!("rival-{name}")));
            assert!(
                beat < start,
                "{name}: a beat at {beat}, the rival at {start}"
            );
        }
    }
}

#[test]
fn a_child_that_obeys_has_its_grace() {
    let site = Site::with(5, TTL);
    let script = "trap 'touch told; sleep 0.3; touch tidied; exit 0' TERM; touch up; \
                  while :; do sleep 0.01; done";
    let run = site.spawn(&["run", "--grace", "700ms", "job", "--", "sh", "-c", script]);
    site.await_file("up");
    for node in 0..3 {
        site.cluster[node].pause();
    }
    let done = run.finish();
    for node in 0..3 {
        site.cluster[node].resume();
    }
    assert_eq!(done.code(), 76, "{done:?}");
    assert!(site.exists("told") && site.exists("tidied"), "{done:?}");
}

#[test]
fn a_stopped_child_is_killed_all_the_same() {
    let site = Site::with(3, Duration::from_secs(1));
    let run = site.spawn(&[
        "run",
        "job",
        "--",
        "sh",
        "-c",
        "echo $$ > pid; kill -STOP $$",
    ]);
    let stopped = eventually(LIMIT, || {
        let pid = site.read("pid").trim().parse().ok();
        pid.and_then(state_of) == Some('T')
    });
    assert!(stopped, "it does not stop");
    site.vacate("job");
    assert_eq!(run.finish().code(), 76);
    let pid = site.read("pid").trim().parse().expect("a number");
    assert!(!is_alive(pid));
}

#[test]
fn two_dark_nodes_are_no_loss() {
    let site = Site::with(5, Duration::from_secs(1));
    let run = site.spawn(&[
        "run",
        "job",
        "--",
        "sh",
        "-c",
        "touch up; sleep 1.6; exit 4",
    ]);
    site.await_file("up");
    site.cluster[0].pause();
    site.cluster[1].kill();
    let done = run.finish();
    site.cluster[0].resume();
    assert_eq!((done.code(), &*done.err), (4, ""), "{done:?}");
}
