//! Just enough of a Rust reader for the house rules: it tells code from comments, literals and
//! test-only items, and finds paths and functions. It expects text that rustfmt has formatted.

/// A source file in which everything that is not shipped code has become blanks. Lines stay where
/// they were.
pub struct Source {
    code: Vec<char>,
    /// Test-only items, as half-open ranges of `code`.
    tests: Vec<(usize, usize)>,
    test_modules: Vec<String>,
}

/// A path as written, with `use` groups taken apart.
pub struct FoundPath {
    pub line: usize,
    pub segments: Vec<String>,
    in_use: bool,
}

/// A function with a body, outside the tests.
pub struct Function {
    pub line: usize,
    pub name: String,
    pub lines: usize,
}

/// The words that open an item which ends at its closing brace or its semicolon.
const ITEM_WORDS: &[&str] = &[
    "async",
    "const",
    "enum",
    "extern",
    "fn",
    "impl",
    "let",
    "macro_rules",
    "mod",
    "static",
    "struct",
    "trait",
    "type",
    "union",
    "unsafe",
    "use",
];

impl Source {
    pub fn parse(text: &str) -> Self {
        let mut code: Vec<char> = text.chars().collect();
        blank_comments_and_literals(&mut code);
        let mut source = Self {
            code,
            tests: Vec::new(),
            test_modules: Vec::new(),
        };
        source.blank_tests();
        source
    }

    /// The shipped code, line by line.
    pub fn code_lines(&self) -> impl Iterator<Item = String> {
        let text: String = self.code.iter().collect();
        text.lines()
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .into_iter()
    }

    pub fn lines_outside_tests(&self) -> usize {
        let all = self.code_lines().count();
        let tests: usize = self
            .tests
            .iter()
            .map(|&(from, to)| self.line_at(to.saturating_sub(1)) - self.line_at(from) + 1)
            .sum();
        all - tests
    }

    /// Names of the modules that this file declares for tests only, in files of their own.
    pub fn test_modules(&self) -> Vec<String> {
        self.test_modules.clone()
    }

    /// Paths that start at the crate's root, without the word `crate`. So many `super` as this
    /// file is deep lead there as well.
    pub fn crate_paths(&self, depth: usize) -> Vec<FoundPath> {
        let mut found = Vec::new();
        for mut path in self.paths() {
            let plain: Vec<String> = path
                .segments
                .iter()
                .skip_while(|s| *s == "self")
                .cloned()
                .collect();
            let ups = plain.iter().take_while(|s| *s == "super").count();
            let skip = if plain.first().is_some_and(|s| s == "crate") {
                1
            } else if ups >= depth.max(1) {
                ups
            } else {
                continue;
            };
            path.segments = plain[skip..].to_vec();
            if !path.segments.is_empty() {
                found.push(path);
            }
        }
        found
    }

    /// All other paths that may name another crate: those in a `use`, and all of two segments or
    /// more. (A single word elsewhere is a local name.)
    pub fn outside_paths(&self) -> Vec<FoundPath> {
        self.paths()
            .into_iter()
            .filter(|path| path.in_use || path.segments.len() > 1)
            .collect()
    }

