//! Mutual exclusion as a stranger sees it: many processes, one lock, kills and broken connections.
//!
//! Field cases: F04 (no lock key without a TTL), and the witness of issue 2.
//! Tier: 600 cycles in everyday runs, 10,000 under QUORUMLOCK_FULL=1.

mod helpers;
mod support;

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use helpers::*;
use support::*;

const TTL: Duration = Duration::from_millis(400);
const WORKERS: usize = 8;
const NAME: &str = "witnessed";

#[test]
fn two_processes_never_hold_one_lock_and_no_key_is_without_a_ttl() {
    let goal = pick(600, 10_000);
    let cluster = Cluster::start(5);
    let proxies = Proxy::in_front_of_all(cluster.ports());
    let monitor = Monitor::on(cluster[0].port());
    let dir = tempfile::tempdir().expect("a directory");
    let notes = dir.path().join("notes");
    Witness::open(&notes).expect("a file");

    let over = AtomicBool::new(false);
    let sampled = std::thread::scope(|scope| {
        let sampler = scope.spawn(|| sample(&cluster, &over));
        // However this thread ends, the sampler must hear of it.
        let ending = Ending(&over);
        torment(&proxies, &notes, goal);
        drop(ending);
        sampler.join().expect("the sampler")
    });

    let summary = check(&notes).unwrap_or_else(|violation| panic!("{violation}"));
    assert!(summary.claims >= goal, "{summary:?}");
    assert!(summary.unfinished > 0, "no holder was killed: {summary:?}");
    assert!(summary.by_pid.len() > WORKERS, "nobody came after a kill");
    assert!(sampled.looks > goal as u64, "{sampled:?}");
    assert_eq!(sampled.bad, Vec::<String>::new());
    let sets = monitor.of("set");
    let wrong = sets.iter().find(|set| !is_whole(&set.args));
    assert!(sets.len() > goal / 2 && wrong.is_none(), "{wrong:?}");

    let probe = cluster.probe();
    let gone = eventually(TTL + SLACK, || lock_keys(&probe).is_empty());
    assert!(gone, "left behind: {:?}", lock_keys(&probe));
}

/// Runs the workers, kills one now and then, and breaks connections, until `goal` holdings are
/// noted.
fn torment(proxies: &[Proxy], notes: &Path, goal: usize) {
    let urls = proxies.iter().map(Proxy::url).collect::<Vec<_>>().join(" ");
    let notes_text = notes.to_str().expect("a plain path");
    let vars = [("WORKER_URLS", &*urls), ("WORKER_NOTES", notes_text)];
    let start = || Worker::start("worker", &vars);
    let mut workers: Vec<Worker> = (0..WORKERS).map(|_| start()).collect();
    let mut dice = Dice::new();
    let mut reader = Reader::new(notes);
    let limit = Duration::from_secs(pick(300, 1800));
    let deadline = Instant::now() + limit;
    while reader.holdings < goal {
        let missing = goal - reader.holdings;
        assert!(Instant::now() < deadline, "{missing} holdings missing");
        std::thread::sleep(20 * MS + dice.span(130 * MS));
        reader.read_on();
        match dice.below(3) {
            0 => proxies[dice.below(5) as usize].reset(),
            1 => replace(&mut workers[dice.below(8) as usize], start),
            // Whoever entered last is likely to hold the lock at this moment.
            _ => {
                let holder = workers.iter_mut().find(|w| w.pid() == reader.last_pid);
                if let Some(holder) = holder {
                    replace(holder, start);
                }
            }
        }
    }
}

fn replace(worker: &mut Worker, start: impl Fn() -> Worker) {
    worker.kill();
    *worker = start();
}

