//! Maps under names that nobody outside can choose.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map by our own counters, or by owner tokens: the former are handed out in order, the latter
/// are random bytes of the operating system. Neither can be chosen to collide, so the hash only
/// needs to be fast. **Not for names of resources**, which callers choose.
pub(crate) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;

/// A set of the same kind.
pub(crate) type FastSet<K> = HashSet<K, BuildHasherDefault<Mixer>>;

/// Rotate, mix, multiply, one word at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mixer(u64);

/// An odd number near 2^64 divided by the golden ratio: neighbours end up far apart.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(SPREAD);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        // The table takes its place from the low bits, which the product mixes least.
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::{BuildHasher, Hash};

    /// The fullest of 1,024 places that 64 × 1,024 names are spread over: 64 each on average.
    fn fullest<T: Hash>(names: impl Iterator<Item = T>) -> usize {
        let hasher = BuildHasherDefault::<Mixer>::default();
        let mut places = vec![0; 1024];
        for name in names {
            let place = usize::try_from(hasher.hash_one(name) & 1023).unwrap();
            places[place] += 1;
        }
        places.into_iter().max().unwrap()
    }

    #[test]
    fn counters_spread_evenly() {
        assert!(fullest(0..65_536_u64) < 128);
        assert!(fullest((0..65_536_u64).map(|n| n * 1024)) < 128);
    }

    #[test]
    fn tokens_spread_evenly() {
        let token = |n: u64| {
            let mut bytes = [0; 20];
            getrandom::fill(&mut bytes).unwrap();
            bytes[..8].copy_from_slice(&n.to_le_bytes());
            crate::node::OwnerToken::new(bytes)
        };
        assert!(fullest((0..65_536).map(token)) < 128);
    }
}
