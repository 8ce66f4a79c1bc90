//! What these tests share.

use std::time::{Duration, Instant};

use quorumlock::{Client, Config, Finding, Node, Report, Severity};

use crate::support::{Cluster, Reply, Server};

pub const MS: Duration = Duration::from_millis(1);

/// What a busy machine may add to any limit.
pub const SLACK: Duration = Duration::from_secs(3);

/// A password that must appear nowhere.
pub const PASSWORD: &str = "hunter2";

/// A small `max_ttl`, so that fresh servers have a vote soon.
pub fn settings<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> Config {
    Config::new(urls)
        .ttl(1000 * MS)
        .max_ttl(1000 * MS)
        .node_timeout(400 * MS)
}

/// The same, with times that fit any machine, however busy.
pub fn patient<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> Config {
    let minute = 60_000 * MS;
    settings(urls)
        .max_ttl(minute)
        .ttl(minute)
        .node_timeout(minute / 6)
}

/// The report, within a second for the probe and two for a node that does not answer.
pub async fn check(config: Config) -> Report {
    let client = Client::with_config(config).expect("usable settings");
    let begin = Instant::now();
    let report = client.check().await;
    let took = begin.elapsed();
    assert!(took < 3000 * MS + SLACK, "{took:?}");
    let texts = [report.to_string(), format!("{report:?}")];
    for text in &texts {
        assert!(!text.contains(PASSWORD), "{text}");
    }
    for line in texts[0].lines() {
        assert!(line.chars().count() <= 100, "too wide: {line}");
    }
    report
}

/// The finding whose measurement holds these words.
pub fn found<'a>(report: &'a Report, words: &str) -> &'a Finding {
    let mut findings = report.findings().iter();
    findings
        .find(|finding| finding.measured().contains(words))
        .unwrap_or_else(|| panic!("nothing about {words:?}:\n{report}"))
}

pub fn is_critical(finding: &Finding) -> bool {
    finding.severity() == Severity::Critical
}

/// How messages call a server.
pub fn name(server: &Server) -> String {
    format!("127.0.0.1:{}", server.port())
}

/// All nodes of a cluster for a user of these rules, made on each.
pub fn as_user(cluster: &Cluster, rules: &[&str]) -> Config {
    let grant = format!(">{PASSWORD}");
    let user = [&["ACL", "SETUSER", "locker", "reset", "on", &grant], rules].concat();
    let mut config = patient([""; 0]);
    for server in cluster.iter() {
        let reply = server.probe().command(&user);
        assert_eq!(reply, Reply::Simple("OK".into()), "{rules:?}");
        config = config.node(
            Node::url(server.url())
                .username("locker")
                .password(PASSWORD),
        );
    }
    config
}
