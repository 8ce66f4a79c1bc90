//! House rules that no compiler checks: which module may import which, what the pure core may
//! touch, how long files and functions get, and what may not be committed.
//!
//! Every checker is a function over text. Beside it stands a test that plants an offence and sees it
//! caught, since a check that cannot fail is worth nothing.

#[path = "tidy/source.rs"]
mod source;

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use source::{Source, is_path_char};

/// The modules under `src/` from the outside in. A module may import those with a larger rank, and
/// itself. Equal ranks never see each other.
const RANKS: &[(&str, u32)] = &[
    ("bin", 0),
    ("blocking", 1),
    ("check", 1),
    ("fence", 1),
    ("inspect", 1),
    ("sim", 1),
    ("testing", 1),
    ("client", 2),
    ("lock", 3),
    ("guard", 4),
    ("ticket", 5),
    ("engine", 5),
    ("keeper", 6),
    ("queue", 7),
    ("coordinator", 8),
    ("error", 9),
    ("config", 10),
    ("status", 10),
    ("key", 11),
    ("quorum", 11),
    ("node", 11),
    ("clock", 12),
    ("hash", 12),
    ("metrics", 12),
    ("text", 12),
];

/// Modules that may import nothing but these paths, whatever their rank says.
const ONLY: &[(&str, &[&str])] = &[("quorum", &["clock::Instant"]), ("clock", &[])];

/// The crate's root only puts the modules together.
const ROOT_FILE: &str = "src/lib.rs";

/// What the pure core may not name, be it by path or by `use`.
const IMPURE: &[&str] = &[
    "std::time::Instant",
    "std::time::SystemTime",
    "std::net",
    "std::thread",
    "std::io",
    "std::env",
    "std::fs",
    "std::process",
    "tokio",
    "redis",
    "rand",
    "getrandom",
];

const MAX_FILE_LINES: usize = 320;
const MAX_FUNCTION_LINES: usize = 70;

/// Calls that end the process's thread, and the comment that says why one cannot happen.
const PANICS: &[&str] = &[".unwrap()", ".expect(", "panic!("];
const EXCUSE: &str = "// invariant:";

/// Split, so that this file does not offend itself.
const UNFINISHED_CALLS: &[&str] = &[concat!("to", "do!("), concat!("unimpl", "emented!(")];
const UNFINISHED_WORDS: &[&str] = &[concat!("FIX", "ME"), concat!("X", "XX")];
const MACHINE_PATHS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/Us", "ers/"),
];

/// One breach of one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Offence {
    file: String,
    line: usize,
    rule: String,
}

impl Offence {
    fn new(file: &str, line: usize, rule: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line,
            rule: rule.into(),
        }
    }
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.rule)
    }
}

// --- checkers ---------------------------------------------------------------------------------

fn check_imports(file: &str, text: &str) -> Vec<Offence> {
    if file == ROOT_FILE {
        return Vec::new();
    }
    let Some(module) = module_of(file) else {
        return Vec::new();
    };
    let Some(rank) = rank_of(module) else {
        let rule = format!("import order: module `{module}` has no rank in tests/tidy.rs");
        return vec![Offence::new(file, 1, rule)];
    };
    let source = Source::parse(text);
    let mut found = Vec::new();
    for path in source.crate_paths(depth_of(file)) {
        let Some(target) = path.segments.first() else {
            continue;
        };
        if target == module {
            continue;
        }
        let whole = path.segments.join("::");
        let only = ONLY.iter().find(|(name, _)| *name == module);
        let rule = match (rank_of(target), only) {
            (None, _) => format!(
                "import order: `crate::{whole}` names no ranked module; name the module that \
                 defines the item, or give a new module a rank in tests/tidy.rs"
            ),
            (Some(_), Some((_, allowed))) if allowed.iter().any(|a| is_under(&whole, a)) => {
                continue;
            }
            (Some(_), Some((_, allowed))) => format!(
                "import order: `{module}` is a leaf and may import only {allowed:?}, not \
                 `crate::{whole}`"
            ),
            (Some(other), None) if other > rank => continue,
            (Some(_), None) => format!(
                "import order: `{module}` may not import `{target}` (`crate::{whole}`); imports \
                 run inward"
            ),
        };
        found.push(Offence::new(file, path.line, rule));
    }
    found
}

