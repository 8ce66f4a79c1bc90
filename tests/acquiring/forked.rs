//! F40: no owner token is ever seen twice, whoever forks, and a child has no part in what its
//! parent holds.
//! Tier: 100 locks by each of 8 children and 8 threads and 500 races every day, 1,000 and 10,000
//! under full.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use quorumlock::{Client, Guard, ReleaseError};

use crate::helpers::*;
use crate::support::*;

const TTL: Duration = Duration::from_secs(2);
const LONG: Duration = Duration::from_secs(120);

fn family(entry: &str, cluster: &Cluster) -> Worker {
    let count = pick("100", "1000");
    let urls = cluster.urls().join(" ");
    Worker::start(entry, &[("WORKER_URLS", &urls), ("WORKER_COUNT", count)])
}

#[test]
fn eight_children_and_eight_threads_never_use_a_token_twice() {
    let cluster = Cluster::start(5);
    // Every quorum of the five has one of these three in it.
    let monitors = [0, 1, 2].map(|node| Monitor::on(cluster[node].port()));
    let probe = cluster.probe();
    let mut parent = family("forked::parent_of_eight", &cluster);
    parent.hear("held", Duration::from_secs(10));
    let token = probe.holder_by_quorum(key("parents")).expect("a holder");
    let deadline = Instant::now() + LONG;
    let released = std::thread::spawn(move || {
        parent.hear("still held", LONG);
        parent.hear("released", LONG);
        parent.finish(LONG)
    });
    let mut looks = 0;
    while !released.is_finished() {
        assert!(Instant::now() < deadline, "the family takes too long");
        let holder = probe.holder_by_quorum(key("parents"));
        // The release comes at the very end.
        if holder.as_ref() != Some(&token) {
            break;
        }
        looks += 1;
        std::thread::sleep(10 * MS);
    }
    let (status, said) = released.join().expect("the family lives in order");
    assert!(status.success(), "{said:#?}");
    assert!(looks > 10, "{looks} looks");

    let mut names: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    for monitor in &monitors {
        let grants: Vec<Seen> = monitor.of("set").into_iter().filter(is_grant).collect();
        let here: HashSet<&Vec<u8>> = grants.iter().map(|set| &set.args[2]).collect();
        assert_eq!(here.len(), grants.len(), "a token was used twice");
        for set in &grants {
            let (name, token) = (&set.args[1], &set.args[2]);
            let known = names.entry(token.clone()).or_insert_with(|| name.clone());
            assert_eq!(known, name, "two locks with one token");
        }
    }
    assert!(names.len() > 16 * pick(100, 1000), "{}", names.len());
    // Forty hexadecimal digits are 160 bits.
    let printable = |token: &Vec<u8>| token.len() == 40 && token.iter().all(u8::is_ascii_hexdigit);
    assert!(names.keys().all(printable));
}

#[test]
#[ignore = "a process of the test above"]
fn parent_of_eight() {
    // Seventeen engines and five servers take turns: the lease is a long one.
    let client = open(patient(told_urls(), 3 * TTL));
    let count: u32 = told("WORKER_COUNT").parse().expect("a number");
    let guard = block_on(client.lock("parents").acquire()).expect("the lock");
    eprintln!("held");
    let mut children = Vec::new();
    for child in 0..8 {
        match fork() {
            0 => {
                // Half of the children let go of what they never held; the others keep it.
                let kept = (child % 2 == 1).then_some(guard);
                leave(
                    || take_many(&client, &format!("child-{child}"), count),
                    kept,
                )
            }
            pid => children.push(pid),
        }
    }
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let client = &client;
            scope.spawn(move || take_many(client, &format!("thread-{thread}"), count));
        }
    });
    for pid in children {
        assert_eq!(wait_for(pid), 0, "a child failed");
    }
    // It is extended after 2 s.
    std::thread::sleep(TTL + TTL / 4);
    assert_eq!(guard.loss(), None);
    eprintln!("still held");
    let released = block_on(guard.release()).expect("released");
    assert!(released.in_time());
    eprintln!("released");
}

