//! What comes of the settings: every value as it will be used, and who gave it.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use super::duration::show;
use super::error::{ConfigError, Origin};
use super::setting::{NODES, Setting};
use super::settings::Settings;
use super::value::{GUARDS, JITTERS, Value};
use super::{Config, Given, Node};
use crate::quorum::Wait;

/// One setting as it will be used.
///
/// ```
/// use quorumlock::{Config, Origin};
///
/// let settings = Config::new(["redis://a"]).prefix("billing:").effective()?;
/// let prefix = settings.iter().find(|setting| setting.name() == "prefix").unwrap();
/// assert_eq!((prefix.value(), prefix.origin()), ("\"billing:\"", &Origin::Code));
/// # Ok::<(), quorumlock::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    name: String,
    value: String,
    origin: Origin,
}

impl Effective {
    /// Its full name, as in `retry.max_delay` or `nodes[2]`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value as a file would have it, texts in quotes. Of a node its address alone, without
    /// user and password; empty where there is none.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Who gave it. A value that follows from others, as `node_timeout` does, is a default.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }
}

impl Config {
    /// Every setting as a client of this configuration will use it, in the order of the README's
    /// table, a row for each node. Does no I/O.
    ///
    /// # Errors
    /// As for [`Config::validate`].
    ///
    /// ```
    /// use quorumlock::{Config, Origin};
    ///
    /// let config = Config::new(["redis://:secret@a:6379"]);
    /// let rows = config.effective()?;
    /// assert_eq!((rows[0].name(), rows[0].value()), ("nodes[0]", "\"a:6379\""));
    /// let timeout = rows.iter().find(|row| row.name() == "node_timeout").unwrap();
    /// assert_eq!((timeout.value(), timeout.origin()), ("\"500ms\"", &Origin::Default));
    /// # Ok::<(), quorumlock::ConfigError>(())
    /// ```
    pub fn effective(&self) -> Result<Vec<Effective>, ConfigError> {
        let settings = self.check()?;
        let node = |(index, node): (usize, &Node)| Effective {
            name: format!("{NODES}[{index}]"),
            value: quoted(node),
            origin: node.origin.clone(),
        };
        let mut rows: Vec<_> = self.nodes.iter().enumerate().map(node).collect();
        for setting in Setting::ALL {
            rows.push(Effective {
                name: setting.name().to_owned(),
                value: self.value_of(setting, &settings)?,
                origin: self.origin_of(setting),
            });
        }
        Ok(rows)
    }

    /// Replaces one setting by what an argument of a command says, as a variable of the
    /// environment would: `flag` is the argument's name for messages, `setting` the full name.
    /// `nodes` takes URLs with commas between them.
    ///
    /// # Errors
    /// A value that cannot be read, or no setting of that name.
    ///
    /// ```
    /// use quorumlock::Config;
    ///
    /// let error = Config::new(["redis://a"]).with_flag("--ttl", "ttl", "5").unwrap_err();
    /// assert!(error.to_string().starts_with("ttl = \"5\" (argument --ttl): "));
    /// ```
    pub fn with_flag(
        mut self,
        flag: &str,
        setting: &str,
        value: &str,
    ) -> Result<Self, ConfigError> {
        let origin = Origin::Flag {
            flag: Arc::from(flag),
        };
        if setting == NODES {
            let urls = value.split(',').map(str::trim);
            let nodes = urls.map(|url| Node::url(url).from(origin.clone()));
            self.nodes = nodes.collect();
            self.nodes_origin = origin;
            return Ok(self);
        }
        let Some(known) = Setting::named(setting) else {
            let error = ConfigError::new(setting, "", "is no setting of quorumlock", "");
            return Err(error.at(&origin));
        };
        self.set(known, &Value::Raw(value.to_owned()), &origin)?;
        Ok(self)
    }

