//! The scripts of the fencing counter, run by hand on a server.

use std::time::Duration;

use proptest::test_runner::{Config, TestRunner};

use crate::counter::{LARGEST, Now, SECOND, kept};
use crate::support::{Probe, Reply, Server, eventually};

const GRANT: &str = include_str!("../../src/node/grant.lua");
const RAISE: &str = concat!(
    include_str!("../../src/node/lift.lua"),
    include_str!("../../src/node/raise.lua")
);
const EXTEND: &str = concat!(
    include_str!("../../src/node/lift.lua"),
    include_str!("../../src/node/extend.lua")
);
const RELEASE: &str = concat!(
    include_str!("../../src/node/lift.lua"),
    include_str!("../../src/node/release.lua")
);

const LOCK: &str = "q:{job}";
const COUNTER: &str = "q:{job}:fence";
const DAY: u64 = 86_400_000;
const MAX_TTL: u64 = 60_000;

/// A server, a connection to it, and what the scripts are told besides.
struct Bench {
    probe: Probe,
    _server: Server,
    ttl: u64,
    hint: u64,
    retention: u64,
    max_ttl: u64,
    block: u64,
}

impl Bench {
    fn start() -> Self {
        let server = Server::start();
        Bench {
            probe: server.probe(),
            _server: server,
            ttl: 10_000,
            hint: 0,
            retention: DAY,
            max_ttl: MAX_TTL,
            block: 1,
        }
    }

    fn eval(&mut self, script: &str, arguments: &[&str]) -> Reply {
        let mut command = vec!["EVAL", script, "2", LOCK, COUNTER];
        command.extend(arguments);
        self.probe.command(&command)
    }

    fn terms(&self) -> [String; 3] {
        [self.hint, self.retention, self.max_ttl].map(|number| number.to_string())
    }

    fn grant(&mut self, owner: &str) -> Reply {
        let [hint, retention, max_ttl] = self.terms();
        let (ttl, block) = (self.ttl.to_string(), self.block.to_string());
        self.eval(GRANT, &[owner, &ttl, &hint, &retention, &max_ttl, &block])
    }

    /// The counter after a grant, and the second of the node's TIME.
    fn granted(&mut self, owner: &str) -> (u64, u64) {
        let reply = self.grant(owner);
        match reply.items() {
            Some(
                [
                    Reply::Int(1),
                    Reply::Int(counter),
                    Reply::Int(seconds),
                    Reply::Int(_),
                ],
            ) => (*counter as u64, *seconds as u64),
            _ => panic!("{reply:?}"),
        }
    }

    fn raise(&mut self, owner: &str, to: u64) -> Reply {
        self.hint = to;
        let [to, retention, max_ttl] = self.terms();
        self.eval(RAISE, &[owner, &to, &retention, &max_ttl])
    }

    fn extend(&mut self, owner: &str, restore: &str) -> i64 {
        let [hint, retention, max_ttl] = self.terms();
        let ttl = self.ttl.to_string();
        let reply = self.eval(EXTEND, &[owner, &ttl, restore, &hint, &retention, &max_ttl]);
        let what = reply.items().and_then(|items| items[0].int());
        what.unwrap_or_else(|| panic!("{reply:?}"))
    }

    /// While nobody listens.
    fn release(&mut self, owner: &str) -> Reply {
        let [hint, retention, max_ttl] = self.terms();
        self.eval(RELEASE, &[owner, &hint, &retention, &max_ttl])
    }

    fn counter(&mut self) -> Option<String> {
        let text = self.probe.get(COUNTER)?;
        Some(String::from_utf8(text).unwrap())
    }

    fn put(&mut self, key: &str, value: &str) {
        assert_eq!(
            self.probe.command(&["SET", key, value]),
            Reply::Simple("OK".into())
        );
    }

    /// The second of the node's TIME.
    fn now(&mut self) -> u64 {
        let time = self.probe.command(&["TIME"]);
        time.items().unwrap()[0].text().unwrap().parse().unwrap()
    }
}

#[test]
fn the_first_grant_of_a_name_starts_at_the_clock_of_the_node() {
    let mut bench = Bench::start();
    let (counter, seconds) = bench.granted("one");
    assert_eq!(counter, seconds * SECOND);
    assert_eq!(bench.counter(), Some(counter.to_string()));
    assert_eq!(bench.probe.get(LOCK), Some(b"one".to_vec()));
    assert!((9_000..=10_000).contains(&bench.probe.pttl(LOCK)));
    let left = bench.probe.pttl(COUNTER) as u64;
    assert!((DAY - 5_000..=DAY).contains(&left), "{left}");
}

