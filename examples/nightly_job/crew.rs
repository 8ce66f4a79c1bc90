//! Three workers, each a process of its own: this very program, told to be a worker.

use std::env;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use crate::news::{News, What};

/// How many workers there are.
pub const WORKERS: usize = 3;

/// The workers of the story. They end when this is dropped.
pub struct Crew {
    workers: Vec<Worker>,
    sender: UnboundedSender<(usize, News)>,
    news: UnboundedReceiver<(usize, News)>,
}

struct Worker {
    process: Child,
    stdin: ChildStdin,
}

impl Crew {
    /// Starts them all.
    pub fn start() -> Result<Self, String> {
        let (sender, news) = unbounded_channel();
        let workers = (0..WORKERS).map(|index| Worker::start(index, &sender));
        Ok(Crew {
            workers: workers.collect::<Result<_, _>>()?,
            sender,
            news,
        })
    }

    /// The next thing that a worker has to tell.
    pub async fn news(&mut self) -> Option<(usize, News)> {
        self.news.recv().await
    }

    /// Ends a worker by SIGKILL, which it does not see coming.
    pub async fn kill(&mut self, index: usize) -> Result<(), String> {
        let process = &mut self.workers[index].process;
        let killed = process.kill().await;
        killed.map_err(|error| format!("worker {} cannot be killed: {error}", index + 1))
    }

    /// Starts a worker again, as whatever supervises a service would.
    pub fn restart(&mut self, index: usize) -> Result<(), String> {
        self.workers[index] = Worker::start(index, &self.sender)?;
        Ok(())
    }

    /// Tells a worker that the job needs no more pages.
    pub async fn complete(&mut self, index: usize) -> Result<(), String> {
        let told = self.workers[index].stdin.write_all(b"complete\n").await;
        told.map_err(|error| format!("worker {} does not listen: {error}", index + 1))
    }

    /// Lets the workers go home: they end when their stdin closes.
    pub async fn go_home(self) -> Result<(), String> {
        for (index, worker) in self.workers.into_iter().enumerate() {
            let Worker { mut process, stdin } = worker;
            drop(stdin);
            match timeout(Duration::from_secs(2), process.wait()).await {
                Ok(Ok(status)) if status.success() => {}
                other => return Err(format!("worker {} did not end well: {other:?}", index + 1)),
            }
        }
        Ok(())
    }
}

impl Worker {
    fn start(index: usize, sender: &UnboundedSender<(usize, News)>) -> Result<Self, String> {
        let failed = |error| format!("worker {} cannot be started: {error}", index + 1);
        let mut process = Command::new(env::current_exe().map_err(failed)?)
            .arg("worker")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let (stdin, stdout) = (process.stdin.take(), process.stdout.take());
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            return Err(format!("worker {} has no pipes", index + 1));
        };
        let sender = sender.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(stdout).lines();
            let mut last = None;
            while let Ok(Some(line)) = lines.next_line().await {
                match line.parse() {
                    // The story may be over.
                    Ok(news) => drop(sender.send((index, news))),
                    Err(nonsense) => last = Some(nonsense),
                }
            }
            let why = last.unwrap_or_else(|| "its process has ended".into());
            drop(sender.send((index, News::now(What::Gone(why)))));
        });
        Ok(Worker { process, stdin })
    }
}
