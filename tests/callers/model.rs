//! The protocol as steps. A step is what one thread does between two moments at which another can
//! see or change what they share.

/// The most commands and events that a caller deals with, the most that are taken at once, and
/// how often a caller looks: small, so that every bound is met.
const FEW: u8 = 1;
const COMMANDS: u8 = 1;
const LOOKS: u8 = 2;
const CROWD: u8 = 1;

/// What is searched.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// Each sends one command.
    pub callers: usize,
    /// The alarm rings once, and commands make things fall due.
    pub alarm: bool,
    /// The callers drop their handles then.
    pub leave: bool,
    /// No command asks a node: no answer hides that somebody was not woken.
    pub quiet: bool,
    pub breach: Option<Breach>,
}

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    /// Who does not get the engine goes away without a ring.
    NoRingWhenTaken,
    /// Who leaves the engine does not look at the queue again.
    NoLookAtCommands,
    /// Nor at the inbox.
    NoLookAtEvents,
    /// He looks at the inbox before he leaves.
    LookBeforeLeaving,
    /// He does not tell that the alarm is to be set to an earlier moment.
    NoWordOfTimers,
    /// The thread does not wait for the engine when its alarm has rung.
    AlarmDoesNotWait,
    /// What one take leaves in the queue is left there.
    NoRingForTheRest,
}

impl Breach {
    pub const ALL: [Breach; 7] = [
        Breach::NoRingWhenTaken,
        Breach::NoLookAtCommands,
        Breach::NoLookAtEvents,
        Breach::LookBeforeLeaving,
        Breach::NoWordOfTimers,
        Breach::AlarmDoesNotWait,
        Breach::NoRingForTheRest,
    ];

    /// What the search finds then.
    pub fn leaves(self) -> &'static str {
        match self {
            Breach::NoRingWhenTaken | Breach::NoLookAtCommands | Breach::NoRingForTheRest => {
                "a command is left in the queue"
            }
            Breach::NoLookAtEvents | Breach::LookBeforeLeaving => "an event is left in the inbox",
            Breach::NoWordOfTimers => "the alarm is set too late",
            Breach::AlarmDoesNotWait => "what was due is not done",
        }
    }
}

/// Where a caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Caller {
    Push,
    /// Crowded?
    Look,
    Sit,
    /// `Runner::serve_here`: is it for a caller at all?
    Weigh,
    Take(u8),
    Turn(u8),
    /// Is there more?
    More(u8),
    Leave {
        served: bool,
    },
    /// The engine is free again: what came last?
    Inbox {
        served: bool,
    },
    Queue,
    Ring,
    /// The last one says that nobody is left.
    DropHandle,
    Done,
}

