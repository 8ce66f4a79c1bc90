//! Each fault of the proxy, as a client sees it.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use crate::support::*;

const MS: Duration = Duration::from_millis(1);

fn behind_a_proxy() -> (Server, Proxy, Probe) {
    let server = Server::start();
    let proxy = Proxy::in_front_of(server.port());
    let probe = Probe::connect(proxy.port()).expect("the proxy accepts");
    (server, proxy, probe)
}

fn pong() -> Reply {
    Reply::Simple("PONG".into())
}

pub(super) fn failure(probe: &mut Probe, args: &[&str]) -> ErrorKind {
    probe.try_command(args).expect_err("a fault").kind()
}

pub(super) fn is_silent(probe: &mut Probe) -> bool {
    probe
        .receive(Instant::now() + 80 * MS)
        .is_err_and(|error| error.kind() == ErrorKind::TimedOut)
}

#[test]
fn passing_keeps_all_bytes_and_counts_connections() {
    let (_server, proxy, mut probe) = behind_a_proxy();
    let large = vec![b'x'; 5 << 20];
    probe.set_raw("k", &large, None);
    assert!(probe.get("k") == Some(large));
    assert_eq!((proxy.connections(), proxy.accepted()), (1, 1));
    let second = Probe::connect(proxy.port()).expect("the proxy accepts");
    assert!(eventually(1000 * MS, || proxy.connections() == 2));
    drop((probe, second));
    assert!(eventually(1000 * MS, || proxy.connections() == 0));
    assert_eq!(proxy.accepted(), 2);
}

#[test]
fn a_delay_is_a_latency_that_keeps_order_and_throughput() {
    let (_server, proxy, mut probe) = behind_a_proxy();
    proxy.delay(30 * MS);
    let begin = Instant::now();
    for number in 0..50 {
        probe
            .send(&encode(&["ECHO", &number.to_string()]))
            .expect("sent");
        std::thread::sleep(MS);
    }
    for number in 0..50 {
        let reply = probe.receive(Instant::now() + 2000 * MS).expect("a reply");
        assert_eq!(reply.text(), Some(number.to_string()));
        assert!(
            number > 0 || begin.elapsed() >= 60 * MS,
            "{:?}",
            begin.elapsed()
        );
    }
    // One after another it would be three seconds.
    assert!(begin.elapsed() < 1500 * MS, "{:?}", begin.elapsed());
    proxy.heal();
    let begin = Instant::now();
    assert_eq!(probe.command(&["PING"]), pong());
    assert!(begin.elapsed() < 50 * MS);
}

#[test]
fn a_blackhole_swallows_on_old_and_new_connections_without_an_end() {
    let (server, proxy, mut old) = behind_a_proxy();
    let mut idle = Probe::connect(proxy.port()).expect("the proxy accepts");
    proxy.blackhole();
    let mut new = Probe::connect(proxy.port()).expect("a blackhole still accepts");
    let mut unused = Probe::connect(proxy.port()).expect("a blackhole still accepts");
    for probe in [&mut old, &mut new] {
        probe.send(&encode(&["SET", "k", "v"])).expect("sent");
        assert!(is_silent(probe));
    }
    assert_eq!(server.probe().get("k"), None);
    proxy.heal();
    assert_eq!(server.probe().get("k"), None);
    // A connection that lost nothing goes on; the one with a gap does not.
    assert_eq!(idle.command(&["PING"]), pong());
    assert_eq!(unused.command(&["PING"]), pong());
    assert_eq!(proxy.connections(), 4);
    // Not even the server's end is seen.
    proxy.blackhole();
    server.kill();
    assert!(is_silent(&mut idle));
}

#[test]
fn refusing_ends_old_connections_and_reopens_on_the_same_port() {
    let (_server, proxy, mut old) = behind_a_proxy();
    let port = proxy.port();
    proxy.refuse();
    assert_eq!(failure(&mut old, &["PING"]), ErrorKind::ConnectionReset);
    let refused = Probe::connect(port).err().map(|error| error.kind());
    assert_eq!(refused, Some(ErrorKind::ConnectionRefused));
    proxy.reopen();
    let mut probe = Probe::connect(port).expect("it listens again");
    proxy.refuse_new();
    assert!(Probe::connect(port).is_err());
    assert_eq!(probe.command(&["PING"]), pong());
    proxy.heal();
    assert_eq!(
        Probe::connect(port).expect("healed").command(&["PING"]),
        pong()
    );
}

