//! The relations between the times of one lock.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::config::Config;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn config() -> Config {
    Config::new(["redis://a", "redis://b", "redis://c"])
}

fn settings(config: Config) -> Settings {
    config.check().unwrap()
}

#[test]
fn defaults_follow_from_the_ttl() {
    let settings = settings(config().max_ttl(ms(86_400_000)));
    for (ttl, node_timeout) in [
        (10_000, 500_000),
        (86_400_000, 500_000),
        (2_000, 100_000),
        (300, 50_000),
        // Validity 106.9 ms, of which 50 ms are less than half.
        (110, 50_000),
        // Validity 97 ms: a quarter.
        (100, 24_250),
        // Validity 0.97 ms.
        (3, 242),
    ] {
        let (timing, every) = settings.terms(Some(ms(ttl)), true).unwrap();
        assert_eq!(timing.node_timeout().as_micros(), node_timeout, "{ttl}");
        assert!(every.unwrap() <= ms(ttl) / 3, "{ttl}");
    }
    let (_, every) = settings.terms(None, true).unwrap();
    assert_eq!(every, Some(ms(10_000) / 3));
    assert_eq!(settings.terms(None, false).unwrap().1, None);
}

#[test]
fn a_ttl_of_one_lock_is_checked_like_the_setting() {
    let settings = settings(config());
    for (ttl, problem) in [
        (Duration::ZERO, "longer than zero"),
        (Duration::from_micros(1500), "finer than a millisecond"),
        (ms(60_001), "longer than max_ttl, which is 60s (default)"),
        (Duration::MAX, "ten years"),
        (ms(2), "leaves no validity: the drift allowance is 2020us"),
    ] {
        let error = settings.timing(Some(ttl)).unwrap_err();
        assert_eq!(error.setting(), "ttl");
        assert_eq!(error.value(), Some(show(ttl).as_str()));
        assert_eq!(*error.origin(), Origin::Code);
        assert!(error.problem().contains(problem), "{error}");
        assert!(!error.remedy().is_empty());
    }
    assert!(settings.timing(Some(ms(60_000))).is_ok());
}

#[test]
fn what_does_not_fit_a_short_ttl_is_named_with_its_value() {
    let short = Some(ms(1000));
    let error = settings(config().node_timeout(ms(990)).auto_extend(false))
        .timing(short)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "node_timeout = 990ms (set in code): is not less than the validity of 988ms that a ttl \
         of 1s gives; lower node_timeout, or raise ttl"
    );
    let error = settings(config().min_validity(ms(988)))
        .timing(short)
        .unwrap_err();
    assert_eq!(error.setting(), "min_validity");
    assert_eq!(error.value(), Some("988ms"));

    let late = settings(config().extend_every(ms(938)));
    let error = late.terms(short, true).unwrap_err();
    assert_eq!(error.setting(), "extend_every");
    assert!(error.problem().contains("988ms"), "{error}");
    assert!(late.terms(short, false).is_ok());
    assert!(
        settings(config().extend_every(ms(937)))
            .terms(short, true)
            .is_ok()
    );

    let slow = settings(config().node_timeout(ms(700)));
    let error = slow.terms(short, true).unwrap_err();
    assert_eq!(error.setting(), "node_timeout");
    assert_eq!(error.value(), Some("700ms"));
}

#[test]
fn the_setting_that_somebody_set_is_blamed_for_a_missing_validity() {
    let setting = |config: Config| config.check().unwrap_err().setting().to_owned();
    assert_eq!(setting(config().ttl(ms(2))), "ttl");
    assert_eq!(setting(config().drift_margin(ms(10_000))), "drift.margin");
    assert_eq!(setting(config().drift_factor(0.99999)), "drift.factor");
}

proptest! {
    /// Whatever the drift, derived times fit every TTL that leaves any validity.
    #[test]
    fn derived_times_always_fit(
        ttl in 1..=10_000_000u64,
        factor in 0.0..1.0f64,
        margin in 0..=5_000u64,
    ) {
        let settings = config()
            .max_ttl(ms(10_000_000))
            .drift_factor(factor)
            .drift_margin(ms(margin))
            .ttl(ms(10_000_000))
            .check();
        let Ok(settings) = settings else { return Ok(()) };
        match settings.terms(Some(ms(ttl)), true) {
            Ok((timing, every)) => {
                let validity = ms(ttl) - settings.drift.allowance(ms(ttl));
                prop_assert!(every.unwrap() + timing.node_timeout() < validity);
            }
            Err(error) => prop_assert!(error.problem().contains("no validity"), "{error}"),
        }
    }
}
