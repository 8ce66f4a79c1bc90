//! Names of resources.

use super::ConfigError;
use crate::key;

/// Whether there can be a lock on `resource`.
///
/// # Errors
/// It has no name, or too long a one.
pub(crate) fn check_resource(resource: &[u8]) -> Result<(), ConfigError> {
    let length = resource.len();
    if (1..=key::LONGEST_RESOURCE).contains(&length) {
        return Ok(());
    }
    Err(ConfigError::new(
        "resource",
        format!("{length} bytes"),
        "a resource has a name of 1 to 65536 bytes",
        "name what is to be locked, or lock a digest of a longer name",
    ))
}
