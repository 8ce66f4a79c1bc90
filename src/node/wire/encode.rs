//! Requests as commands.

use redis::{Cmd, Pipeline};

use crate::node::lane::{Entry, Work};
use crate::node::script::{EXTEND, GRANT, RAISE, RELEASE, Script};
use crate::node::{Ask, Fencing, Order, OwnerToken};

/// The scripts that a connection has spelled out once already.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spelled {
    grant: bool,
    raise: bool,
    extend: bool,
    release: bool,
}

/// Appends the commands of `entry`.
pub(crate) fn encode(entry: &Entry, spelled: &mut Spelled, pipeline: &mut Pipeline) {
    let key = &*entry.order.key;
    let token = entry.order.token.as_bytes();
    let script = |script, spelled: &mut bool, fenced| {
        let short = std::mem::replace(spelled, true) && !entry.spelled_out;
        call(script, short, &entry.order, fenced)
    };
    let command = match entry.work {
        Work::Ask(Ask::Grant {
            ttl_millis,
            fence,
            block,
            announced,
        }) if fence.is_some() || announced => {
            let mut eval = script(&GRANT, &mut spelled.grant, fence.is_some());
            eval.arg(ttl_millis);
            hint(&mut eval, fence.unwrap_or_default());
            eval.arg(block).arg(if announced { "1" } else { "0" });
            eval
        }
        Work::Ask(Ask::Grant { ttl_millis, .. }) => {
            let mut set = Cmd::with_capacity(6, key.len() + OwnerToken::DIGITS + 40);
            set.arg("SET").arg(key).arg(token);
            set.arg("NX").arg("PX").arg(ttl_millis);
            set
        }
        Work::Ask(Ask::Raise { to, fence }) => {
            let mut eval = script(&RAISE, &mut spelled.raise, true);
            hint(&mut eval, Fencing { hint: to, ..fence });
            eval
        }
        Work::Ask(Ask::Extend {
            ttl_millis,
            restore,
            fence,
        }) => {
            let mut eval = script(&EXTEND, &mut spelled.extend, fence.is_some());
            eval.arg(ttl_millis).arg(if restore { "1" } else { "0" });
            fence.into_iter().for_each(|fence| hint(&mut eval, fence));
            eval
        }
        Work::Ask(Ask::Release { fence, .. }) => {
            let mut eval = script(&RELEASE, &mut spelled.release, fence.is_some());
            fence.into_iter().for_each(|fence| hint(&mut eval, fence));
            eval
        }
        Work::Inspect => {
            pipeline.cmd("GET").arg(key).cmd("PTTL").arg(key);
            return;
        }
    };
    pipeline.add_command(command);
}

/// A call of `script` for the key of `order`, and for its counter where that is `fenced`; up to
/// its first argument, the owner token.
fn call(script: &Script, short: bool, order: &Order, fenced: bool) -> Cmd {
    let Order { key, token } = order;
    let mut eval = Cmd::with_capacity(12, 2 * key.len() + OwnerToken::DIGITS + 160);
    if short {
        eval.arg("EVALSHA").arg(&script.sha);
    } else {
        eval.arg("EVAL").arg(script.text);
    }
    eval.arg(1 + usize::from(fenced)).arg(&**key);
    if fenced {
        eval.arg([&**key, b":fence"].concat());
    }
    eval.arg(token.as_bytes());
    eval
}

fn hint(eval: &mut Cmd, fence: Fencing) {
    eval.arg(fence.hint)
        .arg(fence.retention_millis)
        .arg(fence.max_ttl_millis);
}