fn check_purity(file: &str, text: &str) -> Vec<Offence> {
    if module_of(file) != Some("quorum") {
        return Vec::new();
    }
    let source = Source::parse(text);
    let mut found = Vec::new();
    for path in source.outside_paths() {
        let whole = path.segments.join("::");
        // Any clock: our own `Instant` may be compared here, but not read.
        let reads_clock = whole.ends_with("Instant::now") || whole.ends_with("SystemTime::now");
        let impure = IMPURE.iter().find(|bad| brings_in(&whole, bad));
        if let Some(bad) = impure.copied().or(reads_clock.then_some("now()")) {
            let rule = format!("purity: quorum/ may not use `{bad}`; let the caller pass it in");
            found.push(Offence::new(file, path.line, rule));
        }
    }
    found
}

fn check_length(file: &str, text: &str) -> Vec<Offence> {
    let source = Source::parse(text);
    let mut found = Vec::new();
    let lines = source.lines_outside_tests();
    if lines > MAX_FILE_LINES {
        let rule = format!("length: {lines} lines without the tests, {MAX_FILE_LINES} at most");
        found.push(Offence::new(file, 1, rule));
    }
    for function in source.functions() {
        if function.lines > MAX_FUNCTION_LINES {
            let rule = format!(
                "length: fn {} has {} lines, {MAX_FUNCTION_LINES} at most",
                function.name, function.lines
            );
            found.push(Offence::new(file, function.line, rule));
        }
    }
    found
}

fn check_panics(file: &str, text: &str) -> Vec<Offence> {
    let source = Source::parse(text);
    let raw: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (index, code) in source.code_lines().enumerate() {
        let excused = raw[index].contains(EXCUSE)
            || (index > 0 && raw[index - 1].trim_start().starts_with(EXCUSE));
        if excused {
            continue;
        }
        for call in PANICS.iter().filter(|call| contains_call(&code, call)) {
            let rule = format!("panic: `{call}` needs a `{EXCUSE}` comment, or an error instead");
            found.push(Offence::new(file, index + 1, rule));
        }
    }
    found
}

fn check_leftovers(file: &str, text: &str) -> Vec<Offence> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let calls = UNFINISHED_CALLS
            .iter()
            .filter(|call| contains_call(line, call));
        let words = UNFINISHED_WORDS
            .iter()
            .filter(|word| contains_word(line, word));
        for what in calls.chain(words) {
            let rule = format!("unfinished: `{what}`; finish it or file an issue");
            found.push(Offence::new(file, index + 1, rule));
        }
        for path in MACHINE_PATHS
            .iter()
            .filter(|path| contains_absolute(line, path))
        {
            let rule = format!("machine path: `{path}` exists on somebody's machine only");
            found.push(Offence::new(file, index + 1, rule));
        }
    }
    found
}

fn check_lua(file: &str, text: &str) -> Vec<Offence> {
    if text.starts_with("--") {
        return Vec::new();
    }
    vec![Offence::new(
        file,
        1,
        "script: a Lua file opens with a comment that says what it does",
    )]
}

/// A planted fault is a patch: what it takes away must be there, or nobody notices that it is not
/// planted any more.
fn check_patch(file: &str, text: &str, read: impl Fn(&str) -> Option<String>) -> Vec<Offence> {
    let (mut target, mut hunks) = (String::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        if let Some(path) = line.strip_prefix("--- a/") {
            target = read(path).unwrap_or_default();
        } else if line.starts_with("@@") {
            hunks.push((number + 1, target.clone(), String::new()));
        } else if let (Some(old), Some((.., hunk))) =
            (line.strip_prefix([' ', '-']), hunks.last_mut())
            && !line.starts_with("---")
        {
            *hunk += old;
            *hunk += "\n";
        }
    }
    let stale = |(_, target, old): &(usize, String, String)| !target.contains(old.as_str());
    let stale: Vec<usize> = hunks
        .iter()
        .filter(|hunk| stale(hunk))
        .map(|hunk| hunk.0)
        .collect();
    let rule = "planted fault: what this takes away is not in the source any more";
    let mut offences: Vec<Offence> = stale
        .iter()
        .map(|&line| Offence::new(file, line, rule))
        .collect();
    if hunks.is_empty() {
        offences.push(Offence::new(file, 1, "planted fault: no patch"));
    }
    offences
}

