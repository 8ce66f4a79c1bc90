//! Servers, the plain client and MONITOR.

use std::time::{Duration, Instant};

use crate::support::*;

const MS: Duration = Duration::from_millis(1);

fn ok() -> Reply {
    Reply::Simple("OK".into())
}

#[test]
fn a_paused_server_is_silent_and_goes_on_when_resumed() {
    let server = Server::start();
    server.probe().set_raw("k", "v", None);
    server.pause();
    let mut probe = Probe::connect_within(server.port(), 100 * MS).expect("the kernel accepts");
    assert!(probe.try_command(&["PING"]).is_err());
    server.resume();
    assert_eq!(server.probe().get("k"), Some(b"v".to_vec()));
}

#[test]
fn a_server_restarts_empty_or_with_its_data_on_the_same_port() {
    for aof in [false, true] {
        let server = Server::builder().aof(aof).start();
        let (port, pid) = (server.port(), server.pid());
        let run_id = server.probe().info("server")["run_id"].clone();
        server.probe().set_raw("k", "v", Some(60_000 * MS));
        server.restart_with_data();
        assert_eq!(server.probe().get("k"), Some(b"v".to_vec()), "aof: {aof}");
        assert!(server.probe().pttl("k") > 0);
        assert_ne!(server.pid(), pid);
        assert_ne!(server.probe().info("server")["run_id"], run_id);
        server.restart_empty();
        assert_eq!(server.port(), port);
        assert_eq!(
            server.probe().keys("*"),
            Vec::<Vec<u8>>::new(),
            "aof: {aof}"
        );
    }
}

#[test]
fn a_killed_or_stopped_server_refuses_and_its_process_is_gone() {
    let server = Server::builder().aof(true).start();
    for end in [Server::kill, Server::stop] {
        server.probe().set_raw("k", "v", None);
        let pid = server.pid().expect("it runs");
        end(&server);
        assert_eq!(server.pid(), None);
        assert!(!is_alive(pid));
        let refused = Probe::connect(server.port())
            .err()
            .map(|error| error.kind());
        assert_eq!(refused, Some(std::io::ErrorKind::ConnectionRefused));
        server.restart_with_data();
        assert_eq!(server.probe().get("k"), Some(b"v".to_vec()));
    }
}

#[test]
fn a_server_takes_options_and_drop_ends_a_paused_one() {
    let server = Server::builder().args(["--maxmemory", "7mb"]).start();
    let limit = server.probe().command(&["CONFIG", "GET", "maxmemory"]);
    assert_eq!(
        limit.items().and_then(|items| items[1].text()),
        Some("7340032".into())
    );
    let digest = server.probe().command(&["DEBUG", "SLEEP", "0"]);
    assert_eq!(digest, ok());
    let pid = server.pid().expect("it runs");
    server.pause();
    drop(server);
    assert!(!is_alive(pid));
}

#[test]
#[should_panic(expected = "ended at once")]
fn a_server_that_cannot_start_shows_its_log() {
    Server::builder().args(["--no-such-option", "1"]).start();
}

#[test]
fn the_port_of_a_stopped_server_goes_to_nobody_else() {
    let server = Server::start();
    server.kill();
    let others: Vec<_> = (0..50).map(|_| Server::builder()).collect();
    let taken: Vec<_> = others
        .iter()
        .map(|_| std::net::TcpListener::bind("127.0.0.1:0"))
        .collect();
    assert!(
        taken
            .iter()
            .flatten()
            .all(|l| l.local_addr().is_ok_and(|a| a.port() != server.port()))
    );
    server.restart_empty();
    assert_eq!(
        server.probe().command(&["PING"]),
        Reply::Simple("PONG".into())
    );
}

