//! The search for an order, without a thought about locks but for the machine itself: any
//! operation may come next that no other one had to come before (Wing and Gong), and what was tried
//! from one set of operations is not tried again (Lowe). For small histories, to check the checker.

use std::collections::HashSet;

use crate::linear::{OPEN, Op, Promise, What};

/// The sequential machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Machine {
    holder: Option<(u64, u32)>,
    last: u64,
}

impl Machine {
    fn take(self, op: &Op, promise: Promise) -> Option<Machine> {
        let alone = promise == Promise::Lock;
        match op.what {
            What::Grant => {
                let free = !alone || self.holder.is_none();
                (free && op.token > self.last).then_some(Machine {
                    holder: alone.then_some((op.token, op.process)),
                    last: op.token,
                })
            }
            What::End => {
                let ours = !alone || self.holder == Some((op.token, op.process));
                ours.then_some(Machine {
                    holder: None,
                    ..self
                })
            }
        }
    }
}

/// Whether there is an order for these operations, 64 at most.
pub fn has_order(ops: &[Op], promise: Promise) -> bool {
    assert!(ops.len() <= 64, "a small history");
    step(ops, promise, 0, Machine::default(), &mut HashSet::new())
}

fn step(
    ops: &[Op],
    promise: Promise,
    done: u64,
    machine: Machine,
    tried: &mut HashSet<(u64, Machine)>,
) -> bool {
    let open = |index: &usize| done & (1 << index) == 0;
    let left: Vec<usize> = (0..ops.len()).filter(open).collect();
    if left.iter().all(|&index| ops[index].to == OPEN) {
        return true;
    }
    if !tried.insert((done, machine)) {
        return false;
    }
    let first_end = left.iter().map(|&index| ops[index].to).min();
    let may_be_next = |&&index: &&usize| Some(ops[index].from) <= first_end;
    left.iter().filter(may_be_next).any(|&index| {
        let next = machine.take(&ops[index], promise);
        next.is_some_and(|next| step(ops, promise, done | 1 << index, next, tried))
    })
}
