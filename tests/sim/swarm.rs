//! A seed draws a world, its workers and its faults, and every invariant is looked at after each
//! step. First faults without end, then all is healed and everybody must be served.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use quorumlock::testing::world::{ProcessId, World};
use quorumlock::{Client, Guard, RestartGuard};

use crate::invariants::{Seen, leftovers, liveness, true_errors};
use crate::support::{JOB, ms, settings};

mod storm;

use storm::Storm;

/// What a seed may draw.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub guard: Option<RestartGuard>,
    /// Clocks of servers are set forward by more than the allowance.
    pub stepped_clocks: bool,
    /// Servers drop keys that have not run out: no lock stands that.
    pub evictions: bool,
}

impl Plan {
    /// All that the library promises to stand.
    pub const SOUND: Plan = Plan {
        guard: None,
        stepped_clocks: false,
        evictions: false,
    };

    /// Whether all that the tokens stand on is there.
    pub fn is_sound(&self) -> bool {
        self.guard.is_none() && !self.stepped_clocks && !self.evictions
    }

    /// Whether two holders are looked for.
    pub fn excludes(&self) -> bool {
        !self.evictions
    }
}

/// How many TTLs of the lock an extension by hand may ask for.
const LONGEST: u32 = 3;

/// How long the faults go on.
const STORM: Duration = ms(3_000);

/// What a seed did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub granted: u64,
    pub faults: u64,
    pub steps: u64,
    /// At all nodes and on their connections.
    pub events: u64,
}

/// A world of the seed: now and then one server has two addresses.
pub fn world_of(seed: u64, logged: bool) -> World {
    let nodes = [3, 5][seed as usize % 2];
    match seed % 16 {
        7 => World::with_twins(seed, nodes, logged),
        _ if logged => World::logged(seed, nodes),
        _ => World::new(seed, nodes),
    }
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

struct Worker {
    seen: Rc<Seen>,
    process: ProcessId,
    client: Client,
    storm: Rc<Cell<bool>>,
}

fn drive(world: &World, plan: Plan) -> Result<Tally, String> {
    let ttl = [ms(400), ms(600), ms(1_000)][world.chance(3) as usize];
    let seen = Rc::new(Seen::new(world, plan, ttl, ttl * LONGEST));
    let guard = plan.guard.unwrap_or(match world.chance(2) {
        0 => RestartGuard::Auto,
        _ => RestartGuard::Strict,
    });
    shape_servers(world);
    let steps = Rc::new(Cell::new(0));
    let (watched, counted) = (Rc::clone(&seen), Rc::clone(&steps));
    world.always(move |_| {
        counted.set(counted.get() + 1);
        watched.after_each_step()
    });
    let raging = Rc::new(Cell::new(true));
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
            let worker = Worker {
                seen: Rc::clone(&seen),
                process,
                client: client.clone(),
                storm: Rc::clone(&raging),
            };
            workers.push(world.spawn(process, worker.work()));
        }
    }
    let storm = Rc::new(Storm::new(world, plan, ttl, guard));
    for _ in 0..1 + world.chance(2) {
        drop(world.spawn_outside(Rc::clone(&storm).rage()));
    }
    world.run_for(STORM)?;
    raging.set(false);
    world.end_outside();
    world.heal();
    start_the_dead(world);
    liveness::check(&seen, &workers)?;
    leftovers::check(&seen)?;
    Ok(Tally {
        granted: seen.granted.get(),
        faults: storm.drawn.get(),
        steps: steps.get(),
        events: crate::support::events(world),
    })
}

fn shape_servers(world: &World) {
    for node in 0..world.nodes() {
        let server = world.server(node);
        let most = [ms(1), ms(8), ms(30)][world.chance(3) as usize];
        server.latency(Duration::from_micros(100), most);
        server.run_fast(rate(world));
    }
}

/// By how many millionths a server's clock runs fast: within the allowance of one hundredth.
fn rate(world: &World) -> i64 {
    world.chance(18_001) as i64 - 9_000
}

fn start_the_dead(world: &World) {
    for node in 0..world.nodes() {
        if world.chance(2) == 0 {
            world.server(node).restart_with_data();
        }
    }
}

impl Worker {
    /// Acquires, holds and lets go, in all the ways there are, until the storm is over; and once
    /// more then.
    async fn work(self) {
        let (world, process) = (&self.seen.world, self.process);
        while self.storm.get() {
            world.sleep(world.span(ms(0), ms(150))).await;
            let lock = self.client.lock(JOB).auto_extend(world.chance(4) > 0);
            let wait = [ms(0), ms(300), ms(1_500)][world.chance(3) as usize];
            let lock = lock.wait(wait);
            let patience = match world.chance(4) {
                0 => world.span(ms(0), ms(150)),
                _ => ms(10_000),
            };
            let began = world.elapsed();
            let cut = pin!(world.sleep(patience));
            let got = match futures::future::select(pin!(lock.acquire()), cut).await {
                futures::future::Either::Left((got, _)) => got,
                futures::future::Either::Right(_) => continue,
            };
            match got {
                Ok(guard) => self.hold(guard).await,
                Err(error) => {
                    world.note(|| format!("c{process} gives up: {error}"));
                    let truth = true_errors::check(&self.seen, process, began, &error);
                    self.seen.report(truth);
                }
            }
        }
        match self.client.lock(JOB).wait_forever().acquire().await {
            Ok(guard) => self.hold(guard).await,
            Err(error) => {
                let what = format!("c{process} waits for ever, and gives up: {error}");
                self.seen.report(Err(what));
            }
        }
    }

    async fn hold(&self, guard: Guard) {
        let (seen, world) = (&self.seen, &self.seen.world);
        seen.grant(self.process, &guard, false);
        let span = world.span(ms(0), seen.ttl * 2);
        match world.chance(7) {
            0 => drop(guard),
            1 => {
                let limit = pin!(world.sleep(span * 2));
                drop(futures::future::select(guard.lost(), limit).await);
            }
            2 => self.extend_by_hand(guard, span).await,
            3 => {
                world.sleep(span).await;
                drop(guard);
            }
            6 => self.pass_on(guard, span).await,
            _ => {
                world.sleep(span).await;
                let _ = guard.release().await;
            }
        }
    }

    /// Three at once, and the first may be given up.
    async fn extend_by_hand(&self, guard: Guard, span: Duration) {
        let (seen, world) = (&self.seen, &self.seen.world);
        world.sleep(span / 8).await;
        let far = seen.ttl * (1 + world.chance(LONGEST.into()) as u32);
        let (one, two) = (guard.extend_to(far), guard.extend());
        let cut = world.sleep(world.span(ms(0), ms(40)));
        let _ = futures::future::select(pin!(one), pin!(cut)).await;
        let _ = futures::future::join3(two, guard.extend(), guard.extend_to(far)).await;
        world.sleep(span / 8).await;
        drop(guard);
    }

    /// By a ticket, to a guard of the same process.
    async fn pass_on(&self, guard: Guard, span: Duration) {
        let (seen, world) = (&self.seen, &self.seen.world);
        world.sleep(span / 8).await;
        let Ok(ticket) = guard.detach().await else {
            return;
        };
        world.sleep(span / 16).await;
        match self.client.attach(&ticket).await {
            Ok(guard) => {
                world.note(|| format!("c{} attached", self.process));
                seen.grant(self.process, &guard, true);
                world.sleep(span).await;
            }
            Err(_) => seen.abandoned.set(true),
        }
    }
}
