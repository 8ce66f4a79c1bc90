//! `status`, `list` and `check`: looks that change nothing.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use quorumlock::{Client, LockState, Severity, Status};

use super::exit;
use super::out::{Colour, Out};
use super::settings::Unusable;

pub(crate) async fn status(client: &Client, resource: &OsStr, out: Out) -> Result<u8, Unusable> {
    let status: Status = client.status(resource.as_bytes()).await?;
    let (colour, code) = match status.state() {
        LockState::Held { .. } => (Colour::Green, exit::OK),
        LockState::Free => (Colour::Yellow, exit::NO),
        LockState::Split => (Colour::Red, exit::HELD),
        _ => (Colour::Red, exit::UNAVAILABLE),
    };
    out.result(&status, Some(colour));
    Ok(code)
}

pub(crate) async fn list(client: &Client, prefix: &OsStr, out: Out) -> u8 {
    let listing = client.list(prefix.as_bytes()).await;
    out.result(&listing, None);
    match listing.is_complete() {
        true => exit::OK,
        false => exit::UNAVAILABLE,
    }
}

pub(crate) async fn check(client: &Client, out: Out) -> u8 {
    let report = client.check().await;
    let colour = match (report.is_good(), report.worst()) {
        (true, _) => Colour::Green,
        (false, Some(Severity::Critical)) => Colour::Red,
        (false, _) => Colour::Yellow,
    };
    out.result(&report, Some(colour));
    match report.is_good() {
        true => exit::OK,
        false if report.votes() < report.quorum() => exit::UNAVAILABLE,
        false => exit::NO,
    }
}
