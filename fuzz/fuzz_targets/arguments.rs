//! The arguments of the command.
#![no_main]

#[path = "../../src/bin/quorumlock/args.rs"]
#[allow(dead_code)]
mod args;
#[path = "../../tests/fuzz_corpus/arguments.rs"]
mod arguments;
#[path = "../../src/bin/quorumlock/exit.rs"]
#[allow(dead_code)]
mod exit;
#[path = "../../src/bin/quorumlock/settings.rs"]
#[allow(dead_code)]
mod settings;

const EXAMPLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../quorumlock.example.toml"
);

libfuzzer_sys::fuzz_target!(|data: &[u8]| arguments::arguments(data));
