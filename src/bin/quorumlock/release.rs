//! `release --force`: a lock is taken away from whoever holds it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use quorumlock::{Client, ForceReleaseError};
use serde_json::json;

use super::exit;
use super::out::Out;
use super::settings::Unusable;

pub(crate) async fn release(
    client: &Client,
    resource: &OsStr,
    force: bool,
    out: Out,
) -> Result<u8, Unusable> {
    if !force {
        let text = "release takes a lock away from a holder that may be at work; say --force if \
                    that is what you want";
        return Err(Unusable::Text(text.to_owned()));
    }
    // Before, since the label goes by the holder that still is one.
    let before = client.status(resource.as_bytes()).await?;
    let freed = match client.force_release(resource.as_bytes()).await {
        Ok(freed) => freed,
        Err(ForceReleaseError::Invalid(error)) => return Err(error.into()),
        Err(error) => {
            out.complain("unconfirmed", &error);
            return Ok(exit::UNAVAILABLE);
        }
    };
    let taken = freed.owners().first().map(|(owner, _)| *owner);
    let label = before.label().filter(|_| before.owner() == taken);
    if out.json {
        let mut value = serde_json::to_value(&freed).unwrap_or_default();
        if let Some(map) = value.as_object_mut() {
            map.insert("label".to_owned(), json!(label));
        }
        out.json(&value);
    } else {
        let mut text = freed.to_string();
        if let Some(label) = label {
            text.push_str(&format!("\nthe holder was: {}\n", label.escape_debug()));
        }
        if taken.is_some() {
            text.push_str("The holder, if it lives, works on until its next extension.\n");
        }
        out.text(&text, None);
    }
    Ok(match taken {
        Some(_) => exit::OK,
        None => exit::NO,
    })
}
