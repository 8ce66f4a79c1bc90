//! Each judgement on plain data, with nobody to ask.

use super::*;
use crate::check::finding::Severity;
use crate::config::Config;
use crate::node::survey::{Facts, Sample};
use crate::node::{Fault, FaultKind};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const NOW: Instant = Instant::from_nanos(10_000_000_000);
/// Nodes' time less ours, in nanoseconds.
const AHEAD: i128 = 1_795_000_000_000_000_000;

fn config(nodes: usize) -> Config {
    Config::new((1..=nodes).map(|number| format!("redis://n{number}")))
}

/// A sound node, whose answers take `trip` and whose clock is off by `offset` nanoseconds and
/// fast by `fast` millionths.
fn timed(number: usize, trip: Duration, offset: i128, fast: i128) -> Survey {
    let sample = |count: u32| {
        let sent = NOW.after(SECOND / 50 * count);
        let at = i128::from(sent.after(trip / 2).as_nanos());
        let time = at + AHEAD + offset + (at - i128::from(NOW.as_nanos())) * fast / 1_000_000;
        Sample {
            sent,
            received: sent.after(trip),
            node_time: Some(Duration::from_micros(time as u64 / 1000)),
        }
    };
    Survey {
        fault: None,
        facts: Facts {
            product: Some("Redis".into()),
            version: Some("7.0.15".into()),
            role: Some(Role::Master),
            replication_id: Some(format!("replication {number}")),
            run_id: Some(format!("run {number}")),
            uptime: Some(3600 * SECOND),
            aof: Some(true),
            fsync: Some("everysec".into()),
            rdb: Some(false),
            max_memory: Some(0),
            eviction: Some("noeviction".into()),
            cluster: Some(false),
        },
        // An hour ago.
        marker: Some(Marker::Since((AHEAD / 1_000_000) as u64 - 3_600_000)),
        missing: Vec::new(),
        unsure: false,
        samples: (0..50).map(sample).collect(),
    }
}

fn sound(nodes: usize) -> Vec<Survey> {
    (0..nodes).map(|n| timed(n, MS / 2, 0, 0)).collect()
}

fn judged(config: &Config, surveys: &[Survey]) -> Report {
    let settings = config.check().expect("settings");
    let names: Vec<_> = settings.node_names();
    judge(&Seen {
        settings: &settings,
        names: &names,
        surveys,
        statuses: &[],
        now: NOW,
        wall: Some((NOW, Duration::from_nanos((AHEAD + 10_000_000_000) as u64))),
    })
}

#[test]
fn a_clock_that_jumps_to_the_far_end_of_time_is_judged_like_any() {
    let mut surveys = sound(3);
    let last = surveys[0].samples.last_mut().expect("samples");
    last.node_time = Some(Duration::from_secs(u64::MAX));
    let report = judged(&config(3), &surveys);
    assert!(!report.is_good(), "{report}");
}

/// The one finding that speaks of this, and its severity.
fn found<'a>(report: &'a Report, words: &str) -> &'a Finding {
    let speaks = |finding: &&Finding| finding.measured.contains(words);
    let mut all = report.findings.iter().filter(speaks);
    let first = all
        .next()
        .unwrap_or_else(|| panic!("no {words:?}:\n{report}"));
    assert!(all.next().is_none(), "{words:?} twice:\n{report}");
    first
}

/// The settings that a finding proposes can be used, and judged again, it is not made.
fn mends(config: &Config, surveys: &[Survey], words: &str) {
    let report = judged(config, surveys);
    let proposals = found(&report, words).proposals();
    let variable = |name: &str| format!("QUORUMLOCK_{}", name.to_uppercase().replace('.', "_"));
    let variables = proposals.map(|(name, value)| (variable(name), value.to_owned()));
    let variables: Vec<_> = variables.collect();
    assert!(!variables.is_empty(), "nothing is proposed:\n{report}");
    let mended = config.clone().with_vars(variables).expect("values");
    mended.validate().expect("settings that can be used");
    let again = judged(&mended, surveys);
    let still = |finding: &Finding| finding.measured.contains(words);
    assert!(!again.findings.iter().any(still), "{again}");
}

