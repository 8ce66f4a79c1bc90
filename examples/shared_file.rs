//! Two writers of one file. One is stopped past its lease; its stale write is refused.
//!
//! ```text
//!   writer ada ──┐  write 33 …                         "stale: 34 was here"
//!                ├──► the keeper of the file ──► file
//!   writer bob ──┘  write 34 …    fence::Highest
//!
//! scripts/cluster up
//! QUORUMLOCK_NODES=$(scripts/cluster urls) cargo run --example shared_file
//! ```
//!
//! The file belongs to one process, its keeper, and writers send to it what to write and under
//! which token. Each is a process of its own, so that one can be stopped as it happens in life: by
//! SIGSTOP, between its last look at the lock and its write. No lock can help there; only the file
//! can. It exits with 0 only if the file holds what it should.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::time::Duration;

use quorumlock::fence::{Highest, Stale};
use quorumlock::{Client, Config, FencingToken};

type Failure = Box<dyn Error>;

/// How long a writer that stands still keeps the other one out.
const TTL: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let outcome = match (arguments.next().as_deref(), arguments.next()) {
        (Some("writer"), Some(name)) => write_twice(&name),
        _ => tell(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\nNot as it should be: {failure}");
            ExitCode::FAILURE
        }
    }
}

// --- a writer ---------------------------------------------------------------------------------

/// Holds the lock, and writes a line whenever it is told to go on.
#[tokio::main]
async fn write_twice(name: &str) -> Result<(), Failure> {
    // The nodes are in QUORUMLOCK_NODES. The guard extends itself, as long as it can.
    let config = Config::from_env()?.ttl(TTL).max_ttl(TTL);
    let client = Client::with_config(config)?;
    let guard = client.lock("shared-file").acquire().await?;
    let token = guard.fencing_token();
    let mut orders = io::stdin().lock().lines();
    for line in 1..=2 {
        if !guard.is_held() {
            break;
        }
        // The lock was held a moment ago. Whatever comes between that look and the write ...
        println!("ready {}", u64::from(token));
        // (... here it waits for its order, and here it is stopped ...)
        if orders.next().transpose()?.is_none() {
            break;
        }
        // ... the write itself goes out under the token, and not under the look.
        println!("write {} {name}, line {line}", u64::from(token));
        let answer = orders.next().transpose()?.unwrap_or_default();
        eprintln!("  {name} hears: {answer}");
    }
    println!("over {}", if guard.is_held() { "held" } else { "lost" });
    guard.release().await?;
    Ok(client.close().await?)
}

// --- the keeper of the file -------------------------------------------------------------------

/// The file, and the highest token that wrote to it.
///
/// The token is kept in memory, and so as long as this process keeps the file open. A file that
/// outlives its keeper would keep it in its first line.
struct Keeper {
    path: PathBuf,
    file: File,
    highest: Highest,
}

impl Keeper {
    fn new() -> io::Result<Keeper> {
        let name = format!("quorumlock-shared-file-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(&path)?;
        let highest = Highest::new();
        Ok(Keeper {
            path,
            file,
            highest,
        })
    }

    /// Appends a line, unless a higher token has written before.
    fn write(&mut self, token: FencingToken, line: &str) -> io::Result<Result<(), Stale>> {
        let mut file = &self.file;
        match self.highest.write(token, || writeln!(file, "{line}")) {
            Ok(written) => written.map(Ok),
            Err(stale) => Ok(Err(stale)),
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

// --- the story --------------------------------------------------------------------------------

fn tell() -> Result<(), Failure> {
    let mut keeper = Keeper::new()?;
    println!("Ada takes the lock and writes a line.");
    let mut ada = Writer::start("ada")?;
    let old = ada.ready()?;
    ada.order("go")?;
    if let Err(stale) = ada.serve(&mut keeper)? {
        return Err(format!("ada's first line was refused: {stale}").into());
    }

    println!("She looks at the lock, which is hers, and is stopped before she writes.");
    ada.ready()?;
    ada.signal("STOP")?;
    ada.order("go")?;

    println!("Her lease runs out, and Bob has the lock.");
    let mut bob = Writer::start("bob")?;
    let new = bob.ready()?;
    bob.order("go")?;
    if let Err(stale) = bob.serve(&mut keeper)? {
        return Err(format!("bob was refused: {stale}").into());
    }

    println!("Ada goes on, knows nothing, and writes.");
    ada.signal("CONT")?;
    let Err(stale) = ada.serve(&mut keeper)? else {
        return Err("the stale line was accepted".into());
    };
    let held = ada.over()?;

    bob.ready()?;
    bob.order("go")?;
    if let Err(stale) = bob.serve(&mut keeper)? {
        return Err(format!("bob's second line was refused: {stale}").into());
    }
    bob.over()?;

    println!("\nThe file:");
    let text = std::fs::read_to_string(Path::new(&keeper.path))?;
    text.lines().for_each(|line| println!("  {line}"));
    let expected = "ada, line 1\nbob, line 1\nbob, line 2\n";
    if text != expected || new <= old || stale.offered != old || stale.highest != new {
        return Err(format!("tokens {old} and {new}, refused: {stale}").into());
    }
    if held {
        return Err("ada's guard still says that she holds the lock".into());
    }
    println!("Ada's second line is not in it, and her guard has told her that the lock is lost.");
    Ok(())
}

/// A writer's process, and the pipes to it. Ended with this value.
struct Writer {
    name: &'static str,
    child: Child,
    orders: ChildStdin,
    says: io::Lines<BufReader<ChildStdout>>,
}

impl Writer {
    fn start(name: &'static str) -> Result<Writer, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["writer", name]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (orders, says) = (child.stdin.take(), child.stdout.take());
        Ok(Writer {
            name,
            child,
            orders: orders.ok_or("no pipe to a writer")?,
            says: BufReader::new(says.ok_or("no pipe from a writer")?).lines(),
        })
    }

    /// Waits until it has the lock and is about to write.
    fn ready(&mut self) -> Result<FencingToken, Failure> {
        let token = self.hear("ready")?;
        Ok(FencingToken::from_u64(token.parse()?))
    }

    fn order(&mut self, what: &str) -> io::Result<()> {
        writeln!(self.orders, "{what}")
    }

    /// Waits for its write, does it, and answers.
    fn serve(&mut self, keeper: &mut Keeper) -> Result<Result<(), Stale>, Failure> {
        let order = self.hear("write")?;
        let (token, line) = order.split_once(' ').ok_or("a write without a line")?;
        let verdict = keeper.write(FencingToken::from_u64(token.parse()?), line)?;
        match verdict {
            Ok(()) => self.order("written")?,
            Err(stale) => self.order(&stale.to_string())?,
        }
        Ok(verdict)
    }

    /// Waits until it has done its work; says whether it holds the lock to the end.
    fn over(&mut self) -> Result<bool, Failure> {
        Ok(self.hear("over")? == "held")
    }

    fn hear(&mut self, what: &str) -> Result<String, Failure> {
        let line = self.says.next().transpose()?.unwrap_or_default();
        match line.split_once(' ') {
            Some((word, rest)) if word == what => Ok(rest.to_owned()),
            _ => Err(format!("{} says {line:?} and not {what:?}", self.name).into()),
        }
    }

    /// A stopped process sees nothing that comes after, not even what waits in its pipe.
    fn signal(&self, signal: &str) -> Result<(), Failure> {
        let kill = format!("kill -{signal} {}", self.child.id());
        match Command::new("sh").args(["-c", &kill]).status()?.success() {
            true => Ok(()),
            false => Err(format!("no SIG{signal} to {}", self.name).into()),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
