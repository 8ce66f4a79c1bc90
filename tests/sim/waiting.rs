//! Waiting for others: notes instead of polls, split votes, and turns among processes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use quorumlock::testing::world::{ProcessId, Task, World};
use quorumlock::{Client, Config, Guard};

use crate::support::{
    JOB, acquire, assert_clean, finish, ms, process, run, served, settings, world,
};

const TTL: Duration = ms(3_000);

/// There and back, for the slowest of five servers.
const TRIP: Duration = Duration::from_micros(2 * (2_000 + 4 * 300));

fn waiter(world: &World, who: &(ProcessId, Client)) -> Task<Guard> {
    let lock = who.1.lock(JOB).wait_forever();
    world.spawn(who.0, async move { lock.acquire().await.unwrap() })
}

fn listeners(world: &World) -> Vec<usize> {
    let server = |node| world.server(node).listeners(JOB);
    (0..world.nodes()).map(server).collect()
}

#[test]
fn a_waiter_asks_nothing_until_it_hears_that_the_lock_is_free() {
    let world = world(5);
    let (holder, me) = (process(&world, TTL), process(&world, TTL));
    let guard = acquire(&world, &holder);
    let waiting = waiter(&world, &me);
    run(&world, ms(200));
    assert_eq!(listeners(&world), [1; 5]);
    let before = served(&world);
    run(&world, ms(700));
    assert_eq!(served(&world), before);
    drop(guard);
    let freed = world.elapsed();
    drop(finish(&world, &waiting, TTL));
    // The release, its note, up to two trips of chance, and the round.
    let took = world.elapsed() - freed;
    assert!(took <= TRIP * 4, "{took:?}");
    run(&world, ms(500));
    assert_clean(&world, "after the last holder");
    assert_eq!(listeners(&world), [0; 5]);
}

/// What a failed try takes back goes to the nodes whose refusals came too late to count, and those
/// are other nodes each time. Together they must not sound like a quorum that lets the lock go.
#[test]
fn many_waiters_ask_nothing_while_it_is_held() {
    for waiters in [3, 5, 16] {
        let world = world(5);
        (0..5).for_each(|node| world.server(node).latency(ms(2), ms(8)));
        let holder = process(&world, TTL);
        let guard = acquire(&world, &holder);
        let others: Vec<_> = (0..waiters).map(|_| process(&world, TTL)).collect();
        let waiting: Vec<_> = others.iter().map(|me| waiter(&world, me)).collect();
        run(&world, ms(400));
        assert_eq!(listeners(&world), [waiters; 5]);
        let before = served(&world);
        run(&world, ms(500));
        assert_eq!(served(&world), before, "{waiters} waiters");
        drop((guard, waiting));
    }
}

#[test]
fn while_nobody_waits_nothing_is_subscribed_to() {
    let world = world(3);
    let (me, other) = (process(&world, TTL), process(&world, TTL));
    for _ in 0..3 {
        let guard = acquire(&world, &me);
        run(&world, ms(20));
        assert_eq!(listeners(&world), [0; 3]);
        drop(guard);
    }
    let guard = acquire(&world, &me);
    let cancelled = waiter(&world, &other);
    run(&world, ms(50));
    assert_eq!(listeners(&world), [1; 3]);
    cancelled.cancel();
    run(&world, ms(500));
    assert_eq!(listeners(&world), [0; 3]);
    drop(guard);
}

#[test]
fn the_keys_of_a_holder_that_died_are_waited_for_and_no_longer() {
    let world = world(5);
    let (holder, me) = (process(&world, TTL), process(&world, TTL));
    let guard = acquire(&world, &holder);
    let began = world.elapsed();
    world.freeze(holder.0, TTL * 100);
    let waiting = waiter(&world, &me);
    drop(finish(&world, &waiting, TTL * 2));
    let took = world.elapsed() - began;
    assert!(took >= TTL - ms(50) && took <= TTL + TRIP * 5, "{took:?}");
    drop(guard);
}

#[test]
fn a_note_that_was_missed_costs_no_more_than_a_poll() {
    let world = world(5);
    let (holder, me) = (process(&world, TTL), process(&world, TTL));
    let guard = acquire(&world, &holder);
    let waiting = waiter(&world, &me);
    run(&world, ms(100));
    // The waiter's connections are dead without a word while the lock is let go.
    (0..5).for_each(|node| world.link(me.0, node).swallow());
    drop(guard);
    run(&world, ms(100));
    (0..5).for_each(|node| world.link(me.0, node).mend());
    let freed = world.elapsed();
    drop(finish(&world, &waiting, TTL * 4));
    let took = world.elapsed() - freed;
    assert!(took <= ms(3_500), "{took:?}");
}

