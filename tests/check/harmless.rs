//! A check only reads.

use crate::common::{as_user, check, settings};
use crate::support::{Cluster, Monitor, Reply, Server};

/// All that a check may send. SELECT and AUTH belong to connecting.
const READING: [&str; 11] = [
    "info",
    "hello",
    "config|get",
    "get",
    "pttl",
    "time",
    "acl|whoami",
    "acl|dryrun",
    "auth",
    "client|setinfo",
    // Of the test itself.
    "monitor",
];

/// The commands that a server has run since its statistics were reset, by their names.
fn ran(server: &Server) -> Vec<String> {
    let stats = server.probe().info("commandstats");
    let names = stats.keys().filter_map(|key| key.strip_prefix("cmdstat_"));
    let ours = |name: &&str| !["config|resetstat", "echo", "ping"].contains(name);
    names.filter(ours).map(str::to_owned).collect()
}

fn scripts(server: &Server) -> Option<String> {
    let memory = server.probe().info("memory");
    memory.get("number_of_cached_scripts").cloned()
}

#[tokio::test]
async fn only_reading_commands_are_sent_and_no_key_appears() {
    let cluster = Cluster::start(3);
    let locker = as_user(&cluster, &["~*", "+@all"]);
    for config in [settings(cluster.urls()), locker] {
        let before: Vec<_> = cluster.iter().map(scripts).collect();
        for server in cluster.iter() {
            let reset = server.probe().command(&["CONFIG", "RESETSTAT"]);
            assert_eq!(reset, Reply::Simple("OK".into()));
        }
        let monitors: Vec<_> = cluster.ports().into_iter().map(Monitor::on).collect();
        let report = check(config).await;
        assert_eq!(report.votes(), 3, "{report}");
        for ((server, monitor), scripts_before) in cluster.iter().zip(monitors).zip(before) {
            let seen = monitor.stop();
            // What MONITOR leaves out, and which ACL command it was, the statistics tell.
            let allowed = ["INFO", "GET", "PTTL", "TIME", "CONFIG", "ACL", "AUTH"];
            let strange = seen
                .iter()
                .find(|seen| !allowed.contains(&seen.name().as_str()));
            assert!(strange.is_none(), "{strange:?}");
            assert!(seen.iter().any(|seen| seen.name() == "TIME"), "{seen:?}");
            let ran = ran(server);
            let strange = ran.iter().find(|name| !READING.contains(&name.as_str()));
            assert!(strange.is_none(), "{strange:?} of {ran:?}");
            assert!(ran.iter().any(|name| name == "acl|dryrun"), "{ran:?}");
            let keys = server.probe().keys("*");
            assert!(keys.is_empty(), "{keys:?}");
            assert_eq!(scripts(server), scripts_before);
        }
    }
}
