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

/// How the keys of all locks begin whose resource begins with `start`: escaping works byte by
/// byte, so that the beginning of a name is the beginning of its key. They end in `}`; what stands
/// behind that is no lock.
pub(crate) fn lock_key_start(prefix: &str, start: &[u8]) -> Vec<u8> {
    let mut key = lock_key(prefix, start);
    key.pop();
    key
}

/// The resource whose lock has this key, byte for byte; `None` where no lock has it: helpers of
/// locks (`:fence`, `:label`), the marker, other prefixes.
pub(crate) fn resource_of(prefix: &str, key: &[u8]) -> Option<Vec<u8>> {
    let start = lock_key_start(prefix, b"");
    let mut rest = key.strip_prefix(&start[..])?.strip_suffix(b"}")?;
    let mut resource = Vec::with_capacity(rest.len());
    while let Some((&byte, after)) = rest.split_first() {
        let (byte, taken) = match byte {
            b'%' => match after {
                [b'7', b'B', ..] => (b'{', 3),
                [b'7', b'D', ..] => (b'}', 3),
                [b'2', b'5', ..] => (b'%', 3),
                _ => return None,
            },
            b'{' | b'}' => return None,
            other => (other, 1),
        };
        resource.push(byte);
        rest = &rest[taken..];
    }
    (!resource.is_empty()).then_some(resource)
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

    #[test]
    fn what_no_lock_has_is_no_resource() {
        let of = |key: &[u8]| resource_of("q:", key);
        assert_eq!(of(b"q:{job}").unwrap(), b"job");
        assert_eq!(of(b"q:{a%7Bb%7D%25}").unwrap(), b"a{b}%");
        for key in [
            &b"q:since"[..],
            b"q:{job}:fence",
            b"q:{job}:label",
            b"q:{}",
            b"q:{a{b}",
            b"q:{a}b}",
            b"q:{%41}",
            b"q:{%7",
            b"q:{%7}",
            b"other:{job}",
            b"",
        ] {
            assert_eq!(of(key), None, "{}", key.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn a_key_tells_its_resource_byte_for_byte(
            prefix in ".*",
            resource in prop::collection::vec(any::<u8>(), 1..30),
            cut in 0..30_usize,
        ) {
            let key = lock_key(&prefix, &resource);
            prop_assert_eq!(resource_of(&prefix, &key), Some(resource.clone()));
            let start = &resource[..cut.min(resource.len())];
            prop_assert!(key.starts_with(&lock_key_start(&prefix, start)));
            prop_assert_eq!(resource_of(&prefix, &[&key[..], b":fence"].concat()), None);
        }

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
