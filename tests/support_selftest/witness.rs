//! The witness.

use std::time::Duration;

use crate::support::*;

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_witness_accepts_a_clean_history_and_finds_a_planted_overlap() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("notes");
    let witness = Witness::open(&path).expect("a file");
    let later = boot_nanos() + 60_000_000_000;
    witness.enter("t1", later).expect("noted");
    witness.leave("t1", later).expect("noted");
    // Killed: it never left, and its last note is torn.
    let soon = boot_nanos() + 20_000_000;
    witness.enter("t2", soon).expect("noted");
    std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, b"\nextend 1 t2 123 00000"))
        .expect("a torn note");
    assert!(eventually(1000 * MS, || boot_nanos() > soon));
    Witness::open(&path)
        .and_then(|other| other.enter("t3", soon + 1))
        .expect("noted");
    let summary = check(&path).expect("a clean history");
    assert_eq!(
        (summary.claims, summary.unfinished, summary.torn),
        (3, 2, 1)
    );
    assert_eq!(summary.by_pid[&std::process::id()], 3);

    witness
        .enter("t4", boot_nanos() + 5_000_000)
        .expect("noted");
    witness.extend("t4", later).expect("noted");
    std::thread::sleep(10 * MS);
    assert!(check(&path).is_ok());
    witness.enter("t5", later).expect("noted");
    witness.leave("t5", later).expect("noted");
    match check(&path) {
        Err(Violation::Overlap(a, b)) => assert_eq!((a.token, b.token), ("t4".into(), "t5".into())),
        other => panic!("the overlap was not found: {other:?}"),
    }
    witness.leave("t6", later).expect("noted");
    assert!(matches!(check(&path), Err(Violation::Stray(_))));
}
