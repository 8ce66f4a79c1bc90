//! Settings from TOML.
//!
//! The document is walked by hand: every complaint has a line, a full key path and the nearest
//! key that is one, and no piece of the text that might hold a password.

mod keys;

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use self::keys::{NODE_KEYS, SECTIONS, unknown, unknown_of_node};
use super::error::{ConfigError, Origin};
use super::secret::Secret;
use super::setting::{NODES, Setting};
use super::value::Value;
use super::{Config, Node};

/// The longest file that is read, in bytes.
const LONGEST_FILE: u64 = 1024 * 1024;

impl Config {
    /// Settings from the text of a TOML file. Needs the feature `serde`.
    ///
    /// # Errors
    /// What is no TOML, unknown and repeated keys, values of the wrong kind or form: with line,
    /// full key path, and the key that was most likely meant.
    ///
    /// ```
    /// use quorumlock::Config;
    ///
    /// let config = Config::from_toml(
    ///     r#"
    ///     nodes = ["redis://a:6379", { url = "redis://b:6379", password_env = "B_PASSWORD" }]
    ///     ttl = "5s"
    ///     [retry]
    ///     delay = "10ms"
    ///     "#,
    /// )?;
    /// config.validate()?;
    ///
    /// let error = Config::from_toml("[retry]\ndely = \"10ms\"").unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "retry.dely (line 2): is no setting of quorumlock; did you mean retry.delay?"
    /// );
    /// # Ok::<(), quorumlock::ConfigError>(())
    /// ```
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        Reader { text, name: None }.read()
    }

    /// Settings from a TOML file. Needs the feature `serde`.
    ///
    /// # Errors
    /// As for [`Config::from_toml`], and where the file cannot be read.
    ///
    /// ```
    /// use quorumlock::Config;
    ///
    /// let file = tempfile::NamedTempFile::new()?;
    /// std::fs::write(file.path(), "nodes = [\"redis://a:6379\"]\nttl = \"5s\"\n")?;
    /// Config::from_file(file.path())?.validate()?;
    /// assert!(Config::from_file("/nowhere/quorumlock.toml").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        let name: Arc<str> = path.display().to_string().into();
        let text = read(path).map_err(|error| {
            let problem = format!("cannot be read: {error}");
            ConfigError::new("configuration file", "", problem, "").at(&Origin::File {
                name: Some(Arc::clone(&name)),
                line: None,
            })
        })?;
        Reader {
            text: &text,
            name: Some(name),
        }
        .read()
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?
        .take(LONGEST_FILE + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST_FILE {
        return Err(io::Error::other("it is longer than 1 MiB"));
    }
    Ok(text)
}

/// A text, and what to call it.
struct Reader<'a> {
    text: &'a str,
    name: Option<Arc<str>>,
}

type Item<'t, 'a> = (&'t Spanned<DeString<'a>>, &'t Spanned<DeValue<'a>>);

