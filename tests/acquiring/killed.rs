//! F03: a holder that is killed keeps nobody waiting for longer than its TTL.
//! Tier: 3 kills of each kind every day, 66 under full.

use std::time::{Duration, Instant};

use quorumlock::Client;

use crate::helpers::*;
use crate::support::*;

const TTL: Duration = Duration::from_millis(600);

fn kills() -> u32 {
    pick(3, 66)
}

/// Between two extensions, or in the middle of one: the links are slow and the extensions many.
#[test]
fn a_killed_holder_is_followed_when_its_lease_ends_and_not_before() {
    for (every, delay) in [("200", 0), ("60", 20)] {
        let scene = Scene::new(|_| delay * MS);
        let mut dice = Dice::new();
        for run in 0..kills() {
            let name = format!("held-{every}-{run}");
            let mut holder = scene.worker("killed::holder", &name, every);
            holder.hear("held", Duration::from_secs(10));
            scene.kill_and_follow(&mut holder, &name, 30 * MS + dice.span(TTL / 2), true);
        }
    }
}

/// The links differ in speed, so that a kill leaves grants on none to all of the nodes.
#[test]
fn an_acquirer_that_is_killed_half_way_blocks_nobody_for_longer_than_a_ttl() {
    let scene = Scene::new(|node| 4 * node * MS);
    let mut dice = Dice::new();
    let mut partial = 0;
    for run in 0..kills() {
        let name = format!("half-{run}");
        let mut holder = scene.worker("killed::holder", &name, "200");
        holder.hear("asking", Duration::from_secs(10));
        let granted = scene.kill_and_follow(&mut holder, &name, dice.span(20 * MS), false);
        partial += u32::from((1..5).contains(&granted));
    }
    // Not every kill hits the few milliseconds; none at all of many would be odd.
    assert!(partial > 0 || !full(), "no kill fell into an acquisition");
}

struct Scene {
    cluster: Cluster,
    proxies: Vec<Proxy>,
    waiter: Client,
}

impl Scene {
    fn new(delay: impl Fn(u32) -> Duration) -> Scene {
        let cluster = Cluster::start(5);
        let proxies = Proxy::in_front_of_all(cluster.ports());
        for (node, proxy) in (0..).zip(&proxies) {
            proxy.delay(delay(node));
        }
        let waiter = client(&cluster, TTL);
        // Its connections are there before any clock runs.
        drop(block_on(take(&waiter, "first")));
        Scene {
            cluster,
            proxies,
            waiter,
        }
    }

    fn worker(&self, entry: &str, name: &str, every: &str) -> Worker {
        let urls: Vec<String> = self.proxies.iter().map(Proxy::url).collect();
        let vars = [
            ("WORKER_URLS", &*urls.join(" ")),
            ("WORKER_NAME", name),
            ("WORKER_EXTEND_EVERY", every),
        ];
        Worker::start(entry, &vars)
    }

    /// Kills `holder` after `pause` while somebody waits, and checks when that one is served.
    /// Returns on how many nodes the killed one's key was.
    fn kill_and_follow(
        &self,
        holder: &mut Worker,
        name: &str,
        pause: Duration,
        held: bool,
    ) -> usize {
        let probe = self.cluster.probe();
        let lock = self.waiter.lock(name).wait(3 * TTL);
        let limit = TTL + PAUSE + 2 * node_timeout(TTL) + SLACK;
        block_on(async {
            let gone = tokio::sync::Notify::new();
            let mut waiting = Box::pin(async {
                // Half-way through its acquisition the holder must not find us in its place.
                if !held {
                    gone.notified().await;
                }
                let guard = lock.acquire().await;
                (guard, Instant::now())
            });
            tokio::select! {
                (early, _) = &mut waiting => panic!("served under the holder's eyes: {early:?}"),
                () = tokio::time::sleep(pause) => {}
            }
            let token = probe.holder_by_quorum(key(name)).unwrap_or_default();
            holder.kill();
            let killed = Instant::now();
            gone.notify_one();
            let free = free_at(&probe, name, &token);
            let granted = copies(&probe, &key(name));
            let (guard, at) = waiting.await;
            let guard = guard.unwrap_or_else(|error| panic!("not served: {error}"));
            assert!(at - killed < limit, "{:?} after the kill", at - killed);
            if held {
                // The servers round to whole milliseconds.
                let early = free.saturating_duration_since(at + 2 * MS);
                assert!(early.is_zero(), "served {early:?} before the end");
            }
            guard.release().await.expect("released");
            granted
        })
    }
}

/// When three of the five nodes have no key with this token any more.
fn free_at(probe: &ClusterProbe, name: &str, token: &[u8]) -> Instant {
    let now = Instant::now();
    let owners = probe.owners(key(name)).into_iter();
    let mut ends: Vec<Instant> = owners
        .map(|owner| {
            let owner = owner.filter(|(value, _)| value == token);
            let left = owner.map_or(0, |(_, pttl)| u64::try_from(pttl).expect("an expiry"));
            now + Duration::from_millis(left)
        })
        .collect();
    ends.sort();
    ends[2]
}

#[test]
#[ignore = "a process of the tests above"]
fn holder() {
    let every = told("WORKER_EXTEND_EVERY").parse().expect("milliseconds");
    let config = settings(told_urls(), TTL).extend_every(Duration::from_millis(every));
    let client = open(config);
    block_on(async {
        // Connections first: "asking" is said when nothing but the round is left to do.
        drop(take(&client, "ready").await);
        eprintln!("asking");
        let guard = take(&client, &told("WORKER_NAME")).await;
        eprintln!("held");
        let loss = guard.lost().await;
        eprintln!("lost: {loss}");
    });
}