#[test]
#[ignore = "a process of the test above"]
fn worker() {
    let notes = Witness::open(told("WORKER_NOTES")).expect("the notes");
    let client = open(settings(told_urls(), TTL));
    let lock = client.lock(NAME).wait(Duration::from_secs(5));
    let mut dice = Dice::new();
    // Numbers of processes come round again.
    let life = dice.below(u64::MAX);
    block_on(async {
        // Killed long before the last one.
        for cycle in 0..1_000_000_u64 {
            let Ok(guard) = lock.acquire().await else {
                continue;
            };
            let token = format!("{life:x}-{cycle}");
            notes.enter(&token, valid_until(&guard)).expect("noted");
            // Now and then for longer than the TTL, which takes an extension.
            let long = dice.below(100) == 0;
            let mut left = if long { 500 * MS } else { dice.span(4 * MS) };
            while !left.is_zero() && guard.is_held() {
                let nap = left.min(40 * MS);
                tokio::time::sleep(nap).await;
                left -= nap;
                notes.extend(&token, valid_until(&guard)).expect("noted");
            }
            notes.leave(&token, valid_until(&guard)).expect("noted");
            if dice.below(4) == 0 {
                drop(guard);
            } else {
                // A broken connection may leave it unconfirmed.
                let _ = guard.release().await;
            }
        }
    });
}

/// The end of validity on the boot clock, or a little before it.
fn valid_until(guard: &quorumlock::Guard) -> u64 {
    let now = boot_nanos();
    now + u64::try_from(guard.remaining().as_nanos()).expect("a short TTL")
}

#[derive(Debug, Default)]
struct Sampled {
    looks: u64,
    bad: Vec<String>,
}

/// Looks at every key on every node, all the time.
fn sample(cluster: &Cluster, over: &AtomicBool) -> Sampled {
    const LOOK: &str = "local seen = {}
        for _, key in ipairs(redis.call('KEYS', '*')) do
          seen[#seen + 1] = key
          seen[#seen + 1] = redis.call('PTTL', key)
        end
        return seen";
    let mut probes: Vec<Probe> = cluster.iter().map(Server::probe).collect();
    let mut sampled = Sampled::default();
    let longest = i64::try_from(TTL.as_millis()).expect("a short TTL") + 5;
    while !over.load(Ordering::Relaxed) {
        for (node, probe) in probes.iter_mut().enumerate() {
            let Ok(reply) = probe.try_command(&["EVAL", LOOK, "0"]) else {
                // A second without an answer, on a machine that is busy elsewhere.
                *probe = cluster[node].probe();
                continue;
            };
            sampled.looks += 1;
            for pair in reply.items().expect("a list").chunks_exact(2) {
                let name = pair[0].bytes().expect("a key");
                let pttl = pair[1].int().expect("a PTTL");
                // -2: it ran out inside the script.
                if !stays(name) && pttl != -2 && !(0..=longest).contains(&pttl) {
                    let name = String::from_utf8_lossy(name);
                    sampled.bad.push(format!("node {node}: {name} {pttl}"));
                }
            }
        }
        std::thread::sleep(MS);
    }
    sampled
}

/// Whether a SET gives value and expiry at once. The marker is meant to have none.
fn is_whole(args: &[Vec<u8>]) -> bool {
    let px = args.iter().any(|arg| arg.eq_ignore_ascii_case(b"px"));
    px || args.get(1).is_some_and(|key| stays(key))
}

struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Counts the holdings in the notes while they are written.
struct Reader {
    file: std::fs::File,
    at: u64,
    holdings: usize,
    last_pid: u32,
}

impl Reader {
    fn new(path: &Path) -> Reader {
        Reader {
            file: std::fs::File::open(path).expect("the notes"),
            at: 0,
            holdings: 0,
            last_pid: 0,
        }
    }

    fn read_on(&mut self) {
        self.file.seek(SeekFrom::Start(self.at)).expect("a file");
        let mut bytes = Vec::new();
        self.file.read_to_end(&mut bytes).expect("the notes");
        let Some(end) = bytes.iter().rposition(|&byte| byte == b'\n') else {
            return;
        };
        self.at += end as u64 + 1;
        for line in String::from_utf8_lossy(&bytes[..end]).lines() {
            if let Some(rest) = line.strip_prefix("enter ") {
                self.holdings += 1;
                let pid = rest.split(' ').next().and_then(|pid| pid.parse().ok());
                self.last_pid = pid.unwrap_or(self.last_pid);
            }
        }
    }
}
