//! The corpora of `fuzz/`, and what becomes of them by chance, through the same functions as under
//! cargo-fuzz: for everybody, without a nightly toolchain.
//!
//! A failure leaves its input below `target/fuzz/`; put it into `fuzz/corpus/` with the mend, so
//! that it is tried for good. Tier: some thousands of inputs for each kind in everyday runs, a
//! million under QUORUMLOCK_FULL=1; QUORUMLOCK_FUZZ_INPUTS names another number, and
//! QUORUMLOCK_FUZZ_SEED other chances.

#[path = "../../src/bin/quorumlock/args.rs"]
#[allow(dead_code, unreachable_pub)]
mod args;
mod arguments;
#[path = "../../src/bin/quorumlock/exit.rs"]
#[allow(dead_code)]
mod exit;
mod mutate;
#[path = "../../src/bin/quorumlock/settings.rs"]
#[allow(dead_code)]
mod settings;

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use quorumlock::testing::fuzz;

use mutate::Mutator;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Settings that are there and can be used.
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/quorumlock.example.toml");

/// Far more than any input takes, and less than somebody would wait.
const LIMIT: Duration = Duration::from_secs(5);

#[test]
fn configuration_files_are_read_or_refused_without_a_word_of_their_passwords() {
    run("config", fuzz::config);
}

#[test]
fn urls_are_read_or_refused_without_a_word_of_their_passwords() {
    run("addresses", fuzz::address);
}

#[test]
fn whatever_a_server_sends_is_read_alike_in_any_pieces_and_noise_is_no_vote() {
    run("replies", fuzz::replies);
}

#[test]
fn arguments_are_read_or_refused() {
    run("arguments", arguments::arguments);
}

fn run(kind: &str, target: fn(&[u8])) {
    let corpus = corpus(kind);
    for (name, input) in &corpus {
        once(kind, target, input, &name.display().to_string());
    }
    let number = |name, otherwise| {
        let text = std::env::var(name).ok();
        text.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let full = std::env::var("QUORUMLOCK_FULL").is_ok_and(|value| value == "1");
    let inputs = number(
        "QUORUMLOCK_FUZZ_INPUTS",
        if full { 1_000_000 } else { 2_000 },
    );
    let seed = number("QUORUMLOCK_FUZZ_SEED", 1);
    let mut mutator = Mutator::new(seed, corpus.into_iter().map(|(_, input)| input).collect());
    for at in 0..inputs {
        once(kind, target, &mutator.next(), &format!("{seed}/{at}"));
    }
}

fn once(kind: &str, target: fn(&[u8]), input: &[u8], name: &str) {
    let began = Instant::now();
    let survived = catch_unwind(|| target(input)).is_ok();
    let took = began.elapsed();
    if survived && took < LIMIT {
        return;
    }
    let dir = Path::new(ROOT).join("target/fuzz");
    let kept = dir.join(format!("{kind}-{}", name.replace('/', "-")));
    let written = fs::create_dir_all(&dir).and_then(|()| fs::write(&kept, input));
    let text = String::from_utf8_lossy(input);
    panic!("{kind}: {name} took {took:?}, left in {kept:?} ({written:?}):\n{text}");
}

/// The inputs that are kept, in the order of their names.
fn corpus(kind: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let dir = Path::new(ROOT).join("fuzz/corpus").join(kind);
    let entries = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    assert!(paths.len() > 3, "a corpus of {}", paths.len());
    let read = |path: PathBuf| {
        let input = fs::read(&path).expect("a file of the corpus");
        (path, input)
    };
    paths.into_iter().map(read).collect()
}

/// A target that never fails proves nothing: this one must.
#[test]
fn an_input_that_breaks_a_promise_is_found_and_kept() {
    let broken = |data: &[u8]| assert!(!data.windows(2).any(|two| two == b"::"));
    let found = catch_unwind(|| {
        let mut mutator = Mutator::new(1, vec![b"redis://a:1".to_vec()]);
        for at in 0..100_000 {
            once("planted", broken, &mutator.next(), &format!("{at}"));
        }
    });
    let text = found.expect_err("a doubled colon in 100,000 inputs");
    let text = text.downcast_ref::<String>().expect("a message");
    let kept = text.split('"').nth(1).expect("the name of a file");
    let input = fs::read(kept).expect("the input");
    assert!(input.windows(2).any(|two| two == b"::"));
    fs::remove_file(kept).expect("a file of ours");
}
