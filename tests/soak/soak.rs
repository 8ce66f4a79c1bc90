//! The soaks themselves.

use std::time::{Duration, Instant};

use quorumlock::RestartGuard;

use crate::clock::Clock;
use crate::helpers::*;
use crate::history::{History, How, Notes};
use crate::linear::{Promise, Violation, What, check};
use crate::support::*;
use crate::torment::{NODES, Scene};
use crate::worker::{NAME, TTL, leave, look, token};

/// For how long.
fn span() -> Duration {
    let seconds = std::env::var("QUORUMLOCK_SOAK_SECONDS").ok();
    let seconds = seconds.and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(pick(9, 300)))
}

/// The workers' notes, kept where there is something to look for in them.
struct Book(Option<tempfile::TempDir>);

impl Book {
    fn new() -> Book {
        Book(Some(tempfile::tempdir().expect("a directory")))
    }

    fn path(&self) -> std::path::PathBuf {
        let dir = self.0.as_ref().expect("open");
        dir.path().join("notes")
    }
}

impl Drop for Book {
    fn drop(&mut self) {
        if let Some(dir) = self.0.take().filter(|_| std::thread::panicking()) {
            eprintln!("the history is left in {}", dir.keep().display());
        }
    }
}

#[test]
fn whatever_happens_to_nodes_and_holders_there_is_an_order_in_which_a_lock_did_it() {
    let book = Book::new();
    let mut scene = Scene::new(book.path(), None);
    scene.run(span());
    scene.over();
    heals(&scene);
    let probe = scene.cluster.probe();
    let gone = eventually(TTL + 10 * SLACK, || lock_keys(&probe).is_empty());
    assert!(gone, "left behind: {:?}", lock_keys(&probe));
    let history = History::read(&book.path()).expect("notes");
    say("lock", &scene, &history);
    if let Err(violation) = check(&history.ops, Promise::Lock) {
        panic!("{violation}\n{:?}", scene.done);
    }
    assert!(history.ops.len() > 50, "too little to say anything");
    assert!(history.by_process.len() > 1, "{:?}", history.by_process);
    assert!(history.ends.contains_key(&How::InTime));
}

#[test]
fn tokens_grow_from_grant_to_grant_however_clocks_are_set() {
    let clocks: Option<Vec<_>> = (0..NODES).map(|_| Clock::new()).collect();
    let Some(clocks) = clocks else { return };
    let book = Book::new();
    let mut scene = Scene::new(book.path(), Some(clocks));
    scene.run(span());
    scene.over();
    heals(&scene);
    let history = History::read(&book.path()).expect("notes");
    say("tokens", &scene, &history);
    if let Err(violation) = check(&history.leases(), Promise::Tokens) {
        panic!("{violation}\n{:?}", scene.done);
    }
    let mut tokens: Vec<_> = history
        .ops
        .iter()
        .filter(|op| op.what == What::Grant)
        .collect();
    tokens.sort_by_key(|op| op.token);
    let twice = tokens
        .windows(2)
        .find(|pair| pair[0].token == pair[1].token);
    assert_eq!(twice, None, "one token, granted twice");
    assert!(history.ops.len() > 50, "too little to say anything");
    assert!(scene.done.contains_key("clock set"), "{:?}", scene.done);
}

/// Somebody new gets the lock soon: the nodes are well, and what was held runs out.
fn heals(scene: &Scene) {
    let client = open(settings(scene.proxies.iter().map(Proxy::url), TTL));
    let began = Instant::now();
    block_on(async {
        let guard = take(&client, NAME).await;
        let _ = guard.release().await;
    });
    let took = began.elapsed();
    assert!(took < Duration::from_secs(20), "healed, but {took:?}");
}

fn say(what: &str, scene: &Scene, history: &History) {
    let holds = history.by_process.values().sum::<usize>();
    let (ends, killed, torn) = (&history.ends, history.killed, history.torn);
    eprintln!(
        "{what}: {holds} holds by {} processes, {ends:?}, {killed} killed, {torn} notes torn; {:?}",
        history.by_process.len(),
        scene.done
    );
}

/// The same nodes, notes and checker, on a lock that is told to look away: without the restart
/// guard three nodes that come back empty give away what is held.
#[test]
fn two_holders_that_real_nodes_allow_are_found() {
    let (book, other) = (Book::new(), Book::new());
    let cluster = Cluster::start(NODES);
    let off = || settings(cluster.urls(), 10 * TTL).restart_guard(RestartGuard::Off);
    let (first, second) = (open(off()), open(off()));
    block_on(async {
        let hold = async |client: &quorumlock::Client, path| {
            let notes = Notes::open(path).expect("a file");
            let asked = boot_nanos();
            let lock = client.lock(NAME).auto_extend(false);
            let guard = lock.acquire().await.expect("free as it seems");
            notes.grant(token(&guard), asked, boot_nanos());
            assert!(look(&guard, &notes));
            (guard, notes)
        };
        let (guard, notes) = hold(&first, book.path()).await;
        (0..3).for_each(|node| cluster[node].restart_empty());
        let (rival, others) = hold(&second, other.path()).await;
        assert!(look(&guard, &notes), "too slow to show anything");
        leave(rival, &others, true).await;
        leave(guard, &notes, true).await;
    });
    let read = |book: &Book| History::read(&book.path()).expect("notes").ops;
    let ops = [read(&book), read(&other)].concat();
    let found = check(&ops, Promise::Lock).expect_err("two holders");
    // Within the same second they give the token away once more.
    let two = matches!(found, Violation::TwoHolders(..) | Violation::Repeated(..));
    assert!(two, "{found}");
}
