//! The calls that block: they give what the async ones give, on any thread, inside a runtime or
//! without one.
//!
//! Field cases: F32 (a guard goes from thread to thread), F43 (nothing runs without the lock), F46
//! (dropped where there is no runtime), F12 (a release that fails hides nothing). Tier: all of it
//! every day; 10 times as many rounds under full.

mod helpers;
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use quorumlock::blocking::{Client, wait};
use quorumlock::testing;
use quorumlock::{AcquireError, ExtendError, FaultKind, Loss, ReleaseError, Released, RunError};

use helpers::{MS, SLACK, copies, key, node_timeout, settings};
use support::{Cluster, Server, eventually, pick};

const TTL: Duration = Duration::from_secs(2);
const LONG: Duration = Duration::from_secs(20);

fn client(cluster: &Cluster) -> Client {
    helpers::client(cluster, TTL).into()
}

// --- in memory ----------------------------------------------------------------------------------

#[test]
fn threads_of_two_clients_are_never_inside_together() {
    let cluster = testing::Cluster::new(5);
    let inside = AtomicU32::new(0);
    let turns = pick(20, 200);
    let served: u32 = thread::scope(|scope| {
        let worker = |index: usize| {
            let (cluster, inside) = (&cluster, &inside);
            scope.spawn(move || {
                let client = match index % 2 {
                    0 => Client::from(cluster.client()),
                    _ => Client::from(cluster.client_with(cluster.config()).unwrap()),
                };
                let lock = client.lock("job").wait_forever();
                let mut served = 0;
                for _ in 0..turns {
                    let guard = lock.acquire().unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    served += u32::from(guard.is_held());
                    assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                    assert_eq!(guard.release().unwrap(), Released::InTime);
                }
                served
            })
        };
        let workers: Vec<_> = (0..4).map(worker).collect();
        let served = workers.into_iter().map(|worker| worker.join().unwrap());
        served.sum()
    });
    assert_eq!(served, 4 * turns);
    assert_eq!(cluster.copies("job"), 0);
}

/// Tokio lets a task poll 128 things or so before it must come to an await. A task that blocks does
/// not come to one.
#[test]
fn many_calls_in_one_task_of_a_runtime_all_get_their_answers() {
    let runtimes = [
        tokio::runtime::Builder::new_current_thread().build(),
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build(),
    ];
    for runtime in runtimes {
        let runtime = runtime.unwrap();
        let (done, told) = mpsc::channel();
        let task = runtime.spawn(async move {
            let lock = Client::in_memory(3).lock("job");
            let rounds = (0..400).filter(|_| lock.acquire().unwrap().release().is_ok());
            done.send(rounds.count()).unwrap();
        });
        let driver = thread::spawn(move || runtime.block_on(task));
        assert_eq!(told.recv_timeout(LONG), Ok(400));
        driver.join().unwrap().unwrap();
    }
}

#[test]
fn a_call_that_waits_ends_when_another_thread_closes_the_client() {
    let client = Client::in_memory(3);
    let guard = client.lock("job").acquire().unwrap();
    let lock = client.lock("job").wait_forever();
    let waiter = thread::spawn(move || lock.acquire());
    // As soon as it waits: one that comes after the close hears the same.
    thread::yield_now();
    client.close().unwrap();
    assert!(matches!(waiter.join().unwrap(), Err(AcquireError::Closed)));
    assert_eq!(guard.wait_lost(Duration::MAX), Some(Loss::Closed));
    assert!(matches!(
        guard.extend(),
        Err(ExtendError::Lost(Loss::Closed))
    ));
    assert!(matches!(
        guard.release(),
        Ok(Released::AlreadyLost(Loss::Closed))
    ));
}

#[test]
fn the_end_of_validity_wakes_a_thread_that_waits_for_it() {
    let clock = testing::Clock::new();
    let cluster = testing::Cluster::with_clock(3, &clock);
    let lock = Client::from(cluster.client())
        .lock("job")
        .auto_extend(false);
    let guard = lock.acquire().unwrap();
    let held = guard.held();
    let watch = thread::spawn(move || held.wait_lost(LONG));
    assert_eq!(guard.wait_lost(MS), None);
    clock.advance(Duration::from_secs(10));
    assert!(!guard.is_held());
    assert_eq!(watch.join().unwrap(), Some(Loss::Expired));
}

#[test]
fn run_gives_what_the_work_gave_and_releases_whatever_it_did() {
    let cluster = testing::Cluster::new(5);
    let client = Client::from(cluster.client());
    let lock = client.lock("job");
    let token = lock.run(|held| Ok::<_, ()>(held.fencing_token())).unwrap();
    assert!(lock.acquire().unwrap().fencing_token() > token);

    let failed = lock.run(|_held| Err::<(), _>("its own"));
    assert!(matches!(failed, Err(RunError::Work("its own"))));
    assert_eq!(cluster.copies("job"), 0);

    let unwound = catch_unwind(AssertUnwindSafe(|| {
        lock.run(|_held| -> Result<(), ()> { std::panic::resume_unwind(Box::new("its own")) })
    }));
    assert_eq!(unwound.unwrap_err().downcast_ref(), Some(&"its own"));
    assert!(eventually(LONG, || cluster.copies("job") == 0));

    let lost = lock.run(|held| {
        client.close().unwrap();
        assert_eq!(held.wait_lost(LONG), Some(Loss::Closed));
        Ok::<_, ()>("late")
    });
    let (loss, output) = match lost {
        Err(RunError::Lost { loss, output }) => (loss, output),
        other => panic!("{other:?}"),
    };
    assert_eq!((loss, output), (Loss::Closed, Some(Ok("late"))));
}

