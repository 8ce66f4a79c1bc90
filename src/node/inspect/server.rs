//! The look at real servers.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{FutureExt, join_all};
use redis::aio::MultiplexedConnection;
use redis::{Pipeline, Value};
use tokio::time::{Instant, timeout_at};

use super::{
    Answers, BATCH, Content, End, Inspector, LabelOrder, Names, Reading, STEP, Scan, deleted,
    label_key, labelled, pattern, reading,
};
use crate::node::aside::aside;
use crate::node::connect::{Stage, Target, Wire, connect, redis_fault};
use crate::node::script::{FORCE, LABEL};
use crate::node::wire::server_fault;
use crate::node::{Fault, FaultKind};

/// Looks at the servers of a client.
pub(crate) struct ServerInspector {
    targets: Arc<[Target]>,
    node_timeout: Duration,
}

impl ServerInspector {
    /// `node_timeout` is the time for the connection together with the first answer, and for each
    /// later answer.
    pub(crate) fn new(targets: Vec<Target>, node_timeout: Duration) -> Self {
        ServerInspector {
            targets: targets.into(),
            node_timeout,
        }
    }

    /// Asks every server by a future of its own; a server that nobody could ask has the `fault`.
    fn all<T, F>(
        &self,
        ask: impl Fn(Target, Duration) -> F + Send + 'static,
        failed: impl Fn(Fault) -> T + Send + 'static,
    ) -> Answers<T>
    where
        T: Send + 'static,
        F: Future<Output = T>,
    {
        let (targets, limit) = (Arc::clone(&self.targets), self.node_timeout);
        let count = targets.len();
        let asked = aside(move || {
            let asks: Vec<F> = targets.iter().map(|to| ask(to.clone(), limit)).collect();
            join_all(asks)
        });
        async move {
            match asked.await {
                Ok(answers) => answers,
                Err(fault) => (0..count).map(|_| failed(fault.clone())).collect(),
            }
        }
        .boxed()
    }
}

impl Inspector for ServerInspector {
    fn names(&self) -> Vec<String> {
        let name = |target: &Target| target.name.clone();
        self.targets.iter().map(name).collect()
    }

    fn read(&self, keys: Arc<[Vec<u8>]>, counters: bool) -> Answers<Vec<Result<Reading, Fault>>> {
        let count = keys.len();
        let ask = move |target, limit| {
            let keys = Arc::clone(&keys);
            async move {
                let read = over(&target, limit, async |line| {
                    read(line, &keys, counters).await
                });
                match read.await {
                    Ok(readings) => readings,
                    Err(fault) => vec![Err(fault); keys.len()],
                }
            }
        };
        self.all(ask, move |fault| vec![Err(fault); count])
    }

    fn scan(&self, plan: Scan) -> Answers<Names> {
        let ask = move |target, limit| {
            let plan = plan.clone();
            async move {
                let scan = over(&target, limit, async |line| scan(line, &plan).await);
                scan.await.unwrap_or_else(Names::failed)
            }
        };
        self.all(ask, Names::failed)
    }

    fn label(&self, order: LabelOrder) -> Answers<Result<bool, Fault>> {
        let ask = move |target, limit| {
            let order = order.clone();
            async move {
                let write = over(&target, limit, async |line| {
                    let pipeline = label(&order);
                    let values = line.trip(&pipeline, 1).await?;
                    labelled(values.first().unwrap_or(&Value::Nil))
                });
                write.await.and_then(|answer| answer)
            }
        };
        self.all(ask, Err)
    }

    fn delete(&self, key: Arc<[u8]>) -> Answers<Result<Content, Fault>> {
        let ask = move |target, limit| {
            let key = Arc::clone(&key);
            async move {
                let force = over(&target, limit, async |line| {
                    let mut pipeline = Pipeline::with_capacity(1);
                    let eval = pipeline.cmd("EVAL").arg(FORCE.text);
                    eval.arg(1).arg(&*key);
                    let values = line.trip(&pipeline, 1).await?;
                    deleted(values.first().unwrap_or(&Value::Nil))
                });
                force.await.and_then(|answer| answer)
            }
        };
        self.all(ask, Err)
    }
}

fn label(order: &LabelOrder) -> Pipeline {
    let millis = |span: Duration| span.as_millis().max(1).to_string();
    let mut pipeline = Pipeline::with_capacity(1);
    let eval = pipeline.cmd("EVAL").arg(LABEL.text).arg(2);
    eval.arg(&*order.key).arg(label_key(&order.key));
    eval.arg(order.owner.as_bytes()).arg(&*order.text);
    eval.arg(millis(order.lasts));
    eval.arg(order.lock_lasts.map(millis).unwrap_or_default());
    pipeline
}

/// The longest time for all the keys that one node is asked for.
const READING: Duration = Duration::from_secs(10);

/// A connection in use.
struct Line {
    connection: MultiplexedConnection,
    limit: Duration,
    /// When the next answer must be here.
    until: Instant,
}

