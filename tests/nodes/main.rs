//! How a client fares with its nodes: what each error says, what outages cost, what goes over the
//! wire, and whose vote counts. Each module opens with the field cases that it covers.

#[path = "../support/mod.rs"]
mod support;

mod attempts;
mod common;
mod errors;
mod faults;
mod outages;
mod stand_in;
mod timeouts;
