//! A seed draws a world, its workers and its faults, and every invariant is looked at after each
//! step. First faults without end, then all is healed and everybody must be served.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use quorumlock::testing::world::{ProcessId, Task, World, is_held};
use quorumlock::{Client, FaultKind, FencingToken, Guard, Held, RestartGuard};

use crate::support::{JOB, ms, restart_delay, settings};

/// What a seed may draw.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub guard: Option<RestartGuard>,
    /// Clocks of servers are set forward by more than the allowance.
    pub stepped_clocks: bool,
}

impl Plan {
    /// Whether all that the tokens stand on is there.
    fn is_sound(&self) -> bool {
        self.guard.is_none() && !self.stepped_clocks
    }
}

/// How many TTLs of the lock an extension by hand may ask for.
const LONGEST: u32 = 3;

/// How long the faults go on.
const STORM: Duration = ms(3_000);

/// One guard, as the invariants see it.
struct Hold {
    process: ProcessId,
    held: Held,
    /// Since when it is over while its process ran, and whether its task has heard of it.
    over: Cell<Option<Duration>>,
    heard: Rc<Cell<bool>>,
}

/// What the workers and the invariants share.
struct State {
    world: World,
    plan: Plan,
    ttl: Duration,
    holds: RefCell<Vec<Hold>>,
    storm: Cell<bool>,
    granted: Cell<u64>,
    /// The last guard's.
    token: Cell<FencingToken>,
    disorder: Cell<Option<String>>,
}

/// What a seed did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub granted: u64,
    pub served: u64,
    pub steps: u64,
}

/// Runs one seed.
///
/// # Errors
/// The invariant that broke.
pub fn run(world: &World, plan: Plan) -> Result<Tally, String> {
    let outcome = drive(world, plan);
    world.end();
    outcome
}

fn drive(world: &World, plan: Plan) -> Result<Tally, String> {
    let ttl = [ms(400), ms(600), ms(1_000)][world.chance(3) as usize];
    let state = Rc::new(State {
        world: world.clone(),
        plan,
        ttl,
        holds: RefCell::default(),
        storm: Cell::new(true),
        granted: Cell::new(0),
        token: Cell::new(FencingToken::NONE),
        disorder: Cell::default(),
    });
    let guard = plan.guard.unwrap_or(match world.chance(2) {
        0 => RestartGuard::Auto,
        _ => RestartGuard::Strict,
    });
    state.shape_servers();
    let steps = Rc::new(Cell::new(0));
    let (watched, counted) = (Rc::clone(&state), Rc::clone(&steps));
    world.always(move |_| {
        counted.set(counted.get() + 1);
        watched.check()
    });
    let mut workers = Vec::new();
    for _ in 0..2 + world.chance(2) {
        // Counters that clocks have set far apart find no token, and nobody is served.
        let config = settings(world, ttl)
            .max_ttl(ttl * LONGEST)
            .restart_guard(guard)
            .cohort_max_time([ms(0), ms(200), ttl * 4][world.chance(3) as usize])
            .cohort_max_handoffs([1, 3, 64][world.chance(3) as usize]);
        let config = config.fencing(!plan.stepped_clocks);
        let (process, client) = world.client(config).map_err(|error| error.to_string())?;
        for _ in 0..1 + world.chance(2) {
            let work = Rc::clone(&state).work(process, client.clone());
            workers.push(world.spawn(process, work));
        }
    }
    let processes = workers.len().min(2);
    for _ in 0..1 + world.chance(2) {
        let storm = Rc::clone(&state).storm(processes, guard);
        drop(world.spawn_outside(storm));
    }
    world.run_for(STORM)?;
    state.storm.set(false);
    world.end_outside();
    world.heal();
    state.start_the_dead();
    state.calm(&workers)?;
    Ok(Tally {
        granted: state.granted.get(),
        served: crate::support::served(world),
        steps: steps.get(),
    })
}

impl State {
    fn shape_servers(&self) {
        let world = &self.world;
        for node in 0..world.nodes() {
            let server = world.server(node);
            let most = [ms(1), ms(8), ms(30)][world.chance(3) as usize];
            server.latency(Duration::from_micros(100), most);
            // Within the allowance of one hundredth.
            server.run_fast(world.chance(18_001) as i64 - 9_000);
        }
    }

