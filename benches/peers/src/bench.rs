//! Rounds in which all contenders take turns, and what is written in the end.

use std::{
    env, fs,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};

use crate::{
    chart,
    contenders::{ALL, Contender, home, tools},
    proxy::Proxy,
    report::{About, Report},
    scenario::{SCENARIOS, Scenario},
    servers::Servers,
    slices::{Field, Times},
};

const NODES: usize = 5;

const FULL: Times = Times {
    warm: 200,
    distinct: 600,
    shared: 2_500,
    healthy: 500,
    slow: 700,
    hung: 2_500,
};

const QUICK: Times = Times {
    warm: 100,
    distinct: 250,
    shared: 800,
    healthy: 250,
    slow: 400,
    hung: 1_200,
};

/// How much is done, and in which order.
#[derive(Debug)]
pub struct Options {
    quick: bool,
    seed: u64,
    rounds: usize,
}

impl Options {
    /// Seed and rounds are in the environment, as for the other benches.
    pub fn read(quick: bool) -> Result<Self, String> {
        let rounds = setting("QUORUMLOCK_BENCH_ROUNDS")?.unwrap_or(if quick { 1 } else { 3 });
        let seed = setting("QUORUMLOCK_BENCH_SEED")?;
        Ok(Self {
            quick,
            // Short enough to be typed again.
            seed: seed.unwrap_or_else(|| rand::rng().random_range(0..1_000_000)),
            rounds: usize::try_from(rounds.max(1)).map_err(|error| error.to_string())?,
        })
    }
}

fn setting(variable: &str) -> Result<Option<u64>, String> {
    match env::var(variable) {
        Ok(text) => match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(format!("{variable} must be a whole number, not {text:?}")),
        },
        Err(_) => Ok(None),
    }
}

/// Runs everything, and writes RESULTS.md and chart.svg.
pub fn run(options: &Options) -> Result<(), String> {
    let begin = Instant::now();
    let load_before = load_average();
    let servers = Servers::start(NODES);
    let urls = servers.urls();
    let field = Field {
        proxy: Proxy::start(&urls[NODES - 1]).map_err(|error| error.to_string())?,
        urls,
        servers,
        times: if options.quick { QUICK } else { FULL },
    };
    let mut about = About {
        seed: options.seed,
        rounds: options.rounds,
        quick: options.quick,
        load_before,
        server: first_line(Command::new(server_program()).arg("--version")),
        date: first_line(Command::new("date").args(["-u", "+%Y-%m-%d %H:%M UTC"])),
        cores: std::thread::available_parallelism().map_or(0, usize::from),
        ..About::default()
    };
    let contenders = present(&field, &mut about);
    let mut report = Report::default();
    let mut order = StdRng::seed_from_u64(options.seed);
    for round in 0..options.rounds {
        eprintln!(
            "round {} of {}, after {} s",
            round + 1,
            options.rounds,
            begin.elapsed().as_secs()
        );
        // What is counted and not timed needs no second round.
        let turns = SCENARIOS.iter().filter(|of| round == 0 || of.is_timed());
        for &scenario in turns {
            one_round(
                &field,
                scenario,
                &contenders,
                round,
                &mut order,
                &mut report,
            );
        }
    }
    about.load_after = load_average();
    about.took = begin.elapsed();
    write(options, &about, &report, begin.elapsed())
}

/// All who take part in a scenario, one after the other in a fresh order.
fn one_round(
    field: &Field,
    scenario: Scenario,
    contenders: &[Contender],
    round: usize,
    order: &mut StdRng,
    report: &mut Report,
) {
    let mut turns: Vec<&Contender> = contenders
        .iter()
        .filter(|contender| scenario.admits(contender))
        .collect();
    turns.shuffle(order);
    for contender in turns {
        let key = format!("peers:{round}:{}:{}", scenario.name(), contender.name);
        let seen = field.turn(contender, scenario, &key);
        if let Err(why) = &seen {
            eprintln!("{}, {}: {why}", contender.name, scenario.name());
        }
        report.add(scenario, contender.name, seen);
    }
}

/// Those whose worker comes up; why the others do not stands in the results.
fn present(field: &Field, about: &mut About) -> Vec<Contender> {
    let mut contenders = Vec::new();
    for contender in ALL {
        match field.version(&contender) {
            Ok(version) => {
                // quorumlock takes part twice.
                if !about.versions.contains(&version) {
                    about.versions.push(version);
                }
                contenders.push(contender);
            }
            Err(why) => {
                eprintln!("{} is left out: {why}", contender.name);
                about.left_out.push((contender.name, why));
            }
        }
    }
    contenders
}

/// A quick run shows that all works; its figures do not replace those of a full one.
fn write(options: &Options, about: &About, report: &Report, took: Duration) -> Result<(), String> {
    let into = if options.quick {
        tools()
    } else {
        home().to_owned()
    };
    fs::create_dir_all(&into).map_err(|error| error.to_string())?;
    let table = report.markdown(about);
    print!("{table}");
    let put = |name: &str, text: &str| -> Result<(), String> {
        let path = into.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    put("RESULTS.md", &table)?;
    put("chart.svg", &chart::draw(report))?;
    eprintln!(
        "peers: {} s; RESULTS.md and chart.svg are written",
        took.as_secs()
    );
    Ok(())
}

fn server_program() -> PathBuf {
    env::var_os("QUORUMLOCK_SERVER").map_or_else(|| PathBuf::from("redis-server"), PathBuf::from)
}

fn first_line(command: &mut Command) -> String {
    command.output().map_or_else(
        |_| "?".to_owned(),
        |output| {
            let text = String::from_utf8_lossy(&output.stdout);
            text.lines().next().unwrap_or("?").to_owned()
        },
    )
}

fn load_average() -> String {
    fs::read_to_string("/proc/loadavg").map_or_else(
        |_| "–".to_owned(),
        |text| text.split(' ').take(3).collect::<Vec<_>>().join(" "),
    )
}
