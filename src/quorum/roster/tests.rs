use super::*;

const DELAY: Duration = Duration::from_secs(62);

fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

/// `marker` is its age; one that is younger than the node's last is another one.
fn reading(run_id: &str, uptime: u64, marker: u64) -> Reading {
    Reading {
        run_id: Some(run_id.into()),
        uptime: Some(Duration::from_secs(uptime)),
        marker: u64::from(marker < 3600),
        marker_age: Duration::from_secs(marker),
    }
}

fn roster(mode: GuardMode) -> Roster {
    Roster::new(Quorum::of(3), mode, DELAY)
}

fn counted(roster: &mut Roster, now: Instant) -> Vec<usize> {
    roster.counted(now).iter().collect()
}

/// A set that has been in use for an hour.
fn settled(mode: GuardMode) -> Roster {
    let mut roster = roster(mode);
    for (node, id) in ["a", "b", "c"].into_iter().enumerate() {
        roster.read(node, reading(id, 3600, 3600), at(0));
    }
    roster
}

#[test]
fn a_node_that_nobody_has_read_has_no_vote() {
    let mut roster = roster(GuardMode::Off);
    assert_eq!(counted(&mut roster, at(0)), [0usize; 0]);
    assert_eq!(roster.standing(0, at(0)), Standing::Unread);
}

#[test]
fn a_settled_set_counts_at_once() {
    for mode in [GuardMode::Auto, GuardMode::Strict, GuardMode::Off] {
        assert_eq!(counted(&mut settled(mode), at(0)), [0, 1, 2]);
    }
}

#[test]
fn a_restarted_node_waits_until_its_uptime_passes_the_delay() {
    let mut roster = settled(GuardMode::Auto);
    roster.read(2, reading("d", 0, 0), at(100));
    assert_eq!(counted(&mut roster, at(100)), [0, 1]);
    assert_eq!(counted(&mut roster, at(161)), [0, 1]);
    let until = at(162);
    assert_eq!(roster.standing(2, at(161)), Standing::Young { until });
    assert_eq!(counted(&mut roster, at(162)), [0, 1, 2]);
}

/// uptime is rounded down: a reading of 61 s may be 61.0 s, and 62 is what the guard asks for.
#[test]
fn the_delay_is_reached_exactly() {
    let mut roster = roster(GuardMode::Strict);
    roster.read(0, reading("a", 61, 3600), at(0));
    roster.read(1, reading("b", 62, 3600), at(0));
    assert_eq!(counted(&mut roster, at(0)), [1]);
    assert_eq!(counted(&mut roster, at(1)), [0, 1]);
}

#[test]
fn a_promoted_replica_is_a_restart_now_whatever_its_uptime() {
    let mut roster = settled(GuardMode::Auto);
    roster.read(1, reading("replica", 3600, 3600), at(10));
    assert_eq!(counted(&mut roster, at(10)), [0, 2]);
    assert_eq!(counted(&mut roster, at(72)), [0, 1, 2]);
}

#[test]
fn an_emptied_node_waits_although_its_process_is_old() {
    let mut roster = settled(GuardMode::Auto);
    roster.read(0, reading("a", 3600, 3600), at(1));
    roster.wiped(0, at(5));
    assert_eq!(counted(&mut roster, at(5)), [1, 2]);
    assert_eq!(counted(&mut roster, at(67)), [0, 1, 2]);
}

#[test]
fn data_lost_between_two_connections_shows_in_the_marker() {
    let mut roster = settled(GuardMode::Auto);
    roster.read(0, reading("a", 3600, 0), at(5));
    assert_eq!(counted(&mut roster, at(5)), [1, 2]);
    assert_eq!(counted(&mut roster, at(67)), [0, 1, 2]);
}

#[test]
fn a_node_whose_clock_was_set_forward_waits_as_after_a_restart() {
    let mut roster = settled(GuardMode::Auto);
    roster.stepped(1, at(5));
    assert_eq!(counted(&mut roster, at(5)), [0, 2]);
    assert_eq!(counted(&mut roster, at(67)), [0, 1, 2]);
}

#[test]
fn a_lost_marker_is_seen_by_a_newcomer_too() {
    let mut roster = roster(GuardMode::Auto);
    roster.read(0, reading("a", 3600, 3600), at(0));
    roster.read(1, reading("b", 3600, 3600), at(0));
    roster.read(2, reading("c", 3600, 0), at(0));
    assert_eq!(counted(&mut roster, at(0)), [0, 1]);
}

#[test]
fn a_new_set_counts_at_once_when_all_have_answered() {
    let mut roster = roster(GuardMode::Auto);
    roster.read(0, reading("a", 0, 0), at(0));
    roster.read(1, reading("b", 3600, 0), at(0));
    assert_eq!(
        counted(&mut roster, at(0)),
        [0usize; 0],
        "the third is missing"
    );
    roster.read(2, reading("c", 0, 0), at(1));
    assert_eq!(counted(&mut roster, at(1)), [0, 1, 2]);
    roster.read(1, reading("b", 3600, 5), at(6));
    assert_eq!(counted(&mut roster, at(6)), [0, 1, 2], "a mere reconnect");
}