    fn value_of(&self, setting: Setting, checked: &Settings) -> Result<String, ConfigError> {
        let span = |span: Duration| quoted(show(span));
        let (timing, every) = checked.terms(None, checked.auto_extend)?;
        let given = |every: &Option<Given<Duration>>| every.as_ref().map(|given| given.value);
        let (factor, margin) = checked.drift_parts();
        Ok(match setting {
            Setting::Prefix => quoted(&checked.prefix),
            Setting::Ttl => span(checked.ttl),
            Setting::MaxTtl => span(checked.max_ttl),
            Setting::Wait => match checked.wait {
                Wait::Forever => quoted("forever"),
                Wait::For(limit) => span(limit),
            },
            Setting::NodeTimeout => span(timing.node_timeout()),
            Setting::DriftFactor => factor.to_string(),
            Setting::DriftMargin => span(margin),
            Setting::MinValidity => span(checked.min_validity),
            Setting::RetryDelay => span(checked.retry.delay),
            Setting::RetryMaxDelay => span(checked.retry.max_delay),
            Setting::RetryJitter => word(&JITTERS, &self.retry_jitter),
            Setting::RetryAttempts => match checked.retry.attempts {
                None => quoted("unlimited"),
                Some(attempts) => attempts.to_string(),
            },
            Setting::CohortMaxHandoffs => checked.cohort.max_handoffs.to_string(),
            Setting::CohortMaxTime => span(checked.cohort.max_time),
            Setting::AutoExtend => checked.auto_extend.to_string(),
            Setting::ExtendEvery => {
                let every = every.or(given(&self.extend_every));
                // Derived ones may be finer than a file could say.
                let whole = |span: Duration| Duration::from_millis(whole_millis(span));
                every.map_or(String::new(), |every| span(whole(every)))
            }
            Setting::MaxHold => checked.max_hold.map_or(quoted("none"), span),
            Setting::RestartGuard => word(&GUARDS, &self.restart_guard),
            Setting::RestartDelay => span(checked.restart_delay),
            Setting::Fencing => checked.fencing.to_string(),
            Setting::FenceRetention => span(checked.fence_retention),
        })
    }

    fn origin_of(&self, setting: Setting) -> Origin {
        fn of<T>(given: &Option<Given<T>>) -> Option<&Origin> {
            given.as_ref().map(|given| &given.origin)
        }
        let origin = match setting {
            Setting::Prefix => of(&self.prefix),
            Setting::Ttl => of(&self.ttl),
            Setting::MaxTtl => of(&self.max_ttl),
            Setting::Wait => of(&self.wait),
            Setting::NodeTimeout => of(&self.node_timeout),
            Setting::DriftFactor => of(&self.drift_factor),
            Setting::DriftMargin => of(&self.drift_margin),
            Setting::MinValidity => of(&self.min_validity),
            Setting::RetryDelay => of(&self.retry_delay),
            Setting::RetryMaxDelay => of(&self.retry_max_delay),
            Setting::RetryJitter => of(&self.retry_jitter),
            Setting::RetryAttempts => of(&self.retry_attempts),
            Setting::CohortMaxHandoffs => of(&self.cohort_max_handoffs),
            Setting::CohortMaxTime => of(&self.cohort_max_time),
            Setting::AutoExtend => of(&self.auto_extend),
            Setting::ExtendEvery => of(&self.extend_every),
            Setting::MaxHold => of(&self.max_hold),
            Setting::RestartGuard => of(&self.restart_guard),
            Setting::RestartDelay => of(&self.restart_delay),
            Setting::Fencing => of(&self.fencing),
            Setting::FenceRetention => of(&self.fence_retention),
        };
        origin.cloned().unwrap_or_default()
    }
}

fn whole_millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX).max(1)
}

fn quoted(text: impl Display) -> String {
    format!("{:?}", text.to_string())
}

/// The word of a choice, or of its default.
fn word<T: Copy + Default + PartialEq>(words: &[(&str, T)], given: &Option<Given<T>>) -> String {
    let choice = given.as_ref().map(|given| given.value).unwrap_or_default();
    let found = words.iter().find(|(_, one)| *one == choice);
    quoted(found.map_or("", |(word, _)| word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_a_row_that_can_be_read_back() {
        let config = Config::new(["redis://a:6379"]).wait_forever();
        let rows = config.effective().unwrap();
        assert_eq!(rows.len(), 1 + Setting::ALL.len());
        for (row, setting) in rows[1..].iter().zip(Setting::ALL) {
            assert_eq!(row.name(), setting.name());
            let text = row.value().trim_matches('"');
            let back = config.clone().with_flag("--x", row.name(), text);
            let back = back.unwrap().effective().unwrap();
            let same = back.iter().find(|other| other.name() == row.name());
            assert_eq!(same.unwrap().value(), row.value());
            assert_eq!(same.unwrap().origin().to_string(), "argument --x");
        }
    }

    #[test]
    fn a_setting_that_is_none_is_told() {
        assert!(Config::default().with_flag("--x", "tll", "5s").is_err());
    }
}
