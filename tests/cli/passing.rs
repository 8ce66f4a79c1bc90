//! What reaches the child, and what does not (F39).

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::Stdio;

use crate::common::*;
use crate::helpers::*;
use crate::support::*;

#[test]
fn arguments_arrive_byte_for_byte() {
    let site = Site::start(3);
    let odd = OsString::from_vec(vec![b'x', 0xff, b'\n', b'y']);
    let plain = [
        "a b",
        "",
        "*",
        "$HOME",
        "--version",
        "-v",
        "--",
        "--json",
        "--ttl",
        "\n",
        "'\"\\",
        "é",
        "-",
    ];
    let mut command = site.command(&["run", "job", "--", "sh", "-c"]);
    command
        .arg("for one; do printf '%s\\0' \"$one\"; done > args")
        .arg("name");
    command.args(plain).arg(&odd).arg("--");
    let done = Running::start(command).finish();
    assert_eq!(
        (done.code(), &*done.out, &*done.err),
        (0, "", ""),
        "{done:?}"
    );
    let got = fs::read(site.path("args")).expect("what the child has got");
    let mut expected = Vec::new();
    for one in plain
        .iter()
        .map(|text| text.as_bytes())
        .chain([odd.as_bytes(), b"--"])
    {
        expected.extend_from_slice(one);
        expected.push(0);
    }
    assert_eq!(got, expected);
}

#[test]
fn ten_megabytes_pass_through_and_their_end_is_seen() {
    let site = Site::start(3);
    let mut bytes = vec![0; 10 * 1024 * 1024];
    let mut state = 1_u64;
    for byte in &mut bytes {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        *byte = state.to_be_bytes()[0];
    }
    fs::write(site.path("in"), &bytes).expect("a file");
    let mut command = site.command(&["run", "job", "--", "cat"]);
    command.stdin(Stdio::piped());
    let mut child = spawn_tied(command).expect("the command starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let copy = bytes.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&copy));
    let mut got = Vec::new();
    let mut stdout = child.stdout.take().expect("a pipe");
    stdout.read_to_end(&mut got).expect("what cat says");
    writer.join().expect("a writer").expect("all is read");
    assert!(child.wait().expect("its end").success());
    assert!(got == bytes, "{} bytes of {}", got.len(), bytes.len());

    // A file, and none at all.
    let mut command = site.command(&["run", "job", "--", "wc", "-c"]);
    command.stdin(File::open(site.path("in")).expect("the file"));
    assert_eq!(Running::start(command).finish().out.trim(), "10485760");
    let done = site.run(&["run", "job", "--", "cat"]);
    assert_eq!((done.code(), &*done.out), (0, ""));
    // A closed one is an empty one: the standard library opens /dev/null in its place.
    let program = env!("CARGO_BIN_EXE_quorumlock");
    let script = format!("exec {program} run job -- cat <&-");
    let done = shell(&site, &script).finish();
    assert_eq!((done.code(), &*done.out), (0, ""), "{done:?}");
}

/// A shell in the directory of the site.
fn shell(site: &Site, script: &str) -> Running {
    let ours = site.command(&[]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script]).current_dir(site.dir.path());
    for (name, value) in ours.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Running::start(command)
}

