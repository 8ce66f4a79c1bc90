//! What a bench needs to know of its process and its machine.

use std::{env, fs, str::FromStr, time::Duration};

/// The variable that repeats the order of an earlier run.
const SEED_ENV: &str = "QUORUMLOCK_BENCH_SEED";

/// Whether this is `cargo bench`, which measures; `cargo test` only shows that it runs.
pub fn is_measured() -> bool {
    env::args().any(|argument| argument == "--bench")
}

/// A whole number from the environment, or the default: one for `cargo bench`, one for
/// `cargo test`.
///
/// # Panics
/// If the variable holds anything else.
pub fn setting<T: FromStr>(variable: &str, measured: T, shown: T) -> T {
    match env::var(variable) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{variable} must be a whole number, not {text:?}")),
        Err(_) if is_measured() => measured,
        Err(_) => shown,
    }
}

/// The value below which `share` of the values are; sorts them. They must not be empty.
pub fn quantile(values: &mut [Duration], share: f64) -> Duration {
    values.sort_unstable();
    let last = values.len() - 1;
    values[((last as f64) * share).round() as usize]
}

/// The seed of this run.
///
/// # Panics
/// If `QUORUMLOCK_BENCH_SEED` is no number.
pub fn seed() -> u64 {
    match env::var(SEED_ENV) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{SEED_ENV} must be a whole number, not {text:?}")),
        Err(_) => getrandom::u64().expect("a random number from the operating system"),
    }
}

/// The CPU time of this process, all threads and the kernel's share included.
pub fn cpu_time() -> Duration {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage fills the struct that it is given; all zeroes are a valid rusage.
    let usage = unsafe {
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()), 0);
        usage.assume_init()
    };
    [usage.ru_utime, usage.ru_stime]
        .iter()
        .map(|time| {
            let seconds = u64::try_from(time.tv_sec).expect("no negative CPU time");
            let micros = u64::try_from(time.tv_usec).expect("no negative CPU time");
            Duration::from_secs(seconds) + Duration::from_micros(micros)
        })
        .sum()
}

/// The load averages of the machine, or a dash where /proc is missing.
pub fn load_average() -> String {
    fs::read_to_string("/proc/loadavg").map_or_else(
        |_| "–".to_owned(),
        |text| text.split(' ').take(3).collect::<Vec<_>>().join(" "),
    )
}

/// The memory of this process that is in use, in bytes.
pub fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0) * 4096
}
