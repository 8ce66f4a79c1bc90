//! The network between one client and one server: what becomes of messages when it changes.

use std::time::Duration;

use super::faults::Path;
use super::server::{ClientId, Conn, ConnId, Request, Response, Server};
use crate::clock::Instant;

impl Server {
    /// Changes the network between `client` and this server.
    pub(crate) fn set_path(&mut self, client: ClientId, path: Path, now: Instant) {
        self.run(now);
        self.events += 1;
        self.paths.insert(client, path);
        if path != Path::Open {
            self.stop_on_the_way(client, path, now);
            return;
        }
        for id in self.conns_of(client) {
            let Some(conn) = self.conns.get_mut(&id).filter(|conn| !conn.broken) else {
                continue;
            };
            let (requests, responses) = conn.take_held();
            requests
                .into_iter()
                .for_each(|request| self.deliver(id, request, now));
            responses
                .into_iter()
                .for_each(|response| self.respond(id, response, now));
        }
        self.ring();
    }

    /// What is on its way when the path closes shares its fate.
    fn stop_on_the_way(&mut self, client: ClientId, path: Path, now: Instant) {
        for id in self.conns_of(client) {
            let coming = self.take_on_the_way(id, now);
            let Some(conn) = self.conns.get_mut(&id) else {
                continue;
            };
            conn.pending = conn.pending.saturating_sub(coming.len());
            let going = conn.take_coming(now);
            if path == Path::Held {
                conn.held_in.extend(coming);
                conn.held_out.extend(going);
            } else if !(coming.is_empty() && going.is_empty()) {
                conn.broken = true;
            }
        }
    }

    /// The requests over `id` that have not reached the server's socket by `now`.
    fn take_on_the_way(&mut self, id: ConnId, now: Instant) -> Vec<Request> {
        let later = self.queue.range((now.after(Duration::from_nanos(1)), 0)..);
        let mine = later.filter(|(_, (conn, _))| *conn == id);
        let numbers: Vec<_> = mine.map(|(number, _)| *number).collect();
        let taken = numbers
            .iter()
            .filter_map(|number| self.queue.remove(number));
        taken.map(|(_, request)| request).collect()
    }

    /// Wakes every client: something may have become due.
    pub(crate) fn ring(&self) {
        for conn in self.conns.values() {
            conn.bell.notify_one();
        }
    }
}

impl Conn {
    fn take_held(&mut self) -> (Vec<Request>, Vec<Response>) {
        (
            std::mem::take(&mut self.held_in),
            std::mem::take(&mut self.held_out),
        )
    }

    /// The answers that have not arrived by `now`.
    fn take_coming(&mut self, now: Instant) -> Vec<Response> {
        let arrived = self.replies.partition_point(|(arrives, _)| *arrives <= now);
        let coming = self.replies.split_off(arrived);
        coming.into_iter().map(|(_, response)| response).collect()
    }
}
