//! Shows that what the other tests stand on does what it says.

#[path = "../support/mod.rs"]
mod support;

mod proxy;
mod servers;
mod stub;
mod witness;

use std::time::Duration;

use support::{eventually, full, median, percentile, pick};

const MS: Duration = Duration::from_millis(1);

#[test]
fn percentiles_are_samples() {
    let samples: Vec<_> = [5, 1, 4, 2, 3].map(|n| n * MS).into();
    assert_eq!(median(&samples), 3 * MS);
    assert_eq!(percentile(&samples, 99.0), 5 * MS);
    assert_eq!(percentile(&samples, 0.0), MS);
    assert_eq!(median(&samples[..2]), MS);
    assert!(!eventually(5 * MS, || false));
    assert_eq!(pick(1, 2), if full() { 2 } else { 1 });
}
