//! Who else wants the lock: what a round's refusals say of its rivals (P12).
//!
//! ```text
//!   refused(node, rival, left)* ─► standing(granted) ─► Held   somebody has a quorum: wait
//!                                                    └► Split  nobody has: the plurality keeps its
//!                                                              grants and asks again, the rest yield
//! ```

use std::time::Duration;

use smallvec::SmallVec;

use super::nodes::{NodeSet, Quorum};

/// Tells one contender from another: the head of its owner token.
pub(crate) type Rival = u32;

/// How the votes of a contended round are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// A rival has a quorum. Unless it extends its lease, a quorum of keys is free after `free`.
    Held { free: Option<Duration> },
    /// Nobody has. `rivals` were seen; `first` says that nobody has more nodes than we, and that
    /// the tie, if there is one, falls to us.
    Split { rivals: u32, first: bool },
}

/// The refusals of one round.
#[derive(Clone, Debug)]
pub(crate) struct Contest {
    quorum: Quorum,
    me: Rival,
    refusals: SmallVec<[Option<Refusal>; 5]>,
}

#[derive(Clone, Copy, Debug)]
struct Refusal {
    rival: Rival,
    left: Option<Duration>,
}

impl Contest {
    /// Nothing is known yet.
    pub(crate) fn new(quorum: Quorum, me: Rival) -> Self {
        Contest {
            quorum,
            me,
            refusals: SmallVec::from_elem(None, quorum.nodes()),
        }
    }

    /// `node` has the key of `rival`, for so long yet.
    pub(crate) fn refused(&mut self, node: usize, rival: Rival, left: Option<Duration>) {
        if let Some(refusal) = self.refusals.get_mut(node) {
            *refusal = Some(Refusal { rival, left });
        }
    }

    /// What the refusals amount to, when the nodes in `granted` are ours.
    pub(crate) fn standing(&self, granted: NodeSet) -> Standing {
        let seen = || self.refusals.iter().enumerate();
        let refusals = seen().filter_map(|(node, refusal)| Some((node, (*refusal)?)));
        let refusals: SmallVec<[(usize, Refusal); 5]> = refusals
            .filter(|(node, _)| !granted.contains(*node))
            .collect();
        let mut rivals: SmallVec<[(usize, Rival); 5]> = SmallVec::new();
        for (_, refusal) in &refusals {
            match rivals.iter_mut().find(|(_, rival)| *rival == refusal.rival) {
                Some((count, _)) => *count += 1,
                None => rivals.push((1, refusal.rival)),
            }
        }
        let best = rivals.iter().copied().max().unwrap_or((0, 0));
        if best.0 >= self.quorum.needed() {
            return Standing::Held {
                free: self.free(
                    granted.len(),
                    refusals.iter().map(|(_, refusal)| refusal.left),
                ),
            };
        }
        Standing::Split {
            rivals: u32::try_from(rivals.len()).unwrap_or(u32::MAX),
            first: !granted.is_empty() && (granted.len(), self.me) > best,
        }
    }

    /// When a quorum is free, of which `ours` are already: the quorum-th smallest time.
    fn free(&self, ours: usize, left: impl Iterator<Item = Option<Duration>>) -> Option<Duration> {
        let mut left: SmallVec<[Duration; 5]> = left.flatten().collect();
        left.sort_unstable();
        let missing = self.quorum.needed().saturating_sub(ours);
        left.get(missing.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: Rival = 50;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn set(nodes: &[usize]) -> NodeSet {
        let mut set = NodeSet::EMPTY;
        nodes.iter().for_each(|&node| set.insert(node));
        set
    }

    /// What ME sees whose keys are on `ours`, of five; the others are of these rivals.
    fn standing(ours: &[usize], others: &[(usize, Rival)]) -> Standing {
        let mut contest = Contest::new(Quorum::of(5), ME);
        for &(node, rival) in others {
            contest.refused(node, rival, Some(ms(100 * node as u64)));
        }
        contest.standing(set(ours))
    }

    #[test]
    fn a_rival_with_a_quorum_holds_it_until_a_quorum_of_keys_has_run_out() {
        let all = [(0, 7), (1, 7), (2, 7), (3, 7), (4, 7)];
        assert_eq!(
            standing(&[], &all),
            Standing::Held {
                free: Some(ms(200))
            }
        );
        // Two are ours already: with the first of its keys there are three.
        let free = Some(ms(200));
        assert_eq!(standing(&[0, 1], &all[2..]), Standing::Held { free });
        // Two are silent, and may hold anything.
        let free = Some(ms(300));
        assert_eq!(standing(&[], &all[1..4]), Standing::Held { free });
    }

    #[test]
    fn without_a_known_end_there_is_no_time_to_wait_for() {
        let mut contest = Contest::new(Quorum::of(3), ME);
        contest.refused(0, 7, None);
        contest.refused(1, 7, Some(ms(5)));
        assert_eq!(
            contest.standing(NodeSet::EMPTY),
            Standing::Held { free: None }
        );
    }

    #[test]
    fn the_plurality_is_first_and_a_tie_falls_to_the_larger_token() {
        let split = |rivals, first| Standing::Split { rivals, first };
        assert_eq!(standing(&[0, 1], &[(2, 7), (3, 8), (4, 9)]), split(3, true));
        assert_eq!(standing(&[0, 1], &[(2, 7), (3, 7), (4, 9)]), split(2, true));
        assert_eq!(
            standing(&[0, 1], &[(2, 70), (3, 70), (4, 9)]),
            split(2, false)
        );
        assert_eq!(standing(&[0], &[(2, 7), (3, 7), (4, 9)]), split(2, false));
        assert_eq!(standing(&[], &[(2, 7), (3, 8)]), split(2, false));
        // Of two whose names are alike neither is: both would keep what they have.
        assert_eq!(standing(&[0, 1], &[(2, ME), (3, ME)]), split(1, false));
    }

    #[test]
    fn of_all_contenders_exactly_one_is_first() {
        // Every way to give five nodes to three contenders none of whom has a quorum.
        for code in 0..3u32.pow(5) {
            let owner = |node: u32| code / 3u32.pow(node) % 3;
            let nodes = |of: u32| (0..5).filter(|&node| owner(node) == of).count();
            if (0..3).any(|of| nodes(of) >= 3) {
                continue;
            }
            let first = (0..3).filter(|&me| {
                let mut contest = Contest::new(Quorum::of(5), me);
                let mut ours = NodeSet::EMPTY;
                for node in 0..5 {
                    match owner(node) {
                        of if of == me => ours.insert(node as usize),
                        of => contest.refused(node as usize, of, None),
                    }
                }
                matches!(contest.standing(ours), Standing::Split { first: true, .. })
            });
            assert_eq!(first.count(), 1, "{code}");
        }
    }

    #[test]
    fn what_was_refused_once_and_is_ours_now_does_not_count_against_us() {
        let split = Standing::Split {
            rivals: 1,
            first: true,
        };
        assert_eq!(standing(&[0, 1], &[(0, 7), (1, 7), (2, 7)]), split);
    }
}
