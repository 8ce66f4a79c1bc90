//! The checks: from settings as they were given to settings that cannot be wrong.

use std::num::NonZeroU32;
use std::time::Duration;

use super::address::NodeAddress;
use super::duration::{self, show};
use super::error::{ConfigError, Origin, Unfit};
use super::setting::{NODES, Setting};
use super::settings::{Origins, Settings};
use super::value::{MOST_HANDOFFS, span, too_many};
use super::{Config, Given};
use crate::quorum::nodes::MOST_NODES;
use crate::quorum::{Cohort, Drift, GuardMode, Retry, Wait};

const LONGEST_PREFIX: usize = 1024;

/// The defaults of the README's table that follow from no other setting.
mod default {
    use std::time::Duration;

    pub(super) const PREFIX: &str = "quorumlock:";
    pub(super) const TTL: Duration = Duration::from_secs(10);
    pub(super) const MAX_TTL: Duration = Duration::from_secs(60);
    pub(super) const WAIT: Duration = Duration::from_secs(30);
    pub(super) const DRIFT_FACTOR: f64 = 0.01;
    pub(super) const DRIFT_MARGIN: Duration = Duration::from_millis(2);
    pub(super) const RETRY_DELAY: Duration = Duration::from_millis(20);
    pub(super) const RETRY_MAX_DELAY: Duration = Duration::from_millis(500);
    pub(super) const MAX_HANDOFFS: u32 = 64;
    pub(super) const MAX_TIME: Duration = Duration::from_millis(200);
    pub(super) const FENCE_RETENTION: Duration = Duration::from_secs(24 * 3600);
}

