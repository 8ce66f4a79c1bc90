//! The real client code in a seeded world: one thread, virtual time, servers and networks that
//! fail. `invariants/` has what must hold, one file each; `swarm.rs` draws a world and its workers,
//! and `swarm/storm.rs` the faults. The other files are scenes that were found or thought of.
//!
//! A failing seed is printed with the command that replays it and with the world's timeline.
//!
//! Every source of chance is closed, so that one seed gives one timeline, to the byte
//! (`replay.rs`; `scripts/soak --same` compares debug and release builds):
//!
//! - **time**: one clock that the world moves. Those of the servers hang on it, by rates and steps;
//!   the boot-time clock of a client is it. No timer of the machine is used, and no thread.
//! - **order**: one thing at a time: the first task that was woken, then the first server with
//!   something due, then the first engine, then the clock. Requests of one moment are carried out
//!   in the order of their sending.
//! - **owner tokens, jitter of retries and of extensions**: a generator for each process, seeded
//!   from the world's. Never the operating system's.
//! - **latencies, run ids, pauses of reconnects**: a generator for each server and for each end of
//!   a connection, seeded from the world's.
//! - **what a test or the swarm decides**: [`chance`], the world's own generator, which is written
//!   here and comes out the same in every release and on every machine.
//! - **hash maps**: none is iterated where the order shows; those that are iterated are ordered.
//! - **addresses, environment**: nothing depends on a pointer's value; the variables
//!   `QUORUMLOCK_SEED`, `_SEEDS`, `_FIRST_SEED` and `_FULL` say which seeds are run, not how.
//!
//! What the swarm draws: latencies and their links clogged; links held, swallowing, swizzled; a
//! process parted from some nodes; connections reset before and after a request, in the midst of a
//! pipeline, and with its bytes carried out after those of the next connection; nodes that hang,
//! are slow, load, restart with their data, without the last write, with old data, empty, or lose
//! all under a live connection; clocks that run fast or slow within the allowance, change their
//! rate, and are set back; processes that stand still at any step (a pause or a suspend: their
//! clock counts it); acquires, releases and extensions dropped at any await; one server under two
//! addresses. In plans of their own: clocks set forward, evictions, no restart guard.
//!
//! [`chance`]: quorumlock::testing::world::World::chance

mod attempts;
mod cancel;
mod clocks;
mod closing;
mod contended;
mod counters;
mod deletion;
mod exclusion;
mod extension;
mod hand_over;
mod invariants;
mod letting_go;
mod newcomer;
mod plots;
mod replay;
mod rounds;
mod stale_vote;
mod support;
mod swarm;
mod twins;
mod waiters;
mod waiting;
