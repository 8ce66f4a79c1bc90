//! The bad day: what breaks when, and how it should be then.

use std::time::{Duration, Instant};

use tokio::time::timeout;

use crate::crew::{Crew, WORKERS};
use crate::news::{News, What, clock};
use crate::nodes::Nodes;
use crate::witness::Witness;
use crate::worker::{MAX_TTL, TTL, WAIT};

/// One node's budget in one round, by default: a twentieth of the TTL.
const NODE_TIMEOUT: Duration = Duration::from_millis(100);

/// The longest pause between two tries of a worker that waits, by default.
const RETRY: Duration = Duration::from_millis(500);

/// What a busy machine may add to anything, before the story calls it wrong.
const SLACK: Duration = Duration::from_secs(2);

/// For how long a restarted node has no vote, by default: max_ttl and 1 % of it, rounded up to
/// whole seconds, and one more.
fn restart_delay() -> Duration {
    let millis = (MAX_TTL.as_millis() * 101).div_ceil(100);
    Duration::from_secs(u64::try_from(millis.div_ceil(1000)).unwrap_or(u64::MAX) + 1)
}

/// Tells the whole story.
///
/// # Errors
/// What was not as it should be, and at which step.
pub async fn tell() -> Result<(), String> {
    let nodes = Nodes::from_env()?;
    let mut story = Story {
        began: Instant::now(),
        crew: Crew::start()?,
        witness: Witness::default(),
        nodes,
    };
    story.say("three workers start; five nodes are up");
    let first = named("one worker wins", story.one_wins().await)?;
    let second = named("another takes over", story.another_takes_over(first).await)?;
    named("two nodes die", story.two_nodes_die(second).await)?;
    let third = named("a fresh acquire", story.fresh_acquire(second).await)?;
    named("a third node dies", story.third_node_dies(third).await)?;
    let last = named("all come back", story.all_come_back().await)?;
    named("the end", story.the_end(last).await)
}

/// Puts the step's name before what went wrong in it.
fn named<T>(step: &str, outcome: Result<T, String>) -> Result<T, String> {
    outcome.map_err(|failure| format!("{step}: {failure}"))
}

struct Story {
    began: Instant,
    crew: Crew,
    witness: Witness,
    nodes: Nodes,
}

impl Story {
    async fn one_wins(&mut self) -> Result<usize, String> {
        let (worker, _) = self.somebody_wins(SLACK).await?;
        self.say(&format!("worker {} has the job", worker + 1));
        self.stays_at_work(worker, Duration::from_millis(1500))
            .await?;
        Ok(worker)
    }

    async fn another_takes_over(&mut self, dead: usize) -> Result<usize, String> {
        self.crew.kill(dead).await?;
        let killed = clock();
        self.drain(dead).await?;
        self.witness.ends(dead, killed);
        let lease_ends = self.witness.valid_until(dead);
        let left = lease_ends.saturating_sub(killed).as_secs_f64();
        let dead_name = dead + 1;
        self.say(&format!(
            "worker {dead_name} is killed (SIGKILL), with {left:.1} s of its lease left"
        ));
        let (worker, won) = self.somebody_wins(TTL + RETRY + SLACK).await?;
        if worker == dead || won < lease_ends {
            return Err(format!(
                "worker {} took it before the lease ended",
                worker + 1
            ));
        }
        let after = (won - lease_ends).as_secs_f64();
        self.say(&format!(
            "worker {} takes over, {after:.1} s after the end of that lease",
            worker + 1
        ));
        self.crew.restart(dead)?;
        self.say(&format!(
            "worker {dead_name} is started again, and waits like the others"
        ));
        Ok(worker)
    }

    async fn two_nodes_die(&mut self, worker: usize) -> Result<(), String> {
        self.nodes.kill(&["1", "2"]).await?;
        self.say("nodes 1 and 2 are killed");
        self.stays_at_work(worker, TTL + TTL / 2).await?;
        let name = worker + 1;
        self.say(&format!(
            "worker {name} is still at work, more than a lease later"
        ));
        Ok(())
    }

    async fn fresh_acquire(&mut self, worker: usize) -> Result<usize, String> {
        self.crew.complete(worker).await?;
        // Two pipes: the next worker's news may be read before the last one's.
        let (began, mut done, mut next) = (self.began, false, None);
        let both = |who: usize, news: &News| {
            match news.what {
                What::Done if who == worker => {
                    say(began, &format!("worker {} is done, and lets go", who + 1));
                    done = true;
                }
                What::Won(_) => next = Some(who),
                _ => {}
            }
            next.filter(|_| done)
        };
        let within = RETRY + SLACK;
        let next = self.wait_for("the next winner", within, both).await?;
        self.say(&format!(
            "worker {} takes the next one, from three nodes",
            next + 1
        ));
        self.stays_at_work(next, Duration::from_millis(800)).await?;
        Ok(next)
    }

