//! No fault lets the work run without the lock.
//!
//! F43 through `Lock::run` and through the guard: quick with 3 runs of each fault, `--full` with
//! 50. The command's part is tested with the command.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quorumlock::{AcquireError, Client, Config, FaultKind, RunError};

use crate::common::{MS, SLACK, Said, client, count, said};
use crate::stand_in::StandIn;
use crate::support::{Proxy, Stub, StubReply, eventually_async, pick};

/// Three bad nodes of five, kept alive, and what is said of them.
struct Fault {
    what: &'static str,
    urls: Vec<String>,
    wait: u32,
    node_timeout: Duration,
    expected: Said,
    rejected: bool,
    _nodes: Box<dyn Send>,
}

fn fault<N: Send + 'static>(
    what: &'static str,
    nodes: Vec<N>,
    url: impl Fn(&N) -> String,
    kind: FaultKind,
) -> Fault {
    Fault {
        what,
        urls: nodes.iter().map(url).collect(),
        wait: 0,
        // Only silence has to be waited for.
        node_timeout: match kind {
            FaultKind::Timeout => 300 * MS,
            _ => 5000 * MS,
        },
        expected: Said::Failed(kind),
        rejected: kind.is_permanent(),
        _nodes: Box::new(nodes),
    }
}

/// Stand-ins that answer `commands` with `reply`.
fn scripted(what: &'static str, commands: &[&str], reply: &StubReply, kind: FaultKind) -> Fault {
    let nodes: Vec<_> = (0..3)
        .map(|_| StandIn::start().answers(commands, reply))
        .collect();
    nodes.iter().for_each(|node| node.let_rival_hold("foreign"));
    fault(what, nodes, StandIn::url, kind)
}

fn refused(upstream: u16) -> Fault {
    let proxies: Vec<_> = (0..3).map(|_| Proxy::in_front_of(upstream)).collect();
    proxies.iter().for_each(Proxy::refuse);
    fault("refused", proxies, Proxy::url, FaultKind::ConnectionRefused)
}

fn held(what: &'static str, wait: u32) -> Fault {
    let nodes = StandIn::some(3);
    for node in &nodes {
        node.let_rival_hold("foreign");
    }
    let fault = fault(what, nodes, StandIn::url, FaultKind::NotALock);
    Fault {
        wait,
        expected: Said::Held,
        rejected: false,
        ..fault
    }
}

fn every_fault(upstream: u16) -> Vec<Fault> {
    let error = StubReply::error;
    let everything = ["EVAL", "EVALSHA", "SET", "GET", "INFO", "PTTL"];
    let noauth = error("NOAUTH Authentication required.");
    let noperm = error("NOPERM this user has no permissions to run the 'set' command");
    let loading = error("LOADING Redis is loading the dataset in memory");
    let wrong_type = error("WRONGTYPE Operation against a key holding the wrong kind of value");
    let torn = StubReply::Then(vec![StubReply::Raw(b"+O".to_vec()), StubReply::Reset]);
    // Names with an empty label: they fail here, and no name server is asked.
    let nowhere: Vec<_> = (1..=3).map(|n| format!("redis://n{n}..invalid")).collect();
    let mut faults = vec![
        refused(upstream),
        fault(
            "blackholed",
            (0..3).map(|_| Stub::never_speaks()).collect(),
            Stub::url,
            FaultKind::Timeout,
        ),
        scripted("NOAUTH", &everything, &noauth, FaultKind::Auth),
        scripted("NOPERM", &["SET"], &noperm, FaultKind::Permission),
        scripted("LOADING", &everything, &loading, FaultKind::Loading),
        fault("DNS", nowhere, String::clone, FaultKind::Unresolved),
        scripted("WRONGTYPE", &["GET"], &wrong_type, FaultKind::NotALock),
        fault(
            "garbage",
            (0..3).map(|_| Stub::tcp_garbage()).collect(),
            Stub::url,
            FaultKind::Protocol,
        ),
        scripted(
            "reset mid-reply",
            &["SET"],
            &torn,
            FaultKind::ConnectionLost,
        ),
        held("deadline", 150),
        held("contended", 0),
    ];
    if cfg!(feature = "tls") {
        let plain = StandIn::some(3);
        let tls = |node: &StandIn| node.url().replace("redis://", "rediss://");
        faults.push(fault("TLS", plain, tls, FaultKind::Tls));
    }
    faults
}

