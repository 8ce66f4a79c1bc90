//! Values as a file or the environment gives them, and how each setting reads them.

use std::time::Duration;

use super::duration::{self, Span};
use super::error::{ConfigError, Origin, Unfit, shown};
use super::setting::Setting;
use super::{Config, Given, Jitter, RestartGuard};
use crate::quorum::Wait;

/// One value.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(not(feature = "serde"), allow(dead_code))] // The environment knows texts only.
pub(super) enum Value {
    Text(String),
    /// Whole, or outside of what 64 bits hold.
    Integer(Option<i64>),
    Float(f64),
    Bool(bool),
    /// Something that no setting but `nodes` takes, by its name.
    Other(&'static str),
    /// Text of an environment variable, which may stand for any of the others.
    Raw(String),
}

impl Value {
    /// For messages.
    fn shown(&self) -> String {
        match self {
            Value::Text(text) | Value::Raw(text) => shown(text),
            Value::Integer(Some(number)) => number.to_string(),
            Value::Integer(None) => "a number beyond 64 bits".to_owned(),
            Value::Float(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            Value::Other(_) => String::new(),
        }
    }

    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) | Value::Raw(_) => "text",
            Value::Integer(_) => "a whole number",
            Value::Float(_) => "a number",
            Value::Bool(_) => "a boolean",
            Value::Other(kind) => kind,
        }
    }

    fn mismatch(&self, remedy: &str) -> Unfit {
        Unfit::new(format!("cannot be {}", self.kind()), remedy)
    }

    fn text(&self, remedy: &str) -> Result<&str, Unfit> {
        match self {
            Value::Text(text) | Value::Raw(text) => Ok(text),
            other => Err(other.mismatch(remedy)),
        }
    }

    fn duration(&self, span: Span) -> Result<Duration, Unfit> {
        match self {
            Value::Text(text) | Value::Raw(text) => duration::parse(text, span),
            // A bare number without its quotes: say the same as with them.
            Value::Integer(Some(number)) => duration::parse(&number.to_string(), span),
            Value::Float(number) => duration::parse(&number.to_string(), span),
            other => Err(other.mismatch("write a number and a unit, like \"30s\" or \"1500ms\"")),
        }
    }

    /// A duration, or `None` for `word`.
    fn duration_or(&self, word: &str, span: Span) -> Result<Option<Duration>, Unfit> {
        match self {
            Value::Text(text) | Value::Raw(text) if text.trim() == word => Ok(None),
            other => other.duration(span).map(Some).map_err(|unfit| {
                let remedy = format!("{}, or \"{word}\"", unfit.remedy);
                Unfit::new(unfit.problem, remedy)
            }),
        }
    }

    fn flag(&self) -> Result<bool, Unfit> {
        match self {
            Value::Bool(flag) => Ok(*flag),
            Value::Raw(text) => match text.trim() {
                "true" => Ok(true),
                "false" => Ok(false),
                _ => Err(Unfit::new("is neither true nor false", "write one of them")),
            },
            other => Err(other.mismatch("write true or false, without quotes")),
        }
    }

    fn factor(&self) -> Result<f64, Unfit> {
        const REMEDY: &str = "write a number from 0 to below 1, like 0.01 for one percent";
        match self {
            Value::Float(number) => Ok(*number),
            // Only small ones pass the check that follows, and those are exact.
            Value::Integer(Some(number)) => Ok(*number as f64),
            Value::Raw(text) => text
                .trim()
                .parse()
                .map_err(|_| Unfit::new("is no number", REMEDY)),
            other => Err(other.mismatch(REMEDY)),
        }
    }

    /// A whole number of times, from 0 to `most`.
    fn count(&self, most: u32) -> Result<u32, Unfit> {
        const REMEDY: &str = "write a whole number, 0 for never";
        let number = match self {
            Value::Integer(number) => number.ok_or_else(|| too_many(most))?,
            Value::Raw(text) => {
                let parsed = text.trim().parse();
                parsed.map_err(|_| Unfit::new("is no whole number", REMEDY))?
            }
            other => return Err(other.mismatch(REMEDY)),
        };
        if number < 0 {
            return Err(Unfit::new("cannot be negative", REMEDY));
        }
        let fits = u32::try_from(number).ok().filter(|&number| number <= most);
        fits.ok_or_else(|| too_many(most))
    }

    /// The number of attempts, or `None` for no limit.
    fn attempts(&self) -> Result<Option<u32>, Unfit> {
        const REMEDY: &str = "write how often to try, the first time included, or \"unlimited\"";
        let number = match self {
            Value::Integer(number) => *number,
            Value::Text(text) | Value::Raw(text) if text.trim() == "unlimited" => return Ok(None),
            Value::Raw(text) => match text.trim().parse() {
                Ok(number) => Some(number),
                Err(_) => return Err(Unfit::new("is no whole number", REMEDY)),
            },
            other => return Err(other.mismatch(REMEDY)),
        };
        match number {
            Some(number) if number < 0 => Err(Unfit::new("cannot be negative", REMEDY)),
            Some(number) => u32::try_from(number).map(Some).map_err(|_| unlimited()),
            None => Err(unlimited()),
        }
    }

    fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, Unfit> {
        let names: Vec<_> = choices
            .iter()
            .map(|(name, _)| format!("{name:?}"))
            .collect();
        let remedy = format!("write one of {}", names.join(", "));
        let text = self.text(&remedy)?.trim();
        let found = choices.iter().find(|(name, _)| *name == text);
        found
            .map(|(_, choice)| *choice)
            .ok_or_else(|| Unfit::new("is not one of the choices", remedy))
    }
}

