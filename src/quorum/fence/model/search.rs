//! Breadth first over all worlds, so that the first fault found is a shortest one.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

use super::{Scenario, Step, World};

/// What a search has come to.
pub(super) struct Found {
    pub(super) states: usize,
    /// Whether every world was looked at.
    pub(super) complete: bool,
    /// What went wrong, and the way there.
    pub(super) fault: Option<(String, Vec<Step>)>,
}

/// Of a world only its hash is kept: 64 bits, which two of a million worlds share with a chance
/// of one in thirty million.
pub(super) fn search(scenario: &Scenario) -> Found {
    let hash = BuildHasherDefault::<Mix>::default();
    let first = World::new(scenario);
    let mut seen: HashSet<u64, BuildHasherDefault<Ready>> = HashSet::default();
    seen.insert(hash.hash_one(&first));
    let mut open = VecDeque::from([(first, 0_u32)]);
    let mut trail: Vec<(u32, Step)> = vec![(0, Step::Tick { losing: 0 })];
    while let Some((world, at)) = open.pop_front() {
        for step in world.steps(scenario) {
            match world.after(step, scenario) {
                Ok(next) => {
                    if seen.insert(hash.hash_one(&next)) {
                        open.push_back((next, trail.len() as u32));
                        trail.push((at, step));
                    }
                }
                Err(what) => {
                    let fault = Some((what, way(&trail, at, step)));
                    return Found {
                        states: seen.len(),
                        complete: false,
                        fault,
                    };
                }
            }
        }
        if seen.len() >= scenario.cap {
            return Found {
                states: seen.len(),
                complete: false,
                fault: None,
            };
        }
    }
    Found {
        states: seen.len(),
        complete: true,
        fault: None,
    }
}

fn way(trail: &[(u32, Step)], mut at: u32, last: Step) -> Vec<Step> {
    let mut steps = vec![last];
    while at > 0 {
        let (before, step) = trail[at as usize];
        steps.push(step);
        at = before;
    }
    steps.reverse();
    steps
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = if self.complete { "all" } else { "first" };
        write!(f, "{whole} {} states", self.states)?;
        if let Some((what, steps)) = &self.fault {
            write!(f, ": {what}, after {} steps: {steps:?}", steps.len())?;
        }
        Ok(())
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
        bytes.iter().for_each(|&byte| self.fold(byte.into()));
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
