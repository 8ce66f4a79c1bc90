use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use super::super::{Line, Manners, Shared};
use super::*;
use crate::clock::{Clock, Instant};
use crate::metrics;
use crate::node::Ask;
use crate::node::connect::{Endpoint, Target};
use crate::node::hook::Hooks;
use crate::node::socket::Stream;
use crate::node::{AskId, Inbox, Order, OwnerToken};

const TTL: u64 = 1000;

/// A session, the queue that it serves, and the server's end of its socket.
struct Bench {
    shared: Shared,
    lane: Lane,
    session: Session,
    events: Vec<Event>,
    server: UnixStream,
}

impl Bench {
    async fn new(resp3: bool) -> Self {
        let (ours, server) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        server.set_nonblocking(true).unwrap();
        let ours = tokio::net::UnixStream::from_std(ours).unwrap();
        let life = Life {
            run_id: None,
            uptime: None,
            marker: 7,
            marker_age: Duration::ZERO,
        };
        let manners = Manners {
            marker_key: b"since".to_vec(),
            patience: Duration::from_secs(1),
            limit: 10_000,
        };
        let mut lane = Lane::new(manners.patience, manners.limit);
        lane.repaired(Instant::from_nanos(0));
        let line = Line {
            lane: Lane::new(manners.patience, manners.limit),
            ears: Ears::default(),
            session: None,
        };
        // As after a login.
        ours.writable().await.unwrap();
        let socket = Socket::new(Stream::Unix(ours), None);
        Bench {
            shared: Shared {
                index: 0,
                target: Target {
                    name: "node".into(),
                    endpoint: Endpoint::Unix { path: "".into() },
                    database: 0,
                    credentials: Arc::new(|| Ok((None, None))),
                    hooks: Hooks::default(),
                },
                manners,
                line: Mutex::new(line),
                wake: Notify::new(),
                inbox: Inbox::default(),
                clock: Clock::Boot,
                meters: metrics::Flush::default(),
            },
            lane,
            session: Session::new(socket, Replies::default(), &life, resp3),
            events: Vec::new(),
            server,
        }
    }

    fn ask(&mut self, id: AskId, ask: Ask) {
        let order = Arc::new(Order {
            round: id % 250,
            key: Arc::from(&b"key"[..]),
            token: OwnerToken::new([u8::try_from(id % 250).unwrap(); 20]),
        });
        let now = self.shared.clock.now();
        self.lane.admit(id, &order, ask, now).unwrap();
    }

    fn send(&mut self) {
        self.session.send(&mut self.lane, &self.shared);
    }

    /// What the server has received since the last time.
    fn received(&mut self) -> String {
        let mut all = Vec::new();
        let _ = self.server.read_to_end(&mut all);
        String::from_utf8(all).unwrap()
    }

    /// The server says this; what comes of it.
    async fn says(&mut self, text: &str) -> Result<(), Fault> {
        self.server.write_all(text.as_bytes()).unwrap();
        self.receive().await
    }

    async fn receive(&mut self) -> Result<(), Fault> {
        let stream = self.session.socket.stream();
        stream.ready(tokio::io::Interest::READABLE).await.unwrap();
        self.session
            .receive(&mut self.lane, &self.shared, &mut self.events)
    }

    /// The answers so far: which request, and whether it was granted.
    fn answers(&mut self) -> Vec<(AskId, bool)> {
        let answer = |event| match event {
            Event::Answer { id, reply, .. } => Some((
                id,
                matches!(
                    reply,
                    Reply::Granted { .. } | Reply::Released { deleted: true, .. }
                ),
            )),
            _ => None,
        };
        self.events.drain(..).filter_map(answer).collect()
    }
}

const GRANT: Ask = Ask::Grant {
    ttl_millis: TTL,
    fence: None,
    block: 1,
    announced: false,
};

fn release() -> Ask {
    Ask::Release {
        until: Instant::FAR,
        fence: None,
    }
}

#[tokio::test]
async fn all_that_waits_goes_out_at_once_and_comes_back_in_order() {
    let mut bench = Bench::new(true).await;
    for id in 1..=3 {
        bench.ask(id, GRANT);
    }
    bench.send();
    let sent = bench.received();
    assert_eq!(sent.matches("\r\nSET\r\n").count(), 3);
    assert_eq!(
        sent.matches("\r\nGET\r\n").count(),
        1,
        "one look at the marker"
    );
    bench.ask(3, release());
    bench.send();
    // Nothing counts before the marker behind it has been seen.
    bench.says("+OK\r\n+OK\r\n+OK\r\n$1\r\n").await.unwrap();
    assert_eq!(bench.answers(), []);
    bench.says("7\r\n:1\r\n").await.unwrap();
    assert_eq!(
        bench.answers(),
        [(1, true), (2, true), (3, true), (3, true)]
    );
    assert!(!bench.session.is_waiting());
}

#[tokio::test]
async fn pushes_are_no_answers() {
    let mut bench = Bench::new(true).await;
    bench.ask(1, GRANT);
    bench.send();
    let note = ">3\r\n$7\r\nmessage\r\n$3\r\nkey\r\n$1\r\n1\r\n";
    let text = format!("{note}+OK\r\n{note}$1\r\n7\r\n{note}");
    bench.says(&text).await.unwrap();
    assert_eq!(bench.answers(), [(1, true)]);
}

