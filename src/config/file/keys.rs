//! The keys of a file beside the settings themselves, and what to say of one that is none.

use toml::de::DeValue;

use crate::config::error::ConfigError;
use crate::config::setting::{self, NODES, Setting, flat, near};

/// The tables of a file.
pub(super) const SECTIONS: [&str; 3] = ["drift", "retry", "cohort"];

/// The keys of one node's table.
pub(super) const NODE_KEYS: [&str; 8] = [
    "url",
    "username",
    "password",
    "password_env",
    "password_file",
    "ca_file",
    "cert_file",
    "key_file",
];

/// The complaint about `name`, a full path, whose value is `value`.
pub(super) fn unknown(name: &str, value: &DeValue<'_>) -> ConfigError {
    let section = match value {
        DeValue::Table(_) => nearest_section(name),
        _ => None,
    };
    let remedy = match section.or_else(|| setting::nearest(name)) {
        Some(near) => match (near.split_once('.'), name.split_once('.')) {
            (Some((table, key)), wrong) if wrong.is_none_or(|(other, _)| other != table) => {
                format!("did you mean {near}, the key {key} below [{table}]?")
            }
            (None, Some(_)) => format!("did you mean {near}, above the first [table]?"),
            _ => format!("did you mean {near}?"),
        },
        None => {
            let all: Vec<_> = Setting::ALL.map(Setting::name).into();
            format!("the settings are {NODES}, {}", all.join(", "))
        }
    };
    ConfigError::new(name, "", "is no setting of quorumlock", remedy)
}

/// The complaint about a key of a node's table.
pub(super) fn unknown_of_node(index: usize, key: &str) -> ConfigError {
    let remedy = match nearest_node_key(key) {
        Some(near) => format!("did you mean {NODES}[{index}].{near}?"),
        None => format!("the keys of a node are {}", NODE_KEYS.join(", ")),
    };
    let name = format!("{NODES}[{index}].{key}");
    ConfigError::new(name, "", "is no setting of a node", remedy)
}

/// The table that was most likely meant by `wrong`.
fn nearest_section(wrong: &str) -> Option<&'static str> {
    let sections = SECTIONS.into_iter().chain([NODES]);
    near(&flat(wrong), sections.map(|name| (name.to_owned(), name)))
}

/// The key of a node's table that was most likely meant by `wrong`.
fn nearest_node_key(wrong: &str) -> Option<&'static str> {
    const ALSO: [(&str, &str); 6] = [
        ("user", "username"),
        ("pass", "password"),
        ("address", "url"),
        ("uri", "url"),
        ("client_cert_file", "cert_file"),
        ("client_key_file", "key_file"),
    ];
    let known = NODE_KEYS.into_iter().map(|key| (key, key)).chain(ALSO);
    near(
        &flat(wrong),
        known.map(|(called, key)| (called.to_owned(), key)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_what_was_meant() {
        assert_eq!(nearest_section("rety"), Some("retry"));
        assert_eq!(nearest_section("node"), Some("nodes"));
        assert_eq!(nearest_node_key("pasword"), Some("password"));
        assert_eq!(nearest_node_key("colour"), None);
    }
}
