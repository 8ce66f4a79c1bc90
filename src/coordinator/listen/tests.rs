//! What is remembered of a lock's rivals, for how long, and when the nodes are asked to tell.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::coordinator::Rules;
use crate::node::{Ask, AskId, Fault, Inbox, Node, Order};
use crate::quorum::{Drift, GuardMode};

/// A node that counts the subscriptions of all.
struct Ear(Arc<AtomicUsize>);

impl Node for Ear {
    fn name(&self) -> &str {
        "ear"
    }
    fn submit(&mut self, _: AskId, _: &Arc<Order>, _: Ask, _: Instant) -> Result<(), Fault> {
        Ok(())
    }
    fn listen(&mut self, _: &Arc<[u8]>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
    fn ignore(&mut self, _: &Arc<[u8]>) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
    fn hangs(&self, _: Instant) -> Option<Duration> {
        None
    }
    fn flush(&mut self) {}
}

/// A coordinator of three nodes, and how many of them tell of something.
fn three() -> (Coordinator, Arc<AtomicUsize>) {
    let ears = Arc::new(AtomicUsize::new(0));
    let ear = |_| Box::new(Ear(Arc::clone(&ears))) as Box<dyn Node>;
    let rules = Rules {
        guard: GuardMode::Off,
        restart_delay: Duration::ZERO,
        patience: LINGER,
        drift: Drift::new(0.0, Duration::ZERO).unwrap(),
        counters: None,
    };
    let nodes = (0..3).map(ear).collect();
    let coordinator = Coordinator::new(nodes, Inbox::default(), rules, Box::new(|| None));
    (coordinator, ears)
}

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

fn key() -> Arc<[u8]> {
    Arc::from(&b"{job}"[..])
}

impl Coordinator {
    fn knows(&self) -> bool {
        self.listeners.by_key.contains_key(&key())
    }
}

#[test]
fn a_subscription_outlasts_its_last_waiter_by_a_moment() {
    let (mut it, ears) = three();
    it.begin_listening(&key());
    it.end_listening(&key(), at(0));
    it.begin_listening(&key());
    it.end_listening(&key(), at(100));
    // The moment of the first end is past, and says nothing.
    it.tidy_listeners(at(250));
    assert_eq!((it.knows(), ears.load(Ordering::SeqCst)), (true, 3));
    it.tidy_listeners(at(349));
    assert_eq!((it.knows(), ears.load(Ordering::SeqCst)), (true, 3));
    // Whoever looks late finds it all the same.
    it.tidy_listeners(at(400));
    assert_eq!((it.knows(), ears.load(Ordering::SeqCst)), (false, 0));
}

#[test]
fn rivals_that_a_release_tells_of_are_forgotten_after_a_moment_without_word() {
    let (mut it, _) = three();
    it.heard_by(0, &key(), 0, at(0));
    assert!(!it.knows(), "of nobody there is nothing to know");
    it.heard_by(0, &key(), 3, at(0));
    assert_eq!(it.known_rivals(&key()), 3);
    // Half of the time has passed: this word counts anew, a word before would not.
    it.heard_by(1, &key(), 2, at(125));
    it.tidy_listeners(at(250));
    assert_eq!(it.known_rivals(&key()), 2);
    it.heard_by(2, &key(), 0, at(260));
    assert_eq!(it.known_rivals(&key()), 0);
    it.tidy_listeners(at(510));
    assert!(!it.knows());
    // One word alone is forgotten as well.
    it.heard_by(0, &key(), 3, at(600));
    it.tidy_listeners(at(850));
    assert!(!it.knows());
}

#[test]
fn only_rivals_of_a_lock_that_is_ours_are_remembered_for_longer() {
    for (ours, rivals, kept) in [(false, 3, false), (true, 0, false), (true, 3, true)] {
        let (mut it, _) = three();
        it.begin_listening(&key());
        it.heard_by(0, &key(), rivals, at(0));
        if ours {
            it.listeners.hold(&key());
        }
        it.end_listening(&key(), at(0));
        it.tidy_listeners(at(250));
        assert_eq!(it.knows(), kept, "{ours} {rivals}");
        it.let_go(&key(), at(1_000));
        it.tidy_listeners(at(1_250));
        assert!(!it.knows(), "{ours} {rivals}");
    }
}

#[test]
fn a_round_is_announced_where_somebody_may_listen() {
    let (mut it, _) = three();
    assert!(!it.attempted(&key()), "nobody is known");
    it.heard_by(0, &key(), 1, at(0));
    assert!(it.attempted(&key()), "a rival");
    it.heard_by(0, &key(), 0, at(0));
    assert!(!it.attempted(&key()), "a rival that is gone");
    it.begin_listening(&key());
    assert!(it.attempted(&key()), "one of ours");
}

#[test]
fn a_node_whose_connection_has_ended_tells_nothing() {
    let (mut it, _) = three();
    it.begin_listening(&key());
    (0..2).for_each(|node| it.confirmed(node, &key()));
    assert!(it.heard(&key()).0, "two of three tell");
    it.deafen(0);
    assert!(!it.heard(&key()).0, "one does");
}
