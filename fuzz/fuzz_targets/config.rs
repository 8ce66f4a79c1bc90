//! Configuration files.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quorumlock::testing::fuzz::config(data));
