//! Fencing tokens grow strictly from one holder to the next; one that was attached keeps its own.

use quorumlock::FencingToken;
use quorumlock::testing::world::ProcessId;

use super::Seen;

pub fn next(
    seen: &Seen,
    process: ProcessId,
    token: FencingToken,
    attached: bool,
) -> Result<(), String> {
    let before = seen.token.replace(token);
    let ordered = token >= before && (token == before) == attached;
    match seen.plan.is_sound() && !ordered {
        true => Err(format!("c{process}: token {token} after {before}")),
        false => Ok(()),
    }
}
