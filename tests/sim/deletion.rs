//! What somebody else does to the keys of a held lock.

use std::time::Duration;

use quorumlock::testing::world::World;
use quorumlock::{Guard, Loss};

use crate::support::{JOB, acquire, assert_clean, finish, ms, process, run, world};

const TTL: Duration = ms(3_000);

fn held() -> (World, Guard, usize) {
    let world = world(5);
    let me = process(&world, TTL);
    let guard = acquire(&world, &me);
    run(&world, ms(50));
    assert_eq!(world.cluster().holders(JOB), [5]);
    // The client must live on: its engine extends.
    std::mem::forget(me.1);
    (world, guard, me.0)
}

#[test]
fn a_lock_deleted_on_three_of_five_is_lost_at_the_next_extension_and_not_set_again() {
    let (world, guard, me) = held();
    for node in 1..4 {
        world.server(node).delete(JOB);
    }
    let lost = guard.lost();
    let task = world.spawn(me, lost);
    assert_eq!(finish(&world, &task, TTL / 2), Loss::Deleted);
    assert!(!guard.is_held());
    run(&world, ms(100));
    assert_clean(&world, "after the loss");
    run(&world, TTL * 2);
    assert_clean(&world, "long after the loss");
}

#[test]
fn a_lock_deleted_on_two_of_five_is_held_and_healed() {
    let (world, guard, _) = held();
    for node in 1..3 {
        world.server(node).delete(JOB);
    }
    // Two extensions: the first sees that the keys are gone, the second sets them again.
    run(&world, TTL);
    assert!(guard.is_held());
    assert_eq!(world.cluster().holders(JOB), [5]);
}

#[test]
fn another_owner_on_three_of_five_is_a_loss_that_leaves_their_keys() {
    let (world, guard, me) = held();
    for node in 1..4 {
        world.server(node).overwrite(JOB, &"ab".repeat(20), TTL * 9);
    }
    let task = world.spawn(me, guard.lost());
    assert_eq!(finish(&world, &task, TTL / 2), Loss::Taken);
    run(&world, ms(100));
    assert_eq!(world.cluster().holders(JOB), [3]);
}

#[test]
fn another_owner_on_two_of_five_is_none() {
    let (world, guard, _) = held();
    for node in 1..3 {
        world.server(node).overwrite(JOB, &"ab".repeat(20), TTL * 9);
    }
    run(&world, TTL * 2);
    assert!(guard.is_held());
    assert_eq!(world.cluster().holders(JOB), [3, 2]);
}

#[test]
fn a_restarted_node_that_lost_the_key_is_no_deletion() {
    let (world, guard, _) = held();
    for node in 0..2 {
        world.server(node).restart_empty();
    }
    run(&world, ms(100));
    world.server(2).wipe();
    // One after another, three nodes have lost the key, and none was deleted.
    run(&world, TTL * 2);
    assert_eq!(guard.loss(), None, "{}", world.log());
    assert_eq!(world.cluster().holders(JOB), [5]);
}
