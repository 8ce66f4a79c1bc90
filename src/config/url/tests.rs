//! Every part of a URL, right and wrong.

use proptest::prelude::*;

use super::*;

const USER: &str = "a@b";
const PASSWORD: &str = "p@s/s#1%25:+=?&[é ";
const ENCODED: &str = "a%40b:p%40s%2Fs%231%2525%3A%2B%3D%3F%26%5B%C3%A9%20";

fn url(text: &str) -> Url {
    Url::parse(text).unwrap_or_else(|unfit| panic!("{text}: {unfit:?}"))
}

fn place(text: &str) -> (String, u16) {
    match url(text).place {
        Place::Tcp { host, port } => (host, port),
        Place::Unix { path } => panic!("{}", path.display()),
    }
}

fn problem(text: &str) -> String {
    Url::parse(text).unwrap_err().problem
}

#[test]
fn hosts_and_ports_are_found() {
    for (text, host, port) in [
        ("redis://a", "a", 6379),
        ("REDIS://a", "a", 6379),
        ("redis://a/", "a", 6379),
        ("redis://a:7001/2", "a", 7001),
        ("redis://redis_1.local:65535", "redis_1.local", 65535),
        ("redis://127.0.0.1:1", "127.0.0.1", 1),
        ("redis://[::1]", "::1", 6379),
        ("redis://u:p@[fe80::1]:7000/3", "fe80::1", 7000),
        ("rediss://a", "a", 6379),
    ] {
        assert_eq!(place(text), (host.to_owned(), port), "{text}");
    }
    assert!(url("rediss://a").tls);
    assert!(!url("redis://a").tls);
}

#[test]
fn the_database_is_found() {
    assert_eq!(url("redis://a").database, 0);
    assert_eq!(url("redis://a/").database, 0);
    assert_eq!(url("redis://[::1]:6379/3").database, 3);
    assert_eq!(url("unix:///run/redis.sock?db=3").database, 3);
}

#[test]
fn credentials_are_decoded_byte_for_byte() {
    for text in [
        format!("redis://{ENCODED}@[::1]:6379/3"),
        // What need not be encoded may stand as it is.
        "redis://a%40b:p%40s%2fs%231%2525:+=%3f&[é%20@h".to_owned(),
        "unix:///s?user=a%40b&pass=p%40s%2Fs%231%2525:%2B=?%26[é%20".to_owned(),
        "redis+unix:///s?pass=p@s/s%231%2525:+=?%26[%C3%A9%20&user=a@b".to_owned(),
    ] {
        let url = url(&text);
        assert_eq!(url.username.as_deref(), Some(USER), "{text}");
        assert_eq!(url.password.as_ref().map(Secret::reveal), Some(PASSWORD));
    }
}

#[test]
fn user_and_password_may_stand_alone() {
    let only_user = url("redis://user@h");
    assert_eq!(only_user.username.as_deref(), Some("user"));
    assert_eq!(only_user.password, None);
    let only_password = url("redis://:word@h");
    assert_eq!(only_password.username, None);
    assert_eq!(only_password.password.unwrap().reveal(), "word");
    assert_eq!(url("redis://user:@h").password.unwrap().reveal(), "");
}

#[test]
fn the_wrong_part_is_named() {
    for (text, part) in [
        ("", "empty"),
        ("a:6379", "scheme"),
        ("http://a", "scheme"),
        ("://a", "scheme"),
        ("redis://", "no host"),
        ("redis://:6379", "no host"),
        ("redis://u:p@", "no host"),
        ("redis://a b", "white space"),
        (" redis://a", "white space"),
        ("redis://a\n", "white space"),
        ("redis://a:", "port"),
        ("redis://a:0", "port"),
        ("redis://a:65536", "port"),
        ("redis://a:+80", "port"),
        ("redis://a:port", "port"),
        ("redis://[::1]6379", "port"),
        ("redis://[::1", "host"),
        ("redis://[::g]", "host"),
        ("redis://[fe80::1%25eth0]", "host"),
        ("redis://::1:6379", "no host"),
        ("redis://fe80::1", "host or port"),
        ("redis://127.0.0.256", "host"),
        ("redis://127.1", "host"),
        ("redis://bücher", "host"),
        ("redis://a,redis://b", "host"),
        ("redis://a/x", "database"),
        ("redis://a/-1", "database"),
        ("redis://a/4294967296", "database"),
        ("redis://a//3", "path"),
        ("redis://a/3/", "database"),
        ("redis://a?protocol=resp3", "query"),
        ("redis://a/3?db=4", "query"),
        ("redis://a#frag", "#"),
        ("redis://@a", "before its @"),
        ("redis://:@a", "before its @"),
        ("redis://u:p%@a", "password"),
        ("redis://u:p%4@a", "password"),
        ("redis://u:p%zz@a", "password"),
        ("redis://u:p%+1@a", "password"),
        ("redis://u%:p@a", "user name"),
        ("redis://u:%ff@a", "UTF-8"),
        ("redis://u:p@ss@a", "percent-encoded"),
        ("redis://u:p/ss@a", "percent-encoded"),
        ("redis://u:p?ss@a", "percent-encoded"),
        ("unix://", "path"),
        ("unix://run/redis.sock", "path"),
        ("unix:///s?db=x", "database"),
        ("unix:///s?timeout=1", "parameter"),
        ("unix:///s?db=1&db=2", "twice"),
        ("unix:///s?pass=%", "password"),
        ("unix:///s%00", "path"),
    ] {
        let problem = problem(text);
        assert!(problem.contains(part), "{text}: {problem}");
    }
    let long = format!("unix:///{}", "s".repeat(107));
    assert!(problem(&long).contains("107"));
}

#[test]
fn no_message_repeats_any_of_the_password() {
    for text in [
        "redis://user:hunter2/more@a:6379",
        "redis://user:hunter2#more@a",
        "redis://user:hunter2?more@a",
        "redis://user:hunter2 more@a",
        "redis://user:hunter2@more@a",
        "redis://user:hunter2%@a",
        "redis://user:hunter2@a:port",
        "redis://user:hunter2@[::1",
        "redis://user:hunter2@a/db",
        "redis://user:hunter2",
        "unix:///s?pass=x&hunter2",
        "unix:///s?pass=hunter2&x",
        "hunter2://h",
        "hunter2",
    ] {
        let unfit = Url::parse(text).unwrap_err();
        assert!(!format!("{unfit:?}").contains("hunter2"), "{unfit:?}");
    }
}

/// Percent-encodes all but letters and digits.
fn encode(text: &str) -> String {
    let byte = |b: u8| match b {
        b if b.is_ascii_alphanumeric() => char::from(b).to_string(),
        b => format!("%{b:02X}"),
    };
    text.bytes().map(byte).collect()
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".*") {
        let _ = Url::parse(&text);
    }

    #[test]
    fn no_url_makes_it_panic(
        text in "(redis|rediss|unix|redis\\+unix)://[a-z:@/?#%\\[\\]&=0-9é ]{0,30}",
    ) {
        let _ = Url::parse(&text);
    }

    #[test]
    fn any_credentials_survive_encoding(user in ".+", password in ".*") {
        for text in [
            format!("redis://{}:{}@h", encode(&user), encode(&password)),
            format!("unix:///s?pass={}&user={}", encode(&password), encode(&user)),
        ] {
            let url = Url::parse(&text).unwrap();
            prop_assert_eq!(url.username.as_deref(), Some(user.as_str()));
            prop_assert_eq!(url.password.as_ref().map(Secret::reveal), Some(password.as_str()));
        }
    }
}
