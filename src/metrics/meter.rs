//! The handles of the facade, and what stands in their place where the feature is off.

use std::fmt::Debug;
use std::time::Duration;

use super::list::Metric;

/// A label, and its value.
pub(super) type Label = (&'static str, String);

/// Counts up.
pub(crate) struct Counter {
    #[cfg(feature = "metrics")]
    handle: ::metrics::Counter,
}

impl Counter {
    pub(super) fn new(metric: &Metric, labels: &[Label]) -> Self {
        #[cfg(not(feature = "metrics"))]
        let _ = (metric, labels);
        Counter {
            #[cfg(feature = "metrics")]
            handle: ::metrics::counter!(metric.name, labels),
        }
    }

    pub(crate) fn add(&self) {
        #[cfg(feature = "metrics")]
        self.handle.increment(1);
    }
}

/// A gauge to which every client of the process adds its share. What is left of it goes with the
/// client.
pub(crate) struct Share {
    #[cfg(feature = "metrics")]
    handle: ::metrics::Gauge,
    #[cfg(feature = "metrics")]
    share: u32,
}

impl Share {
    pub(super) fn new(metric: &Metric, labels: &[Label]) -> Self {
        #[cfg(not(feature = "metrics"))]
        let _ = (metric, labels);
        Share {
            #[cfg(feature = "metrics")]
            handle: ::metrics::gauge!(metric.name, labels),
            #[cfg(feature = "metrics")]
            share: 0,
        }
    }

    /// It is so many from now on.
    pub(crate) fn set(&mut self, count: usize) {
        #[cfg(not(feature = "metrics"))]
        let _ = count;
        #[cfg(feature = "metrics")]
        {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            let change = f64::from(count) - f64::from(std::mem::replace(&mut self.share, count));
            if change != 0.0 {
                self.handle.increment(change);
            }
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Many values.
pub(crate) struct Histogram {
    #[cfg(feature = "metrics")]
    handle: ::metrics::Histogram,
}

impl Histogram {
    pub(super) fn new(metric: &Metric, labels: &[Label]) -> Self {
        #[cfg(not(feature = "metrics"))]
        let _ = (metric, labels);
        Histogram {
            #[cfg(feature = "metrics")]
            handle: ::metrics::histogram!(metric.name, labels),
        }
    }

    pub(crate) fn time(&self, span: Duration) {
        #[cfg(not(feature = "metrics"))]
        let _ = span;
        #[cfg(feature = "metrics")]
        self.handle.record(span);
    }

    pub(crate) fn size(&self, count: usize) {
        #[cfg(not(feature = "metrics"))]
        let _ = count;
        #[cfg(feature = "metrics")]
        self.handle
            .record(f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
    }
}

/// Counters that differ in one label. Those whose values are known are there from the start, at
/// zero: what is first seen at one has not increased.
pub(crate) struct Family<K> {
    metric: &'static Metric,
    shared: Vec<Label>,
    label: &'static str,
    members: Vec<(K, Counter)>,
}

impl<K: Copy + PartialEq + Debug> Family<K> {
    pub(super) fn new(
        metric: &'static Metric,
        shared: Vec<Label>,
        label: &'static str,
        known: impl IntoIterator<Item = K>,
    ) -> Self {
        let mut family = Family {
            metric,
            shared,
            label,
            members: Vec::new(),
        };
        for value in known {
            family.join(value);
        }
        family
    }

    pub(crate) fn add(&mut self, value: K) {
        if !super::ON {
            return;
        }
        match self.members.iter().find(|(known, _)| *known == value) {
            Some((_, counter)) => counter.add(),
            None => self.join(value).add(),
        }
    }

    /// The counter of `value`, which has none yet.
    fn join(&mut self, value: K) -> &Counter {
        let label = (self.label, word(value));
        let labels: Vec<Label> = self.shared.iter().cloned().chain([label]).collect();
        let counter = Counter::new(self.metric, &labels);
        let at = self.members.len();
        self.members.push((value, counter));
        &self.members[at].1
    }
}

/// The name of a value as labels have it: `ConnectionRefused` is `connection_refused`.
pub(super) fn word(value: impl Debug) -> String {
    let mut word = String::new();
    for letter in format!("{value:?}").chars() {
        if letter.is_ascii_uppercase() && !word.is_empty() {
            word.push('_');
        }
        if letter.is_ascii_alphanumeric() || letter == '_' {
            word.push(letter.to_ascii_lowercase());
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn labels_are_in_small_letters() {
        #[derive(Debug)]
        enum Kind {
            TooSlow,
            Taken,
        }
        assert_eq!(word(Kind::TooSlow), "too_slow");
        assert_eq!(word(Kind::Taken), "taken");
        assert_eq!((word("down"), word(12)), ("down".into(), "12".into()));
    }
}
