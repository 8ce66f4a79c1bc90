//! A vote that its node has forgotten since, in a round that is still open.
//!
//! Found by the model of the protocol. I hold nodes 0 and 1; the rival is granted node 2, and asks
//! on for node 1. Node 2 loses its data, and my extension sets my key there: with node 0 that would
//! be a quorum. But the rival's vote stands, and node 1 falls to it once my key has run out there.

use std::time::Duration;

use quorumlock::Config;
use quorumlock::testing::world::{Server, World, is_held};

use crate::support::{JOB, acquire, finish, ms, run, settings, world};

const TTL: Duration = ms(2_000);

/// A round may last for nearly half of what it is good for. Without tokens: to raise the counter
/// on node 2 would show the rival that its vote is gone.
fn patient(world: &World) -> Config {
    settings(world, TTL).node_timeout(ms(900)).fencing(false)
}

fn loses(lose: impl Fn(&Server)) {
    let world = world(3);
    // Both are old clients, not ones that meet the nodes now.
    let me = world.client(settings(&world, TTL).fencing(false)).unwrap();
    let rival = world.client(patient(&world)).unwrap();
    for who in [&me, &rival] {
        drop(acquire(&world, who));
        run(&world, ms(50));
    }
    // My grant never gets to node 2.
    world.link(me.0, 2).hold();
    let lock = me.1.lock(JOB).auto_extend(false);
    let task = world.spawn(me.0, async move { lock.acquire().await });
    let mine = finish(&world, &task, ms(1_000)).unwrap();
    let held = mine.held();
    let granted = world.elapsed();
    world.link(me.0, 2).reset_before();
    world.link(me.0, 2).mend();
    run(&world, ms(1_200));
    // The rival is granted node 2; what it asks the others comes late.
    for node in [0, 1] {
        world.link(rival.0, node).hold();
    }
    let lock = rival.1.lock(JOB).wait(ms(0));
    let task = world.spawn(rival.0, async move { lock.acquire().await });
    run(&world, ms(50));
    // Nor does it hear of what happens to node 2.
    world.link(rival.0, 2).hold();
    lose(&world.server(2));
    world.link(me.0, 1).hold();
    run(&world, ms(300));
    drop(world.spawn(me.0, async move {
        let _ = mine.extend().await;
        futures::future::pending::<()>().await;
        drop(mine);
    }));
    // My key on node 1 runs out, and the rival's request gets there.
    run(&world, granted + TTL + ms(10) - world.elapsed());
    world.link(rival.0, 1).mend();
    let theirs = finish(&world, &task, ms(2_000));
    let theirs = theirs.unwrap_or_else(|error| panic!("{error}\n{}", world.log()));
    let both = theirs.is_held() && is_held(&held);
    assert!(!both, "two holders\n{}", world.log());
    drop(theirs);
    world.end();
}

#[test]
fn a_key_set_again_does_not_count_beside_a_vote_from_before_the_loss() {
    loses(Server::restart_empty);
}

#[test]
fn nor_does_it_after_a_flush_under_a_live_connection() {
    loses(Server::wipe);
}
