//! What is printed: text or JSON, colour on a terminal only.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use serde_json::{Map, Value};

/// How to print.
#[derive(Clone, Copy)]
pub(crate) struct Out {
    pub(crate) json: bool,
}

/// The colours.
#[derive(Clone, Copy)]
pub(crate) enum Colour {
    Red = 31,
    Green = 32,
    Yellow = 33,
}

impl Out {
    /// The result of a subcommand, on standard output; the first line of a text in `colour`.
    pub(crate) fn result(self, value: &(impl Serialize + Display), colour: Option<Colour>) {
        match self.json {
            true => self.json(value),
            false => self.text(&value.to_string(), colour),
        }
    }

    pub(crate) fn json(self, value: &impl Serialize) {
        let text = serde_json::to_string_pretty(value);
        let text = text.unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"));
        write(io::stdout(), &format!("{text}\n"));
    }

    pub(crate) fn text(self, text: &str, colour: Option<Colour>) {
        let (head, rest) = text.split_once('\n').unwrap_or((text, ""));
        let painted = match colour.filter(|_| coloured(&io::stdout())) {
            Some(colour) => paint(head, colour),
            None => head.to_owned(),
        };
        write(io::stdout(), &format!("{painted}\n{rest}"));
    }

    /// Something that went wrong, or that is worth a line, on standard error. `kind` is its name
    /// for programs.
    pub(crate) fn complain(self, kind: &str, text: impl Display) {
        self.complain_with(kind, text, Map::new());
    }

    pub(crate) fn complain_with(
        self,
        kind: &str,
        text: impl Display,
        mut more: Map<String, Value>,
    ) {
        if self.json {
            more.insert("event".to_owned(), kind.into());
            more.insert("text".to_owned(), text.to_string().into());
            write(io::stderr(), &format!("{}\n", Value::Object(more)));
            return;
        }
        let name = match coloured(&io::stderr()) {
            true => paint("quorumlock:", Colour::Red),
            false => "quorumlock:".to_owned(),
        };
        write(io::stderr(), &format!("{name} {text}\n"));
    }
}

fn coloured(stream: &impl IsTerminal) -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    stream.is_terminal() && !set("NO_COLOR")
}

fn paint(text: &str, colour: Colour) -> String {
    format!("\u{1b}[{}m{text}\u{1b}[0m", colour as u8)
}

/// A reader that is gone is no reason to do anything else than before.
fn write(mut to: impl Write, text: &str) {
    let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
}