    /// Acquires, holds and lets go, in all the ways there are, until the storm is over; and once
    /// more then.
    async fn work(self: Rc<Self>, process: ProcessId, client: Client) {
        let world = &self.world;
        while self.storm.get() {
            world.sleep(world.span(ms(0), ms(150))).await;
            let lock = client.lock(JOB).auto_extend(world.chance(4) > 0);
            let wait = [ms(0), ms(300), ms(1_500)][world.chance(3) as usize];
            let lock = lock.wait(wait);
            let patience = match world.chance(4) {
                0 => world.span(ms(0), ms(150)),
                _ => ms(10_000),
            };
            let cut = pin!(world.sleep(patience));
            let got = match futures::future::select(pin!(lock.acquire()), cut).await {
                futures::future::Either::Left((got, _)) => got,
                futures::future::Either::Right(_) => continue,
            };
            match got {
                Ok(guard) => self.hold(process, &client, guard).await,
                Err(error) => world.note(|| format!("c{process} gives up: {error}")),
            }
        }
        let last = client.lock(JOB).wait_forever().acquire().await;
        if let Ok(guard) = last {
            self.hold(process, &client, guard).await;
        }
    }

    fn watch(self: &Rc<Self>, process: ProcessId, guard: &Guard, attached: bool) {
        let world = &self.world;
        self.granted.set(self.granted.get() + 1);
        world.note(|| format!("c{process} holds for {:?}", guard.remaining()));
        let token = guard.fencing_token();
        let before = self.token.replace(token);
        if self.plan.is_sound() && (token < before || (token == before) != attached) {
            let what = format!("c{process}: token {token} after {before}");
            self.disorder.set(Some(what));
        }
        let heard = Rc::new(Cell::new(false));
        let (lost, flag) = (guard.lost(), Rc::clone(&heard));
        let noting = world.clone();
        drop(world.spawn(process, async move {
            let loss = lost.await;
            noting.note(|| format!("c{process} hears: {loss}"));
            flag.set(true);
        }));
        self.holds.borrow_mut().push(Hold {
            process,
            held: guard.held(),
            over: Cell::new(None),
            heard,
        });
    }

    async fn hold(self: &Rc<Self>, process: ProcessId, client: &Client, guard: Guard) {
        self.watch(process, &guard, false);
        let world = &self.world;
        let span = world.span(ms(0), self.ttl * 2);
        match world.chance(7) {
            0 => drop(guard),
            6 => {
                world.sleep(span / 8).await;
                if let Ok(ticket) = guard.detach().await {
                    world.sleep(span / 16).await;
                    if let Ok(guard) = client.attach(&ticket).await {
                        world.note(|| format!("c{process} attached"));
                        self.watch(process, &guard, true);
                        world.sleep(span).await;
                    }
                }
            }
            1 => {
                let limit = pin!(world.sleep(span * 2));
                drop(futures::future::select(guard.lost(), limit).await);
            }
            2 => {
                world.sleep(span / 8).await;
                let far = self.ttl * (1 + world.chance(LONGEST.into()) as u32);
                // Three at once, and the first may be given up.
                let (one, two) = (guard.extend_to(far), guard.extend());
                let cut = world.sleep(world.span(ms(0), ms(40)));
                let _ = futures::future::select(pin!(one), pin!(cut)).await;
                let _ = futures::future::join3(two, guard.extend(), guard.extend_to(far)).await;
                world.sleep(span / 8).await;
                drop(guard);
            }
            3 => {
                world.sleep(span).await;
                drop(guard);
            }
            _ => {
                world.sleep(span).await;
                let _ = guard.release().await;
            }
        }
    }

    /// What must hold after every step.
    fn check(&self) -> Result<(), String> {
        if let Some(what) = self.disorder.take() {
            return Err(what);
        }
        let now = self.world.elapsed();
        let mut holds = self.holds.borrow_mut();
        let mut holder = None;
        for hold in holds.iter() {
            if is_held(&hold.held) {
                if hold.over.get().is_some() {
                    return Err(format!("c{}: an ended hold came back", hold.process));
                }
                if let Some(other) = holder.replace(hold.process) {
                    return Err(format!("two holders: c{other} and c{}", hold.process));
                }
                continue;
            }
            self.check_loss(hold, now)?;
        }
        holds.retain(|hold| !(hold.heard.get() && hold.over.get().is_some()));
        Ok(())
    }

