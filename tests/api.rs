//! What a service may count on when it compiles: bounds of types and futures, warnings for what
//! must not be ignored, and the list of public items.
//!
//! Field cases: F32 (a guard is Send; no release without a grant), F43 (an ignored acquisition is
//! a compiler warning). Tier: all of it every day; most of it is checked by compiling this file.
#![deny(unfulfilled_lint_expectations)]

#[path = "api/examples.rs"]
mod examples;
#[path = "api/list.rs"]
mod list;

use std::error::Error;
use std::fmt::{Debug, Display};
use std::future::Future;
use std::marker::PhantomData;
use std::time::Duration;

use quorumlock::*;

// --- bounds -----------------------------------------------------------------------------------

fn shared<T: Send + Sync + Unpin + Debug + 'static>() {}
fn cloned<T: Clone>() {}
fn error<T: Error + Send + Sync + 'static>() {}
fn sent<F: Future + Send>(_: &F) {}
fn spawned<F: Future + Send + 'static>(_: &F) {}

#[test]
fn every_public_type_can_be_shared_between_threads() {
    shared::<Client>();
    shared::<Config>();
    shared::<Lock>();
    shared::<Guard>();
    shared::<Held>();
    shared::<Lost>();
    shared::<LeaseTicket>();
    shared::<Credentials>();
    shared::<Attempt>();
    shared::<NodeVote>();
    shared::<Vote>();
    shared::<Loss>();
    shared::<Released>();
    shared::<Fault>();
    shared::<FaultKind>();
    shared::<Status>();
    shared::<LockState>();
    shared::<NodeKey>();
    shared::<KeyState>();
    shared::<OwnerId>();
    shared::<Label>();
    shared::<Effective>();
    shared::<Listing>();
    shared::<Listed>();
    shared::<ForcedRelease>();
    error::<ForceReleaseError>();
    shared::<NodeStatus>();
    shared::<NodeState>();
    shared::<Report>();
    shared::<NodeReport>();
    shared::<ClockReading>();
    shared::<Finding>();
    shared::<Severity>();
    shared::<blocking::Client>();
    shared::<blocking::Lock>();
    shared::<blocking::Guard>();
    shared::<blocking::Held>();
    error::<AcquireError>();
    error::<AttachError>();
    error::<ExtendError>();
    error::<ReleaseError>();
    error::<CloseError>();
    error::<ConfigError>();
    error::<RunError<(), std::io::Error>>();
}

#[test]
fn what_is_cheap_to_copy_can_be_cloned_and_a_guard_cannot() {
    cloned::<Client>();
    cloned::<Config>();
    cloned::<Lock>();
    cloned::<Held>();
    cloned::<Lost>();
    cloned::<AcquireError>();
    cloned::<Attempt>();
    const { assert!(Is::<Client>::CLONE && !Is::<Guard>::CLONE && !Is::<blocking::Guard>::CLONE) };
}

/// Whether a type can be cloned: an inherent constant goes before one of a trait.
struct Is<T>(PhantomData<T>);

impl<T: Clone> Is<T> {
    const CLONE: bool = true;
}

trait Otherwise {
    const CLONE: bool = false;
}

impl<T> Otherwise for Is<T> {}

/// Never called: it compiles, and that is the test.
#[allow(dead_code)]
fn futures_can_be_spawned(client: Client, lock: &Lock, guard: &Guard, held: &Held) {
    sent(&lock.acquire());
    sent(&lock.try_acquire());
    sent(&lock.run(async |_held| Ok::<_, std::io::Error>(12)));
    sent(&guard.extend());
    sent(&guard.extend_to(Duration::from_secs(1)));
    spawned(&guard.lost());
    spawned(&held.lost());
    sent(&client.close());
    sent(&client.status("job"));
    sent(&client.list(""));
    sent(&client.force_release("job"));
    sent(&client.nodes());
    sent(&client.check());
    let owned = lock.clone();
    spawned(&async move {
        let guard = owned.acquire().await?;
        let released = guard.release().await;
        Ok::<_, AcquireError>(released)
    });
}

// --- what must not be ignored -----------------------------------------------------------------

/// Never called. Each line must warn: an expectation without its warning is an error.
#[allow(dead_code, clippy::let_underscore_future)]
async fn ignoring_warns(client: &Client, lock: &Lock, guard: Guard, held: &Held) {
    #[expect(unused_must_use)]
    lock.acquire();
    #[expect(unused_must_use)]
    lock.acquire().await;
    #[expect(unused_must_use)]
    lock.acquire().await.unwrap();
    #[expect(unused_must_use)]
    lock.try_acquire();
    #[expect(unused_must_use)]
    lock.try_acquire().await;
    #[expect(unused_must_use)]
    lock.run(async |_held| Ok::<_, std::io::Error>(12)).await;
    #[expect(unused_must_use)]
    client.lock("job");
    #[expect(unused_must_use)]
    client.close();
    #[expect(unused_must_use)]
    client.close().await;
    #[expect(unused_must_use)]
    client.status("job");
    #[expect(unused_must_use)]
    client.list("").await;
    #[expect(unused_must_use)]
    client.force_release("job").await;
    #[expect(unused_must_use)]
    guard.lost();
    #[expect(unused_must_use)]
    held.lost();
    #[expect(unused_must_use)]
    guard.is_held();
    #[expect(unused_must_use)]
    guard.extend().await;
    #[expect(unused_must_use)]
    guard.release().await;
}

