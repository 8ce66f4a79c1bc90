//! F49: four processes take one lock in turn while nodes die, come back and lose their counters.
//! Now and then a holder is stopped past its lease and writes when it goes on: it is refused.
//! Tier: 100 grants every day, 2,000 under full.
//!
//! The order of grants is that of a list outside the lock's nodes, to which each holder appends
//! its token while it holds: no clock has a say in it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::helpers::*;
use crate::support::*;
use crate::writer::{self, Resources};

const WORKERS: usize = 4;

/// The least numbers of grants, of troubles, and of stopped holders.
fn goals() -> (usize, usize, usize) {
    pick((100, 2, 2), (2_000, 8, 20))
}

#[test]
fn tokens_grow_and_stale_writes_are_refused_while_nodes_die_and_return() {
    let cluster = Cluster::with(5, |_, server| server.aof(true));
    let ledger = Server::start();
    let resources = Resources::start(&ledger);
    let urls = cluster.urls().join(" ");
    let vars = resources.vars(&urls);
    let vars: Vec<_> = vars.iter().map(|(name, value)| (*name, &**value)).collect();
    let workers: Vec<Worker> = (0..WORKERS)
        .map(|_| Worker::start("writer::writer", &vars))
        .collect();
    let over = AtomicBool::new(false);
    let (stopped, troubles) = std::thread::scope(|scope| {
        let trouble = scope.spawn(|| disturb(&cluster, &over));
        // However this thread ends, the other must hear of it.
        let ending = Ending(&over);
        let stopped = stop_holders(&ledger, resources.count());
        drop(ending);
        (stopped, trouble.join().expect("restarted nodes"))
    });
    let mut probe = patient_probe(&ledger);
    probe.set_raw("over", "1", None);
    for worker in workers {
        let (status, heard) = worker.finish(Duration::from_secs(60));
        assert!(status.success(), "{heard:#?}");
    }
    let grants = grants(&mut probe);
    println!(
        "{} grants, {stopped} holders stopped, nodes in trouble {troubles} times",
        grants.len()
    );
    let tokens: Vec<u64> = grants.iter().map(|(_, token)| *token).collect();
    let (least, least_troubles, _) = goals();
    assert!(tokens.len() >= least && troubles >= least_troubles);
    assert_grows(&tokens, "granted");
    let pids: HashSet<&String> = grants.iter().map(|(pid, _)| pid).collect();
    assert_eq!(pids.len(), WORKERS, "some process was never served");
    assert_eq!(list(&mut probe, "unexpected"), Vec::<String>::new());
    assert_grows(&resources.written(), "written");
}

/// What is done to the nodes, two at a time at most. Says how often.
fn disturb(cluster: &Cluster, over: &AtomicBool) -> usize {
    let mut dice = Dice::new();
    let mut troubles = 0;
    let (_, least, _) = goals();
    while troubles < least || !over.load(Ordering::SeqCst) {
        let first = dice.below(5) as usize;
        let second = (first + 1 + dice.below(4) as usize) % 5;
        let (one, two) = (&cluster[first], &cluster[second]);
        match troubles % 4 {
            0 => {
                one.kill();
                two.restart_with_data();
                std::thread::sleep(500 * MS);
                one.restart_empty();
            }
            1 => [one, two].into_iter().for_each(delete_counter),
            2 => [one, two].into_iter().for_each(Server::restart_empty),
            _ => [one, two].into_iter().for_each(Server::restart_with_data),
        }
        troubles += 1;
        // Uptimes are in whole seconds; after that both have their votes again.
        let calm = writer::RESTART_DELAY + 1200 * MS;
        let _ = eventually(calm, || troubles >= least && over.load(Ordering::SeqCst));
    }
    troubles
}

fn delete_counter(server: &Server) {
    let mut probe = patient_probe(server);
    probe.command(&["DEL", &format!("{}:fence", key(writer::NAME))]);
}

/// Lets holders be stopped, one after the other, until there are grants and stops enough.
///
/// A holder that finds the key `pause` notes who it is, stops itself and writes when it goes on,
/// which is when a successor has written. Says how many were.
fn stop_holders(ledger: &Server, resources: usize) -> usize {
    let (grants, _, stops) = goals();
    let deadline = Instant::now() + Duration::from_secs(pick(120, 1200));
    let mut probe = patient_probe(ledger);
    let mut stopped = 0;
    while stopped < stops || length(&mut probe, "grants") < grants {
        assert!(Instant::now() < deadline, "{stopped} holders stopped");
        probe.set_raw("pause", "1", None);
        let note = wait_for("a holder to stop", || probe.get("stopped"));
        let note = String::from_utf8(note).expect("a plain note");
        let (pid, token) = note.split_once(' ').expect("who, and which token");
        let (pid, token): (u32, u64) = (number(pid), number(token));
        wait_for("the stop", || (state_of(pid) == Some('T')).then_some(()));
        wait_for("a successor's write", || {
            let last = list(&mut probe, "written").pop()?;
            (number::<u64>(&last) > token).then_some(())
        });
        send_signal(pid, libc::SIGCONT).expect("the holder goes on");
        stopped += 1;
        wait_for("the stale writes", || {
            (length(&mut probe, "stale") == stopped * resources).then_some(())
        });
        let answers = list(&mut probe, "stale");
        let accepted = answers.iter().find(|answer| !answer.ends_with(" refused"));
        assert!(accepted.is_none(), "token {token}: {accepted:?}");
        probe.command(&["DEL", "stopped"]);
        std::thread::sleep(pick(500, 1000) * MS);
    }
    stopped
}

/// Process and token of each grant, in order; without those whose guard was lost by the time the
/// list had them, since a successor may have been faster.
fn grants(probe: &mut Probe) -> Vec<(String, u64)> {
    let late: HashSet<String> = list(probe, "late").into_iter().collect();
    let split = |line: &String| {
        let (pid, token) = line.split_once(' ').expect("who, and which token");
        (!late.contains(token)).then(|| (pid.to_owned(), number(token)))
    };
    list(probe, "grants").iter().filter_map(split).collect()
}

fn assert_grows(tokens: &[u64], what: &str) {
    let wrong = tokens.windows(2).position(|pair| pair[0] >= pair[1]);
    assert!(
        wrong.is_none(),
        "{what}: {:?}",
        wrong.map(|at| &tokens[at..at + 2])
    );
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    let there = eventually(Duration::from_secs(60), || {
        found = look();
        found.is_some()
    });
    assert!(there, "waited in vain for {what}");
    found.expect("it is there")
}

pub fn patient_probe(server: &Server) -> Probe {
    Probe::connect_within(server.port(), Duration::from_secs(20)).expect("a connection")
}

fn length(probe: &mut Probe, list: &str) -> usize {
    let length = probe.command(&["LLEN", list]).int().expect("a length");
    usize::try_from(length).expect("not negative")
}

fn list(probe: &mut Probe, name: &str) -> Vec<String> {
    let reply = probe.command(&["LRANGE", name, "0", "-1"]);
    let items = reply.items().expect("a list").iter();
    items.map(|item| item.text().expect("plain text")).collect()
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse()
        .unwrap_or_else(|_| panic!("{text:?} is no number"))
}

struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
