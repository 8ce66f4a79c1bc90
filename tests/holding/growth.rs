//! F51 in small: memory, threads, connections and keys after many cycles; the cost of many locks.
//! Tier: 20,000 cycles on 1,000 names and 200 held locks every day, 200,000 on 10,000 and 1,000
//! under full.

use std::time::{Duration, Instant};

use quorumlock::Client;

use crate::helpers::*;
use crate::support::*;

const TTL: Duration = Duration::from_secs(3);

#[test]
fn many_cycles_leave_memory_threads_and_connections_as_they_were() {
    let cluster = Cluster::with(5, |_, server| server.args(["--maxclients", "64"]));
    let proxies = Proxy::in_front_of_all(cluster.ports());
    let urls = proxies.iter().map(Proxy::url).collect::<Vec<_>>().join(" ");
    let mut worker = Worker::start("growth::cycler", &[("WORKER_URLS", &urls)]);
    let limit = Duration::from_secs(pick(300, 1800));
    for tenth in 0..10 {
        worker.hear("tenth", limit);
        // A reconnect now and then.
        proxies[tenth % 5].reset();
    }
    let grown = worker.hear("grown ", limit);
    // Before it ends: two connections to a node at the most.
    for proxy in &proxies {
        assert!(proxy.connections() <= 2, "{}", proxy.connections());
    }
    let probe = cluster.probe();
    let gone = eventually(TTL + SLACK, || lock_keys(&probe).is_empty());
    assert!(gone, "{:?}", lock_keys(&probe));
    worker.kill();

    let numbers: Vec<u64> = grown
        .split(' ')
        .map(|n| n.parse().expect("a number"))
        .collect();
    let [before, after, threads_before, threads_after] = numbers[..] else {
        panic!("{grown}");
    };
    // Pages that the allocator keeps are not counted for every page.
    let limit = before + before / 20 + (2 << 10);
    assert!(after <= limit, "{before} kB grew to {after} kB");
    assert!(threads_after <= threads_before, "{grown}");
}

#[test]
#[ignore = "a process of the test above"]
fn cycler() {
    let (cycles, names) = pick((20_000, 1_000), (200_000, 10_000));
    let client = open(patient(told_urls(), TTL));
    let tenth = cycles / 10;
    block_on(async {
        // Two tenths are the warm-up: every name and every kind of cycle was there by then.
        let mut before = (0, 0);
        for part in 0..10 {
            for cycle in part * tenth..(part + 1) * tenth {
                turn(&client, cycle, &format!("cycled-{}", cycle % names)).await;
            }
            eprintln!("tenth");
            if part == 1 {
                before = (resident_kib(), threads());
            }
        }
        let after = (resident_kib(), threads());
        eprintln!("grown {} {} {} {}", before.0, after.0, before.1, after.1);
        // Until the parent has seen enough.
        tokio::time::sleep(Duration::from_secs(30)).await;
    });
}

async fn turn(client: &Client, cycle: u32, name: &str) {
    let lock = client.lock(name);
    match cycle % 20 {
        // Given up somewhere on its way.
        7 => {
            let brief = Duration::from_micros(u64::from(cycle % 700));
            drop(tokio::time::timeout(brief, lock.acquire()).await);
        }
        // Contended. A connection may just have been reset; that is no leak.
        13 => {
            let first = lock.acquire().await;
            drop(lock.try_acquire().await);
            drop(first);
        }
        other => {
            let guard = lock.acquire().await;
            if other % 2 == 0
                && let Ok(guard) = guard
            {
                let _ = guard.release().await;
            }
        }
    }
}

fn status(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the status");
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    number.and_then(|n| n.parse().ok()).expect("a number")
}

fn resident_kib() -> u64 {
    status("VmRSS:")
}

fn threads() -> u64 {
    status("Threads:")
}

#[tokio::test]
async fn many_held_locks_cost_one_extension_each_per_third_of_the_ttl() {
    let count: u32 = pick(200, 1000);
    let cluster = Cluster::start(5);
    let client = open(patient(cluster.urls(), TTL));
    let mut guards = Vec::new();
    for one in 0..count {
        let lock = client.lock(format!("kept-{one}"));
        guards.push(lock.acquire().await.expect("a lock"));
    }
    let mut probes: Vec<Probe> = cluster.iter().map(Server::probe).collect();
    let before: Vec<u64> = probes
        .iter_mut()
        .map(|p| p.commandstats("pexpire"))
        .collect();
    let began = Instant::now();
    tokio::time::sleep(2 * TTL).await;
    for (probe, before) in probes.iter_mut().zip(before) {
        let sent = probe.commandstats("pexpire") - before;
        let thirds = began.elapsed().as_secs_f64() / (TTL / 3).as_secs_f64();
        let most = 1.2 * f64::from(count) * thirds;
        assert!(sent as f64 <= most, "{sent} extensions, {most} at most");
        // Each was extended once in a TTL at least, or it would be lost.
        assert!(sent >= u64::from(count), "{sent} extensions");
    }
    assert!(guards.iter().all(quorumlock::Guard::is_held));
}