    /// The hold is over: its signal is there at the first look, and its task hears of it before
    /// time goes on, unless its process stands still.
    fn check_loss(&self, hold: &Hold, now: Duration) -> Result<(), String> {
        let process = hold.process;
        if hold.over.get().is_none() {
            hold.over.set(Some(now));
            let lost = pin!(hold.held.lost());
            let mut context = Context::from_waker(Waker::noop());
            if lost.poll(&mut context).is_pending() {
                return Err(format!("c{process}: over, and its signal is not ready"));
            }
        }
        let runs = self.world.frozen_until(process);
        let late = hold.over.get().is_some_and(|over| now > over.max(runs));
        if late && !hold.heard.get() {
            return Err(format!("c{process}: the loss is told late"));
        }
        Ok(())
    }

    fn start_the_dead(&self) {
        for node in 0..self.world.nodes() {
            if self.world.chance(2) == 0 {
                self.world.server(node).restart_with_data();
            }
        }
    }

    /// The healing phase: everybody is served in time, and nothing is left.
    fn calm(&self, workers: &[Task<()>]) -> Result<(), String> {
        // Nodes that restarted get their vote back; then the waiters take turns.
        let turns = self.ttl * 4 * LONGEST * workers.len() as u32;
        let bound = restart_delay(self.ttl * LONGEST) + turns + ms(2_000);
        let healed = self.world.elapsed();
        for worker in workers {
            let left = (healed + bound).saturating_sub(self.world.elapsed());
            if self.world.run_until(worker, left).is_err() && !worker.has_ended() {
                let why = self.world.run_for(ms(0)).err();
                return Err(why.unwrap_or_else(|| String::from("a waiter was not served")));
            }
        }
        self.world.run_for(self.ttl.mul_f64(1.02) + ms(300))?;
        match self.world.cluster().holders(JOB).as_slice() {
            [] => Ok(()),
            left => Err(format!("keys are left: {left:?}")),
        }
    }

    /// Faults, one after another.
    async fn storm(self: Rc<Self>, processes: usize, guard: RestartGuard) {
        let world = &self.world;
        // Where all nodes look new, `auto` takes the set for a new one: so some stay old.
        let losable = match guard {
            RestartGuard::Auto => (world.nodes() - 1) / 2,
            _ => world.nodes(),
        } as u64;
        loop {
            world.sleep(world.span(ms(0), ms(200))).await;
            let node = world.chance(world.nodes() as u64) as usize;
            let process = world.chance(processes as u64) as usize;
            let span = world.span(ms(1), self.ttl * 2);
            match world.chance(12) {
                0 => world.freeze(process, span),
                1 | 2 => self.lose_data(world.chance(losable) as usize),
                3 | 4 => self.reset(process, node),
                5 => world.server(node).slow(world.span(ms(0), ms(20))),
                6 => {
                    let count = 1 + world.chance(5);
                    world.node(node).fail_next(FaultKind::Loading, count);
                }
                7 => world.server(node).restart_with_data(),
                8 => world.server(node).heal(),
                _ if self.plan.stepped_clocks && world.chance(2) == 0 => {
                    world.server(node).step_forward(self.ttl);
                }
                fault => {
                    drop(world.spawn_outside(Rc::clone(&self).passing(fault, process, node, span)))
                }
            }
            self.check_expiry();
        }
    }

    /// A fault that ends by itself.
    async fn passing(self: Rc<Self>, fault: u64, process: ProcessId, node: usize, span: Duration) {
        let world = &self.world;
        let (server, link) = (world.server(node), world.link(process, node));
        match fault {
            9 => server.hang(),
            10 => link.hold(),
            _ => link.swallow(),
        }
        world.sleep(span).await;
        match fault {
            9 => server.resume(),
            _ => link.mend(),
        }
    }

    fn lose_data(&self, node: usize) {
        let server = self.world.server(node);
        match self.world.chance(4) {
            0 => server.wipe(),
            1 => server.restart_without_last_write(),
            _ => server.restart_empty(),
        }
    }

    fn reset(&self, process: ProcessId, node: usize) {
        let link = self.world.link(process, node);
        match self.world.chance(3) {
            0 => link.reset_before(),
            1 => link.reset_after(),
            _ => link.reset_amid(self.world.chance(3) as usize),
        }
    }

    fn check_expiry(&self) {
        for node in 0..self.world.nodes() {
            let everlasting = self.world.server(node).everlasting();
            assert!(everlasting.is_empty(), "no expiry: {everlasting:?}");
        }
    }
}
