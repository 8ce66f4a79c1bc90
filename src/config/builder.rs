//! The settings one by one, from code.

use std::time::Duration;

use super::error::Origin;
use super::{Config, Given, Jitter, Node, RestartGuard};
use crate::quorum::Wait;

fn code<T>(value: T) -> Option<Given<T>> {
    Given::some(value, &Origin::Code)
}

impl Config {
    /// Begins with the URLs of the nodes: `redis://`, `rediss://` (feature `tls`) or `unix://`.
    /// See [`Node`] for what a URL may say, and for nodes that need more.
    ///
    /// Every client of one set of locks must be given the same nodes: two clients whose lists
    /// differ may both find a majority.
    ///
    /// ```
    /// use quorumlock::Config;
    ///
    /// assert!(Config::new(["redis://a", "redis://b", "redis://c"]).validate().is_ok());
    /// assert!(Config::new(["a:6379"]).validate().is_err());
    /// ```
    pub fn new(urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Config {
            nodes: urls.into_iter().map(Node::url).collect(),
            nodes_origin: Origin::Code,
            ..Config::default()
        }
    }

    /// Adds one node to those that are there.
    pub fn node(mut self, node: impl Into<Node>) -> Self {
        self.nodes.push(node.into());
        self.nodes_origin = Origin::Code;
        self
    }

