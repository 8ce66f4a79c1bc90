//! docker-compose.yml describes what a lock stands on: five nodes that know nothing of each other,
//! keep their data, never evict a key, and listen where `scripts/cluster` says they do.
#![cfg(unix)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use saphyr::{LoadableYamlNode, Yaml};

const NODES: usize = 5;

/// Everything that is wrong with a compose file, in words. `ports` are those that people are told.
fn faults(text: &str, ports: &[u16]) -> Vec<String> {
    let mut faults = Vec::new();
    let documents = match Yaml::load_from_str(text) {
        Ok(documents) => documents,
        Err(error) => return vec![format!("no YAML: {error}")],
    };
    let Some(services) = documents
        .first()
        .and_then(|top| field(top, "services"))
        .and_then(Yaml::as_mapping)
    else {
        return vec!["no services".to_owned()];
    };
    if services.len() != NODES {
        faults.push(format!("{} services, not {NODES}", services.len()));
    }
    let mut published = Vec::new();
    let mut volumes = BTreeSet::new();
    for (name, service) in services {
        let name = name.as_str().unwrap_or("?");
        for fault in service_faults(service) {
            faults.push(format!("{name}: {fault}"));
        }
        published.extend(strings(service, "ports"));
        for mount in strings(service, "volumes") {
            let volume = mount.split(':').next().unwrap_or_default().to_owned();
            let declared = field(&documents[0], "volumes").and_then(|all| field(all, &volume));
            if declared.is_none() {
                faults.push(format!(
                    "{name}: volume `{volume}` is not declared, so not named"
                ));
            }
            if !volumes.insert(volume.clone()) {
                faults.push(format!("{name}: shares the volume `{volume}`"));
            }
        }
    }
    let expected: Vec<String> = ports
        .iter()
        .enumerate()
        .map(|(i, port)| format!("127.0.0.1:${{NODE{}_PORT:-{port}}}:6379", i + 1))
        .collect();
    if published != expected {
        faults.push(format!("ports are {published:?}, not {expected:?}"));
    }
    faults
}

fn service_faults(service: &Yaml<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    let image = field(service, "image")
        .and_then(Yaml::as_str)
        .unwrap_or_default();
    if !is_pinned(image) {
        faults.push(format!("image `{image}` is not pinned to one version"));
    }
    let command = strings(service, "command");
    for (option, value) in [
        ("--appendonly", "yes"),
        ("--appendfsync", "everysec"),
        ("--maxmemory-policy", "noeviction"),
    ] {
        if !command
            .windows(2)
            .any(|pair| pair[0] == option && pair[1] == value)
        {
            faults.push(format!("is not started with {option} {value}"));
        }
    }
    // `slaveof` is the old name; `--cluster-enabled` would make one set of the five.
    for forbidden in ["replicaof", "slaveof", "cluster-enabled", "sentinel"] {
        if command
            .iter()
            .any(|word| word.to_lowercase().contains(forbidden))
        {
            faults.push(format!("is not independent: {forbidden}"));
        }
    }
    let test = field(service, "healthcheck").map(|check| strings(check, "test").join(" "));
    if !test.is_some_and(|test| test.contains("ping") && test.contains("PONG")) {
        faults.push("has no health check that pings".to_owned());
    }
    if !strings(service, "volumes")
        .iter()
        .any(|mount| mount.ends_with(":/data"))
    {
        faults.push("keeps its data in no volume".to_owned());
    }
    if field(service, "restart").and_then(Yaml::as_str) != Some("unless-stopped") {
        faults.push("does not come back by itself".to_owned());
    }
    faults
}

/// A tag that names major, minor and patch level, which the publisher does not move.
fn is_pinned(image: &str) -> bool {
    let Some((name, tag)) = image.rsplit_once(':') else {
        return false;
    };
    let version = tag.split('-').next().unwrap_or_default();
    let numbers = version
        .split('.')
        .filter(|part| part.parse::<u32>().is_ok())
        .count();
    !name.is_empty() && numbers == 3
}