    pub fn functions(&self) -> Vec<Function> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.code.len() {
            let Some((word, end)) = self.word_at(at) else {
                at += 1;
                continue;
            };
            let name_at = self.skip_blanks(end);
            if word == "fn"
                && let Some((name, name_end)) = self.word_at(name_at)
                && let Some(open) = self.body_start(name_end)
            {
                let (first, last) = (self.line_at(at), self.line_at(self.closing(open)));
                found.push(Function {
                    line: first,
                    name,
                    lines: last - first + 1,
                });
            }
            at = end;
        }
        found
    }

    // --- finding test-only items --------------------------------------------------------------

    fn blank_tests(&mut self) {
        let mut at = 0;
        while at < self.code.len() {
            if self.starts(at, "#![cfg(test)]") {
                self.tests = vec![(0, self.code.len())];
                blank(&mut self.code, 0, usize::MAX);
                return;
            }
            if self.starts(at, "#[cfg(test)]") || self.starts(at, "#[cfg(all(test,") {
                let end = self.item_end(at);
                self.tests.push((at, end));
                blank(&mut self.code, at, end);
                at = end;
            } else {
                at += 1;
            }
        }
    }

    /// The end of the item whose attributes start here.
    fn item_end(&mut self, from: usize) -> usize {
        let mut at = from;
        while self.code.get(at) == Some(&'#') {
            at = self.skip_blanks(self.closing(at + 1) + 1);
        }
        let (words, word_end) = self.leading_words(at);
        let item = words.iter().any(|word| ITEM_WORDS.contains(&word.as_str()));
        let braces_end_it = !words.iter().any(|word| word == "use");
        let mut end = at;
        while end < self.code.len() {
            match self.code[end] {
                ';' => {
                    if words.iter().any(|word| word == "mod")
                        && let Some((name, _)) = self.word_at(self.skip_blanks(word_end))
                    {
                        self.test_modules.push(name);
                    }
                    return end + 1;
                }
                // A field or an arm of a match ends here; a generic parameter list goes on.
                ',' if !item => return end + 1,
                '}' if !item => return end,
                '(' | '[' => end = self.closing(end),
                '{' => {
                    end = self.closing(end);
                    if item && braces_end_it {
                        return end + 1;
                    }
                }
                _ => {}
            }
            end += 1;
        }
        self.code.len()
    }

    /// The visibility and the item words from here on, and where they end.
    fn leading_words(&self, from: usize) -> (Vec<String>, usize) {
        let mut words = Vec::new();
        let mut at = self.skip_blanks(from);
        let mut last = at;
        while let Some((word, end)) = self.word_at(at) {
            if word != "pub" && !ITEM_WORDS.contains(&word.as_str()) {
                break;
            }
            words.push(word);
            last = end;
            at = self.skip_blanks(end);
            if self.code.get(at) == Some(&'(') && words.last().is_some_and(|w| w == "pub") {
                last = self.closing(at) + 1;
                at = self.skip_blanks(last);
            }
        }
        (words, last)
    }

    // --- finding paths ------------------------------------------------------------------------

    fn paths(&self) -> Vec<FoundPath> {
        let mut found = Vec::new();
        let mut at = 0;
        let mut in_use = false;
        while at < self.code.len() {
            match self.word_at(at) {
                Some((word, end)) if word == "use" => {
                    in_use = true;
                    at = end;
                    // `use {a, b};` opens with a group.
                    let next = self.skip_blanks(end);
                    if self.code.get(next) == Some(&'{') {
                        at = self.read_path(next, &[], in_use, &mut found);
                    }
                }
                Some(_) => at = self.read_path(at, &[], in_use, &mut found),
                None => {
                    in_use &= self.code[at] != ';';
                    at += 1;
                }
            }
        }
        found
    }

    /// Reads one path, or one group of a `use`, that starts here; returns where it ends.
    fn read_path(
        &self,
        from: usize,
        before: &[String],
        in_use: bool,
        found: &mut Vec<FoundPath>,
    ) -> usize {
        let mut segments = before.to_vec();
        let mut at = from;
        loop {
            let line = self.line_at(at);
            if let Some((word, end)) = self.word_at(at) {
                if word != "self" || segments.is_empty() {
                    segments.push(word);
                }
                let next = self.skip_blanks(end);
                if self.starts(next, "::") {
                    at = self.skip_blanks(next + 2);
                    continue;
                }
                found.push(FoundPath {
                    line,
                    segments,
                    in_use,
                });
                return end;
            }
            match self.code.get(at) {
                Some('*') => {
                    segments.push("*".to_owned());
                    found.push(FoundPath {
                        line,
                        segments,
                        in_use,
                    });
                    return at + 1;
                }
                Some('{') => return self.read_group(at, &segments, in_use, found),
                // A turbofish, or the end of the text.
                _ => {
                    found.push(FoundPath {
                        line,
                        segments,
                        in_use,
                    });
                    return at.max(from + 1);
                }
            }
        }
    }

    fn read_group(
        &self,
        open: usize,
        before: &[String],
        in_use: bool,
        found: &mut Vec<FoundPath>,
    ) -> usize {
        let close = self.closing(open);
        let mut at = open + 1;
        while at < close {
            at = match self.code[at] {
                c if c.is_whitespace() || c == ',' || c == ':' => at + 1,
                _ => self.read_path(at, before, in_use, found),
            };
            // `a as b`: the new name is no path.
            let next = self.skip_blanks(at);
            if let Some((word, end)) = self.word_at(next)
                && word == "as"
            {
                let name = self.skip_blanks(end);
                at = self.word_at(name).map_or(end, |(_, name_end)| name_end);
            }
        }
        close + 1
    }

    // --- small steps --------------------------------------------------------------------------

    fn starts(&self, at: usize, what: &str) -> bool {
        what.chars()
            .enumerate()
            .all(|(i, c)| self.code.get(at + i) == Some(&c))
    }

    fn skip_blanks(&self, mut at: usize) -> usize {
        while self.code.get(at).is_some_and(|c| c.is_whitespace()) {
            at += 1;
        }
        at
    }

    /// The word that starts here, and where it ends; none in the middle of a word.
    fn word_at(&self, at: usize) -> Option<(String, usize)> {
        let first = *self.code.get(at)?;
        let inside = at > 0 && is_word_char(self.code[at - 1]);
        if inside || !(first.is_alphabetic() || first == '_') {
            return None;
        }
        let word: String = self.code[at..]
            .iter()
            .take_while(|c| is_word_char(**c))
            .collect();
        let end = at + word.chars().count();
        Some((word, end))
    }

    /// Where a function's body opens; none if it has no body.
    fn body_start(&self, from: usize) -> Option<usize> {
        let mut at = from;
        loop {
            match self.code.get(at)? {
                '(' | '[' => at = self.closing(at),
                '{' => return Some(at),
                ';' => return None,
                _ => {}
            }
            at += 1;
        }
    }

    /// The bracket that closes the one here, or the end of the text.
    fn closing(&self, open: usize) -> usize {
        let mut depth = 0_usize;
        for at in open..self.code.len() {
            match self.code[at] {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return at;
                    }
                }
                _ => {}
            }
        }
        self.code.len().saturating_sub(1)
    }

    fn line_at(&self, at: usize) -> usize {
        let end = at.min(self.code.len());
        1 + self.code[..end].iter().filter(|c| **c == '\n').count()
    }
}

