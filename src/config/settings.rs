//! Settings that passed their checks, and the times of one lock that follow from them.

use std::time::Duration;

use super::address::NodeAddress;
use super::duration::{self, Span, show};
use super::error::{ConfigError, Origin};
use super::setting::Setting;
use crate::node::connect::Target;
use crate::node::hook::Hooks;
use crate::quorum::{Cohort, Drift, GuardMode, Retry, Timing, TimingError, Wait};

const SHORTEST_NODE_TIMEOUT: Duration = Duration::from_millis(50);
const LONGEST_NODE_TIMEOUT: Duration = Duration::from_millis(500);

/// The settings of a client. All that is left to check is a lock's own TTL.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) nodes: Vec<NodeAddress>,
    pub(crate) hooks: Hooks,
    pub(crate) prefix: String,
    pub(crate) ttl: Duration,
    pub(crate) max_ttl: Duration,
    pub(crate) wait: Wait,
    /// `None` for one that follows from the TTL.
    pub(crate) node_timeout: Option<Duration>,
    pub(crate) drift: Drift,
    pub(crate) min_validity: Duration,
    pub(crate) retry: Retry,
    pub(crate) auto_extend: bool,
    /// `None` for one that follows from the TTL.
    pub(crate) extend_every: Option<Duration>,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) cohort: Cohort,
    pub(crate) restart_guard: GuardMode,
    pub(crate) restart_delay: Duration,
    pub(crate) fencing: bool,
    pub(crate) fence_retention: Duration,
    pub(super) origins: Origins,
}

/// Where the settings came from whose relations are checked for each lock.
#[derive(Clone, Debug, Default)]
pub(super) struct Origins {
    pub(super) ttl: Origin,
    pub(super) max_ttl: Origin,
    pub(super) node_timeout: Origin,
    pub(super) drift_factor: Origin,
    pub(super) drift_margin: Origin,
    pub(super) min_validity: Origin,
    pub(super) extend_every: Origin,
    /// The two parts of `drift`, for messages.
    pub(super) drift: (f64, Duration),
}

impl Settings {
    /// The times of a lock with this TTL, or with the TTL of the settings.
    ///
    /// Unless it was set, a node's budget is a twentieth of the TTL within 50 ms to 500 ms, but a
    /// quarter of the validity where it would be half of it or more.
    ///
    /// # Errors
    /// The setting that leaves no room: the TTL itself, or one that it has to fit.
    pub(crate) fn timing(&self, ttl: Option<Duration>) -> Result<Timing, ConfigError> {
        let (ttl, origin) = match ttl {
            Some(ttl) => (ttl, &Origin::Code),
            None => (self.ttl, &self.origins.ttl),
        };
        duration::check(ttl, Span::Stored)
            .map_err(|unfit| unfit.of(Setting::Ttl.name(), show(ttl)).at(origin))?;
        if ttl > self.max_ttl {
            let problem = format!(
                "is longer than max_ttl, which is {} ({})",
                show(self.max_ttl),
                self.origins.max_ttl
            );
            let remedy = "lower ttl, or raise max_ttl on every client of these nodes";
            return Err(error(Setting::Ttl, show(ttl), problem, remedy, origin));
        }
        let validity = ttl.saturating_sub(self.drift.allowance(ttl));
        let node_timeout = self
            .node_timeout
            .unwrap_or_else(|| derived_node_timeout(ttl, validity));
        Timing::new(ttl, self.drift, node_timeout, self.min_validity)
            .map_err(|why| self.misfit(why, ttl, origin))
    }