/// Never called. As above, for the calls that block.
#[allow(dead_code)]
fn ignoring_warns_without_async(client: &blocking::Client, lock: &blocking::Lock) {
    #[expect(unused_must_use)]
    client.lock("job");
    #[expect(unused_must_use)]
    client.close();
    #[expect(unused_must_use)]
    lock.acquire();
    #[expect(unused_must_use)]
    lock.acquire().unwrap();
    #[expect(unused_must_use)]
    lock.try_acquire();
    #[expect(unused_must_use)]
    lock.run(|_held| Ok::<_, std::io::Error>(12));
}

/// Never called. As above, for a guard and what it shows.
#[allow(dead_code)]
fn ignoring_a_guard_warns_without_async(guard: blocking::Guard, held: &blocking::Held) {
    #[expect(unused_must_use)]
    guard.is_held();
    #[expect(unused_must_use)]
    guard.wait_lost(Duration::ZERO);
    #[expect(unused_must_use)]
    held.wait_lost(Duration::ZERO);
    #[expect(unused_must_use)]
    guard.extend();
    #[expect(unused_must_use)]
    guard.release();
}

/// Only a guard can be released, and only once: by value, and a guard is no clone.
#[test]
fn there_is_no_release_without_a_guard() {
    fn by_value<F: Future<Output = Result<Released, ReleaseError>>>(_: fn(Guard) -> F) {}
    by_value(Guard::release);
    let client = Client::open(["redis://127.0.0.1:1"]).expect("a client");
    // An inherent method would be found before the trait's, and be of another type.
    let _: Missing = client.release();
    let _: Missing = client.lock("job").release();
}

struct Missing;

trait NoRelease {
    fn release(&self) -> Missing {
        Missing
    }
}

impl NoRelease for Client {}
impl NoRelease for Lock {}

// --- errors speak for themselves ---------------------------------------------------------------

#[allow(dead_code)]
fn errors_can_be_shown(error: &RunError<(), std::io::Error>, loss: Loss, fault: FaultKind) {
    fn shown<T: Display>(_: &T) {}
    shown(error);
    shown(&loss);
    shown(&fault);
}

// --- the list ---------------------------------------------------------------------------------

/// What is exported, with variants and methods, is what `tests/public-api.txt` says.
#[test]
fn the_public_items_are_those_of_the_list() {
    let present = list::public_items();
    assert!(present.len() > 40, "the list is too short: {present:#?}");
    let path = list::root().join("tests/public-api.txt");
    if std::env::var_os("QUORUMLOCK_BLESS").is_some() {
        std::fs::write(&path, present.join("\n") + "\n").expect("the list is written");
    }
    let text = std::fs::read_to_string(&path).expect("the list");
    let known: Vec<String> = text.lines().map(str::to_owned).collect();
    let difference = list::difference(&known, &present);
    assert!(
        difference.is_empty(),
        "the public items have changed:\n{}\nIf that is meant, run this test once with \
         QUORUMLOCK_BLESS=1, and say so in CHANGELOG.md",
        difference.join("\n")
    );
}

#[test]
fn every_public_function_and_struct_has_an_example() {
    let shown = examples::Shown::read();
    assert!(
        shown.len() > 150,
        "the sources are not read: {}",
        shown.len()
    );
    let missing = shown.missing();
    assert!(
        missing.is_empty(),
        "without an example:\n{}",
        missing.join("\n")
    );
    assert!(
        shown.stale().is_empty(),
        "needless exceptions: {:?}",
        shown.stale()
    );
}

#[test]
fn what_has_no_example_is_seen() {
    let text = "\
/// Shown.
///
/// ```
/// A::new().go();
/// ```
pub struct A {
}
impl A {
    /// By the type.
    pub fn new() {}
    /// By nobody: `go` is not `g`.
    pub fn g() {}
    /// ```
    /// A::own();
    /// ```
    #[must_use]
    pub const fn own() {}
}
/// Enums are shown where they are matched.
pub enum B {
}
/// Not shown.
pub fn c() {}
";
    let types = examples::declarations(text);
    let found = examples::documented(text, |name| types.get(name).cloned());
    let found: Vec<(&str, bool)> = found.iter().map(|(name, has)| (&**name, *has)).collect();
    let expected = [
        ("A", true),
        ("A::new", true),
        ("A::g", false),
        ("A::own", true),
        ("c", false),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_change_of_the_list_is_seen() {
    let text = |items: &[&str]| {
        items
            .iter()
            .map(|&item| item.to_owned())
            .collect::<Vec<_>>()
    };
    let known = text(&["Client", "Client::open", "Lock"]);
    let present = text(&["Client", "Client::close", "Lock"]);
    let difference = list::difference(&known, &present);
    assert_eq!(difference, ["- Client::open", "+ Client::close"]);
    assert!(list::difference(&known, &known).is_empty());
}
