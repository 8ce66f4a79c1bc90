//! A future or guard that is dropped, at whatever step of the world, leaves nothing behind.

use std::future::pending;
use std::time::Duration;

use quorumlock::Client;
use quorumlock::testing::world::{ProcessId, Step, Task, World};

use crate::support::{JOB, acquire, assert_clean, ms, process, run, served, world};

/// So long that no key runs out while it is looked for.
const TTL: Duration = ms(6_000);

/// What is wrong while the future runs.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    None,
    Slow,
    OneHangs,
    OneRefuses,
    OneCut,
    OneSwallows,
    /// The rival holds the lock at first, so that there are several rounds.
    Contended,
    /// Connections break again and again, after what was sent has been carried out.
    Resets,
}

const TROUBLES: [Trouble; 8] = [
    Trouble::None,
    Trouble::Slow,
    Trouble::OneHangs,
    Trouble::OneRefuses,
    Trouble::OneCut,
    Trouble::OneSwallows,
    Trouble::Contended,
    Trouble::Resets,
];

/// A future that acquires.
type Body = fn(&World, ProcessId, &Client) -> Task<()>;

fn waiting(world: &World, process: ProcessId, client: &Client) -> Task<()> {
    let lock = client.lock(JOB);
    world.spawn(process, async move {
        let guard = lock.acquire().await;
        drop(guard);
    })
}

fn holding(world: &World, process: ProcessId, client: &Client) -> Task<()> {
    let lock = client.lock(JOB);
    world.spawn(process, async move {
        let _guard = lock.acquire().await.unwrap();
        pending().await
    })
}

fn releasing(world: &World, process: ProcessId, client: &Client) -> Task<()> {
    let lock = client.lock(JOB);
    world.spawn(process, async move {
        let guard = lock.acquire().await.unwrap();
        let _ = guard.release().await;
    })
}

fn extending(world: &World, process: ProcessId, client: &Client) -> Task<()> {
    let lock = client.lock(JOB);
    world.spawn(process, async move {
        let guard = lock.acquire().await.unwrap();
        let _ = guard.extend().await;
    })
}

fn begin(trouble: Trouble, world: &World, me: ProcessId) {
    match trouble {
        Trouble::None | Trouble::Contended => {}
        Trouble::Slow => world.server(0).latency(ms(400), ms(400)),
        Trouble::OneHangs => world.server(0).hang(),
        Trouble::OneRefuses => world.server(0).kill(),
        Trouble::OneCut => world.link(me, 0).hold(),
        Trouble::OneSwallows => world.link(me, 0).swallow(),
        Trouble::Resets => {
            let again = world.clone();
            drop(world.spawn_outside(async move {
                for node in (0..5).cycle() {
                    again.sleep(ms(7)).await;
                    again.link(me, node).reset_after();
                }
            }));
        }
    }
}

/// When the steps begin, and when they end at the latest.
type Span = std::ops::Range<Duration>;

/// Drops the future `steps` steps after the start of `span` and looks for what is left. `false`
/// once the future was over, or the span past, before that.
fn drop_after(steps: usize, trouble: Trouble, body: Body, span: &Span) -> bool {
    let world = world(5);
    let me = process(&world, TTL);
    let rival = process(&world, TTL);
    if let Trouble::Contended = trouble {
        let guard = acquire(&world, &rival);
        let later = world.clone();
        drop(world.spawn(rival.0, async move {
            later.sleep(ms(60)).await;
            drop(guard);
        }));
    }
    // Trouble that begins with the first step; before that the body goes its way.
    let task = match span.start.is_zero() {
        true => {
            begin(trouble, &world, me.0);
            body(&world, me.0, &me.1)
        }
        false => {
            let task = body(&world, me.0, &me.1);
            run(&world, span.start);
            begin(trouble, &world, me.0);
            task
        }
    };
    let mut went_on = true;
    for _ in 0..steps {
        went_on = !task.has_ended() && world.step(span.end).unwrap() != Step::Idle;
        if !went_on {
            break;
        }
    }
    world.note(|| format!("dropped after {steps} steps"));
    task.cancel();
    run(&world, ms(100));
    world.end_outside();
    world.heal();
    match trouble {
        Trouble::OneRefuses => world.server(0).restart_with_data(),
        Trouble::Slow => world.server(0).latency(ms(2), ms(2)),
        _ => {}
    }
    // Longer than a connection is waited for, shorter than the TTL.
    run(&world, ms(3_500));
    let when = format!("{trouble:?}, dropped after {steps} steps");
    assert_clean(&world, &when);

    let lock = rival.1.lock(JOB);
    let once = world.spawn(rival.0, async move { lock.try_acquire().await });
    let guard = world.run_until(&once, ms(1_000)).unwrap();
    assert!(guard.is_ok(), "{when}: {guard:?}\n{}", world.log());
    drop(guard);
    run(&world, ms(100));
    let before = served(&world);
    run(&world, TTL * 2);
    assert_eq!(served(&world), before, "{when}: something goes on");
    world.end();
    went_on
}

fn drop_at_every_step(body: Body, span: Span, least: usize) {
    for trouble in TROUBLES {
        if matches!(trouble, Trouble::Contended) && !span.start.is_zero() {
            // The contest is over by then.
            continue;
        }
        let mut steps = 0;
        while drop_after(steps, trouble, body, &span) {
            steps += 1;
        }
        assert!(steps > least, "{trouble:?}: only {steps} steps were tried");
    }
}

#[test]
fn an_acquisition_dropped_at_any_step_leaves_nothing() {
    drop_at_every_step(waiting, ms(0)..ms(300), 15);
}

#[test]
fn a_guard_dropped_at_any_step_leaves_nothing() {
    // An extension is sent after a third of the TTL: the steps around it. Those of the
    // acquisition before it are the same as in the other tests.
    drop_at_every_step(holding, ms(1_995)..ms(2_300), 10);
}

#[test]
fn a_release_dropped_at_any_step_happens_all_the_same() {
    drop_at_every_step(releasing, ms(0)..ms(300), 25);
}

#[test]
fn an_extension_dropped_at_any_step_leaves_nothing() {
    drop_at_every_step(extending, ms(0)..ms(300), 25);
}