/// A client of the three bad nodes and two good ones.
fn client_among(fault: &Fault, good: &[StandIn]) -> Client {
    let urls = fault.urls.iter().cloned();
    let urls = urls.chain(good.iter().map(StandIn::url));
    let config = Config::new(urls)
        .ttl(20_000 * MS)
        .node_timeout(fault.node_timeout)
        // So that SET and GET can be answered amiss.
        .fencing(false)
        .wait(fault.wait * MS);
    client(config)
}

/// Says whether all three bad nodes were heard: a decision may fall earlier, by a good node that
/// is slow, or that has not taken the last round back yet.
fn assert_told(fault: &Fault, error: &AcquireError) -> bool {
    let what = fault.what;
    let bad = &said(error)[..3];
    let fits = |said: &Said| *said == fault.expected || *said == Said::Nothing;
    assert!(bad.iter().all(fits), "{what}: {error}");
    if count(bad, fault.expected) < 3 {
        return false;
    }
    let fits = match error {
        AcquireError::Rejected(_) => fault.rejected,
        AcquireError::Contended(_) => fault.expected == Said::Held,
        AcquireError::Unavailable(_) => !fault.rejected && fault.expected != Said::Held,
        _ => false,
    };
    assert!(fits, "{what}: {error:?}");
    true
}

#[tokio::test]
async fn no_fault_of_three_nodes_lets_the_work_run() {
    let good = StandIn::some(2);
    let marks = AtomicUsize::new(0);
    for fault in every_fault(good[0].stub.port()) {
        let mut heard = 0;
        for run in 0..pick(3, 50) {
            // A cold client, and one that knows its nodes.
            let client = client_among(&fault, &good);
            for _ in 0..2 {
                // What the last round set on the good nodes would be contention.
                let free = || good.iter().all(|node| !node.holds("foreign"));
                assert!(eventually_async(SLACK, free).await, "{}", fault.what);
                let lock = client.lock("foreign");
                let outcome = lock.run(async |_held| {
                    marks.fetch_add(1, Ordering::SeqCst);
                    Ok::<_, ()>(())
                });
                match outcome.await {
                    Err(RunError::Acquire(error)) => {
                        heard += u32::from(assert_told(&fault, &error))
                    }
                    other => panic!("{} ({run}): {other:?}", fault.what),
                }
                assert!(eventually_async(SLACK, free).await, "{}", fault.what);
                match lock.acquire().await {
                    Err(error) => heard += u32::from(assert_told(&fault, &error)),
                    Ok(guard) => panic!("{} ({run}): {guard:?}", fault.what),
                }
            }
        }
        assert!(heard > 0, "{}: never heard of all three", fault.what);
    }
    assert_eq!(marks.load(Ordering::SeqCst), 0);
}

/// The same nodes without the fault: the work does run, so the test above proves something.
#[tokio::test]
async fn without_a_fault_the_work_runs() {
    let good = StandIn::some(2);
    let sound = fault("none", StandIn::some(3), StandIn::url, FaultKind::Timeout);
    let lock = client_among(&sound, &good).lock("foreign");
    let output = lock.run(async |held| Ok::<_, ()>(held.is_held())).await;
    assert!(output.expect("a free lock"));
}

/// A cold client may hear of the rival before the third rejection.
#[tokio::test]
async fn a_rival_on_a_good_node_does_not_hide_that_three_reject() {
    let noauth = StubReply::error("NOAUTH Authentication required.");
    for run in 0..pick(10, 50) {
        let everything = ["EVAL", "EVALSHA", "SET", "GET", "INFO", "PTTL"];
        let bad = scripted("NOAUTH", &everything, &noauth, FaultKind::Auth);
        let good = StandIn::some(2);
        good.iter().for_each(|node| node.let_rival_hold("foreign"));
        let lock = client_among(&bad, &good).lock("foreign");
        let error = lock.try_acquire().await.expect_err("three reject");
        let rejected = matches!(error, AcquireError::Rejected(_));
        assert!(rejected, "{run}: {error}");
    }
}