// --- helpers of the checkers ------------------------------------------------------------------

/// `src/node/redis.rs` → `node`, `src/lock.rs` → `lock`.
fn module_of(file: &str) -> Option<&str> {
    let inside = file.strip_prefix("src/")?;
    let first = inside.split('/').next()?;
    Some(first.strip_suffix(".rs").unwrap_or(first))
}

/// How many `super::` lead from this file to the crate's root.
fn depth_of(file: &str) -> usize {
    let inside = file.strip_prefix("src/").unwrap_or(file);
    inside.split('/').count() - usize::from(inside.ends_with("/mod.rs"))
}

fn rank_of(module: &str) -> Option<u32> {
    RANKS
        .iter()
        .find(|(name, _)| *name == module)
        .map(|(_, rank)| *rank)
}

/// `a::b::c` is under `a::b` and under itself; `a::bc` is not.
fn is_under(path: &str, parent: &str) -> bool {
    path.strip_prefix(parent)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// `a::*` brings in `a::b` as well.
fn brings_in(path: &str, item: &str) -> bool {
    is_under(path, item)
        || path
            .strip_suffix("::*")
            .is_some_and(|opened| is_under(item, opened))
}

/// The call stands here under its own name: `debug_panic!(` is not `panic!(`.
fn contains_call(line: &str, call: &str) -> bool {
    let bare = !call.starts_with('.');
    line.match_indices(call)
        .any(|(at, _)| !(bare && line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')))
}

fn contains_word(line: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(inside) && !line[at + word.len()..].starts_with(inside)
    })
}

/// The path begins here, rather than going on from something as in `https://host/home/`.
fn contains_absolute(line: &str, path: &str) -> bool {
    line.match_indices(path)
        .any(|(at, _)| !line[..at].ends_with(is_path_char))
}

// --- the repository ---------------------------------------------------------------------------

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files that belong to the project: what git knows or would add, so that a new file is checked
/// before its first commit. Without git (an unpacked archive): everything but build output.
fn project_files() -> Vec<String> {
    let git = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root())
        .output();
    let mut files: Vec<String> = match git {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout)
            .split_terminator('\0')
            .filter(|file| root().join(file).is_file())
            .map(str::to_owned)
            .collect(),
        _ => walk(root()),
    };
    files.sort();
    files.dedup();
    files
}

