//! What must hold in every world of the model.

use super::client::{Client, Phase};
use super::world::World;
use super::*;
use crate::quorum::search::Part;

impl World {
    /// All of them, after a step.
    pub(super) fn check(&self, scenario: &Scenario) -> Result<(), String> {
        self.one_holder()?;
        self.losses_in_time()?;
        self.expiries(scenario)?;
        if scenario.to_the_end {
            self.nothing_left()?;
        }
        Ok(())
    }

    /// Mutual exclusion: one client at most is inside its validity.
    fn one_holder(&self) -> Result<(), String> {
        let held = |client: &&Part<Client>| matches!(&client.phase, Phase::Holding(hold) if hold.is_held(self.now));
        let mut holders = self.clients.iter().filter(held);
        match (holders.next(), holders.next()) {
            (Some(one), Some(other)) => Err(format!(
                "two holders: c{} and c{}",
                one.number, other.number
            )),
            _ => Ok(()),
        }
    }

    /// No loss later than validity: a lease whose deadline has come says so.
    fn losses_in_time(&self) -> Result<(), String> {
        for client in &self.clients {
            if let Phase::Holding(hold) = &client.phase
                && !hold.is_held(self.now)
                && !hold.is_over(self.now)
            {
                return Err(format!("c{}: over, and not told", client.number));
            }
        }
        Ok(())
    }

    /// Every key has an expiry, and none further off than a TTL.
    fn expiries(&self, scenario: &Scenario) -> Result<(), String> {
        for (n, server) in self.servers.iter().enumerate() {
            let far = |key: super::server::Key| key.expires > server.time(self.now) + scenario.ttl;
            if server.key.is_some_and(far) {
                return Err(format!("n{n}: a key that outlives its TTL"));
            }
        }
        Ok(())
    }

    /// When every message has come and nobody holds or asks, no key is there.
    fn nothing_left(&self) -> Result<(), String> {
        let quiet = |client: &Part<Client>| {
            matches!(client.phase, Phase::Idle)
                && client.links.iter().all(|link| link.queue.is_empty())
        };
        if !self.strays.is_empty() || !self.clients.iter().all(quiet) {
            return Ok(());
        }
        match self.servers.iter().position(|server| server.key.is_some()) {
            Some(n) => Err(format!("n{n}: a key is left that nobody will delete")),
            None => Ok(()),
        }
    }

    /// Tokens grow from one holder to the next.
    pub(super) fn token_grows(&mut self, token: u64, number: usize) -> Result<(), String> {
        let before = std::mem::replace(&mut self.token, token);
        if token <= before {
            return Err(format!("c{number}: token {token} after {before}"));
        }
        Ok(())
    }
}