    /// The times of a lock, and how long after each grant or extension the next one is due:
    /// `None` unless the lease is extended at all.
    ///
    /// Unless it was set, that is a third of the TTL, or half of the validity where that is less.
    ///
    /// # Errors
    /// As for [`Settings::timing`], and where an extension could end after the validity.
    pub(crate) fn terms(
        &self,
        ttl: Option<Duration>,
        auto_extend: bool,
    ) -> Result<(Timing, Option<Duration>), ConfigError> {
        let timing = self.timing(ttl)?;
        if !auto_extend {
            return Ok((timing, None));
        }
        let ttl = timing.ttl();
        let validity = ttl.saturating_sub(self.drift.allowance(ttl));
        let every = self.extend_every.unwrap_or((ttl / 3).min(validity / 2));
        if every.saturating_add(timing.node_timeout()) < validity {
            return Ok((timing, Some(every)));
        }
        // A derived `extend_every` always has room beside a derived `node_timeout`.
        let (setting, value, origin) = match self.extend_every {
            Some(every) => (Setting::ExtendEvery, every, &self.origins.extend_every),
            None => {
                let timeout = timing.node_timeout();
                (Setting::NodeTimeout, timeout, &self.origins.node_timeout)
            }
        };
        let problem = format!(
            "leaves no room for an extension: extend_every ({}) and node_timeout ({}) together \
             must be less than the validity of {} that a ttl of {} gives",
            show(every),
            show(timing.node_timeout()),
            show(validity),
            show(ttl)
        );
        let remedy = "lower extend_every or node_timeout, raise ttl, or set auto_extend to false";
        Err(error(setting, show(value), problem, remedy, origin))
    }

    /// The settings `drift.factor` and `drift.margin`.
    pub(crate) fn drift_parts(&self) -> (f64, Duration) {
        self.origins.drift
    }

    /// How the restart guard works.
    pub(crate) fn guard_mode(&self) -> GuardMode {
        self.restart_guard
    }

    /// The nodes for people to read, in the order of the configuration.
    pub(crate) fn node_names(&self) -> Vec<String> {
        self.nodes
            .iter()
            .map(|node| node.name().to_owned())
            .collect()
    }

    /// Where the nodes are, in the order of the configuration.
    pub(crate) fn targets(&self) -> Vec<Target> {
        let target = |node: &NodeAddress| node.target(&self.hooks);
        self.nodes.iter().map(target).collect()
    }

    fn misfit(&self, why: TimingError, ttl: Duration, origin: &Origin) -> ConfigError {
        let gives = |validity| {
            format!(
                "is not less than the validity of {} that a ttl of {} gives",
                show(validity),
                show(ttl)
            )
        };
        match why {
            TimingError::Ttl => {
                let problem = "cannot be stored on a node";
                let remedy = "write whole milliseconds, ten years at most";
                error(Setting::Ttl, show(ttl), problem.into(), remedy, origin)
            }
            TimingError::NoValidity { allowance } => self.no_validity(ttl, allowance, origin),
            TimingError::NodeTimeout { validity } => error(
                Setting::NodeTimeout,
                show(self.node_timeout.unwrap_or_default()),
                gives(validity),
                "lower node_timeout, or raise ttl",
                &self.origins.node_timeout,
            ),
            TimingError::MinValidity { validity } => error(
                Setting::MinValidity,
                show(self.min_validity),
                gives(validity),
                "lower min_validity, or raise ttl",
                &self.origins.min_validity,
            ),
        }
    }

    /// Names the TTL, unless nobody set that and somebody set the drift.
    fn no_validity(&self, ttl: Duration, allowance: Duration, origin: &Origin) -> ConfigError {
        let (factor, margin) = self.origins.drift;
        let set = |origin: &Origin| *origin != Origin::Default;
        let (setting, value, origin) = if set(origin) {
            (Setting::Ttl, show(ttl), origin)
        } else if set(&self.origins.drift_margin) && margin >= allowance / 2 {
            let origin = &self.origins.drift_margin;
            (Setting::DriftMargin, show(margin), origin)
        } else {
            let origin = &self.origins.drift_factor;
            (Setting::DriftFactor, factor.to_string(), origin)
        };
        let problem = format!(
            "leaves no validity: the drift allowance is {} (drift.factor {factor} of the ttl of \
             {}, and drift.margin {})",
            show(allowance),
            show(ttl),
            show(margin)
        );
        let remedy = "raise ttl, or lower drift.factor or drift.margin";
        error(setting, value, problem, remedy, origin)
    }
}

fn derived_node_timeout(ttl: Duration, validity: Duration) -> Duration {
    let usual = (ttl / 20).clamp(SHORTEST_NODE_TIMEOUT, LONGEST_NODE_TIMEOUT);
    if usual < validity / 2 {
        return usual;
    }
    // Never zero, whatever is left.
    (validity / 4).max(Duration::from_nanos(1))
}

fn error(
    setting: Setting,
    value: String,
    problem: String,
    remedy: &str,
    origin: &Origin,
) -> ConfigError {
    ConfigError::new(setting.name(), value, problem, remedy).at(origin)
}

#[cfg(test)]
mod tests;
