//! Settings that fit. Nothing is proposed that a client could not be made of.

use std::time::Duration;

use crate::config::{Settings, show};
use crate::quorum::{Drift, GuardMode};

/// Settings by name and by value.
pub(super) type Proposals = Vec<(&'static str, String)>;

/// How many node timeouts a TTL has by default.
pub(super) const TIMEOUTS_A_TTL: u32 = 20;

/// The settings with this `node_timeout`; where the TTL has no room for it, with a longer TTL.
pub(super) fn node_timeout(settings: &Settings, wanted: Duration) -> Proposals {
    let mut fitting = settings.clone();
    fitting.node_timeout = Some(wanted);
    let mut changes = vec![("node_timeout", show(wanted))];
    if !fits(&fitting) {
        let least = wanted.saturating_mul(TIMEOUTS_A_TTL);
        changes.extend(longer_ttl(&mut fitting, least));
    }
    kept(&fitting, changes)
}

/// The settings with this TTL.
pub(super) fn ttl(settings: &Settings, wanted: Duration) -> Proposals {
    let mut fitting = settings.clone();
    let changes = longer_ttl(&mut fitting, wanted);
    kept(&fitting, changes)
}

/// The settings with this `max_ttl`.
pub(super) fn max_ttl(settings: &Settings, wanted: Duration) -> Proposals {
    let mut fitting = settings.clone();
    let changes = larger_max_ttl(&mut fitting, wanted);
    kept(&fitting, changes)
}

/// The settings with this `drift.factor` and `drift.margin`, and a TTL that leaves validity.
pub(super) fn drift(settings: &Settings, factor: f64, margin: Duration) -> Proposals {
    let (old_factor, old_margin) = settings.drift_parts();
    let Some(drift) = Drift::new(factor, margin).filter(|_| factor < 1.0) else {
        return Vec::new();
    };
    let mut fitting = settings.clone();
    fitting.drift = drift;
    let mut changes = Vec::new();
    if factor > old_factor {
        changes.push(("drift.factor", factor.to_string()));
    }
    if margin > old_margin {
        changes.push(("drift.margin", show(margin)));
    }
    if !fits(&fitting) {
        changes.extend(longer_ttl(
            &mut fitting,
            margin.saturating_mul(TIMEOUTS_A_TTL),
        ));
    }
    changes.extend(later_restart(&mut fitting));
    kept(&fitting, changes)
}

/// The least `restart_delay` for clocks that are wrong by `factor` (P10).
pub(super) fn forgotten_within(max_ttl: Duration, factor: f64) -> Duration {
    let share = Drift::new(factor.min(1.0), Duration::ZERO);
    let share = share.map_or(max_ttl, |drift| drift.allowance(max_ttl));
    let second = Duration::from_secs(1);
    max_ttl.saturating_add(share).saturating_add(second)
}

/// The same, in whole seconds.
pub(super) fn restart_delay(max_ttl: Duration, factor: f64) -> Duration {
    let least = forgotten_within(max_ttl, factor);
    let part = u64::from(least.subsec_nanos() > 0);
    Duration::from_secs(least.as_secs().saturating_add(part))
}

fn longer_ttl(settings: &mut Settings, least: Duration) -> Proposals {
    // A TTL in whole seconds is one that people can say.
    let part = u64::from(least.subsec_nanos() > 0);
    let ttl = Duration::from_secs(least.as_secs() + part).max(settings.ttl);
    settings.ttl = ttl;
    let mut changes = vec![("ttl", show(ttl))];
    if ttl > settings.max_ttl {
        changes.extend(larger_max_ttl(settings, ttl));
    }
    changes
}

fn larger_max_ttl(settings: &mut Settings, max_ttl: Duration) -> Proposals {
    settings.max_ttl = max_ttl;
    let mut changes = vec![("max_ttl", show(max_ttl))];
    changes.extend(later_restart(settings));
    changes
}

/// What `restart_delay` has to be for the present `max_ttl` and drift, unless it is.
fn later_restart(settings: &mut Settings) -> Option<(&'static str, String)> {
    let (factor, margin) = settings.drift_parts();
    // The factor of the settings as they were given may be the smaller one by now.
    let share = settings
        .drift
        .allowance(settings.max_ttl)
        .saturating_sub(margin);
    let now = share.as_secs_f64() / settings.max_ttl.as_secs_f64().max(f64::MIN_POSITIVE);
    let least = restart_delay(settings.max_ttl, factor.max(now));
    if settings.guard_mode() == GuardMode::Off || settings.restart_delay >= least {
        return None;
    }
    settings.restart_delay = least;
    Some(("restart_delay", show(least)))
}

fn fits(settings: &Settings) -> bool {
    settings.terms(None, settings.auto_extend).is_ok()
}

fn kept(settings: &Settings, changes: Proposals) -> Proposals {
    match fits(settings) {
        true => changes,
        false => Vec::new(),
    }
}