/// Two of three that came back empty, one after the other, are a majority that has forgotten what
/// it granted; and a newcomer cannot know that they were there before.
#[test]
fn a_node_that_comes_back_empty_to_a_young_set_waits_for_a_newcomer_too() {
    for (ages, votes) in [
        ([30, 0, 0], &[0][..]),
        ([30, 30, 0], &[0, 1]),
        ([30, 19, 20], &[0, 2]),
        ([10, 5, 0], &[0, 1, 2]),
    ] {
        let mut roster = roster(GuardMode::Auto);
        for (node, id) in ["a", "b", "c"].into_iter().enumerate() {
            roster.read(node, reading(id, ages[node], ages[node]), at(100));
        }
        assert_eq!(counted(&mut roster, at(100)), votes, "{ages:?}");
    }
}

#[test]
fn strict_makes_no_exception_for_a_new_set() {
    let mut roster = roster(GuardMode::Strict);
    for (node, id) in ["a", "b", "c"].into_iter().enumerate() {
        roster.read(node, reading(id, 0, 0), at(0));
    }
    assert_eq!(counted(&mut roster, at(61)), [0usize; 0]);
    assert_eq!(counted(&mut roster, at(62)), [0, 1, 2]);
}

#[test]
fn a_set_that_restarted_with_its_data_is_not_new() {
    let mut roster = roster(GuardMode::Auto);
    for (node, id) in ["a", "b", "c"].into_iter().enumerate() {
        roster.read(node, reading(id, 1, 3600), at(0));
    }
    assert_eq!(counted(&mut roster, at(0)), [0usize; 0]);
}

#[test]
fn nodes_that_restart_one_after_another_are_not_a_new_set() {
    let mut roster = settled(GuardMode::Auto);
    for (node, id) in ["d", "e", "f"].into_iter().enumerate() {
        roster.read(node, reading(id, 0, 0), at(10 + node as u64));
    }
    assert_eq!(counted(&mut roster, at(12)), [0usize; 0]);
    assert_eq!(counted(&mut roster, at(72)), [0]);
}

#[test]
fn a_set_whose_data_is_lost_as_a_whole_is_not_new() {
    let mut roster = settled(GuardMode::Auto);
    for (node, id) in ["a", "b", "c"].into_iter().enumerate() {
        roster.read(node, reading(id, 3600, 0), at(10));
    }
    assert_eq!(counted(&mut roster, at(71)), [0usize; 0]);
    // And a mere reconnect makes it none.
    for (node, id) in ["a", "b", "c"].into_iter().enumerate() {
        roster.read(node, reading(id, 3600, 5), at(15));
    }
    assert_eq!(counted(&mut roster, at(71)), [0usize; 0]);
    assert_eq!(counted(&mut roster, at(72)), [0, 1, 2]);
}

#[test]
fn what_was_read_is_told() {
    let mut roster = settled(GuardMode::Auto);
    roster.read(1, reading("z", 0, 0), at(100));
    assert_eq!(roster.delay(), DELAY);
    let ids = [0, 1, 2].map(|node| roster.run_id(node));
    assert_eq!(ids, [Some("a"), Some("z"), Some("c")]);
    let from = [0, 1, 3].map(|node| roster.counts_from(node));
    assert_eq!(from, [Some(at(0)), Some(at(162)), None]);
}

#[test]
fn a_node_of_a_new_set_that_restarts_loses_its_vote() {
    let mut roster = roster(GuardMode::Auto);
    for (node, id) in ["a", "b", "c"].into_iter().enumerate() {
        roster.read(node, reading(id, 0, 0), at(0));
    }
    roster.read(0, reading("z", 0, 0), at(1));
    assert_eq!(counted(&mut roster, at(1)), [1, 2]);
}

#[test]
fn off_counts_the_young_too() {
    let mut roster = settled(GuardMode::Off);
    roster.read(2, reading("d", 0, 0), at(1));
    assert_eq!(counted(&mut roster, at(1)), [0, 1, 2]);
}

#[test]
fn one_server_under_two_addresses_has_one_vote() {
    for mode in [GuardMode::Auto, GuardMode::Strict, GuardMode::Off] {
        let mut roster = roster(mode);
        roster.read(0, reading("a", 3600, 3600), at(0));
        roster.read(1, reading("a", 3600, 3600), at(0));
        roster.read(2, reading("c", 3600, 3600), at(0));
        assert_eq!(counted(&mut roster, at(0)), [0, 2]);
        assert_eq!(roster.standing(1, at(0)), Standing::Twin { of: 0 });
    }
}

#[test]
fn where_info_is_forbidden_the_marker_decides() {
    let silent = |marker| Reading {
        run_id: None,
        uptime: None,
        marker: 0,
        marker_age: Duration::from_secs(marker),
    };
    let mut roster = roster(GuardMode::Auto);
    roster.read(0, silent(3600), at(0));
    roster.read(1, silent(3600), at(0));
    roster.read(2, silent(0), at(0));
    assert_eq!(counted(&mut roster, at(0)), [0, 1], "no id, no twins");
}
