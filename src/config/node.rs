//! One node as it was given.

use std::fmt;
use std::path::PathBuf;

use super::address::node_name;
use super::error::Origin;
use super::secret::Secret;
use super::url::Url;

/// One node: its URL, and what shall not stand in a URL.
///
/// The URL is `redis://[user[:password]@]host[:port][/database]`, the same with `rediss://` for
/// TLS (feature `tls`), or `unix:///path[?db=3&user=..&pass=..]`. What it says of the user and the
/// password is percent-encoded; the methods here take them as they are. A password belongs to one
/// place only: in the URL, or given here, in one of three ways.
///
/// Neither `Debug` nor `Display` shows a password.
///
/// ```
/// use quorumlock::{Config, Node};
///
/// let node = Node::url("redis://a.example:6379/3")
///     .username("locker")
///     .password("p@s/s#1%25");
/// assert_eq!(node.to_string(), "a.example:6379/3");
/// assert!(!format!("{node:?}").contains("p@s"));
/// Config::default().node(node).validate()?;
/// # Ok::<(), quorumlock::ConfigError>(())
/// ```
///
/// ```
/// use quorumlock::{Config, Node};
///
/// let by_file = Node::url("redis://a").username("locker").password_file("/run/secrets/locker");
/// let by_variable = Node::url("redis://b").password_env("LOCKER_PASSWORD");
/// Config::default().node(by_file).node(by_variable).validate()?;
/// let over_tls = Node::url("rediss://c")
///     .ca_file("/etc/ca.pem")
///     .client_cert_file("/etc/locker.pem")
///     .client_key_file("/etc/locker.key");
/// assert_eq!(Config::default().node(over_tls).validate().is_ok(), cfg!(feature = "tls"));
/// # Ok::<(), quorumlock::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct Node {
    pub(super) url: Secret,
    pub(super) username: Option<String>,
    pub(super) password: Option<Secret>,
    pub(super) password_env: Option<String>,
    pub(super) password_file: Option<PathBuf>,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) cert_file: Option<PathBuf>,
    pub(super) key_file: Option<PathBuf>,
    pub(super) origin: Origin,
}

impl Node {
    /// The node at `url`.
    ///
    /// ```
    /// use quorumlock::Node;
    ///
    /// assert_eq!(Node::url("redis://:secret@a.example/3").to_string(), "a.example:6379/3");
    /// ```
    #[must_use]
    pub fn url(url: impl Into<String>) -> Self {
        Node {
            url: Secret::new(url),
            username: None,
            password: None,
            password_env: None,
            password_file: None,
            ca_file: None,
            cert_file: None,
            key_file: None,
            origin: Origin::Code,
        }
    }

    /// The user's name, as it is.
    #[must_use]
    pub fn username(mut self, name: impl Into<String>) -> Self {
        self.username = Some(name.into());
        self
    }

    /// The password, as it is.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(Secret::new(password));
        self
    }

    /// The environment variable that holds the password. It is read anew for each connection.
    #[must_use]
    pub fn password_env(mut self, variable: impl Into<String>) -> Self {
        self.password_env = Some(variable.into());
        self
    }

    /// The file that holds the password, but for one newline at its end. It is read anew for each
    /// connection, so a changed password needs no restart.
    #[must_use]
    pub fn password_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.password_file = Some(file.into());
        self
    }

    /// A PEM file with the authorities to trust for a `rediss://` node, instead of the system's.
    #[must_use]
    pub fn ca_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(file.into());
        self
    }

    /// A PEM file with the certificate to show to a `rediss://` node. `cert_file` in TOML.
    #[must_use]
    pub fn client_cert_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.cert_file = Some(file.into());
        self
    }

    /// A PEM file with the key of that certificate. `key_file` in TOML.
    #[must_use]
    pub fn client_key_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.key_file = Some(file.into());
        self
    }

    pub(super) fn from(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }
}

impl From<&str> for Node {
    fn from(url: &str) -> Self {
        Node::url(url)
    }
}

impl From<String> for Node {
    fn from(url: String) -> Self {
        Node::url(url)
    }
}

/// Host, port and database, and nothing of a URL that cannot be read.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Url::parse(self.url.reveal()) {
            Ok(url) => f.write_str(&node_name(&url)),
            Err(_) => f.write_str("[unusable URL]"),
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Node");
        out.field("at", &format_args!("{self}"));
        if let Some(name) = &self.username {
            out.field("username", name);
        }
        if let Some(secret) = &self.password {
            out.field("password", secret);
        }
        if let Some(name) = &self.password_env {
            out.field("password_env", name);
        }
        let files = [
            ("password_file", &self.password_file),
            ("ca_file", &self.ca_file),
            ("client_cert_file", &self.cert_file),
            ("client_key_file", &self.key_file),
        ];
        for (name, file) in files {
            if let Some(file) = file {
                out.field(name, file);
            }
        }
        out.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_holds_the_place_and_no_secret() {
        let nodes = [
            Node::url("redis://user:hunter2@a:7000/3"),
            Node::url("rediss://a:7000/3").password("hunter2"),
            Node::url("redis://user:hunter2@a:port"),
        ];
        for node in nodes {
            let text = format!("{node} {node:?} {node:#?}");
            assert!(!text.contains("hunter2"), "{text}");
            assert!(
                text.contains("a:7000/3") || text.contains("unusable"),
                "{text}"
            );
        }
    }
}
