use std::sync::Arc;

use super::*;
use crate::clock::Instant;
use crate::node::Note;
use crate::node::{Fencing, Order};

fn entry(work: Work) -> Entry {
    Entry {
        id: 1,
        order: Arc::new(Order {
            round: 1,
            key: std::sync::Arc::from(&b"k"[..]),
            token: OwnerToken::new([1; 20]),
        }),
        work,
        spelled_out: false,
    }
}

const GRANT: Work = Work::Ask(Ask::Grant {
    ttl_millis: 1500,
    fence: None,
    block: 1,
    announced: false,
});
const RELEASE: Work = Work::Ask(Ask::Release {
    until: Instant::FAR,
    fence: None,
});

fn error(text: &str) -> Value {
    redis::parse_redis_value(format!("-{text}\r\n").as_bytes()).unwrap()
}

fn answer(work: Work, values: Vec<Value>) -> Answer {
    decode(&entry(work), &mut values.into_iter())
}

fn text(value: &str) -> Value {
    Value::BulkString(value.as_bytes().to_vec())
}

fn encoded(entry: &Entry, spelled: &mut Spelled) -> String {
    let mut out = Vec::new();
    encode(entry, spelled, &mut Cmd::new(), &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_grant_is_one_set_with_nx_and_px() {
    let sent = encoded(&entry(GRANT), &mut Spelled::default());
    let words: Vec<_> = sent.split("\r\n").skip(2).step_by(2).collect();
    let token = "01".repeat(20);
    assert_eq!(words, ["SET", "k", &token, "NX", "PX", "1500"]);
}

const FENCING: Fencing = Fencing {
    hint: 7,
    retention_millis: 800,
    max_ttl_millis: 90,
};

const FENCED: Work = Work::Ask(Ask::Grant {
    ttl_millis: 1500,
    fence: Some(FENCING),
    block: 1,
    announced: false,
});

/// With others waiting, but without a counter.
const ANNOUNCED: Work = Work::Ask(Ask::Grant {
    ttl_millis: 1500,
    fence: None,
    block: 1,
    announced: true,
});

const RAISE: Work = Work::Ask(Ask::Raise {
    to: 9,
    fence: FENCING,
});

/// What goes out for `work` but for the script itself.
fn sent(work: Work) -> Vec<String> {
    let sent = encoded(&entry(work), &mut Spelled::default());
    let words = sent.split("\r\n$").skip(1).filter(|word| word.len() < 100);
    let text = |word: &str| word.split_once("\r\n").unwrap().1.trim_end().to_owned();
    words.map(text).collect()
}

/// DESIGN.md has the same lists.
#[test]
fn scripts_get_keys_as_keys_and_what_they_need_of_the_counter() {
    let owner = &"01".repeat(20);
    let fenced = [
        "EVAL", "2", "k", "k:fence", owner, "1500", "7", "800", "90", "1", "0",
    ];
    assert_eq!(sent(FENCED), fenced);
    let announced = ["EVAL", "1", "k", owner, "1500", "0", "0", "0", "1", "1"];
    assert_eq!(sent(ANNOUNCED), announced);
    assert_eq!(sent(GRANT), ["SET", "k", owner, "NX", "PX", "1500"]);
    let raise = ["EVAL", "2", "k", "k:fence", owner, "9", "800", "90"];
    assert_eq!(sent(RAISE), raise);
    assert_eq!(sent(RELEASE), ["EVAL", "1", "k", owner]);
    let release = Work::Ask(Ask::Release {
        until: Instant::FAR,
        fence: Some(FENCING),
    });
    let hinted = ["EVAL", "2", "k", "k:fence", owner, "7", "800", "90"];
    assert_eq!(sent(release), hinted);
    let extend = |fence| {
        Work::Ask(Ask::Extend {
            ttl_millis: 1500,
            restore: true,
            fence,
        })
    };
    assert_eq!(sent(extend(None)), ["EVAL", "1", "k", owner, "1500", "1"]);
    let hinted = [
        "EVAL", "2", "k", "k:fence", owner, "1500", "1", "7", "800", "90",
    ];
    assert_eq!(sent(extend(Some(FENCING))), hinted);
}

#[test]
fn a_fenced_grant_brings_counter_or_rival_and_the_time_of_the_node() {
    let list = |head: Vec<Value>| {
        let time = [Value::Int(5), Value::Int(250_000)];
        vec![Value::Array(head.into_iter().chain(time).collect())]
    };
    let time = Duration::from_millis(5_250);
    let granted = answer(FENCED, list(vec![Value::Int(1), Value::Int(77)]));
    let counter = Some(77);
    assert_eq!(granted, Answer::Timed(Reply::Granted { counter }, time));
    let rival = text(&"02".repeat(20));
    let held = answer(FENCED, list(vec![Value::Int(0), rival, Value::Int(700)]));
    let left = Some(Duration::from_millis(700));
    let rival = Some(0x0202_0202);
    assert_eq!(held, Answer::Timed(Reply::Held { left, rival }, time));
    let granted = answer(ANNOUNCED, list(vec![Value::Int(1), Value::Int(0)]));
    let counter = None;
    assert_eq!(granted, Answer::Timed(Reply::Granted { counter }, time));
    let foreign = answer(
        FENCED,
        list(vec![Value::Int(0), text("data"), Value::Int(-1)]),
    );
    let fault = FaultKind::NotALock.into();
    assert_eq!(foreign, Answer::Timed(Reply::Failed(fault), time));
    for damaged in [
        vec![Value::Int(1)],
        vec![Value::Int(1), Value::Int(-4)],
        vec![Value::Int(2), Value::Int(4)],
        vec![],
    ] {
        match answer(FENCED, list(damaged)) {
            Answer::Reply(Reply::Failed(fault)) => assert_eq!(fault.kind(), FaultKind::Protocol),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_release_says_whether_it_deleted_and_who_listens() {
    for (said, deleted, listeners) in [(0, false, 0), (1, true, 0), (8, false, 4), (9, true, 4)] {
        let released = Reply::Released { deleted, listeners };
        let reply = answer(RELEASE, vec![Value::Int(said)]);
        assert_eq!(reply, Answer::Reply(released));
    }
}

#[test]
fn a_note_is_read_and_one_of_a_later_version_is_a_hint_all_the_same() {
    let taken = Note::Taken {
        rival: 0x0a0b_0c0d,
        left: Duration::from_millis(1500),
    };
    assert_eq!(note(b"1 freed"), Note::Freed);
    assert_eq!(note(b"1 crowd 3"), Note::Crowd { listeners: 3 });
    assert_eq!(note(b"1 taken 0a0b0c0d 1500"), taken);
    for odd in [
        &b"1"[..],
        b"2 crowd 3",
        b"1 crowd -3",
        b"1 taken x 5",
        b"\xff",
        b"",
    ] {
        assert_eq!(note(odd), Note::Freed);
    }
}

#[test]
fn a_raise_is_done_or_refused() {
    for (said, done) in [(1, true), (0, false), (-1, false)] {
        let reply = answer(RAISE, vec![Value::Int(said)]);
        assert_eq!(reply, Answer::Reply(Reply::Raised(done)));
    }
    let no_counter = error("NOCOUNTER k:fence holds no fencing counter");
    match answer(RAISE, vec![no_counter]) {
        Answer::Reply(Reply::Failed(fault)) => assert_eq!(fault.kind(), FaultKind::NotALock),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_script_is_spelled_out_once_and_again_when_the_server_has_lost_it() {
    let mut spelled = Spelled::default();
    let mut first_word = |entry: &Entry| {
        let sent = encoded(entry, &mut spelled);
        sent.split("\r\n").nth(2).unwrap().to_owned()
    };
    let mut release = entry(RELEASE);
    assert_eq!(first_word(&release), "EVAL");
    assert_eq!(first_word(&release), "EVALSHA");
    release.spelled_out = true;
    assert_eq!(first_word(&release), "EVAL");
}

#[test]
fn only_another_lock_means_held() {
    assert_eq!(
        answer(GRANT, vec![Value::Okay]),
        Answer::Reply(Reply::Granted { counter: None })
    );
    assert_eq!(answer(GRANT, vec![Value::Nil]), Answer::Inspect);
    let rival = text(&"02".repeat(20));
    let held = answer(Work::Inspect, vec![rival, Value::Int(700)]);
    let left = Some(Duration::from_millis(700));
    let rival = Some(0x0202_0202);
    assert_eq!(held, Answer::Reply(Reply::Held { left, rival }));
    let foreign = answer(Work::Inspect, vec![text("data"), Value::Int(-1)]);
    assert_eq!(
        foreign,
        Answer::Reply(Reply::Failed(FaultKind::NotALock.into()))
    );
    let ours = answer(Work::Inspect, vec![text(&"01".repeat(20)), Value::Int(9)]);
    assert_eq!(ours, Answer::Reply(Reply::Granted { counter: None }));
}

/// Every error reply has a class, and is neither "held by somebody" nor "yours".
#[test]
fn error_replies_have_classes_and_are_never_a_vote() {
    let classes = [
        ("NOAUTH Authentication required.", FaultKind::Auth),
        ("WRONGPASS invalid pair", FaultKind::Auth),
        ("DENIED Redis is running in protected mode", FaultKind::Auth),
        ("NOPERM no permissions to run 'set'", FaultKind::Permission),
        ("READONLY You can't write", FaultKind::ReadOnly),
        ("LOADING dataset", FaultKind::Loading),
        ("MASTERDOWN Link with MASTER is down", FaultKind::Loading),
        ("CLUSTERDOWN Hash slot not served", FaultKind::Loading),
        ("BUSY Redis is busy running a script", FaultKind::Busy),
        ("OOM command not allowed", FaultKind::OutOfMemory),
        (
            "MISCONF Redis is configured to save",
            FaultKind::Misconfigured,
        ),
        (
            "NOREPLICAS Not enough good replicas",
            FaultKind::Misconfigured,
        ),
        ("WRONGTYPE Operation against a key", FaultKind::NotALock),
        ("MOVED 3999 127.0.0.1:6381", FaultKind::WrongSlot),
        ("ASK 3999 127.0.0.1:6381", FaultKind::WrongSlot),
        ("ERR unknown command", FaultKind::ServerError),
        (
            "ERR Error running script (call to f_0): @user_script:9: -READONLY no",
            FaultKind::ReadOnly,
        ),
        (
            "ERR user_script:3: WRONGTYPE Operation against a key",
            FaultKind::NotALock,
        ),
        (
            "ERR The user executing the script can't run this command",
            FaultKind::Permission,
        ),
        (
            "ERR ACL failure in script: User u has no permissions to run the 'set' command",
            FaultKind::Permission,
        ),
    ];
    for (reply, kind) in classes {
        for work in [GRANT, RELEASE, Work::Inspect] {
            match answer(work, vec![error(reply), Value::Int(-1)]) {
                Answer::Reply(Reply::Failed(fault)) => assert_eq!(fault.kind(), kind, "{reply}"),
                other => panic!("{reply} was read as {other:?}"),
            }
        }
    }
}

#[test]
fn an_unknown_script_is_sent_again_and_no_vote() {
    let noscript = error("NOSCRIPT No matching script.");
    assert_eq!(answer(RELEASE, vec![noscript]), Answer::SpellOut);
}

#[test]
fn answers_of_the_wrong_shape_are_protocol_faults() {
    for value in [Value::Int(-1), Value::Array(vec![]), text("OK"), Value::Nil] {
        match answer(RELEASE, vec![value]) {
            Answer::Reply(Reply::Failed(fault)) => assert_eq!(fault.kind(), FaultKind::Protocol),
            other => panic!("{other:?}"),
        }
    }
    let nothing = answer(GRANT, vec![]);
    assert!(matches!(nothing, Answer::Reply(Reply::Failed(_))));
}

#[test]
fn the_introduction_tells_the_life_of_the_server() {
    let info = text("# Server\r\nrun_id:abc\r\nuptime_in_seconds:77\r\n");
    let marker = Value::Array(vec![text("1000"), text("5000")]);
    let life = introduced(&[info, marker.clone()]).unwrap();
    assert_eq!(life.run_id.as_deref(), Some("abc"));
    assert_eq!(life.uptime, Some(Duration::from_secs(77)));
    assert_eq!(life.marker_age, Duration::from_secs(4));

    let silent = introduced(&[error("NOPERM no"), marker.clone()]).unwrap();
    assert_eq!((silent.run_id, silent.uptime), (None, None));

    let stepped = text("uptime_in_seconds:-5\r\n");
    let life = introduced(&[stepped, marker]).unwrap();
    assert_eq!(
        life.uptime,
        Some(Duration::ZERO),
        "a stepped clock is young"
    );

    let replica = introduced(&[text(""), error("READONLY no")]).unwrap_err();
    assert_eq!(replica.kind(), FaultKind::ReadOnly);
}
