//! A child on a terminal, and the job control of the shell around (F39).

use std::process::Command;
use std::time::Duration;

use crate::common::*;
use crate::helpers::*;
use crate::pty::Session;

const LONG: Duration = Duration::from_secs(5);

/// An interactive shell in the site, with the command in the variable `ql`.
fn shell(site: &Site) -> Session {
    let ours = site.command(&[]);
    let mut command = Command::new("bash");
    command.args(["--norc", "--noprofile", "-i"]);
    command.current_dir(site.dir.path());
    for (name, value) in ours.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .env("PS1", "ready> ")
        .env("TERM", "dumb")
        .env_remove("HISTFILE");
    hear_signals(&mut command);
    let mut session = Session::start(command);
    session.sees("ready> ");
    session.type_in(&format!("ql={}\n", env!("CARGO_BIN_EXE_quorumlock")));
    session.sees("ready> ");
    session
}

#[test]
fn a_child_sees_a_terminal_reads_it_and_gets_its_interrupt() {
    let site = Site::with(3, LONG);
    let script = "test -t 0 && test -t 1 && test -t 2 && echo a-$((1 + 1))-tty; \
                  read line; echo got-$line; exec sleep 30";
    // A shell that waits for a child may miss an interrupt between fork and exec: hence its own exec.
    let mut session = Session::start(site.command(&["run", "job", "--", "sh", "-c", script]));
    session.sees("a-2-tty");
    session.type_in("hello\n");
    session.sees("got-hello");
    session.type_in("\u{3}");
    let status = session.finish();
    assert_eq!(status.code(), Some(130), "{}", session.shown());
    assert!(site.no_key("job", SLACK));
}

#[test]
fn a_job_stops_and_comes_back_with_its_terminal() {
    let site = Site::with(3, LONG);
    let mut session = shell(&site);
    session.type_in("$ql run job -- sh -c 'echo u''p; read a; echo got-$a; exit 6'\n");
    session.sees("up");
    session.pause(50 * MS);
    session.type_in("\u{1a}");
    session.sees("Stopped");
    session.sees("ready> ");
    session.type_in("echo shell-$((40 + 2))\n");
    session.sees("shell-42");
    session.type_in("fg\n");
    session.pause(100 * MS);
    session.type_in("hello\n");
    session.sees("got-hello");
    session.sees("ready> ");
    session.type_in("echo status-$?\n");
    session.sees("status-6");
    assert!(site.no_key("job", SLACK));
}

#[test]
fn a_job_in_the_background_stops_when_it_wants_the_terminal() {
    let site = Site::with(3, LONG);
    let mut session = shell(&site);
    // In a subshell, which is to stop, too.
    session.type_in("{ $ql run job -- sh -c 'read a; echo got-$a; exit 4'; } &\n");
    session.sees("ready> ");
    // Bash tells of it at its next prompt.
    session.pause(500 * MS);
    session.type_in("jobs\n");
    session.sees("Stopped");
    session.type_in("fg\n");
    session.pause(100 * MS);
    session.type_in("hello\n");
    session.sees("got-hello");
    session.sees("ready> ");
    session.type_in("echo status-$?\n");
    session.sees("status-4");
}

#[test]
fn one_that_was_stopped_for_too_long_does_not_work_on() {
    let site = Site::with(3, Duration::from_secs(1));
    let mut session = shell(&site);
    // Its member ignores Ctrl-Z, and is stopped all the same.
    let script = "trap \"\" TSTP; echo u''p; while :; do date +%s%N > beat; done";
    session.type_in(&format!("$ql run job -- sh -c '({script}) & wait'\n"));
    session.sees("up");
    session.pause(50 * MS);
    session.type_in("\u{1a}");
    session.sees("Stopped");
    session.pause(50 * MS);
    let beat = site.read("beat");
    session.pause(site.ttl + SLACK);
    assert_eq!(
        site.read("beat"),
        beat,
        "it works while nobody extends its lock"
    );
    session.type_in("fg\n");
    session.sees("was lost");
    session.sees("ready> ");
    session.type_in("echo status-$?\n");
    session.sees("status-76");
    assert_eq!(site.read("beat"), beat, "it works on after its validity");
}

#[test]
fn in_a_pipeline_the_terminal_goes_to_whoever_asks() {
    let site = Site::with(3, LONG);
    let mut session = shell(&site);
    // The reader at the end of the pipe, as a pager does.
    session.type_in("$ql run job -- echo one | sh -c 'read a; read b </dev/tty; echo $a-$b'\n");
    session.pause(300 * MS);
    session.type_in("two\n");
    session.sees("one-two");
    session.sees("ready> ");
    // The child itself.
    session.type_in("$ql run job -- sh -c 'read b; echo $b' | sed s/^/three-/\n");
    session.pause(300 * MS);
    session.type_in("four\n");
    session.sees("three-four");
    session.sees("ready> ");
    session.type_in("echo still-$((40 + 2))\n");
    session.sees("still-42");
}

#[test]
fn an_interrupt_ends_the_loop_or_the_script_around() {
    let site = Site::with(3, LONG);
    let mut session = shell(&site);
    session.type_in("for i in 1 2 3; do $ql run job -- sh -c 'echo u''p; exec sleep 30'; done\n");
    session.sees("up");
    session.pause(50 * MS);
    session.type_in("\u{3}");
    session.sees("ready> ");
    let program = env!("CARGO_BIN_EXE_quorumlock");
    let script =
        format!("{program} run job -- sh -c 'echo u''p; exec sleep 30'; echo went-$((40 + 2))\n");
    std::fs::write(site.path("script"), script).expect("a file");
    session.type_in("bash script; echo status-$?\n");
    session.sees("up");
    session.pause(50 * MS);
    session.type_in("\u{3}");
    session.sees("ready> ");
    session.type_in("echo end-$((40 + 2))\n");
    session.sees("end-42");
    let shown = session.shown();
    assert!(!shown.contains("went-42"), "{shown}");
    assert_eq!(shown.matches("\nup").count(), 2, "{shown}");
    assert!(site.no_key("job", SLACK));
}

#[test]
fn colour_is_for_terminals_only() {
    let site = Site::start(3);
    let plain = site.run(&["status", "job"]);
    assert!(!plain.out.contains('\u{1b}'), "{plain:?}");
    let mut session = Session::start(site.command(&["status", "job"]));
    session.finish();
    session.sees("\u{1b}[33mlock \"job\": free\u{1b}[0m");
    let mut command = site.command(&["status", "job"]);
    command.env("NO_COLOR", "1");
    let mut session = Session::start(command);
    session.finish();
    session.sees("lock \"job\": free");
    assert!(!session.shown().contains('\u{1b}'));
}
