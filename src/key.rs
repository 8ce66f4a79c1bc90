//! Names of keys (P13).
//!
//! A lock's key is `<prefix>{<resource>}`. In both parts `{`, `}` and `%` are written as `%7B`,
//! `%7D` and `%25`, so that the braces are the only ones: whatever a name contains, different
//! names have different keys, and all keys of one lock lie in one cluster slot.

/// The longest name of a resource, in bytes.
pub(crate) const LONGEST_RESOURCE: usize = 64 * 1024;

/// The key of the lock on `resource`.
pub(crate) fn lock_key(prefix: &str, resource: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(prefix.len() + resource.len() + 2);
    escape(prefix.as_bytes(), &mut key);
    key.push(b'{');
    escape(resource, &mut key);
    key.push(b'}');
    key
}

/// The key of the marker that tells since when a node's data is there (P10).
pub(crate) fn marker_key(prefix: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(prefix.len() + 5);
    escape(prefix.as_bytes(), &mut key);
    key.extend_from_slice(b"since");
    key
}

fn escape(text: &[u8], into: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b'{' => into.extend_from_slice(b"%7B"),
            b'}' => into.extend_from_slice(b"%7D"),
            b'%' => into.extend_from_slice(b"%25"),
            other => into.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The part of a key that its cluster slot is made of.
    fn tag(key: &[u8]) -> &[u8] {
        let open = key.iter().position(|&byte| byte == b'{').unwrap();
        let close = key[open..].iter().position(|&byte| byte == b'}').unwrap();
        &key[open + 1..open + close]
    }

    #[test]
    fn plain_names_stay_as_they_are() {
        assert_eq!(lock_key("quorumlock:", b"nightly"), b"quorumlock:{nightly}");
        assert_eq!(marker_key("quorumlock:"), b"quorumlock:since");
    }

    #[test]
    fn braces_in_names_do_not_move_the_slot() {
        for name in ["job", "job{a}", "a}b{c", "{}", "{x}{y}", "é{"] {
            for prefix in ["", "p:", "{p}", "{}", "}{"] {
                let key = lock_key(prefix, name.as_bytes());
                let fence = [&key[..], b":fence"].concat();
                assert_eq!(tag(&key), tag(&fence), "{prefix} {name}");
                assert!(!tag(&key).is_empty());
            }
        }
        assert_ne!(lock_key("", b"x{a}"), lock_key("", b"y{a}"));
    }

    #[test]
    fn prefix_and_name_do_not_run_together() {
        assert_ne!(lock_key("x", b":y"), lock_key("x:", b"y"));
        assert_ne!(lock_key("", b"since"), marker_key(""));
        assert_ne!(lock_key("", b"{"), lock_key("", b"%7B"));
    }

    proptest! {
        #[test]
        fn different_names_have_different_keys(
            a in (".*", prop::collection::vec(any::<u8>(), 0..20)),
            b in (".*", prop::collection::vec(any::<u8>(), 0..20)),
        ) {
            let same = lock_key(&a.0, &a.1) == lock_key(&b.0, &b.1);
            prop_assert_eq!(same, a == b);
        }
    }
}
