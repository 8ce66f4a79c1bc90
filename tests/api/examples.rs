//! Which public functions, structs and traits have an example in their documentation.
//!
//! A method has one where the example of its type calls it: a reader of either finds it there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::list;

/// What needs none, and why.
const WITHOUT: &[(&str, &str)] = &[];

/// What the sources declare for everybody, and what their documentation shows.
pub struct Shown {
    /// Every public function, struct and trait, with its file; and whether it has an example.
    items: BTreeMap<String, bool>,
}

impl Shown {
    pub fn read() -> Shown {
        let public: BTreeSet<String> = list::public_items().into_iter().collect();
        let files = list::sources(&list::root().join("src"));
        let read = |file: &PathBuf| std::fs::read_to_string(file).expect("a source");
        let texts: Vec<String> = files.iter().map(read).collect();
        let mut types = Types::new();
        for (file, text) in files.iter().zip(&texts) {
            let shown = declarations(text).into_iter();
            types.extend(shown.map(|(name, code)| (named(&name, file), code)));
        }
        let mut items = BTreeMap::new();
        for (file, text) in files.iter().zip(&texts) {
            let of_type = |name: &str| types.get(&named(name, file)).cloned();
            for (name, has) in documented(text, of_type) {
                let name = named(&name, file);
                // Of two files with a type of this name one may be private.
                if public.contains(&name) {
                    *items.entry(name).or_default() |= has;
                }
            }
        }
        Shown { items }
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Those without an example, but for those that need none.
    pub fn missing(&self) -> Vec<&str> {
        let without = self.items.iter().filter(|(_, has)| !**has);
        let names = without.map(|(name, _)| name.as_str());
        names.filter(|name| reason(name).is_none()).collect()
    }

    /// Exceptions for what is not there, or has an example by now.
    pub fn stale(&self) -> Vec<&str> {
        let needless = |name: &&str| self.items.get(*name) != Some(&false);
        WITHOUT
            .iter()
            .map(|(name, _)| *name)
            .filter(needless)
            .collect()
    }
}

fn reason(name: &str) -> Option<&'static str> {
    let found = WITHOUT.iter().find(|(known, _)| *known == name);
    found.map(|(_, reason)| *reason)
}

/// The name in the list of public items: with its module, where that is public.
fn named(name: &str, file: &Path) -> String {
    let path = file.with_extension("");
    let of = |module: &&&str| path.iter().any(|part| part.to_str() == Some(**module));
    match ["blocking", "fence", "testing"].iter().find(of) {
        // The protocol's half of `fence` is not the public one.
        Some(&"fence") if path.iter().any(|part| part == "quorum") => name.to_owned(),
        Some(module) => format!("{module}::{name}"),
        None => name.to_owned(),
    }
}

/// The code of a type's examples, by its name.
type Types = BTreeMap<String, String>;

/// One line that declares something, and the code of the examples above it.
struct Declared<'a> {
    line: &'a str,
    code: String,
}

fn lines(text: &str) -> Vec<Declared<'_>> {
    let (mut found, mut code, mut inside) = (Vec::new(), String::new(), false);
    for line in text.lines() {
        let bare = line.trim_start();
        if let Some(words) = bare.strip_prefix("///") {
            inside ^= words.trim_start().starts_with("```");
            if inside {
                code.push_str(words);
            }
        } else if !bare.starts_with("#[") && !bare.starts_with(")]") {
            let code = std::mem::take(&mut code);
            found.push(Declared { line, code });
        }
    }
    found
}

/// Each type that the text declares, and its examples.
pub fn declarations(text: &str) -> Types {
    let all = lines(text).into_iter();
    all.filter_map(|Declared { line, code }| Some((list::declared(line)?, code)))
        .collect()
}

/// Each function, struct, trait and method that the text declares, and whether it has an example,
/// which may be that `of_type`.
pub fn documented(text: &str, of_type: impl Fn(&str) -> Option<String>) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let mut owner = None::<String>;
    for Declared { line, code } in lines(text) {
        if let Some(name) = list::declared(line).filter(|_| !line.contains("pub enum ")) {
            found.push((name, !code.is_empty()));
        }
        if let Some((name, is_enum)) = list::opening(line) {
            owner = (!is_enum).then_some(name);
        } else if line.starts_with('}') {
            owner = None;
        } else if let Some(owner) = &owner
            && let Some(method) = list::member(line, false)
        {
            let called = of_type(owner).is_some_and(|code| calls(&code, &method));
            found.push((format!("{owner}::{method}"), called || !code.is_empty()));
        }
    }
    found
}

fn calls(code: &str, method: &str) -> bool {
    [".", "::"].iter().any(|before| {
        let call = format!("{before}{method}");
        let mut after = code
            .match_indices(&call)
            .map(|(at, _)| &code[at + call.len()..]);
        after.any(|after| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}
