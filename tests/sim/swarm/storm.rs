//! The faults that a seed draws, one after another, until the storm is over.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use quorumlock::testing::world::{ProcessId, World};
use quorumlock::{FaultKind, RestartGuard};

use super::Plan;
use crate::support::{JOB, ms};

/// What draws the faults of one seed.
pub struct Storm {
    pub world: World,
    pub plan: Plan,
    pub ttl: Duration,
    pub processes: usize,
    /// How many nodes may lose data, the first ones.
    losable: u64,
    /// How often clocks may yet be set back: each time keys stay for a little longer.
    backward: Cell<u8>,
    pub drawn: Cell<u64>,
}

impl Storm {
    pub fn new(world: &World, plan: Plan, ttl: Duration, guard: RestartGuard) -> Self {
        // Where all nodes look new, `auto` takes the set for a new one: so some stay old.
        let losable = match guard {
            RestartGuard::Auto => (world.nodes() - 1) / 2,
            _ => world.nodes(),
        };
        Storm {
            world: world.clone(),
            plan,
            ttl,
            processes: 2,
            losable: losable as u64,
            backward: Cell::new(5),
            drawn: Cell::new(0),
        }
    }

    /// Goes on until it is dropped.
    pub async fn rage(self: Rc<Self>) {
        let world = &self.world;
        loop {
            world.sleep(world.span(ms(0), ms(200))).await;
            self.drawn.set(self.drawn.get() + 1);
            let node = world.chance(world.nodes() as u64) as usize;
            let process = world.chance(self.processes as u64) as usize;
            let span = world.span(ms(1), self.ttl * 2);
            match world.chance(12) {
                0 => world.freeze(process, span),
                1 | 2 => self.lose_data(world.chance(self.losable) as usize),
                3 | 4 => self.reset(process, node),
                5 => world.server(node).slow(world.span(ms(0), ms(20))),
                6 => {
                    let count = 1 + world.chance(5);
                    world.node(node).fail_next(FaultKind::Loading, count);
                }
                7 => world.server(node).restart_with_data(),
                8 => world.server(node).heal(),
                9 => self.clock_or_key(node),
                _ => {
                    let passing = Rc::clone(&self).passing(process, node, span);
                    drop(world.spawn_outside(passing));
                }
            }
        }
    }

    /// A fault that ends by itself.
    async fn passing(self: Rc<Self>, process: ProcessId, node: usize, span: Duration) {
        let world = &self.world;
        let (server, link) = (world.server(node), world.link(process, node));
        match world.chance(6) {
            0 => {
                server.hang();
                world.sleep(span).await;
                server.resume();
            }
            1 => {
                link.hold();
                world.sleep(span).await;
                link.mend();
            }
            2 => {
                link.swallow();
                world.sleep(span).await;
                link.mend();
            }
            3 => {
                link.clog(ms(60));
                world.sleep(span).await;
                link.clear();
            }
            4 => world.swizzle(process, span / 4).await,
            _ => {
                let some: Vec<usize> = (0..world.nodes()).filter(|_| world.chance(2) > 0).collect();
                world.partition(&[process], &some);
                world.sleep(span).await;
                world.rejoin(&[process], &some);
            }
        }
    }

    fn lose_data(&self, node: usize) {
        let server = self.world.server(node);
        match self.world.chance(6) {
            0 => server.wipe(),
            1 => server.restart_without_last_write(),
            2 => server.save(),
            3 => server.restart_with_old_data(),
            _ => server.restart_empty(),
        }
    }

    fn reset(&self, process: ProcessId, node: usize) {
        let link = self.world.link(process, node);
        match self.world.chance(4) {
            0 => link.reset_before(),
            1 => link.reset_after(),
            2 => link.reset_and_deliver_later(self.world.span(ms(0), self.ttl)),
            _ => link.reset_amid(self.world.chance(3) as usize),
        }
    }

    /// A clock runs otherwise, within the allowance, or is set; or a key is evicted.
    fn clock_or_key(&self, node: usize) {
        let (world, server) = (&self.world, self.world.server(node));
        match world.chance(3) {
            0 if self.plan.stepped_clocks => server.step_forward(self.ttl),
            0 if self.plan.evictions => server.delete(JOB),
            1 if self.backward.get() > 0 => {
                self.backward.set(self.backward.get() - 1);
                server.step_back(world.span(ms(0), ms(20)));
            }
            _ => server.run_fast(super::rate(world)),
        }
    }
}
