//! What bad nodes cost: an acquire with none, one and two of five that refuse, hang (SIGSTOP), have
//! no address, swallow everything, answer 20 or 200 ms later, have another password or are replicas;
//! and with three, how soon the error comes.
//!
//! The healthy nodes are the same servers each time. Aim: with two bad nodes the median is at most
//! 1.5 times the healthy one and the p99 at most twice, and with three every error comes within the
//! budget plus 20 %. What each fault comes to is in `tests/matrix`.
//!
//! ```text
//! cargo bench --bench faults
//! ```

#[path = "../tests/support/mod.rs"]
mod faulty;
mod support;

use std::time::{Duration, Instant};

use faulty::{Cluster, Proxy};
use quorumlock::{AcquireError, Client, Config, RestartGuard};
use support::{
    Contender, Plan, Servers, acquire, interleave, is_measured, load_average, quantile,
    refusing_url, setting,
};
use tokio::runtime::Builder;

const NODES: usize = 5;
const WORST: usize = 3;
const WORKERS: usize = 2;
const WAIT: Duration = Duration::from_millis(300);
/// The library's default at a TTL of 10 s.
const NODE_TIMEOUT: Duration = Duration::from_millis(500);

/// A way of being no use.
#[derive(Clone, Copy)]
enum Fault {
    Refuses,
    Hangs,
    HasNoAddress,
    Swallows,
    Delays(Duration),
    HasAnotherPassword,
    IsReplica,
}

const FAULTS: [(Fault, &str); 3] = [
    (Fault::Refuses, "refused"),
    (Fault::Hangs, "stopped"),
    (Fault::HasNoAddress, "no address"),
];

/// Those that come over nodes of their own, and with which three bad nodes are no matter of time.
const FAULTS_OF_OWN: [(Fault, &str); 5] = [
    (Fault::Swallows, "blackholed"),
    (Fault::Delays(Duration::from_millis(20)), "20 ms later"),
    (Fault::Delays(Duration::from_millis(200)), "200 ms later"),
    (Fault::HasAnotherPassword, "other password"),
    (Fault::IsReplica, "replica"),
];

/// Servers behind proxies that turn bad in one way.
struct Bad {
    fault: Fault,
    name: &'static str,
    cluster: Cluster,
    proxies: Vec<Proxy>,
}

impl Bad {
    fn start(fault: Fault, name: &'static str) -> Bad {
        let cluster = Cluster::start(WORST - 1);
        Bad {
            fault,
            name,
            proxies: Proxy::in_front_of_all(cluster.ports()),
            cluster,
        }
    }

    fn turn(&self) {
        for (server, proxy) in self.cluster.iter().zip(&self.proxies) {
            let mut probe = server.probe();
            match self.fault {
                Fault::Swallows => proxy.blackhole(),
                Fault::Delays(time) => proxy.delay(time / 2),
                Fault::HasAnotherPassword => {
                    probe.command(&["CONFIG", "SET", "requirepass", "changed"]);
                    probe.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
                }
                Fault::IsReplica => {
                    probe.command(&["REPLICAOF", "127.0.0.1", "1"]);
                }
                Fault::Refuses | Fault::Hangs | Fault::HasNoAddress => {}
            }
        }
    }

    /// Five nodes, the last `bad` of which are these.
    fn config(&self, good: &[String], bad: usize) -> Config {
        let bad_urls = self.proxies.iter().take(bad).map(Proxy::url);
        let nodes = good[..NODES - bad].iter().cloned().chain(bad_urls);
        Config::new(nodes).restart_guard(RestartGuard::Off)
    }
}

fn main() {
    let servers = Servers::start(NODES + WORST);
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        // Connected first, stopped afterwards: that is how a server comes to hang.
        let of_own: Vec<_> = FAULTS_OF_OWN
            .iter()
            .map(|&(fault, name)| Bad::start(fault, name))
            .collect();
        let contenders = contenders(&servers, &of_own);
        let hopeless: Vec<_> = FAULTS
            .iter()
            .map(|&(fault, name)| (name, config(&servers, fault, WORST)))
            .collect();
        for contender in &contenders {
            assert!(contender.once(format!("first:{}", contender.name())).await);
        }
        (NODES..NODES + WORST).for_each(|server| servers.pause(server));
        of_own.iter().for_each(Bad::turn);

        let rounds = tokio::spawn(async move { interleave(plan(), &contenders).await });
        println!("{}", rounds.await.expect("the rounds"));
        print_errors(&hopeless).await;
    });
}

fn contenders(servers: &Servers, of_own: &[Bad]) -> Vec<Contender> {
    let mut contenders = vec![acquire("healthy", config(servers, Fault::Refuses, 0))];
    for (fault, name) in FAULTS {
        for bad in 1..WORST {
            let name = format!("{bad} {name}");
            contenders.push(acquire(&name, config(servers, fault, bad)));
        }
    }
    for nodes in of_own {
        for bad in 1..WORST {
            let name = format!("{bad} {}", nodes.name);
            contenders.push(acquire(&name, nodes.config(&servers.urls(), bad)));
        }
    }
    contenders
}

/// Five nodes, the last `bad` of which are of no use. Without the restart guard: a new set is
/// accepted at once only where all its nodes answer.
fn config(servers: &Servers, fault: Fault, bad: usize) -> Config {
    let urls = servers.urls();
    let mut nodes = urls[..NODES - bad].to_vec();
    nodes.extend((0..bad).map(|index| match fault {
        Fault::Refuses => refusing_url(),
        Fault::Hangs => urls[NODES + index].clone(),
        _ => format!("redis://n{index}..invalid:6379"),
    }));
    Config::new(nodes).restart_guard(RestartGuard::Off)
}

fn plan() -> Plan {
    let measured = is_measured();
    Plan {
        tasks: 1,
        rounds: setting("QUORUMLOCK_BENCH_ROUNDS", 21, 1),
        slice: Duration::from_millis(if measured { 100 } else { 20 }),
    }
}

/// With three bad nodes there is no quorum: how long it takes to be told.
async fn print_errors(hopeless: &[(&str, Config)]) {
    let tries = if is_measured() { 12 } else { 1 };
    println!(
        "three of five bad, {tries} tries each, load {}\n",
        load_average()
    );
    println!(
        "| fault      | call        | median ms | worst ms | budget ms | worst/budget | wrong |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|");
    for (name, config) in hopeless {
        let client = Client::with_config(config.clone()).expect("a configuration of the bench");
        for (call, wait) in [("try_acquire", Duration::ZERO), ("acquire", WAIT)] {
            let budget = wait + NODE_TIMEOUT;
            let (mut times, mut wrong) = (Vec::new(), 0);
            for index in 0..tries {
                let lock = client.lock(format!("{name}:{index}")).wait(wait);
                let begin = Instant::now();
                let outcome = lock.acquire().await;
                times.push(begin.elapsed());
                wrong += usize::from(!matches!(outcome, Err(AcquireError::Unavailable(_))));
            }
            let (median, worst) = (quantile(&mut times, 0.5), quantile(&mut times, 1.0));
            let millis = |time: Duration| time.as_secs_f64() * 1e3;
            println!(
                "| {name:<10} | {call:<11} | {:>9.1} | {:>8.1} | {:>9.0} | {:>12.2} | {wrong:>5} |",
                millis(median),
                millis(worst),
                millis(budget),
                worst.as_secs_f64() / budget.as_secs_f64(),
            );
        }
    }
}
