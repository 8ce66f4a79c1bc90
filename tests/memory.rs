//! The public double: nodes in memory under the real client, on its own thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use futures::executor::block_on;
use quorumlock::testing::{Clock, Cluster};
use quorumlock::{AcquireError, Client, FaultKind, Guard, Loss, Released, RestartGuard, Vote};

const TTL: Duration = Duration::from_secs(3);

fn fault_of(error: &AcquireError, node: usize) -> Option<FaultKind> {
    error.attempt().unwrap().votes()[node].vote.fault()
}

#[test]
fn a_healthy_set_locks_excludes_and_releases() {
    let client = Client::in_memory(5);
    let lock = client.lock("job");
    let guard = block_on(lock.acquire()).unwrap();
    let refused = block_on(lock.try_acquire()).unwrap_err();
    assert!(matches!(&refused, AcquireError::Contended(attempt) if attempt.is_held_here()));
    assert_eq!(block_on(guard.release()).unwrap(), Released::InTime);
    assert!(block_on(lock.try_acquire()).is_ok());
}

#[test]
fn a_dropped_guard_frees_the_lock_on_every_node() {
    let cluster = Cluster::new(5);
    let guard = block_on(cluster.client().lock("job").acquire()).unwrap();
    assert_eq!(cluster.holders("job"), [5]);
    drop(guard);
    // The next one waits behind the release on each node.
    let next = block_on(cluster.client().lock("job").acquire()).unwrap();
    assert_eq!(cluster.holders("job"), [5]);
    drop(next);
}

#[test]
fn clients_of_one_cluster_exclude_each_other() {
    let cluster = Cluster::new(3);
    let guard = block_on(cluster.client().lock("job").acquire()).unwrap();
    let rival = cluster.client();
    match block_on(rival.lock("job").try_acquire()).unwrap_err() {
        AcquireError::Contended(attempt) => {
            assert!(!attempt.is_held_here());
            let held = |vote: &Vote| matches!(vote, Vote::Held { .. });
            assert!(
                attempt
                    .votes()
                    .iter()
                    .filter(|node| held(&node.vote))
                    .count()
                    >= 2
            );
        }
        other => panic!("{other}"),
    }
    drop(guard);
}

#[test]
fn two_bad_nodes_of_five_do_no_harm_and_three_are_an_outage() {
    let cluster = Cluster::new(5);
    cluster.node(0).kill();
    cluster.node(1).hang();
    let client = cluster.client_with(cluster.config().ttl(TTL)).unwrap();
    let lock = client.lock("job").wait(Duration::ZERO);
    let guard = block_on(lock.acquire()).unwrap();
    assert_eq!(block_on(guard.release()).unwrap(), Released::InTime);

    cluster.node(2).fail_with(FaultKind::OutOfMemory);
    let error = block_on(lock.acquire()).unwrap_err();
    assert!(matches!(error, AcquireError::Unavailable(_)), "{error}");
    assert_eq!(fault_of(&error, 0), Some(FaultKind::ConnectionRefused));
    assert_eq!(fault_of(&error, 1), Some(FaultKind::Timeout));
    assert_eq!(fault_of(&error, 2), Some(FaultKind::OutOfMemory));

    cluster.node(2).heal();
    assert!(block_on(lock.acquire()).is_ok());
}

#[test]
fn a_node_that_will_never_serve_us_is_told_apart_from_an_outage() {
    let cluster = Cluster::new(3);
    let client = cluster.client();
    for node in 0..2 {
        cluster.node(node).fail_with(FaultKind::Permission);
    }
    let lock = client.lock("job");
    let started = Instant::now();
    let error = block_on(lock.acquire()).unwrap_err();
    assert!(matches!(error, AcquireError::Rejected(_)), "{error}");
    assert_eq!(fault_of(&error, 0), Some(FaultKind::Permission));
    // Nobody waits for what will not change.
    assert!(started.elapsed() < Duration::from_secs(5));

    cluster.nodes().iter().for_each(|node| node.heal());
    let healed = Instant::now();
    while let Err(error) = block_on(lock.acquire()) {
        assert!(healed.elapsed() < Duration::from_secs(10), "{error}");
    }
}

