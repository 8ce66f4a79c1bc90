//! Settings from environment variables.

use std::env;
use std::ffi::OsString;

use super::error::{ConfigError, Origin};
use super::setting::{self, ENV_PREFIX, NODES, Setting};
use super::value::Value;
use super::{Config, Node};

const NODES_VARIABLE: &str = "QUORUMLOCK_NODES";

/// Variables of the command, its children and the project's own scripts: no settings, no errors.
const IGNORED: [&str; 6] = [
    "QUORUMLOCK_CONFIG",
    "QUORUMLOCK_RESOURCE",
    "QUORUMLOCK_FENCING_TOKEN",
    "QUORUMLOCK_SERVER",
    "QUORUMLOCK_INSTALL",
    "QUORUMLOCK_FULL",
];

/// The same, by how their names begin.
const IGNORED_PREFIXES: [&str; 3] = [
    "QUORUMLOCK_CLUSTER",
    "QUORUMLOCK_DEMO",
    "QUORUMLOCK_POSTGRES",
];

impl Config {
    /// The settings of the environment alone; see [`Config::with_env`].
    ///
    /// # Errors
    /// As for [`Config::with_env`], and where `QUORUMLOCK_NODES` is not set.
    ///
    /// ```
    /// use quorumlock::Config;
    ///
    /// let has_nodes = std::env::var_os("QUORUMLOCK_NODES").is_some();
    /// assert_eq!(Config::from_env().is_ok(), has_nodes);
    /// ```
    pub fn from_env() -> Result<Self, ConfigError> {
        let config = Config::default().with_env()?;
        if config.nodes.is_empty() {
            let problem = "no node is given, since QUORUMLOCK_NODES is not set";
            let remedy = "set it to the URLs of all nodes, with commas between them";
            return Err(ConfigError::new(NODES, "", problem, remedy).at(&Origin::Default));
        }
        Ok(config)
    }

    /// Replaces what the environment sets.
    ///
    /// The variable of a setting is `QUORUMLOCK_` and its name in capitals, with `_` for the dot:
    /// `QUORUMLOCK_TTL=5s`, `QUORUMLOCK_RETRY_MAX_DELAY=200ms`. `QUORUMLOCK_NODES` holds the URLs
    /// of all nodes with commas between them; a comma in a password is written `%2C`.
    ///
    /// Not read, and no errors: `QUORUMLOCK_CONFIG`, `QUORUMLOCK_RESOURCE`,
    /// `QUORUMLOCK_FENCING_TOKEN`, `QUORUMLOCK_SERVER`, `QUORUMLOCK_INSTALL`, `QUORUMLOCK_FULL`,
    /// what begins with `QUORUMLOCK_CLUSTER`, `QUORUMLOCK_DEMO` or `QUORUMLOCK_POSTGRES`, and what
    /// a node names as its `password_env`.
    ///
    /// # Errors
    /// A value that cannot be read, or any other variable that begins with `QUORUMLOCK_`.
    ///
    /// ```
    /// use quorumlock::Config;
    ///
    /// // What code says, unless the environment says otherwise.
    /// let config = Config::new(["redis://a", "redis://b", "redis://c"]).with_env()?;
    /// config.validate()?;
    /// # Ok::<(), quorumlock::ConfigError>(())
    /// ```
    pub fn with_env(self) -> Result<Self, ConfigError> {
        let mut variables = Vec::new();
        for (name, value) in env::vars_os() {
            if let Some(pair) = own_variable(name, value)? {
                variables.push(pair);
            }
        }
        self.with_vars(variables)
    }

    /// [`Config::with_env`] with these variables instead of the process's.
    ///
    /// # Errors
    /// As for [`Config::with_env`].
    ///
    /// ```
    /// use quorumlock::Config;
    ///
    /// let vars = |name: &str, value: &str| [(name.to_owned(), value.to_owned())];
    /// let config = Config::new(["redis://a"]);
    /// config.clone().with_vars(vars("QUORUMLOCK_TTL", "5s"))?.validate()?;
    ///
    /// let error = config.with_vars(vars("QUORUMLOCK_TLL", "5s")).unwrap_err();
    /// assert_eq!(error.remedy(), "did you mean QUORUMLOCK_TTL?");
    /// # Ok::<(), quorumlock::ConfigError>(())
    /// ```
    pub fn with_vars(
        mut self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        // The names in use before, too: a list from the environment replaces those nodes.
        let passwords: Vec<String> = self
            .nodes
            .iter()
            .filter_map(|node| node.password_env.clone())
            .collect();
        for (name, value) in variables {
            if !name.starts_with(ENV_PREFIX) || ignored(&name) || passwords.contains(&name) {
                continue;
            }
            let origin = Origin::env(name.as_str());
            if name == NODES_VARIABLE {
                self.nodes = value
                    .split(',')
                    .map(|url| Node::url(url.trim()).from(origin.clone()))
                    .collect();
                self.nodes_origin = origin;
                continue;
            }
            let known = Setting::ALL
                .into_iter()
                .find(|it| setting::variable(it.name()) == name);
            match known {
                Some(setting) => self.set(setting, &Value::Raw(value), &origin)?,
                None => return Err(unknown(&name)),
            }
        }
        Ok(self)
    }
}

fn ignored(name: &str) -> bool {
    let begins = |prefix: &&str| name.starts_with(*prefix);
    IGNORED.contains(&name) || IGNORED_PREFIXES.iter().any(begins)
}

/// A variable of the process, if its name says that it is ours.
fn own_variable(name: OsString, value: OsString) -> Result<Option<(String, String)>, ConfigError> {
    let Some(text) = name.to_str() else {
        let lossy = name.to_string_lossy();
        return match lossy.starts_with(ENV_PREFIX) {
            true => Err(unknown(&lossy)),
            false => Ok(None),
        };
    };
    if !text.starts_with(ENV_PREFIX) || ignored(text) {
        return Ok(None);
    }
    match value.into_string() {
        Ok(value) => Ok(Some((text.to_owned(), value))),
        Err(_) => {
            let error = ConfigError::new(text, "", "is not UTF-8 text", "set it to text");
            Err(error.at(&Origin::env(text)))
        }
    }
}

/// Its value is not shown: nobody knows what it is.
fn unknown(name: &str) -> ConfigError {
    let tail = name.strip_prefix(ENV_PREFIX).unwrap_or(name);
    let remedy = match setting::nearest(&tail.to_ascii_lowercase()) {
        Some(near) => format!("did you mean {}?", setting::variable(near)),
        None => format!("unset it, or set one of {}", all_variables()),
    };
    ConfigError::new(name, "", "is no setting of quorumlock", remedy).at(&Origin::env(name))
}

fn all_variables() -> String {
    let names = [NODES].into_iter().chain(Setting::ALL.map(Setting::name));
    names.map(setting::variable).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn bytes_that_are_no_text_are_an_error_only_in_what_is_ours() {
        use std::os::unix::ffi::OsStringExt;

        let odd = || OsString::from_vec(vec![b'x', 0xFF]);
        assert_eq!(own_variable("OTHER".into(), odd()).unwrap(), None);
        assert_eq!(own_variable(odd(), "x".into()).unwrap(), None);
        let error = own_variable("QUORUMLOCK_PREFIX".into(), odd()).unwrap_err();
        assert_eq!(error.setting(), "QUORUMLOCK_PREFIX");
        let mut name = b"QUORUMLOCK_TTL".to_vec();
        name.push(0xFF);
        assert!(own_variable(OsString::from_vec(name), "x".into()).is_err());
    }
}
