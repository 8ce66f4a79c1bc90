//! Hears everything that is logged in this process, down to TRACE.

use std::fmt::{Debug, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::set_global_default;
use tracing::{Event, Level, Metadata, Subscriber};

type Lines = Arc<Mutex<Vec<(Level, String)>>>;

static ALL: Mutex<Option<Lines>> = Mutex::new(None);
static INSTALL: Once = Once::new();

/// What was logged. Tests that run side by side share it, and tell their nodes by port.
pub struct Log(Lines);

impl Log {
    pub fn start() -> Log {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = Arc::clone(all.get_or_insert_with(Lines::default));
        INSTALL.call_once(|| {
            let ear = Ear(Arc::clone(&lines));
            set_global_default(ear).expect("no other subscriber");
        });
        Log(lines)
    }

    pub fn all(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = lines
            .iter()
            .map(|(level, text)| format!("{level} {text}\n"));
        lines.collect()
    }

    /// How many lines have all these parts.
    pub fn count(&self, parts: &[&str]) -> usize {
        self.matching(|_| true, parts)
    }

    /// How many lines of WARN and above have all these parts.
    pub fn warnings(&self, parts: &[&str]) -> usize {
        self.matching(|level| level <= Level::WARN, parts)
    }

    /// All that is known of each span of this name whose first fields have this part.
    pub fn spans(&self, name: &str, part: &str) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = |text: &str| {
            let rest = text.strip_prefix("span ")?;
            rest.split_once(' ').map(|(number, _)| number.to_owned())
        };
        let opened = lines.iter().filter_map(|(_, text)| {
            let number = number(text)?;
            let start = format!("span {number} {name} ");
            (text.starts_with(&start) && text.contains(part)).then_some(number)
        });
        let whole = |wanted: String| {
            let of_it = lines.iter().map(|(_, text)| text.as_str());
            let of_it = of_it.filter(|text| number(text).as_ref() == Some(&wanted));
            of_it.collect::<String>()
        };
        opened.map(whole).collect()
    }

    fn matching(&self, level: impl Fn(Level) -> bool, parts: &[&str]) -> usize {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |text: &str| parts.iter().all(|part| text.contains(part));
        lines
            .iter()
            .filter(|(at, text)| level(*at) && fits(text))
            .count()
    }
}

/// The number of the next span.
static NEXT: AtomicU64 = AtomicU64::new(1);

struct Ear(Lines);

impl Ear {
    fn hear(&self, level: Level, record: impl FnOnce(&mut Text)) {
        let mut text = Text(String::new());
        record(&mut text);
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push((level, text.0));
    }
}

impl Subscriber for Ear {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.hear(*span.metadata().level(), |text| {
            text.0 = format!("span {number} {} ", span.metadata().name());
            span.record(text);
        });
        Id::from_u64(number)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.hear(Level::TRACE, |text| {
            text.0 = format!("span {} ", span.into_u64());
            values.record(text);
        });
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.hear(*event.metadata().level(), |text| event.record(text));
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{field}={value:?} ").expect("a string takes everything");
    }
}
