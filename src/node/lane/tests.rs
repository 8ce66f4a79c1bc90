use super::*;
use crate::node::OwnerToken;

const TTL: u64 = 1000;
const PATIENCE: Duration = Duration::from_millis(50);

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

fn order(number: u8) -> Arc<Order> {
    Arc::new(Order {
        round: AskId::from(number),
        key: std::sync::Arc::from(&b"key"[..]),
        token: OwnerToken::new([number; 20]),
    })
}

const GRANT: Ask = Ask::Grant {
    ttl_millis: TTL,
    fence: None,
    block: 1,
    announced: false,
};
const EXTEND: Ask = Ask::Extend {
    ttl_millis: TTL,
    fence: None,
    restore: true,
};

fn release() -> Ask {
    Ask::Release {
        until: at(TTL),
        fence: None,
    }
}

fn open() -> Lane {
    let mut lane = Lane::new(PATIENCE, 8);
    lane.repaired(at(0));
    lane
}

fn down(kind: FaultKind) -> Link {
    Link::Down(kind.into())
}

fn works(batch: &[Entry]) -> Vec<(AskId, Work)> {
    batch.iter().map(|entry| (entry.id, entry.work)).collect()
}

#[test]
fn a_release_follows_its_grant_without_waiting_for_the_answer() {
    let mut lane = open();
    lane.admit(1, &order(1), GRANT, at(0)).unwrap();
    assert_eq!(works(&lane.next_batch(at(0))).len(), 1);
    lane.admit(2, &order(1), release(), at(1)).unwrap();
    let batch = lane.next_batch(at(1));
    assert_eq!(works(&batch), [(2, Work::Ask(release()))]);
    assert_eq!(lane.answered().map(|entry| entry.id), Some(1));
    assert_eq!(lane.answered().map(|entry| entry.id), Some(2));
    assert_eq!(lane.backlog(), 0);
}

#[test]
fn a_grant_that_was_not_sent_is_withdrawn_and_nothing_goes_out() {
    let mut lane = Lane::new(PATIENCE, 8);
    lane.admit(1, &order(1), GRANT, at(0)).unwrap();
    lane.admit(2, &order(2), GRANT, at(0)).unwrap();
    let admission = lane.admit(3, &order(1), release(), at(1));
    assert_eq!(admission, Ok(Admission::Withdrawn(vec![1])));
    assert_eq!(works(&lane.next_batch(at(1))), [(2, Work::Ask(GRANT))]);
}

/// Nobody else answers them, and whoever asked remembers them until they are answered.
#[test]
fn all_that_a_release_takes_back_unsent_is_named() {
    let mut lane = Lane::new(PATIENCE, 8);
    let extension = Ask::Extend {
        ttl_millis: 1_000,
        restore: true,
        fence: None,
    };
    lane.admit(1, &order(1), GRANT, at(0)).unwrap();
    lane.admit(2, &order(2), GRANT, at(0)).unwrap();
    lane.admit(3, &order(1), extension, at(0)).unwrap();
    let admission = lane.admit(4, &order(1), release(), at(1));
    assert_eq!(admission, Ok(Admission::Withdrawn(vec![1, 3])));
    assert_eq!(works(&lane.next_batch(at(1))), [(2, Work::Ask(GRANT))]);
}

#[test]
fn a_broken_connection_fails_requests_and_owes_releases() {
    let mut lane = open();
    lane.admit(1, &order(1), GRANT, at(0)).unwrap();
    lane.next_batch(at(0));
    lane.admit(2, &order(1), release(), at(0)).unwrap();
    lane.next_batch(at(0));
    lane.admit(3, &order(2), GRANT, at(0)).unwrap();
    lane.admit(4, &order(3), release(), at(0)).unwrap();
    let ended = lane.broken(Link::Opening);
    let ids: Vec<_> = ended.iter().map(|entry| entry.id).collect();
    assert_eq!(ids, [1, 2, 3, 4], "sent or not, each is told");
    lane.admit(5, &order(5), GRANT, at(9)).unwrap();
    lane.repaired(at(10));
    let batch = lane.next_batch(at(10));
    let release = Work::Ask(release());
    assert_eq!(
        works(&batch),
        [(NOBODY, release), (NOBODY, release), (5, Work::Ask(GRANT))]
    );
    assert_eq!(batch[0].order.token, order(1).token);
}

#[test]
fn what_is_owed_goes_first_and_in_order() {
    let mut lane = open();
    lane.broken(down(FaultKind::ConnectionLost));
    for number in 1..4 {
        let admission = lane.admit(9, &order(number), release(), at(0));
        assert_eq!(admission, Ok(Admission::Owed));
    }
    lane.repaired(at(1));
    lane.admit(5, &order(5), GRANT, at(1)).unwrap();
    let batch = lane.next_batch(at(1));
    let tokens: Vec<_> = batch.iter().map(|entry| entry.order.token).collect();
    assert_eq!(tokens, [1, 2, 3, 5].map(|number| order(number).token));
}

#[test]
fn what_is_owed_is_dropped_once_its_key_must_have_run_out() {
    let mut lane = open();
    lane.broken(down(FaultKind::ConnectionLost));
    lane.admit(1, &order(1), release(), at(0)).unwrap();
    lane.forget(at(TTL - 1));
    assert_eq!(lane.backlog(), 1);
    lane.forget(at(TTL));
    assert_eq!(lane.backlog(), 0);
    lane.admit(2, &order(2), release(), at(0)).unwrap();
    lane.repaired(at(TTL));
    assert_eq!(lane.backlog(), 0);
}

