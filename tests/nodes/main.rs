//! How a client fares with its nodes: what each error says, what outages cost, what goes over the
//! wire, and whose vote counts. Each module opens with the field cases that it covers.

#[path = "../support/mod.rs"]
mod support;

mod attempts;
#[cfg(feature = "tls")]
mod certificates;
mod common;
mod credentials;
mod data_loss;
mod errors;
mod faults;
mod half_open;
mod handshake;
mod hooks;
mod life;
mod login;
mod membership;
mod moved_name;
mod names;
mod outages;
mod permissions;
mod restarts;
mod scripts;
mod silent_dns;
mod stand_in;
mod timeouts;
#[cfg(feature = "tls")]
mod tls_front;
