//! F46: a guard that is dropped where there is no runtime, or no runtime any more.
//! Tier: 5 times each every day, 100 under full.

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use quorumlock::{Client, Guard};
use tokio::runtime::{Builder, Runtime};

use crate::helpers::*;
use crate::support::*;

const TTL: Duration = Duration::from_secs(20);
/// Far above what a drop takes, and below the 500 ms after which a silent node is given up.
const AT_ONCE: Duration = Duration::from_millis(400);

fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("ok")
}

/// Takes a lock, and lets `drop_it` get rid of guard and runtime while all nodes are silent: who
/// waits for one of them is found out. When they speak again, the lock must come free.
fn dropped_by(drop_it: impl Fn(Guard, Runtime)) {
    let cluster = Cluster::start(5);
    let client = client(&cluster, TTL);
    let probe = cluster.probe();
    for run in 0..pick(5, 100) {
        let runtime = runtime();
        let guard = runtime.block_on(client.lock("alone").acquire());
        let guard = guard.unwrap_or_else(|error| panic!("run {run}: {error}"));
        assert_eq!(copies(&probe, &key("alone")), 5);
        cluster.iter().for_each(Server::pause);
        drop_it(guard, runtime);
        cluster.iter().for_each(Server::resume);
        let limit = 2 * node_timeout(TTL);
        let gone = eventually(limit, || copies(&probe, &key("alone")) == 0);
        assert!(gone, "run {run}: the key is still there");
    }
}

fn timed(drop_it: impl FnOnce()) {
    let began = Instant::now();
    drop_it();
    assert!(began.elapsed() < AT_ONCE, "took {:?}", began.elapsed());
}

#[test]
fn it_is_dropped_by_a_thread_after_the_runtime_is_gone() {
    dropped_by(|guard, runtime| {
        drop(runtime);
        let thread = std::thread::spawn(|| timed(|| drop(guard)));
        thread.join().expect("no panic");
    });
}

#[test]
fn it_is_dropped_by_a_task_at_the_shutdown_of_the_runtime() {
    dropped_by(|guard, runtime| {
        let task = runtime.spawn(async move {
            let _guard = guard;
            pending::<()>().await;
        });
        assert!(!task.is_finished());
        timed(|| drop(runtime));
    });
}

#[test]
fn it_is_dropped_by_a_frame_that_unwinds() {
    dropped_by(|guard, _runtime| {
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let _guard = guard;
            std::panic::resume_unwind(Box::new("the work's own"));
        }));
        let what = unwound.expect_err("unwound");
        assert_eq!(what.downcast_ref(), Some(&"the work's own"));
    });
}

/// Both runtimes are alive and nobody drives them any more.
#[test]
fn it_is_dropped_inside_a_runtime_that_nobody_polls_again() {
    dropped_by(|guard, kept| {
        let still = Builder::new_current_thread().build().expect("a runtime");
        still.block_on(async { timed(|| drop(guard)) });
        std::mem::forget((still, kept));
    });
}

#[test]
fn a_guard_in_a_static_does_not_keep_a_program_from_ending_as_it_would() {
    let cluster = Cluster::start(5);
    let probe = cluster.probe();
    let ttl = Duration::from_secs(2);
    for code in ["main returns", "7"] {
        let vars = [
            ("WORKER_URLS", &*cluster.urls().join(" ")),
            ("WORKER_CODE", code),
        ];
        let mut worker = Worker::start("no_runtime::holder_in_a_static", &vars);
        worker.hear("held", Duration::from_secs(10));
        let (status, said) = worker.finish(Duration::from_secs(5));
        let expected = code.parse().unwrap_or(0);
        assert_eq!(status.code(), Some(expected), "{said:#?}");
        assert!(
            !said.iter().any(|line| line.contains("panicked")),
            "{said:#?}"
        );
        assert!(eventually(ttl + SLACK, || lock_keys(&probe).is_empty()));
    }
}

#[test]
#[ignore = "a process of the test above"]
fn holder_in_a_static() {
    static HELD: OnceLock<Mutex<Option<(Client, Guard)>>> = OnceLock::new();
    let client = open(settings(told_urls(), Duration::from_secs(2)));
    let guard = block_on(client.lock("static").acquire()).expect("the lock");
    HELD.get_or_init(|| Mutex::new(Some((client, guard))));
    eprintln!("held");
    if let Ok(code) = told("WORKER_CODE").parse() {
        std::process::exit(code);
    }
}