#[test]
fn a_new_connection_counts_as_a_note() {
    let world = world(3);
    let (holder, me) = (process(&world, TTL), process(&world, TTL));
    let guard = acquire(&world, &holder);
    let waiting = waiter(&world, &me);
    run(&world, ms(100));
    (0..3).for_each(|node| world.link(me.0, node).hold());
    drop(guard);
    run(&world, ms(100));
    (0..3).for_each(|node| world.link(me.0, node).reset_before());
    (0..3).for_each(|node| world.link(me.0, node).mend());
    let back = world.elapsed();
    drop(finish(&world, &waiting, TTL));
    let took = world.elapsed() - back;
    assert!(took <= ms(200), "{took:?}");
}

#[test]
fn where_a_majority_tells_nothing_the_lock_is_polled() {
    for mute in [2, 3] {
        let world = world(5);
        (0..mute).for_each(|node| world.server(node).mute());
        let (holder, me) = (process(&world, TTL), process(&world, TTL));
        let guard = acquire(&world, &holder);
        let waiting = waiter(&world, &me);
        run(&world, ms(200));
        let before = served(&world);
        run(&world, ms(700));
        assert_eq!(served(&world) > before, mute == 3);
        drop(guard);
        let freed = world.elapsed();
        drop(finish(&world, &waiting, TTL));
        let took = world.elapsed() - freed;
        // The longest delay of a poll, or the notes of three nodes.
        let bound = if mute == 3 { ms(550) } else { TRIP * 5 };
        assert!(took <= bound, "{mute}: {took:?}");
    }
}

#[test]
fn a_standstill_in_a_round_is_not_taken_for_its_duration() {
    let world = world(5);
    let (holder, me) = (process(&world, TTL), process(&world, TTL));
    let guard = acquire(&world, &holder);
    let waiting = waiter(&world, &me);
    run(&world, ms(8));
    world.freeze(me.0, ms(600_000));
    run(&world, ms(600_500));
    assert!(guard.is_held());
    drop(guard);
    let freed = world.elapsed();
    drop(finish(&world, &waiting, ms(600_000)));
    let took = world.elapsed() - freed;
    assert!(took <= ms(2_500), "{took:?}");
}

/// Who was parked behind a hold of its own process hears from the nodes no more, and has to be
/// told anew.
#[test]
fn a_waiter_listens_again_after_its_own_process_had_the_lock() {
    let world = world(5);
    let (rival, me) = (process(&world, TTL), process(&world, TTL));
    let guard = acquire(&world, &rival);
    let waiting = waiter(&world, &me);
    run(&world, ms(200));
    assert_eq!(listeners(&world), [1; 5]);
    drop(guard);
    // A single try does not stand in line, and is faster.
    let (lock, sleeper) = (me.1.lock(JOB), world.clone());
    let single = world.spawn(me.0, async move {
        loop {
            if let Ok(guard) = lock.try_acquire().await {
                return guard;
            }
            sleeper.sleep(ms(1)).await;
        }
    });
    let single = finish(&world, &single, TTL);
    run(&world, ms(500));
    assert_eq!(listeners(&world), [0; 5]);
    // Whoever has the ticket holds the lock from now on.
    let ticket = world.spawn(me.0, single.detach());
    finish(&world, &ticket, ms(100)).unwrap();
    run(&world, ms(200));
    let before = served(&world);
    run(&world, ms(700));
    assert_eq!(served(&world), before);
    assert_eq!(listeners(&world), [1; 5]);
    drop(finish(&world, &waiting, TTL * 2));
}

/// What several processes did that took turns on one lock.
struct Turns {
    /// How often each had the lock.
    each: Vec<u32>,
    /// The times for which it lay free before it went to another process.
    gaps: Vec<Duration>,
    /// Requests to each node, for each of these hand-overs.
    requests: f64,
}

impl Turns {
    fn new(processes: usize) -> Self {
        Turns {
            each: vec![0; processes],
            gaps: Vec::new(),
            requests: 0.0,
        }
    }
}

