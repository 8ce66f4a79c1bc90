//! What can be done to a world beyond what services need: the simulation's own faults.

use std::time::Duration;

use super::{ProcessId, World};
use crate::clock::Instant;
use crate::guard::Held;
use crate::key;
use crate::node::memory::faults::{Path, Reset, Restart};
use crate::node::memory::server::{ClientId, Shared};

impl World {
    /// A server, with all that can happen to one.
    #[must_use]
    pub fn server(&self, index: usize) -> Server {
        Server {
            world: self.clone(),
            index,
            server: self.node(index).server,
        }
    }

    /// The network between a process and a server.
    #[must_use]
    pub fn link(&self, process: ProcessId, node: usize) -> Link {
        Link {
            world: self.clone(),
            process,
            node,
            server: self.node(node).server,
        }
    }

    /// How many servers there are.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.0.cluster.nodes().len()
    }

    /// Ends every fault that lasts. What was lost stays lost, and clocks stay as they are.
    pub fn heal(&self) {
        self.note(|| String::from("all is healed"));
        let processes = self.0.processes.borrow().len();
        for node in 0..self.nodes() {
            self.server(node).heal();
            for process in 0..processes {
                self.link(process, node).set(Path::Open);
                self.link(process, node).forget_latency();
            }
        }
    }
}

/// Whether a hold is valid by the clock, found out without touching it: [`Held::is_held`] ends
/// one whose time has come, which would hide what the library does about it.
#[must_use]
pub fn is_held(held: &Held) -> bool {
    held.peek()
}

/// One server of a world.
#[derive(Clone)]
pub struct Server {
    world: World,
    index: usize,
    server: Shared,
}

impl Server {
    fn now(&self) -> Instant {
        self.world.touch();
        self.world.now()
    }

    fn note(&self, what: &str) {
        self.world.note(|| format!("n{} {what}", self.index));
    }

    /// Takes requests in, and carries none out.
    pub fn hang(&self) {
        self.note("hangs");
        self.server.lock().hang(self.now());
    }

    /// Goes on after [`Server::hang`].
    pub fn resume(&self) {
        self.note("goes on");
        self.server.lock().resume(self.now());
    }

    /// Answers, takes connections and is quick again; the network's latency stays.
    pub fn heal(&self) {
        let mut server = self.server.lock();
        server.stop_failing();
        server.refuse(false);
        server.set_service(Duration::ZERO);
        server.resume(self.now());
    }

    /// Ends, and comes back without its data.
    pub fn restart_empty(&self) {
        self.note("restarts empty");
        self.server.lock().restart(Restart::Empty, self.now());
    }

    /// Ends, and comes back with its data.
    pub fn restart_with_data(&self) {
        self.note("restarts with its data");
        self.server.lock().restart(Restart::WithData, self.now());
    }

    /// Ends, and comes back without what was written last.
    pub fn restart_without_last_write(&self) {
        self.note("restarts without its last write");
        let mut server = self.server.lock();
        server.restart(Restart::WithoutLastWrite, self.now());
    }

    /// Writes a snapshot of its data to its disk.
    pub fn save(&self) {
        self.server.lock().save(self.now());
    }

    /// Ends, and comes back with the data of the last [`Server::save`].
    pub fn restart_with_old_data(&self) {
        self.note("restarts with old data");
        self.server.lock().restart(Restart::WithOldData, self.now());
    }

    /// Ends, and refuses connections until it is restarted.
    pub fn kill(&self) {
        self.note("is killed");
        self.server.lock().kill(self.now());
    }

    /// Loses its data, and runs on.
    pub fn wipe(&self) {
        self.note("loses its data");
        self.server.lock().wipe(self.now());
    }

    /// Each crossing of the network takes from `least` to `most`.
    pub fn latency(&self, least: Duration, most: Duration) {
        self.server.lock().set_latency(least, most);
    }

    /// Each request keeps it busy for so long.
    pub fn slow(&self, busy: Duration) {
        self.note("is slow");
        self.server.lock().set_service(busy);
    }

    /// Its clock runs fast by so many millionths from now on, or slow.
    pub fn run_fast(&self, millionths: i64) {
        self.server.lock().run_fast(millionths, self.now());
    }