#[test]
fn each_grant_moves_the_counter_on() {
    let mut bench = Bench::start();
    let (mut last, _) = bench.granted("one");
    for round in 0..50 {
        assert_eq!(bench.release("one"), Reply::Int(1));
        let (counter, seconds) = bench.granted("one");
        assert_eq!(counter, (last + 1).max(seconds * SECOND), "round {round}");
        last = counter;
    }
}

#[test]
fn a_refusal_names_the_owner_and_the_time_left_and_counts_nothing() {
    let mut bench = Bench::start();
    let (counter, _) = bench.granted("one");
    let refusal = bench.grant("two");
    match refusal.items() {
        Some(
            [
                Reply::Int(0),
                owner,
                Reply::Int(left),
                Reply::Int(_),
                Reply::Int(_),
            ],
        ) => {
            assert_eq!(owner.bytes(), Some(&b"one"[..]));
            assert!((9_000..=10_000).contains(left));
        }
        _ => panic!("{refusal:?}"),
    }
    assert_eq!(bench.counter(), Some(counter.to_string()));
}

/// An earlier try of the same round whose answer was lost must not lock the round out.
#[test]
fn our_own_key_counts_as_a_grant_and_lives_no_longer_for_it() {
    let mut bench = Bench::start();
    let (counter, _) = bench.granted("one");
    bench.ttl = 50_000;
    let (again, _) = bench.granted("one");
    assert!(again > counter);
    assert!(bench.probe.pttl(LOCK) <= 10_000);
}

#[test]
fn a_hint_is_taken_unless_it_is_beyond_belief() {
    let mut bench = Bench::start();
    bench.hint = (bench.now() + 30) * SECOND + 7;
    let hint = bench.hint;
    assert_eq!(bench.granted("one").0, hint + 1);
    bench.release("one");
    bench.hint = (bench.now() + 100) * SECOND;
    assert_eq!(bench.granted("one").0, hint + 2);
}

#[test]
fn a_block_ends_with_the_reply() {
    let mut bench = Bench::start();
    bench.hint = (bench.now() + 30) * SECOND;
    bench.block = 64;
    let hint = bench.hint;
    assert_eq!(bench.granted("one").0, hint + 64);
}

#[test]
fn a_raise_needs_our_key() {
    let mut bench = Bench::start();
    let (counter, _) = bench.granted("one");
    let before = bench.counter();
    assert_eq!(bench.raise("two", counter + 5), Reply::Int(0));
    assert_eq!(bench.counter(), before);
    assert_eq!(bench.raise("one", counter + 5), Reply::Int(1));
    assert_eq!(bench.counter(), Some((counter + 5).to_string()));
    assert_eq!(bench.raise("one", counter), Reply::Int(1), "never back");
    assert_eq!(bench.counter(), Some((counter + 5).to_string()));
    bench.hint = 0;
    bench.release("one");
    assert_eq!(bench.raise("one", counter + 9), Reply::Int(0));
    assert_eq!(bench.counter(), Some((counter + 5).to_string()));
}

#[test]
fn a_raise_beyond_the_clock_and_max_ttl_is_refused_and_not_cut() {
    let mut bench = Bench::start();
    let (counter, _) = bench.granted("one");
    let to = (bench.now() + 100) * SECOND;
    assert_eq!(bench.raise("one", to), Reply::Int(-1));
    assert_eq!(bench.counter(), Some(counter.to_string()));
}

#[test]
fn what_is_no_lock_is_told_and_left_alone() {
    let mut bench = Bench::start();
    bench.probe.command(&["RPUSH", LOCK, "a"]);
    let refused = bench.grant("one");
    assert!(
        refused
            .error()
            .is_some_and(|text| text.starts_with("WRONGTYPE")),
        "{refused:?}"
    );
    assert_eq!(bench.counter(), None);
    assert_eq!(bench.probe.command(&["LLEN", LOCK]), Reply::Int(1));
}

