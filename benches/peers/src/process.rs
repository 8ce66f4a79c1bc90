//! A worker: a child process that is told what to do in lines of JSON, and answers in such lines.
//!
//! ```text
//! → {"op":"connect","urls":[…],"warm_ms":200,"tasks":1,"key":"…"}
//!                                   ← {"ready":"rslock 0.10.0"}
//! → {"op":"run","key":"…","tasks":8,"ms":2000,"at":…,"shared":true,"section_us":1000}
//!                                   ← {"holds":[[task,asked,got,done],…],"failed":0}
//! → {"op":"run",…,"shared":false}   ← {"p50":…,"p99":…,"pairs":…,"failed":0,"wall_us":…}
//! ```
//!
//! Times are microseconds of CLOCK_MONOTONIC, which all processes of the machine share. `got` and
//! `done` are 0 for a task that still waited at the end. A worker ends when its input does.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Stdio},
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::contenders::Contender;

/// What a worker is told to do.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Job {
    /// Of the one key, or what the keys begin with.
    pub key: String,
    pub tasks: usize,
    pub ms: u64,
    /// When to begin.
    pub at: u64,
    /// One key for all tasks, or a fresh one each time.
    pub shared: bool,
    /// How long a task keeps the one key.
    pub section_us: u64,
}

/// What a worker is asked.
#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Order {
    Connect {
        urls: Vec<String>,
        /// What is done before the start is told of: pairs on fresh keys.
        warm_ms: u64,
        tasks: usize,
        key: String,
    },
    Run(Job),
}

/// Task, and when it asked, got the lock and let go of it.
pub type Hold = (u64, u64, u64, u64);

/// What a worker answers.
#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Answer {
    Ready {
        ready: String,
    },
    Holds {
        holds: Vec<Hold>,
        failed: u64,
    },
    Pairs {
        p50: f64,
        p99: f64,
        pairs: u64,
        failed: u64,
        wall_us: f64,
    },
    Error {
        error: String,
    },
}

/// Microseconds of the clock that all workers read.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u64::try_from(time.tv_nsec).unwrap_or_default();
    seconds * 1_000_000 + nanos / 1_000
}

/// A worker that runs; it is killed when this value is dropped.
pub struct Worker {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    /// The last line of its complaints that speaks of an error.
    complaint: Arc<Mutex<Option<String>>>,
}

impl Worker {
    /// Starts one; it has not connected yet.
    pub fn start(contender: &Contender) -> Result<Self, String> {
        let mut child = contender
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot be started: {error}"))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err("has no pipes".to_owned());
        };
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let complaint = Arc::new(Mutex::new(None));
        let last = Arc::clone(&complaint);
        thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                if line.contains("Error")
                    && let Ok(mut last) = last.lock()
                {
                    *last = Some(line.trim().to_owned());
                }
            }
        });
        Ok(Self {
            child,
            input,
            lines,
            complaint,
        })
    }

    pub fn tell(&mut self, order: &Order) -> Result<(), String> {
        let mut line = serde_json::to_string(order).map_err(|error| error.to_string())?;
        line.push('\n');
        self.input
            .write_all(line.as_bytes())
            .map_err(|_| self.end())
    }

    pub fn answer(&mut self, limit: Duration) -> Result<Answer, String> {
        let line = self
            .lines
            .recv_timeout(limit)
            .map_err(|error| match error {
                RecvTimeoutError::Timeout => format!("no answer within {limit:?}"),
                RecvTimeoutError::Disconnected => self.end(),
            })?;
        match serde_json::from_str(&line).map_err(|error| format!("answered {error}"))? {
            Answer::Error { error } => Err(error),
            answer => Ok(answer),
        }
    }

    /// What is to be said of a worker that has ended.
    fn end(&self) -> String {
        // Its last words come over another pipe.
        thread::sleep(Duration::from_millis(100));
        let complaint = self.complaint.lock().ok().and_then(|last| last.clone());
        complaint.unwrap_or_else(|| "its worker has ended".to_owned())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Both fail only where the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
