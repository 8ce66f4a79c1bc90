//! Passwords: where they come from, and a type that does not print them.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The longest password file that is read, in bytes.
const LONGEST_FILE: u64 = 64 * 1024;

/// A text that no `Debug` shows; it has no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// The text itself: for the wire, never for a message.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

/// Where the password of a node is to be found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Password {
    /// The node asks for none.
    #[default]
    None,
    /// It was written down, in the URL or apart.
    Given(Secret),
    /// In the environment variable of this name.
    Env(String),
    /// In this file, but for one newline at its end.
    File(PathBuf),
}

/// Who we are at a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) username: Option<String>,
    pub(crate) password: Option<Secret>,
}

/// Why a password could not be read. Never holds any of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CredentialError {
    #[error("the environment variable {0}, named by password_env, is not set")]
    Unset(String),
    #[error("the environment variable {0}, named by password_env, is empty")]
    EmptyVariable(String),
    #[error("the environment variable {0}, named by password_env, is not UTF-8 text")]
    OddVariable(String),
    #[error("the password file {} cannot be read: {why}", file.display())]
    Unreadable { file: PathBuf, why: io::Error },
    #[error("the password file {} is empty", .0.display())]
    EmptyFile(PathBuf),
    #[error("the password file {} is not UTF-8 text", .0.display())]
    OddFile(PathBuf),
    #[error("the password file {} is longer than 64 KiB", .0.display())]
    LongFile(PathBuf),
}

impl Password {
    /// Reads the password anew, since it may have been changed meanwhile.
    pub(super) fn read(
        &self,
        variable: impl FnOnce(&str) -> Option<OsString>,
    ) -> Result<Option<Secret>, CredentialError> {
        match self {
            Password::None => Ok(None),
            Password::Given(secret) => Ok(Some(secret.clone())),
            Password::Env(name) => {
                let value =
                    variable(name).ok_or_else(|| CredentialError::Unset(name.to_owned()))?;
                let text = value
                    .into_string()
                    .map_err(|_| CredentialError::OddVariable(name.to_owned()))?;
                if text.is_empty() {
                    return Err(CredentialError::EmptyVariable(name.to_owned()));
                }
                Ok(Some(Secret(text)))
            }
            Password::File(file) => read_file(file).map(Some),
        }
    }
}

fn read_file(file: &Path) -> Result<Secret, CredentialError> {
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|open| open.take(LONGEST_FILE + 1).read_to_end(&mut bytes))
        .map_err(|why| CredentialError::Unreadable {
            file: file.to_owned(),
            why,
        })?;
    if bytes.len() as u64 > LONGEST_FILE {
        return Err(CredentialError::LongFile(file.to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|_| CredentialError::OddFile(file.to_owned()))?;
    // One newline is the editor's; more would be the password's.
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.is_empty() {
        return Err(CredentialError::EmptyFile(file.to_owned()));
    }
    Ok(Secret::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HARD: &str = "p@s/s#1%25:+=?&[é ";

    fn from_env(value: Option<&str>) -> Result<Option<Secret>, CredentialError> {
        Password::Env("PW".to_owned()).read(|name| {
            assert_eq!(name, "PW");
            value.map(OsString::from)
        })
    }

    #[test]
    fn debug_hides_the_text() {
        assert_eq!(format!("{:?}", Secret::new(HARD)), "[hidden]");
        let password = Password::Given(Secret::new(HARD));
        assert_eq!(format!("{password:?}"), "Given([hidden])");
    }

    #[test]
    fn a_variable_is_taken_byte_for_byte() {
        let secret = from_env(Some(HARD)).unwrap().unwrap();
        assert_eq!(secret.reveal(), HARD);
    }

    #[test]
    fn an_unset_or_empty_variable_is_named() {
        assert!(from_env(None).unwrap_err().to_string().contains("PW"));
        let empty = from_env(Some("")).unwrap_err().to_string();
        assert!(empty.contains("PW") && empty.contains("empty"), "{empty}");
    }

    #[test]
    fn one_newline_at_the_end_of_a_file_is_not_part_of_it() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("password");
        let password = Password::File(file.clone());
        for (content, expected) in [
            (HARD.to_owned(), HARD),
            (format!("{HARD}\n"), HARD),
            (format!("{HARD}\r\n"), HARD),
            ("two\n\n".to_owned(), "two\n"),
        ] {
            std::fs::write(&file, content).unwrap();
            let secret = password.read(|_| None).unwrap().unwrap();
            assert_eq!(secret.reveal(), expected);
        }
    }

    #[test]
    fn a_file_that_is_of_no_use_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("password");
        let password = Password::File(file.clone());
        let mut texts = vec![password.read(|_| None).unwrap_err().to_string()];
        for content in [&b"\n"[..], &b"\xff\xfe"[..], &vec![b'x'; 70_000][..]] {
            std::fs::write(&file, content).unwrap();
            texts.push(password.read(|_| None).unwrap_err().to_string());
        }
        for text in texts {
            assert!(text.contains("password"), "{text}");
            assert!(!text.contains("xxx"), "{text}");
        }
    }
}
