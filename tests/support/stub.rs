//! A scripted server: each command goes to a function of the test, which says what to answer.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::ports::{ReservedPort, reset, stop_listening};
use super::resp::parse;
use super::stub_reply::StubReply;
use super::tiny_redis::TinyRedis;

/// A command that reached a stub.
#[derive(Debug, Clone)]
pub struct Received {
    pub at: Instant,
    /// Which connection it came on, counted from 0.
    pub connection: usize,
    pub args: Vec<Vec<u8>>,
}

impl Received {
    /// The command's name in capitals.
    pub fn name(&self) -> String {
        self.args
            .first()
            .map(|a| String::from_utf8_lossy(a).to_uppercase())
            .unwrap_or_default()
    }
}

type Handler = Box<dyn Fn(usize, &[Vec<u8>]) -> StubReply + Send + Sync>;

/// How a stub treats the bytes it reads.
enum Script {
    Commands(Handler),
    /// Bytes that need not be RESP are answered with these, or not at all.
    Bytes(Vec<u8>),
}

/// A server on loopback that runs until it is dropped, one thread for each connection.
pub struct Stub {
    port: ReservedPort,
    listener: TcpListener,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    script: Script,
    received: Mutex<Vec<Received>>,
    /// A second handle of each open connection, for hanging up from outside.
    streams: Mutex<Vec<(usize, TcpStream)>>,
    accepted: AtomicUsize,
    stop: AtomicBool,
}

impl Stub {
    /// `handler` gets the connection's number and the command with its arguments. It is called by
    /// several threads when there are several connections.
    pub fn start(handler: impl Fn(usize, &[Vec<u8>]) -> StubReply + Send + Sync + 'static) -> Stub {
        Stub::with(Script::Commands(Box::new(handler)))
    }

    /// Plays a small Redis; keep a clone of the `Arc` to change its mind later.
    pub fn tiny(redis: Arc<TinyRedis>) -> Stub {
        Stub::start(move |connection, args| redis.handle(connection, args))
    }

    /// Accepts, reads everything and never says a word.
    pub fn never_speaks() -> Stub {
        Stub::with(Script::Bytes(Vec::new()))
    }

    /// Answers every piece of input with bytes that are neither RESP nor TLS.
    pub fn tcp_garbage() -> Stub {
        Stub::with(Script::Bytes(
            b"\x00\xffHTTP/1.1 400 Bad Request\r\n\r\n\x15".to_vec(),
        ))
    }

    fn with(script: Script) -> Stub {
        let port = ReservedPort::any().expect("a port for a stub");
        let listener = port.listen().expect("a listener for a stub");
        let shared = Arc::new(Shared {
            script,
            received: Mutex::default(),
            streams: Mutex::default(),
            accepted: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        });
        let theirs = (
            listener.try_clone().expect("a second handle"),
            Arc::clone(&shared),
        );
        let thread = std::thread::spawn(move || accept(&theirs.0, &theirs.1));
        Stub {
            port,
            listener,
            shared,
            thread: Some(thread),
        }
    }

    pub fn port(&self) -> u16 {
        self.port.number()
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port())
    }

    /// Everything received so far, in the order of arrival.
    pub fn received(&self) -> Vec<Received> {
        lock(&self.shared.received).clone()
    }

    /// The commands of this name, in any case.
    pub fn of(&self, name: &str) -> Vec<Received> {
        self.received()
            .into_iter()
            .filter(|command| command.name() == name.to_uppercase())
            .collect()
    }

    pub fn forget_received(&self) {
        lock(&self.shared.received).clear();
    }

    /// Connections accepted since the start.
    pub fn connections(&self) -> usize {
        self.shared.accepted.load(Ordering::Relaxed)
    }

    /// Ends every open connection; new ones are served.
    pub fn hang_up(&self) {
        for (_, stream) in lock(&self.shared.streams).iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts, and then those that read.
        stop_listening(&self.listener);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.hang_up();
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while !shared.stop.load(Ordering::Relaxed) {
        let Ok((stream, _)) = listener.accept() else {
            return;
        };
        let Ok(handle) = stream.try_clone() else {
            continue;
        };
        let number = shared.accepted.fetch_add(1, Ordering::Relaxed);
        lock(&shared.streams).push((number, handle));
        let (theirs, mut stream) = (Arc::clone(shared), stream);
        std::thread::spawn(move || {
            let _ = serve(&mut stream, number, &theirs);
            lock(&theirs.streams).retain(|(other, _)| *other != number);
        });
    }
}

fn serve(stream: &mut TcpStream, number: usize, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut pending = Vec::new();
    let mut chunk = [0; 16 << 10];
    while !shared.stop.load(Ordering::Relaxed) {
        let n = stream.read(&mut chunk)?;
        let handler = match &shared.script {
            _ if n == 0 => return Ok(()),
            Script::Commands(handler) => handler,
            Script::Bytes(answer) => {
                stream.write_all(answer)?;
                continue;
            }
        };
        pending.extend_from_slice(&chunk[..n]);
        loop {
            let args: Vec<_> = match parse(&pending) {
                Ok(Some((command, used))) => {
                    pending.drain(..used);
                    let items = command.items().unwrap_or_default();
                    items
                        .iter()
                        .filter_map(|item| item.bytes().map(<[u8]>::to_vec))
                        .collect()
                }
                Ok(None) => break,
                Err(_) => {
                    stream.write_all(b"-ERR Protocol error\r\n")?;
                    return stream.shutdown(Shutdown::Both);
                }
            };
            record(shared, number, &args);
            if !act(stream, &handler(number, &args))? {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn record(shared: &Shared, connection: usize, args: &[Vec<u8>]) {
    lock(&shared.received).push(Received {
        at: Instant::now(),
        connection,
        args: args.to_vec(),
    });
}

/// Carries out one answer; says whether the connection goes on.
fn act(stream: &mut TcpStream, reply: &StubReply) -> io::Result<bool> {
    match reply {
        StubReply::Silence => Ok(true),
        StubReply::Close => stream.shutdown(Shutdown::Both).map(|()| false),
        StubReply::Reset => {
            reset(stream);
            Ok(false)
        }
        StubReply::After(delay, reply) => {
            std::thread::sleep(*delay);
            act(stream, reply)
        }
        StubReply::Then(replies) => {
            for reply in replies {
                if !act(stream, reply)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        reply => {
            let mut bytes = Vec::new();
            reply.encode(&mut bytes);
            stream.write_all(&bytes).map(|()| true)
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
