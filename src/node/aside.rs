//! A thread of its own for work that must not wait for the client's, nor hold it up.

use std::future::Future;

use futures::future::{BoxFuture, FutureExt};
use tokio::sync::oneshot;

use crate::node::{Fault, FaultKind};

/// Runs the future that `work` makes on a thread that ends with it, or when nobody waits for it
/// any more. Needs no runtime of the caller's.
///
/// # Errors
/// The operating system gives no thread.
pub(crate) fn aside<T, F>(
    work: impl FnOnce() -> F + Send + 'static,
) -> BoxFuture<'static, Result<T, Fault>>
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let failed = |what: String| Fault::new(FaultKind::Unreachable, format!("not asked: {what}"));
    async move {
        let (mut reply, answer) = oneshot::channel();
        // The runtime is made on its own thread: dropped on the caller's, where there is no thread
        // to be had, it would panic inside another runtime.
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let runtime = match runtime {
                Ok(runtime) => runtime,
                Err(error) => {
                    let _ = reply.send(Err(failed(error.to_string())));
                    return;
                }
            };
            let outcome = runtime.block_on(async {
                tokio::select! {
                    biased;
                    () = reply.closed() => None,
                    outcome = work() => Some(outcome),
                }
            });
            // A name that is being looked up cannot be stopped, and is not waited for.
            runtime.shutdown_background();
            if let Some(outcome) = outcome {
                let _ = reply.send(Ok(outcome));
            }
        };
        std::thread::Builder::new()
            .name("quorumlock-look".into())
            .spawn(run)
            .map_err(|error| failed(error.to_string()))?;
        answer
            .await
            .unwrap_or_else(|_| Err(failed("its thread ended".into())))
    }
    .boxed()
}
