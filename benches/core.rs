//! What deciding a round costs without any I/O, in nanoseconds: the pure core alone.
//!
//! ```text
//! cargo bench --features test-util --bench core
//! ```

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion};
use quorumlock::testing::bench::Rounds;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("core");
    for nodes in [1, 3, 5, 9] {
        let needed = nodes / 2 + 1;
        for (verdict, refusals) in [("granted", 0), ("contended", needed)] {
            let mut rounds = Rounds::new(nodes).expect("the default settings");
            assert_eq!(rounds.decide(refusals), refusals == 0);
            let id = BenchmarkId::new(verdict, nodes);
            group.bench_function(id, |bencher| {
                bencher.iter(|| rounds.decide(black_box(refusals)));
            });
        }
    }
    group.finish();
    criterion.final_summary();
}
