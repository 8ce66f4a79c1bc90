//! One node, checked: where it is and who we are there.

use std::env;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use super::error::Unfit;
use super::node::Node;
use super::secret::{CredentialError, Credentials, Password};
use super::url::{Place, Url};
use crate::node::connect::{Endpoint, Target, TlsFiles};
use crate::node::hook::Hooks;

/// A node that a client can connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeAddress {
    name: String,
    pub(crate) endpoint: Endpoint,
    pub(crate) database: i64,
    username: Option<String>,
    password: Password,
}

impl NodeAddress {
    /// Checks a node. Opens no file and reads no variable: what they hold may change later.
    ///
    /// # Errors
    /// What is wrong with it, without any part of a password.
    pub(super) fn of(node: &Node) -> Result<Self, Unfit> {
        let url = Url::parse(node.url.reveal())?;
        let files = tls_files(node, url.tls)?;
        let username = username(node, &url)?;
        let password = password(node, &url)?;
        if username.is_some() && password == Password::None {
            return Err(Unfit::new(
                "has a user name without a password",
                "add password, password_env or password_file; for a user that takes any \
                 password write redis://user:@host:6379",
            ));
        }
        Ok(NodeAddress {
            name: node_name(&url),
            database: i64::from(url.database),
            username,
            password,
            endpoint: match url.place {
                Place::Unix { path } => Endpoint::Unix { path },
                Place::Tcp { host, port } if url.tls => Endpoint::Tls { host, port, files },
                Place::Tcp { host, port } => Endpoint::Tcp { host, port },
            },
        })
    }

    /// `host:port` or `unix:/path`, and the database unless it is 0: for people to read.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// User name and password. Variable or file are read at each call.
    ///
    /// # Errors
    /// The variable or file that is of no use.
    pub(crate) fn credentials(&self) -> Result<Credentials, CredentialError> {
        Ok(Credentials {
            username: self.username.clone(),
            password: self.password.read(|name| env::var_os(name))?,
        })
    }

    /// Whether a password was given with the node.
    pub(super) fn has_password(&self) -> bool {
        self.password != Password::None
    }

    /// What a connection needs to know.
    pub(crate) fn target(&self, hooks: &Hooks) -> Target {
        let address = self.clone();
        let credentials = move || {
            let read = address.credentials().map_err(|error| error.to_string())?;
            let password = read.password.map(|secret| secret.reveal().to_owned());
            Ok((read.username, password))
        };
        Target {
            name: self.name.clone(),
            endpoint: self.endpoint.clone(),
            database: self.database,
            credentials: Arc::new(credentials),
            hooks: hooks.clone(),
        }
    }

    /// The same for two addresses that are plainly one server, whatever the database and the
    /// user. Names are not resolved.
    pub(super) fn server(&self) -> String {
        match &self.endpoint {
            Endpoint::Tcp { host, port } | Endpoint::Tls { host, port, .. } => {
                format!("{}:{port}", canonical(host))
            }
            // Collecting the components drops doubled slashes and "/./".
            Endpoint::Unix { path } => {
                let path: PathBuf = path.components().collect();
                format!("unix:{}", path.display())
            }
        }
    }
}

/// One spelling for each host, and one for this machine.
fn canonical(host: &str) -> String {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    match host.parse::<IpAddr>().map(|address| address.to_canonical()) {
        // Connecting to the unspecified address means this machine.
        Ok(address) if address.is_unspecified() => "localhost".to_owned(),
        Ok(IpAddr::V4(address)) if address.octets() == [127, 0, 0, 1] => "localhost".to_owned(),
        Ok(IpAddr::V6(address)) if address.is_loopback() => "localhost".to_owned(),
        Ok(address) => address.to_string(),
        Err(_) => host,
    }
}

/// How messages call the node at `url`.
pub(super) fn node_name(url: &Url) -> String {
    let mut name = match &url.place {
        Place::Tcp { host, port } if host.contains(':') => format!("[{host}]:{port}"),
        Place::Tcp { host, port } => format!("{host}:{port}"),
        Place::Unix { path } => format!("unix:{}", path.display()),
    };
    if url.database != 0 {
        name.push_str(&format!("/{}", url.database));
    }
    name
}

fn username(node: &Node, url: &Url) -> Result<Option<String>, Unfit> {
    match (&node.username, &url.username) {
        (Some(_), Some(_)) => Err(Unfit::new(
            "has a user name in the URL and another beside it",
            "give it once",
        )),
        (Some(name), None) if name.is_empty() => Err(Unfit::new(
            "has an empty user name",
            "leave it out to be the default user",
        )),
        (apart, inside) => Ok(apart.clone().or_else(|| inside.clone())),
    }
}

fn password(node: &Node, url: &Url) -> Result<Password, Unfit> {
    let given = [&url.password, &node.password]
        .into_iter()
        .flatten()
        .cloned()
        .map(Password::Given);
    let variable = node.password_env.clone().map(Password::Env);
    let file = node.password_file.clone().map(Password::File);
    let mut all = given.chain(variable).chain(file);
    let first = all.next().unwrap_or_default();
    if all.next().is_some() {
        return Err(Unfit::new(
            "has more than one password",
            "give one of: a password in the URL, password, password_env, password_file",
        ));
    }
    let empty = match &first {
        Password::None => false,
        // A user without a password of his own is asked for by `user:@` in the URL.
        Password::Given(secret) => secret.reveal().is_empty() && url.username.is_none(),
        Password::Env(name) => name.is_empty(),
        Password::File(file) => file.as_os_str().is_empty(),
    };
    if empty {
        return Err(Unfit::new(
            "has an empty password, or an empty name where one is to be found",
            "leave it out where the node asks for none",
        ));
    }
    if let Password::Env(name) = &first
        && name.contains(['=', '\0'])
    {
        return Err(Unfit::new(
            "has a password_env that cannot be the name of a variable",
            "write the name of the variable that holds the password",
        ));
    }
    Ok(first)
}

fn tls_files(node: &Node, tls: bool) -> Result<TlsFiles, Unfit> {
    let files = TlsFiles {
        ca: node.ca_file.clone(),
        certificate: node.cert_file.clone(),
        key: node.key_file.clone(),
    };
    if !tls {
        if files != TlsFiles::default() {
            return Err(Unfit::new(
                "has TLS files, but its URL asks for no TLS",
                "write rediss://, or drop ca_file, cert_file and key_file",
            ));
        }
        return Ok(files);
    }
    if !cfg!(feature = "tls") {
        return Err(Unfit::new(
            "asks for TLS, which this build does not have",
            "enable the feature `tls` of quorumlock, or write redis://",
        ));
    }
    if files.certificate.is_some() != files.key.is_some() {
        return Err(Unfit::new(
            "has only one of client certificate and key",
            "give cert_file and key_file together",
        ));
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
