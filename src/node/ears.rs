//! The keys that one node is listened to for, and what its connection must yet be told of them.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// What is listened for.
#[derive(Debug, Default)]
pub(crate) struct Ears {
    /// In order, so that a simulation repeats itself.
    keys: BTreeSet<Arc<[u8]>>,
    /// To subscribe to (`true`) or to unsubscribe from, in this order.
    news: VecDeque<(Arc<[u8]>, bool)>,
    /// There is nobody to tell: waiters that come and go leave nothing behind.
    cut: bool,
}

impl Ears {
    pub(crate) fn listen(&mut self, key: &Arc<[u8]>) {
        if self.keys.insert(Arc::clone(key)) && !self.cut {
            self.news.push_back((Arc::clone(key), true));
        }
    }

    pub(crate) fn ignore(&mut self, key: &Arc<[u8]>) {
        if self.keys.remove(key) && !self.cut {
            self.news.push_back((Arc::clone(key), false));
        }
    }

    /// There is no connection. The next one is told everything.
    pub(crate) fn cut(&mut self) {
        self.cut = true;
        self.news = VecDeque::new();
    }

    /// A connection is there, and knows nothing yet.
    pub(crate) fn connected(&mut self) {
        self.cut = false;
        self.news = self
            .keys
            .iter()
            .map(|key| (Arc::clone(key), true))
            .collect();
    }

    /// Whether the connection must be told something.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.news.is_empty()
    }

    /// The next thing to tell it.
    pub(crate) fn next(&mut self) -> Option<(Arc<[u8]>, bool)> {
        self.news.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Arc<[u8]> {
        Arc::from(name.as_bytes())
    }

    fn told(ears: &mut Ears) -> Vec<(Arc<[u8]>, bool)> {
        std::iter::from_fn(|| ears.next()).collect()
    }

    #[test]
    fn each_change_is_told_once_and_all_of_it_to_a_new_connection() {
        let mut ears = Ears::default();
        ears.listen(&key("b"));
        ears.listen(&key("a"));
        ears.listen(&key("a"));
        assert_eq!(told(&mut ears), [(key("b"), true), (key("a"), true)]);
        ears.ignore(&key("c"));
        assert!(!ears.is_waiting());
        ears.ignore(&key("a"));
        assert_eq!(told(&mut ears), [(key("a"), false)]);
        ears.listen(&key("c"));
        ears.connected();
        assert_eq!(told(&mut ears), [(key("b"), true), (key("c"), true)]);
    }

    #[test]
    fn while_there_is_no_connection_nothing_is_kept_for_it() {
        let mut ears = Ears::default();
        ears.listen(&key("before"));
        ears.cut();
        for name in 0..1000 {
            ears.listen(&key(&name.to_string()));
            ears.ignore(&key(&name.to_string()));
        }
        assert_eq!(ears.news.len(), 0);
        ears.connected();
        assert_eq!(told(&mut ears), [(key("before"), true)]);
        ears.ignore(&key("before"));
        assert_eq!(told(&mut ears), [(key("before"), false)]);
    }
}
