//! F01: work that blocks every worker of the caller's runtime.
//! Tier: one block of each length every day, 50 under full, on both kinds of runtime.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use quorumlock::{Client, Guard};
use tokio::runtime::Builder;

use crate::helpers::*;
use crate::support::*;

const TTL: Duration = Duration::from_secs(2);

/// Keeps a core busy, as work without an await does.
fn spin(span: Duration) {
    let began = Instant::now();
    while began.elapsed() < span {
        std::hint::spin_loop();
    }
}

struct Scene {
    cluster: Cluster,
    client: Client,
    rival: Client,
}

impl Scene {
    fn new() -> Scene {
        let cluster = Cluster::start(5);
        Scene {
            client: client(&cluster, TTL),
            rival: client(&cluster, TTL),
            cluster,
        }
    }

    /// While `block` keeps a runtime from doing anything, a rival waits for the lock and a
    /// stranger looks at the nodes. The holder's first look afterwards must be right.
    fn hold_through(&self, block: impl FnOnce(Guard) -> Guard) {
        let guard = block_on(self.client.lock("blocked").acquire()).expect("a lock");
        let probe = self.cluster.probe();
        let token = probe.holder_by_quorum(key("blocked")).expect("a holder");
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let rival = scope.spawn(|| {
                let lock = self.rival.lock("blocked").wait(4 * TTL);
                let served = block_on(lock.acquire());
                (served, over.load(Ordering::SeqCst))
            });
            let looks = scope.spawn(|| {
                let mut looks = 0;
                while !over.load(Ordering::SeqCst) {
                    let holder = probe.holder_by_quorum(key("blocked"));
                    // The flag is set before the release: seen as set, the look says nothing.
                    let ours = holder.as_ref() == Some(&token);
                    assert!(ours || over.load(Ordering::SeqCst), "after {looks} looks");
                    looks += 1;
                    std::thread::sleep(2 * MS);
                }
                looks
            });
            let guard = block(guard);
            over.store(true, Ordering::SeqCst);
            assert!(looks.join().expect("ours all the time") > 10);
            assert!(block_on(guard.release()).expect("released").in_time());
            let (served, after) = rival.join().expect("no panic");
            assert!(after, "the rival was served meanwhile");
            block_on(served.expect("served at last").release()).expect("released");
        });
    }
}

/// What the holder sees first when it can look again.
fn look(guard: Guard) -> Guard {
    let began = Instant::now();
    let (held, left) = (guard.is_held(), guard.remaining());
    assert!(began.elapsed() < 10 * MS + SLACK);
    assert!(held && !left.is_zero(), "lost, though its client went on");
    guard
}

#[test]
fn a_lock_outlives_a_block_of_both_workers() {
    let scene = Scene::new();
    for _ in 0..pick(1, 50) {
        for span in [TTL / 2, TTL + TTL / 2] {
            scene.hold_through(|guard| {
                let runtime = Builder::new_multi_thread().worker_threads(2).build();
                let runtime = runtime.expect("a runtime");
                let both = Arc::new(Barrier::new(2));
                let block = move |both: Arc<Barrier>| {
                    both.wait();
                    spin(span);
                };
                let other = Arc::clone(&both);
                let idle = runtime.spawn(async move { block(other) });
                let work = runtime.spawn(async move {
                    block(both);
                    look(guard)
                });
                runtime.block_on(both_of(work, idle))
            });
        }
    }
}

async fn both_of<T>(
    work: impl Future<Output = Result<T, tokio::task::JoinError>>,
    idle: impl Future<Output = Result<(), tokio::task::JoinError>>,
) -> T {
    let (guard, idle) = tokio::join!(work, idle);
    idle.expect("no panic");
    guard.expect("no panic")
}

#[test]
fn a_lock_outlives_a_block_of_the_only_thread() {
    let scene = Scene::new();
    for _ in 0..pick(1, 50) {
        for span in [TTL / 2, TTL + TTL / 2] {
            scene.hold_through(|guard| {
                block_on(async {
                    spin(span);
                    look(guard)
                })
            });
        }
    }
}