impl Reader<'_> {
    fn read(&self) -> Result<Config, ConfigError> {
        let document = DeTable::parse(self.text).map_err(|error| self.malformed(&error))?;
        let mut config = Config::default();
        for (key, value) in in_order(document.get_ref()) {
            let name = key.get_ref().as_ref();
            let origin = self.origin(key.span());
            // A quoted key may have a dot in it, and is a key of this level all the same.
            let setting = Setting::named(name).filter(|_| !name.contains('.'));
            if let Some(setting) = setting {
                config.set(setting, &plain(value.get_ref()), &origin)?;
            } else if name == NODES {
                config.nodes = self.nodes(value)?;
                config.nodes_origin = origin;
            } else if SECTIONS.contains(&name) {
                self.section(&mut config, name, value)?;
            } else {
                return Err(unknown(name, value.get_ref()).at(&origin));
            }
        }
        Ok(config)
    }

    fn section(
        &self,
        config: &mut Config,
        section: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), ConfigError> {
        let DeValue::Table(table) = value.get_ref() else {
            let problem = format!("is a table, and cannot be {}", kind(value.get_ref()));
            let keys: Vec<_> = Setting::ALL
                .map(Setting::name)
                .into_iter()
                .filter(|name| name.starts_with(section))
                .collect();
            let remedy = format!("set {}", keys.join(", "));
            return Err(
                ConfigError::new(section, "", problem, remedy).at(&self.origin(value.span()))
            );
        };
        for (key, value) in in_order(table) {
            let origin = self.origin(key.span());
            let name = format!("{section}.{}", key.get_ref());
            match Setting::named(&name) {
                Some(setting) => config.set(setting, &plain(value.get_ref()), &origin)?,
                None => return Err(unknown(&name, value.get_ref()).at(&origin)),
            }
        }
        Ok(())
    }

    fn nodes(&self, value: &Spanned<DeValue<'_>>) -> Result<Vec<Node>, ConfigError> {
        let DeValue::Array(items) = value.get_ref() else {
            let problem = format!("cannot be {}", kind(value.get_ref()));
            let remedy = "write a list, like nodes = [\"redis://a:6379\", \"redis://b:6379\"]";
            return Err(ConfigError::new(NODES, "", problem, remedy).at(&self.origin(value.span())));
        };
        let node = |(index, item): (usize, &Spanned<DeValue<'_>>)| match item.get_ref() {
            DeValue::String(url) => Ok(Node::url(url.as_ref()).from(self.origin(item.span()))),
            DeValue::Table(table) => self.node(index, table, self.origin(item.span())),
            other => {
                let problem = format!("cannot be {}", kind(other));
                let remedy = "write a URL in quotes, or a table with the key url";
                let error = ConfigError::new(format!("{NODES}[{index}]"), "", problem, remedy);
                Err(error.at(&self.origin(item.span())))
            }
        };
        items.iter().enumerate().map(node).collect()
    }

    fn node(&self, index: usize, table: &DeTable<'_>, origin: Origin) -> Result<Node, ConfigError> {
        let mut url = None;
        // Begun without a URL, which may stand anywhere in the table.
        let mut node = Node::url("");
        for (key, value) in in_order(table) {
            let key_origin = self.origin(key.span());
            let key = key.get_ref().as_ref();
            let name = format!("{NODES}[{index}].{key}");
            if !NODE_KEYS.contains(&key) {
                return Err(unknown_of_node(index, key).at(&key_origin));
            }
            // Whatever it is, it may be a password without its quotes: not shown.
            let DeValue::String(text) = value.get_ref() else {
                let problem = format!("cannot be {}", kind(value.get_ref()));
                let error = ConfigError::new(name, "", problem, "write it in quotes");
                return Err(error.at(&key_origin));
            };
            let text = text.as_ref();
            node = match key {
                "url" => {
                    url = Some(text);
                    node
                }
                "username" => node.username(text),
                "password" => node.password(text),
                "password_env" => node.password_env(text),
                "password_file" => node.password_file(text),
                "ca_file" => node.ca_file(text),
                "cert_file" => node.client_cert_file(text),
                _ => node.client_key_file(text),
            };
        }
        let Some(url) = url else {
            let name = format!("{NODES}[{index}].url");
            let remedy = "add url = \"redis://host:6379\"";
            return Err(ConfigError::new(name, "", "is missing", remedy).at(&origin));
        };
        node.url = Secret::new(url);
        Ok(node.from(origin))
    }

    /// What is no TOML. The parser's own display would quote the line, with whatever is on it.
    fn malformed(&self, error: &toml::de::Error) -> ConfigError {
        let span = error.span().unwrap_or(0..0);
        let origin = self.origin(span.clone());
        if error.message() == "duplicate key" {
            let name = self.repeated_key(span);
            let remedy = "keep one of the two, and one [table] for all keys of a table";
            return ConfigError::new(name, "", "is set twice", remedy).at(&origin);
        }
        ConfigError::new("TOML syntax", "", error.message(), "").at(&origin)
    }

    /// The full path of the key at `span`, as far as the lines before it tell.
    fn repeated_key(&self, span: Range<usize>) -> String {
        let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let key = self.text.get(span.clone()).unwrap_or_default();
        let before = self.text.get(..span.start).unwrap_or_default();
        let (above, line) = before.rsplit_once('\n').unwrap_or(("", before));
        let line = line.trim_start();
        if let Some(header) = line.strip_prefix('[') {
            return format!("{}{key}", header.trim_start_matches('['));
        }
        let header = above.lines().rev().find_map(|line| {
            let inside = line.trim().strip_prefix('[')?.split(']').next()?;
            let inside = inside.trim_start_matches('[').trim();
            (!inside.is_empty() && inside.chars().all(bare)).then_some(inside)
        });
        let start = match line.chars().all(bare) {
            true => line,
            false => "",
        };
        match header {
            Some(header) => format!("{header}.{start}{key}"),
            None => format!("{start}{key}"),
        }
    }

    fn origin(&self, span: Range<usize>) -> Origin {
        let before = self.text.get(..span.start).unwrap_or_default();
        Origin::File {
            name: self.name.clone(),
            line: Some(before.matches('\n').count() + 1),
        }
    }
}

/// The entries from top to bottom, so that the first mistake is the one that is reported.
fn in_order<'t, 'a>(table: &'t DeTable<'a>) -> Vec<Item<'t, 'a>> {
    let mut items: Vec<_> = table.iter().collect();
    items.sort_by_key(|(key, _)| key.span().start);
    items
}

fn plain(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.clone().into_owned()),
        DeValue::Integer(number) => {
            Value::Integer(i64::from_str_radix(number.as_str(), number.radix()).ok())
        }
        // An unreadable float cannot come out of the parser; NaN is refused wherever it goes.
        DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(_) => Value::Other("a date or time"),
        DeValue::Array(_) => Value::Other("a list"),
        DeValue::Table(_) => Value::Other("a table"),
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    plain(value).kind()
}

#[cfg(test)]
mod tests;