#[test]
fn a_sound_set_gives_nothing_to_report() {
    let report = judged(&config(5), &sound(5));
    assert!(report.is_good() && report.findings.is_empty(), "{report}");
    assert_eq!((report.quorum, report.votes, report.may_fail), (3, 5, 2));
    let node = &report.nodes[0];
    assert_eq!((node.p50, node.p99), (Some(MS / 2), Some(MS / 2)));
    let clock = node.clock.as_ref().expect("a clock");
    assert!(clock.offset_ms.abs() <= clock.offset_doubt_ms, "{clock:?}");
    assert!((clock.offset_doubt_ms - 0.25).abs() < 0.01, "{clock:?}");
    assert_eq!(report.clock_spread, Some(Duration::ZERO));
}

#[test]
fn votes_are_counted_against_the_configured_nodes() {
    let mut surveys = sound(5);
    for survey in &mut surveys[..2] {
        *survey = Survey::failed(FaultKind::ConnectionRefused.into());
    }
    let report = judged(&config(5), &surveys);
    assert_eq!((report.votes, report.may_fail), (3, 0));
    let finding = found(&report, "all of them are needed");
    assert_eq!(finding.severity, Severity::Warning);

    surveys[2] = Survey::failed(Fault::new(FaultKind::Timeout, "connected, but no answer"));
    let report = judged(&config(5), &surveys);
    let finding = found(&report, "no lock can be had");
    assert_eq!(finding.severity, Severity::Critical);
    assert_eq!(found(&report, "no answer").node(), Some("n3:6379"));
    assert!(!report.is_good());

    let report = judged(&config(4), &sound(4));
    assert!(report.is_good(), "an even number is no fault:\n{report}");
    assert_eq!(found(&report, "4 nodes").severity, Severity::Note);
}

#[test]
fn the_restart_guard_is_asked_as_a_client_would() {
    let mut surveys = sound(3);
    surveys[1].facts.uptime = Some(12 * SECOND);
    let report = judged(&config(3), &surveys);
    assert_eq!(report.nodes[1].votes_in, Some(50 * SECOND));
    assert_eq!(report.votes, 2);
    let off = config(3).restart_guard(crate::config::RestartGuard::Off);
    let report = judged(&off, &surveys);
    assert_eq!(report.votes, 3);
    let forgets = |finding: &&Finding| finding.measured.contains("can forget a lock");
    assert_eq!(
        report.findings.iter().filter(forgets).count(),
        3,
        "{report}"
    );

    // A set that nobody has used yet counts at once, as a whole only.
    for survey in &mut surveys {
        survey.marker = Some(Marker::Absent);
    }
    assert_eq!(judged(&config(3), &surveys).votes, 3);
    surveys[0] = Survey::failed(FaultKind::ConnectionRefused.into());
    assert_eq!(judged(&config(3), &surveys).votes, 0);
}

#[test]
fn what_the_client_has_seen_of_a_restart_counts() {
    let config = config(3).check().expect("settings");
    let names = config.node_names();
    let status = |state| NodeStatus {
        name: "n".into(),
        state,
        since: SECOND,
    };
    let left = 7 * SECOND;
    let states = [
        NodeState::Ready,
        NodeState::Ready,
        NodeState::Restarting { left },
    ];
    let report = judge(&Seen {
        settings: &config,
        names: &names,
        surveys: &sound(3),
        statuses: &states.map(status),
        now: NOW,
        wall: None,
    });
    assert_eq!(report.nodes[2].votes_in, Some(left));
    assert_eq!(report.votes, 2);
}

#[test]
fn twins_and_replicas_are_named_with_the_other_one() {
    let mut surveys = sound(5);
    surveys[3].facts.run_id = surveys[1].facts.run_id.clone();
    surveys[4].facts.replication_id = surveys[0].facts.replication_id.clone();
    let of = "10.0.0.9:6379".to_owned();
    surveys[4].facts.role = Some(Role::Replica { of });
    let report = judged(&config(5), &surveys);
    assert_eq!(report.votes, 3);
    let twin = found(&report, "the same server as n2:6379");
    assert_eq!(
        (twin.severity, twin.node()),
        (Severity::Critical, Some("n4:6379"))
    );
    let replica = found(&report, "a replica of n1:6379, which is in the list too");
    assert_eq!(
        (replica.severity, replica.node()),
        (Severity::Critical, Some("n5:6379"))
    );
    assert_eq!(report.nodes[4].follows(), Some("n1:6379"));

    surveys[4].facts.replication_id = Some("of somebody else".into());
    let report = judged(&config(5), &surveys);
    found(
        &report,
        "a replica of 10.0.0.9:6379, which is not in the list",
    );
}