#[test]
fn a_lock_can_be_taken_inside_another_ones_run() {
    let client = Client::in_memory(3);
    let both = client.lock("outer").run(|outer| {
        client
            .lock("inner")
            .run(|inner| Ok::<_, ()>(outer.is_held() && inner.is_held()))
    });
    assert!(both.unwrap());
}

#[test]
fn guards_and_clients_go_over_to_async_calls_and_back() {
    let client = Client::in_memory(3);
    let guard = quorumlock::Guard::from(client.lock("job").acquire().unwrap());
    let other = quorumlock::Client::from(client.clone());
    assert!(wait(other.leave(guard, TTL, "done")).unwrap() >= 2);
    let guard = wait(client.as_async().lock("other").acquire()).unwrap();
    let ticket = quorumlock::blocking::Guard::from(guard).detach().unwrap();
    assert!(client.attach(&ticket).unwrap().is_held());
}

// --- real servers -------------------------------------------------------------------------------

#[test]
fn a_guard_is_taken_extended_and_let_go_of_by_threads_of_their_own() {
    let cluster = Cluster::start(5);
    let (client, probe) = (client(&cluster), cluster.probe());
    for _ in 0..pick(20, 200) {
        let lock = client.lock("job");
        let guard = thread::spawn(move || lock.acquire().unwrap())
            .join()
            .unwrap();
        let guard = thread::spawn(move || guard.extend_to(TTL).map(|()| guard))
            .join()
            .unwrap();
        let released = thread::spawn(move || guard.unwrap().release())
            .join()
            .unwrap();
        assert_eq!(released.unwrap(), Released::InTime);
        let lock = client.lock("job");
        let guard = lock.acquire().unwrap();
        thread::spawn(move || drop(guard)).join().unwrap();
        drop(lock.acquire().unwrap());
    }
    assert!(eventually(TTL, || copies(&probe, &key("job")) == 0));
}

#[test]
fn a_guard_extends_itself_while_its_thread_does_something_else() {
    let cluster = Cluster::start(3);
    let ttl = 600 * MS;
    let client = Client::from(helpers::client(&cluster, ttl));
    let guard = client.lock("job").acquire().unwrap();
    let rival = Client::from(helpers::client(&cluster, ttl));
    assert_eq!(guard.wait_lost(3 * ttl), None);
    let contended = rival.lock("job").try_acquire();
    assert!(
        matches!(contended, Err(AcquireError::Contended(_))),
        "{contended:?}"
    );
    assert!(guard.is_held());
}

/// Three of five nodes are silent: told apart from a lock that is held, in time, and nothing runs.
#[test]
fn an_outage_is_told_in_time_and_nothing_runs() {
    let cluster = Cluster::start(5);
    let client = client(&cluster);
    let guard = client.lock("held").acquire().unwrap();
    cluster.iter().take(3).for_each(Server::pause);
    let budget = 2 * node_timeout(TTL) + SLACK;
    let begin = Instant::now();

    let ran = client
        .lock("job")
        .wait(Duration::ZERO)
        .run(|_held| Ok::<_, ()>("ran"));
    assert!(begin.elapsed() < budget, "{:?}", begin.elapsed());
    let Err(RunError::Acquire(AcquireError::Unavailable(attempt))) = ran else {
        panic!("{ran:?}");
    };
    let silent = attempt.votes().iter().filter_map(|vote| vote.vote.fault());
    assert!(silent.clone().count() >= 3, "{attempt}");
    assert!({ silent }.all(|kind| kind == FaultKind::Timeout));

    let begin = Instant::now();
    assert!(matches!(guard.extend(), Err(ExtendError::Unconfirmed)));
    assert!(begin.elapsed() < budget, "{:?}", begin.elapsed());
    assert_eq!(guard.wait_lost(TTL + SLACK), Some(Loss::Expired));
    assert_eq!(
        guard.release().unwrap(),
        Released::AlreadyLost(Loss::Expired)
    );
    cluster.iter().for_each(Server::resume);
}

#[test]
fn a_release_that_nobody_confirms_says_so_and_hides_no_result() {
    let cluster = Cluster::start(3);
    let client = client(&cluster);
    let guard = client.lock("job").acquire().unwrap();
    let ran = client.lock("work").run(|_held| {
        cluster.iter().for_each(Server::pause);
        Ok::<_, ()>("the result")
    });
    assert_eq!(ran.unwrap(), "the result");
    assert!(matches!(
        guard.release(),
        Err(ReleaseError::Unconfirmed { .. })
    ));
    cluster.iter().for_each(Server::resume);
    let probe = cluster.probe();
    assert!(eventually(TTL + SLACK, || copies(&probe, &key("job")) == 0));
}

/// A drop does not wait for the nodes, wherever it happens.
#[test]
fn a_drop_does_not_block_although_all_nodes_are_silent() {
    let cluster = Cluster::start(3);
    let config = settings(cluster.urls(), LONG);
    let client = Client::with_config(config).unwrap();
    let guard = client.lock("job").acquire().unwrap();
    cluster.iter().for_each(Server::pause);
    let begin = Instant::now();
    thread::spawn(move || drop(guard)).join().unwrap();
    assert!(begin.elapsed() < 400 * MS, "{:?}", begin.elapsed());
    cluster.iter().for_each(Server::resume);
    let probe = cluster.probe();
    assert!(eventually(LONG, || copies(&probe, &key("job")) == 0));
}
