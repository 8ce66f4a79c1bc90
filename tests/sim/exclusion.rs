//! At no instant do two guards say that they hold the lock, and no loss is told late.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use quorumlock::RestartGuard;

use crate::support::{JOB, finish, ms, process, settings, world};
use crate::swarm::{Plan, Tally, run, world_of};

/// The variable that names the one seed to run, with its timeline.
const SEED: &str = "QUORUMLOCK_SEED";

/// The variable that says how many seeds to run.
const SEEDS: &str = "QUORUMLOCK_SEEDS";

fn full() -> bool {
    std::env::var_os("QUORUMLOCK_FULL").is_some()
}

fn how_many() -> u64 {
    match std::env::var(SEEDS) {
        Ok(text) => text.parse().unwrap(),
        Err(_) if full() => 20_000,
        Err(_) => 1_000,
    }
}

/// The variable that says with which seed to begin.
const FIRST: &str = "QUORUMLOCK_FIRST_SEED";

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable)
        .ok()
        .map(|text| text.parse().unwrap())
}

/// Runs the seed again, with a log, and reports.
fn report(seed: u64, plan: Plan) -> ! {
    let world = world_of(seed, true);
    let outcome = run(&world, plan);
    panic!(
        "seed {seed}: {outcome:?}\n{}\nto see this again:\n  {SEED}={seed} cargo test \
         --all-features --test sim exclusion::the_swarm",
        world.log()
    )
}

/// One of `seeds` that breaks an invariant, and what the others did. Two at a time.
fn search(seeds: u64, plan: Plan) -> (Option<(u64, String)>, Tally) {
    let first = number(FIRST).unwrap_or(0);
    let end = first.saturating_add(seeds);
    let next = AtomicU64::new(first);
    let found = Mutex::new(None);
    let sum = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while found.lock().unwrap().is_none() {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= end {
                        break;
                    }
                    let world = world_of(seed, false);
                    match run(&world, plan) {
                        Ok(tally) => {
                            let mut sum = sum.lock().unwrap();
                            sum.granted += tally.granted;
                            sum.steps += tally.steps;
                            sum.events += tally.events;
                            sum.faults += tally.faults;
                        }
                        Err(error) => {
                            found.lock().unwrap().get_or_insert((seed, error));
                        }
                    }
                }
            });
        }
    });
    (found.into_inner().unwrap(), sum.into_inner().unwrap())
}

#[test]
fn the_swarm_finds_no_second_holder_no_late_loss_and_nothing_left() {
    if let Some(seed) = number(SEED) {
        report(seed, Plan::SOUND);
    }
    let seeds = how_many();
    let (found, tally) = search(seeds, Plan::SOUND);
    if let Some((seed, _)) = found {
        report(seed, Plan::SOUND);
    }
    let Tally {
        granted,
        faults,
        steps,
        events,
    } = tally;
    println!(
        "{seeds} seeds: {faults} faults, {events} node events, {granted} grants, {steps} steps"
    );
    // A swarm in which nothing happens finds nothing.
    assert!(tally.granted > seeds * 5, "{tally:?}");
}

/// No lock stands an eviction; but whoever loses it hears of it, nothing stays, and everybody is
/// served in the end.
#[test]
fn evictions_break_no_promise_but_exclusion() {
    let plan = Plan {
        evictions: true,
        ..Plan::SOUND
    };
    let seeds = if full() { 5_000 } else { 100 };
    if let (Some((seed, error)), _) = search(seeds, plan) {
        panic!("seed {seed}: {error}");
    }
}

#[test]
fn without_the_restart_guard_the_swarm_finds_two_holders() {
    let plan = Plan {
        guard: Some(RestartGuard::Off),
        ..Plan::SOUND
    };
    let (found, _) = search(1_000, plan);
    let (seed, error) = found.unwrap();
    assert!(error.contains("two holders"), "seed {seed}: {error}");
}

#[test]
fn with_clocks_that_jump_beyond_the_allowance_the_swarm_finds_two_holders() {
    let plan = Plan {
        stepped_clocks: true,
        ..Plan::SOUND
    };
    let (found, _) = search(1_000, plan);
    let (seed, error) = found.unwrap();
    assert!(error.contains("two holders"), "seed {seed}: {error}");
}

#[test]
fn a_lease_is_over_before_servers_whose_clocks_run_fast_forget_it() {
    let ttl = ms(3_000);
    // The allowance is one hundredth of the TTL, and 2 ms.
    for fast in [-9_900, 0, 9_900] {
        let world = world(5);
        for node in 0..5 {
            world.server(node).run_fast(fast);
        }
        let me = process(&world, ttl);
        let lock = me.1.lock(JOB).auto_extend(false);
        let task = world.spawn(me.0, async move { lock.acquire().await });
        let guard = finish(&world, &task, ms(1_000)).unwrap();
        // A rival that asks every few milliseconds.
        let eager = settings(&world, ttl).retry_delay(ms(1));
        let rival = world.client(eager.retry_max_delay(ms(1))).unwrap();
        let lock = rival.1.lock(JOB).wait_forever();
        let task = world.spawn(rival.0, async move { lock.acquire().await });
        let until = world.elapsed() + guard.remaining();
        let theirs = finish(&world, &task, ttl * 2).unwrap();
        let granted = world.elapsed();
        assert!(granted >= until, "{fast}: {granted:?}, {until:?}");
        // Nor does anybody wait longer than clocks make it: the rival has it soon after.
        assert!(granted < until + ms(90), "{fast}: {granted:?}, {until:?}");
        assert!(!guard.is_held() && theirs.is_held());
        world.end();
    }
}
