//! The real client code in a seeded world: one thread, virtual time, servers and networks that
//! fail. One file for each invariant; `swarm.rs` draws the mix of faults.
//!
//! A failing seed is printed with the command that replays it and with the world's timeline.

mod attempts;
mod cancel;
mod clocks;
mod closing;
mod contended;
mod deletion;
mod exclusion;
mod extension;
mod hand_over;
mod letting_go;
mod plots;
mod replay;
mod support;
mod swarm;
mod waiters;
mod waiting;
