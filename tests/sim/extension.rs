//! Guards that extend themselves, and those that do not.

use std::time::Duration;

use quorumlock::{Loss, Released};

use crate::support::{
    JOB, acquire, assert_clean, finish, ms, process, run, served, time_left, world,
};

const TTL: Duration = ms(3_000);

/// 99 % of the TTL less 2 ms.
const VALIDITY: Duration = ms(2_968);

#[test]
fn a_guard_lives_on_by_its_extensions() {
    let world = world(5);
    let me = process(&world, TTL);
    let guard = acquire(&world, &me);
    for _ in 0..10 {
        run(&world, TTL / 2);
        assert!(guard.remaining() > TTL / 3);
        let left = time_left(&world);
        assert!(left.iter().flatten().all(|&left| left > guard.remaining()));
        assert_eq!(left.iter().flatten().count(), 5);
    }
}

#[test]
fn without_auto_extension_none_is_sent_and_the_key_goes_at_the_ttl() {
    let world = world(5);
    let me = process(&world, TTL);
    let lock = me.1.lock(JOB).auto_extend(false);
    let task = world.spawn(me.0, async move { lock.acquire().await });
    let guard = finish(&world, &task, ms(1_000)).unwrap();
    run(&world, ms(50));
    let before = served(&world);
    run(&world, TTL - ms(100));
    assert_eq!(served(&world), before);
    assert_eq!(world.cluster().holders(JOB), [5]);
    run(&world, ms(100));
    assert_eq!(guard.loss(), Some(Loss::Expired));
    assert_clean(&world, "after the TTL");
}

#[test]
fn max_hold_ends_a_hold_whose_extensions_all_succeed() {
    let world = world(5);
    let me = process(&world, TTL);
    let lock = me.1.lock(JOB).max_hold(TTL * 5);
    let task = world.spawn(me.0, async move { lock.acquire().await });
    let began = world.elapsed();
    let guard = finish(&world, &task, ms(1_000)).unwrap();
    let rival = process(&world, TTL);
    let theirs = rival.1.lock(JOB).wait_forever();
    let waiting = world.spawn(rival.0, async move { theirs.acquire().await });
    let lost = world.spawn(me.0, guard.lost());
    assert_eq!(finish(&world, &lost, TTL * 6), Loss::MaxHold);
    assert!(world.elapsed() - began <= TTL * 5);
    assert!(finish(&world, &waiting, TTL).is_ok());
}

/// The nodes answer every extension, and each time after its budget: the answers count all the
/// same as long as the lease stands.
#[test]
fn answers_that_come_after_their_budget_still_extend_what_is_held() {
    let world = world(5);
    let me = process(&world, TTL);
    let guard = acquire(&world, &me);
    for node in 0..5 {
        world.server(node).latency(ms(300), ms(300));
    }
    for _ in 0..10 {
        run(&world, TTL / 2);
        assert_eq!(guard.loss(), None, "{}", world.log());
    }
}

#[test]
fn a_loss_comes_at_the_deadline_when_all_nodes_hang() {
    let world = world(5);
    let me = process(&world, TTL);
    let began = world.elapsed();
    let guard = acquire(&world, &me);
    let deadline = world.elapsed() + guard.remaining();
    // The round's clock starts before its first request.
    assert_eq!(deadline - began, VALIDITY);
    for node in 0..5 {
        world.server(node).hang();
    }
    let lost = world.spawn(me.0, guard.lost());
    assert_eq!(finish(&world, &lost, TTL), Loss::Expired);
    let early = deadline.checked_sub(world.elapsed());
    assert!(early.is_some_and(|early| early <= ms(2)), "{early:?}");
}

#[test]
fn a_process_that_stood_still_for_two_ttls_knows_at_its_first_look() {
    let world = world(5);
    let me = process(&world, TTL);
    let guard = acquire(&world, &me);
    let lost = world.spawn(me.0, guard.lost());
    run(&world, ms(20));
    world.freeze(me.0, TTL * 2);
    let rival = process(&world, TTL);
    let theirs = rival.1.lock(JOB).wait_forever();
    let waiting = world.spawn(rival.0, async move { theirs.acquire().await });
    let theirs = finish(&world, &waiting, TTL * 2).unwrap();
    assert!(!guard.is_held());
    assert!(!lost.has_ended());
    let thaw = world.frozen_until(me.0);
    assert_eq!(finish(&world, &lost, TTL * 3), Loss::Expired);
    assert_eq!(world.elapsed(), thaw);
    // What the late process does then takes nothing from the new holder.
    run(&world, TTL);
    assert!(theirs.is_held());
    assert_eq!(world.cluster().holders(JOB), [5]);
}

/// A virtual machine that is stopped and resumed: its clocks have counted nothing, those of the
/// nodes have.
#[test]
fn a_standstill_that_no_local_clock_counts_shows_in_the_clocks_of_a_quorum() {
    let world = world(5);
    let me = process(&world, TTL);
    let guard = acquire(&world, &me);
    run(&world, TTL);
    for node in 0..3 {
        world.server(node).step_forward(ms(500));
    }
    let lost = world.spawn(me.0, guard.lost());
    assert_eq!(finish(&world, &lost, TTL / 2), Loss::Frozen);
    run(&world, ms(100));
    assert_clean(&world, "after the loss");
}

