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

/// The votes for a deletion need not come in one extension: while a node is silent that may cast
/// the third, the other two are not set again.
#[test]
fn a_lock_deleted_on_three_nodes_is_lost_although_one_of_them_is_slow_to_tell() {
    let (world, guard, me) = held();
    run(&world, TTL / 2);
    world.server(4).hang();
    for node in [0, 2, 4] {
        world.server(node).delete(JOB);
    }
    // Two extensions at least end without the third vote.
    run(&world, TTL / 3 + ms(400));
    assert_eq!(guard.loss(), None);
    assert_eq!(world.cluster().holders(JOB), [2], "nothing is set again");
    world.server(4).resume();
    let task = world.spawn(me, guard.lost());
    assert_eq!(finish(&world, &task, ms(50)), Loss::Deleted);
    run(&world, ms(100));
    assert_clean(&world, "after the loss");
}

/// The end of a connection is no word of the node: the key may be gone there as well.
#[test]
fn nothing_is_set_again_while_a_silent_node_is_connected_to_anew() {
    let ttl = TTL * 3;
    let world = world(5);
    let me = process(&world, ttl);
    let guard = acquire(&world, &me);
    run(&world, ttl / 2);
    world.server(4).hang();
    for node in [0, 2, 4] {
        world.server(node).delete(JOB);
    }
    // The extension is due after a sixth; five node timeouts later the connection is given up.
    run(&world, ttl / 6 + ms(450) * 5 + ms(1_200));
    assert_eq!(guard.loss(), None);
    assert_eq!(world.cluster().holders(JOB), [2], "nothing is set again");
    world.server(4).resume();
    let task = world.spawn(me.0, guard.lost());
    assert_eq!(finish(&world, &task, ms(1_000)), Loss::Deleted);
    run(&world, ms(100));
    assert_clean(&world, "after the loss");
}

#[test]
fn two_missing_keys_are_set_again_once_a_silent_node_is_known_to_be_down() {
    let (world, guard, _) = held();
    run(&world, TTL / 2);
    world.server(4).hang();
    for node in [0, 2] {
        world.server(node).delete(JOB);
    }
    run(&world, TTL / 3 + ms(400));
    assert_eq!(world.cluster().holders(JOB), [3]);
    world.server(4).kill();
    run(&world, ms(300));
    for node in [0, 2] {
        assert!(
            world.server(node).time_left(JOB).is_some(),
            "{}",
            world.log()
        );
    }
    run(&world, TTL * 2);
    assert_eq!(guard.loss(), None);
}

/// By an operator's call, whichever two of the nodes it cannot reach.
#[test]
fn a_forced_release_ends_the_lease_although_two_nodes_are_not_reached() {
    for (one, other) in (0..5).flat_map(|one| (0..one).map(move |other| (one, other))) {
        let (world, guard, me) = held();
        let (admin, client) = process(&world, TTL);
        world.server(one).hang();
        world.server(other).hang();
        let task = world.spawn(admin, async move { client.force_release(JOB).await });
        let freed = finish(&world, &task, ms(10)).expect("three are enough");
        assert!(freed.was_held(), "{freed}");
        assert_eq!(world.cluster().holders(JOB), [2]);
        let task = world.spawn(me, guard.lost());
        assert_eq!(finish(&world, &task, TTL / 3 + ms(200)), Loss::Deleted);
        world.heal();
        run(&world, TTL * 2);
        assert_clean(&world, "long after the loss");
    }
}

/// The extension is on its way to some nodes and has passed others when the keys are deleted.
#[test]
fn a_forced_release_amid_an_extension_ends_the_lease_at_the_next_one() {
    // The extension goes out after a third of the TTL, or up to a 64th of that earlier.
    let mut heard_after = Vec::new();
    for micros in (0..30_000).step_by(250) {
        let (world, guard, me) = held();
        let (admin, client) = process(&world, TTL);
        let moment = TTL / 3 - ms(20) + Duration::from_micros(micros);
        run(&world, moment - world.elapsed());
        let task = world.spawn(admin, async move { client.force_release(JOB).await });
        let freed = finish(&world, &task, ms(10)).expect("all were reached");
        assert_eq!(freed.deleted(), 5, "{micros} µs: {freed}");
        let freed_at = world.elapsed();
        let task = world.spawn(me, guard.lost());
        let loss = finish(&world, &task, TTL / 3 + ms(200));
        assert_eq!(loss, Loss::Deleted, "{micros} µs");
        heard_after.push(world.elapsed() - freed_at);
        run(&world, TTL * 2);
        assert_clean(&world, "long after the loss");
    }
    // Some found an extension before it, some behind it: those in between found it on its way.
    let (soonest, latest) = (heard_after.iter().min(), heard_after.iter().max());
    assert!(soonest.is_some_and(|time| *time < ms(20)), "{soonest:?}");
    assert!(latest.is_some_and(|time| *time > TTL / 4), "{latest:?}");
}

/// With fewer keys deleted the holder goes on: it is not said that the lock is free.
#[test]
fn a_forced_release_that_reaches_two_keys_is_unconfirmed_and_the_holder_heals_them() {
    let (world, guard, _) = held();
    let (admin, client) = process(&world, TTL);
    for node in 0..3 {
        world.link(admin, node).hold();
    }
    let task = world.spawn(admin, async move { client.force_release(JOB).await });
    let error = finish(&world, &task, ms(10)).expect_err("three were not reached");
    let freed = error.partial().expect("what was deleted");
    assert_eq!((freed.deleted(), freed.was_held()), (2, false), "{error}");
    run(&world, TTL * 2);
    assert_eq!(guard.loss(), None, "{}", world.log());
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

/// An extension that waits for the connection to the restarted server is told nothing about a
/// deletion by it: the life in which the key was acknowledged is over.
#[test]
fn three_nodes_that_restart_empty_around_an_extension_have_deleted_nothing() {
    for micros in (0..30_000).step_by(500) {
        let world = world(5);
        let me = process(&world, TTL);
        let sent = world.elapsed() + TTL / 3;
        let guard = acquire(&world, &me);
        let moment = sent - ms(26) + Duration::from_micros(micros);
        run(&world, moment - world.elapsed());
        for node in 0..3 {
            world.server(node).restart_empty();
        }
        run(&world, TTL * 2);
        assert_eq!(guard.loss(), None, "at {micros} µs: {}", world.log());
        world.end();
    }
}

/// With two nodes down, a deletion on the other three that meets an extension half way: one key is
/// found gone now, the other two next time, when the first has just been set again.
#[test]
fn a_deletion_in_the_midst_of_an_extension_is_heard_of_although_two_nodes_are_down() {
    for micros in (0..30_000).step_by(500) {
        let world = world(5);
        for node in 3..5 {
            world.server(node).kill();
        }
        let me = process(&world, TTL);
        let sent = world.elapsed() + TTL / 3;
        let guard = acquire(&world, &me);
        let moment = sent - ms(26) + Duration::from_micros(micros);
        run(&world, moment - world.elapsed());
        for node in 0..3 {
            world.server(node).delete(JOB);
        }
        run(&world, TTL / 3 + ms(100));
        assert_eq!(
            guard.loss(),
            Some(Loss::Deleted),
            "at {micros} µs: {}",
            world.log()
        );
        world.end();
    }
}