#[test]
fn eviction_and_permissions_are_looked_at() {
    let mut surveys = sound(3);
    surveys[0].facts.eviction = Some("volatile-ttl".into());
    surveys[0].facts.max_memory = Some(1 << 20);
    surveys[1].facts.eviction = Some("allkeys-lru".into());
    surveys[2].missing = vec!["+evalsha".into(), "~quorumlock:*".into()];
    let report = judged(&config(3), &surveys);
    assert_eq!(found(&report, "volatile-ttl").severity, Severity::Critical);
    assert_eq!(found(&report, "allkeys-lru").severity, Severity::Note);
    let lacking = found(&report, "+evalsha ~quorumlock:*");
    assert_eq!(
        (lacking.severity, lacking.node()),
        (Severity::Critical, Some("n3:6379"))
    );
    assert_eq!(report.votes, 2);
}

#[test]
fn what_may_not_be_looked_at_is_unknown_and_no_fault() {
    let mut surveys = sound(3);
    for survey in &mut surveys {
        survey.facts = Facts::default();
        survey.unsure = true;
    }
    let report = judged(&config(3), &surveys);
    assert!(report.is_good(), "{report}");
    assert_eq!(report.votes, 3, "the marker is old enough");
    found(&report, "INFO is not allowed on n1:6379, n2:6379, n3:6379");
    found(&report, "ACL DRYRUN is not allowed");
}

#[test]
fn node_timeout_must_hold_two_round_trips() {
    let mut surveys = sound(3);
    surveys[2] = timed(2, 300 * MS, 0, 0);
    let default = config(3);
    let report = judged(&default, &surveys);
    let finding = found(&report, "node_timeout is 500ms");
    assert_eq!(finding.severity, Severity::Warning, "a minority is slow");
    assert_eq!(finding.setting(), Some("node_timeout"));
    mends(&default, &surveys, "node_timeout is 500ms");
    surveys[1] = timed(1, 300 * MS, 0, 0);
    let report = judged(&default, &surveys);
    let finding = found(&report, "node_timeout is 500ms");
    assert_eq!(finding.severity, Severity::Critical);

    // Where the TTL has no room for it, or max_ttl none for the TTL, they grow, too.
    let short = config(3).ttl(SECOND);
    mends(&short, &surveys, "node_timeout is");
    let bound = config(3)
        .ttl(SECOND)
        .max_ttl(SECOND)
        .restart_delay(3 * SECOND);
    mends(&bound, &surveys, "node_timeout is");
    let report = judged(&bound, &surveys);
    let proposals = found(&report, "node_timeout is").proposals();
    let names: Vec<_> = proposals.map(|(name, _)| name).collect();
    assert_eq!(names, ["node_timeout", "ttl", "max_ttl", "restart_delay"]);
}

#[test]
fn a_ttl_that_a_round_eats_up_is_too_short() {
    let surveys: Vec<_> = (0..3).map(|n| timed(n, 100 * MS, 0, 0)).collect();
    let hasty = config(3).ttl(300 * MS);
    mends(&hasty, &surveys, "of a ttl of 300ms");
    let report = judged(&hasty, &surveys);
    assert_eq!(found(&report, "of a ttl").severity, Severity::Warning);
    let greedy = config(3).min_validity(9_800 * MS);
    let report = judged(&greedy, &surveys);
    assert_eq!(found(&report, "of a ttl").severity, Severity::Critical);
    mends(&greedy, &surveys, "of a ttl");
}

