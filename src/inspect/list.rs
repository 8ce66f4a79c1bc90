//! What `Client::list` says, and how it comes together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::MOST_LISTED;
use super::owner::OwnerId;
use super::verdict::{self, LockState};
use crate::key;
use crate::node::Fault;
use crate::node::inspect::{Content, End, Names, Reading};
use crate::quorum::Quorum;

/// The locks that were found under a prefix.
///
/// Its `Display` is a table of at most 100 columns. With the feature `serde` it can be serialised.
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use quorumlock::Client;
///
/// let client = Client::in_memory(3);
/// let guard = client.lock("seat/12a").acquire().await?;
/// let listing = client.list("seat/").await;
/// assert_eq!((listing.prefix(), listing.needed()), (&b"seat/"[..], 2));
/// assert_eq!((listing.locks().len(), listing.held().count()), (1, 1));
/// assert!(listing.is_complete() && listing.faults().next().is_none());
/// assert_eq!(listing.fingerprint(), client.status("seat/12a").await?.fingerprint());
/// # drop(guard);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a listing is to be looked at"]
pub struct Listing {
    pub(super) prefix: Arc<[u8]>,
    pub(super) locks: Vec<Listed>,
    pub(super) nodes: Vec<(Arc<str>, Option<Fault>)>,
    pub(super) complete: bool,
    pub(super) quorum: Quorum,
    pub(super) fingerprint: String,
}

impl Listing {
    /// The beginning of the resources that was asked for.
    #[must_use]
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// The locks, in the order of their bytes. All are held, split or unknown: those that a quorum
    /// calls free are left out.
    #[must_use]
    pub fn locks(&self) -> &[Listed] {
        &self.locks
    }

    /// The locks that are held by quorum.
    pub fn held(&self) -> impl Iterator<Item = &Listed> {
        self.locks.iter().filter(|lock| lock.is_held())
    }

    /// Whether every lock that was held throughout is in it. That needs so many nodes to have
    /// shown all their names that every quorum has one of them, and no limit to have cut the
    /// result.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// The nodes that failed, with the reason.
    pub fn faults(&self) -> impl Iterator<Item = (&str, &Fault)> {
        let failed = self.nodes.iter();
        failed.filter_map(|(node, fault)| Some((&**node, fault.as_ref()?)))
    }

    /// How many nodes must agree: more than half of the configured ones.
    #[must_use]
    pub fn needed(&self) -> usize {
        self.quorum.needed()
    }

    /// See [`Status::fingerprint`](crate::Status::fingerprint).
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

/// One lock of a [`Listing`].
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use quorumlock::{Client, LockState};
///
/// let client = Client::in_memory(3);
/// let guard = client.lock("job").acquire().await?;
/// let listing = client.list("").await;
/// let lock = &listing.locks()[0];
/// assert_eq!((lock.resource(), lock.label(), lock.is_held()), (&b"job"[..], None, true));
/// assert!(matches!(lock.state(), LockState::Held { .. }) && lock.owner().is_some());
/// assert!(lock.copies() >= 2 && lock.left() <= Some(std::time::Duration::from_secs(10)));
/// # drop(guard);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub(super) resource: Vec<u8>,
    pub(super) state: LockState,
    pub(super) copies: usize,
    pub(super) label: Option<String>,
}

impl Listed {
    /// The resource, byte for byte.
    #[must_use]
    pub fn resource(&self) -> &[u8] {
        &self.resource
    }

    /// What the nodes come to.
    #[must_use]
    pub fn state(&self) -> &LockState {
        &self.state
    }

    /// Whether one owner has a quorum.
    #[must_use]
    pub fn is_held(&self) -> bool {
        matches!(self.state, LockState::Held { .. })
    }

    /// Who holds it.
    #[must_use]
    pub fn owner(&self) -> Option<OwnerId> {
        match self.state {
            LockState::Held { owner, .. } => Some(owner),
            _ => None,
        }
    }

    /// What the holder says of itself, where it does: see [`Client::label`](crate::Client::label).
    /// It is anybody's text, and no proof of anything.
    #[must_use]
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// For how long it is held yet, as in [`LockState::Held`].
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        match self.state {
            LockState::Held { left, .. } => left,
            _ => None,
        }
    }

    /// On how many nodes there is a key, whoever owns it.
    #[must_use]
    pub fn copies(&self) -> usize {
        self.copies
    }
}

/// The names of all nodes together, in the order of their resources.
pub(super) struct Found {
    pub(super) keys: Vec<Vec<u8>>,
    pub(super) complete: bool,
    pub(super) faults: Vec<Option<Fault>>,
}

/// Puts the names of all nodes together, without those that are no locks.
pub(super) fn gather(names: Vec<Names>, quorum: Quorum, prefix: &str) -> Found {
    let whole = names.iter().filter(|names| names.end == End::Complete);
    // A lock that is held has its key on at least one of so many nodes.
    let enough = whole.count() > quorum.spare();
    // By resource: its escaped form in the key has another order.
    let (mut keys, mut faults) = (BTreeMap::new(), Vec::with_capacity(names.len()));
    for node in names {
        faults.push(match node.end {
            End::Failed(fault) => Some(fault),
            End::Complete | End::Cut => None,
        });
        let lock = |key: Vec<u8>| Some((key::resource_of(prefix, &key)?, key));
        keys.extend(node.keys.into_iter().filter_map(lock));
    }
    let fits = keys.len() <= MOST_LISTED;
    Found {
        keys: keys.into_values().take(MOST_LISTED).collect(),
        complete: enough && fits,
        faults,
    }
}