#[test]
fn what_is_no_counter_is_told_and_left_alone() {
    let mut bench = Bench::start();
    let too_large = LARGEST.to_string();
    for text in [
        "",
        "abc",
        "-5",
        "1.5",
        "nan",
        "inf",
        &too_large,
        "18446744073709551615",
    ] {
        bench.put(COUNTER, text);
        let refused = bench.grant("one");
        let told = refused
            .error()
            .is_some_and(|error| error.contains("NOCOUNTER"));
        assert!(told, "{text}: {refused:?}");
        assert_eq!(bench.counter().as_deref(), Some(text));
        assert_eq!(bench.probe.get(LOCK), None, "{text}");
    }
    bench.probe.command(&["DEL", COUNTER]);
    bench.probe.command(&["RPUSH", COUNTER, "a"]);
    let refused = bench.grant("one");
    assert!(
        refused
            .error()
            .is_some_and(|text| text.starts_with("WRONGTYPE")),
        "{refused:?}"
    );
    assert_eq!(bench.probe.get(LOCK), None);
    // What goes on all the same: extensions and releases.
    bench.put(LOCK, "one");
    bench.hint = 5;
    assert_eq!(bench.extend("one", "0"), 1);
    assert_eq!(bench.release("one"), Reply::Int(1));
    assert_eq!(bench.probe.command(&["LLEN", COUNTER]), Reply::Int(1));
}

#[test]
fn numbers_are_written_in_full_up_to_the_last_that_lua_counts_exactly() {
    let mut bench = Bench::start();
    for last in [LARGEST - 3, LARGEST - 2, LARGEST - 1] {
        bench.put(COUNTER, &last.to_string());
        assert_eq!(bench.granted("one").0, last + 1);
        assert_eq!(bench.counter(), Some((last + 1).to_string()));
        bench.release("one");
    }
    let refused = bench.grant("one");
    assert!(refused.error().is_some(), "{refused:?}");
}

/// A node out of memory grants nothing and takes no hint, but lets go of what it has.
#[test]
fn out_of_memory_a_release_deletes_all_the_same() {
    let mut bench = Bench::start();
    let (counter, _) = bench.granted("one");
    bench.probe.command(&["CONFIG", "SET", "maxmemory", "1"]);
    bench.hint = counter + 5;
    assert_eq!(bench.release("two"), Reply::Int(0));
    assert_eq!(bench.counter(), Some(counter.to_string()));
    assert_eq!(bench.release("one"), Reply::Int(1));
    assert_eq!(bench.probe.get(LOCK), None);
    bench.hint = 0;
    let before = bench.counter();
    let refused = bench.grant("two");
    assert!(
        refused.error().is_some_and(|text| text.contains("OOM")),
        "{refused:?}"
    );
    assert_eq!(bench.probe.get(LOCK), None);
    assert_eq!(bench.counter(), before);
}

#[test]
fn a_release_that_finds_another_owner_tells_nobody() {
    let mut bench = Bench::start();
    bench.granted("one");
    let url = format!("redis://127.0.0.1:{}", bench._server.port());
    let client = redis::Client::open(url).unwrap();
    let mut listener = client.get_connection().unwrap();
    let mut channel = listener.as_pubsub();
    channel.subscribe(LOCK).unwrap();
    // What one that failed takes back, where somebody else has the lock.
    assert_eq!(bench.release("two"), Reply::Int(0));
    // The holder's own, and one that comes again.
    assert_eq!(bench.release("one"), Reply::Int(1 + 2));
    assert_eq!(bench.release("one"), Reply::Int(2));
    for expected in ["1 freed", "1 crowd 1", "1 freed", "1 crowd 1"] {
        let note: String = channel.get_message().unwrap().get_payload().unwrap();
        assert_eq!(note, expected);
    }
}

#[test]
fn releases_and_extensions_carry_a_hint() {
    let mut bench = Bench::start();
    let (counter, _) = bench.granted("one");
    bench.hint = counter + 5;
    assert_eq!(bench.extend("one", "0"), 1);
    assert_eq!(bench.counter(), Some((counter + 5).to_string()));
    bench.hint = counter + 7;
    assert_eq!(bench.release("one"), Reply::Int(1));
    assert_eq!(bench.counter(), Some((counter + 7).to_string()));
    // A rollback says what it knows wherever it comes.
    bench.hint = counter + 9;
    assert_eq!(bench.release("two"), Reply::Int(0));
    assert_eq!(bench.counter(), Some((counter + 9).to_string()));
    // The key is set again, on a node that lost all: with the guard's token.
    bench.probe.flushall();
    assert_eq!(bench.extend("one", "1"), 2);
    assert_eq!(bench.counter(), Some((counter + 9).to_string()));
    // To another's key there is nothing to say.
    bench.hint = counter + 11;
    assert_eq!(bench.extend("two", "1"), -1);
    assert_eq!(bench.counter(), Some((counter + 9).to_string()));
}

