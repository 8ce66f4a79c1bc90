//! What happened, line by line, where somebody wants to know.

use std::sync::{Arc, Mutex, PoisonError};

use crate::clock::Instant;

/// A timeline; `None` costs nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal(Option<Arc<Mutex<String>>>);

impl Journal {
    /// One that is kept.
    pub(crate) fn kept() -> Self {
        Journal(Some(Arc::default()))
    }

    pub(crate) fn write(&self, at: Instant, line: impl FnOnce() -> String) {
        if let Some(text) = &self.0 {
            let nanos = at.as_nanos();
            let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
            let line = format!("{seconds:4}.{rest:09}  {}\n", line());
            text.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push_str(&line);
        }
    }

    pub(crate) fn text(&self) -> String {
        let text = self.0.as_ref();
        text.map_or(String::new(), |text| {
            text.lock().unwrap_or_else(PoisonError::into_inner).clone()
        })
    }
}
