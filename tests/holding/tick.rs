//! Releases aimed at the moment of an extension: nothing of a released token is seen again.
//! Tier: 500 cycles every day, 20,000 under full; half of them by drop.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio::task::JoinSet;

use crate::helpers::*;
use crate::support::*;

const TTL: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_millis(15);
const TASKS: u64 = 10;

#[tokio::test]
async fn nothing_of_a_token_follows_its_release() {
    let cycles = pick(500, 20_000);
    let cluster = Cluster::start(5);
    let monitors = [0, 4].map(|node| Monitor::on(cluster[node].port()));
    let client = open(patient(cluster.urls(), TTL).extend_every(EVERY));
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let lock = client.lock(format!("ticking-{task}"));
        tasks.spawn(async move {
            let mut dice = Dice::new();
            for cycle in 0..cycles / TASKS {
                let guard = lock.acquire().await.expect("a lock of one's own");
                // From 2 ms before the tick to 2 ms behind it.
                tokio::time::sleep(EVERY - 2 * MS + dice.span(4 * MS)).await;
                if cycle % 2 == 0 {
                    drop(guard);
                } else {
                    assert!(guard.release().await.expect("released").in_time());
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("no panic");
    }
    let probe = cluster.probe();
    let gone = || lock_keys(&probe).is_empty();
    assert!(
        eventually_async(SLACK, gone).await,
        "{:?}",
        lock_keys(&probe)
    );
    // Nothing comes late either.
    tokio::time::sleep(5 * EVERY).await;
    assert_eq!(lock_keys(&probe), []);
    for monitor in &monitors {
        let history = History::read(&monitor.seen());
        assert!(history.released.len() as u64 > cycles / 2, "{history:?}");
        assert!(history.extended > cycles as usize / 10, "{history:?}");
        assert_eq!(history.ghosts, Vec::<String>::new());
    }
}

/// What one node was sent, told apart by what it led to: a script that deletes is the release,
/// one that sets an expiry is the extension.
#[derive(Debug, Default)]
struct History {
    released: HashSet<Vec<u8>>,
    extended: usize,
    ghosts: Vec<String>,
}

impl History {
    fn read(seen: &[Seen]) -> History {
        let kinds = kinds(seen);
        let mut history = History::default();
        for command in seen.iter().filter(|command| command.from != "lua") {
            let Some(token) = token(command) else {
                continue;
            };
            match kinds.get(&program(command)) {
                Some(Kind::Release) => {
                    history.released.insert(token);
                    continue;
                }
                Some(Kind::Extension) => history.extended += 1,
                // A plain grant.
                None => {}
            }
            if history.released.contains(&token) {
                history.ghosts.push(format!("{command:?}"));
            }
        }
        history
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Release,
    Extension,
}

/// Which script is which, by the calls that followed it.
fn kinds(seen: &[Seen]) -> HashMap<Vec<u8>, Kind> {
    let mut kinds = HashMap::new();
    let mut running = None;
    for command in seen {
        if command.from != "lua" {
            running = token(command).map(|_| program(command));
        } else if let Some(program) = &running
            && command.args.get(1).is_some_and(|name| !stays(name))
        {
            let kind = match command.name().as_str() {
                "DEL" => Kind::Release,
                "PEXPIRE" => Kind::Extension,
                _ => continue,
            };
            kinds.insert(program.clone(), kind);
        }
    }
    kinds
}

/// The text or the digest of a script; the name of a plain command.
fn program(command: &Seen) -> Vec<u8> {
    let script = command.name().starts_with("EVAL");
    command.args[usize::from(script)].clone()
}

/// The owner token among the arguments. A digest has forty digits, too, and stands first.
fn token(command: &Seen) -> Option<Vec<u8>> {
    let is_token = |arg: &&Vec<u8>| arg.len() == 40 && arg.iter().all(u8::is_ascii_hexdigit);
    command.args.iter().skip(2).find(is_token).cloned()
}

#[test]
fn a_planted_ghost_is_found() {
    let seen = |from: &str, args: &[&str]| Seen {
        at: 0.0,
        from: from.to_owned(),
        args: args.iter().map(|arg| arg.as_bytes().to_vec()).collect(),
    };
    let (one, other) = ("a1".repeat(20), "b2".repeat(20));
    let mut lines = vec![
        seen("client", &["SET", "key", &one, "NX", "PX", "1000"]),
        seen("client", &["EVAL", "extend", "1", "key", &one, "1000", "0"]),
        seen("lua", &["GET", "key"]),
        seen("lua", &["PEXPIRE", "key", "1000"]),
        seen("client", &["EVAL", "release", "1", "key", &one]),
        seen("lua", &["DEL", "key"]),
        // Released twice is no harm; another token is another matter.
        seen("client", &["EVAL", "release", "1", "key", &one]),
        seen(
            "client",
            &["EVAL", "extend", "1", "key", &other, "1000", "0"],
        ),
    ];
    assert_eq!(History::read(&lines).ghosts, Vec::<String>::new());
    lines.push(seen(
        "client",
        &["EVAL", "extend", "1", "key", &one, "1000", "0"],
    ));
    let history = History::read(&lines);
    assert_eq!((history.ghosts.len(), history.extended), (1, 3));
    lines.pop();
    lines.push(seen("client", &["SET", "key", &one, "NX", "PX", "1000"]));
    assert_eq!(History::read(&lines).ghosts.len(), 1);
}
