//! What a worker tells the story: one line of text for each event.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

/// An event in a worker's life, and when it happened.
#[derive(Clone, Debug)]
pub struct News {
    /// By the machine's clock, which all processes of the story share; since 1970.
    pub at: Duration,
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// It has the lock, for so long unless it is extended, and begins the job.
    Won(Duration),
    /// It has written a page, and has the lock for so long yet.
    Page(Duration),
    /// The job is done; the lock is released next.
    Done,
    /// It was told of its loss so long before its lease could be anybody else's.
    Lost { spare: Duration, why: String },
    /// It was told of its loss only when the lease could be somebody else's.
    LostLate { by: Duration },
    /// It asked for the lock, and heard after this time that no quorum answers.
    Unavailable { after: Duration, why: String },
    /// Its process has ended, or talks nonsense.
    Gone(String),
}

impl News {
    pub fn now(what: What) -> Self {
        News { at: clock(), what }
    }
}

/// The machine's clock.
pub fn clock() -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.unwrap_or_default()
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, time, text) = match &self.what {
            What::Won(left) => ("won", *left, ""),
            What::Page(left) => ("page", *left, ""),
            What::Done => ("done", Duration::ZERO, ""),
            What::Lost { spare, why } => ("lost", *spare, why.as_str()),
            What::LostLate { by } => ("late", *by, ""),
            What::Unavailable { after, why } => ("unavailable", *after, why.as_str()),
            What::Gone(why) => ("gone", Duration::ZERO, why.as_str()),
        };
        write!(
            f,
            "{} {word} {} {text}",
            self.at.as_micros(),
            time.as_micros()
        )
    }
}

impl FromStr for News {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let nonsense = || format!("it said {line:?}");
        let micros = |text: &str| {
            text.parse()
                .map(Duration::from_micros)
                .map_err(|_| nonsense())
        };
        let mut parts = line.splitn(4, ' ');
        let mut part = || parts.next().ok_or_else(nonsense);
        let (at, word, time, text) = (micros(part()?)?, part()?, micros(part()?)?, part()?);
        let why = text.to_owned();
        let what = match word {
            "won" => What::Won(time),
            "page" => What::Page(time),
            "done" => What::Done,
            "lost" => What::Lost { spare: time, why },
            "late" => What::LostLate { by: time },
            "unavailable" => What::Unavailable { after: time, why },
            "gone" => What::Gone(why),
            _ => return Err(nonsense()),
        };
        Ok(News { at, what })
    }
}
