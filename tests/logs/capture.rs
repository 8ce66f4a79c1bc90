//! Hears everything that is logged in this process, down to TRACE.

use std::fmt::{Debug, Write};
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

    fn matching(&self, level: impl Fn(Level) -> bool, parts: &[&str]) -> usize {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |text: &str| parts.iter().all(|part| text.contains(part));
        lines
            .iter()
            .filter(|(at, text)| level(*at) && fits(text))
            .count()
    }
}

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
        self.hear(*span.metadata().level(), |text| span.record(text));
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, values: &Record<'_>) {
        self.hear(Level::TRACE, |text| values.record(text));
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