/// The most numbers of a fencing counter that one grant may reserve.
pub(super) const MOST_HANDOFFS: u32 = 65_535;

pub(super) fn too_many(most: u32) -> Unfit {
    Unfit::new(format!("is more than {most}"), "write less")
}

fn unlimited() -> Unfit {
    Unfit::new("is more than 4294967295", "write \"unlimited\"")
}

pub(super) const JITTERS: [(&str, Jitter); 3] = [
    ("full", Jitter::Full),
    ("equal", Jitter::Equal),
    ("none", Jitter::None),
];

pub(super) const GUARDS: [(&str, RestartGuard); 3] = [
    ("auto", RestartGuard::Auto),
    ("strict", RestartGuard::Strict),
    ("off", RestartGuard::Off),
];

/// Which durations each setting takes.
pub(super) const fn span(setting: Setting) -> Span {
    match setting {
        Setting::Ttl | Setting::MaxTtl | Setting::FenceRetention => Span::Stored,
        Setting::Wait | Setting::MinValidity | Setting::DriftMargin | Setting::CohortMaxTime => {
            Span::OrZero
        }
        _ => Span::Positive,
    }
}

impl Config {
    /// Takes over one setting.
    ///
    /// # Errors
    /// A value of the wrong kind or form. Relations between settings are checked later.
    pub(super) fn set(
        &mut self,
        setting: Setting,
        value: &Value,
        origin: &Origin,
    ) -> Result<(), ConfigError> {
        self.put(setting, value, origin)
            .map_err(|unfit| unfit.of(setting.name(), value.shown()).at(origin))
    }

    fn put(&mut self, setting: Setting, value: &Value, origin: &Origin) -> Result<(), Unfit> {
        let span = span(setting);
        let duration = || value.duration(span).map(|it| Given::some(it, origin));
        match setting {
            Setting::Prefix => {
                let text = value.text("write it in quotes")?.to_owned();
                self.prefix = Given::some(text, origin);
            }
            Setting::Ttl => self.ttl = duration()?,
            Setting::MaxTtl => self.max_ttl = duration()?,
            Setting::Wait => {
                let limit = value.duration_or("forever", span)?;
                self.wait = Given::some(limit.map_or(Wait::Forever, Wait::For), origin);
            }
            Setting::NodeTimeout => self.node_timeout = duration()?,
            Setting::DriftFactor => self.drift_factor = Given::some(value.factor()?, origin),
            Setting::DriftMargin => self.drift_margin = duration()?,
            Setting::MinValidity => self.min_validity = duration()?,
            Setting::RetryDelay => self.retry_delay = duration()?,
            Setting::RetryMaxDelay => self.retry_max_delay = duration()?,
            Setting::RetryJitter => {
                self.retry_jitter = Given::some(value.choice(&JITTERS)?, origin);
            }
            Setting::RetryAttempts => self.retry_attempts = Given::some(value.attempts()?, origin),
            Setting::AutoExtend => self.auto_extend = Given::some(value.flag()?, origin),
            Setting::ExtendEvery => self.extend_every = duration()?,
            Setting::MaxHold => {
                self.max_hold = Given::some(value.duration_or("none", span)?, origin);
            }
            Setting::CohortMaxHandoffs => {
                self.cohort_max_handoffs = Given::some(value.count(MOST_HANDOFFS)?, origin);
            }
            Setting::CohortMaxTime => self.cohort_max_time = duration()?,
            Setting::RestartGuard => {
                self.restart_guard = Given::some(value.choice(&GUARDS)?, origin);
            }
            Setting::RestartDelay => self.restart_delay = duration()?,
            Setting::Fencing => self.fencing = Given::some(value.flag()?, origin),
            Setting::FenceRetention => self.fence_retention = duration()?,
        }
        Ok(())
    }
}
