use std::sync::Mutex;

use tokio::sync::oneshot;

use super::*;
use crate::clock::ManualClock;
use crate::engine::handle::{Handle, Seat};
use crate::node::{Ask, AskId, Fault, Order};
use crate::queue::spec;
use crate::quorum::{Drift, GuardMode, Wait};

/// A node that takes everything, answers nothing, and counts how often it was told to send.
struct Mute(Arc<Mutex<Vec<usize>>>, usize);

impl Node for Mute {
    fn name(&self) -> &str {
        "mute"
    }
    fn submit(&mut self, _: AskId, _: &Arc<Order>, _: Ask, _: Instant) -> Result<(), Fault> {
        self.1 += 1;
        Ok(())
    }
    fn hangs(&self, _: Instant) -> Option<Duration> {
        None
    }
    fn listen(&mut self, _: &Arc<[u8]>) {}
    fn ignore(&mut self, _: &Arc<[u8]>) {}
    fn flush(&mut self) {
        if self.1 > 0 {
            self.0.lock().unwrap().push(std::mem::take(&mut self.1));
        }
    }
}

struct Bench {
    runner: Arc<Mutex<Runner>>,
    handle: Handle,
    commands: Arc<Commands>,
    hands: ManualClock,
    /// The size of each write.
    sent: Arc<Mutex<Vec<usize>>>,
}

impl Bench {
    fn new() -> Self {
        let hands = ManualClock::new(Instant::from_nanos(0));
        let (commands, seat) = (Arc::<Commands>::default(), Seat::default());
        let sent = Arc::<Mutex<Vec<usize>>>::default();
        let nodes = {
            let sent = Arc::clone(&sent);
            move |_, _| vec![Box::new(Mute(Arc::clone(&sent), 0)) as Box<dyn Node>]
        };
        let setup = Setup {
            clock: Clock::Manual(hands.clone()),
            rules: Rules {
                guard: GuardMode::Off,
                restart_delay: Duration::ZERO,
                patience: Duration::from_millis(50),
                drift: Drift::new(0.0, Duration::ZERO).unwrap(),
                counters: None,
            },
            nodes: Arc::new(nodes),
            drain: Duration::from_secs(1),
        };
        let token = || Some(crate::node::OwnerToken::new([1; 20]));
        let runner = Runner::new(
            setup,
            Arc::clone(&commands),
            Box::new(token),
            Box::new(|| 0),
        );
        let runner = Arc::new(Mutex::new(runner));
        assert!(seat.set(Arc::downgrade(&runner)).is_ok());
        Bench {
            handle: Handle::seated(Arc::clone(&commands), seat),
            runner,
            commands,
            hands,
            sent,
        }
    }

    fn acquire(&self, id: u64) {
        let mut spec = spec(1);
        // A resource of its own: none waits for another.
        Arc::get_mut(&mut spec).unwrap().key = id.to_be_bytes().as_slice().into();
        assert!(self.handle.send(Command::Acquire {
            id,
            spec,
            wait: Wait::Forever,
            adopts: None,
            handle: self.handle.clone(),
            reply: oneshot::channel().0,
        }));
    }

    fn sent(&self) -> Vec<usize> {
        std::mem::take(&mut self.sent.lock().unwrap())
    }
}

#[test]
fn a_caller_carries_out_what_it_asks_where_the_engine_is_free() {
    let bench = Bench::new();
    bench.acquire(1);
    assert_eq!(bench.sent(), [1]);
    let taken = bench.runner.lock().unwrap();
    bench.acquire(2);
    bench.acquire(3);
    assert_eq!((bench.sent(), bench.commands.len()), (vec![], 2));
    drop(taken);
    // Whoever comes next does not leave them lying.
    bench.acquire(4);
    assert_eq!((bench.sent(), bench.commands.len()), (vec![3], 0));
}

#[test]
fn what_is_due_is_left_to_the_thread_and_so_is_a_crowd() {
    let bench = Bench::new();
    bench.acquire(1);
    bench.hands.set(Instant::from_nanos(60_000_000));
    bench.acquire(2);
    assert_eq!(bench.commands.len(), 1, "the first round is due");
    let mut runner = bench.runner.lock().unwrap();
    runner.take();
    runner.turn();
    drop(runner);
    bench.sent();
    let crowd = CROWD as u64 + 10;
    for id in 3..crowd {
        bench.acquire(id);
    }
    let (written, waiting) = (bench.sent().len(), bench.commands.len());
    assert!(written <= CROWD + 1 && waiting > 0, "{written}, {waiting}");
    assert!(bench.commands.is_crowded());
}

#[test]
fn the_end_of_an_engine_is_told_to_whoever_sends() {
    let bench = Bench::new();
    let (reply, mut answer) = oneshot::channel();
    drop(bench.runner);
    assert!(!bench.handle.send(Command::Close { reply }));
    assert!(answer.try_recv().is_err());
    assert!(bench.handle.is_closed());
}

#[test]
fn a_command_that_begins_the_end_leaves_the_rest_to_the_thread() {
    let bench = Bench::new();
    let (reply, _answer) = oneshot::channel();
    assert!(bench.handle.send(Command::Close { reply }));
    let mut runner = bench.runner.lock().unwrap();
    assert!(runner.end.is_some());
    assert!(!runner.serve_here());
    assert!(!runner.turn(), "nothing is held: it has ended");
}
