//! One seed, one history.

use quorumlock::testing::world::World;

use crate::swarm::{Plan, run};

fn history(seed: u64) -> String {
    let world = World::logged(seed, 5);
    let plan = Plan {
        guard: None,
        stepped_clocks: false,
    };
    run(&world, plan).unwrap();
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
