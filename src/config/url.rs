//! Reads the URL of a node.
//!
//! By hand, since every message must name the wrong part without repeating any of it: in a
//! malformed URL a piece of the password may stand where a host or port should be. A `+` is a
//! plus everywhere; only `%XX` stands for something else.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use super::error::Unfit;
use super::secret::Secret;

const DEFAULT_PORT: u16 = 6379;

/// What the system takes as the path of a socket, without the byte that ends it.
const LONGEST_SOCKET_PATH: usize = 107;

const FORM: &str = "write redis://host:6379, rediss://host:6379 or unix:///path";
const ENCODE: &str = "in user names and passwords write @ as %40, / as %2F, ? as %3F, # as %23, \
                      % as %25 and a space as %20, or give them apart from the URL";
const SPACE: &str = "between URLs in QUORUMLOCK_NODES put commas; in user names and passwords write a \
                     space as %20";

/// The parts of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) place: Place,
    pub(super) tls: bool,
    pub(super) database: u32,
    pub(super) username: Option<String>,
    pub(super) password: Option<Secret>,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The host is a name or an address; an IPv6 one without brackets.
    Tcp {
        host: String,
        port: u16,
    },
    Unix {
        path: PathBuf,
    },
}

impl Url {
    /// Takes a URL apart.
    ///
    /// # Errors
    /// The part that is wrong, by its kind and never by its text.
    pub(super) fn parse(text: &str) -> Result<Self, Unfit> {
        if text.is_empty() {
            return Err(Unfit::new("the URL is empty", FORM));
        }
        if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(Unfit::new("the URL has white space in it", SPACE));
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(Unfit::new("the URL has no scheme", FORM));
        };
        if rest.contains('#') {
            return Err(Unfit::new("the URL has a # in it", ENCODE));
        }
        match scheme.to_ascii_lowercase().as_str() {
            "redis" => tcp(rest, false),
            "rediss" => tcp(rest, true),
            "unix" | "redis+unix" => unix(rest),
            _ => Err(Unfit::new("the scheme of the URL is not known here", FORM)),
        }
    }
}

fn tcp(rest: &str, tls: bool) -> Result<Url, Unfit> {
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    if tail.contains('@') || authority.matches('@').count() > 1 {
        return Err(Unfit::new(
            "the user name or password in the URL is not percent-encoded",
            ENCODE,
        ));
    }
    let (user, address) = match authority.split_once('@') {
        Some((user, address)) => (Some(user), address),
        None => (None, authority),
    };
    let (username, password) = user.map(userinfo).transpose()?.unwrap_or_default();
    let (host, port) = host_and_port(address)?;
    Ok(Url {
        place: Place::Tcp { host, port },
        tls,
        database: database_of_path(tail)?,
        username,
        password,
    })
}

fn userinfo(text: &str) -> Result<(Option<String>, Option<Secret>), Unfit> {
    let (user, password) = match text.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (text, None),
    };
    let user = decode(user, "user name")?;
    let password = password.map(|text| decode(text, "password")).transpose()?;
    if user.is_empty() && password.as_ref().is_none_or(String::is_empty) {
        return Err(Unfit::new(
            "the URL has neither a user name nor a password before its @",
            "leave the @ out, or write redis://user:password@host:6379",
        ));
    }
    let user = Some(user).filter(|user| !user.is_empty());
    Ok((user, password.map(Secret::new)))
}

fn host_and_port(text: &str) -> Result<(String, u16), Unfit> {
    let (host, port) = if let Some(inside) = text.strip_prefix('[') {
        let Some((host, behind)) = inside.split_once(']') else {
            return Err(Unfit::new("the host has a [ without a ]", FORM));
        };
        if host.parse::<Ipv6Addr>().is_err() {
            return Err(Unfit::new(
                "the host in brackets is no IPv6 address",
                "write it like redis://[::1]:6379, without a zone",
            ));
        }
        let port = match behind.strip_prefix(':') {
            Some(port) => Some(port),
            None if behind.is_empty() => None,
            None => return Err(Unfit::new("the port is not set off by a colon", FORM)),
        };
        (host, port)
    } else {
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        };
        check_host(host, port)?;
        (host, port)
    };
    let port = port.map(self::port).transpose()?.unwrap_or(DEFAULT_PORT);
    Ok((host.to_owned(), port))
}