    /// Its clock is set forward.
    pub fn step_forward(&self, by: Duration) {
        self.note("has its clock set forward");
        self.server.lock().step_clock(by, true);
    }

    /// Its clock is set back.
    pub fn step_back(&self, by: Duration) {
        self.note("has its clock set back");
        self.server.lock().step_clock(by, false);
    }

    /// Deletes the key of `resource`, as an operator or an eviction does.
    pub fn delete(&self, resource: &str) {
        self.note("has a key deleted");
        let ending = key::lock_key("", resource.as_bytes());
        self.server.lock().evict(self.now(), &ending);
    }

    /// Puts another owner's value under the key of `resource`, where there is one.
    pub fn overwrite(&self, resource: &str, value: &str, ttl: Duration) {
        self.note("has a key overwritten");
        let ending = key::lock_key("", resource.as_bytes());
        let value = value.as_bytes().to_vec();
        let mut server = self.server.lock();
        server.overwrite(self.now(), &ending, value, ttl);
    }

    /// The lock keys that have no expiry: there must never be one.
    #[must_use]
    pub fn everlasting(&self) -> Vec<String> {
        self.server.lock().everlasting(self.now())
    }

    /// Refuses subscriptions from now on.
    pub fn mute(&self) {
        self.note("refuses subscriptions");
        self.server.lock().mute();
    }

    /// How many connections listen for notes on `resource`.
    #[must_use]
    pub fn listeners(&self, resource: &str) -> usize {
        let ending = key::lock_key("", resource.as_bytes());
        self.server.lock().listeners_of(&ending)
    }

    /// How much has happened to it and on its connections: connections made and ended, requests
    /// that came, commands carried out, answers and notes that were received, faults.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.server.lock().events()
    }

    /// How many requests it has carried out.
    #[must_use]
    pub fn served(&self) -> u64 {
        self.server.lock().served()
    }

    /// For how long the key of `resource` stays yet, by the server's clock.
    #[must_use]
    pub fn time_left(&self, resource: &str) -> Option<Duration> {
        let ending = key::lock_key("", resource.as_bytes());
        self.server.lock().time_left(self.now(), &ending)
    }
}

/// The network between one process and one server.
#[derive(Clone)]
pub struct Link {
    world: World,
    process: ProcessId,
    node: usize,
    server: Shared,
}

impl Link {
    pub(super) fn note(&self, what: &str) {
        let (process, node) = (self.process, self.node);
        self.world.note(|| format!("c{process} ↔ n{node} {what}"));
    }

    fn client(&self) -> ClientId {
        ClientId::try_from(self.process).unwrap_or(ClientId::MAX)
    }

    pub(super) fn set(&self, path: Path) {
        self.world.touch();
        let now = self.world.now();
        self.server.lock().set_path(self.client(), path, now);
    }

    /// Each crossing takes from `least` to `most`, however far others are from the server.
    pub fn latency(&self, least: Duration, most: Duration) {
        let client = self.client();
        self.server.lock().set_latency_of(client, least, most);
    }

    /// Nothing comes through; it will, in order, after [`Link::mend`].
    pub fn hold(&self) {
        self.note("is cut, for a time");
        self.set(Path::Held);
    }

    /// What is sent is gone for good, and the connection with it.
    pub fn swallow(&self) {
        self.note("swallows");
        self.set(Path::Swallows);
    }

    /// It is whole again.
    pub fn mend(&self) {
        self.note("is whole");
        self.set(Path::Open);
    }

    /// The connection is reset; nothing that was on its way is carried out.
    pub fn reset_before(&self) {
        self.reset(Reset::Before);
    }

    /// The connection is reset; what was on its way is carried out, the answers are lost.
    pub fn reset_after(&self) {
        self.reset(Reset::After);
    }

    /// The connection is reset when `count` of the requests on their way have been carried out.
    pub fn reset_amid(&self, count: usize) {
        self.reset(Reset::Amid(count));
    }

    /// As far as the server is from everybody.
    pub(super) fn forget_latency(&self) {
        let client = self.client();
        self.server.lock().forget_latency_of(client);
    }

    pub(super) fn reset(&self, how: Reset) {
        self.world
            .note(|| format!("c{} ↔ n{} is reset: {how:?}", self.process, self.node));
        self.world.touch();
        let now = self.world.now();
        self.server.lock().reset(self.client(), how, now);
    }
}