/// Where the engine's thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Thread {
    Sit { rang: bool },
    Take,
    Turn,
    Arm,
    Wait,
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Who {
    Thread,
    Caller(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    callers: [Caller; 3],
    thread: Thread,
    /// Who has the engine.
    seat: Option<Who>,
    queue: u8,
    /// Taken, and not carried out yet.
    batch: u8,
    bell: bool,
    crowded: bool,
    /// Requests that nodes will answer.
    asked: u8,
    inbox: u8,
    arrived: bool,
    /// Something falls due before the alarm that is set.
    unarmed: bool,
    /// The alarm may still ring by itself.
    alarm: bool,
    /// It has, and nobody has heard it.
    ringing: bool,
    /// Something has fallen due and was not done.
    late: bool,
    abandoned: bool,
}

impl State {
    pub fn new(scene: Scene) -> State {
        let caller = |at| {
            if at < scene.callers {
                Caller::Push
            } else {
                Caller::Done
            }
        };
        State {
            callers: [0, 1, 2].map(caller),
            thread: Thread::Sit { rang: true },
            seat: None,
            queue: 0,
            batch: 0,
            bell: false,
            crowded: false,
            asked: 0,
            inbox: 0,
            arrived: false,
            unarmed: false,
            alarm: scene.alarm,
            ringing: false,
            late: false,
            abandoned: false,
        }
    }

    /// What is wrong, now that nobody can do anything but wait.
    pub fn wrong_at_rest(&self) -> Option<&'static str> {
        if self.thread == Thread::Ended {
            return (self.queue > 0).then_some("ended, with a command in the queue");
        }
        let rules = [
            (self.queue > 0, "a command is left in the queue"),
            (self.inbox > 0, "an event is left in the inbox"),
            (self.late, "what was due is not done"),
            (self.unarmed, "the alarm is set too late"),
            (self.abandoned, "nobody is left, and it does not end"),
            (self.seat.is_some(), "somebody keeps the engine"),
        ];
        rules
            .iter()
            .find(|(wrong, _)| *wrong)
            .map(|(_, what)| *what)
    }

    /// All that can come next.
    pub fn steps(&self, scene: Scene) -> Vec<State> {
        let mut next = Vec::new();
        for at in 0..self.callers.len() {
            self.caller(at, scene, &mut next);
        }
        self.engine_thread(scene, &mut next);
        if self.asked > 0 {
            next.push(self.with(|state| {
                state.asked -= 1;
                state.inbox += 1;
                state.arrived = true;
            }));
        }
        if self.alarm {
            next.push(self.with(|state| {
                state.alarm = false;
                state.ringing = true;
                state.late = true;
            }));
        }
        next
    }

    fn with(&self, change: impl FnOnce(&mut State)) -> State {
        let mut state = *self;
        change(&mut state);
        state
    }

    fn take(&mut self, breach: Option<Breach>) {
        let count = self.queue.min(COMMANDS);
        self.queue -= count;
        self.batch += count;
        if self.queue > 0 && breach != Some(Breach::NoRingForTheRest) {
            self.bell = true;
        }
    }

    /// Carries out what was taken, and what has arrived. A command asks nodes; `timer` says that
    /// it also makes something fall due sooner than all before.
    fn turn(&mut self, timer: bool, quiet: bool) {
        self.unarmed |= timer && self.batch > 0;
        self.asked += if quiet { 0 } else { self.batch };
        self.batch = 0;
        self.inbox = 0;
        self.late = false;
        self.crowded = self.asked > CROWD;
    }

    fn caller(&self, at: usize, scene: Scene, next: &mut Vec<State>) {
        let breach = scene.breach;
        let me = Some(Who::Caller(at as u8));
        let breaks = |rule| breach == Some(rule);
        let mut go = |to: Caller, change: &dyn Fn(&mut State)| {
            next.push(self.with(|state| {
                state.callers[at] = to;
                change(state);
            }));
        };
        match self.callers[at] {
            Caller::Push => go(Caller::Look, &|state| state.queue += 1),
            Caller::Look if self.crowded => go(Caller::Ring, &|_| {}),
            Caller::Look => go(Caller::Sit, &|_| {}),
            Caller::Sit => match self.seat {
                // The thread has ended: there is no engine any more.
                _ if self.thread == Thread::Ended => go(Caller::Ring, &|_| {}),
                None => go(Caller::Weigh, &|state| state.seat = me),
                Some(_) if breaks(Breach::NoRingWhenTaken) => go(Caller::DropHandle, &|_| {}),
                Some(_) => go(Caller::Ring, &|_| {}),
            },
            Caller::Weigh if self.inbox > FEW || self.queue > FEW || self.late => {
                go(Caller::Leave { served: false }, &|_| {});
            }
            Caller::Weigh => go(Caller::Take(LOOKS), &|_| {}),
            Caller::Take(looks) => go(Caller::Turn(looks), &|state| state.take(breach)),
            Caller::Turn(looks) => {
                for timer in 0..=u8::from(scene.alarm) {
                    go(Caller::More(looks - 1), &|state| {
                        state.turn(timer == 1, scene.quiet)
                    });
                }
            }
            Caller::More(looks) if self.inbox > 0 && looks > 0 => go(Caller::Take(looks), &|_| {}),
            Caller::More(_) => {
                let served = !self.unarmed || breaks(Breach::NoWordOfTimers);
                let early = breaks(Breach::LookBeforeLeaving) && self.inbox > 0;
                go(
                    Caller::Leave {
                        served: served && !early,
                    },
                    &|_| {},
                );
            }
            Caller::Leave { served } => go(Caller::Inbox { served }, &|state| state.seat = None),
            Caller::Inbox { served } => {
                let looks = !breaks(Breach::NoLookAtEvents) && !breaks(Breach::LookBeforeLeaving);
                let rings = !served || (looks && self.inbox > 0);
                go(if rings { Caller::Ring } else { Caller::Queue }, &|_| {});
            }
            Caller::Queue if self.queue > 0 && !breaks(Breach::NoLookAtCommands) => {
                go(Caller::Ring, &|_| {});
            }
            Caller::Queue => go(Caller::DropHandle, &|_| {}),
            Caller::Ring => go(Caller::DropHandle, &|state| state.bell = true),
            Caller::DropHandle => go(Caller::Done, &|state| {
                let all = state.callers.iter().all(|caller| *caller == Caller::Done);
                if all && scene.leave {
                    state.abandoned = true;
                    state.bell = true;
                }
            }),
            Caller::Done => {}
        }
    }

    fn engine_thread(&self, scene: Scene, next: &mut Vec<State>) {
        let breach = scene.breach;
        let mut go = |to: Thread, change: &dyn Fn(&mut State)| {
            next.push(self.with(|state| {
                state.thread = to;
                change(state);
            }));
        };
        match self.thread {
            Thread::Sit { rang } => match self.seat {
                None => go(Thread::Take, &|state| state.seat = Some(Who::Thread)),
                // Who leaves wakes it: there is no step before.
                Some(_) if rang && breach != Some(Breach::AlarmDoesNotWait) => {}
                Some(_) => go(Thread::Wait, &|_| {}),
            },
            Thread::Take if self.abandoned && self.queue == 0 => {
                go(Thread::Ended, &|state| state.seat = None);
            }
            Thread::Take => go(Thread::Turn, &|state| state.take(breach)),
            Thread::Turn => {
                for timer in 0..=u8::from(scene.alarm) {
                    go(Thread::Arm, &|state| state.turn(timer == 1, scene.quiet));
                }
            }
            Thread::Arm => go(Thread::Wait, &|state| {
                state.unarmed = false;
                state.seat = None;
            }),
            // In this order: `select!` is biased.
            Thread::Wait if self.bell => {
                go(Thread::Sit { rang: false }, &|state| state.bell = false);
            }
            Thread::Wait if self.arrived => {
                go(Thread::Sit { rang: false }, &|state| state.arrived = false);
            }
            Thread::Wait if self.ringing => {
                go(Thread::Sit { rang: true }, &|state| state.ringing = false);
            }
            Thread::Wait | Thread::Ended => {}
        }
    }
}
