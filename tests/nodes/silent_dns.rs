//! A name server that says nothing.
//!
//! F10, its last set-up, quick. It needs a network of its own with a name server on port 53, and
//! so runs once more inside namespaces; where the system grants none, it says so and ends.

use std::io::Write;
use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

use quorumlock::{AcquireError, FaultKind};

use crate::common::{SLACK, Said, client, count, said, settings};
use crate::stand_in::{StandIn, urls};

const INSIDE: &str = "TEST_INSIDE_NAMESPACES";

/// Longer than a connection may take to be made, so that the last rounds know what is wrong.
const WAIT: Duration = Duration::from_secs(4);

/// Silence costs one of these a round.
const NODE_TIMEOUT: Duration = Duration::from_secs(1);

fn namespaces(command: &str) -> Command {
    let mut unshare = Command::new("unshare");
    unshare.args(["--map-root-user", "--mount", "--net", "sh", "-c", command]);
    unshare
}

#[test]
fn a_silent_name_server_holds_nobody_up() {
    let name = "silent_dns::a_silent_name_server_holds_nobody_up";
    in_a_network_of_its_own(name, inside);
}

/// Runs the test called `name` once more, with a name server on 127.0.0.1 to be asked: what it does
/// there is `inside`.
pub fn in_a_network_of_its_own(name: &str, inside: fn()) {
    if std::env::var_os(INSIDE).is_some() {
        loopback_up();
        return inside();
    }
    let allowed = namespaces("true").output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this system grants no namespaces");
        return;
    }
    let mut resolver = tempfile::NamedTempFile::new().expect("a file");
    writeln!(resolver, "nameserver 127.0.0.1").expect("written");
    let program = std::env::current_exe().expect("this program");
    let output = namespaces("mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"")
        .arg(resolver.path())
        .arg(program)
        .args(["--exact", name])
        .env(INSIDE, "1")
        .output()
        .expect("this program runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("1 passed"), "{text}{errors}");
}

fn inside() {
    let server = UdpSocket::bind("127.0.0.1:53").expect("the port of name servers");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(with_two_names());
    runtime.block_on(with_three_names());
    server.set_nonblocking(true).expect("a socket");
    let asked = server.recv_from(&mut [0; 512]);
    asked.expect("the name server was asked, so its silence was met");
}

fn mixed(names: usize, nodes: &[StandIn]) -> Vec<String> {
    let names = (1..=names).map(|n| format!("redis://n{n}.example"));
    names.chain(urls(nodes)).collect()
}

async fn with_two_names() {
    let nodes = StandIn::some(3);
    let client = client(settings(mixed(2, &nodes)).node_timeout(NODE_TIMEOUT));
    let begin = Instant::now();
    for _ in 0..20 {
        let guard = client.lock("job").acquire().await.expect("three nodes");
        guard.release().await.expect("three nodes");
    }
    assert!(begin.elapsed() < 20 * NODE_TIMEOUT, "{:?}", begin.elapsed());
}

async fn with_three_names() {
    let nodes = StandIn::some(2);
    let client = client(
        settings(mixed(3, &nodes))
            .node_timeout(NODE_TIMEOUT)
            .wait(WAIT),
    );
    let begin = Instant::now();
    let tried = client.lock("job").try_acquire().await;
    tried.expect_err("two nodes");
    assert!(
        begin.elapsed() < NODE_TIMEOUT + SLACK,
        "names count inside the budget"
    );
    let begin = Instant::now();
    let error = client.lock("job").acquire().await.expect_err("two nodes");
    assert!(begin.elapsed() < WAIT + NODE_TIMEOUT + SLACK, "{error}");
    assert!(matches!(error, AcquireError::Unavailable(_)), "{error}");
    assert_eq!(count(&said(&error), Said::Failed(FaultKind::Timeout)), 3);
    assert!(
        error.to_string().contains("no address for the host name"),
        "{error}"
    );
}

/// A new network begins with its loopback down.
fn loopback_up() {
    // SAFETY: the request is ours, and large enough for what the calls read and write.
    let done = unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM, 0);
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
            *to = *from as libc::c_char;
        }
        let asked = libc::ioctl(socket, libc::SIOCGIFFLAGS, &mut request);
        request.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short;
        let set = libc::ioctl(socket, libc::SIOCSIFFLAGS, &request);
        libc::close(socket);
        (asked, set)
    };
    assert_eq!(done, (0, 0), "{}", std::io::Error::last_os_error());
}
