//! What must hold in every world of the swarm, one file each.
//!
//! ```text
//!   after each step   one_holder  loss_in_time  token_order  expiry  after_release  bounds
//!   at each grant     distinct_servers      at each error   true_errors
//!   in the end        liveness  leftovers
//! ```

mod after_release;
mod bounds;
pub mod distinct_servers;
mod expiry;
pub mod leftovers;
pub mod liveness;
mod loss_in_time;
mod one_holder;
mod token_order;
pub mod true_errors;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use quorumlock::testing::world::{ProcessId, World};
use quorumlock::{FencingToken, Guard, Held};

use crate::swarm::Plan;

/// One guard, as the invariants see it.
pub struct Hold {
    process: ProcessId,
    held: Held,
    /// Since when it is over while its process ran, and whether its task has heard of it.
    over: Cell<Option<Duration>>,
    heard: Rc<Cell<bool>>,
}

/// What the workers and the invariants share.
pub struct Seen {
    pub world: World,
    pub plan: Plan,
    /// The lock's, and the longest that an extension by hand may ask for.
    pub ttl: Duration,
    pub longest: Duration,
    pub granted: Cell<u64>,
    /// A ticket was never taken up: its keys last as long as they were extended for.
    pub abandoned: Cell<bool>,
    holds: RefCell<Vec<Hold>>,
    /// The last guard's.
    token: Cell<FencingToken>,
    /// What went wrong between two steps.
    broken: Cell<Option<String>>,
}

impl Seen {
    pub fn new(world: &World, plan: Plan, ttl: Duration, longest: Duration) -> Self {
        Seen {
            world: world.clone(),
            plan,
            ttl,
            longest,
            granted: Cell::new(0),
            abandoned: Cell::new(false),
            holds: RefCell::default(),
            token: Cell::new(FencingToken::NONE),
            broken: Cell::default(),
        }
    }

    /// A guard has come to `process`; `attached` with the token of an earlier one.
    pub fn grant(&self, process: ProcessId, guard: &Guard, attached: bool) {
        let world = &self.world;
        self.granted.set(self.granted.get() + 1);
        world.note(|| format!("c{process} holds for {:?}", guard.remaining()));
        self.report(token_order::next(
            self,
            process,
            guard.fencing_token(),
            attached,
        ));
        self.report(distinct_servers::check(self, process));
        let heard = Rc::new(Cell::new(false));
        let (lost, flag) = (guard.lost(), Rc::clone(&heard));
        let noting = world.clone();
        drop(world.spawn(process, async move {
            let loss = lost.await;
            noting.note(|| format!("c{process} hears: {loss}"));
            flag.set(true);
        }));
        self.holds.borrow_mut().push(Hold {
            process,
            held: guard.held(),
            over: Cell::new(None),
            heard,
        });
    }

    /// Keeps what was found between two steps for the end of this one.
    pub fn report(&self, found: Result<(), String>) {
        if let Err(what) = found {
            self.broken.set(Some(what));
        }
    }

    /// # Errors
    /// The invariant that does not hold.
    pub fn after_each_step(&self) -> Result<(), String> {
        if let Some(what) = self.broken.take() {
            return Err(what);
        }
        one_holder::check(self)?;
        loss_in_time::check(self)?;
        expiry::check(self)?;
        after_release::check(self)?;
        bounds::check(self)?;
        let mut holds = self.holds.borrow_mut();
        holds.retain(|hold| !(hold.heard.get() && hold.over.get().is_some()));
        Ok(())
    }
}