#[tokio::test]
async fn a_subscription_is_confirmed_out_of_turn_or_refused_in_turn() {
    let mut bench = Bench::new(true).await;
    let push = |key: &str| format!(">3\r\n$9\r\nsubscribe\r\n$1\r\n{key}\r\n:1\r\n");
    let refused = "-NOPERM no\r\n";
    for (text, confirmed) in [
        (push("a") + &push("b"), &["a", "b"][..]),
        (push("a") + refused, &["a"]),
        (refused.to_owned() + refused, &[]),
    ] {
        let mut ears = Ears::default();
        ears.listen(&Arc::from(&b"a"[..]));
        ears.listen(&Arc::from(&b"b"[..]));
        bench.ask(1, GRANT);
        bench.send();
        bench.session.listen(&mut ears);
        bench.ask(2, GRANT);
        bench.send();
        assert!(bench.received().contains("SUBSCRIBE"));
        let grant = "+OK\r\n$1\r\n7\r\n";
        let text = format!("{grant}{text}{grant}");
        bench.says(&text).await.unwrap();
        let listening = |event: &Event| match event {
            Event::Listening(key) => Some(String::from_utf8_lossy(key).into_owned()),
            _ => None,
        };
        let heard: Vec<_> = bench.events.iter().filter_map(listening).collect();
        assert_eq!(heard, confirmed);
        assert_eq!(bench.answers(), [(1, true), (2, true)]);
        assert!(!bench.session.is_waiting());
    }
}

/// Over RESP2 a connection that has subscribed takes no other command.
#[tokio::test]
async fn nothing_is_subscribed_to_over_resp2() {
    let mut bench = Bench::new(false).await;
    let mut ears = Ears::default();
    ears.listen(&Arc::from(&b"a"[..]));
    bench.session.listen(&mut ears);
    bench.send();
    assert!(!ears.is_waiting() && !bench.session.is_waiting());
    assert_eq!(bench.received(), "");
}

#[tokio::test]
async fn what_was_answered_before_the_end_still_counts() {
    let mut bench = Bench::new(true).await;
    bench.ask(1, GRANT);
    bench.send();
    bench.ask(2, GRANT);
    bench.send();
    bench
        .server
        .write_all(b"+OK\r\n$1\r\n7\r\n+OK\r\n")
        .unwrap();
    bench.server.shutdown(std::net::Shutdown::Both).unwrap();
    let fault = bench.receive().await.unwrap_err();
    assert_eq!(fault.kind(), FaultKind::ConnectionLost);
    assert_eq!(bench.answers(), [(1, true)]);
    let ended = bench.lane.broken(crate::node::lane::Link::Opening);
    assert_eq!(ended.iter().map(|entry| entry.id).collect::<Vec<_>>(), [2]);
}

#[tokio::test]
async fn what_the_socket_does_not_take_is_sent_later_and_bounded() {
    let mut bench = Bench::new(true).await;
    let mut ears = Ears::default();
    ears.listen(&Arc::from(vec![b'x'; 2 * UNSENT]));
    bench.session.listen(&mut ears);
    bench.send();
    assert!(bench.session.wants_write() && bench.session.wants_supervisor());
    bench.ask(1, GRANT);
    bench.send();
    assert!(bench.lane.is_waiting(), "it can still be taken back");
    let mut received = 0;
    while bench.session.wants_write() || bench.lane.is_waiting() {
        received += bench.received().len();
        let stream = bench.session.socket.stream();
        stream.ready(tokio::io::Interest::WRITABLE).await.unwrap();
        bench.send();
    }
    received += bench.received().len();
    assert!(received > 2 * UNSENT);
    assert_eq!(
        bench.session.out.capacity().min(2 * UNSENT),
        bench.session.out.capacity()
    );
}

/// Else a node that talks without end would keep the client's thread to itself.
#[tokio::test]
async fn a_node_that_talks_without_end_is_heard_in_parts() {
    let mut bench = Bench::new(true).await;
    let note = ">3\r\n$7\r\nmessage\r\n$3\r\nkey\r\n$1\r\n1\r\n";
    let text = note.repeat(16 << 10);
    let socket = socket2::SockRef::from(&bench.server);
    socket.set_send_buffer_size(text.len()).unwrap();
    let told = match bench.server.write(text.as_bytes()) {
        Ok(count) => count / note.len(),
        Err(error) => panic!("{error}"),
    };
    let (mut times, mut heard) = (0, 0);
    while heard < told {
        bench.receive().await.unwrap();
        assert!(bench.events.len() <= 2 * UNSENT / note.len());
        heard += bench.events.drain(..).count();
        times += 1;
    }
    assert!(times > 1, "all {told} at once");
}

#[tokio::test]
async fn an_answer_to_nothing_ends_the_connection() {
    let mut bench = Bench::new(true).await;
    let fault = bench.says("+OK\r\n").await.unwrap_err();
    assert_eq!(fault.kind(), FaultKind::Protocol);
}
