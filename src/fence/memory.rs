//! The highest token in this process's memory.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Stale;
use crate::quorum::FencingToken;

/// The highest token that one resource of this process has seen.
///
/// For what one process owns: a file, a device, a connection to something that knows no tokens.
/// It forgets with the process. Where the resource lives longer, keep the token beside it, and
/// begin with [`Highest::starting_at`].
///
/// ```
/// use quorumlock::{FencingToken, fence::Highest};
///
/// let (old, new) = (FencingToken::from_u64(33), FencingToken::from_u64(34));
/// let highest = Highest::new();
/// let mut file = Vec::new();
/// assert!(highest.write(old, || file.push("a")).is_ok());
/// assert!(highest.write(new, || file.push("b")).is_ok());
/// assert!(highest.write(old, || file.push("c")).is_err());
/// assert!(highest.write(new, || file.push("d")).is_ok());
/// assert_eq!(file, ["a", "b", "d"]);
/// ```
///
/// ```
/// use quorumlock::{FencingToken, fence::Highest};
///
/// // From what was written beside the file.
/// let highest = Highest::starting_at(FencingToken::from_u64(34));
/// assert!(highest.check(FencingToken::from_u64(33)).is_err());
/// assert!(highest.check(FencingToken::from_u64(35)).is_ok());
/// assert_eq!(highest.highest(), Some(FencingToken::from_u64(35)));
/// ```
#[derive(Default)]
pub struct Highest(Mutex<Option<FencingToken>>);

impl Highest {
    /// A resource that has seen no token: the first is accepted, whatever it is.
    #[must_use]
    pub const fn new() -> Self {
        Highest(Mutex::new(None))
    }

    /// A resource that has seen `token`, as somebody wrote down.
    #[must_use]
    pub const fn starting_at(token: FencingToken) -> Self {
        Highest(Mutex::new(Some(token)))
    }

    /// Accepts `token`, after which lower ones are refused, or refuses it.
    ///
    /// This shows a token before there is anything to write. A write after it may be overtaken:
    /// [`Highest::write`] is for that.
    ///
    /// # Errors
    /// [`Stale`] a higher token was here. Nothing has changed.
    pub fn check(&self, token: FencingToken) -> Result<(), Stale> {
        self.write(token, || ())
    }

    /// Checks `token`, and runs `write` before any other token is looked at.
    ///
    /// `write` keeps everybody else from this resource until it returns, so it should not wait
    /// for anything but the resource. The token counts as seen even if `write` fails or panics,
    /// since it may have written something by then. Do not call this value again from inside it:
    /// that never returns.
    ///
    /// # Errors
    /// [`Stale`] a higher token was here; `write` has not run.
    ///
    /// # Guarantee
    /// Among writes that go through this value, none runs after one with a higher token.
    pub fn write<T>(&self, token: FencingToken, write: impl FnOnce() -> T) -> Result<T, Stale> {
        if token.is_none() {
            return Err(Stale::NO_TOKEN);
        }
        let mut highest = self.lock();
        match *highest {
            Some(highest) if token < highest => {
                return Err(Stale {
                    offered: token,
                    highest,
                });
            }
            _ => *highest = Some(token),
        }
        Ok(write())
    }

    /// The highest token seen so far.
    #[must_use]
    pub fn highest(&self) -> Option<FencingToken> {
        *self.lock()
    }

    /// A panic inside a `write` leaves the token as it must be.
    fn lock(&self) -> MutexGuard<'_, Option<FencingToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Highest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Highest").field(&self.highest()).finish()
    }
}

/// The highest token of each of many resources of this process.
///
/// One [`Highest`] for each name: a slow write holds up its own resource only. It keeps some 100
/// bytes and the name for each resource until [`Memory::forget`].
///
/// ```
/// use quorumlock::{FencingToken, fence::Memory};
///
/// let token = FencingToken::from_u64;
/// let seen = Memory::new();
/// assert!(seen.check("seat/12a", token(34)).is_ok());
/// assert!(seen.check("seat/12b", token(7)).is_ok(), "tokens are compared per resource");
/// let stale = seen.check("seat/12a", token(33)).unwrap_err();
/// assert_eq!(stale.highest, token(34));
/// ```
///
/// ```
/// use quorumlock::{FencingToken, fence::Memory};
///
/// let (tokens, token) = (Memory::new(), FencingToken::from_u64);
/// assert!(tokens.check("a", token(34)).is_ok());
/// assert!(tokens.write("a", token(33), || ()).is_err());
/// assert_eq!(tokens.highest("a"), Some(token(34)));
/// assert_eq!(tokens.forget("a"), Some(token(34)));
/// assert_eq!(tokens.highest("a"), None);
/// ```
#[derive(Default)]
pub struct Memory(Mutex<HashMap<Box<[u8]>, Arc<Highest>>>);

impl Memory {
    /// Knows no resource yet.
    #[must_use]
    pub fn new() -> Self {
        Memory::default()
    }

    /// [`Highest::check`] for the named resource.
    ///
    /// # Errors
    /// [`Stale`] a higher token was here. Nothing has changed.
    pub fn check(&self, resource: impl AsRef<[u8]>, token: FencingToken) -> Result<(), Stale> {
        self.resource(resource.as_ref()).check(token)
    }

