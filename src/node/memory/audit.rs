//! What a server has noticed that no client may do: for the invariants of the simulation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::super::lane::Work;
use super::super::{Ask, OwnerToken};
use super::server::{ClientId, Question};
use crate::clock::Instant;

/// What a client may not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offence {
    Everlasting,
    AfterRelease,
}

/// The first offence that any of the servers has noticed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offences(Arc<Mutex<Option<(Offence, String)>>>);

impl Offences {
    fn note(&self, kind: Offence, what: String) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert((kind, what));
    }

    pub(crate) fn of(&self, kind: Offence) -> Option<String> {
        let first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (noted, what) = first.as_ref()?;
        (*noted == kind).then(|| what.clone())
    }
}

/// What one server remembers; nothing, unless somebody wants to know.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    offences: Option<Offences>,
    /// It has two addresses, with a queue each, and cannot tell whose release a request follows.
    twice: bool,
    released: BTreeSet<Vec<u8>>,
    /// When a token was last written, and for whom.
    written: BTreeMap<(ClientId, Vec<u8>), Instant>,
    /// When it last told a client that the key is somebody else's.
    refused: BTreeMap<ClientId, Instant>,
    longest: usize,
}

impl Audit {
    /// From now on it is written down; offences go to `offences`. Has the server two addresses?
    pub(crate) fn begin(&mut self, offences: Offences, twice: bool) {
        self.offences = Some(offences);
        self.twice = twice;
    }

    /// `client` sends `asks`, with `pending` requests before it on the connection.
    pub(super) fn sent(&mut self, client: ClientId, asks: &[Question], pending: usize) {
        let Some(offences) = &self.offences else {
            return;
        };
        self.longest = self.longest.max(pending + asks.len());
        for ask in asks {
            let token = ask.token.as_bytes();
            match ask.work {
                Work::Ask(Ask::Release { .. }) => {
                    self.released.insert(token.to_vec());
                }
                Work::Ask(_) if !self.twice && self.released.contains(token) => {
                    let what = format!("c{client} asks for a token after its release: {ask:?}");
                    offences.note(Offence::AfterRelease, what);
                }
                Work::Ask(_) | Work::Inspect => {}
            }
        }
    }

    /// A request to set or keep the key was carried out.
    pub(super) fn answered(
        &mut self,
        client: ClientId,
        token: &OwnerToken,
        ours: bool,
        at: Instant,
    ) {
        if self.offences.is_none() {
            return;
        }
        if ours {
            self.written.insert((client, token.as_bytes().to_vec()), at);
        } else {
            self.refused.insert(client, at);
        }
    }

    /// A lock's key has no expiry.
    pub(super) fn everlasting(&self, key: &[u8]) {
        if let Some(offences) = &self.offences {
            let key = String::from_utf8_lossy(key);
            offences.note(Offence::Everlasting, format!("{key} has no expiry"));
        }
    }

    /// The tokens of `client` that were written since `since`.
    pub(crate) fn written_since(&self, client: ClientId, since: Instant) -> Vec<Vec<u8>> {
        let mine = self.written.iter();
        mine.filter(|((by, _), at)| *by == client && **at >= since)
            .map(|((_, token), _)| token.clone())
            .collect()
    }

    /// When it last told `client` that the key is somebody else's.
    pub(crate) fn refused(&self, client: ClientId) -> Option<Instant> {
        self.refused.get(&client).copied()
    }

    /// The most requests that were ever under way on one connection.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }
}