    /// What stands before every key: any text of up to 1 KiB. Default: `quorumlock:`.
    ///
    /// Locks under different prefixes have nothing to do with each other.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = code(prefix.into());
        self
    }

    /// How long a lease lasts unless it is extended: whole milliseconds, `max_ttl` at most.
    /// Default: 10 s.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = code(ttl);
        self
    }

    /// The longest TTL that any client of these nodes may use; must be the same for all of them,
    /// since `restart_delay` stands on it. Default: 60 s.
    pub fn max_ttl(mut self, max_ttl: Duration) -> Self {
        self.max_ttl = code(max_ttl);
        self
    }

    /// How long an acquire waits for a lock that is not free; zero for one round only. It has
    /// nothing to do with `ttl`. Default: 30 s.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = code(Wait::For(wait));
        self
    }

    /// Lets an acquire wait until it has the lock. `wait = "forever"` in files.
    pub fn wait_forever(mut self) -> Self {
        self.wait = code(Wait::Forever);
        self
    }

    /// How long one node may take in one round, connecting included. Default: a twentieth of the
    /// TTL, but from 50 ms to 500 ms; a quarter of the validity where the TTL is so short that
    /// this would be half of its validity or more.
    pub fn node_timeout(mut self, timeout: Duration) -> Self {
        self.node_timeout = code(timeout);
        self
    }

    /// How far clocks may run apart, as a share of the TTL: from 0 to below 1. Default: 0.01,
    /// one percent.
    ///
    /// It has to cover the rates of the holder's clock and of the nodes'. A time daemon may slew
    /// faster than one percent: chrony by up to 8.3 % unless it is told otherwise.
    pub fn drift_factor(mut self, factor: f64) -> Self {
        self.drift_factor = code(factor);
        self
    }

    /// What the drift allowance has on top, whatever the TTL. Default: 2 ms.
    pub fn drift_margin(mut self, margin: Duration) -> Self {
        self.drift_margin = code(margin);
        self
    }

    /// The least validity that is worth having when a lock is granted; with less, it is given
    /// back. Default: 0.
    pub fn min_validity(mut self, validity: Duration) -> Self {
        self.min_validity = code(validity);
        self
    }

    /// The first delay between two rounds, before jitter; it doubles with each. Default: 20 ms.
    pub fn retry_delay(mut self, delay: Duration) -> Self {
        self.retry_delay = code(delay);
        self
    }

    /// The longest delay between two rounds. Default: 500 ms.
    pub fn retry_max_delay(mut self, delay: Duration) -> Self {
        self.retry_max_delay = code(delay);
        self
    }

    /// What chance does to a delay. Default: [`Jitter::Full`].
    pub fn retry_jitter(mut self, jitter: Jitter) -> Self {
        self.retry_jitter = code(jitter);
        self
    }

    /// The most rounds of one acquire, the first included: 1 for no retry. Default: as many as
    /// `wait` allows, `"unlimited"` in files.
    pub fn retry_attempts(mut self, attempts: u32) -> Self {
        self.retry_attempts = code(Some(attempts));
        self
    }

    /// Whether guards extend their lease themselves. Default: yes.
    pub fn auto_extend(mut self, auto_extend: bool) -> Self {
        self.auto_extend = code(auto_extend);
        self
    }

    /// How long after a grant or an extension the next extension begins. Default: a third of the
    /// TTL, or half of the validity where that is less.
    pub fn extend_every(mut self, every: Duration) -> Self {
        self.extend_every = code(every);
        self
    }

    /// How long a guard may hold its lock, however often the lease is extended; `None` for as
    /// long as it lives, `"none"` in files. Default: `None`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use quorumlock::Config;
    ///
    /// let config = Config::new(["redis://a"]).max_hold(Duration::from_secs(3600));
    /// config.validate()?;
    /// config.max_hold(None).validate()?;
    /// # Ok::<(), quorumlock::ConfigError>(())
    /// ```
    pub fn max_hold(mut self, most: impl Into<Option<Duration>>) -> Self {
        self.max_hold = code(most.into());
        self
    }

    /// How often in a row a lock is handed on to the next in line of the same client, without
    /// asking the nodes, before it is really released and other clients have their chance; 0 for
    /// never. Default: 64; at most 65,535.
    ///
    /// Each holder has a guard, a loss signal and a fencing token of its own. A lock whose guards
    /// do not extend themselves is never handed on: its holder counts on a whole TTL.
    pub fn cohort_max_handoffs(mut self, handoffs: u32) -> Self {
        self.cohort_max_handoffs = code(handoffs);
        self
    }

    /// How long after its grant a lock may still be handed on within the client. Default: 200 ms.
    pub fn cohort_max_time(mut self, time: Duration) -> Self {
        self.cohort_max_time = code(time);
        self
    }

    /// Whether a node that has just started has a vote. Default: [`RestartGuard::Auto`].
    pub fn restart_guard(mut self, guard: RestartGuard) -> Self {
        self.restart_guard = code(guard);
        self
    }

    /// How long a node that has started must wait for its vote. Default, and least:
    /// `max_ttl` × (1 + `drift.factor`) + 1 s; the default is rounded up to whole seconds.
    pub fn restart_delay(mut self, delay: Duration) -> Self {
        self.restart_delay = code(delay);
        self
    }

    /// Whether grants carry a fencing token: a number that grows from holder to holder, by which a
    /// resource can refuse the late writes of a paused one. Default: yes.
    ///
    /// Without it a grant costs the nodes a fifth of the CPU time, guards have
    /// [`FencingToken::NONE`](crate::FencingToken::NONE), and nothing stops a holder that acts
    /// after its validity. All clients of one lock must agree: the grants of a client without
    /// fencing move no counter, and leave no trace in the order of the tokens.
    pub fn fencing(mut self, fencing: bool) -> Self {
        self.fencing = code(fencing);
        self
    }

    /// How long the nodes keep a resource's fencing counter after its last grant: whole
    /// milliseconds. Tokens grow beyond that, too, by the nodes' clocks; a counter is never kept
    /// for less than `max_ttl`. Default: 24 h.
    pub fn fence_retention(mut self, retention: Duration) -> Self {
        self.fence_retention = code(retention);
        self
    }

    /// Checks all settings, alone and against each other. Making a client does the same.
    ///
    /// Does no I/O: passwords in variables and files are read when a connection is made.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    ///
    /// ```
    /// use quorumlock::Config;
    ///
    /// let error = Config::new(["redis://a", "redis://a:6379/1"]).validate().unwrap_err();
    /// assert_eq!(error.setting(), "nodes[1]");
    /// assert!(error.problem().contains("same server"));
    /// ```
    pub fn validate(&self) -> Result<(), super::ConfigError> {
        self.check().map(drop)
    }
}
