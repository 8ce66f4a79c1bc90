//! Each way from one state to the next.

use super::*;

const MS: Duration = Duration::from_millis(1);
const DELAY: Duration = Duration::from_secs(2);

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

fn right(standing: Standing) -> Right<'static> {
    Right {
        standing,
        twin: matches!(standing, Standing::Twin { .. }).then_some("a:1"),
        counts_from: Some(at(0)),
        delay: DELAY,
        patience: 50 * MS,
    }
}

/// Where a node with a vote stands, and for how many milliseconds.
fn seen(sight: &Sight, now: u64) -> (NodeState, u128) {
    let (state, since) = sight.state(&right(Standing::Counts), at(now));
    (state, since.as_millis())
}

fn fault(kind: FaultKind) -> Fault {
    kind.into()
}

fn open() -> Sight {
    let mut sight = Sight::new(at(0));
    sight.met(at(100));
    sight
}

#[test]
fn it_connects_and_is_ready() {
    let mut sight = Sight::new(at(0));
    assert_eq!(seen(&sight, 30), (NodeState::Connecting { why: None }, 30));
    sight.met(at(100));
    assert_eq!(seen(&sight, 130), (NodeState::Ready, 30));
}

#[test]
fn a_silent_node_is_suspect_until_its_first_answer() {
    let mut sight = open();
    sight.look(Some(20 * MS), at(200));
    let (state, since) = seen(&sight, 230);
    assert_eq!(since, 50);
    let why = state.why().expect("a reason").to_string();
    assert_eq!(why, "timed out (no answer for 100 ms)");
    sight.look(None, at(300));
    assert_eq!(seen(&sight, 310), (NodeState::Ready, 10));
}

#[test]
fn a_silent_node_stays_suspect_while_its_connection_is_made_anew() {
    let mut sight = open();
    sight.lost(fault(FaultKind::Timeout), Some(950 * MS), at(1200));
    let (state, since) = seen(&sight, 1300);
    assert!(matches!(state, NodeState::Suspect { .. }), "{state}");
    assert_eq!(since, 1050);
    sight.met(at(1400));
    assert_eq!(seen(&sight, 1401), (NodeState::Ready, 1));
}

#[test]
fn a_lost_connection_is_made_anew_and_says_how_the_last_one_ended() {
    let mut sight = open();
    sight.lost(fault(FaultKind::ConnectionLost), None, at(200));
    let why = Some(fault(FaultKind::ConnectionLost));
    assert_eq!(seen(&sight, 205), (NodeState::Connecting { why }, 5));
    sight.down(fault(FaultKind::ConnectionRefused), at(210));
    let why = fault(FaultKind::ConnectionRefused);
    assert_eq!(seen(&sight, 300), (NodeState::Down { why }, 90));
}

#[test]
fn a_node_that_will_not_serve_us_is_excluded_and_one_that_cannot_is_down() {
    for kind in [FaultKind::Auth, FaultKind::ReadOnly, FaultKind::WrongSlot] {
        let mut sight = open();
        sight.down(fault(kind), at(200));
        let why = fault(kind);
        assert_eq!(seen(&sight, 210), (NodeState::Excluded { why }, 10));
    }
    let mut sight = open();
    let refused = Reply::Failed(fault(FaultKind::Permission));
    sight.answered(&refused, at(200));
    sight.answered(&refused, at(300));
    let why = fault(FaultKind::Permission);
    assert_eq!(seen(&sight, 310), (NodeState::Excluded { why }, 110));
    sight.answered(
        &Reply::Released {
            deleted: true,
            listeners: 0,
        },
        at(320),
    );
    assert!(matches!(seen(&sight, 330).0, NodeState::Excluded { .. }));
    sight.answered(&Reply::Granted { counter: None }, at(340));
    assert_eq!(seen(&sight, 350), (NodeState::Ready, 10));

    sight.answered(&Reply::Failed(fault(FaultKind::OutOfMemory)), at(400));
    let why = fault(FaultKind::OutOfMemory);
    assert_eq!(seen(&sight, 410), (NodeState::Down { why }, 10));
}

#[test]
fn what_concerns_one_key_says_nothing_of_the_node() {
    let mut sight = open();
    for kind in [
        FaultKind::NotALock,
        FaultKind::Counter,
        FaultKind::Overloaded,
    ] {
        sight.answered(&Reply::Failed(fault(kind)), at(200));
    }
    assert_eq!(seen(&sight, 300), (NodeState::Ready, 200));
}

#[test]
fn a_young_node_waits_for_its_vote_and_a_twin_has_none() {
    let sight = open();
    let young = Standing::Young { until: at(1600) };
    let (state, since) = sight.state(&right(young), at(600));
    let left = 1000 * MS;
    assert_eq!(state, NodeState::Restarting { left });
    assert_eq!(since, DELAY - left, "since its data began");

    let mut counts = right(Standing::Counts);
    counts.counts_from = Some(at(1600));
    let (state, since) = sight.state(&counts, at(1700));
    assert_eq!((state, since), (NodeState::Ready, 100 * MS));

    let (state, _) = sight.state(&right(Standing::Twin { of: 0 }), at(600));
    let text = "excluded: duplicate (the same server as a:1)";
    assert_eq!(state.to_string(), text);
}

#[test]
fn a_node_that_comes_and_goes_is_told_once_and_then_once_a_minute() {
    let mut sight = Sight::new(at(0));
    assert!(sight.is_news(at(0)) && sight.was_told());
    // Back for a moment only, again and again.
    let mut told = 0;
    for second in 1..=180 {
        sight.met(at(second * 1_000));
        sight.lost(
            fault(FaultKind::ConnectionLost),
            None,
            at(second * 1_000 + 10),
        );
        let news = sight.is_news(at(second * 1_000 + 20));
        assert_eq!(news, sight.was_told());
        told += u32::from(news);
    }
    assert_eq!(told, 3);
    // Back for longer: what follows is another outage.
    sight.met(at(181_000));
    assert!(sight.is_news(at(183_100)));
}
