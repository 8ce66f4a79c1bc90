//! A client that meets a set for the first time, while nodes of it have come back empty.

use quorumlock::testing::world::World;

use crate::support::{JOB, acquire, acquiring, ms, process, run, world};

/// Also the longest TTL: nodes count as found together within 3.7 s of the first.
const TTL: std::time::Duration = ms(20_000);

/// Three servers that nobody has used. The world's own look as if they had been in use for a day.
fn unused() -> World {
    let world = world(3);
    for node in 0..3 {
        world.server(node).restart_empty();
    }
    world
}

/// Never more than one of three is away, and by the end only node 0 has forgotten the lease. A
/// newcomer sees three young markers, as on a new set; but two of them were not there when it
/// was found.
#[test]
fn a_young_set_that_lost_data_is_not_new_to_a_newcomer() {
    let world = unused();
    let me = process(&world, TTL);
    drop(acquire(&world, &me));
    run(&world, ms(5_000));
    world.server(2).kill();
    run(&world, ms(100));
    let mine = acquire(&world, &me);
    world.server(2).restart_empty();
    run(&world, ms(1_000));
    world.server(0).restart_empty();
    run(&world, ms(200));
    let newcomer = process(&world, TTL);
    let second = acquiring(&world, &newcomer, ms(2_000));
    assert!(mine.is_held(), "{:?}", mine.loss());
    assert!(second.is_err(), "two hold {JOB}");
}

/// The nodes of a new set need not be there all at once.
#[test]
fn a_new_set_is_found_one_node_after_the_other() {
    let world = unused();
    world.server(2).kill();
    let early = process(&world, TTL);
    assert!(
        acquiring(&world, &early, ms(0)).is_err(),
        "one has not answered"
    );
    run(&world, ms(2_000));
    world.server(2).restart_empty();
    run(&world, ms(1_000));
    drop(acquire(&world, &early));
    let late = process(&world, TTL);
    drop(acquire(&world, &late));
}
