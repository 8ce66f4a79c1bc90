//! F28: a dropped acquisition leaves nothing behind, wherever it was.
//! Tier: 200 drops every day, 2,000 under full.

use std::time::Duration;

use quorumlock::{Client, Lock};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::helpers::*;
use crate::support::*;

const TTL: Duration = Duration::from_secs(30);
/// Of the links: 20 ms in each direction.
const ROUND_TRIP: Duration = Duration::from_millis(40);
/// When nothing is left of a dropped acquisition, at the latest: 2 p + 3 round trips.
const GONE: Duration = Duration::from_millis(1120);
/// How many acquisitions go on side by side.
const SIDE_BY_SIDE: u32 = 20;

struct Scene {
    cluster: Cluster,
    _proxies: Vec<Proxy>,
    client: Client,
    rival: Client,
}

/// Both clients have met all nodes: of new ones no part has a vote before all have answered.
async fn scene() -> Scene {
    let cluster = Cluster::start(5);
    let proxies = Proxy::in_front_of_all(cluster.ports());
    proxies.iter().for_each(|proxy| proxy.delay(ROUND_TRIP / 2));
    let settings = settings(proxies.iter().map(Proxy::url), TTL);
    let scene = Scene {
        client: open(settings),
        rival: client(&cluster, TTL),
        cluster,
        _proxies: proxies,
    };
    for client in [&scene.client, &scene.rival] {
        let warm = take(client, "warm").await;
        warm.release().await.expect("released");
    }
    scene
}

impl Scene {
    /// Runs `drop_one` many times on locks of their own, and looks what it leaves behind.
    async fn repeat<F>(&self, drop_one: fn(Lock, Duration) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let names = (0..pick(200, 2000)).map(|run| format!("dropped-{run}"));
        let names: Vec<String> = names.collect();
        let mut dice = Dice::new();
        let mut first_tries = 0;
        for names in names.chunks(SIDE_BY_SIDE as usize) {
            let mut tasks = JoinSet::new();
            for name in names {
                let lock = self.client.lock(name);
                let rival = self.rival.lock(name);
                let after = dice.span(120 * MS);
                tasks.spawn(async move {
                    drop_one(lock, after).await;
                    sleep(5 * ROUND_TRIP).await;
                    if let Ok(guard) = rival.try_acquire().await {
                        return (guard, true);
                    }
                    sleep(GONE - 5 * ROUND_TRIP).await;
                    let second = rival.try_acquire().await;
                    let second =
                        second.unwrap_or_else(|error| panic!("dropped after {after:?}: {error}"));
                    (second, false)
                });
            }
            while let Some(done) = tasks.join_next().await {
                let (guard, prompt) = done.expect("no panic");
                first_tries += usize::from(prompt);
                assert!(guard.release().await.expect("released").in_time());
            }
            let probe = self.cluster.probe();
            let gone = eventually_async(SLACK, || lock_keys(&probe).is_empty()).await;
            assert!(gone, "left behind: {:?}", lock_keys(&probe));
        }
        // All of them, but for moments in which the machine stands still.
        let tries = names.len();
        assert!(first_tries * 4 >= tries * 3, "{first_tries} of {tries}");
    }
}

#[tokio::test]
async fn a_dropped_acquisition_leaves_nothing_in_anybodys_way() {
    let scene = scene().await;
    scene
        .repeat(|lock, after| async move {
            // One that was granted in time is dropped all the same, as a guard.
            let _ = timeout(after, lock.acquire()).await;
        })
        .await;
}

#[tokio::test]
async fn an_aborted_task_leaves_nothing_in_anybodys_way() {
    let scene = scene().await;
    scene
        .repeat(|lock, after| async move {
            let task = tokio::spawn(async move { lock.acquire().await });
            sleep(after).await;
            task.abort();
            let _ = task.await;
        })
        .await;
}

/// While somebody holds the lock, a waiter is dropped in its rounds and in the pauses between.
#[tokio::test]
async fn a_waiter_that_is_dropped_between_its_rounds_leaves_no_key() {
    let scene = scene().await;
    let outer = scene.rival.lock("busy").acquire().await.expect("a lock");
    let probe = scene.cluster.probe();
    let monitor = Monitor::on(scene.cluster[0].port());
    let token = probe.holder_by_quorum(key("busy")).expect("a holder");
    let mut dice = Dice::new();
    for _ in 0..pick(15, 150) {
        let waiting = scene.client.lock("busy").wait_forever();
        let after = dice.span(400 * MS);
        assert!(timeout(after, waiting.acquire()).await.is_err());
    }
    sleep(2 * ROUND_TRIP).await;
    // Nobody goes on asking for those that are gone.
    let asked = monitor.of("set").len();
    sleep(5 * PAUSE).await;
    assert!(asked > 0, "no waiter ever asked");
    assert_eq!(monitor.of("set").len(), asked);
    let owners = probe.owners(key("busy"));
    let ours = |owner: &Option<Owner>| owner.as_ref().is_some_and(|owner| owner.0 == token);
    assert!(owners.iter().all(ours), "{owners:?}");
    outer.release().await.expect("released");
    let next = scene.client.lock("busy").try_acquire().await;
    assert!(next.is_ok(), "{next:?}");
}
