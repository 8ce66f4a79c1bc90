//! The end of a run: the label, the release, or a lock that stays for a while.

use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, SystemTime};

use quorumlock::{Client, Guard, Label, Loss, Released};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::super::out::Out;
use super::plan::Plan;

/// How long a command that has done its work waits for slow nodes. What they have runs out with
/// its TTL.
const TIDYING: Duration = Duration::from_millis(300);

/// The same after a signal, which wants an end soon.
const HURRY: Duration = Duration::from_millis(150);

/// The label of this run, written again before it runs out.
pub(super) struct Badge {
    label: Option<Label>,
    writer: Option<JoinHandle<()>>,
    text: String,
}

impl Badge {
    /// Nobody waits for a node here: it is written beside the child's work.
    pub(super) async fn pin(plan: &Plan, client: &Client, guard: &Guard) -> Self {
        let text = about(plan);
        let label = client.label(guard).await.ok();
        let writer = label.clone().map(|label| {
            let (text, every) = (text.clone(), plan.max_ttl);
            tokio::spawn(async move {
                loop {
                    label.write(&text).await;
                    tokio::time::sleep(every).await;
                }
            })
        });
        Badge {
            label,
            writer,
            text,
        }
    }

    pub(super) fn stop(&self) {
        if let Some(writer) = &self.writer {
            writer.abort();
        }
    }

    async fn remove(&self) {
        if let Some(label) = &self.label {
            label.remove().await;
        }
    }
}

/// "web-3, process 4711, since 2026-11-29T21:00:00Z: weekly report"
fn about(plan: &Plan) -> String {
    let host = nix::unistd::gethostname().unwrap_or_default();
    let host = String::from_utf8_lossy(host.as_bytes()).into_owned();
    let since = humantime::format_rfc3339_seconds(SystemTime::now());
    let text = plan.label.as_ref().map(|text| format!(": {text}"));
    let text = text.unwrap_or_default();
    format!(
        "{host}, process {}, since {since}{text}",
        std::process::id()
    )
}

/// Releases the lock, or leaves it to run out; says why it was lost, if that shows only now.
pub(super) async fn let_go(
    plan: &Plan,
    client: &Client,
    guard: Guard,
    took: Duration,
    badge: &Badge,
    out: Out,
) -> Option<Loss> {
    let left = plan.at_least.map(|least| least.saturating_sub(took));
    if let Some(left) = left.filter(|left| *left > Duration::ZERO) {
        let until = humantime::format_rfc3339_seconds(SystemTime::now() + left);
        let text = format!("done, kept until {until}: {}", badge.text);
        let outcome = client.leave(guard, left, &text).await;
        return match outcome {
            Ok(_) => None,
            Err(quorumlock::ExtendError::Lost(loss)) => Some(loss),
            Err(error) => {
                let text = format!("lock {} may be free before its time: {error}", plan.name());
                out.complain("unconfirmed", text);
                None
            }
        };
    }
    let loss = released(guard, out).await;
    tidy(client, badge).await;
    loss
}

/// Releases a lock under which nothing ran.
pub(super) async fn release(client: &Client, guard: Guard, out: Out) {
    released(guard, out).await;
    let _ = timeout(TIDYING, client.close()).await;
}

async fn released(guard: Guard, out: Out) -> Option<Loss> {
    match guard.release().await {
        Ok(Released::AlreadyLost(loss)) => Some(loss),
        Ok(_) => None,
        Err(error) => {
            out.complain("unconfirmed", error);
            None
        }
    }
}

/// After a loss: what is left of the lock is deleted.
pub(super) async fn close(client: &Client, guard: Guard, badge: &Badge) {
    drop(guard);
    tidy(client, badge).await;
}

async fn tidy(client: &Client, badge: &Badge) {
    let both = async { tokio::join!(badge.remove(), client.close()) };
    let _ = timeout(TIDYING, both).await;
}

/// After a signal while waiting: what the wait has set is deleted.
pub(super) async fn hurry(client: &Client) {
    let _ = timeout(HURRY, client.close()).await;
}
