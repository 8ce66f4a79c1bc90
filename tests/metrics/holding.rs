//! Holding, extending and losing.

use futures::executor::block_on;
use quorumlock::testing::Cluster;
use quorumlock::{FaultKind, Loss};

use super::ear::Meters;
use super::{MS, TTL, client, still};

fn losses(cause: &str) -> String {
    format!("quorumlock_losses_total{{cause={cause}}}")
}

fn extensions(outcome: &str) -> String {
    format!("quorumlock_extensions_total{{outcome={outcome}}}")
}

/// Extended each second, of a validity of 3 s − 32 ms.
#[test]
fn an_extension_tells_how_late_it_began_and_how_much_was_left() {
    let meters = Meters::start();
    let (clock, cluster) = still();
    let one = client(&cluster, |config| config.extend_every(1_000 * MS));
    let guard = block_on(one.lock("job").acquire()).unwrap();
    clock.advance(1_250 * MS);
    let left = meters.wait_for("quorumlock_extension_validity_left_seconds", 1);
    assert_eq!(left, [1.718]);
    assert_eq!(meters.values("quorumlock_extension_lag_seconds"), [0.25]);
    assert_eq!(meters.value(&extensions("renewed")), 1.0);
    assert!(guard.is_held());

    // Too few answer: it is tried again, and the old deadline stands.
    (0..3).for_each(|node| cluster.node(node).fail_with(FaultKind::OutOfMemory));
    clock.advance(1_000 * MS);
    meters.comes_to(&extensions("unconfirmed"), 1.0);
    (0..3).for_each(|node| cluster.node(node).heal());
    clock.advance(500 * MS);
    let left = meters.wait_for("quorumlock_extension_validity_left_seconds", 2);
    assert!((left[1] - 1.468).abs() < 1e-9, "{left:?}");
    assert_eq!(meters.value(&losses("expired")), 0.0);
}

#[test]
fn each_loss_is_counted_by_its_cause() {
    let meters = Meters::start();
    let (clock, cluster) = still();
    let one = client(&cluster, |config| config.extend_every(1_000 * MS));

    let expired = block_on(one.lock("a").auto_extend(false).acquire()).unwrap();
    clock.advance(TTL);
    meters.comes_to(&losses("expired"), 1.0);

    let over = one.lock("b").max_hold(500 * MS);
    let over = block_on(over.acquire()).unwrap();
    clock.advance(600 * MS);
    for (cause, count) in [
        ("expired", 1.0),
        ("max_hold", 1.0),
        ("deleted", 0.0),
        ("taken", 0.0),
        ("frozen", 0.0),
    ] {
        meters.comes_to(&losses(cause), count);
    }
    assert_eq!(meters.value("quorumlock_held_locks"), 0.0);
    assert_eq!(meters.wait_for("quorumlock_hold_seconds", 2)[1], 0.6);
    drop((expired, over));
}

#[test]
fn a_lock_that_was_freed_by_force_is_a_loss() {
    let meters = Meters::start();
    let cluster = Cluster::new(5);
    let one = client(&cluster, |config| config.extend_every(200 * MS));
    let guard = block_on(one.lock("job").acquire()).unwrap();
    let forced = block_on(cluster.client().force_release("job")).unwrap();
    assert!(forced.was_held(), "{forced}");
    assert_eq!(block_on(guard.lost()), Loss::Deleted);
    assert_eq!(meters.value(&losses("deleted")), 1.0);
    assert_eq!(meters.value(&extensions("lost")), 1.0);
}

/// Letting go is no loss, however it is done; to do so too late is one.
#[test]
fn only_what_its_holder_did_not_want_is_a_loss() {
    let meters = Meters::start();
    let (clock, cluster) = still();
    let one = client(&cluster, |config| config.auto_extend(false));
    block_on(block_on(one.lock("a").acquire()).unwrap().release()).unwrap();
    drop(block_on(one.lock("b").acquire()).unwrap());
    let ticket = block_on(block_on(one.lock("c").acquire()).unwrap().detach()).unwrap();
    let guard = block_on(one.attach(&ticket)).unwrap();
    block_on(guard.release()).unwrap();
    // An attached lease is no acquisition.
    meters.comes_to("quorumlock_acquires_total{outcome=granted}", 3.0);
    let held = block_on(one.lock("d").acquire()).unwrap();
    block_on(one.close()).unwrap();
    drop(held);
    clock.advance(MS);
    for cause in ["expired", "deleted", "taken", "frozen", "max_hold"] {
        assert_eq!(meters.value(&losses(cause)), 0.0, "{cause}");
    }
    meters.comes_to("quorumlock_held_locks", 0.0);
}
