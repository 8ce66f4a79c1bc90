//! Settings: how they are given, and the checks they pass before anything is sent.
//!
//! ```text
//!  builder ──┐
//!  TOML ─────┼─► Config ── check ─► Settings ── timing(ttl) ─► quorum::Timing
//!  variables ┘   as given,          complete,                  one lock's times,
//!                with origins       cannot be wrong            fit to each other
//! ```
//!
//! **Invariant:** nothing here opens a connection, and no file or variable that holds a password
//! is read before a connection needs it. No message holds any part of a password.

mod address;
mod builder;
mod check;
mod duration;
mod effective;
mod env;
mod error;
#[cfg(feature = "serde")]
mod file;
mod hooks;
mod node;
mod resource;
mod secret;
mod setting;
mod settings;
mod url;
mod value;

use std::fmt;
use std::time::Duration;

pub(crate) use duration::show;
pub use effective::Effective;
pub use error::{ConfigError, Origin};
pub use node::Node;
pub(crate) use resource::check_resource;
pub(crate) use settings::Settings;

use crate::node::hook::Hooks;
use crate::quorum::{self, GuardMode, Wait};

/// How much of the delay between two rounds is left to chance: the setting `retry.jitter`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Jitter {
    /// Anything from nothing to the whole delay. Contenders that collided once part soonest.
    #[default]
    Full,
    /// At least half of the delay.
    Equal,
    /// None at all: for tests, and for one who knows to be alone.
    None,
}

/// Whether a node that has just started has a vote: the setting `restart_guard`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestartGuard {
    /// Not before `restart_delay` has passed, unless all nodes are new.
    #[default]
    Auto,
    /// Never before `restart_delay` has passed.
    Strict,
    /// At once. A node that came back empty may then grant what it has granted before.
    Off,
}

impl From<Jitter> for quorum::Jitter {
    fn from(jitter: Jitter) -> Self {
        match jitter {
            Jitter::Full => quorum::Jitter::Full,
            Jitter::Equal => quorum::Jitter::Equal,
            Jitter::None => quorum::Jitter::None,
        }
    }
}

impl From<RestartGuard> for GuardMode {
    fn from(guard: RestartGuard) -> Self {
        match guard {
            RestartGuard::Auto => GuardMode::Auto,
            RestartGuard::Strict => GuardMode::Strict,
            RestartGuard::Off => GuardMode::Off,
        }
    }
}

/// A value, and who gave it.
#[derive(Clone)]
struct Given<T> {
    value: T,
    origin: Origin,
}

impl<T> Given<T> {
    fn some(value: T, origin: &Origin) -> Option<Self> {
        Some(Given {
            value,
            origin: origin.clone(),
        })
    }
}

impl<T: fmt::Debug> fmt::Debug for Given<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({})", self.value, self.origin)
    }
}

