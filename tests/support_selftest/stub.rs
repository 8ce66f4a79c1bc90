//! Scripted servers.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::proxy::{failure, is_silent};
use crate::support::*;

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_stub_says_what_it_is_told_and_records_every_byte() {
    let stub = Stub::start(|connection, args| match args[0].as_slice() {
        b"WHO" => StubReply::Int(connection as i64),
        b"LATE" => StubReply::Ok.after(40 * MS),
        b"ODD" => StubReply::Raw(b"_\r\n".to_vec()),
        b"LIST" => StubReply::Array(vec![StubReply::bulk(b"\x00"), StubReply::Nil]),
        b"BYE" => StubReply::Then(vec![StubReply::error("ERR bye"), StubReply::Close]),
        b"RST" => StubReply::Reset,
        _ => StubReply::Silence,
    });
    let mut first = Probe::connect(stub.port()).expect("a stub");
    assert_eq!(first.command(&["WHO"]), Reply::Int(0));
    let mut second = Probe::connect(stub.port()).expect("a stub");
    assert_eq!(second.command(&["WHO"]), Reply::Int(1));
    let begin = Instant::now();
    assert_eq!(first.command(&["LATE"]), Reply::Simple("OK".into()));
    assert!(begin.elapsed() >= 40 * MS);
    assert_eq!(first.command(&["ODD"]), Reply::Nil);
    assert_eq!(
        first.command(&["LIST"]),
        Reply::Array(vec![Reply::Bulk(vec![0]), Reply::Nil])
    );
    assert_eq!(first.command(&["BYE"]), Reply::Error("ERR bye".into()));
    assert_eq!(
        first.receive(begin + 1000 * MS).expect_err("an end").kind(),
        ErrorKind::UnexpectedEof
    );
    second
        .send(&encode(&[b"quiet".as_slice(), b"\r\n\x00\xff"]))
        .expect("sent");
    assert!(eventually(1000 * MS, || stub.of("QUIET").len() == 1));
    assert_eq!(stub.of("quiet")[0].args[1], b"\r\n\x00\xff");
    assert_eq!(stub.of("quiet")[0].connection, 1);
    assert_eq!(failure(&mut second, &["RST"]), ErrorKind::ConnectionReset);
    assert_eq!((stub.connections(), stub.received().len()), (2, 8));
    let (port, mut third) = (stub.port(), Probe::connect(stub.port()).expect("a stub"));
    assert_eq!(third.command(&["WHO"]), Reply::Int(2));
    drop(stub);
    assert!(third.try_command(&["WHO"]).is_err());
    assert!(Probe::connect(port).is_err());
}

#[test]
fn mute_and_garbled_stubs_are_so() {
    let stub = Stub::never_speaks();
    let mut probe = Probe::connect(stub.port()).expect("a stub");
    probe.send(b"\x16\x03\x01 no RESP at all").expect("sent");
    assert!(is_silent(&mut probe));
    let stub = Stub::tcp_garbage();
    let mut probe = Probe::connect(stub.port()).expect("a stub");
    assert_eq!(failure(&mut probe, &["PING"]), ErrorKind::InvalidData);
}

#[test]
fn a_tiny_redis_serves_a_lock_client() {
    let (redis, _stub, mut probe) = tiny_redis();
    let set = ["SET", "k", "v", "NX", "PX", "50"];
    assert_eq!(probe.command(&set), Reply::Simple("OK".into()));
    assert_eq!(probe.command(&set), Reply::Nil);
    assert_eq!(
        probe.command(&["SET", "k", "w", "NX", "GET"]),
        Reply::Bulk(b"v".to_vec())
    );
    assert!((1..=50).contains(&probe.pttl("k")));
    assert!(eventually(1000 * MS, || probe.get("k").is_none()));
    assert_eq!(
        probe.command(&["TIME"]).items().map(<[Reply]>::len),
        Some(2)
    );
    redis.set_uptime(3);
    redis.set_run_id("abc");
    let info = probe.info("server");
    assert_eq!(
        (info["uptime_in_seconds"].as_str(), info["run_id"].as_str()),
        ("3", "abc")
    );
}

fn tiny_redis() -> (Arc<TinyRedis>, Stub, Probe) {
    let redis = Arc::new(TinyRedis::new());
    let stub = Stub::tiny(Arc::clone(&redis));
    let probe = Probe::connect(stub.port()).expect("a stub");
    (redis, stub, probe)
}

fn code(reply: &Reply) -> &str {
    reply
        .error()
        .and_then(|text| text.split(' ').next())
        .unwrap_or("no error")
}

#[test]
fn a_tiny_redis_leaves_scripts_to_the_test() {
    let (redis, _stub, mut probe) = tiny_redis();
    let loaded = probe
        .command(&["SCRIPT", "LOAD", "return 1"])
        .text()
        .expect("a digest");
    assert_eq!(loaded, "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
    let call = ["EVALSHA", loaded.as_str(), "1", "k", "arg"];
    assert_eq!(code(&probe.command(&call)), "ERR");
    redis.on_script(|keys, call| match call.args.as_slice() {
        [arg] if arg == b"arg" => StubReply::Int(keys.remove(&call.keys[0]).into()),
        _ => StubReply::error("ERR other arguments"),
    });
    redis.with_keys(|keys| keys.put("k", "v", None));
    assert_eq!(probe.command(&call), Reply::Int(1));
    redis.forget_scripts();
    assert_eq!(code(&probe.command(&call)), "NOSCRIPT");
    assert_eq!(
        probe.command(&["EVAL", "return 1", "1", "k", "arg"]),
        Reply::Int(0)
    );
    assert_eq!(probe.command(&call), Reply::Int(0));
}

#[test]
fn a_tiny_redis_refuses_what_the_test_wants_refused() {
    let (redis, _stub, mut probe) = tiny_redis();
    redis.answer("HELLO", StubReply::error("ERR unknown command 'HELLO'"));
    assert!(probe.command(&["HELLO", "3"]).error().is_some());
    redis.answer_again("HELLO");
    assert_eq!(
        probe.command(&["HELLO", "3"]).items().map(<[Reply]>::len),
        Some(10)
    );
    redis.require("a@b", "p@ss");
    assert_eq!(code(&probe.command(&["PING"])), "NOAUTH");
    assert_eq!(code(&probe.command(&["AUTH", "a@b", "no"])), "WRONGPASS");
    assert_eq!(
        probe.command(&["AUTH", "a@b", "p@ss"]),
        Reply::Simple("OK".into())
    );
    redis.set_role("slave");
    assert_eq!(code(&probe.command(&["SET", "k", "v"])), "READONLY");
}
