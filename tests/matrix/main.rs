//! The fault matrix: each fault × one, two or three bad nodes of five × each phase of a lock's life,
//! on real servers.
//!
//! What each cell must come to is written by hand in `expected.rs`, and DESIGN.md shows it as one
//! table. Quick with a third of the cells, so that each fault is met in each phase; `--full` with
//! all. The rest: what a stepped clock does to a holder and its rival, and a rolling restart of all
//! nodes under load.

#[path = "../support/mod.rs"]
mod support;

#[path = "../logs/capture.rs"]
#[allow(dead_code)]
mod capture;
mod cell;
mod clock;
mod expected;
mod fault;
mod grid;
mod rolling;
mod site;
mod stepped;
mod table;
