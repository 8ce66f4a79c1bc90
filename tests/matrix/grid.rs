//! Runs the cells, several sites at a time, and compares.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::cell::Cell;
use crate::fault::{FAULTS, PHASES};
use crate::site::Site;
use crate::support::full;

/// All cells, or the third of them in which each fault meets each phase once.
fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (row, fault) in FAULTS.into_iter().enumerate() {
        for (column, phase) in PHASES.into_iter().enumerate() {
            for bad in 1..=3 {
                if full() || (row + column + bad) % 3 == 0 {
                    cells.push(Cell { fault, bad, phase });
                }
            }
        }
    }
    cells
}

/// Works off the cells one by one. Those under the restart guard come last: by then the servers
/// have the age that it asks for.
async fn work(with_clocks: bool, cells: Arc<Mutex<Vec<Cell>>>) -> Vec<String> {
    let site = tokio::task::spawn_blocking(move || Site::start(with_clocks)).await;
    let Some(mut site) = site.expect("servers") else {
        return Vec::new();
    };
    site.is_used().await;
    let mut wrong = Vec::new();
    loop {
        let Some(cell) = cells.lock().expect("no panic in here").pop() else {
            return wrong;
        };
        let begin = Instant::now();
        wrong.extend(cell.run(&mut site).await.err());
        if std::env::var_os("TEST_MATRIX_TIMES").is_some() {
            eprintln!("{:?} {cell:?}", begin.elapsed());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 12)]
async fn every_cell_comes_to_what_is_expected_of_it() {
    let (mut stepped, mut others): (Vec<_>, Vec<_>) = cells()
        .into_iter()
        .partition(|cell| cell.fault.step().is_some());
    others.sort_by_key(|cell| !cell.fault.is_guarded());
    stepped.reverse();
    let count = stepped.len() + others.len();
    let (stepped, others) = (Arc::new(Mutex::new(stepped)), Arc::new(Mutex::new(others)));
    let begin = Instant::now();
    let mut sites = Vec::new();
    for _ in 0..8 {
        sites.push(tokio::spawn(work(false, Arc::clone(&others))));
    }
    for _ in 0..2 {
        sites.push(tokio::spawn(work(true, Arc::clone(&stepped))));
    }
    let mut wrong = Vec::new();
    for site in sites {
        wrong.extend(site.await.expect("a site to its end"));
    }
    let left_out = stepped.lock().expect("no panic in here").len();
    println!(
        "{} of {count} cells in {:.1?}",
        count - left_out,
        begin.elapsed()
    );
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}
