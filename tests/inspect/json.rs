//! The JSON forms.

use quorumlock::Node;
use serde_json::{Value, json};

use crate::helpers::*;
use crate::support::*;

const TTL: std::time::Duration = std::time::Duration::from_secs(10);

#[tokio::test]
async fn what_is_told_can_be_read_by_programs_and_has_no_secret() {
    let cluster = Cluster::start(2);
    let config = settings(cluster.urls(), TTL).node(Node::url("redis://127.0.0.1:1"));
    let client = open(config);
    let owner = "ab".repeat(20);
    let name = b"a\xff";
    for server in cluster.iter() {
        let mut probe = server.probe();
        probe.set_raw(b"quorumlock:{a\xff}", &owner, Some(TTL));
        probe.set_raw(b"quorumlock:{a\xff}:fence", "42", None);
    }
    let status = client.status(name).await.expect("a name");
    let mut status = serde_json::to_value(status).expect("JSON");
    for place in ["/left_ms", "/nodes/0/left_ms", "/nodes/1/left_ms"] {
        let left = status.pointer_mut(place).expect("a span");
        assert!(left.as_u64().is_some_and(|left| left <= 10_000), "{left}");
        *left = json!(1);
    }
    let on = |node: usize| {
        let name = format!("127.0.0.1:{}", cluster[node].port());
        json!({"node": name, "key": "lock", "owner": "abababab", "left_ms": 1})
    };
    let down = &status["nodes"][2];
    assert_eq!(down["fault"]["kind"], "ConnectionRefused");
    let down = down.clone();
    let fingerprint = status["fingerprint"].clone();
    let expected = json!({
        "resource": null, "resource_hex": "61ff", "state": "held", "owner": "abababab",
        "owner_nodes": 2, "left_ms": 1, "needed": 2, "label": null,
        "fencing_counter": 42,
        "fingerprint": fingerprint, "nodes": [on(0), on(1), down],
    });
    assert_eq!(status, expected);

    let listing = serde_json::to_value(client.list("a").await).expect("JSON");
    assert_eq!(listing["locks"][0]["resource_hex"], "61ff");
    assert_eq!(listing["locks"][0]["copies"], 2);
    assert_eq!(
        (&listing["complete"], &listing["prefix"]),
        (&json!(true), &json!("a"))
    );
    assert_eq!(
        listing["faults"]["127.0.0.1:1"]["kind"],
        "ConnectionRefused"
    );

    let freed = client.force_release(name).await.expect("two of three");
    let freed: Value = serde_json::to_value(freed).expect("JSON");
    assert_eq!(
        (&freed["was_held"], &freed["deleted"]),
        (&json!(true), &json!(2))
    );
    assert_eq!(freed["owners"], json!([["abababab", 2]]));
}
