//! Mutations of a good file, each with the line and the key that it is about.

use super::*;

const GOOD: &str = r#"nodes = ["redis://a", "redis://b", "redis://c"]
ttl = "5s"

[retry]
delay = "10ms"
"#;

fn refused(text: &str) -> ConfigError {
    Config::from_toml(text).unwrap_err()
}

fn line(error: &ConfigError) -> Option<usize> {
    match error.origin() {
        Origin::File { line, .. } => *line,
        _ => None,
    }
}

#[test]
fn a_good_file_is_read() {
    let settings = Config::from_toml(GOOD).unwrap().check().unwrap();
    assert_eq!(settings.ttl.as_secs(), 5);
    assert_eq!(settings.retry.delay.as_millis(), 10);
}

#[test]
fn unknown_keys_name_line_path_and_what_was_meant() {
    for (from, to, at, path, meant) in [
        ("ttl =", "tll =", 2, "tll", "did you mean ttl?"),
        (
            "ttl = \"5s\"",
            "retry_cout = 3",
            2,
            "retry_cout",
            "did you mean retry.attempts, the key attempts below [retry]?",
        ),
        ("[retry]", "[rety]", 4, "rety", "did you mean retry?"),
        (
            "delay =",
            "dely =",
            5,
            "retry.dely",
            "did you mean retry.delay?",
        ),
        (
            "delay = \"10ms\"",
            "prefix = \"x\"",
            5,
            "retry.prefix",
            "did you mean prefix, above the first [table]?",
        ),
        (
            "delay = \"10ms\"",
            "factor = 0.1",
            5,
            "retry.factor",
            "did you mean drift.factor, the key factor below [drift]?",
        ),
        (
            "ttl =",
            "delay =",
            2,
            "delay",
            "did you mean retry.delay, the key delay below [retry]?",
        ),
        (
            "ttl =",
            "\"retry.delay\" =",
            2,
            "retry.delay",
            "did you mean retry.delay?",
        ),
        ("ttl =", "node.timeout =", 2, "node", "did you mean nodes?"),
        (
            "ttl =",
            "sky_colour_above =",
            2,
            "sky_colour_above",
            "the settings are nodes, prefix, ttl, ",
        ),
    ] {
        let error = refused(&GOOD.replacen(from, to, 1));
        assert_eq!(error.setting(), path);
        assert_eq!(line(&error), Some(at), "{error}");
        assert!(error.remedy().starts_with(meant), "{error}");
    }
}

