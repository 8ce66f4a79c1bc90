//! What the plots show, measured in the simulated world.

use std::time::Duration;

use quorumlock::testing::world::{Task, World};
use quorumlock::{AcquireError, Config, Guard};

use super::chart::{Chart, Line};
use crate::support::{JOB, acquire, finish, ms, run, served};

/// Long enough for every queue here.
const LONG: Duration = Duration::from_secs(600);

/// A crossing of the network takes this long on average; half of it more or less is chance.
const CROSSING: Duration = ms(5);

fn world(seed: u64, nodes: usize) -> World {
    let world = World::new(seed, nodes);
    for node in 0..nodes {
        world.server(node).latency(CROSSING / 2, CROSSING * 3 / 2);
    }
    world
}

/// How soon a lock is taken that becomes free while some wait for it, and what their waiting costs
/// the nodes meanwhile.
pub fn waiting() -> [Chart; 2] {
    let ways = [
        ("notes", None),
        ("polling, 20 ms", Some(ms(20))),
        ("polling, 100 ms", Some(ms(100))),
        ("polling, 500 ms", Some(ms(500))),
    ];
    let (mut gaps, mut requests) = (Vec::new(), Vec::new());
    for (name, poll) in ways {
        let waiters = [1, 2, 4, 8, 16];
        let waits = waiters.map(|count| (f64::from(count), wait(poll, count)));
        let line = |of: fn(&Wait) -> f64| Line {
            name: name.to_owned(),
            points: waits
                .iter()
                .map(|(count, wait)| (*count, of(wait)))
                .collect(),
        };
        gaps.push(line(|wait| wait.gap));
        requests.push(line(|wait| wait.requests));
    }
    let x = "waiters, each a process of its own";
    let gap = Chart {
        title: "From a release on five nodes until one of the waiters has the lock, mean",
        x,
        y: "ms (a round trip: 10 ms)",
        lines: gaps,
    };
    let cost = Chart {
        title: "Requests to each node while the lock is held and waited for",
        x,
        y: "requests a second",
        lines: requests,
    };
    [gap, cost]
}

/// The means of some worlds.
struct Wait {
    gap: f64,
    requests: f64,
}

/// `poll` is the longest time between two tries, where nobody tells that the lock is free.
fn wait(poll: Option<Duration>, waiters: u32) -> Wait {
    const WORLDS: u32 = 10;
    let mut sum = Wait {
        gap: 0.0,
        requests: 0.0,
    };
    for seed in 1..=WORLDS {
        let world = world(seed.into(), 5);
        let mut config = world.cluster().config().wait_forever();
        if let Some(delay) = poll {
            (0..5).for_each(|node| world.server(node).mute());
            config = config.retry_delay(delay).retry_max_delay(delay);
        }
        let holder = world.client(config.clone()).expect("good settings");
        let guard = acquire(&world, &holder);
        let tasks: Vec<Task<Guard>> = (0..waiters).map(|_| waiter(&world, &config)).collect();
        run(&world, ms(700));
        let before = served(&world);
        run(&world, ms(500));
        sum.requests += (served(&world) - before) as f64 / 5.0 * 2.0;
        // So far as chance has it between two polls.
        run(&world, world.span(Duration::ZERO, ms(500)));
        let freed = world.elapsed();
        drop(guard);
        let mut until = freed;
        while !tasks.iter().any(Task::has_ended) {
            run(&world, ms(1) / 2);
            until = world.elapsed();
        }
        sum.gap += (until - freed).as_secs_f64() * 1e3;
        world.end();
    }
    let worlds = f64::from(WORLDS);
    Wait {
        gap: sum.gap / worlds,
        requests: sum.requests / worlds,
    }
}

/// Ends with the lock.
fn waiter(world: &World, config: &Config) -> Task<Guard> {
    let (process, client) = world.client(config.clone()).expect("good settings");
    world.spawn(process, async move {
        client.lock(JOB).acquire().await.expect("the lock")
    })
}

/// How many tries fail although all nodes that live are well, as the time limit comes close to
/// what a round trip takes.
pub fn node_timeout() -> Chart {
    let sets = [
        ("5 nodes", 5, 0),
        ("5 nodes, one dead", 5, 1),
        ("5 nodes, two dead", 5, 2),
    ];
    let ratios = [80, 90, 100, 110, 120, 130, 140, 150, 175, 200, 250, 300];
    let line = |(name, nodes, dead): (&str, usize, usize)| Line {
        name: name.to_owned(),
        points: ratios
            .into_iter()
            .map(|percent| (f64::from(percent) / 100.0, failed(nodes, dead, percent)))
            .collect(),
    };
    Chart {
        title: "Tries that fail on a free lock, one round each",
        x: "node_timeout, in mean round trips (which take 0.5 to 1.5 of that)",
        y: "% of tries",
        lines: sets.into_iter().map(line).collect(),
    }
}

/// In percent, of tries that follow each other with pauses.
fn failed(nodes: usize, dead: usize, percent: u32) -> f64 {
    const TRIES: u32 = 200;
    let world = world(7, nodes);
    (0..dead).for_each(|node| world.server(node).kill());
    let limit = CROSSING * 2 * percent / 100;
    let config = world.cluster().config().node_timeout(limit);
    let (process, client) = world.client(config).expect("good settings");
    let (lock, time) = (client.lock(JOB), world.clone());
    let tries = world.spawn(process, async move {
        let mut failed = 0;
        // The first one connects, and is not counted.
        for count in 0..=TRIES {
            match lock.try_acquire().await {
                Ok(guard) => drop(guard),
                Err(AcquireError::Unavailable(_) | AcquireError::TooSlow(_)) if count == 0 => {}
                Err(AcquireError::Unavailable(_) | AcquireError::TooSlow(_)) => failed += 1,
                Err(other) => panic!("{other}"),
            }
            time.sleep(ms(200)).await;
        }
        drop(client);
        failed
    });
    let failed = finish(&world, &tries, LONG);
    world.end();
    f64::from(failed) * 100.0 / f64::from(TRIES)
}

/// What is left of a TTL at its grant.
pub fn validity() -> Chart {
    let line = |ttl: Duration| Line {
        name: format!("ttl {} ms", ttl.as_millis()),
        points: (0..=10)
            .map(|percent| (f64::from(percent), granted(ttl, f64::from(percent) / 100.0)))
            .collect(),
    };
    Chart {
        title: "Validity at the grant, with round trips of 5 to 15 ms and a drift.margin of 2 ms",
        x: "drift.factor, %",
        y: "% of the ttl",
        lines: [10_000, 1_000, 200, 100]
            .map(ms)
            .into_iter()
            .map(line)
            .collect(),
    }
}

fn granted(ttl: Duration, factor: f64) -> f64 {
    let world = world(3, 5);
    let config = world.cluster().config().ttl(ttl).drift_factor(factor);
    let config = config.auto_extend(false).node_timeout(ms(20));
    let (process, client) = world.client(config).expect("good settings");
    let lock = client.lock(JOB);
    let first = lock.clone();
    // The first one connects.
    let warm = world.spawn(process, async move { drop(first.try_acquire().await) });
    finish(&world, &warm, LONG);
    let pause = world.clone();
    let task = world.spawn(process, async move {
        pause.sleep(ms(500)).await;
        lock.try_acquire().await.expect("a free lock").remaining()
    });
    let left = finish(&world, &task, LONG);
    world.end();
    left.as_secs_f64() * 100.0 / ttl.as_secs_f64()
}
