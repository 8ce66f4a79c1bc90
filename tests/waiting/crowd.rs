//! Many processes want one lock (F51, and the whole kind of "it is always the others").

use std::collections::BTreeMap;
use std::time::Duration;

use crate::helpers::*;
use crate::support::*;

const TTL: Duration = Duration::from_secs(10);
const NAME: &str = "crowd";

/// Takes the lock again and again until it is told to stop; says when it held it.
#[test]
#[ignore = "a process of the test below"]
fn contender() {
    let millis: u64 = told("WORKER_MILLIS").parse().expect("milliseconds");
    block_on(async {
        let client = open(patient(told_urls(), TTL));
        drop(take(&client, "warm").await);
        eprintln!("ready");
        let go = std::path::PathBuf::from(told("WORKER_GO"));
        assert!(eventually(Duration::from_secs(30), || go.exists()));
        let end = std::time::Instant::now() + Duration::from_millis(millis);
        let lock = client.lock(NAME).wait_forever();
        let mut holds = Vec::new();
        while std::time::Instant::now() < end {
            let guard = lock.acquire().await.expect("a lock on healthy nodes");
            let (from, token) = (boot_nanos(), u64::from(guard.fencing_token()));
            std::thread::sleep(MS);
            assert!(guard.is_held());
            holds.push((token, from, boot_nanos()));
            drop(guard);
        }
        drop(client.close().await);
        for (token, from, until) in holds {
            eprintln!("held {token} {from} {until}");
        }
    });
}

#[test]
fn processes_are_all_served_one_at_a_time_without_a_stampede() {
    let cluster = Cluster::start(5);
    let urls = cluster.urls().join(" ");
    let millis = pick(2_000, 10_000).to_string();
    let dir = tempfile::tempdir().expect("a directory");
    let go = dir.path().join("go");
    let go_text = go.to_str().expect("plain");
    let vars = [
        ("WORKER_URLS", &*urls),
        ("WORKER_MILLIS", &*millis),
        ("WORKER_GO", go_text),
    ];
    let start = |_| Worker::start("crowd::contender", &vars);
    let mut workers: Vec<Worker> = (0..8).map(start).collect();
    for worker in &mut workers {
        worker.hear("ready", Duration::from_secs(20));
    }
    let monitor = Monitor::on(cluster.ports()[0]);
    std::fs::write(&go, "").expect("a file");
    let mut holds: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for worker in workers {
        let (status, said) = worker.finish(Duration::from_secs(60));
        assert!(status.success(), "{said:#?}");
        let number = |text: &str| text.parse::<u64>().expect("a number");
        let lines = said.iter().filter_map(|line| line.strip_prefix("held "));
        let before = holds.len();
        for line in lines {
            let words: Vec<u64> = line.split(' ').map(number).collect();
            assert!(
                holds.insert(words[0], (words[1], words[2])).is_none(),
                "{line}"
            );
        }
        assert!(holds.len() > before, "one was never served: {said:#?}");
    }
    // In the order of their tokens, no two of them together.
    let times: Vec<_> = holds.values().collect();
    assert!(
        times.windows(2).all(|pair| pair[0].1 <= pair[1].0),
        "two at once"
    );

    // Nothing comes in crowds: no 5 ms have more than a fifth of all tries.
    let tries: Vec<_> = monitor.stop().into_iter().filter(is_grant).collect();
    let mut bins: BTreeMap<u64, usize> = BTreeMap::new();
    for seen in &tries {
        *bins.entry((seen.at * 200.0) as u64).or_default() += 1;
    }
    let most = bins.values().max().copied().unwrap_or(0);
    assert!(
        tries.len() > 100 && most * 5 <= tries.len(),
        "{most} of {}",
        tries.len()
    );
    assert!(
        tries.len() <= holds.len() * 6,
        "{} tries for {} holds",
        tries.len(),
        holds.len()
    );
}