    async fn third_node_dies(&mut self, holder: usize) -> Result<(), String> {
        self.nodes.kill(&["3"]).await?;
        self.say("node 3 is killed: two of five are left, which is no quorum");
        let budget = WAIT + NODE_TIMEOUT;
        let mut lost = false;
        let mut told = [false; WORKERS];
        while !(lost && told.iter().all(|&told| told)) {
            let within = TTL + budget + SLACK;
            let wanted = |who, news: &News| match &news.what {
                What::Lost { .. } | What::Unavailable { .. } => Some((who, news.what.clone())),
                _ => None,
            };
            match self
                .wait_for("a word from each worker", within, wanted)
                .await?
            {
                (who, What::Lost { spare, why }) if who == holder => {
                    lost = true;
                    let spare = spare.as_millis();
                    self.say(&format!(
                        "worker {} stops, {spare} ms before its keys could run out: {why}",
                        who + 1
                    ));
                }
                (who, What::Unavailable { after, why }) => {
                    if after > budget + budget / 5 {
                        let who = who + 1;
                        return Err(format!("worker {who} heard of it only after {after:.2?}"));
                    }
                    if !std::mem::replace(&mut told[who], true) {
                        let (who, after) = (who + 1, after.as_secs_f64());
                        self.say(&format!(
                            "worker {who}: Unavailable after {after:.2} s, {why}"
                        ));
                    }
                }
                (who, what) => return Err(format!("worker {} said {what:?}", who + 1)),
            }
        }
        match self.witness.at_work() {
            None => Ok(()),
            Some(who) => Err(format!("worker {} is at work without a quorum", who + 1)),
        }
    }

    async fn all_come_back(&mut self) -> Result<usize, String> {
        let began = clock();
        self.nodes.restart(&["1", "2", "3"]).await?;
        let delay = restart_delay();
        self.say(&format!(
            "nodes 1, 2 and 3 are back; they may have forgotten leases, so they have no vote for {} s",
            delay.as_secs()
        ));
        let (worker, won) = self.somebody_wins(delay + RETRY + SLACK).await?;
        let waited = won.saturating_sub(began);
        if waited < delay {
            return Err(format!("a restarted node had a vote after {waited:.1?}"));
        }
        self.say(&format!("worker {} has the job", worker + 1));
        self.stays_at_work(worker, Duration::from_millis(500))
            .await?;
        Ok(worker)
    }

    async fn the_end(mut self, worker: usize) -> Result<(), String> {
        self.crew.complete(worker).await?;
        let done = |who, news: &News| (who == worker && news.what == What::Done).then_some(());
        self.wait_for("the end of the report", SLACK, done).await?;
        self.say(&format!("worker {} is done", worker + 1));
        let began = self.began;
        self.crew.go_home().await?;
        let shifts = self.witness.verdict()?;
        say(
            began,
            &format!("{shifts} times somebody was at work, and never two together"),
        );
        Ok(())
    }

    /// Waits until a worker begins the job; who, and when.
    async fn somebody_wins(&mut self, within: Duration) -> Result<(usize, Duration), String> {
        let won = |who, news: &News| matches!(news.what, What::Won(_)).then_some((who, news.at));
        self.wait_for("a winner", within, won).await
    }

    /// Watches for this long that `worker`, and nobody else, writes pages to the end.
    async fn stays_at_work(&mut self, worker: usize, time: Duration) -> Result<(), String> {
        let until = clock() + time;
        loop {
            let page = |who, news: &News| match &news.what {
                What::Page(_) | What::Won(_) | What::Done | What::Lost { .. } => {
                    Some((who, news.clone()))
                }
                _ => None,
            };
            match self.wait_for("a page", SLACK, page).await? {
                (
                    who,
                    News {
                        at,
                        what: What::Page(_),
                    },
                ) if who == worker => {
                    if at >= until {
                        return Ok(());
                    }
                }
                (who, news) => return Err(format!("worker {} said {:?}", who + 1, news.what)),
            }
        }
    }

    /// Takes in what a killed worker had still to tell, up to the end of its process.
    async fn drain(&mut self, dead: usize) -> Result<(), String> {
        while let Ok(Some((who, news))) = timeout(SLACK, self.crew.news()).await {
            if who == dead && matches!(news.what, What::Gone(_)) {
                return Ok(());
            }
            self.witness.note(who, &news)?;
        }
        Err(format!("worker {} has not ended", dead + 1))
    }

    /// Waits for what `wanted` picks out of the news. All that happens meanwhile is witnessed.
    async fn wait_for<T>(
        &mut self,
        what: &str,
        within: Duration,
        mut wanted: impl FnMut(usize, &News) -> Option<T>,
    ) -> Result<T, String> {
        let end = Instant::now() + within;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(Some((who, news))) = timeout(left, self.crew.news()).await else {
                return Err(format!("{what} did not come within {within:.1?}"));
            };
            self.witness.note(who, &news)?;
            if let Some(found) = wanted(who, &news) {
                return Ok(found);
            }
        }
    }

    fn say(&self, text: &str) {
        say(self.began, text);
    }
}

/// One line of the story.
fn say(began: Instant, text: &str) {
    println!("[{:4.1} s] {text}", began.elapsed().as_secs_f64());
}
