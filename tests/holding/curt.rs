//! A node that ends each connection with its first answers, in one piece: as a server that is
//! stopped at this moment, seen by a client that had no processor for a while.
//! Tier: all of it every day.

use std::io::Read;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use socket2::SockRef;

use crate::helpers::*;
use crate::support::*;

const TTL: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_node_that_hangs_up_with_its_first_answers_is_tried_on_with_pauses() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("redis://{}", listener.local_addr().expect("bound"));
    let served = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&served);
    std::thread::spawn(move || {
        // It ends with the test program, or with a client that knows no pause.
        for stream in listener.incoming().take(10_000).map_while(Result::ok) {
            if be_curt(stream).is_ok() {
                count.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    let client = open(settings([url], TTL));
    // The engine runs from now on, and nobody wants anything of the node.
    assert!(client.lock("tried on").try_acquire().await.is_err());
    let tried = || served.load(Ordering::SeqCst) >= 8;
    let tried_on = eventually_async(Duration::from_secs(20), tried).await;
    let before = served.load(Ordering::SeqCst);
    assert!(tried_on, "given up after {before} connections");
    // The pauses have grown to a quarter of a second by now.
    tokio::time::sleep(TTL).await;
    let more = served.load(Ordering::SeqCst) - before;
    assert!(more <= 8, "{more} connections in a second");
    drop(client);
}

/// Answers the introduction, with the end of the connection in the same segment.
fn be_curt(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(TTL))?;
    let (mut seen, mut chunk) = (Vec::new(), [0; 4096]);
    while !seen.windows(4).any(|word| word == b"EVAL") {
        match stream.read(&mut chunk)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => seen.extend_from_slice(&chunk[..count]),
        }
    }
    let info = "run_id:one\r\nuptime_in_seconds:100000\r\n";
    let marker = "*2\r\n$1\r\n1\r\n$6\r\n100000\r\n";
    let answer = format!("${}\r\n{info}\r\n{marker}", info.len());
    SockRef::from(&stream).send_with_flags(answer.as_bytes(), libc::MSG_MORE)?;
    stream.shutdown(Shutdown::Write)
}
