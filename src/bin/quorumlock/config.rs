//! `config`: what the settings come to, and where each comes from.

use std::path::Path;

use quorumlock::Origin;
use serde_json::{Value, json};

use super::exit;
use super::out::Out;
use super::settings::{Found, Unusable};

pub(crate) fn config(found: &Found, out: Out) -> Result<u8, Unusable> {
    let rows = found.config.effective()?;
    let file = found.file.as_deref().map(Path::display);
    if out.json {
        let settings = rows.iter().map(|row| {
            let value = serde_json::from_str(row.value()).unwrap_or(Value::Null);
            let (kind, origin) = (kind(row.origin()), row.origin().to_string());
            json!({"name": row.name(), "value": value, "from": kind, "origin": origin})
        });
        let settings: Vec<Value> = settings.collect();
        let file = file.map(|file| file.to_string());
        out.json(&json!({"file": file, "settings": settings}));
        return Ok(exit::OK);
    }
    let mut text = match file {
        Some(file) => format!("# file: {file}\n"),
        None => "# no configuration file\n".to_owned(),
    };
    let width = |cells: &dyn Fn(usize) -> usize| (0..rows.len()).map(cells).max().unwrap_or(0);
    let names = width(&|row| rows.get(row).map_or(0, |row| row.name().len()));
    let values = width(&|row| rows.get(row).map_or(0, |row| row.value().chars().count()));
    for row in &rows {
        let (name, value, origin) = (row.name(), row.value(), row.origin());
        text.push_str(&format!("{name:<names$} = {value:<values$}  # {origin}\n"));
    }
    out.text(&text, None);
    Ok(exit::OK)
}

fn kind(origin: &Origin) -> &'static str {
    match origin {
        Origin::Default => "default",
        Origin::File { .. } => "file",
        Origin::Env { .. } => "env",
        Origin::Flag { .. } => "flag",
        _ => "code",
    }
}
