//! The callers' end of an engine: commands, the handle that sends them, and the claim on a lease.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use tokio::sync::oneshot;
use tracing::Span;

use super::{Commands, Runner};
use crate::coordinator::Secret;
use crate::error::{AcquireError, Loss};
use crate::keeper::{Cell, DetachReply, ExtendReply, HoldId, ReleaseReply};
use crate::queue::{Spec, WaiterId};
use crate::quorum::{FencingToken, Timing, Wait};
use crate::status::NodeStatus;

/// Where the outcome of an acquisition goes. The claim inside it releases the lease when it is
/// dropped, so that an outcome which nobody takes out is not lost.
pub(crate) type AcquireReply = oneshot::Sender<Result<Won, AcquireError>>;

/// A lock that was got, and how.
pub(crate) struct Won {
    pub(crate) claim: Claim,
    /// How many rounds it took: none where it was handed on.
    pub(crate) rounds: u32,
    /// How many nodes had granted by then.
    pub(crate) votes: usize,
    pub(crate) waited: Duration,
}

/// What callers ask of the engine.
pub(crate) enum Command {
    Acquire {
        id: WaiterId,
        spec: Arc<Spec>,
        wait: Wait,
        /// Take this lease over, instead of asking for a new one.
        adopts: Option<Secret>,
        handle: Handle,
        reply: AcquireReply,
    },
    Cancel {
        id: WaiterId,
    },
    Extend {
        hold: HoldId,
        timing: Option<Timing>,
        span: Span,
        reply: ExtendReply,
    },
    Release {
        hold: HoldId,
        /// The holder's own: whoever is next gets a larger one.
        token: FencingToken,
        reply: Option<ReleaseReply>,
    },
    /// Let go without a release.
    Detach {
        hold: HoldId,
        token: FencingToken,
        reply: DetachReply,
    },
    /// What proves the lease, which stays as it is. No answer where there is none.
    Secret {
        hold: HoldId,
        reply: DetachReply,
    },
    /// What is known of the nodes.
    Nodes {
        reply: oneshot::Sender<Vec<NodeStatus>>,
    },
    /// Release everything, refuse what comes, and end. The reply is the number of releases that
    /// were not confirmed in time.
    Close {
        reply: oneshot::Sender<usize>,
    },
}

/// The callers' end of an engine.
///
/// Every guard has a clone of it, so it is one word.
#[derive(Clone)]
pub(crate) struct Handle(Arc<Line>);

/// The engine that a thread and its callers share, once it is there.
pub(super) type Seat = Arc<OnceLock<Weak<Mutex<Runner>>>>;

struct Line {
    commands: Arc<Commands>,
    seat: Seat,
    waiters: AtomicU64,
    process: u32,
}

impl Handle {
    /// The end of an engine that takes everything from `commands` itself.
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn new(commands: Arc<Commands>) -> Self {
        Handle::seated(commands, Seat::default())
    }

    /// The end of an engine that callers drive, too, where it is free.
    pub(super) fn seated(commands: Arc<Commands>, seat: Seat) -> Self {
        Handle(Arc::new(Line {
            commands,
            seat,
            waiters: AtomicU64::new(1),
            process: std::process::id(),
        }))
    }

    /// A fresh name for an acquisition.
    pub(crate) fn new_waiter(&self) -> WaiterId {
        self.0.waiters.fetch_add(1, Ordering::Relaxed)
    }

    /// `false` when the engine has ended, or lives in another process: a fork has no threads but
    /// the one that forked.
    ///
    /// Does not wait. Where nobody else is at the engine the command is carried out right here,
    /// with a write to each node, which saves a hop to the engine's thread.
    pub(crate) fn send(&self, command: Command) -> bool {
        let Line { commands, seat, .. } = &*self.0;
        if !self.is_of_this_process() || !commands.push(command) {
            return false;
        }
        let _bell = Bell(commands);
        if commands.is_crowded() || !serve_here(seat) || commands.len() > 0 {
            commands.ring();
        }
        true
    }

    pub(crate) fn is_of_this_process(&self) -> bool {
        self.0.process == std::process::id()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.commands.is_closed()
    }
}

/// Wakes the engine's thread where a caller panics at the engine, by a waker of somebody else's:
/// until its alarm nobody would find out that there is no engine any more.
struct Bell<'a>(&'a Commands);

impl Drop for Bell<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.ring();
        }
    }
}

/// Does all that has been sent. `false` where the engine's thread must look after something.
fn serve_here(seat: &Seat) -> bool {
    let Some(runner) = seat.get().and_then(Weak::upgrade) else {
        return false;
    };
    let Ok(mut engine) = runner.try_lock() else {
        return false;
    };
    let inbox = engine.inbox();
    let served = engine.serve_here();
    drop(engine);
    // What came last: its thread may have found the engine taken, and relies on us.
    served && inbox.is_empty()
}

impl Drop for Line {
    fn drop(&mut self) {
        // In a forked child a lock may be held for good, by a thread that is not there.
        if self.process == std::process::id() {
            self.commands.abandon();
        }
    }
}

/// A granted lease on its way to its holder. Dropping it lets the lease go.
#[must_use]
pub(crate) struct Claim {
    pub(crate) hold: HoldId,
    pub(crate) token: FencingToken,
    pub(crate) cell: Arc<Cell>,
    pub(super) handle: Handle,
    pub(super) kept: bool,
}

impl Claim {
    /// What is held, and on which terms.
    pub(crate) fn spec(&self) -> &Arc<Spec> {
        self.cell.spec()
    }

    /// Asks the engine for something about this lease. `false` when there is no engine any more.
    pub(crate) fn send(&self, command: Command) -> bool {
        self.handle.send(command)
    }

    /// Lets the lease go without a release; its secret goes to `reply`. `false` when nobody will.
    pub(crate) fn detach(mut self, reply: DetachReply) -> bool {
        self.kept = true;
        self.handle.send(Command::Detach {
            hold: self.hold,
            token: self.token,
            reply,
        })
    }

    /// Lets the lease go, and says how that went on `reply`. `false` when nobody will.
    pub(crate) fn release(mut self, reply: ReleaseReply) -> bool {
        self.kept = true;
        self.handle.send(Command::Release {
            hold: self.hold,
            token: self.token,
            reply: Some(reply),
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // In a forked child the lease is the parent's.
        if !self.kept && self.handle.is_of_this_process() {
            self.cell.end(Loss::Released);
            self.handle.send(Command::Release {
                hold: self.hold,
                token: self.token,
                reply: None,
            });
        }
    }
}
