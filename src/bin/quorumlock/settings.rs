//! Where the settings come from: a file, over it the environment, over it the arguments.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorumlock::{Client, Config, ConfigError};

use super::args::Common;

/// The variable that names the configuration file.
const VARIABLE: &str = "QUORUMLOCK_CONFIG";

/// Why there are no settings.
pub(crate) enum Unusable {
    Config(Box<ConfigError>),
    Text(String),
}

impl From<ConfigError> for Unusable {
    fn from(error: ConfigError) -> Self {
        Unusable::Config(Box::new(error))
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unusable::Config(error) => error.fmt(f),
            Unusable::Text(text) => f.write_str(text),
        }
    }
}

/// Settings and where they were looked for.
pub(crate) struct Found {
    pub(crate) config: Config,
    pub(crate) file: Option<PathBuf>,
}

/// Reads the settings; `flags` are those of the subcommand, as (argument, setting, value).
pub(crate) fn find(
    common: &Common,
    flags: &[(&str, &str, Option<&String>)],
) -> Result<Found, Unusable> {
    let file = file(common);
    let mut config = match &file {
        Some(path) => Config::from_file(path)?,
        None => Config::default(),
    };
    config = config.with_env()?;
    if !common.node.is_empty() {
        if common.node.iter().any(|url| has_password(url)) {
            let text = "--node: a password on the command line is read by everybody on the \
                        machine; put it into the configuration file, or into QUORUMLOCK_NODES";
            return Err(Unusable::Text(text.to_owned()));
        }
        config = config.with_flag("--node", "nodes", &common.node.join(","))?;
    }
    for (flag, setting, value) in flags {
        if let Some(value) = value {
            config = config.with_flag(flag, setting, value)?;
        }
    }
    if let Err(error) = config.validate() {
        if error.setting() == "nodes" && file.is_none() {
            let places: Vec<_> = places()
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            let places = places.join(", ");
            let text = format!("{error}; or in a --node; there is no file at {places}");
            return Err(Unusable::Text(text));
        }
        return Err(error.into());
    }
    Ok(Found { config, file })
}

/// A client of the settings that were found.
pub(crate) fn client(common: &Common) -> Result<Client, Unusable> {
    Ok(Client::with_config(find(common, &[])?.config)?)
}

/// The file to read. One that was named must be there.
fn file(common: &Common) -> Option<PathBuf> {
    let named = || {
        env::var_os(VARIABLE)
            .filter(|name| !name.is_empty())
            .map(PathBuf::from)
    };
    let there = |path: &PathBuf| !matches!(path.try_exists(), Ok(false));
    common
        .config
        .clone()
        .or_else(named)
        .or_else(|| places().into_iter().find(there))
}

/// Where a file is looked for that nobody has named.
fn places() -> Vec<PathBuf> {
    let mut places = vec![PathBuf::from("quorumlock.toml")];
    let absolute = |name| {
        let path = env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let home = || absolute("HOME").map(|home| home.join(".config"));
    if let Some(base) = absolute("XDG_CONFIG_HOME").or_else(home) {
        places.push(base.join("quorumlock/quorumlock.toml"));
    }
    places.push(Path::new("/etc/quorumlock/quorumlock.toml").to_owned());
    places
}

/// Whether a URL has a password, wherever a URL can have one.
fn has_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = place.split('/').next().unwrap_or_default();
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    user.is_some_and(|user| user.contains(':'))
        || query.split('&').any(|pair| pair.starts_with("pass"))
}

/// A span of an argument that is no setting, with the errors that settings have.
pub(crate) fn span(flag: &str, text: &str) -> Result<Duration, Unusable> {
    let wrong = |problem: &str| {
        let text = format!(
            "{flag} = {text:?}: {problem}; write a number and a unit, like \"30s\" or \"1500ms\""
        );
        Unusable::Text(text)
    };
    let number = text.trim().parse::<f64>().is_ok();
    if number {
        return Err(wrong("a duration needs a unit"));
    }
    let span = humantime::parse_duration(text.trim()).map_err(|_| wrong("is no duration"))?;
    match span.subsec_nanos().is_multiple_of(1_000_000) {
        true => Ok(span),
        false => Err(wrong("is finer than a millisecond")),
    }
}

/// The effective value of a setting that is a span.
pub(crate) fn effective(config: &Config, name: &str) -> Result<Duration, Unusable> {
    let rows = config.effective()?;
    let row = rows.iter().find(|row| row.name() == name);
    let text = row.map_or("", |row| row.value().trim_matches('"'));
    humantime::parse_duration(text).map_err(|error| Unusable::Text(format!("{name}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_found_wherever_a_url_can_have_one() {
        for url in [
            "redis://:s@h",
            "redis://u:s@h:1/2",
            "rediss://u:a@b@h",
            "unix:///p?user=a&pass=s",
        ] {
            assert!(has_password(url), "{url}");
        }
        for url in ["redis://h:6379/3", "redis://u@h:1", "unix:///p?db=3", "h:1"] {
            assert!(!has_password(url), "{url}");
        }
    }

    #[test]
    fn a_span_has_a_unit() {
        assert_eq!(
            span("--grace", "1500ms").ok(),
            Some(Duration::from_millis(1500))
        );
        assert_eq!(span("--grace", "0s").ok(), Some(Duration::ZERO));
        for wrong in ["5", "-1s", "", "1ns", "1e30s", "soon"] {
            let error = span("--grace", wrong).err().map(|error| error.to_string());
            assert!(error.is_some_and(|text| text.starts_with("--grace = ")));
        }
    }
}
