//! A setting that cannot be used: which one, its value, where it came from, and what to do.

use std::fmt;
use std::sync::Arc;

/// Where the value of a setting came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// Nobody set it.
    #[default]
    Default,
    /// A call of the program.
    Code,
    /// A TOML file, or a text that was read like one.
    File {
        /// The file, as it was named; `None` for a text without a file.
        name: Option<Arc<str>>,
        /// The line, counted from one; `None` where the file as a whole is meant.
        line: Option<usize>,
    },
    /// An environment variable.
    Env {
        /// Its name.
        variable: Arc<str>,
    },
    /// An argument of a command.
    Flag {
        /// Its name, with its dashes.
        flag: Arc<str>,
    },
}

impl Origin {
    pub(super) fn env(variable: impl Into<Arc<str>>) -> Self {
        Origin::Env {
            variable: variable.into(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::Code => f.write_str("set in code"),
            Origin::File { name, line } => match (name, line) {
                (Some(name), Some(line)) => write!(f, "{name}, line {line}"),
                (Some(name), None) => f.write_str(name),
                (None, Some(line)) => write!(f, "line {line}"),
                (None, None) => f.write_str("TOML text"),
            },
            Origin::Env { variable } => write!(f, "environment variable {variable}"),
            Origin::Flag { flag } => write!(f, "argument {flag}"),
        }
    }
}

/// A setting that cannot be used. Nothing has been sent to any node.
///
/// Its text is one sentence that names the setting, its value, where it came from, what is wrong
/// with it and what to do. What may hold a password is never part of it.
///
/// ```
/// use std::time::Duration;
/// use quorumlock::Config;
///
/// let error = Config::new(["redis://a:6379"])
///     .ttl(Duration::from_secs(90))
///     .validate()
///     .unwrap_err();
/// assert_eq!(error.setting(), "ttl");
/// assert_eq!(
///     error.to_string(),
///     "ttl = 90s (set in code): is longer than max_ttl, which is 60s (default); lower ttl, or \
///      raise max_ttl on every client of these nodes"
/// );
/// ```
///
/// ```
/// use std::time::Duration;
/// use quorumlock::{Config, Origin};
///
/// let config = Config::new(["redis://a"]).ttl(Duration::from_secs(120));
/// let error = config.validate().unwrap_err();
/// assert_eq!((error.setting(), error.value()), ("ttl", Some("120s")));
/// assert_eq!(error.origin(), &Origin::Code);
/// assert!(error.problem().contains("longer than max_ttl"));
/// assert!(error.remedy().contains("lower ttl"));
/// ```
#[derive(Clone, Debug, thiserror::Error)]
pub struct ConfigError {
    // Boxed, so that a `Result` stays small.
    parts: Box<Parts>,
}

#[derive(Clone, Debug)]
struct Parts {
    setting: String,
    value: Option<String>,
    origin: Origin,
    problem: String,
    remedy: String,
}

impl ConfigError {
    /// An error of something set in code. `value` is shown as it is; an empty one, or an empty
    /// `remedy`, is left out.
    pub(crate) fn new(
        setting: impl Into<String>,
        value: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let value = value.into();
        ConfigError {
            parts: Box::new(Parts {
                setting: setting.into(),
                value: (!value.is_empty()).then_some(value),
                origin: Origin::Code,
                problem: problem.into(),
                remedy: remedy.into(),
            }),
        }
    }

    /// The same error of something set elsewhere.
    pub(super) fn at(mut self, origin: &Origin) -> Self {
        self.parts.origin = origin.clone();
        self
    }

    /// The setting by its full name, as in `retry.max_delay` or `nodes[2]`.
    #[must_use]
    pub fn setting(&self) -> &str {
        &self.parts.setting
    }

    /// The value as it is shown; `None` where there is none, or where it may hold a secret.
    #[must_use]
    pub fn value(&self) -> Option<&str> {
        self.parts.value.as_deref()
    }

    /// Where the value came from.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.parts.origin
    }

    /// What is wrong.
    #[must_use]
    pub fn problem(&self) -> &str {
        &self.parts.problem
    }

    /// What to do about it; may be empty.
    #[must_use]
    pub fn remedy(&self) -> &str {
        &self.parts.remedy
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = &self.parts;
        f.write_str(&parts.setting)?;
        if let Some(value) = &parts.value {
            write!(f, " = {value}")?;
        }
        let placed = match &parts.origin {
            // What has no value was never set, and has no place.
            Origin::Default => parts.value.is_some(),
            Origin::Env { variable } => **variable != *parts.setting,
            _ => true,
        };
        if placed {
            write!(f, " ({})", parts.origin)?;
        }
        write!(f, ": {}", parts.problem)?;
        if !parts.remedy.is_empty() {
            write!(f, "; {}", parts.remedy)?;
        }
        Ok(())
    }
}

/// Why a value is no good and what to write instead, before the setting has been named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unfit {
    pub(crate) problem: String,
    pub(crate) remedy: String,
}

impl Unfit {
    pub(super) fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Unfit {
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    /// The error of `setting`, whose value is shown as `value`.
    pub(super) fn of(self, setting: impl Into<String>, value: impl Into<String>) -> ConfigError {
        ConfigError::new(setting, value, self.problem, self.remedy)
    }
}

/// A text from a file or the environment, as errors show it: quoted, cut, and left out where it
/// looks as if it held credentials.
pub(super) fn shown(text: &str) -> String {
    const LONGEST: usize = 64;
    if text.contains("://") || text.contains('@') {
        return String::new();
    }
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: Option<&str>, line: Option<usize>) -> Origin {
        Origin::File {
            name: name.map(Into::into),
            line,
        }
    }

    #[test]
    fn the_text_is_one_sentence() {
        let error = ConfigError::new("ttl", "\"30\"", "a duration needs a unit", "write \"30s\"");
        let error = error.at(&file(Some("quorumlock.toml"), Some(3)));
        let text = "ttl = \"30\" (quorumlock.toml, line 3): a duration needs a unit; write \"30s\"";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn every_origin_reads_well() {
        let text = |origin| {
            ConfigError::new("x", "1", "is bad", "")
                .at(&origin)
                .to_string()
        };
        assert_eq!(text(Origin::Code), "x = 1 (set in code): is bad");
        assert_eq!(text(Origin::Default), "x = 1 (default): is bad");
        assert_eq!(text(file(None, Some(7))), "x = 1 (line 7): is bad");
        assert_eq!(
            text(Origin::env("QUORUMLOCK_X")),
            "x = 1 (environment variable QUORUMLOCK_X): is bad"
        );
    }

    #[test]
    fn a_value_that_looks_like_credentials_is_not_shown() {
        assert_eq!(shown("redis://:hunter2@h"), "");
        assert_eq!(shown("hunter2@h"), "");
        assert_eq!(shown("30"), "\"30\"");
        assert_eq!(shown(&"é".repeat(65)), format!("\"{}\"…", "é".repeat(64)));
    }
}
