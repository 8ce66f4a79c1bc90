//! F47 and its like: the holder stands still (SIGSTOP), or all nodes do.
//! Tier: 3 stops of the holder and 3 of the nodes every day, 50 under full.

use std::time::{Duration, Instant};

use quorumlock::{Guard, Loss};

use crate::helpers::*;
use crate::support::*;

const TTL: Duration = Duration::from_secs(1);

#[test]
fn a_holder_that_slept_through_its_lease_knows_it_at_its_first_look() {
    let cluster = Cluster::start(5);
    let rival = client(&cluster, TTL);
    let urls = cluster.urls().join(" ");
    for _ in 0..pick(3, 50) {
        let mut holder = Worker::start("stopped::sleeper", &[("WORKER_URLS", &urls)]);
        holder.hear("held", Duration::from_secs(10));
        let lock = rival.lock("slept");
        let waiting = std::thread::spawn(move || block_on(lock.wait(4 * TTL).acquire()));
        holder.signal(libc::SIGSTOP);
        std::thread::sleep(2 * TTL);
        let guard = waiting
            .join()
            .expect("no panic")
            .expect("the rival is served");
        // Nobody answers when the holder wakes: what it says, it says without any I/O.
        cluster.iter().for_each(Server::pause);
        let woken = boot_nanos();
        holder.signal(libc::SIGCONT);
        assert_eq!(holder.hear("first look: held ", 10 * TTL), "false");
        let told = holder.hear("lost ", 10 * TTL);
        let (at, loss) = told.split_once(' ').expect("when and why");
        let at: u64 = at.parse().expect("nanoseconds");
        assert_eq!(loss, "Expired");
        let late = Duration::from_nanos(at.saturating_sub(woken));
        assert!(late < 50 * MS + SLACK, "{late:?} after it woke");
        assert_eq!(holder.hear("extended ", 10 * TTL), "Err(Lost(Expired))");
        cluster.iter().for_each(Server::resume);
        block_on(guard.release()).expect("an answer");
    }
}

#[test]
#[ignore = "a process of the test above"]
fn sleeper() {
    let client = open(settings(told_urls(), TTL));
    let guard = block_on(client.lock("slept").acquire()).expect("the lock");
    let lost = guard.lost();
    let teller = std::thread::spawn(move || {
        let loss = block_on(lost);
        eprintln!("lost {} {loss:?}", boot_nanos());
    });
    let guard: Guard = guard;
    let mut last = boot_nanos();
    eprintln!("held");
    for _ in 0..100_000 {
        std::thread::sleep(MS / 5);
        let now = boot_nanos();
        if Duration::from_nanos(now - last) > TTL {
            eprintln!("first look: held {}", guard.is_held());
            teller.join().expect("no panic");
            eprintln!("extended {:?}", block_on(guard.extend()));
            return;
        }
        last = now;
    }
}

#[tokio::test]
async fn with_all_nodes_silent_the_loss_comes_at_the_deadline() {
    let cluster = Cluster::start(5);
    for _ in 0..pick(3, 50) {
        let client = client(&cluster, TTL);
        let guard = client.lock("silent").acquire().await.expect("a lock");
        tokio::time::sleep(TTL / 2).await;
        cluster.iter().for_each(Server::pause);
        // An extension that was on its way may have been answered still.
        tokio::time::sleep(node_timeout(TTL)).await;
        let (now, left) = (Instant::now(), guard.remaining());
        let loss = guard.lost().await;
        let took = now.elapsed();
        cluster.iter().for_each(Server::resume);
        assert_eq!(loss, Loss::Expired);
        assert!(!guard.is_held());
        // A millisecond before the end, so that the word is there by then.
        assert!(
            took + 2 * MS >= left,
            "{took:?}, too early: {left:?} were left"
        );
        assert!(
            took < left + 50 * MS + SLACK,
            "{took:?}: {left:?} were left"
        );
    }
}

/// The links are slow, the answers come while the process stands still, and its budget is over
/// when it goes on. What was answered in time counts all the same.
#[test]
fn a_process_that_stood_still_reads_the_answers_before_it_judges() {
    let cluster = Cluster::start(5);
    let proxies = Proxy::in_front_of_all(cluster.ports());
    proxies.iter().for_each(|proxy| proxy.delay(100 * MS));
    let urls = proxies.iter().map(Proxy::url).collect::<Vec<_>>().join(" ");
    let mut worker = Worker::start("stopped::stroller", &[("WORKER_URLS", &urls)]);
    for _ in 0..pick(2, 20) {
        for (asked, answer) in [
            ("acquiring", "Ok(true)"),
            ("extending", "Ok(())"),
            ("releasing", "Ok(InTime)"),
        ] {
            worker.hear(asked, Duration::from_secs(20));
            std::thread::sleep(60 * MS);
            worker.signal(libc::SIGSTOP);
            std::thread::sleep(700 * MS);
            worker.signal(libc::SIGCONT);
            let heard = worker.hear("outcome ", Duration::from_secs(20));
            assert_eq!(heard, answer, "{asked}");
        }
    }
}

#[test]
#[ignore = "a process of the test above"]
fn stroller() {
    // A node timeout of half a second.
    let ttl = Duration::from_secs(10);
    let client = open(settings(told_urls(), ttl).extend_every(9 * TTL));
    block_on(async {
        let ready = client.lock("ready").acquire().await.expect("a lock");
        ready.release().await.expect("released");
        for walk in 0..pick(2, 20) {
            let lock = client.lock(format!("walk-{walk}"));
            eprintln!("acquiring");
            let guard = lock.try_acquire().await;
            eprintln!("outcome {:?}", guard.as_ref().map(Guard::is_held));
            let guard = guard.expect("acquired");
            eprintln!("extending");
            eprintln!("outcome {:?}", guard.extend().await);
            eprintln!("releasing");
            eprintln!("outcome {:?}", guard.release().await);
        }
    });
}