#[test]
fn a_cluster_probe_counts_owners_and_skips_the_dead() {
    let cluster = Cluster::start(5);
    assert_eq!(cluster.urls().len(), 5);
    let probe = cluster.probe();
    for index in 0..3 {
        cluster[index]
            .probe()
            .set_raw("lock", "me", Some(60_000 * MS));
    }
    cluster[3].probe().set_raw("lock", "you", None);
    cluster[4]
        .probe()
        .command(&["HSET", "lock", "field", "value"]);
    let owners = probe.owners("lock");
    assert!(
        matches!(&owners[0], Some((value, 1..=60_000)) if value == b"me"),
        "{owners:?}"
    );
    assert_eq!(owners[3], Some((b"you".to_vec(), -1)));
    assert!(
        owners[4]
            .as_ref()
            .is_some_and(|owner| owner.0.starts_with(b"WRONGTYPE"))
    );
    assert_eq!(probe.holder_by_quorum("lock"), Some(b"me".to_vec()));
    cluster[0].kill();
    cluster[1].pause();
    let begin = Instant::now();
    assert_eq!(probe.holder_by_quorum("lock"), None);
    assert!(begin.elapsed() < 2000 * MS);
    assert_eq!(probe.alive(), [false, false, true, true, true]);
    assert_eq!(
        probe.all_keys().iter().map(|key| key.0).collect::<Vec<_>>(),
        [2, 3, 4]
    );
    cluster[0].restart_empty();
    cluster[1].resume();
    assert_eq!(probe.alive(), [true; 5]);
    assert_eq!(probe.holder_by_quorum("lock"), None);
    assert_eq!(probe.owners("absent"), [const { None }; 5]);
}

#[test]
fn the_probe_reads_lists_counts_and_keys() {
    let server = Server::start();
    let mut probe = server.probe();
    for index in 0..2500 {
        probe.set_raw(format!("key:{index}"), "", None);
    }
    probe.set_raw(b"\x00\xff", b"\r\n\x00", None);
    assert_eq!(probe.keys("key:*").len(), 2500);
    assert_eq!(probe.get(b"\x00\xff"), Some(b"\r\n\x00".to_vec()));
    assert_eq!(probe.commandstats("set"), 2501);
    assert_eq!(probe.commandstats("getdel"), 0);
    assert_eq!(probe.client_list().len(), 1);
    probe.flushall();
    assert_eq!(probe.pttl("key:1"), -2);
}

#[test]
fn a_monitor_sees_every_command_byte_for_byte() {
    let server = Server::start();
    let monitor = Monitor::on(server.port());
    let mut probe = server.probe();
    let odd = b"a\"b\\c\r\n\t\x07\x08\x00\xff \xc3\xa9";
    for _ in 0..500 {
        probe.set_raw("k", odd, None);
    }
    probe.command(&["EVAL", "return redis.call('get', KEYS[1])", "1", "k"]);
    assert_eq!(monitor.of("set").len(), 500);
    assert_eq!(
        monitor.of("SET")[499].args,
        [b"SET".to_vec(), b"k".to_vec(), odd.to_vec()]
    );
    assert_eq!(monitor.of("get")[0].from, "lua");
    server.kill();
    assert_eq!(monitor.stop().len(), 502);
}

#[test]
fn the_kernel_kills_servers_of_a_killed_test_process() {
    let scratch = tempfile::tempdir().expect("a directory");
    let note = scratch.path().join("pid");
    let mut command = std::process::Command::new(std::env::current_exe().expect("this test"));
    command.args([
        "--exact",
        "servers::hold_a_server_for_the_parent",
        "--include-ignored",
    ]);
    // Its server's directory outlives it, so it must lie in ours.
    command
        .env("SUPPORT_SELFTEST_NOTE", &note)
        .env("TMPDIR", scratch.path());
    command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    let mut child = spawn_tied(command).expect("a second test process");
    let pid = || {
        std::fs::read_to_string(&note)
            .ok()?
            .trim()
            .parse::<u32>()
            .ok()
    };
    assert!(
        eventually(20_000 * MS, || pid().is_some()),
        "the second process started no server"
    );
    let pid = pid().expect("just seen");
    assert!(is_alive(pid));
    child.kill().expect("SIGKILL");
    child.wait().expect("its end");
    assert!(
        eventually(5_000 * MS, || !is_alive(pid)),
        "server {pid} outlived its test process"
    );
}

#[test]
#[ignore = "a helper: it runs in a process of its own, which is killed"]
fn hold_a_server_for_the_parent() {
    let Some(note) = std::env::var_os("SUPPORT_SELFTEST_NOTE") else {
        return;
    };
    // The thread that asks for the server ends at once; the server must not end with it.
    let server = std::thread::spawn(Server::start).join().expect("a server");
    std::thread::sleep(50 * MS);
    assert_eq!(
        server.probe().command(&["PING"]),
        Reply::Simple("PONG".into())
    );
    let pid = server.pid().expect("it runs");
    let draft = std::path::Path::new(&note).with_extension("draft");
    std::fs::write(&draft, pid.to_string()).expect("a note");
    std::fs::rename(&draft, &note).expect("a whole note");
    std::thread::sleep(60_000 * MS);
}
