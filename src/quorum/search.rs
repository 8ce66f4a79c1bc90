//! Breadth first over all worlds of a model, so that the first fault found is a shortest one.
//!
//! Our own, and not a model checker of the shelf: a world is kept as a hash of eight bytes and
//! lives only while its successors wait, so that tens of millions fit into memory; and it brings
//! no tree of dependencies into everybody's tests.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::ops::Deref;
use std::rc::Rc;

/// What can be searched.
pub(super) trait World: Clone + Hash {
    /// What is searched, and where it ends.
    type Scenario;
    /// One thing that happens.
    type Step: Copy + fmt::Debug;

    /// How it begins.
    fn first(scenario: &Self::Scenario) -> Self;

    /// Everything that can happen next.
    fn steps(&self, scenario: &Self::Scenario) -> Vec<Self::Step>;

    /// The world after `step`.
    ///
    /// # Errors
    /// The invariant that it breaks.
    fn after(&self, step: Self::Step, scenario: &Self::Scenario) -> Result<Self, String>;
}

/// Whether the long searches are asked for.
pub(super) fn full() -> bool {
    std::env::var("QUORUMLOCK_FULL").is_ok_and(|value| value == "1")
}

/// What a search has come to.
pub(super) struct Found<S> {
    pub(super) states: usize,
    /// Whether every world was looked at.
    pub(super) complete: bool,
    /// What went wrong, and the way there.
    pub(super) fault: Option<(String, Vec<S>)>,
}

/// Of a world only its hash is kept: 64 bits, which two of a million worlds share with a chance
/// of one in thirty million.
///
/// Stops after `cap` worlds; what it has not found by then it says nothing about.
pub(super) fn search<W: World>(scenario: &W::Scenario, cap: usize) -> Found<W::Step> {
    let hash = BuildHasherDefault::<Mix>::default();
    let first = W::first(scenario);
    let mut seen: HashSet<u64, BuildHasherDefault<Ready>> = HashSet::default();
    seen.insert(hash.hash_one(&first));
    let mut open = VecDeque::from([(first, 0_u32)]);
    // How each world was come to: from which one, by what. The first came from nowhere.
    let mut trail: Vec<(u32, Option<W::Step>)> = vec![(0, None)];
    let mut complete = true;
    while let Some((world, at)) = open.pop_front() {
        for step in world.steps(scenario) {
            match world.after(step, scenario) {
                Ok(next) => {
                    if seen.insert(hash.hash_one(&next)) {
                        open.push_back((next, trail.len() as u32));
                        trail.push((at, Some(step)));
                    }
                }
                Err(what) => {
                    return Found {
                        states: seen.len(),
                        complete: false,
                        fault: Some((what, way(&trail, at, step))),
                    };
                }
            }
        }
        if seen.len() >= cap {
            complete = false;
            break;
        }
    }
    Found {
        states: seen.len(),
        complete,
        fault: None,
    }
}

fn way<S: Copy>(trail: &[(u32, Option<S>)], mut at: u32, last: S) -> Vec<S> {
    let mut steps = vec![last];
    while let (before, Some(step)) = trail[at as usize] {
        steps.push(step);
        at = before;
    }
    steps.reverse();
    steps
}

impl<S: fmt::Debug> fmt::Display for Found<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = if self.complete { "all" } else { "first" };
        write!(f, "{whole} {} states", self.states)?;
        if let Some((what, steps)) = &self.fault {
            write!(f, ": {what}, after {} steps: {steps:?}", steps.len())?;
        }
        Ok(())
    }
}

/// A part of a world that most steps leave alone: shared, with its hash worked out once.
#[derive(Clone)]
pub(super) struct Part<T> {
    whole: Rc<T>,
    hash: u64,
}

impl<T: Clone + Hash> Part<T> {
    pub(super) fn new(whole: T) -> Self {
        let hash = BuildHasherDefault::<Mix>::default().hash_one(&whole);
        let whole = Rc::new(whole);
        Part { whole, hash }
    }

    pub(super) fn change<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        let outcome = change(Rc::make_mut(&mut self.whole));
        self.hash = BuildHasherDefault::<Mix>::default().hash_one(&*self.whole);
        outcome
    }
}

impl<T> Deref for Part<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.whole
    }
}

impl<T> Hash for Part<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// A hash by folded multiplication: the standard one takes most of the time in a debug build.
#[derive(Default)]
struct Mix(u64);

impl Mix {
    fn fold(&mut self, value: u64) {
        let wide = u128::from(self.0 ^ value ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93_u128;
        self.0 = (wide as u64) ^ ((wide >> 64) as u64).rotate_left(17);
    }
}

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        let mut last = Mix(self.0);
        last.fold(0x5851_f42d_4c95_7f2d);
        last.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.fold(u64::from_le_bytes(word) ^ (chunk.len() as u64) << 56);
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.fold(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.fold(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.fold(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.fold(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.fold(value as u64);
    }
}

/// The keys of the set are hashes already.
#[derive(Default)]
struct Ready(u64);

impl Hasher for Ready {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