fn walk(top: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut open: Vec<PathBuf> = vec![top.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "target" && name != ".git" {
                    open.push(path);
                }
            } else {
                let inside = path.strip_prefix(top).unwrap();
                files.push(inside.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    files
}

fn read(file: &str) -> Option<String> {
    String::from_utf8(fs::read(root().join(file)).unwrap()).ok()
}

/// The library's and the command's own Rust files, without those that hold only tests.
fn sources() -> Vec<(String, String)> {
    let all: Vec<(String, String)> = project_files()
        .into_iter()
        .filter(|file| file.starts_with("src/") && file.ends_with(".rs"))
        .map(|file| {
            let text = read(&file).unwrap();
            (file, text)
        })
        .collect();
    assert!(
        all.iter().any(|(file, _)| file == ROOT_FILE),
        "the sources were not found"
    );
    let tests: BTreeSet<String> = all
        .iter()
        .flat_map(|(file, text)| {
            let stem = module_directory(file);
            Source::parse(text)
                .test_modules()
                .into_iter()
                .map(move |m| format!("{stem}/{m}"))
        })
        .collect();
    all.into_iter()
        .filter(|(file, _)| {
            let path = file.strip_suffix(".rs").unwrap();
            !tests
                .iter()
                .any(|t| path == t || path.starts_with(&format!("{t}/")))
        })
        .collect()
}

/// Where the files of this file's submodules are.
fn module_directory(file: &str) -> String {
    let path = file.strip_suffix(".rs").unwrap_or(file);
    for own in ["/mod", "/lib", "/main"] {
        if let Some(directory) = path.strip_suffix(own) {
            return directory.to_owned();
        }
    }
    path.to_owned()
}

fn assert_none(offences: &[Offence]) {
    let list: Vec<String> = offences.iter().map(Offence::to_string).collect();
    assert!(list.is_empty(), "\n{}\n", list.join("\n"));
}

fn check_sources(check: fn(&str, &str) -> Vec<Offence>) {
    let offences: Vec<Offence> = sources()
        .iter()
        .flat_map(|(file, text)| check(file, text))
        .collect();
    assert_none(&offences);
}

#[test]
fn imports_run_inward() {
    check_sources(check_imports);
}

#[test]
fn the_core_is_pure() {
    check_sources(check_purity);
}

#[test]
fn files_and_functions_are_short() {
    check_sources(check_length);
}

#[test]
fn the_library_does_not_panic() {
    check_sources(check_panics);
}

#[test]
fn nothing_is_left_unfinished_and_no_machine_is_named() {
    let files = project_files();
    assert!(
        files.iter().any(|file| file == "Cargo.toml"),
        "the project's files were not found"
    );
    let offences: Vec<Offence> = files
        .iter()
        .filter_map(|file| Some((file, read(file)?)))
        .flat_map(|(file, text)| check_leftovers(file, &text))
        .collect();
    assert_none(&offences);
}

#[test]
fn lua_scripts_open_with_a_comment() {
    let offences: Vec<Offence> = project_files()
        .iter()
        .filter(|file| file.ends_with(".lua"))
        .flat_map(|file| check_lua(file, &read(file).unwrap()))
        .collect();
    assert_none(&offences);
}

#[test]
fn planted_faults_fit_the_source() {
    let files = project_files();
    let patches: Vec<&String> = files
        .iter()
        .filter(|file| file.ends_with(".patch"))
        .collect();
    assert!(patches.len() > 25, "the planted faults were not found");
    let offences: Vec<Offence> = patches
        .iter()
        .flat_map(|file| check_patch(file, &read(file).unwrap(), read))
        .collect();
    assert_none(&offences);
}

// --- each checker catches what it is for ------------------------------------------------------

mod planted {
    use super::*;

    /// The lines on which a checker found something.
    fn lines(offences: &[Offence]) -> Vec<usize> {
        offences.iter().map(|offence| offence.line).collect()
    }

    #[test]
    fn an_import_against_the_order_is_caught_in_every_spelling() {
        for (file, text) in [
            ("src/node/redis.rs", "use crate::coordinator::Round;\n"),
            (
                "src/node/redis.rs",
                "use crate::{clock::Instant, lock::Lock};\n",
            ),
            (
                "src/node/redis.rs",
                "use crate::{\n    clock::Instant,\n    lock::Lock,\n};\n",
            ),
            (
                "src/node/redis.rs",
                "fn f() {\n    crate::client::open();\n}\n",
            ),
            ("src/node/redis.rs", "use super::super::guard::Guard;\n"),
            ("src/node/mod.rs", "use super::quorum::round;\n"),
            ("src/lock.rs", "use super::client::Client;\n"),
            ("src/lock.rs", "use super::{client, guard};\n"),
            ("src/config.rs", "use crate::error::Loss;\n"),
            (
                "src/keeper.rs",
                "pub(in crate::keeper) fn f(_: crate::guard::Guard) {}\n",
            ),
            ("src/lock.rs", "use crate::*;\n"),
            ("src/lock.rs", "use crate::Client;\n"),
            ("src/nowhere.rs", "fn f() {}\n"),
        ] {
            assert_eq!(check_imports(file, text).len(), 1, "{file}: {text}");
        }
    }

    #[test]
    fn the_two_leaves_never_see_each_other() {
        for (file, text) in [
            ("src/quorum/round.rs", "use crate::node::Node;\n"),
            ("src/node/mod.rs", "use crate::quorum::round::Round;\n"),
            ("src/quorum/round.rs", "use crate::clock::BootClock;\n"),
            ("src/quorum/round.rs", "use crate::clock::*;\n"),
            ("src/quorum/round.rs", "use crate::config::Config;\n"),
            ("src/clock.rs", "use crate::node::Node;\n"),
        ] {
            assert_eq!(check_imports(file, text).len(), 1, "{file}: {text}");
        }
    }

    #[test]
    fn imports_along_the_order_pass() {
        for (file, text) in [
            (
                "src/client.rs",
                "use crate::{config::Config, coordinator::{self, Round}};\n",
            ),
            (
                "src/quorum/round.rs",
                "use super::timing::Timing;\nuse crate::clock::Instant;\n",
            ),
            ("src/quorum/round.rs", "use crate::quorum::lease;\n"),
            (
                "src/node/redis.rs",
                "use super::*;\nuse crate::clock::Clock;\n",
            ),
            (
                "src/node/redis.rs",
                "// crate::lock\n/* crate::lock::Lock */ fn f() {}\n",
            ),
            (
                "src/node/redis.rs",
                "fn f() -> &'static str { \"crate::lock::Lock\" }\n",
            ),
            ("src/lib.rs", "pub use crate::lock::Lock;\n"),
            (
                "src/node/mod.rs",
                "#[cfg(test)]\nmod tests {\n    use crate::lock::Lock;\n}\n",
            ),
            ("src/node/mod.rs", "pub(crate) fn f() {}\n"),
        ] {
            assert_none(&check_imports(file, text));
        }
    }

    #[test]
    fn a_test_attribute_hides_its_own_item_and_nothing_after_it() {
        let text = "#[cfg(test)]\nuse crate::lock::Lock;\nuse crate::client::Client;\n";
        assert_eq!(lines(&check_imports("src/node/mod.rs", text)), [3]);
        let text = "#[cfg(test)]\nmod tests {\n    fn f() {}\n}\nfn g() { x.unwrap(); }\n";
        assert_eq!(lines(&check_panics("src/lock.rs", text)), [5]);
    }

    #[test]
    fn an_impure_core_is_caught() {
        for text in [
            "use std::time::{Duration, Instant};\n",
            "use std::time::*;\n",
            "use std::{collections::BTreeMap, thread};\n",
            "fn f() { std::env::var(\"A\"); }\n",
            "fn f() { tokio::spawn(async {}); }\n",
            "use redis::Value;\n",
            "use rand::Rng;\n",
            "fn f() { ::getrandom::fill(&mut []); }\n",
            "use std::io;\n",
            "use std::net::IpAddr;\n",
            "fn f() -> std::time::SystemTime { loop {} }\n",
            "use crate::clock::Instant;\nfn f() { Instant::now(); }\n",
        ] {
            assert_eq!(check_purity("src/quorum/round.rs", text).len(), 1, "{text}");
        }
    }

    #[test]
    fn a_pure_core_passes_and_other_modules_may_be_impure() {
        let text = "use std::time::Duration;\nuse std::iter;\nfn f(strand: u8, redish: u8) {}\n";
        assert_none(&check_purity("src/quorum/round.rs", text));
        assert_none(&check_purity(
            "src/node/redis.rs",
            "use tokio::net::TcpStream;\n",
        ));
        let text = "#[cfg(test)]\nmod tests {\n    use std::time::Instant;\n}\n";
        assert_none(&check_purity("src/quorum/round.rs", text));
    }

    #[test]
    fn a_long_file_is_caught_and_its_tests_do_not_count() {
        let most = "// x\n".repeat(MAX_FILE_LINES);
        let tests = format!(
            "#[cfg(test)]\nmod tests {{\n{}}}\n",
            "    // x\n".repeat(500)
        );
        assert_none(&check_length("src/lock.rs", &(most.clone() + &tests)));
        assert_eq!(
            lines(&check_length("src/lock.rs", &(most + "// x\n" + &tests))),
            [1]
        );
    }

    #[test]
    fn a_long_function_is_caught() {
        let function = |lines: usize| {
            let body = "    g(\"{\", '{', 'a');\n".repeat(lines - 2);
            format!("/// One.\npub fn f<'a>(x: [u8; 2]) -> u8 {{\n{body}}}\n")
        };
        assert_none(&check_length("src/lock.rs", &function(MAX_FUNCTION_LINES)));
        let two = function(5) + &function(MAX_FUNCTION_LINES + 1);
        let found = check_length("src/lock.rs", &two);
        assert_eq!(lines(&found), [8]);
        assert!(found[0].rule.contains("fn f has 71 lines"), "{}", found[0]);
        // A signature counts from its first line on, and a trait's bare method ends at its `;`.
        let trait_text = format!(
            "trait T {{\n    fn bare(&self);\n{}}}\n",
            "// x\n".repeat(90)
        );
        assert_none(&check_length("src/lock.rs", &trait_text));
    }

    #[test]
    fn a_panic_without_an_excuse_is_caught() {
        let text =
            "fn f() {\n    a.unwrap();\n    b\n        .expect(\"b\");\n    panic!(\"c\");\n}\n";
        assert_eq!(lines(&check_panics("src/lock.rs", text)), [2, 4, 5]);
        let text = "/// a.unwrap();\n//! b.expect(\"\")\nfn f() {\n    // invariant: why\n    \
                    a.unwrap();\n    b.expect(\"b\"); // invariant: why\n    c.unwrap_or(1);\n    \
                    no_panic!(1);\n    g(\"panic!(\");\n}\n";
        assert_none(&check_panics("src/lock.rs", text));
    }

    #[test]
    fn an_excuse_reaches_one_line_only() {
        let text = "// invariant: why\na.unwrap();\nb.unwrap();\n";
        assert_eq!(lines(&check_panics("src/lock.rs", text)), [3]);
        let text = "a.unwrap(); // invariant: why\nb.unwrap();\n";
        assert_eq!(lines(&check_panics("src/lock.rs", text)), [2]);
    }

    #[test]
    fn leftovers_are_caught() {
        for what in UNFINISHED_CALLS.iter().chain(UNFINISHED_WORDS) {
            let text = format!("fine\n    {what} later\n");
            assert_eq!(lines(&check_leftovers("README.md", &text)), [2], "{text}");
        }
        for path in MACHINE_PATHS {
            let text = format!("see `{path}someone/notes`\n");
            assert_eq!(lines(&check_leftovers("README.md", &text)), [1], "{text}");
            let text = format!("see https://example.org{path}page and my{path}page\n");
            assert_none(&check_leftovers("README.md", &text));
        }
        let word = UNFINISHED_WORDS[1];
        assert_none(&check_leftovers(
            "scripts/x",
            &format!("mktemp /tmp/a.{word}{word}\n"),
        ));
    }

    #[test]
    fn a_planted_fault_that_no_longer_fits_is_caught() {
        let patch = "What it is.\n\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\n-two\n+zwei\n";
        let source = |text: &'static str| move |_: &str| Some(text.to_owned());
        assert_none(&check_patch("p", patch, source("one\ntwo\n")));
        assert_eq!(lines(&check_patch("p", patch, source("one\n2\n"))), [5]);
        assert_eq!(lines(&check_patch("p", "What it is.\n", source(""))), [1]);
    }

    #[test]
    fn a_bare_script_is_caught() {
        assert_eq!(lines(&check_lua("src/node/release.lua", "return 1\n")), [1]);
        assert_none(&check_lua(
            "src/node/release.lua",
            "-- Deletes.\nreturn 1\n",
        ));
    }

    #[test]
    fn a_file_that_holds_only_tests_is_known_as_such() {
        let text = "#[cfg(test)]\nmod grid;\n#[cfg(test)]\npub(crate) mod more;\nmod real;\n";
        assert_eq!(Source::parse(text).test_modules(), ["grid", "more"]);
        assert_eq!(module_directory("src/quorum/mod.rs"), "src/quorum");
        assert_eq!(module_directory("src/lib.rs"), "src");
        assert_eq!(module_directory("src/lock.rs"), "src/lock");
    }

    #[test]
    fn an_offence_names_file_line_and_rule() {
        let found = check_imports("src/node/redis.rs", "\nuse crate::lock::Lock;\n");
        let text = found[0].to_string();
        assert!(
            text.starts_with("src/node/redis.rs:2: import order: `node` may not import `lock`"),
            "{text}"
        );
    }
}