#[test]
fn a_node_that_restarted_empty_has_no_vote_unless_the_guard_is_off() {
    for (guard, served) in [(RestartGuard::Auto, false), (RestartGuard::Off, true)] {
        let cluster = Cluster::new(3);
        let config = cluster.config().restart_guard(guard).wait(Duration::ZERO);
        let client = cluster.client_with(config).unwrap();
        drop(block_on(client.lock("first").acquire()).unwrap());
        for node in 0..2 {
            cluster.node(node).restart_empty();
        }
        let late = cluster
            .config()
            .restart_guard(guard)
            .wait(Duration::from_millis(200));
        let client = cluster.client_with(late).unwrap();
        let outcome = block_on(client.lock("job").acquire());
        assert_eq!(outcome.is_ok(), served, "{guard:?}: {outcome:?}");
    }
}

#[test]
fn the_clock_of_a_test_ends_leases_and_retries_of_every_client() {
    let clock = Clock::new();
    let cluster = Cluster::with_clock(5, &clock);
    let config = cluster.config().ttl(TTL).auto_extend(false).wait_forever();
    let (one, two) = (
        cluster.client_with(config.clone()).unwrap(),
        cluster.client_with(config).unwrap(),
    );
    let guard = block_on(one.lock("job").acquire()).unwrap();
    let lost = guard.lost();
    let rival = two.lock("job");
    let waiting = std::thread::spawn(move || block_on(rival.acquire()));
    clock.advance(guard.remaining());
    assert!(!guard.is_held());
    assert_eq!(block_on(lost), Loss::Expired);
    // The rival's retries need the clock as well.
    while !waiting.is_finished() {
        clock.advance(Duration::from_millis(10));
        // One command to and fro: the rival's engine has had its turn by then.
        assert!(block_on(two.lock("other").try_acquire()).is_ok());
    }
    assert!(waiting.join().unwrap().unwrap().is_held());
    assert!(clock.elapsed() < TTL * 3, "{:?}", clock.elapsed());
}

#[test]
fn a_guard_extends_itself_by_the_clock_of_a_test() {
    let clock = Clock::new();
    let cluster = Cluster::with_clock(3, &clock);
    let client = cluster.client_with(cluster.config().ttl(TTL)).unwrap();
    let guard = block_on(client.lock("job").acquire()).unwrap();
    while clock.elapsed() < TTL * 3 {
        clock.advance(Duration::from_millis(100));
        // One command to and fro: the engine has had its turn by then.
        assert!(block_on(client.lock("other").try_acquire()).is_ok());
    }
    assert!(guard.is_held());
    assert!(guard.remaining() > TTL / 2);
}

#[test]
fn a_node_that_hangs_answers_late_and_leaves_nothing_behind() {
    let cluster = Cluster::new(3);
    cluster.node(2).hang();
    let client = cluster.client();
    let guard = block_on(client.lock("job").acquire()).unwrap();
    assert_eq!(block_on(guard.release()).unwrap(), Released::InTime);
    cluster.node(2).resume();
    let next = block_on(client.lock("job").acquire()).unwrap();
    assert_eq!(cluster.holders("job").len(), 1);
    drop(next);
}

#[test]
fn closing_a_client_releases_what_it_holds() {
    let cluster = Cluster::new(3);
    let client = cluster.client();
    let guard = block_on(client.lock("job").acquire()).unwrap();
    block_on(client.close()).unwrap();
    assert_eq!(guard.loss(), Some(Loss::Closed));
    assert_eq!(cluster.copies("job"), 0);
    let after = block_on(client.lock("job").acquire());
    assert!(matches!(after, Err(AcquireError::Closed)));
}