#[test]
fn a_child_does_not_renew_what_its_dead_parent_held() {
    let cluster = Cluster::start(5);
    let probe = cluster.probe();
    let mut parent = family("forked::parent_of_an_orphan", &cluster);
    parent.hear("child holds", Duration::from_secs(10));
    // Both have been extended by now.
    std::thread::sleep(TTL);
    let holder = |name| probe.holder_by_quorum(key(name));
    let (parents, childs) = (holder("parents"), holder("childs"));
    assert!(parents.is_some() && childs.is_some());
    parent.kill();
    let gone = eventually(TTL + SLACK, || copies(&probe, &key("parents")) == 0);
    assert!(gone, "the parent's lock outlives it");
    assert_eq!(
        holder("childs"),
        childs,
        "the child lives and renews its own"
    );
    assert!(eventually(4 * TTL, || lock_keys(&probe).is_empty()));
}

#[test]
#[ignore = "a process of the test above"]
fn parent_of_an_orphan() {
    let client = open(settings(told_urls(), TTL));
    let guard = block_on(client.lock("parents").acquire()).expect("the lock");
    if fork() == 0 {
        let held = || {
            let own = block_on(client.lock("childs").acquire()).expect("the child's lock");
            eprintln!("child holds");
            std::thread::sleep(3 * TTL);
            assert!(block_on(own.release()).expect("released").in_time());
        };
        leave(held, Some(guard));
    }
    std::thread::sleep(LONG);
}

/// What a child does with its life. `kept` is the parent's guard, as the child sees it.
fn leave(life: impl Fn(), kept: Option<Guard>) -> ! {
    // A child that hangs must not stay for ever.
    // SAFETY: alarm(2) and _exit(2) touch nothing of ours.
    unsafe { libc::alarm(100) };
    let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        life();
        if let Some(guard) = kept {
            let refused = block_on(guard.release());
            let ended = matches!(&refused, Err(ReleaseError::Closed));
            let lost = refused.as_ref().is_ok_and(|released| !released.in_time());
            assert!(ended || lost, "released what the parent holds: {refused:?}");
        }
    }));
    // SAFETY: as above.
    unsafe { libc::_exit(i32::from(lived.is_err())) }
}

/// Takes `count` locks one after the other.
fn take_many(client: &Client, who: &str, count: u32) {
    block_on(async {
        for one in 0..count {
            let lock = client.lock(format!("{who}-{one}"));
            let guard = lock.acquire().await.expect("a lock of one's own");
            assert!(guard.release().await.expect("released").in_time());
        }
    });
}

fn fork() -> libc::pid_t {
    // SAFETY: the child goes on with this thread alone. It uses the allocator, which glibc keeps
    // usable over a fork, and nothing that another thread may have locked.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "no fork: {}", std::io::Error::last_os_error());
    pid
}

/// The exit code of a child; 128 for one that died of a signal.
fn wait_for(pid: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    let waited = unsafe { libc::waitpid(pid, &mut status, 0) };
    assert_eq!(waited, pid);
    if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        128
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_tasks_that_race_for_one_name_one_wins_at_most() {
    let cluster = Cluster::start(5);
    let clients = [(); 2].map(|()| open(patient(cluster.urls(), TTL)));
    let mut won = 0;
    for race in 0..pick(500, 10_000) {
        // One client against itself, then against another.
        let racers = [&clients[0], &clients[race % 2]].map(|client| {
            let lock = client.lock("raced for");
            tokio::spawn(async move { lock.try_acquire().await.ok() })
        });
        let [first, second] = racers;
        let (first, second) = (first.await.expect("ok"), second.await.expect("ok"));
        let both = first.is_some() && second.is_some();
        assert!(!both, "two winners in race {race}");
        if let Some(guard) = first.or(second) {
            won += 1;
            assert!(guard.release().await.expect("released").in_time());
        }
    }
    assert!(won > pick(500, 10_000) / 10, "{won} races had a winner");
}
