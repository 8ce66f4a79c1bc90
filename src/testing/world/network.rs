//! What can be done to the network of a world as a whole.

use std::time::Duration;

use super::{Link, ProcessId, World};

impl World {
    /// Parts `processes` from `nodes`: nothing comes through between them, either way, before
    /// [`World::rejoin`]. What was sent meanwhile comes then, in order.
    pub fn partition(&self, processes: &[ProcessId], nodes: &[usize]) {
        self.between(processes, nodes, Link::hold);
    }

    /// Ends a partition.
    pub fn rejoin(&self, processes: &[ProcessId], nodes: &[usize]) {
        self.between(processes, nodes, Link::mend);
    }

    /// Cuts the links of `process` one after the other, in an order left to chance, and mends them
    /// in another: so the nodes hear from it, and it from them, at quite different times.
    pub async fn swizzle(&self, process: ProcessId, pause: Duration) {
        for node in self.shuffled() {
            self.link(process, node).hold();
            self.sleep(self.span(Duration::ZERO, pause)).await;
        }
        for node in self.shuffled() {
            self.link(process, node).mend();
            self.sleep(self.span(Duration::ZERO, pause)).await;
        }
    }

    fn between(&self, processes: &[ProcessId], nodes: &[usize], what: impl Fn(&Link)) {
        for &process in processes {
            nodes
                .iter()
                .for_each(|&node| what(&self.link(process, node)));
        }
    }

    /// The nodes, in an order left to chance.
    fn shuffled(&self) -> Vec<usize> {
        let mut nodes: Vec<usize> = (0..self.nodes()).collect();
        for last in (1..nodes.len()).rev() {
            let other = usize::try_from(self.chance(last as u64 + 1)).unwrap_or(0);
            nodes.swap(last, other);
        }
        nodes
    }
}

impl Link {
    /// Its connection is reset, and what was on its way is carried out all the same, `span` later:
    /// after the first requests of the next connection.
    pub fn reset_and_deliver_later(&self, span: Duration) {
        self.reset(super::Reset::Later(span));
    }

    /// Each crossing takes up to `most`, until [`Link::clear`].
    pub fn clog(&self, most: Duration) {
        self.note("is clogged");
        self.latency(Duration::ZERO, most);
    }

    /// Ends [`Link::clog`]: it is as far as the server is from everybody.
    pub fn clear(&self) {
        self.note("is clear");
        self.forget_latency();
    }
}
