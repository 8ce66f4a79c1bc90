//! A recorder that keeps every value it is told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

/// All that was told to one series, in order: what a counter or a gauge shows is the sum.
#[derive(Default)]
struct Series(Mutex<Vec<f64>>);

impl Series {
    fn push(&self, value: f64) {
        lock(&self.0).push(value);
    }
}

impl CounterFn for Series {
    fn increment(&self, value: u64) {
        self.push(value as f64);
    }

    fn absolute(&self, _: u64) {
        panic!("two clients of a process would overwrite each other");
    }
}

impl GaugeFn for Series {
    fn increment(&self, value: f64) {
        self.push(value);
    }

    fn decrement(&self, value: f64) {
        self.push(-value);
    }

    fn set(&self, _: f64) {
        panic!("two clients of a process would overwrite each other");
    }
}

impl HistogramFn for Series {
    fn record(&self, value: f64) {
        self.push(value);
    }
}

static ALL: Mutex<BTreeMap<String, Arc<Series>>> = Mutex::new(BTreeMap::new());
static DESCRIBED: Mutex<BTreeMap<String, (Option<Unit>, String)>> = Mutex::new(BTreeMap::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Ear;

impl Ear {
    fn series(key: &Key) -> Arc<Series> {
        let mut labels: Vec<_> = key
            .labels()
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        labels.sort();
        let name = match labels.is_empty() {
            true => key.name().to_owned(),
            false => format!("{}{{{}}}", key.name(), labels.join(",")),
        };
        Arc::clone(lock(&ALL).entry(name).or_default())
    }

    fn described(name: &KeyName, unit: Option<Unit>, help: &SharedString) {
        let about = (unit, help.to_string());
        lock(&DESCRIBED).insert(name.as_str().to_owned(), about);
    }
}

impl Recorder for Ear {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, help: SharedString) {
        Ear::described(&name, unit, &help);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, help: SharedString) {
        Ear::described(&name, unit, &help);
    }

    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, help: SharedString) {
        Ear::described(&name, unit, &help);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Ear::series(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Ear::series(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Ear::series(key))
    }
}

static INSTALL: Once = Once::new();
static SCENE: Mutex<()> = Mutex::new(());

/// What the clients of one test have counted: the tests of this program wait for each other, and
/// what is left of an earlier one counts into series of its own.
pub struct Meters(#[allow(dead_code)] MutexGuard<'static, ()>);

impl Meters {
    /// To be called before the first client of the test.
    pub fn start() -> Meters {
        let scene = lock(&SCENE);
        INSTALL.call_once(|| metrics::set_global_recorder(Ear).expect("no other recorder"));
        lock(&ALL).clear();
        Meters(scene)
    }

    /// What a counter or a gauge shows: `name` or `name{label=value,…}`, labels in order.
    pub fn value(&self, series: &str) -> f64 {
        let all = lock(&ALL);
        let found = all.get(series);
        let found = found.unwrap_or_else(|| panic!("no {series} in {:#?}", all.keys()));
        lock(&found.0).iter().sum()
    }

    /// Whether it comes to this within some seconds.
    pub fn comes_to(&self, series: &str, value: f64) {
        self.until(|| self.value(series) == value, series);
    }

    /// Every value of a histogram.
    pub fn values(&self, series: &str) -> Vec<f64> {
        let all = lock(&ALL);
        all.get(series)
            .map(|found| lock(&found.0).clone())
            .unwrap_or_default()
    }

    /// The same, when it has so many.
    pub fn wait_for(&self, series: &str, count: usize) -> Vec<f64> {
        self.until(|| self.values(series).len() >= count, series);
        self.values(series)
    }

    fn until(&self, mut condition: impl FnMut() -> bool, what: &str) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !condition() {
            let seen = self.values(what);
            assert!(Instant::now() < deadline, "{what}: {seen:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The names of all series.
    pub fn series(&self) -> Vec<String> {
        lock(&ALL).keys().cloned().collect()
    }

    /// What was described: name, unit, help.
    pub fn described(&self) -> Vec<(String, Option<Unit>, String)> {
        let all = lock(&DESCRIBED);
        let each = all.iter();
        each.map(|(name, (unit, help))| (name.clone(), *unit, help.clone()))
            .collect()
    }
}
