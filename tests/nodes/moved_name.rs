//! A node whose name gets another address, quick. It needs a name server of its own, as
//! `silent_dns.rs` does.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quorumlock::FaultKind;

use crate::common::{MS, SLACK, Said, client, said, settings};
use crate::silent_dns::in_a_network_of_its_own;
use crate::stand_in::StandIn;

#[test]
fn a_name_is_resolved_anew_at_each_connect() {
    let name = "moved_name::a_name_is_resolved_anew_at_each_connect";
    in_a_network_of_its_own(name, inside);
}

fn inside() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(moved());
}

async fn moved() {
    // Nobody listens there.
    let address = Arc::new(Mutex::new(Ipv4Addr::new(127, 0, 0, 9)));
    serve_names(Arc::clone(&address));
    let node = StandIn::start();
    let url = format!("redis://node.example:{}", node.stub.port());
    let client = client(settings([url]));
    let error = client.lock("job").try_acquire().await;
    let error = error.expect_err("the wrong address");
    let refused = Said::Failed(FaultKind::ConnectionRefused);
    assert_eq!(said(&error), [refused], "{error}");

    *address.lock().expect("no panic there") = Ipv4Addr::LOCALHOST;
    let begin = Instant::now();
    let lock = client.lock("job").wait(1000 * MS + SLACK);
    let guard = lock.acquire().await.expect("the right address");
    assert!(guard.is_held());
    assert!(begin.elapsed() < Duration::from_secs(1) + SLACK);
}

/// Answers every question for an address with this one, and any other question with nothing.
fn serve_names(address: Arc<Mutex<Ipv4Addr>>) {
    let socket = UdpSocket::bind("127.0.0.1:53").expect("the port of name servers");
    std::thread::spawn(move || {
        let mut question = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut question) {
            let address = *address.lock().expect("no panic there");
            let answer = answer(&question[..length], address);
            let _ = socket.send_to(&answer, from);
        }
    });
}

fn answer(question: &[u8], address: Ipv4Addr) -> Vec<u8> {
    const HEADER: usize = 12;
    let name = question[HEADER..].iter().position(|byte| *byte == 0);
    let name_end = HEADER + name.expect("a name ends with an empty label") + 1;
    let wants_address = question[name_end..name_end + 2] == [0, 1];
    let mut answer = question[..2].to_vec();
    // An answer to one question, without an error, and with one record or none.
    answer.extend([0x81, 0x80, 0, 1, 0, u8::from(wants_address), 0, 0, 0, 0]);
    answer.extend(&question[HEADER..name_end + 4]);
    if wants_address {
        // The name from the question; type A, class IN, no time to live, four bytes.
        answer.extend([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        answer.extend(address.octets());
    }
    answer
}