#[test]
fn a_node_that_is_down_takes_no_grant() {
    let mut lane = open();
    lane.broken(down(FaultKind::ConnectionRefused));
    let refused = lane.admit(1, &order(1), GRANT, at(0));
    assert_eq!(refused, Err(FaultKind::ConnectionRefused.into()));
    assert_eq!(lane.backlog(), 0);
}

#[test]
fn a_node_that_hangs_takes_no_grant_and_still_takes_releases() {
    let mut lane = open();
    lane.admit(1, &order(1), GRANT, at(0)).unwrap();
    lane.next_batch(at(0));
    assert!(lane.admit(2, &order(2), GRANT, at(49)).is_ok());
    let refused = lane.admit(3, &order(3), GRANT, at(50)).unwrap_err();
    assert_eq!(refused.kind(), FaultKind::Timeout);
    let admission = lane.admit(4, &order(1), release(), at(50));
    assert_eq!(admission, Ok(Admission::Queued));
    lane.answered();
    assert!(lane.admit(5, &order(5), GRANT, at(51)).is_ok());
}

#[test]
fn the_queue_is_bounded_and_has_a_place_for_every_release() {
    let mut lane = Lane::new(PATIENCE, 8);
    for number in 0..8 {
        lane.admit(1, &order(number), GRANT, at(0)).unwrap();
    }
    let full = lane.admit(1, &order(8), GRANT, at(0)).unwrap_err();
    assert_eq!(full.kind(), FaultKind::Overloaded);
    lane.repaired(at(0));
    lane.next_batch(at(0));
    for number in 0..8 {
        lane.admit(2, &order(number), release(), at(0)).unwrap();
    }
    assert_eq!(lane.backlog(), 16);
}

#[test]
fn nothing_is_sent_again_once_a_release_is_queued() {
    let mut lane = open();
    lane.admit(1, &order(1), EXTEND, at(0)).unwrap();
    lane.next_batch(at(0));
    lane.admit(2, &order(1), release(), at(0)).unwrap();
    let extension = lane.answered().unwrap();
    assert!(!lane.again(extension, Work::Ask(EXTEND), true));
    assert_eq!(works(&lane.next_batch(at(0))), [(2, Work::Ask(release()))]);
    // The release itself is sent again, with the script's text.
    let again = lane.answered().unwrap();
    assert!(lane.again(again, Work::Ask(release()), true));
    let batch = lane.next_batch(at(0));
    assert!(batch[0].spelled_out);
    lane.answered();
    assert!(lane.releasing.is_empty());
}

#[test]
fn an_extension_is_sent_again_while_nothing_speaks_against_it() {
    let mut lane = open();
    lane.admit(1, &order(1), EXTEND, at(0)).unwrap();
    lane.next_batch(at(0));
    lane.admit(2, &order(2), GRANT, at(0)).unwrap();
    let extension = lane.answered().unwrap();
    assert!(lane.again(extension, Work::Ask(EXTEND), true));
    let ids: Vec<_> = lane.next_batch(at(0)).iter().map(|e| e.id).collect();
    assert_eq!(ids, [1, 2], "before all that waits");
}

#[test]
fn a_batch_is_bounded() {
    let mut lane = Lane::new(PATIENCE, 2 * Lane::BATCH);
    for _ in 0..Lane::BATCH + 1 {
        lane.admit(1, &order(1), EXTEND, at(0)).unwrap();
    }
    assert_eq!(lane.next_batch(at(0)).len(), Lane::BATCH);
    assert_eq!(lane.next_batch(at(0)).len(), 1);
}

#[test]
fn a_burst_waits_here_and_not_inside_the_server() {
    let mut lane = Lane::new(PATIENCE, 3 * Lane::IN_FLIGHT);
    for _ in 0..=Lane::IN_FLIGHT {
        lane.admit(1, &order(1), EXTEND, at(0)).unwrap();
    }
    let mut sent = 0;
    while lane.is_waiting() {
        sent += lane.next_batch(at(0)).len();
    }
    assert_eq!(sent, Lane::IN_FLIGHT);
    lane.answered();
    assert!(lane.is_waiting());
    assert_eq!(lane.next_batch(at(1)).len(), 1);
}

/// A raise after the release would touch the counter of the next owner's key; the script refuses
/// it there, and it is not even sent.
#[test]
fn a_raise_is_not_sent_again_behind_a_release() {
    let mut lane = open();
    let order = order(1);
    let raise = Ask::Raise {
        to: 9,
        fence: super::super::Fencing {
            hint: 0,
            retention_millis: 1,
            max_ttl_millis: 1,
        },
    };
    assert_eq!(lane.admit(1, &order, raise, at(0)), Ok(Admission::Queued));
    lane.next_batch(at(0));
    assert_eq!(
        lane.admit(2, &order, release(), at(1)),
        Ok(Admission::Queued)
    );
    let entry = lane.answered().unwrap();
    let work = entry.work;
    assert!(!lane.again(entry, work, true));
}

#[test]
fn a_node_that_was_given_up_hangs_until_the_next_connection() {
    let mut lane = open();
    lane.admit(1, &order(1), GRANT, at(0)).unwrap();
    lane.next_batch(at(0));
    lane.broken(Link::Opening);
    lane.still_hangs(at(50));
    assert_eq!(lane.hangs(at(80)), Some(Duration::from_millis(30)));
    let refused = lane.admit(2, &order(2), GRANT, at(80)).unwrap_err();
    assert_eq!(refused.kind(), FaultKind::Timeout);
    lane.admit(3, &order(1), release(), at(80)).unwrap();
    lane.repaired(at(90));
    assert_eq!(lane.hangs(at(90)), None);
    lane.admit(4, &order(2), GRANT, at(90)).unwrap();
}