impl Config {
    /// Checks everything that can be checked without asking anybody.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    pub(crate) fn check(&self) -> Result<Settings, ConfigError> {
        let nodes = self.checked_nodes()?;
        self.settings(nodes)
    }

    /// The settings for nodes that were checked, or that need no address.
    ///
    /// # Errors
    /// As for [`Config::check`], but for the nodes.
    pub(crate) fn settings(&self, nodes: Vec<NodeAddress>) -> Result<Settings, ConfigError> {
        let max_ttl = checked(Setting::MaxTtl, &self.max_ttl)?.unwrap_or(default::MAX_TTL);
        let (drift, parts) = self.checked_drift()?;
        let restart_guard = value(&self.restart_guard).unwrap_or_default().into();
        let settings = Settings {
            nodes,
            hooks: self.hooks.clone(),
            prefix: self.checked_prefix()?,
            ttl: checked(Setting::Ttl, &self.ttl)?.unwrap_or(default::TTL),
            max_ttl,
            wait: self.checked_wait()?,
            node_timeout: checked(Setting::NodeTimeout, &self.node_timeout)?,
            drift,
            min_validity: checked(Setting::MinValidity, &self.min_validity)?.unwrap_or_default(),
            retry: self.checked_retry()?,
            auto_extend: value(&self.auto_extend).unwrap_or(true),
            extend_every: checked(Setting::ExtendEvery, &self.extend_every)?,
            max_hold: self.checked_max_hold()?,
            cohort: self.checked_cohort()?,
            restart_guard,
            restart_delay: self.checked_restart_delay(max_ttl, parts.0, restart_guard)?,
            fencing: value(&self.fencing).unwrap_or(true),
            fence_retention: checked(Setting::FenceRetention, &self.fence_retention)?
                .unwrap_or(default::FENCE_RETENTION),
            origins: Origins {
                ttl: origin(&self.ttl),
                max_ttl: origin(&self.max_ttl),
                node_timeout: origin(&self.node_timeout),
                drift_factor: origin(&self.drift_factor),
                drift_margin: origin(&self.drift_margin),
                min_validity: origin(&self.min_validity),
                extend_every: origin(&self.extend_every),
                drift: parts,
            },
        };
        settings.terms(None, settings.auto_extend)?;
        Ok(settings)
    }

    fn checked_nodes(&self) -> Result<Vec<NodeAddress>, ConfigError> {
        let whole = |value: String, problem: &str, remedy: &str| {
            ConfigError::new(NODES, value, problem, remedy).at(&self.nodes_origin)
        };
        if self.nodes.is_empty() {
            let remedy = "list the URLs of all nodes, in code, in a file or in QUORUMLOCK_NODES";
            return Err(whole(String::new(), "no node is given", remedy));
        }
        if self.nodes.len() > MOST_NODES {
            let value = format!("{} nodes", self.nodes.len());
            return Err(whole(value, "are more than 32 nodes", "5 are the rule"));
        }
        let mut addresses: Vec<NodeAddress> = Vec::with_capacity(self.nodes.len());
        for (index, node) in self.nodes.iter().enumerate() {
            let at = |unfit: Unfit, value: &str| {
                unfit
                    .of(format!("{NODES}[{index}]"), value)
                    .at(&node.origin)
            };
            let address = NodeAddress::of(node).map_err(|unfit| at(unfit, ""))?;
            if self.hooks.credentials.is_some() && address.has_password() {
                let problem = "has a password, and credentials_with gives another";
                let unfit = Unfit::new(problem, "give it in one of the two places");
                return Err(at(unfit, address.name()));
            }
            let twin = addresses
                .iter()
                .position(|other| other.server() == address.server());
            if let Some(other) = twin {
                let name = addresses.get(other).map_or("", NodeAddress::name);
                let problem = format!("is the same server as {NODES}[{other}], {name}");
                let remedy = "list independent servers only: one of them has one vote";
                return Err(at(Unfit::new(problem, remedy), address.name()));
            }
            addresses.push(address);
        }
        Ok(addresses)
    }

    fn checked_prefix(&self) -> Result<String, ConfigError> {
        let Some(given) = &self.prefix else {
            return Ok(default::PREFIX.to_owned());
        };
        if given.value.len() > LONGEST_PREFIX {
            let length = format!("{} bytes", given.value.len());
            let unfit = Unfit::new("is longer than 1 KiB", "use a shorter one");
            return Err(unfit.of(Setting::Prefix.name(), length).at(&given.origin));
        }
        Ok(given.value.clone())
    }

    fn checked_wait(&self) -> Result<Wait, ConfigError> {
        let Some(given) = &self.wait else {
            return Ok(Wait::For(default::WAIT));
        };
        if let Wait::For(limit) = given.value {
            duration::check(limit, span(Setting::Wait)).map_err(|unfit| {
                let unfit = Unfit::new(unfit.problem, "wait for less, or forever");
                unfit
                    .of(Setting::Wait.name(), show(limit))
                    .at(&given.origin)
            })?;
        }
        Ok(given.value)
    }

    fn checked_drift(&self) -> Result<(Drift, (f64, Duration)), ConfigError> {
        let margin = checked(Setting::DriftMargin, &self.drift_margin)?;
        let margin = margin.unwrap_or(default::DRIFT_MARGIN);
        let factor = value(&self.drift_factor).unwrap_or(default::DRIFT_FACTOR);
        // At 1 the allowance is the whole TTL.
        let drift = Drift::new(factor, margin).filter(|_| factor < 1.0);
        match drift {
            Some(drift) => Ok((drift, (factor, margin))),
            None => {
                let remedy = "write 0.01 for one percent";
                let unfit = Unfit::new("is not a number from 0 to below 1", remedy);
                let error = unfit.of(Setting::DriftFactor.name(), factor.to_string());
                Err(error.at(&origin(&self.drift_factor)))
            }
        }
    }

    fn checked_retry(&self) -> Result<Retry, ConfigError> {
        let attempts = match &self.retry_attempts {
            Some(Given {
                value: Some(0),
                origin,
            }) => {
                let problem = "an acquire makes at least one attempt";
                let unfit = Unfit::new(problem, "write 1 for no retry");
                return Err(unfit.of(Setting::RetryAttempts.name(), "0").at(origin));
            }
            Some(given) => given.value.and_then(NonZeroU32::new),
            None => None,
        };
        let delay = checked(Setting::RetryDelay, &self.retry_delay)?;
        let max_delay = checked(Setting::RetryMaxDelay, &self.retry_max_delay)?;
        let retry = Retry {
            delay: delay.unwrap_or(default::RETRY_DELAY),
            max_delay: max_delay.unwrap_or(default::RETRY_MAX_DELAY),
            jitter: value(&self.retry_jitter).unwrap_or_default().into(),
            attempts,
        };
        if retry.delay <= retry.max_delay {
            return Ok(retry);
        }
        let (delay_from, max_from) = (origin(&self.retry_delay), origin(&self.retry_max_delay));
        if delay.is_some() {
            let problem = format!(
                "is longer than retry.max_delay, which is {} ({max_from})",
                show(retry.max_delay)
            );
            let unfit = Unfit::new(problem, "lower it, or raise retry.max_delay");
            return Err(unfit
                .of(Setting::RetryDelay.name(), show(retry.delay))
                .at(&delay_from));
        }
        let problem = format!(
            "is shorter than retry.delay, which is {} ({delay_from})",
            show(retry.delay)
        );
        let unfit = Unfit::new(problem, "raise it, or lower retry.delay");
        Err(unfit
            .of(Setting::RetryMaxDelay.name(), show(retry.max_delay))
            .at(&max_from))
    }

    fn checked_max_hold(&self) -> Result<Option<Duration>, ConfigError> {
        let Some(given) = &self.max_hold else {
            return Ok(None);
        };
        if let Some(most) = given.value {
            duration::check(most, span(Setting::MaxHold)).map_err(|unfit| {
                unfit
                    .of(Setting::MaxHold.name(), show(most))
                    .at(&given.origin)
            })?;
        }
        Ok(given.value)
    }

    fn checked_cohort(&self) -> Result<Cohort, ConfigError> {
        if let Some(given) = &self.cohort_max_handoffs
            && given.value > MOST_HANDOFFS
        {
            let name = Setting::CohortMaxHandoffs.name();
            let error = too_many(MOST_HANDOFFS).of(name, given.value.to_string());
            return Err(error.at(&given.origin));
        }
        Ok(Cohort {
            max_handoffs: value(&self.cohort_max_handoffs).unwrap_or(default::MAX_HANDOFFS),
            max_time: checked(Setting::CohortMaxTime, &self.cohort_max_time)?
                .unwrap_or(default::MAX_TIME),
        })
    }

    /// P10: a node may forget a lease of `max_ttl` when it stops, and its uptime, by which it is
    /// judged, is in whole seconds.
    fn checked_restart_delay(
        &self,
        max_ttl: Duration,
        drift_factor: f64,
        guard: GuardMode,
    ) -> Result<Duration, ConfigError> {
        // The factor has been checked.
        let share = Drift::new(drift_factor, Duration::ZERO)
            .map_or(max_ttl, |drift| drift.allowance(max_ttl));
        let forgotten = max_ttl.saturating_add(share);
        let second = Duration::from_secs(1);
        let least = forgotten.saturating_add(second);
        let Some(given) = &self.restart_delay else {
            let partial = u64::from(forgotten.subsec_nanos() > 0);
            let whole = Duration::from_secs(forgotten.as_secs().saturating_add(partial));
            return Ok(whole.saturating_add(second));
        };
        let delay = checked(Setting::RestartDelay, &self.restart_delay)?.unwrap_or(given.value);
        if guard != GuardMode::Off && delay < least {
            let problem = format!(
                "is too short: a node that restarted empty could grant a lock that is still \
                 held, until {} have passed (max_ttl {}, drift.factor {drift_factor}, 1s)",
                show(least),
                show(max_ttl)
            );
            let remedy = "raise it, lower max_ttl on every client of these nodes, or set \
                          restart_guard to \"off\"";
            let unfit = Unfit::new(problem, remedy);
            return Err(unfit
                .of(Setting::RestartDelay.name(), show(delay))
                .at(&given.origin));
        }
        Ok(delay)
    }
}

fn value<T: Copy>(given: &Option<Given<T>>) -> Option<T> {
    given.as_ref().map(|given| given.value)
}

fn origin<T>(given: &Option<Given<T>>) -> Origin {
    given
        .as_ref()
        .map_or(Origin::Default, |given| given.origin.clone())
}

fn checked(
    setting: Setting,
    given: &Option<Given<Duration>>,
) -> Result<Option<Duration>, ConfigError> {
    let Some(given) = given else {
        return Ok(None);
    };
    duration::check(given.value, span(setting)).map_err(|unfit| {
        unfit
            .of(setting.name(), show(given.value))
            .at(&given.origin)
    })?;
    Ok(Some(given.value))
}

#[cfg(test)]
mod tests;