/// The settings of a client, as they were given.
///
/// Begin with [`Config::new`], [`Config::from_env`] or, with the feature `serde`,
/// `Config::from_file`; what comes later replaces what came before. What was not given has its
/// default. Nothing is checked as a whole before [`Config::validate`], or before a client is made
/// of it, which does the same.
///
/// `Debug` shows what was given and by whom, and no password.
///
/// ```
/// use std::time::Duration;
/// use quorumlock::Config;
///
/// let config = Config::new(["redis://a:6379", "redis://b:6379", "redis://c:6379"])
///     .prefix("billing:")
///     .ttl(Duration::from_secs(5))
///     .wait_forever();
/// config.validate()?;
/// # Ok::<(), quorumlock::ConfigError>(())
/// ```
///
/// ```
/// use std::time::Duration;
/// use quorumlock::{Config, Jitter, RestartGuard};
///
/// let (ms, s) = (Duration::from_millis, Duration::from_secs);
/// let config = Config::default()
///     .node("redis://a:6379")
///     .node("redis://b:6379")
///     .node("redis://c:6379")
///     // The lease, and how long to wait for it.
///     .ttl(s(5)).max_ttl(s(30)).wait(s(10)).min_validity(ms(500))
///     // What a node and the clocks are given.
///     .node_timeout(ms(200)).drift_factor(0.01).drift_margin(ms(2))
///     // Where nobody tells that a lock is free.
///     .retry_delay(ms(20)).retry_max_delay(ms(200)).retry_jitter(Jitter::Equal).retry_attempts(100)
///     // How guards go on, and end.
///     .auto_extend(true).extend_every(s(1)).max_hold(s(3600))
///     .cohort_max_handoffs(16).cohort_max_time(ms(100))
///     // Nodes that come back, and tokens.
///     .restart_guard(RestartGuard::Strict).restart_delay(s(60))
///     .fencing(true).fence_retention(s(3600));
/// let settings = config.effective()?;
/// let value = |name: &str| {
///     let found = settings.iter().find(|setting| setting.name() == name);
///     found.map(|setting| setting.value().to_owned())
/// };
/// assert_eq!(value("ttl").as_deref(), Some("\"5s\""));
/// assert_eq!(value("restart_guard").as_deref(), Some("\"strict\""));
/// # Ok::<(), quorumlock::ConfigError>(())
/// ```
#[derive(Clone, Default)]
#[must_use = "settings do nothing before a client is made of them"]
pub struct Config {
    nodes: Vec<Node>,
    /// Where the list as a whole came from, for a list that is no good as a whole.
    nodes_origin: Origin,
    prefix: Option<Given<String>>,
    ttl: Option<Given<Duration>>,
    max_ttl: Option<Given<Duration>>,
    wait: Option<Given<Wait>>,
    node_timeout: Option<Given<Duration>>,
    drift_factor: Option<Given<f64>>,
    drift_margin: Option<Given<Duration>>,
    min_validity: Option<Given<Duration>>,
    retry_delay: Option<Given<Duration>>,
    retry_max_delay: Option<Given<Duration>>,
    retry_jitter: Option<Given<Jitter>>,
    retry_attempts: Option<Given<Option<u32>>>,
    auto_extend: Option<Given<bool>>,
    extend_every: Option<Given<Duration>>,
    max_hold: Option<Given<Option<Duration>>>,
    cohort_max_handoffs: Option<Given<u32>>,
    cohort_max_time: Option<Given<Duration>>,
    restart_guard: Option<Given<RestartGuard>>,
    restart_delay: Option<Given<Duration>>,
    fencing: Option<Given<bool>>,
    fence_retention: Option<Given<Duration>>,
    hooks: Hooks,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Config");
        out.field("nodes", &self.nodes);
        let mut show = |name: &str, given: Option<&dyn fmt::Debug>| {
            if let Some(given) = given {
                out.field(name, given);
            }
        };
        fn any<T: fmt::Debug>(given: &Option<Given<T>>) -> Option<&dyn fmt::Debug> {
            given.as_ref().map(|given| given as &dyn fmt::Debug)
        }
        show("prefix", any(&self.prefix));
        show("ttl", any(&self.ttl));
        show("max_ttl", any(&self.max_ttl));
        show("wait", any(&self.wait));
        show("node_timeout", any(&self.node_timeout));
        show("drift.factor", any(&self.drift_factor));
        show("drift.margin", any(&self.drift_margin));
        show("min_validity", any(&self.min_validity));
        show("retry.delay", any(&self.retry_delay));
        show("retry.max_delay", any(&self.retry_max_delay));
        show("retry.jitter", any(&self.retry_jitter));
        show("retry.attempts", any(&self.retry_attempts));
        show("auto_extend", any(&self.auto_extend));
        show("extend_every", any(&self.extend_every));
        show("max_hold", any(&self.max_hold));
        show("cohort.max_handoffs", any(&self.cohort_max_handoffs));
        show("cohort.max_time", any(&self.cohort_max_time));
        show("restart_guard", any(&self.restart_guard));
        show("restart_delay", any(&self.restart_delay));
        show("fencing", any(&self.fencing));
        show("fence_retention", any(&self.fence_retention));
        let given = |hook: bool| hook.then_some(&"given" as &dyn fmt::Debug);
        show("connect_with", given(self.hooks.connect.is_some()));
        show("credentials_with", given(self.hooks.credentials.is_some()));
        out.finish_non_exhaustive()
    }
}
