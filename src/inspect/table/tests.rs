use std::sync::Arc;

use super::super::list::Listed;
use super::*;
use crate::node::inspect::Content;
use crate::node::{Fault, FaultKind, OwnerToken};
use crate::quorum::{FencingToken, Quorum};

const SECRET: &str = "a7a7a7a7a";

fn lock(millis: u64) -> Result<Content, Fault> {
    Ok(Content::Lock {
        owner: OwnerToken::new([0xa7; 20]),
        left: Some(Duration::from_millis(millis)),
    })
}

fn contents() -> Vec<Result<Content, Fault>> {
    let fault = Fault::new(FaultKind::ConnectionRefused, "long ".repeat(60));
    vec![
        lock(7_205),
        lock(900),
        lock(150_000),
        Ok(Content::Foreign),
        Err(fault),
    ]
}

fn keys() -> Vec<NodeKey> {
    let long = format!("{}.example.com:6379", "node".repeat(30));
    let names = ["n1:1", "n2:2", "n3:3", "n4:4", &long].map(str::to_owned);
    super::super::verdict::name(names.into(), &contents())
}

fn fits(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= WIDTH, "{line}");
    }
    assert!(!text.contains(SECRET), "{text}");
}

#[test]
fn a_status_is_read_at_a_glance() {
    let status = Status {
        resource: Arc::from("é{a}\n".as_bytes()),
        state: super::super::verdict::judge(Quorum::of(5), &contents()),
        nodes: keys(),
        quorum: Quorum::of(5),
        label: Some("web-3\u{1b}[2J".into()),
        token: Some(FencingToken::from_u64(42)),
        fingerprint: "0123abcd".into(),
    };
    let text = status.to_string();
    fits(&text);
    assert!(!format!("{status:?}").contains(SECRET));
    let head = "lock \"é{a}\\n\": held\nby a7a7a7a7… on 3 nodes, 900 ms left unless extended\n\
                web-3\\u{1b}[2J\n\
                quorum 3 of 5 nodes, node list 0123abcd, fencing counter 42\n\nnode  ";
    assert!(text.starts_with(head), "{text}");
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(row("n1").ends_with("  a7a7a7a7…  7.2 s left"));
    assert!(row("n3").ends_with("  150 s left"));
    assert!(row("n4").contains("foreign data"));
    assert!(row("…").contains(".example.com:6379  unknown: connection refused"));
}

#[test]
fn a_forced_release_says_whose_lock_it_took() {
    let freed = ForcedRelease {
        resource: Arc::from(&[b'x'; 60_000][..]),
        owners: super::super::verdict::owners(&contents()),
        nodes: keys(),
        quorum: Quorum::of(5),
    };
    let text = freed.to_string();
    fits(&text);
    assert!(
        text.contains("(60000 bytes): deleted on 3 of 5 nodes (quorum 3), 1 failed\n"),
        "{text}"
    );
    assert!(text.contains("\ntaken from a7a7a7a7… on 3 nodes, a quorum: it held the lock\n"));
    assert!(freed.unconfirmed().contains(":6379: connection refused"));
}

#[test]
fn a_listing_has_a_line_for_each_lock() {
    let state = super::super::verdict::judge(Quorum::of(5), &contents());
    let listed = |resource: &[u8], state: &LockState| Listed {
        resource: resource.to_vec(),
        state: state.clone(),
        copies: 3,
        label: Some("label ".repeat(40)),
    };
    let listing = Listing {
        prefix: Arc::from(&b"a"[..]),
        locks: vec![
            listed(b"a\0\xff", &state),
            listed(&[b'a'; 300], &LockState::Split),
        ],
        nodes: vec![
            ("n1:1".into(), None),
            ("n2:2".into(), contents().pop().unwrap().err()),
        ],
        complete: false,
        quorum: Quorum::of(5),
        fingerprint: "0123abcd".into(),
    };
    let text = listing.to_string();
    fits(&text);
    assert!(text.starts_with("2 locks under \"a\", 1 held by quorum (3 of 2 nodes)\nINCOMPLETE"));
    assert!(text.contains("\nn2:2: connection refused"), "{text}");
    assert!(text.contains("\n\"a\\x00\\xff\" "), "{text}");
    assert!(text.contains("(300 bytes)  split  3/2"), "{text}");
}
