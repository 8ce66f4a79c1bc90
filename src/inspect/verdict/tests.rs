use super::*;
use crate::node::FaultKind;

fn token(number: u8) -> OwnerToken {
    OwnerToken::new([number; 20])
}

/// `0` absent, `x` silent, `f` foreign, any other digit an owner with so many seconds and its place
/// in milliseconds left.
fn contents(text: &str) -> Vec<Result<Content, Fault>> {
    let content = |(place, sign): (usize, char)| match sign {
        '0' => Ok(Content::Absent),
        'f' => Ok(Content::Foreign),
        'x' => Err(FaultKind::Timeout.into()),
        owner => {
            let number = owner.to_digit(10).unwrap() as u8;
            Ok(Content::Lock {
                owner: token(number),
                left: Some(Duration::from_millis(
                    1000 * u64::from(number) + place as u64,
                )),
            })
        }
    };
    text.chars().enumerate().map(content).collect()
}

fn judged(text: &str) -> LockState {
    judge(Quorum::of(text.len()), &contents(text))
}

fn held(number: u8, nodes: usize, millis: u64) -> LockState {
    LockState::Held {
        owner: OwnerId::of(&token(number)),
        nodes,
        left: Some(Duration::from_millis(millis)),
    }
}

#[test]
fn a_quorum_decides_and_silence_is_not_taken_for_freedom() {
    for (text, state) in [
        ("00000", LockState::Free),
        ("11111", held(1, 5, 1002)),
        ("1x1x1", held(1, 3, 1000)),
        ("21222", held(2, 4, 2002)),
        ("0x0x0", LockState::Free),
        ("0x0x1", LockState::Unknown),
        ("00xxx", LockState::Unknown),
        ("xxxxx", LockState::Unknown),
        ("11x00", LockState::Unknown),
        ("12x00", LockState::Split),
        ("11002", LockState::Split),
        ("1122f", LockState::Split),
        ("fff00", LockState::Split),
        ("f0000", LockState::Free),
        ("00xx", LockState::Unknown),
        ("1100", LockState::Split),
        ("x", LockState::Unknown),
        ("0", LockState::Free),
        ("1", held(1, 1, 1000)),
    ] {
        assert_eq!(judged(text), state, "{text}");
    }
}

/// Whatever the silent nodes say once they talk, it does not contradict what was said before.
#[test]
fn what_is_certain_stays_so_whatever_the_silent_nodes_have() {
    let signs = ['0', '1', '2', 'f', 'x'];
    for count in 1..=5_u32 {
        for case in 0..5_usize.pow(count) {
            let sign = |place| signs[case / 5_usize.pow(place) % 5];
            let text: String = (0..count).map(sign).collect();
            for owner in ['0', '1', '2', '3', 'f'] {
                let later = judged(&text.replace('x', &owner.to_string()));
                let agrees = match judged(&text) {
                    LockState::Held { owner, .. } => {
                        matches!(later, LockState::Held { owner: other, .. } if other == owner)
                    }
                    LockState::Free => later == LockState::Free,
                    LockState::Split => !matches!(later, LockState::Held { .. }),
                    LockState::Unknown => true,
                };
                assert!(agrees, "{text} with {owner}: {later:?}");
            }
        }
    }
}

#[test]
fn a_key_that_never_expires_is_the_longest() {
    let lock = |left| {
        Ok(Content::Lock {
            owner: token(1),
            left,
        })
    };
    let second = Some(Duration::from_secs(1));
    let state = judge(Quorum::of(3), &[lock(None), lock(second), lock(None)]);
    assert!(matches!(state, LockState::Held { left: None, .. }));
    let state = judge(Quorum::of(3), &[lock(None), lock(second), lock(second)]);
    assert!(matches!(state, LockState::Held { left, .. } if left == second));
}

#[test]
fn owners_come_with_their_counts_and_without_their_secret() {
    let contents = contents("21122x0");
    assert_eq!(
        owners(&contents),
        [(OwnerId::of(&token(2)), 3), (OwnerId::of(&token(1)), 2)]
    );
    let shown = format!("{:?}", name(vec!["n".into(); 7], &contents));
    assert!(shown.contains("02020202"), "{shown}");
    assert!(!shown.contains("020202020"), "{shown}");
}