fn check_host(host: &str, port: Option<&str>) -> Result<(), Unfit> {
    if host.is_empty() {
        return Err(Unfit::new("the URL has no host", FORM));
    }
    if port.is_some_and(|port| port.contains(':')) {
        return Err(Unfit::new(
            "the host or port has a : too many",
            "write an IPv6 address in brackets, like redis://[::1]:6379",
        ));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if host.len() > 253 || !host.chars().all(allowed) {
        return Err(Unfit::new(
            "the host is neither a name nor an address",
            "write letters, digits, - and . only, and other alphabets in their xn-- form",
        ));
    }
    let numeric = host.chars().all(|c| c.is_ascii_digit() || c == '.');
    if numeric && host.parse::<Ipv4Addr>().is_err() {
        return Err(Unfit::new(
            "the host is no IPv4 address",
            "write four numbers from 0 to 255, like 127.0.0.1",
        ));
    }
    Ok(())
}

fn port(text: &str) -> Result<u16, Unfit> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(port) if digits && port > 0 => Ok(port),
        _ => Err(Unfit::new(
            "the port is not a number from 1 to 65535",
            format!("{FORM}; {ENCODE}"),
        )),
    }
}

fn database_of_path(tail: &str) -> Result<u32, Unfit> {
    let (path, query) = match tail.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (tail, None),
    };
    if query.is_some() {
        return Err(Unfit::new(
            "the URL has a query, and none is known here",
            "drop what begins with ?, and write a database as redis://host:6379/3",
        ));
    }
    match path.trim_start_matches('/') {
        "" if path.len() <= 1 => Ok(0),
        number if number.len() + 1 == path.len() => database(number),
        _ => Err(Unfit::new(
            "the path of the URL is not a database number",
            "write it like redis://host:6379/3",
        )),
    }
}

fn database(text: &str) -> Result<u32, Unfit> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|_| digits)
        .ok_or_else(|| Unfit::new("the database is not a number", "write it like /3 or ?db=3"))
}

fn unix(rest: &str) -> Result<Url, Unfit> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path = decode(path, "path")?;
    if !path.starts_with('/') || path.contains('\0') {
        return Err(Unfit::new(
            "the path of the socket is not absolute",
            "write unix:///path, with three slashes",
        ));
    }
    if path.len() > LONGEST_SOCKET_PATH {
        return Err(Unfit::new(
            "the path of the socket is longer than 107 bytes",
            "use a shorter one",
        ));
    }
    let (mut number, mut username, mut password) = (None, None, None);
    for pair in query.split('&').filter(|_| !query.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let repeated = match key {
            "db" => number.replace(database(value)?).is_some(),
            "user" => username.replace(decode(value, "user name")?).is_some(),
            "pass" => password.replace(decode(value, "password")?).is_some(),
            _ => {
                return Err(Unfit::new(
                    "the query of the URL has another parameter than db, user and pass",
                    format!("in values write & as %26; {ENCODE}"),
                ));
            }
        };
        if repeated {
            let problem = "a parameter of the URL stands there twice";
            return Err(Unfit::new(problem, "write it once, and & in values as %26"));
        }
    }
    Ok(Url {
        place: Place::Unix { path: path.into() },
        tls: false,
        database: number.unwrap_or(0),
        username: username.filter(|user: &String| !user.is_empty()),
        password: password.map(Secret::new),
    })
}

/// Replaces each `%XX` by its byte.
fn decode(text: &str, part: &str) -> Result<String, Unfit> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        match (digit(), digit()) {
            // Two hexadecimal digits fit a byte.
            (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
            _ => {
                let problem = format!("the {part} in the URL has a % without two hex digits");
                return Err(Unfit::new(problem, "write % itself as %25"));
            }
        }
    }
    String::from_utf8(bytes).map_err(|_| {
        let problem = format!("the {part} in the URL is not UTF-8 text once it is decoded");
        Unfit::new(problem, "percent-encode its UTF-8 bytes")
    })
}

#[cfg(test)]
mod tests;