/// What may stand inside a path of a file system or an address.
pub fn is_path_char(c: char) -> bool {
    c.is_alphanumeric() || "_-.~$})".contains(c)
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn blank(code: &mut [char], from: usize, to: usize) {
    let to = to.min(code.len());
    for c in &mut code[from.min(to)..to] {
        if *c != '\n' {
            *c = ' ';
        }
    }
}

fn blank_comments_and_literals(code: &mut [char]) {
    let mut at = 0;
    while at < code.len() {
        let next = code.get(at + 1).copied().unwrap_or(' ');
        let end = match code[at] {
            '/' if next == '/' => line_end(code, at),
            '/' if next == '*' => comment_end(code, at),
            '"' => string_end(code, at),
            '\'' => char_end(code, at),
            'r' => raw_string_end(code, at),
            _ => at + 1,
        };
        if end > at + 1 {
            blank(code, at, end);
        }
        at = end;
    }
}

fn line_end(code: &[char], from: usize) -> usize {
    code[from..]
        .iter()
        .position(|c| *c == '\n')
        .map_or(code.len(), |n| from + n)
}

fn comment_end(code: &[char], from: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = from;
    while at + 1 < code.len() {
        match (code[at], code[at + 1]) {
            ('/', '*') => {
                depth += 1;
                at += 2;
            }
            ('*', '/') => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    code.len()
}

fn string_end(code: &[char], from: usize) -> usize {
    let mut at = from + 1;
    while at < code.len() {
        match code[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    code.len()
}

/// A lifetime is no literal: it has no closing quote where a character's would be.
fn char_end(code: &[char], from: usize) -> usize {
    match (code.get(from + 1), code.get(from + 2)) {
        (Some('\\'), Some(_)) => code[from + 3..]
            .iter()
            .position(|c| *c == '\'')
            .map_or(code.len(), |n| from + 3 + n + 1),
        (Some(_), Some('\'')) => from + 3,
        _ => from + 1,
    }
}

/// `r"..."` and `r#"..."#`, also behind a `b` or `c`; anything else that starts with an r is a name.
fn raw_string_end(code: &[char], from: usize) -> usize {
    let prefixed = from > 0 && matches!(code[from - 1], 'b' | 'c');
    let name_before = if prefixed {
        from.checked_sub(2)
    } else {
        from.checked_sub(1)
    };
    if name_before.is_some_and(|at| is_word_char(code[at])) {
        return from + 1;
    }
    let hashes = code[from + 1..].iter().take_while(|c| **c == '#').count();
    let open = from + 1 + hashes;
    if code.get(open) != Some(&'"') {
        return from + 1;
    }
    let mut at = open + 1;
    while at < code.len() {
        if code[at] == '"' && code[at + 1..].iter().take_while(|c| **c == '#').count() >= hashes {
            return (at + 1 + hashes).min(code.len());
        }
        at += 1;
    }
    code.len()
}

#[test]
fn comments_and_literals_are_blank_and_the_lines_stay() {
    let text = "a /* x /* y */\nz */ b // c\nlet d = \"e\\\"f\\\\\"; let g = r#\"h\"i\"#;\n\
                let j = ['\\'', 'k', '\\u{7b}', '{']; fn l<'m>(n: &'m str) {} br\"o\" r#type\n";
    let source = Source::parse(text);
    let lines: Vec<String> = source.code_lines().collect();
    assert_eq!(lines.len(), 4);
    let words: Vec<&str> = lines
        .iter()
        .flat_map(|line| line.split_whitespace())
        .collect();
    assert_eq!(
        words.join(" "),
        "a b let d = ; let g = ; let j = [ , , , ]; fn l<'m>(n: &'m str) {} b r#type"
    );
}

#[test]
fn test_only_items_end_where_they_end() {
    for (text, left) in [
        ("#[cfg(test)]\nuse a::{b, c};\nd", "d"),
        (
            "#[cfg(test)]\n#[allow(x)]\nmod t {\n    fn f() {}\n}\nd",
            "d",
        ),
        (
            "#[cfg(test)]\npub(crate) fn f<A, B>(x: [u8; 2]) -> u8 {\n    1\n}\nd",
            "d",
        ),
        ("#[cfg(all(test, feature = \"x\"))]\nmod t;\nd", "d"),
        (
            "struct S {\n    #[cfg(test)]\n    a: Vec<u8>,\n    b: u8,\n}",
            "struct S { b: u8, }",
        ),
        (
            "struct S {\n    #[cfg(test)]\n    a: u8\n}\nd",
            "struct S { } d",
        ),
        ("#![cfg(test)]\nuse a::b;\n", ""),
        (
            "#[cfg(any(test, feature = \"x\"))]\nfn f() {}",
            "#[cfg(any(test, feature = ))] fn f() {}",
        ),
    ] {
        let lines: Vec<String> = Source::parse(text).code_lines().collect();
        let words: Vec<&str> = lines
            .iter()
            .flat_map(|line| line.split_whitespace())
            .collect();
        assert_eq!(words.join(" "), left, "{text}");
    }
}

#[test]
fn groups_are_taken_apart() {
    let text = "use a::{self, b::{c, d as e}, f::*};\nuse {g::h, i};\nfn k() { l::m::<n::o>(p) }\n";
    let found: Vec<String> = Source::parse(text)
        .outside_paths()
        .iter()
        .map(|path| format!("{}:{}", path.line, path.segments.join("::")))
        .collect();
    assert_eq!(
        found,
        [
            "1:a",
            "1:a::b::c",
            "1:a::b::d",
            "1:a::f::*",
            "2:g::h",
            "2:i",
            "3:l::m",
            "3:n::o"
        ]
    );
}
