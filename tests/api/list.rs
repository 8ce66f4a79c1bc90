//! Reads the public items off the sources: what `lib.rs` exports, and the variants and methods of
//! that. Line by line, which is enough for sources that rustfmt has formatted.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every public item, sorted. Those of a public module bear its name; a module inside it is one
/// item.
pub fn public_items() -> Vec<String> {
    let library = read(&root().join("src/lib.rs"));
    let exported = exports(&library);
    let mut items = exported.clone();
    let mut own = BTreeSet::new();
    for module in public_modules(&library) {
        let place = root().join("src").join(&module);
        let files = [place.with_extension("rs"), place.join("mod.rs")];
        let head = read(files.iter().find(|file| file.exists()).expect("its file"));
        let mut names = exports(&head);
        names.extend(head.lines().filter_map(declared));
        names.extend(public_modules(&head));
        let mut inside = names.clone();
        for file in sources(&place) {
            members(&read(&file), &names, &mut inside);
        }
        members(&head, &names, &mut inside);
        items.extend(inside.iter().map(|item| format!("{module}::{item}")));
        own.extend(
            sources(&place)
                .into_iter()
                .map(|file| (file, names.clone())),
        );
    }
    for file in sources(&root().join("src")) {
        let hidden = own.iter().find(|(path, _)| *path == file);
        let seen = |name: &&String| hidden.is_none_or(|(_, names)| !names.contains(*name));
        let names = exported.iter().filter(seen).cloned().collect();
        members(&read(&file), &names, &mut items);
    }
    items.into_iter().collect()
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The names in `pub mod name;`, unless it is hidden.
fn public_modules(library: &str) -> Vec<String> {
    let lines: Vec<&str> = library.lines().collect();
    let shown = lines.windows(2).filter(|pair| pair[0] != "#[doc(hidden)]");
    let names = shown.filter_map(|pair| pair[1].strip_prefix("pub mod ")?.strip_suffix(';'));
    names.map(str::to_owned).collect()
}

/// What a line declares for everybody.
pub fn declared(line: &str) -> Option<String> {
    let rest = line.strip_prefix("pub ")?;
    let kinds = ["struct ", "enum ", "fn ", "trait ", "type "];
    let name = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    Some(identifier(name))
}

/// What is gone (`-`), then what is new (`+`).
pub fn difference(known: &[String], present: &[String]) -> Vec<String> {
    let minus = known.iter().filter(|item| !present.contains(item));
    let plus = present.iter().filter(|item| !known.contains(item));
    let minus = minus.map(|item| format!("- {item}"));
    minus.chain(plus.map(|item| format!("+ {item}"))).collect()
}

/// The names in `pub use module::{A, B};` and `pub use module::A;`.
fn exports(library: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for statement in library.split(';') {
        let Some((_, path)) = statement.split_once("pub use ") else {
            continue;
        };
        // A whole crate has no path: `pub use redis;`.
        let list = path.split_once("::").map_or(path, |(_, list)| list);
        let list = list.trim().trim_start_matches('{').trim_end_matches('}');
        let items = list.split(',').map(str::trim);
        names.extend(items.filter(|item| !item.is_empty()).map(str::to_owned));
    }
    names
}

/// Adds the variants and methods that `text` gives to exported types.
fn members(text: &str, exported: &BTreeSet<String>, items: &mut BTreeSet<String>) {
    let mut owner: Option<(String, bool)> = None;
    for line in text.lines() {
        if let Some(start) = opening(line) {
            owner = Some(start).filter(|(name, _)| exported.contains(name));
        } else if line.starts_with('}') {
            owner = None;
        } else if let Some((name, is_enum)) = &owner
            && let Some(member) = member(line, *is_enum)
        {
            items.insert(format!("{name}::{member}"));
        }
    }
}

/// The type whose body begins on this line, and whether it is an enum.
pub fn opening(line: &str) -> Option<(String, bool)> {
    let body = line.strip_suffix('{')?;
    if let Some(rest) = body.strip_prefix("pub enum ") {
        return Some((identifier(rest), true));
    }
    // Methods of a trait are the trait's.
    let rest = body
        .strip_prefix("impl")
        .filter(|rest| !rest.contains(" for "))?;
    let rest = match rest.strip_prefix('<') {
        Some(generic) => generic.split_once("> ")?.1,
        None => rest,
    };
    Some((identifier(rest.trim()), false))
}

pub fn member(line: &str, of_enum: bool) -> Option<String> {
    let line = line
        .strip_prefix("    ")
        .filter(|line| !line.starts_with(' '))?;
    if of_enum {
        let variant = line.starts_with(|c: char| c.is_ascii_uppercase());
        return variant.then(|| identifier(line));
    }
    let rest = line.strip_prefix("pub ")?;
    let rest = rest
        .trim_start_matches("const ")
        .trim_start_matches("async ");
    rest.strip_prefix("fn ").map(identifier)
}

fn identifier(text: &str) -> String {
    let inside = |c: &char| c.is_alphanumeric() || *c == '_';
    text.chars().take_while(inside).collect()
}

pub fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    // A module of one file has no directory.
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}