#[test]
fn delays_are_honoured_by_the_engines_own_alarm() {
    let cluster = Cluster::new(3);
    let latency = Duration::from_millis(20);
    cluster.nodes().iter().for_each(|node| node.delay(latency));
    let started = Instant::now();
    let guard = block_on(cluster.client().lock("job").acquire()).unwrap();
    // A connection takes a round trip, the round another one.
    assert!(started.elapsed() >= latency * 4, "{:?}", started.elapsed());
    assert!(guard.is_held());
}

/// Callers carry out commands themselves where the engine is free, and leave them to its thread or
/// to each other where it is not: none may be left lying.
#[test]
fn no_command_of_many_threads_is_left_lying() {
    const THREADS: usize = 8;
    const PAIRS: usize = 300;
    let client = Client::in_memory(3);
    let begin = Instant::now();
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let client = client.clone();
            std::thread::spawn(move || {
                for pair in 0..PAIRS {
                    let lock = client.lock(format!("{thread}:{pair}"));
                    let guard = block_on(lock.acquire()).expect("a free lock");
                    // Every other one by its drop, for which nobody waits.
                    if pair % 2 == 0 {
                        block_on(guard.release()).expect("a release");
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    block_on(client.close()).expect("all is released");
    assert!(begin.elapsed() < Duration::from_secs(20), "something lay");
}

/// Polls `future` once, for `waker`.
fn poll_for<F: Future>(future: Pin<&mut F>, waker: Arc<impl Wake + Send + Sync + 'static>) {
    let waker = Waker::from(waker);
    let poll = future.poll(&mut Context::from_waker(&waker));
    assert!(poll.is_pending());
}

fn eventually(what: impl Fn() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(5) {
        if what() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

/// An executor may poll from within a waker, and its tasks use the client which calls that waker.
#[test]
fn a_waker_may_use_the_client_that_wakes_it() {
    struct Busy(Client, Mutex<Option<Guard>>);
    impl Wake for Busy {
        fn wake(self: Arc<Self>) {
            drop(self.1.lock().unwrap().take());
            let lock = self.0.lock("third");
            let mut third = pin!(lock.try_acquire());
            let _ = third.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
    }
    let cluster = Cluster::new(3);
    let client = cluster.client();
    let other = block_on(client.lock("other").acquire()).unwrap();
    let first = block_on(client.lock("job").acquire()).unwrap();
    let lock = client.lock("job");
    let mut second = pin!(lock.acquire());
    let busy = Arc::new(Busy(client.clone(), Mutex::new(Some(other))));
    poll_for(second.as_mut(), busy);
    drop(first);
    assert!(block_on(second).unwrap().is_held());
    let clean = || {
        ["other", "third"]
            .iter()
            .all(|name| cluster.copies(name) == 0)
    };
    assert!(eventually(clean));
}

#[test]
fn holders_hear_at_once_that_their_engine_has_panicked_and_the_next_lock_has_a_new_one() {
    struct Bomb;
    impl Wake for Bomb {
        fn wake(self: Arc<Self>) {
            panic!("a bug of the executor");
        }
    }
    let client = Client::in_memory(3);
    let first = block_on(client.lock("job").acquire()).unwrap();
    let other = block_on(client.lock("other").acquire()).unwrap();
    let (told, hears) = std::sync::mpsc::channel();
    let lost = other.lost();
    std::thread::spawn(move || told.send(block_on(lost)));
    let lock = client.lock("job");
    let mut second = Box::pin(lock.acquire());
    poll_for(second.as_mut(), Arc::new(Bomb));
    // Here, or on the client's thread.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(first)));
    let loss = hears.recv_timeout(Duration::from_secs(1));
    assert_eq!(loss, Ok(Loss::Closed));
    assert!(!other.is_held());
    assert!(block_on(client.lock("third").acquire()).unwrap().is_held());
}