#[test]
fn an_extension_never_shortens() {
    let mut bench = Bench::start();
    bench.ttl = 60_000;
    bench.granted("one");
    bench.ttl = 1_000;
    assert_eq!(bench.extend("one", "0"), 1);
    let left = bench.probe.pttl(LOCK);
    assert!(left > 50_000, "{left}");
    bench.ttl = 90_000;
    assert_eq!(bench.extend("one", "0"), 1);
    let left = bench.probe.pttl(LOCK);
    assert!(left > 60_000, "{left}");
}

#[test]
fn a_counter_is_kept_for_its_retention_and_until_the_clock_has_passed_it() {
    let mut bench = Bench::start();
    (bench.retention, bench.max_ttl) = (400, 100);
    bench.granted("one");
    let left = bench.probe.pttl(COUNTER);
    assert!((1..=400).contains(&left), "{left}");
    (bench.retention, bench.max_ttl) = (100, 300);
    bench.release("one");
    bench.granted("one");
    let left = bench.probe.pttl(COUNTER);
    assert!((101..=301).contains(&left), "at least max_ttl: {left}");
    bench.release("one");
    let gone = eventually(Duration::from_secs(5), || bench.counter().is_none());
    assert!(gone, "the counter is still there");
    bench.max_ttl = MAX_TTL;
    bench.hint = (bench.now() + 30) * SECOND;
    bench.granted("one");
    let left = bench.probe.pttl(COUNTER);
    assert!((88_000..=91_000).contains(&left), "{left}");
}

/// The arithmetic that the in-memory nodes and the model use, against the scripts.
#[test]
fn the_scripts_count_as_the_model_does() {
    let mut bench = Bench::start();
    let cases = if crate::support::full() {
        20_000
    } else {
        1_500
    };
    let mut runner = TestRunner::new(Config::with_cases(cases));
    // Around the clock in seconds, a bit off, and whether there is such a value at all.
    let value = || (0u8..4, -200i64..200, -3i64..3);
    let strategy = (value(), value(), 1u64..100, 0u64..120_000, 1u64..200_000);
    let bench = std::cell::RefCell::new(&mut bench);
    let outcome = runner.run(&strategy, |(counter, hint, block, max_ttl, retention)| {
        let bench = &mut *bench.borrow_mut();
        let now = bench.now();
        let around = |(kind, seconds, off): (u8, i64, i64)| {
            let near = (now as i64 + seconds) * SECOND as i64 + off;
            (kind > 0).then_some(near as u64)
        };
        bench.probe.flushall();
        let counter = around(counter);
        if let Some(counter) = counter {
            bench.put(COUNTER, &counter.to_string());
        }
        (bench.block, bench.max_ttl, bench.retention) = (block, max_ttl, retention);
        bench.hint = around(hint).unwrap_or(0);
        let reply = bench.grant("one");
        let Some([Reply::Int(1), got, seconds, micros]) = reply.items() else {
            panic!("{reply:?}");
        };
        let number = |reply: &Reply| reply.int().unwrap() as u64;
        let (got, seconds, micros) = (number(got), number(seconds), number(micros));
        let (ttl, retention) = (
            Duration::from_millis(max_ttl),
            Duration::from_millis(retention),
        );
        let time = Duration::from_secs(seconds) + Duration::from_micros(micros);
        let clock = Now::at(time, ttl);
        // Lua's last digit at the very limit may differ.
        if bench.hint.abs_diff(clock.limit) > 2 {
            assert_eq!(Some(got), clock.granted(counter, bench.hint, block));
        }
        let expected = kept(got, seconds, retention, ttl).as_millis() as i64;
        let left = bench.probe.pttl(COUNTER);
        // The rest is the time since, on a machine that may be busy.
        assert!(
            left <= expected + 1 && (left > expected - 5_000 || expected < 5_000),
            "{left} of {expected}"
        );
        let to = bench.hint;
        let raised = bench.raise("one", to);
        // The clock was somewhere in between.
        let later = Now::at(Duration::from_secs(bench.now() + 1), ttl);
        match raised {
            Reply::Int(1) => assert!(later.raised(Some(got), to).is_some()),
            Reply::Int(-1) => assert!(to + 2 > clock.limit),
            other => panic!("{other:?}"),
        }
        if left > 5_000 {
            let stored: u64 = bench.counter().unwrap().parse().unwrap();
            let done = raised == Reply::Int(1);
            assert_eq!(stored, if done { got.max(to) } else { got });
        }
        Ok(())
    });
    outcome.unwrap();
}