#[test]
fn repeated_keys_name_line_and_path() {
    for (text, at, path) in [
        ("ttl = \"1s\"\nttl = \"2s\"", 2, "ttl"),
        (
            "[retry]\ndelay = \"1s\"\n# x\ndelay = \"2s\"",
            4,
            "retry.delay",
        ),
        (
            "retry.delay = \"1s\"\nretry.delay = \"2s\"",
            2,
            "retry.delay",
        ),
        ("[retry]\n[drift]\n[retry]", 3, "retry"),
        (
            "[[nodes]]\nurl = \"redis://:hunter2@a\"\nurl = \"redis://:hunter2@b\"",
            3,
            "nodes.url",
        ),
    ] {
        let error = refused(text);
        assert_eq!(error.setting(), path);
        assert_eq!(line(&error), Some(at), "{error}");
        assert_eq!(error.problem(), "is set twice");
    }
    let error = refused("nodes = [\n  { url = \"redis://:hunter2@a\", url = \"x\" }\n]");
    assert_eq!(line(&error), Some(2));
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[test]
fn wrong_kinds_name_line_and_what_to_write() {
    for (entry, path, problem) in [
        ("ttl = 30", "ttl", "a duration needs a unit"),
        ("ttl = 1.5", "ttl", "a duration needs a unit"),
        ("ttl = true", "ttl", "cannot be a boolean"),
        ("ttl = 1979-05-27", "ttl", "cannot be a date or time"),
        ("ttl = [\"1s\"]", "ttl", "cannot be a list"),
        ("ttl.x = 1", "ttl", "cannot be a table"),
        ("prefix = 3", "prefix", "cannot be a whole number"),
        ("auto_extend = \"true\"", "auto_extend", "cannot be text"),
        ("auto_extend = 1", "auto_extend", "cannot be a whole number"),
        ("drift.factor = \"0.01\"", "drift.factor", "cannot be text"),
        (
            "retry.attempts = 1.5",
            "retry.attempts",
            "cannot be a number",
        ),
        (
            "retry.attempts = nan",
            "retry.attempts",
            "cannot be a number",
        ),
        (
            "retry.attempts = -1",
            "retry.attempts",
            "cannot be negative",
        ),
        (
            "retry.attempts = 4294967296",
            "retry.attempts",
            "is more than 4294967295",
        ),
        ("retry.attempts = \"3\"", "retry.attempts", "cannot be text"),
        (
            "retry.jitter = \"Full\"",
            "retry.jitter",
            "is not one of the choices",
        ),
        (
            "restart_guard = false",
            "restart_guard",
            "cannot be a boolean",
        ),
        (
            "retry = 3",
            "retry",
            "is a table, and cannot be a whole number",
        ),
        ("nodes = \"redis://:hunter2@a\"", "nodes", "cannot be text"),
        ("nodes = [3]", "nodes[0]", "cannot be a whole number"),
        ("nodes = [\"redis://a\", { }]", "nodes[1].url", "is missing"),
        (
            "nodes = [{ url = \"redis://a\", password = 1234 }]",
            "nodes[0].password",
            "cannot be a whole number",
        ),
        (
            "nodes = [{ url = \"redis://a\", pasword = \"hunter2\" }]",
            "nodes[0].pasword",
            "is no setting of a node",
        ),
    ] {
        let error = refused(&format!("# first\n\n{entry}\n"));
        assert_eq!(error.setting(), path, "{error}");
        assert_eq!(line(&error), Some(3), "{error}");
        assert_eq!(error.problem(), problem, "{error}");
        assert!(!error.remedy().is_empty(), "{error}");
        let text = error.to_string();
        assert!(
            !text.contains("hunter2") && !text.contains("1234"),
            "{text}"
        );
    }
}

#[test]
fn what_is_no_toml_names_its_line_and_quotes_nothing() {
    for text in [
        "ttl = \"5s\"\nnodes = [\"redis://:hunter2@a\"",
        "ttl = \"5s\"\nnodes = [\"redis://:hunter2@a]",
        "ttl = \"5s\"\nredis://:hunter2@a",
        "ttl = \"5s\"\npassword = hunter2",
        "ttl = \"5s\"\n\"hunter2\\q\" = 1",
    ] {
        let error = refused(text);
        assert_eq!(error.setting(), "TOML syntax");
        assert_eq!(line(&error), Some(2), "{error}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

#[test]
fn words_stand_for_what_has_no_number() {
    let text = "wait = \"forever\"\nmax_hold = \"none\"\nretry.attempts = \"unlimited\"\n\
                retry.jitter = \"none\"\nrestart_guard = \"off\"\nnodes = [\"redis://a\"]";
    let settings = Config::from_toml(text).unwrap().check().unwrap();
    assert_eq!(settings.wait, crate::quorum::Wait::Forever);
    assert_eq!(settings.max_hold, None);
    assert_eq!(settings.retry.attempts, None);
    assert!(
        refused("wait = \"for ever\"")
            .remedy()
            .contains("\"forever\"")
    );
    assert!(refused("max_hold = \"0s\"").remedy().contains("\"none\""));
}

#[test]
fn nodes_may_be_tables_in_either_spelling() {
    let inline = "nodes = [{ url = \"redis://a/3\", username = \"a@b\", password = \"p@s\" }]";
    let blocks = "[[nodes]]\nurl = \"redis://a/3\"\nusername = \"a@b\"\npassword = \"p@s\"\n";
    for text in [inline, blocks] {
        let settings = Config::from_toml(text).unwrap().check().unwrap();
        let credentials = settings.nodes[0].credentials().unwrap();
        assert_eq!(credentials.username.as_deref(), Some("a@b"));
        assert_eq!(credentials.password.unwrap().reveal(), "p@s");
        assert_eq!(settings.nodes[0].database, 3);
    }
}

#[test]
fn a_checked_value_still_knows_its_line() {
    let text = "nodes = [\n  \"redis://a\",\n  \"redis://a:x\",\n]\n";
    let error = Config::from_toml(text).unwrap().check().unwrap_err();
    assert_eq!((error.setting(), line(&error)), ("nodes[1]", Some(3)));

    let text = "nodes = [\n  \"redis://a\",\n  { url = \"redis://a:6379\" },\n]\n";
    let error = Config::from_toml(text).unwrap().check().unwrap_err();
    assert_eq!((error.setting(), line(&error)), ("nodes[1]", Some(3)));

    let text = "[[nodes]]\nurl = \"redis://a\"\n\n[[nodes]]\nurl = \"redis://a\"\n";
    let error = Config::from_toml(text).unwrap().check().unwrap_err();
    assert_eq!((error.setting(), line(&error)), ("nodes[1]", Some(4)));

    let text = "max_ttl = \"3s\"\nnodes = [\"redis://a\"]\nttl = \"5s\"\n";
    let error = Config::from_toml(text).unwrap().check().unwrap_err();
    assert_eq!(
        error.to_string(),
        "ttl = 5s (line 3): is longer than max_ttl, which is 3s (line 1); lower ttl, or raise \
         max_ttl on every client of these nodes"
    );

    let text = "\n\nnodes = []\n";
    let error = Config::from_toml(text).unwrap().check().unwrap_err();
    assert_eq!((error.setting(), line(&error)), ("nodes", Some(3)));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".*") {
        let _ = Config::from_toml(&text);
    }

    #[test]
    fn no_near_miss_makes_it_panic(
        text in "((nodes|ttl|wait|retry|drift|delay|factor|url|\\[retry\\]|\\[\\[nodes\\]\\]) ?=? ?(\"[a-z0-9:/@]{0,9}\"|[0-9.e]{1,9}|\\{|\\[|\\]|\\})?\n){0,6}",
    ) {
        if let Err(error) = Config::from_toml(&text).and_then(|config| config.validate()) {
            proptest::prop_assert!(!error.to_string().is_empty());
        }
    }
}

const EXAMPLE: &str = include_str!("../../../quorumlock.example.toml");

/// With the names of the nodes out of the way.
fn printed(config: &Config) -> String {
    let mut settings = config.check().unwrap();
    settings.nodes.clear();
    settings.origins = Default::default();
    format!("{settings:?}")
}

#[test]
fn the_example_shows_the_defaults() {
    let example = Config::from_toml(EXAMPLE).unwrap();
    assert_eq!(example.check().unwrap().nodes.len(), 5);
    let defaults = Config::new(["redis://a"]);
    assert_eq!(printed(&example), printed(&defaults));
}

#[test]
fn what_the_example_leaves_out_is_what_would_follow() {
    let mut text = EXAMPLE.to_owned();
    for key in ["node_timeout", "extend_every", "restart_delay"] {
        assert!(text.contains(&format!("\n# {key} = ")), "{key}");
        text = text.replace(&format!("\n# {key} = "), &format!("\n{key} = "));
    }
    let explicit = Config::from_toml(&text).unwrap().check().unwrap();
    let derived = Config::from_toml(EXAMPLE).unwrap().check().unwrap();
    assert_eq!(explicit.restart_delay, derived.restart_delay);
    assert_eq!(
        explicit.timing(None).unwrap(),
        derived.timing(None).unwrap()
    );
    let every = |settings: &crate::config::Settings| settings.terms(None, true).unwrap().1.unwrap();
    assert_eq!(every(&explicit).as_millis(), every(&derived).as_millis());
}

#[test]
fn the_example_has_every_setting() {
    for setting in Setting::ALL {
        let name = setting.name();
        let key = name.rsplit('.').next().unwrap();
        let found = EXAMPLE.lines().any(|line| {
            line.trim_start_matches("# ")
                .starts_with(&format!("{key} = "))
        });
        assert!(found, "{name}");
    }
}
