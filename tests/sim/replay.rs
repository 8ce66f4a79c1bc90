//! One seed, one history: twice in a row, and in debug and release builds (`scripts/soak --same`).

use crate::swarm::{Plan, run, world_of};

fn history(seed: u64) -> String {
    let world = world_of(seed, true);
    run(&world, Plan::SOUND).unwrap();
    world.log()
}

#[test]
fn the_same_seed_gives_the_same_log_to_the_byte() {
    for seed in 0..10 {
        let first = history(seed);
        assert!(first.lines().count() > 200, "seed {seed}");
        assert!(first == history(seed), "seed {seed}");
    }
}

#[test]
fn another_seed_gives_another_log() {
    assert!(history(1) != history(2));
}

/// The variable that says how many timelines go into the digest.
const TIMELINES: &str = "QUORUMLOCK_TIMELINES";

/// Prints a digest of the first timelines, which `scripts/soak --same` compares between builds.
/// None is written down here: it changes with whatever the library does.
#[test]
fn the_first_seeds_give_one_digest() {
    let count = std::env::var(TIMELINES).map_or(4, |text| text.parse().unwrap());
    let digest = || (0..count).fold(FNV, |sum, seed| mixed(sum, history(seed).as_bytes()));
    let first = digest();
    println!("timelines of {count} seeds: {first:016x}");
    assert_eq!(first, digest());
}

const FNV: u64 = 0xcbf2_9ce4_8422_2325;

fn mixed(sum: u64, bytes: &[u8]) -> u64 {
    let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(sum, mix)
}