#[test]
fn a_clock_that_runs_wrong_asks_for_more_drift() {
    let mut surveys = sound(3);
    surveys[1] = timed(1, MS / 2, 0, 50_000);
    let report = judged(&config(3), &surveys);
    let finding = found(&report, "5.0 % faster");
    assert_eq!(finding.severity, Severity::Critical);
    assert_eq!(finding.setting(), Some("drift.factor"));
    assert_eq!(finding.proposals().next(), Some(("drift.factor", "0.1")));
    mends(&config(3), &surveys, "5.0 % faster");

    // A slow one lets keys live on after a restart.
    surveys[1] = timed(1, MS / 2, 0, -50_000);
    let set = config(3).restart_delay(62 * SECOND);
    let report = judged(&set, &surveys);
    let finding = found(&report, "restart_delay is 62s");
    assert_eq!(finding.proposals().next(), Some(("restart_delay", "64s")));
    mends(&set, &surveys, "5.0 % slower");

    // From far away nothing can be said, and nothing is claimed.
    let far: Vec<_> = (0..3).map(|n| timed(n, 30 * MS, 0, 5_000)).collect();
    let report = judged(&config(3), &far);
    assert_eq!(found(&report, "too long to tell").severity, Severity::Note);
    assert!(report.is_good(), "{report}");
}

#[test]
fn the_margin_covers_rounding_and_small_steps() {
    let fine = config(3).drift_margin(MS);
    mends(&fine, &sound(3), "drift.margin is 1ms");
    let mut surveys = sound(3);
    for sample in &mut surveys[0].samples[25..] {
        sample.node_time = sample.node_time.map(|time| time + 6 * MS);
    }
    let report = judged(&config(3), &surveys);
    let finding = found(&report, "was set by");
    assert_eq!(finding.severity, Severity::Critical);
    mends(&config(3), &surveys, "was set by");
    for sample in &mut surveys[0].samples[25..] {
        sample.node_time = sample.node_time.map(|time| time + 3600 * SECOND);
    }
    let report = judged(&config(3), &surveys);
    let leaps = found(&report, "was set by");
    assert_eq!(
        leaps.proposals().count(),
        0,
        "no allowance is good for that"
    );
}

#[test]
fn clocks_that_are_apart_stop_tokens() {
    let second = 1_000_000_000;
    let apart = |seconds: i128| {
        let mut surveys = sound(3);
        surveys[2] = timed(2, MS / 2, -seconds * second, 0);
        judged(&config(3), &surveys)
    };
    let words = "the clocks of n3:6379 and";
    assert_eq!(found(&apart(5), words).severity, Severity::Note);
    assert_eq!(found(&apart(40), words).severity, Severity::Warning);
    let report = apart(60);
    assert_eq!(found(&report, words).severity, Severity::Critical);
    assert!(
        report
            .clock_spread
            .is_some_and(|spread| spread > 59 * SECOND)
    );
    let mut surveys = sound(3);
    surveys[2] = timed(2, MS / 2, -70 * second, 0);
    let raised = config(3).max_ttl(142 * SECOND);
    assert_eq!(
        found(&judged(&raised, &surveys), words).severity,
        Severity::Note
    );
    let report = judged(&config(3), &surveys);
    assert_eq!(
        found(&report, words).proposals().next(),
        Some(("max_ttl", "140s"))
    );
    let unfenced = config(3).fencing(false);
    assert!(judged(&unfenced, &surveys).is_good());
}

#[test]
fn the_table_fits_a_terminal_whatever_the_names() {
    let long = "a-host-with-a-very-long-name.in-a-zone.example.org".repeat(3);
    let config = Config::new([
        format!("redis://{long}:12345"),
        "redis://b".into(),
        "redis://c".into(),
    ]);
    let mut surveys: Vec<_> = (0..3)
        .map(|n| timed(n, 300 * MS, 3_600_000_000_000, 0))
        .collect();
    surveys[0].facts.eviction = Some("a-policy-of-a-later-release".into());
    surveys[0].facts.version = Some("255.255.255-rc10-nightly".into());
    surveys[1].facts.uptime = Some(SECOND);
    surveys[2] = Survey::failed(Fault::new(FaultKind::ServerError, "what? ".repeat(80)));
    let text = judged(&config, &surveys).to_string();
    for line in text.lines() {
        let width = line.chars().count();
        // A name is never cut in a finding: it has to be found in a file.
        assert!(
            width <= 100 || line.contains(&long),
            "{width}: {line}\n{text}"
        );
    }
    assert!(text.contains("org:12345"), "{text}");
}
