//! Contenders that are processes of their own: this very program, started again.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::CRITICAL_SECTION;
use crate::holds::{Hold, sum};
use crate::support::{client, quantile};

/// The variables of a contender: the servers, the key, and for how long, in milliseconds.
const URLS: &str = "QUORUMLOCK_BENCH_CHILD_URLS";
const KEY: &str = "QUORUMLOCK_BENCH_CHILD_KEY";
const TIME: &str = "QUORUMLOCK_BENCH_CHILD_TIME";

pub fn is_child() -> bool {
    env::var_os(URLS).is_some()
}

pub fn table(urls: &[String], time: Duration) {
    println!(
        "| processes, 1 ms | hand-overs/s to another | gap p50 µs | p99 µs | p50 in round trips | per process min..max | \
         commands each and node |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for processes in [2, 8, 16] {
        run(urls, processes, time);
    }
}

fn run(urls: &[String], processes: usize, time: Duration) {
    let key = format!("contended:processes:{processes}");
    let mut children: Vec<Child> = (0..processes).map(|_| start(urls, &key, time)).collect();
    let mut outputs: Vec<_> = children
        .iter_mut()
        .map(|child| BufReader::new(child.stdout.take().expect("a pipe")).lines())
        .collect();
    for output in &mut outputs {
        let said = output.next().expect("a word").expect("a line");
        assert_eq!(said, "ready");
    }
    let before = commands(urls);
    for child in &mut children {
        writeln!(child.stdin.take().expect("a pipe"), "go").expect("a contender");
    }
    let (mut holds, mut trips) = (Vec::new(), Vec::new());
    for (process, output) in outputs.into_iter().enumerate() {
        for line in output {
            let line = line.expect("a line");
            let number = |text: &str| text.parse().expect("nanoseconds");
            let times: Vec<u64> = line.split(' ').map(number).collect();
            holds.push(Hold {
                process,
                from: times[0],
                until: times[1],
            });
            trips.push(Duration::from_nanos(times[2]));
        }
    }
    for mut child in children {
        assert!(child.wait().expect("a contender").success());
    }
    let commands = commands(urls) - before;
    let mut sum = sum(holds, processes);
    let handed = sum.handed.max(1) as f64;
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    if sum.gaps.is_empty() {
        sum.gaps.push(Duration::ZERO);
    }
    println!(
        "| {processes} | {:.0} | {:.0} | {:.0} | {:.1} | {}..{} | {:.1} |",
        handed / time.as_secs_f64(),
        micros(quantile(&mut sum.gaps, 0.5)),
        micros(quantile(&mut sum.gaps, 0.99)),
        micros(quantile(&mut sum.gaps, 0.5)) / micros(quantile(&mut trips, 0.5)),
        sum.least,
        sum.most,
        commands as f64 / urls.len() as f64 / handed,
    );
}

fn start(urls: &[String], key: &str, time: Duration) -> Child {
    Command::new(env::current_exe().expect("this program"))
        .env(URLS, urls.join(" "))
        .env(KEY, key)
        .env(TIME, time.as_millis().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a contender")
}

/// How many commands the servers have carried out, those of scripts not counted.
fn commands(urls: &[String]) -> u64 {
    let of = |url: &String| {
        let client = redis::Client::open(url.as_str()).expect("a URL");
        let mut connection = client.get_connection().expect("a server");
        let info: redis::InfoDict = redis::cmd("INFO")
            .arg("commandstats")
            .query(&mut connection)
            .expect("statistics");
        let calls = |name: &str| {
            let line: Option<String> = info.get(&format!("cmdstat_{name}"));
            let calls = line?.split(',').next()?.strip_prefix("calls=")?.to_owned();
            calls.parse::<u64>().ok()
        };
        // What a client sends; GET is the marker behind the grants.
        let names = ["evalsha", "eval", "subscribe", "unsubscribe"];
        names.into_iter().filter_map(calls).sum::<u64>()
    };
    urls.iter().map(of).sum()
}

/// A contender: says "ready", waits for a word, takes the lock for as long as it is told, and tells
/// when it held it and how long each release took: a round trip.
pub fn child() {
    let setting = |name| env::var(name).expect("a variable of the bench");
    let urls: Vec<String> = setting(URLS).split(' ').map(str::to_owned).collect();
    let time = Duration::from_millis(setting(TIME).parse().expect("milliseconds"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let holds = runtime.block_on(async {
        let client = client(&urls);
        // Connections and scripts are there before the start.
        drop(client.lock("warm").wait_forever().acquire().await);
        println!("ready");
        let mut word = String::new();
        std::io::stdin().read_line(&mut word).expect("a word");
        let lock = client.lock(setting(KEY)).wait_forever();
        let end = Instant::now() + time;
        let mut holds = Vec::new();
        while Instant::now() < end {
            let guard = lock.acquire().await.expect("a lock on healthy nodes");
            let from = boot_nanos();
            std::thread::sleep(CRITICAL_SECTION);
            let until = boot_nanos();
            guard.release().await.expect("a release on healthy nodes");
            holds.push([from, until, boot_nanos() - until]);
        }
        drop(client.close().await);
        holds
    });
    for [from, until, trip] in holds {
        println!("{from} {until} {trip}");
    }
}

fn boot_nanos() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).expect("a clock that runs");
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).expect("nanoseconds")
}