/// What all nodes say of each key: what is not free.
pub(super) fn judge(
    keys: &[Vec<u8>],
    answers: &[Vec<Result<Reading, Fault>>],
    quorum: Quorum,
    prefix: &str,
) -> Vec<Listed> {
    let listed = |(place, key): (usize, &Vec<u8>)| {
        let readings = || answers.iter().filter_map(|node| node.get(place));
        let content = |reading: &Result<Reading, Fault>| match reading {
            Ok(reading) => Ok(reading.content.clone()),
            Err(fault) => Err(fault.clone()),
        };
        let contents: Vec<_> = readings().map(content).collect();
        let labels = readings().flatten().flat_map(|reading| &reading.label);
        let lock = |content: &&Result<Content, Fault>| matches!(content, Ok(Content::Lock { .. }));
        Some(Listed {
            resource: key::resource_of(prefix, key)?,
            state: verdict::judge(quorum, &contents),
            copies: contents.iter().filter(lock).count(),
            label: verdict::label(quorum, &contents, labels),
        })
    };
    let listed = keys.iter().enumerate().filter_map(listed);
    let there = |lock: &Listed| match lock.state {
        LockState::Free => false,
        // Its name was seen, and no longer its contents.
        LockState::Unknown => true,
        LockState::Held { .. } | LockState::Split => lock.copies > 0,
    };
    listed.filter(there).collect()
}

/// Each node with its first fault.
pub(super) fn faults(
    names: Vec<String>,
    scans: Vec<Option<Fault>>,
    answers: &[Vec<Result<Reading, Fault>>],
) -> Vec<(Arc<str>, Option<Fault>)> {
    let of_reading = |node: usize| {
        let failed = |reading: &Result<Reading, Fault>| reading.as_ref().err().cloned();
        answers.get(node)?.iter().find_map(failed)
    };
    let named = names.into_iter().zip(scans).enumerate();
    let fault = |(node, (name, scan)): (usize, (String, Option<Fault>))| {
        (Arc::from(name), scan.or_else(|| of_reading(node)))
    };
    named.map(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::FaultKind;

    fn names(keys: &[&str], end: End) -> Names {
        let keys = keys.iter().map(|key| key.as_bytes().to_vec()).collect();
        Names { keys, end }
    }

    #[test]
    fn every_quorum_has_a_node_that_showed_all_its_names() {
        let fault = || End::Failed(FaultKind::Timeout.into());
        let complete = |ends: Vec<End>| {
            let quorum = Quorum::of(ends.len());
            let names = ends.into_iter().map(|end| names(&["q:{a}"], end));
            gather(names.collect(), quorum, "q:").complete
        };
        let done = || End::Complete;
        assert!(complete(vec![done(), done(), done(), fault(), End::Cut]));
        assert!(!complete(vec![done(), done(), End::Cut, fault(), End::Cut]));
        assert!(complete(vec![done(), done(), fault(), fault()]));
        assert!(!complete(vec![done(), fault(), fault(), fault()]));
    }

    #[test]
    fn names_are_locks_only_and_each_once() {
        let one = names(&["q:{b}", "q:{a}", "q:{a}:x{}"], End::Complete);
        let other = names(&["q:{a}", "q:{%41}"], End::Complete);
        let found = gather(vec![one, other], Quorum::of(2), "q:");
        assert_eq!(found.keys, [b"q:{a}".to_vec(), b"q:{b}".to_vec()]);
    }

    #[test]
    fn a_lock_whose_contents_nobody_tells_is_unknown_and_not_left_out() {
        let keys = [b"q:{a}".to_vec(), b"q:{b}".to_vec()];
        let silent = || Err(Fault::from(FaultKind::Timeout));
        let absent = || {
            Ok(Reading {
                content: Content::Absent,
                counter: None,
                label: None,
            })
        };
        let answers = [vec![silent(), absent()], vec![silent(), absent()]];
        let locks = judge(&keys, &answers, Quorum::of(2), "q:");
        let [lock] = &locks[..] else {
            panic!("{locks:?}")
        };
        assert_eq!((lock.resource(), lock.copies()), (&b"a"[..], 0));
        assert_eq!(*lock.state(), LockState::Unknown);
    }

    #[test]
    fn more_locks_than_fit_are_cut_and_that_is_told() {
        let many = |count: usize| Names {
            keys: (0..count).map(|n| format!("q:{{{n}}}").into()).collect(),
            end: End::Complete,
        };
        let found = gather(vec![many(MOST_LISTED)], Quorum::of(1), "q:");
        assert!(found.complete);
        let found = gather(vec![many(MOST_LISTED + 1)], Quorum::of(1), "q:");
        assert_eq!((found.keys.len(), found.complete), (MOST_LISTED, false));
    }
}
