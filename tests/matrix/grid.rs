//! Runs the cells, several sites at a time, and compares.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::cell::Cell;
use crate::fault::{FAULTS, Fault, PHASES};
use crate::site::Site;
use crate::support::full;

/// Five servers each, and one cell at a time.
const SITES: usize = 6;

/// All cells, or the third of them in which each fault meets each phase once.
fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (row, fault) in FAULTS.into_iter().enumerate() {
        for (column, phase) in PHASES.into_iter().enumerate() {
            for bad in 1..=3 {
                if full() || (row + column + bad).is_multiple_of(3) {
                    cells.push(Cell { fault, bad, phase });
                }
            }
        }
    }
    cells
}

/// Works off the cells one by one: those that were left out, and what is not as expected.
async fn work(cells: Arc<Mutex<Vec<Cell>>>) -> (usize, Vec<String>) {
    let mut site = Site::start().await;
    let (mut left_out, mut wrong) = (0, Vec::new());
    loop {
        let Some(cell) = cells.lock().expect("no panic in here").pop() else {
            return (left_out, wrong);
        };
        if cell.fault.step().is_some() && !site.has_clocks() {
            left_out += 1;
        } else {
            wrong.extend(cell.run(&mut site).await.err());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 12)]
async fn every_cell_comes_to_what_is_expected_of_it() {
    let mut cells = cells();
    // The last are the first to be run: those that take longest.
    cells.sort_by_key(|cell| cell.fault == Fault::Blackholed);
    let count = cells.len();
    let cells = Arc::new(Mutex::new(cells));
    let begin = Instant::now();
    let sites: Vec<_> = (0..SITES)
        .map(|_| tokio::spawn(work(Arc::clone(&cells))))
        .collect();
    let (mut left_out, mut wrong) = (0, Vec::new());
    for site in sites {
        let (without, told) = site.await.expect("a site to its end");
        left_out += without;
        wrong.extend(told);
    }
    println!(
        "fault matrix: {} of {count} cells run, {left_out} left out, in {:.1?}",
        count - left_out,
        begin.elapsed()
    );
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}
