//! URLs of nodes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quorumlock::testing::fuzz::address(data));
