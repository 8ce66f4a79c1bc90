//! Credentials that change while a client lives, quick.

use std::fs;

use quorumlock::{Client, FaultKind, Node};

use crate::common::{MS, SLACK, Said, said, settings};
use crate::support::{Cluster, Probe, Reply};

/// Sets the password of a node, and ends the connections that know the old one.
fn change(admin: &mut Probe, password: &str) {
    for command in [
        &["CONFIG", "SET", "requirepass", password][..],
        &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"],
    ] {
        let reply = admin.command(command);
        assert!(!matches!(reply, Reply::Error(_)), "{command:?}: {reply:?}");
    }
}

async fn locks(client: &Client) -> bool {
    let lock = client.lock("job").wait(200 * MS);
    match lock.acquire().await {
        Ok(guard) => guard.release().await.is_ok(),
        Err(_) => false,
    }
}

#[tokio::test]
async fn a_password_file_that_is_rewritten_is_enough_after_a_change_of_password() {
    let cluster = Cluster::start(3);
    let mut admins: Vec<Probe> = cluster.iter().map(|server| server.probe()).collect();
    admins.iter_mut().for_each(|admin| change(admin, "old"));
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("password");
    fs::write(&file, "old\n").expect("written");
    let mut config = settings([""; 0]);
    for server in cluster.iter() {
        config = config.node(Node::url(server.url()).password_file(&file));
    }
    let client = crate::common::client(config);
    assert!(locks(&client).await, "the old password is the right one");

    admins.iter_mut().for_each(|admin| change(admin, "new"));
    // It may have been told before it noticed that its connections have ended.
    let mut last = Vec::new();
    let begin = std::time::Instant::now();
    while last != [Said::Failed(FaultKind::Auth); 3] && begin.elapsed() < SLACK {
        let error = client.lock("job").try_acquire().await;
        last = said(&error.expect_err("the old password is wrong"));
        tokio::time::sleep(20 * MS).await;
    }
    let wrong = Said::Failed(FaultKind::Auth);
    assert!(last.iter().filter(|said| **said == wrong).count() >= 2);

    // Put in place as a whole, as those who change secrets do.
    let next = dir.path().join("next");
    fs::write(&next, "new\n").expect("written");
    fs::rename(&next, &file).expect("renamed");
    let begin = std::time::Instant::now();
    while !locks(&client).await {
        assert!(begin.elapsed() < 1000 * MS + SLACK, "not back");
        tokio::time::sleep(10 * MS).await;
    }
}

#[tokio::test]
async fn a_password_file_that_cannot_be_read_is_told_and_read_again() {
    let cluster = Cluster::start(1);
    change(&mut cluster[0].probe(), "secret");
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("password");
    let node = Node::url(cluster[0].url()).password_file(&file);
    let client = crate::common::client(settings([""; 0]).node(node));
    let error = client.lock("job").try_acquire().await;
    let error = error.expect_err("there is no such file");
    assert_eq!(said(&error), [Said::Failed(FaultKind::Auth)], "{error}");
    assert!(error.to_string().contains("password"), "{error}");
    fs::write(&file, "secret").expect("written");
    let begin = std::time::Instant::now();
    while !locks(&client).await {
        assert!(begin.elapsed() < 1000 * MS + SLACK, "the file is there now");
        tokio::time::sleep(10 * MS).await;
    }
}
