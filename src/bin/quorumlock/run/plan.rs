//! What `run` is to do: everything that can be checked before anything is sent.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use quorumlock::{Client, Config};

use super::super::args::{Common, IfHeld, Run};
use super::super::settings::{Unusable, effective, find, span};

/// The longest default of `--grace`.
const USUAL_GRACE: Duration = Duration::from_secs(10);

/// What a run stands on.
pub(super) struct Plan {
    pub(super) config: Config,
    pub(super) resource: OsString,
    pub(super) command: Vec<OsString>,
    /// A single try: no wait was asked for.
    pub(super) once: bool,
    pub(super) if_held: IfHeld,
    pub(super) at_least: Option<Duration>,
    pub(super) label: Option<String>,
    /// From TERM to KILL.
    pub(super) grace: Duration,
    /// KILL comes so long before the end of validity.
    pub(super) lead: Duration,
    /// For how long a label is good.
    pub(super) max_ttl: Duration,
}

impl Plan {
    /// # Errors
    /// A setting or an argument that cannot be used.
    pub(super) fn of(common: &Common, args: &Run) -> Result<Self, Unusable> {
        let flags = [
            ("--ttl", "ttl", args.ttl.as_ref()),
            ("--wait", "wait", args.wait.as_ref()),
        ];
        // A command has no hands: it holds the lock for as long as the child lives.
        let config = find(common, &flags)?.config.auto_extend(true);
        let lock = Client::with_config(config.clone())?;
        let notice = lock.lock(args.resource.as_bytes()).notice()?;
        let lead = (notice / 50).clamp(Duration::from_millis(20), Duration::from_millis(200));
        let longest = notice.saturating_sub(lead);
        let grace = match &args.grace {
            Some(text) => span("--grace", text)?,
            None => (longest / 2).min(USUAL_GRACE),
        };
        if grace > longest {
            let whole = |span: Duration| Duration::from_millis(span.as_millis() as u64);
            let text = format!(
                "--grace = {grace:?}: does not fit: that an extension has failed shows {:?} before \
                 the end of validity, and KILL needs {:?} of it; lower --grace, or raise ttl",
                whole(notice),
                whole(lead)
            );
            return Err(Unusable::Text(text));
        }
        let max_ttl = effective(&config, "max_ttl")?;
        let at_least = args.at_least.as_ref();
        let at_least = at_least.map(|text| span("--at-least", text)).transpose()?;
        if let Some(long) = at_least.filter(|long| *long > max_ttl) {
            let text = format!(
                "--at-least = {long:?}: is longer than max_ttl, which is {max_ttl:?}; lower it, or \
                 raise max_ttl on every client of these nodes"
            );
            return Err(Unusable::Text(text));
        }
        let patient = args.if_held == IfHeld::Fail && at_least.is_none();
        // "forever" is no span.
        let at_once = effective(&config, "wait").is_ok_and(|wait| wait.is_zero());
        Ok(Plan {
            config,
            resource: args.resource.clone(),
            command: args.command.clone(),
            once: at_once || (args.wait.is_none() && !patient),
            if_held: args.if_held,
            at_least,
            label: args.label.clone(),
            grace,
            lead,
            max_ttl,
        })
    }

    /// The resource for people.
    pub(super) fn name(&self) -> String {
        format!("{:?}", self.resource)
    }
}