#[test]
fn two_clocks_that_were_set_forward_are_no_standstill() {
    let world = world(5);
    let me = process(&world, TTL);
    let guard = acquire(&world, &me);
    run(&world, TTL);
    for node in 0..2 {
        world.server(node).step_forward(ms(500));
    }
    run(&world, TTL * 2);
    assert_eq!(guard.loss(), None, "{}", world.log());
}

/// No clock of ours counts a standstill of the virtual machine: it shows as servers whose clocks
/// are all ahead, at the first extension already, since grants bring their time back.
#[test]
fn a_standstill_between_the_grant_and_the_first_extension_is_a_loss() {
    let world = world(5);
    let me = process(&world, TTL);
    let guard = acquire(&world, &me);
    run(&world, ms(50));
    for node in 0..5 {
        world.server(node).step_forward(TTL / 2);
    }
    run(&world, TTL / 2);
    assert_eq!(guard.loss(), Some(Loss::Frozen), "{}", world.log());
}

#[test]
fn a_standstill_before_the_grant_costs_nothing() {
    let world = world(5);
    let me = process(&world, TTL);
    drop(acquire(&world, &me));
    run(&world, ms(50));
    for node in 0..5 {
        world.server(node).step_forward(TTL / 2);
    }
    let guard = acquire(&world, &me);
    run(&world, TTL * 2);
    assert_eq!(guard.loss(), None, "{}", world.log());
}

#[test]
fn nodes_that_were_away_get_the_key_with_the_next_extension() {
    let world = world(5);
    for node in 0..2 {
        world.server(node).kill();
    }
    let me = process(&world, TTL);
    let guard = acquire(&world, &me);
    run(&world, ms(50));
    assert_eq!(world.cluster().holders(JOB), [3]);
    for node in 0..2 {
        world.server(node).restart_with_data();
    }
    run(&world, TTL);
    assert_eq!(world.cluster().holders(JOB), [5]);
    // Now any two may be lost.
    for node in 3..5 {
        world.server(node).wipe();
    }
    run(&world, TTL * 2);
    assert_eq!(guard.loss(), None, "{}", world.log());
    assert_eq!(world.cluster().holders(JOB), [5]);
}

#[test]
fn a_release_while_an_extension_is_on_its_way_leaves_nothing() {
    // The extension goes out after a third of the TTL, or up to a 64th of that earlier; each
    // moment around it is tried.
    for micros in (0..28_000).step_by(250) {
        let world = world(5);
        let me = process(&world, TTL);
        let sent = world.elapsed() + TTL / 3;
        let guard = acquire(&world, &me);
        let released = sent - ms(22) + Duration::from_micros(micros);
        run(&world, released - world.elapsed());
        let task = world.spawn(me.0, async move { guard.release().await });
        assert_eq!(finish(&world, &task, ms(500)).unwrap(), Released::InTime);
        run(&world, ms(50));
        assert_clean(&world, &format!("released at {micros} µs"));
        let before = served(&world);
        run(&world, TTL);
        assert_eq!(served(&world), before, "at {micros} µs");
        world.end();
    }
}

#[test]
fn a_failed_extension_is_tried_again_and_deletes_nothing() {
    let world = world(5);
    let me = process(&world, TTL);
    let guard = acquire(&world, &me);
    for node in 0..3 {
        world.server(node).hang();
    }
    run(&world, TTL / 2);
    assert!(guard.is_held());
    world.heal();
    run(&world, TTL);
    assert!(guard.is_held(), "{}", world.log());
    assert_eq!(world.cluster().holders(JOB), [5]);
}

#[test]
fn an_extension_by_hand_is_told_when_no_quorum_confirms_it() {
    let world = world(5);
    let me = process(&world, TTL);
    let lock = me.1.lock(JOB).auto_extend(false);
    let task = world.spawn(me.0, async move { lock.acquire().await });
    let guard = finish(&world, &task, ms(1_000)).unwrap();
    run(&world, ms(500));
    let before = guard.remaining();
    let task = world.spawn(me.0, async move { (guard.extend().await, guard) });
    let (extended, guard) = finish(&world, &task, ms(1_000));
    extended.unwrap();
    assert!(guard.remaining() > before);

    for node in 0..3 {
        world.server(node).hang();
    }
    let deadline = world.elapsed() + guard.remaining();
    let task = world.spawn(me.0, async move { (guard.extend().await, guard) });
    let (extended, guard) = finish(&world, &task, ms(1_000));
    assert!(matches!(
        extended,
        Err(quorumlock::ExtendError::Unconfirmed)
    ));
    assert_eq!(world.elapsed() + guard.remaining(), deadline);
}

/// The second one waits for the first.
#[test]
fn extensions_by_hand_are_sent_one_after_the_other() {
    let world = world(3);
    let me = process(&world, TTL);
    let lock = me.1.lock(JOB).auto_extend(false);
    let task = world.spawn(me.0, async move { lock.acquire().await });
    let guard = std::rc::Rc::new(finish(&world, &task, ms(1_000)).unwrap());
    run(&world, ms(50));
    let before = served(&world);
    let tasks = [(); 2].map(|()| {
        let guard = std::rc::Rc::clone(&guard);
        world.spawn(me.0, async move { guard.extend().await })
    });
    // One crossing of the network, and no answer yet.
    run(&world, ms(3));
    assert_eq!(served(&world) - before, 3);
    tasks
        .iter()
        .for_each(|task| finish(&world, task, ms(20)).unwrap());
    assert_eq!(served(&world) - before, 6);
}
