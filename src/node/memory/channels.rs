//! Publish and subscribe on a server in memory.

use std::sync::Arc;

use super::server::{Conn, ConnId, Response, Server};
use crate::clock::Instant;

impl Server {
    /// `SUBSCRIBE` is answered by a message on the connection, `UNSUBSCRIBE` by one that nobody
    /// waits for.
    pub(super) fn subscribe(&mut self, id: ConnId, key: &Arc<[u8]>, yes: bool, at: Instant) {
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        if !yes {
            conn.channels.remove(key);
            return;
        }
        if self.faults.mute {
            return;
        }
        conn.channels.insert(Arc::clone(key));
        self.respond(id, Response::Listening(Arc::clone(key)), at);
    }

    /// `PUBSUB NUMSUB`
    pub(super) fn listeners(&self, key: &[u8]) -> i64 {
        let count = self.conns.values().filter(|conn| hears(conn, key)).count();
        i64::try_from(count).unwrap_or(i64::MAX)
    }

    /// How many connections listen for a key that ends in `ending`.
    pub(crate) fn listeners_of(&self, ending: &[u8]) -> usize {
        let channels = self.conns.values().filter(|conn| !conn.dead && !conn.left);
        let channels = channels.flat_map(|conn| &conn.channels);
        channels.filter(|channel| channel.ends_with(ending)).count()
    }

    /// Subscriptions are refused from now on.
    pub(crate) fn mute(&mut self) {
        self.faults.mute = true;
    }

    /// `PUBLISH`
    pub(super) fn publish(&mut self, key: &[u8], note: &str, at: Instant) {
        let conns = self.conns.iter();
        let heard = conns.filter(|(_, conn)| hears(conn, key));
        let heard: Vec<ConnId> = heard.map(|(&id, _)| id).collect();
        for id in heard {
            let note = Response::Note {
                key: Arc::from(key),
                payload: note.as_bytes().to_vec(),
            };
            self.respond(id, note, at);
        }
    }
}

/// A connection that the client has left, or that the server has ended, is no listener.
fn hears(conn: &Conn, key: &[u8]) -> bool {
    !conn.dead && !conn.left && conn.channels.contains(key)
}