/// Processes that each hold the lock for 5 ms again and again.
fn take_turns(world: &World, processes: usize, time: Duration, how: fn(Config) -> Config) -> Turns {
    let turns = Rc::new(RefCell::new(Turns::new(processes)));
    let last = Rc::new(Cell::new((usize::MAX, Duration::ZERO)));
    let before = served(world);
    for index in 0..processes {
        let me = world.client(how(settings(world, TTL))).unwrap();
        let (lock, sleeper) = (me.1.lock(JOB).wait_forever(), world.clone());
        let (turns, last) = (Rc::clone(&turns), Rc::clone(&last));
        drop(world.spawn(me.0, async move {
            loop {
                let guard = lock.acquire().await.unwrap();
                turns.borrow_mut().each[index] += 1;
                let (before, freed) = last.get();
                if before != index {
                    let gap = sleeper.elapsed() - freed;
                    turns.borrow_mut().gaps.push(gap);
                }
                sleeper.sleep(ms(5)).await;
                last.set((index, sleeper.elapsed()));
                drop(guard);
            }
        }));
    }
    run(world, time);
    let mut turns = turns.replace(Turns::new(0));
    turns.gaps.sort_unstable();
    let requests = (served(world) - before) as f64;
    turns.requests = requests / world.nodes() as f64 / turns.gaps.len() as f64;
    turns
}

#[test]
fn processes_take_turns_with_short_gaps_and_few_requests() {
    for processes in [2, 8, 16] {
        for how in [|config| config, |config: Config| config.fencing(false)] {
            let world = world(5);
            let turns = take_turns(&world, processes, ms(3_000), how);
            let Turns {
                each,
                gaps,
                requests,
            } = &turns;
            assert!(each.iter().all(|&count| count > 0), "{each:?}");
            assert!(gaps.len() > 80, "{processes}: {} hand-overs", gaps.len());
            let median = gaps[gaps.len() / 2];
            println!("{processes}: free for {median:?} of {TRIP:?}, {requests:.1} requests");
            assert!(median <= TRIP * 3, "{processes}: {median:?}");
            assert!(*requests <= 6.0, "{processes}: {requests}");
        }
    }
}

#[test]
fn one_that_lets_go_and_asks_again_at_once_lets_others_in_between() {
    let world = world(5);
    let (busy, other) = (process(&world, TTL), process(&world, TTL));
    let lock = busy.1.lock(JOB).wait_forever();
    let looping = world.spawn(busy.0, async move {
        loop {
            drop(lock.acquire().await.unwrap());
        }
    });
    run(&world, ms(300));
    for _ in 0..20 {
        let began = world.elapsed();
        drop(finish(&world, &waiter(&world, &other), TTL * 5));
        let took = world.elapsed() - began;
        assert!(took <= ms(500), "{took:?}");
        run(&world, ms(50));
    }
    looping.cancel();
}

/// Five contenders who start together, a millisecond from its own server and 15 from the others: every
/// vote is split. When the first of them has the lock, and when all have had it.
fn split(seed: u64) -> (Duration, Duration) {
    let world = World::logged(seed, 5);
    for node in 0..5 {
        world.server(node).latency(ms(7), ms(8));
    }
    let processes: Vec<_> = (0..5).map(|_| process(&world, TTL)).collect();
    for (index, me) in processes.iter().enumerate() {
        // Warm connections.
        drop(acquire(&world, me));
        world.link(me.0, index).latency(ms(1) / 2, ms(1) / 2);
    }
    run(&world, ms(1_000));
    let began = world.elapsed();
    let first = Rc::new(Cell::new(None));
    let tasks: Vec<Task<()>> = processes
        .iter()
        .map(|me| {
            let (lock, first, clock) = (
                me.1.lock(JOB).wait_forever(),
                Rc::clone(&first),
                world.clone(),
            );
            world.spawn(me.0, async move {
                let guard = lock.acquire().await.unwrap();
                first.set(first.get().or(Some(clock.elapsed())));
                clock.sleep(ms(1)).await;
                drop(guard);
            })
        })
        .collect();
    for task in &tasks {
        finish(&world, task, TTL * 4);
    }
    let all = world.elapsed() - began;
    world.end();
    (first.get().unwrap() - began, all)
}

#[test]
fn after_a_split_vote_somebody_has_it_soon_and_nobody_waits_for_a_leftover() {
    let full = std::env::var_os("QUORUMLOCK_FULL").is_some();
    let seeds = if full { 500 } else { 60 };
    let mut outcomes: Vec<_> = (0..seeds).map(split).collect();
    outcomes.sort_unstable();
    let late = outcomes[outcomes.len() * 99 / 100].0;
    let median = outcomes[outcomes.len() / 2].0;
    println!("first: {median:?} median, {late:?} 99 %");
    // Ten times the delay between two tries and two trips.
    assert!(late <= (ms(20) + ms(30)) * 10, "{late:?}");
    let all = outcomes.iter().map(|(_, all)| *all).max().unwrap();
    println!("last: {all:?} at worst");
    assert!(all < TTL / 2, "{all:?}");
}