#[test]
fn a_reset_is_seen_as_one_and_a_dead_server_too() {
    let (server, proxy, mut probe) = behind_a_proxy();
    proxy.reset();
    assert_eq!(failure(&mut probe, &["PING"]), ErrorKind::ConnectionReset);
    let mut probe = Probe::connect(proxy.port()).expect("new ones are served");
    assert_eq!(probe.command(&["PING"]), pong());
    server.kill();
    assert!(probe.try_command(&["PING"]).is_err());
    let late = Probe::connect(proxy.port()).and_then(|mut probe| probe.try_command(&["PING"]));
    assert!(late.is_err());
}

#[test]
fn traps_cut_before_after_and_amid() {
    let (server, proxy, mut probe) = behind_a_proxy();
    proxy.reset_after_request("set");
    assert_eq!(probe.command(&["PING"]), pong());
    let mut pipeline = encode(&["GET", "a"]);
    pipeline.extend(encode(&["SET", "a", "1"]));
    probe.send(&pipeline).expect("sent");
    let reply = probe.receive(Instant::now() + 1000 * MS);
    assert_eq!(reply.expect_err("cut").kind(), ErrorKind::ConnectionReset);
    assert_eq!(server.probe().get("a"), Some(b"1".to_vec()));

    let mut probe = Probe::connect(proxy.port()).expect("the trap is spent");
    probe.set_raw("b", "2", None);
    proxy.reset_before_request("");
    assert_eq!(
        failure(&mut probe, &["SET", "b", "3"]),
        ErrorKind::ConnectionReset
    );
    assert_eq!(server.probe().get("b"), Some(b"2".to_vec()));

    let mut probe = Probe::connect(proxy.port()).expect("the trap is spent");
    proxy.reset_mid_reply("ECHO");
    assert_eq!(
        failure(&mut probe, &["ECHO", "0123456789"]),
        ErrorKind::ConnectionReset
    );

    let mut probe = Probe::connect(proxy.port()).expect("the trap is spent");
    server.pause();
    proxy.reset_after_request("PING");
    probe.send(&encode(&["PING"])).expect("sent");
    assert!(is_silent(&mut probe));
    proxy.heal();
    server.resume();
    let mut probe = Probe::connect(proxy.port()).expect("the trap is gone");
    assert_eq!(probe.command(&["PING"]), pong());
}

#[test]
fn held_replies_come_later_in_order() {
    let (server, proxy, mut probe) = behind_a_proxy();
    proxy.hold_replies();
    probe.send(&encode(&["INCR", "n"])).expect("sent");
    probe.send(&encode(&["INCR", "n"])).expect("sent");
    assert!(eventually(1000 * MS, || server.probe().get("n") == Some(b"2".to_vec())));
    proxy.release_replies();
    for expected in [1, 2] {
        let reply = probe.receive(Instant::now() + 1000 * MS).expect("a reply");
        assert_eq!(reply, Reply::Int(expected));
    }
}

#[test]
fn held_requests_arrive_later_even_after_the_client_left() {
    let (server, proxy, mut probe) = behind_a_proxy();
    let mut leaver = Probe::connect(proxy.port()).expect("the proxy accepts");
    proxy.hold_requests();
    probe.send(&encode(&["SET", "a", "1"])).expect("sent");
    leaver.send(&encode(&["SET", "b", "2"])).expect("sent");
    drop(leaver);
    assert!(is_silent(
        &mut Probe::connect(proxy.port()).expect("the proxy accepts")
    ));
    assert_eq!(server.probe().keys("*"), Vec::<Vec<u8>>::new());
    proxy.release_requests();
    assert_eq!(
        probe.receive(Instant::now() + 1000 * MS).expect("a reply"),
        Reply::Simple("OK".into())
    );
    assert!(eventually(1000 * MS, || server.probe().get("b") == Some(b"2".to_vec())));
    assert!(eventually(1000 * MS, || proxy.connections() == 1));
}

#[test]
fn a_refusal_holds_while_other_threads_start_children() {
    let server = Server::start();
    let proxy = Proxy::in_front_of(server.port());
    // A child holds copies of this process's sockets until its exec.
    let children = std::thread::spawn(|| {
        for _ in 0..300 {
            let child = spawn_tied(std::process::Command::new("true"));
            child.and_then(|mut child| child.wait()).expect("a child");
        }
    });
    for _ in 0..10_000 {
        proxy.refuse();
        assert!(
            Probe::connect(proxy.port()).is_err(),
            "a closed port accepted"
        );
        proxy.reopen();
        if children.is_finished() {
            break;
        }
    }
    children.join().expect("the children");
}