/// A field of a mapping, also one that a merge key (`<<`) brings in: the parser leaves those to us.
fn field<'a>(mapping: &'a Yaml<'a>, name: &str) -> Option<&'a Yaml<'a>> {
    let own = mapping.as_mapping_get(name);
    own.or_else(|| {
        mapping
            .as_mapping_get("<<")
            .and_then(|merged| merged.as_mapping_get(name))
    })
}

fn strings(mapping: &Yaml<'_>, name: &str) -> Vec<String> {
    field(mapping, name)
        .and_then(Yaml::as_sequence)
        .map(|items| {
            items
                .iter()
                .filter_map(Yaml::as_str)
                .map(str::to_owned)
                .collect()
        })
        .unwrap_or_default()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn compose_file() -> String {
    fs::read_to_string(root().join("docker-compose.yml")).unwrap()
}

/// The ports that `scripts/cluster` tells people, so that they are written in one place only.
fn cluster_ports() -> Vec<u16> {
    let nowhere = tempfile::tempdir().unwrap();
    let output = Command::new(root().join("scripts/cluster"))
        .arg("urls")
        .env("QUORUMLOCK_CLUSTER_DIR", nowhere.path())
        .env_remove("QUORUMLOCK_CLUSTER_BASE_PORT")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .split(',')
        .map(|url| {
            url.strip_prefix("redis://127.0.0.1:")
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect()
}

#[test]
fn the_compose_file_describes_five_independent_nodes() {
    let ports = cluster_ports();
    assert_eq!(
        ports.iter().collect::<BTreeSet<_>>().len(),
        NODES,
        "{ports:?}"
    );
    assert_eq!(faults(&compose_file(), &ports), Vec::<String>::new());
}

#[test]
fn each_way_to_break_the_compose_file_is_noticed() {
    let file = compose_file();
    let ports = cluster_ports();
    let cut = file.find("  node5:\n    <<").unwrap();
    let volumes = file.find("\nvolumes:").unwrap();
    for (broken, fault) in [
        (file.replace(&file[cut..volumes], ""), "4 services"),
        (file.replace(":-7102}", ":-7101}"), "ports are"),
        (
            file.replace("127.0.0.1:${NODE3_PORT", "0.0.0.0:${NODE3_PORT"),
            "ports are",
        ),
        (file.replace("NODE4_PORT", "NODE5_PORT"), "ports are"),
        (
            file.replace("valkey:8.1.10-alpine", "valkey:latest"),
            "not pinned",
        ),
        (
            file.replace("valkey:8.1.10-alpine", "valkey:8.1-alpine"),
            "not pinned",
        ),
        (file.replace("valkey:8.1.10-alpine", "valkey"), "not pinned"),
        (
            file.replace("--appendonly\n    - \"yes\"", "--appendonly\n    - \"no\""),
            "--appendonly",
        ),
        (file.replace("everysec", "no"), "--appendfsync"),
        (
            file.replace("- noeviction", "- volatile-ttl"),
            "--maxmemory-policy",
        ),
        (file.replace("--save", "--replicaof"), "not independent"),
        (
            file.replace("--save", "--cluster-enabled"),
            "not independent",
        ),
        (file.replace("healthcheck:", "x-health:"), "no health check"),
        (file.replace("valkey-cli ping", "true"), "no health check"),
        (
            file.replace("[\"node2:/data\"]", "[\"node1:/data\"]"),
            "shares the volume",
        ),
        (
            file.replace("[\"node2:/data\"]", "[\"node2:/other\"]"),
            "no volume",
        ),
        (
            file.replace("\n  node2:\n  node3:\n", "\n  node3:\n"),
            "not declared",
        ),
        (file.replace("unless-stopped", "no"), "does not come back"),
        ("services: [".to_owned(), "no YAML"),
        ("name: x\n".to_owned(), "no services"),
    ] {
        assert_ne!(
            broken, file,
            "{fault}: the text to break is not there any more"
        );
        let found = faults(&broken, &ports);
        assert!(
            found.iter().any(|f| f.contains(fault)),
            "{fault} went unnoticed: {found:?}"
        );
    }
}
