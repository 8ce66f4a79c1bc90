//! Requests as commands.

use redis::Cmd;

use crate::node::lane::{Entry, Work};
use crate::node::script::{EXTEND, GRANT, RAISE, RELEASE, Script};
use crate::node::{Ask, Fencing, Order};

/// The scripts that a connection has spelled out once already.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spelled {
    grant: bool,
    raise: bool,
    extend: bool,
    release: bool,
}

/// Appends the commands of `entry` to `out`. `command` is used up and used again, for its memory.
pub(crate) fn encode(entry: &Entry, spelled: &mut Spelled, command: &mut Cmd, out: &mut Vec<u8>) {
    let key = &*entry.order.key;
    let token = entry.order.token.as_bytes();
    command.clear();
    let script = |eval: &mut Cmd, script, spelled: &mut bool, fenced| {
        let short = std::mem::replace(spelled, true) && !entry.spelled_out;
        call(eval, script, short, &entry.order, fenced);
    };
    match entry.work {
        Work::Ask(Ask::Grant {
            ttl_millis,
            fence,
            block,
            announced,
        }) if fence.is_some() || announced => {
            script(command, &GRANT, &mut spelled.grant, fence.is_some());
            command.arg(ttl_millis);
            hint(command, fence.unwrap_or_default());
            command.arg(block).arg(if announced { "1" } else { "0" });
        }
        Work::Ask(Ask::Grant { ttl_millis, .. }) => {
            command.arg("SET").arg(key).arg(token);
            command.arg("NX").arg("PX").arg(ttl_millis);
        }
        Work::Ask(Ask::Raise { to, fence }) => {
            script(command, &RAISE, &mut spelled.raise, true);
            hint(command, Fencing { hint: to, ..fence });
        }
        Work::Ask(Ask::Extend {
            ttl_millis,
            restore,
            fence,
        }) => {
            script(command, &EXTEND, &mut spelled.extend, fence.is_some());
            command.arg(ttl_millis).arg(if restore { "1" } else { "0" });
            fence.into_iter().for_each(|fence| hint(command, fence));
        }
        Work::Ask(Ask::Release { fence, .. }) => {
            script(command, &RELEASE, &mut spelled.release, fence.is_some());
            fence.into_iter().for_each(|fence| hint(command, fence));
        }
        Work::Inspect => {
            command.arg("GET").arg(key);
            command.write_packed_command(out);
            command.clear();
            command.arg("PTTL").arg(key);
        }
    }
    command.write_packed_command(out);
}

/// How many replies the commands of an entry bring.
pub(crate) fn replies_to(entry: &Entry) -> usize {
    if entry.work == Work::Inspect { 2 } else { 1 }
}

/// A call of `script` for the key of `order`, and for its counter where that is `fenced`; up to
/// its first argument, the owner token.
fn call(eval: &mut Cmd, script: &Script, short: bool, order: &Order, fenced: bool) {
    let Order { key, token, .. } = order;
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
}

fn hint(eval: &mut Cmd, fence: Fencing) {
    eval.arg(fence.hint)
        .arg(fence.retention_millis)
        .arg(fence.max_ttl_millis);
}