#[test]
fn the_environment_is_the_same_but_for_two_names() {
    let site = Site::start(3);
    let mut plain = site.command(&[]);
    plain.env("QUORUMLOCK_WAIT", "5s").env("OTHER", "x\ny");
    let envs: Vec<_> = plain
        .get_envs()
        .map(|(n, v)| (n.to_owned(), v.map(ToOwned::to_owned)))
        .collect();
    let env = |command: &mut std::process::Command| {
        for (name, value) in &envs {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
    };
    let mut bare = std::process::Command::new("env");
    bare.arg("-0").current_dir(site.dir.path());
    env(&mut bare);
    let bare = bare.output().expect("env runs").stdout;
    let mut under = site.command(&["run", "seat/\u{e9} {1}", "--", "env", "-0"]);
    env(&mut under);
    let under = under.output().expect("the command runs").stdout;
    let lines = |bytes: &[u8]| {
        let mut lines: Vec<_> = bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
        lines.sort();
        lines
    };
    let (bare, under) = (lines(&bare), lines(&under));
    let more: Vec<_> = under.iter().filter(|line| !bare.contains(line)).collect();
    let more: Vec<_> = more
        .into_iter()
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect();
    assert_eq!(more.len(), 2, "{more:?}");
    let token = more[0]
        .strip_prefix("QUORUMLOCK_FENCING_TOKEN=")
        .expect("a token");
    assert!(
        token.parse::<u64>().is_ok_and(|token| token > 0),
        "{more:?}"
    );
    assert_eq!(more[1], "QUORUMLOCK_RESOURCE=seat/\u{e9} {1}");
    assert!(bare.iter().all(|line| under.contains(line)));

    // Inside another run there is the inner one's, or none.
    let mut inner = site.command(&["run", "outer", "--"]);
    inner.args([
        env!("CARGO_BIN_EXE_quorumlock"),
        "run",
        "inner",
        "--",
        "sh",
        "-c",
    ]);
    inner.arg("echo $QUORUMLOCK_RESOURCE ${QUORUMLOCK_FENCING_TOKEN-none}");
    inner
        .env("QUORUMLOCK_FENCING", "false")
        .env("QUORUMLOCK_FENCING_TOKEN", "1");
    let done = Running::start(inner).finish();
    assert_eq!((done.code(), &*done.out), (0, "inner none\n"), "{done:?}");
}

#[test]
fn the_child_has_no_descriptor_of_ours() {
    let site = Site::start(5);
    // What stands around the tests may hand something on; that stays.
    let bare = shell(&site, "exec ls /proc/self/fd").finish();
    let done = site.run(&["run", "job", "--", "ls", "/proc/self/fd"]);
    assert_eq!((done.code(), done.out), (0, bare.out));
    let script = format!(
        "exec 7<quorumlock.toml; exec {} run job -- sh -c 'exec 3<&-; ls /proc/$$/fd; head -c 5 <&7'",
        env!("CARGO_BIN_EXE_quorumlock")
    );
    let done = shell(&site, &script).finish();
    assert!(
        done.out.contains("\n7\n") && done.out.ends_with("nodes"),
        "{done:?}"
    );
}

/// Of this test alone: all processes of the machine are looked at.
const SECRET: &str = "of-the-nodes-in-passing";

#[test]
fn no_secret_is_in_the_list_of_processes() {
    let site = Site::start(3);
    for node in site.cluster.iter() {
        let set = node
            .probe()
            .command(&["CONFIG", "SET", "requirepass", SECRET]);
        assert_eq!(set, Reply::Simple("OK".into()));
    }
    let urls: Vec<_> = site
        .cluster
        .ports()
        .iter()
        .map(|port| format!("redis://:{SECRET}@127.0.0.1:{port}"))
        .collect();
    site.configure("quorumlock.toml", &urls);
    let script = "touch up; while [ ! -e enough ]; do sleep 0.01; done; env";
    let run = site.spawn(&["run", "job", "--", "sh", "-c", script]);
    site.await_file("up");
    let mut probe = site.cluster[0].probe();
    probe.command(&["AUTH", SECRET]);
    let owner = probe.get(key("job")).expect("the owner token");
    let owner = String::from_utf8(owner).expect("digits");
    for pid in fs::read_dir("/proc").expect("/proc").flatten() {
        let pid = pid.file_name();
        if !pid.as_bytes()[0].is_ascii_digit() {
            continue;
        }
        let line = fs::read(format!("/proc/{}/cmdline", pid.display())).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        assert!(!line.contains(SECRET) && !line.contains(&owner), "{line}");
    }
    let held = site.run(&["run", "--wait", "0s", "job", "--", "true"]);
    let status = site.run(&["status", "job"]);
    let shown = site.run(&["config"]);
    fs::write(site.path("enough"), "").expect("a file");
    let done = run.finish();
    assert_eq!(done.code(), 0, "{done:?}");
    for text in [&done.out, &held.err, &status.out, &shown.out] {
        assert!(!text.contains(SECRET) && !text.contains(&owner), "{text}");
    }
}