impl Line {
    /// Sends a pipeline, and waits for its answers.
    ///
    /// # Errors
    /// The connection has ended, or there was no answer in time. An error that the server answers
    /// with is a value.
    async fn trip(&mut self, pipeline: &Pipeline, answers: usize) -> Result<Vec<Value>, Fault> {
        let sent = self.connection.send_packed_commands(pipeline, 0, answers);
        let values = match timeout_at(self.until, sent).await {
            Ok(values) => values.map_err(|error| redis_fault(&error))?,
            Err(_) => return Err(Stage::Introducing.spent(self.limit)),
        };
        self.until = Instant::now() + self.limit;
        match values.len() == answers {
            true => Ok(values),
            false => Err(FaultKind::Protocol.into()),
        }
    }
}

/// Connects, and does `work` over the connection.
///
/// # Errors
/// There is no connection in time.
async fn over<T>(
    target: &Target,
    limit: Duration,
    work: impl AsyncFnOnce(&mut Line) -> T,
) -> Result<T, Fault> {
    let until = Instant::now() + limit;
    let stage = Cell::new(Stage::default());
    let wire = match timeout_at(until, connect(target, limit, &stage)).await {
        Ok(wire) => wire?,
        Err(_) => return Err(stage.get().spent(limit)),
    };
    let Wire { connection, driver } = wire;
    let mut line = Line {
        connection,
        limit,
        until,
    };
    let mut work = std::pin::pin!(work(&mut line));
    let outcome = tokio::select! {
        biased;
        outcome = &mut work => outcome,
        // What was said before the connection ended is here by now, and may say why.
        () = driver => work.await,
    };
    Ok(outcome)
}

/// A node that fails on the way has answered for the keys before.
async fn read(line: &mut Line, keys: &[Vec<u8>], counters: bool) -> Vec<Result<Reading, Fault>> {
    let (each, until) = (3 + usize::from(counters), Instant::now() + READING);
    let mut readings = Vec::with_capacity(keys.len());
    for batch in keys.chunks(BATCH) {
        if Instant::now() >= until {
            let detail = format!("not asked: {} s are over", READING.as_secs());
            readings.resize(keys.len(), Err(Fault::new(FaultKind::Timeout, detail)));
            break;
        }
        let mut pipeline = Pipeline::with_capacity(each * batch.len());
        for key in batch {
            pipeline.cmd("GET").arg(key).cmd("PTTL").arg(key);
            pipeline.cmd("GET").arg(label_key(key));
            if counters {
                let counter = [&key[..], b":fence"].concat();
                pipeline.cmd("GET").arg(counter);
            }
        }
        match line.trip(&pipeline, each * batch.len()).await {
            Ok(values) => readings.extend(values.chunks(each).map(reading)),
            Err(fault) => {
                readings.resize(keys.len(), Err(fault));
                break;
            }
        }
    }
    readings
}

async fn scan(line: &mut Line, plan: &Scan) -> Names {
    let until = Instant::now() + plan.within;
    let pattern = pattern(&plan.start);
    let (mut keys, mut bytes) = (BTreeSet::new(), 0);
    let mut cursor = b"0".to_vec();
    loop {
        let (next, found) = match step(line, &cursor, &pattern).await {
            Ok(step) => step,
            Err(fault) => {
                let end = End::Failed(fault);
                return Names { keys, end };
            }
        };
        for key in found {
            let length = key.len();
            // A scan may show a key twice.
            if keys.insert(key) {
                bytes += length;
            }
        }
        cursor = next;
        let done = cursor == b"0";
        let spent = Instant::now() >= until || bytes > plan.most_bytes;
        if done || spent || keys.len() >= plan.most {
            let end = if done { End::Complete } else { End::Cut };
            return Names { keys, end };
        }
    }
}

/// One step: the next cursor, and the keys.
async fn step(
    line: &mut Line,
    cursor: &[u8],
    pattern: &[u8],
) -> Result<(Vec<u8>, Vec<Vec<u8>>), Fault> {
    let mut pipeline = Pipeline::with_capacity(1);
    let scan = pipeline.cmd("SCAN").arg(cursor);
    scan.arg("MATCH").arg(pattern).arg("COUNT").arg(STEP);
    let shapeless = || Fault::from(FaultKind::Protocol);
    let values = line.trip(&pipeline, 1).await?;
    let parts = match values.into_iter().next() {
        Some(Value::Array(parts)) => parts,
        Some(Value::ServerError(error)) => {
            let fault = server_fault(&error);
            return Err(match fault.kind() {
                // Not what a lock needs, which the text would say.
                FaultKind::Permission => Fault::new(FaultKind::Permission, "a list needs +scan"),
                _ => fault,
            });
        }
        _ => return Err(shapeless()),
    };
    let mut parts = parts.into_iter();
    let (Some(Value::BulkString(next)), Some(Value::Array(found))) = (parts.next(), parts.next())
    else {
        return Err(shapeless());
    };
    let key = |value| match value {
        Value::BulkString(key) => Ok(key),
        _ => Err(shapeless()),
    };
    let found = found.into_iter().map(key).collect::<Result<_, _>>()?;
    Ok((next, found))
}
