//! Signals to the command while it waits for the lock (F06).

use std::time::{Duration, Instant};

use crate::common::*;
use crate::helpers::*;
use crate::support::*;

#[test]
fn a_signal_ends_the_wait_at_once_and_leaves_nothing() {
    let site = Site::start(5);
    site.occupy("job", LIMIT);
    for _ in 0..times() {
        for signal in [
            libc::SIGTERM,
            libc::SIGINT,
            libc::SIGHUP,
            libc::SIGQUIT,
            libc::SIGUSR1,
        ] {
            let run = site.spawn(&["run", "job", "--", "touch", "ran"]);
            // It waits once it has asked.
            let asked = || site.cluster[0].probe().client_list().len() > 1;
            assert!(eventually(LIMIT, asked), "it does not ask");
            std::thread::sleep(20 * MS);
            run.signal(signal);
            let begin = Instant::now();
            let done = run.finish();
            let took = begin.elapsed();
            assert_eq!(done.code(), 128 + signal, "{done:?}");
            assert!(took < 200 * MS + SLACK, "{took:?}");
            assert!(!site.exists("ran"));
        }
    }
}

/// 200 runs of a TERM at the very moment at which the lock comes free.
#[test]
fn no_child_is_started_after_a_signal_whatever_comes_free_with_it() {
    let site = Site::start(5);
    let (rounds, together) = pick((2, 5), (20, 10));
    let mut dice = Dice::new();
    for round in 0..rounds {
        let resource = |index: usize| format!("job-{round}-{index}");
        let mark = |index: usize| format!("ran-{round}-{index}");
        let waiting: Vec<_> = (0..together)
            .map(|index| {
                site.occupy(&resource(index), LIMIT);
                site.spawn(&["run", &resource(index), "--", "touch", &mark(index)])
            })
            .collect();
        std::thread::sleep(300 * MS);
        for (index, run) in waiting.into_iter().enumerate() {
            // The connections first, so that the lock comes free at one moment on all nodes.
            let mut probes: Vec<_> = site.cluster.iter().map(Server::probe).collect();
            let name = key(&resource(index));
            std::thread::sleep(dice.span(30 * MS));
            run.signal(libc::SIGTERM);
            for command in [&["DEL", &*name][..], &["PUBLISH", &*name, "1"]] {
                for probe in &mut probes {
                    probe.command(command);
                }
            }
            let begin = Instant::now();
            let done = run.finish();
            let took = begin.elapsed();
            assert_eq!(done.code(), 128 + libc::SIGTERM, "{done:?}");
            assert!(took < 200 * MS + SLACK * 2, "{took:?}");
            assert!(!site.exists(&mark(index)), "a child ran after TERM");
            let gone = site.no_key(&resource(index), node_timeout(site.ttl) * 2);
            assert!(gone, "a key is left");
        }
    }
}

/// Grant and signal are both there when the command wakes: it was stopped while they came.
#[test]
fn a_signal_that_comes_together_with_the_grant_wins() {
    let site = Site::start(3);
    let proxies = Proxy::in_front_of_all(site.cluster.ports());
    let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
    site.configure("behind.toml", &urls);
    let mut met = 0;
    for round in 0..pick(3, 40) {
        let (resource, mark) = (format!("job-{round}"), format!("ran-{round}"));
        site.occupy(&resource, LIMIT);
        let args = [
            "run",
            "--config",
            "behind.toml",
            &resource,
            "--",
            "touch",
            &mark,
        ];
        let run = site.spawn(&args);
        let asked = || proxies[0].accepted() > round;
        assert!(eventually(LIMIT, asked), "it does not ask");
        std::thread::sleep(50 * MS);
        // The answer is on its way for so long after the grant.
        proxies.iter().for_each(|proxy| proxy.delay(60 * MS));
        site.vacate(&resource);
        let probe = site.cluster.probe();
        let granted = eventually(1000 * MS, || copies(&probe, &key(&resource)) >= 2);
        run.signal(libc::SIGSTOP);
        proxies.iter().for_each(Proxy::pass);
        std::thread::sleep(80 * MS);
        met += usize::from(granted);
        run.signal(libc::SIGTERM);
        run.signal(libc::SIGCONT);
        let done = run.finish();
        assert_eq!(done.code(), 128 + libc::SIGTERM, "{done:?}");
        assert!(!site.exists(&mark), "a child ran after TERM");
        assert!(site.no_key(&resource, site.ttl + SLACK), "a key is left");
    }
    assert!(met > 0, "no grant was under way in any round");
}

#[test]
fn whoever_waits_runs_when_the_lock_comes_free() {
    let site = Site::start(3);
    site.occupy("job", LIMIT);
    let run = site.spawn(&["run", "--wait", "forever", "job", "--", "touch", "ran"]);
    std::thread::sleep(100 * MS);
    assert!(!site.exists("ran"));
    site.vacate("job");
    assert_eq!(run.finish_within(Duration::from_secs(10)).code(), 0);
    assert!(site.exists("ran"));
}

/// A single try of many that start at one moment: somebody always runs.
#[test]
fn contenders_that_try_once_do_not_all_miss() {
    let site = Site::start(5);
    for round in 0..pick(4, 50) {
        let resource = format!("job-{round}");
        let script = "echo x >> $QUORUMLOCK_RESOURCE; sleep 0.3";
        let once = [["--if-held", "skip"], ["--wait", "0s"]][round % 2];
        let args = ["run", once[0], once[1], &resource, "--", "sh", "-c", script];
        let runs: Vec<_> = (0..6).map(|_| site.spawn(&args)).collect();
        for run in runs {
            let done = run.finish();
            assert!([0, 75].contains(&done.code()), "{done:?}");
        }
        assert!(site.read(&resource).starts_with('x'), "all have skipped");
    }
}
