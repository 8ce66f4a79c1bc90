//! What the documents refer to is there, and what they show can be used.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages of docs/, by name.
fn pages() -> Vec<(PathBuf, String)> {
    let pages = fs::read_dir(root().join("docs")).unwrap();
    let pages = pages.map(|page| page.unwrap().path());
    let pages = pages.filter(|path| path.extension().is_some_and(|end| end == "md"));
    pages
        .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
        .collect()
}

/// The text between backticks, in pairs: what stands there, and what follows in backticks after one
/// space.
fn references(text: &str) -> Vec<(String, Option<String>)> {
    let parts: Vec<&str> = text.split('`').collect();
    let quoted = |at: usize| parts.get(at).filter(|_| at % 2 == 1);
    (1..parts.len())
        .step_by(2)
        .filter(|at| parts[*at].contains('/') && parts[*at].ends_with(".rs"))
        .map(|at| {
            let next = quoted(at + 2).filter(|_| parts[at + 1].trim().is_empty());
            (parts[at].to_owned(), next.map(|name| (*name).to_owned()))
        })
        .collect()
}

/// Every reference that leads nowhere.
fn dangling(text: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    references(text)
        .into_iter()
        .filter(|(file, function)| {
            let found = read(file);
            let has = |name: &String| {
                found
                    .as_ref()
                    .is_some_and(|text| text.contains(&format!("fn {name}(")))
            };
            found.is_none() || !function.as_ref().is_none_or(has)
        })
        .map(|(file, function)| format!("{file} {}", function.unwrap_or_default()))
        .collect()
}

/// Where the links of a text lead that stay in the repository: without what follows a `#`.
fn local_links(text: &str) -> Vec<&str> {
    let links = text.split("](").skip(1).filter_map(|rest| {
        let (target, _) = rest.split_once(')')?;
        target.split('#').next()
    });
    links
        .filter(|target| !target.is_empty() && !target.contains("://"))
        .collect()
}

/// The blocks of a text that are fenced as this language.
#[cfg(all(feature = "serde", feature = "tls"))]
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let start = format!("```{language}\n");
    let blocks = text.split(start.as_str()).skip(1);
    blocks.filter_map(|rest| rest.split("```").next()).collect()
}

/// The messages that a text quotes as log lines: `WARN the node is down`.
fn log_lines(text: &str) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    let level = |line: &'_ str| {
        ["WARN ", "INFO "]
            .iter()
            .any(|level| line.starts_with(level))
    };
    let lines = quoted.filter(|line| level(line));
    lines.map(|line| &line[5..]).collect()
}

/// All sources of the library, one after the other.
fn sources(directory: &Path) -> String {
    let entries = fs::read_dir(directory).unwrap();
    let entries = entries.map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| match path.is_dir() {
        true => sources(&path),
        false => fs::read_to_string(path).unwrap(),
    };
    entries.map(read).collect()
}

#[test]
fn every_claim_names_a_test_that_exists() {
    for (page, text) in pages() {
        let enough = if page.ends_with("guarantees.md") {
            30
        } else {
            0
        };
        assert!(
            references(&text).len() >= enough,
            "the references are not read"
        );
        let lost = dangling(&text, |file| fs::read_to_string(root().join(file)).ok());
        assert!(lost.is_empty(), "{page:?}\n{}\n", lost.join("\n"));
    }
}

#[test]
fn a_claim_without_its_test_is_caught() {
    let read = |file: &str| (file == "tests/a.rs").then(|| "fn here() {}".to_owned());
    let text = "`tests/a.rs` `here`, `tests/a.rs`, `x`; `tests/a.rs` `gone` `tests/b.rs` and `y/z`";
    assert_eq!(dangling(text, read), ["tests/a.rs gone", "tests/b.rs "]);
}

#[test]
fn every_link_leads_to_a_file() {
    assert_eq!(
        local_links("[a](b.md#c) [d](#e) [f](https://g) h"),
        ["b.md"]
    );
    let mut all = pages();
    for name in ["README.md", "DESIGN.md", "CONTRIBUTING.md", "SECURITY.md"] {
        let path = root().join(name);
        all.push((path.clone(), fs::read_to_string(path).unwrap()));
    }
    let links: usize = all.iter().map(|(_, text)| local_links(text).len()).sum();
    assert!(links > 15, "the links are not read");
    for (page, text) in all {
        let beside = page.parent().unwrap();
        for link in local_links(&text) {
            assert!(beside.join(link).exists(), "{page:?} links to {link}");
        }
    }
}

/// Every page's settings are ones that a client can be made of.
#[cfg(all(feature = "serde", feature = "tls"))]
#[test]
fn every_configuration_that_is_shown_is_accepted() {
    let mut shown = 0;
    for (page, text) in pages() {
        for block in blocks(&text, "toml") {
            let config = quorumlock::Config::from_toml(block);
            let valid = config.and_then(|config| config.validate());
            assert!(valid.is_ok(), "{page:?}: {valid:?}\n{block}");
            shown += 1;
        }
    }
    assert!(shown >= 4, "the blocks are not read");
    let wrong = blocks("x\n```toml\nttll = \"1s\"\n```\n```text\ny\n```\n", "toml");
    assert_eq!(wrong, ["ttll = \"1s\"\n"]);
    assert!(quorumlock::Config::from_toml(wrong[0]).is_err());
}

/// Each setting has its say in the page on choosing them.
#[test]
fn the_page_on_tuning_leaves_no_setting_out() {
    let text = fs::read_to_string(root().join("docs/tuning.md")).unwrap();
    let config = quorumlock::Config::new(["redis://a", "redis://b", "redis://c"]);
    for setting in config.effective().unwrap() {
        let name = setting.name();
        let spoken_of = text.contains(&format!("`{name}`"));
        assert!(spoken_of || name.starts_with("nodes"), "{name}");
    }
}

#[test]
fn every_log_line_that_is_quoted_is_one_of_ours() {
    assert_eq!(log_lines("`WARN a b` and `c` or `INFO d`"), ["a b", "d"]);
    let sources = sources(&root().join("src"));
    // A message may be broken over lines by a backslash.
    let sources = sources.replace("\\\n", "");
    let plain: String = sources.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut quoted = 0;
    for (page, text) in pages() {
        for line in log_lines(&text) {
            let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(plain.contains(&format!("\"{line}\"")), "{page:?}: {line}");
            quoted += 1;
        }
    }
    assert!(quoted >= 5, "the lines are not read");
}