    /// [`Highest::write`] for the named resource.
    ///
    /// # Errors
    /// [`Stale`] a higher token was here; `write` has not run.
    pub fn write<T>(
        &self,
        resource: impl AsRef<[u8]>,
        token: FencingToken,
        write: impl FnOnce() -> T,
    ) -> Result<T, Stale> {
        self.resource(resource.as_ref()).write(token, write)
    }

    /// The highest token that the named resource has seen.
    #[must_use]
    pub fn highest(&self, resource: impl AsRef<[u8]>) -> Option<FencingToken> {
        let known = self.lock().get(resource.as_ref()).cloned();
        known.and_then(|known| known.highest())
    }

    /// Forgets the named resource, and says what its highest token was. After that any token is
    /// accepted again: only for a resource that is gone, and whose name does not come back.
    pub fn forget(&self, resource: impl AsRef<[u8]>) -> Option<FencingToken> {
        let known = self.lock().remove(resource.as_ref());
        known.and_then(|known| known.highest())
    }

    fn resource(&self, name: &[u8]) -> Arc<Highest> {
        let mut all = self.lock();
        if let Some(known) = all.get(name) {
            return Arc::clone(known);
        }
        Arc::clone(all.entry(name.into()).or_default())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<[u8]>, Arc<Highest>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resources = self.lock().len();
        f.debug_struct("Memory")
            .field("resources", &resources)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn token(number: u64) -> FencingToken {
        FencingToken::from_u64(number)
    }

    #[test]
    fn lower_is_refused_and_equal_or_higher_accepted() {
        let highest = Highest::new();
        assert_eq!(highest.highest(), None);
        assert_eq!(highest.check(token(1)), Ok(()));
        assert_eq!(highest.check(token(5)), Ok(()));
        assert_eq!(highest.check(token(5)), Ok(()));
        let stale = Stale {
            offered: token(4),
            highest: token(5),
        };
        assert_eq!(highest.check(token(4)), Err(stale));
        assert_eq!(highest.check(token(u64::MAX)), Ok(()));
        assert_eq!(highest.highest(), Some(token(u64::MAX)));
    }

    #[test]
    fn no_token_is_refused_even_by_a_resource_that_has_seen_none() {
        let highest = Highest::new();
        let refused = highest.check(FencingToken::NONE).unwrap_err();
        assert!(refused.to_string().contains("fencing off"));
        assert_eq!(highest.highest(), None);
    }

    #[test]
    fn a_highest_token_that_was_written_down_still_counts() {
        let highest = Highest::starting_at(token(9));
        assert!(highest.check(token(8)).is_err());
        assert!(highest.check(token(9)).is_ok());
    }

    #[test]
    fn a_token_counts_as_seen_when_its_write_panics() {
        let highest = Arc::new(Highest::new());
        let inside = Arc::clone(&highest);
        let died = std::thread::spawn(move || inside.write(token(2), || panic!("half written")));
        assert!(died.join().is_err());
        assert!(highest.check(token(1)).is_err());
        assert!(highest.check(token(2)).is_ok());
    }

    #[test]
    fn a_resource_that_was_forgotten_takes_any_token() {
        let memory = Memory::new();
        assert!(memory.check("a", token(2)).is_ok());
        assert_eq!(memory.forget("a"), Some(token(2)));
        assert_eq!(memory.highest("a"), None);
        assert!(memory.check("a", token(1)).is_ok());
    }

    #[test]
    fn threads_with_interleaved_tokens_never_write_backwards() {
        const THREADS: u64 = 20;
        let memory = Memory::new();
        let written: [Mutex<Vec<u64>>; 2] = Default::default();
        std::thread::scope(|scope| {
            for first in 0..THREADS {
                let (memory, written) = (&memory, &written);
                scope.spawn(move || {
                    for number in (first + 1..2_000).step_by(THREADS as usize) {
                        let at = usize::from(number % 3 == 0);
                        let push = || written[at].lock().unwrap().push(number);
                        let _ = memory.write([at as u8], token(number), push);
                    }
                });
            }
        });
        for (at, written) in written.iter().enumerate() {
            let written = written.lock().unwrap();
            assert!(written.is_sorted(), "{written:?}");
            let last = written.last().copied().map(token);
            assert_eq!(memory.highest([at as u8]), last);
        }
    }

    proptest! {
        #[test]
        fn memory_keeps_the_maximum_of_what_it_accepted(
            offers in prop::collection::vec((0_u8..3, 1..=u64::MAX), 0..60)
        ) {
            let memory = Memory::new();
            let mut model: HashMap<u8, u64> = HashMap::new();
            for (resource, offered) in offers {
                let highest = model.get(&resource).copied();
                let verdict = memory.check([resource], token(offered));
                match highest.filter(|highest| offered < *highest) {
                    Some(highest) => prop_assert_eq!(verdict, Err(Stale {
                        offered: token(offered),
                        highest: token(highest),
                    })),
                    None => {
                        prop_assert_eq!(verdict, Ok(()));
                        model.insert(resource, offered);
                    }
                }
                let highest = model.get(&resource).copied().map(token);
                prop_assert_eq!(memory.highest([resource]), highest);
            }
        }
    }
}
