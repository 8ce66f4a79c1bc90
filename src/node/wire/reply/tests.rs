use redis::{PushKind, VerbatimFormat};

use super::*;

/// What `bytes` are read as when they come in pieces of `size`.
fn read(bytes: &[u8], size: usize) -> Result<Vec<Value>, Fault> {
    let mut replies = Replies::default();
    let mut values = Vec::new();
    for piece in bytes.chunks(size) {
        let mut piece = piece;
        while !piece.is_empty() {
            let room = replies.room();
            let count = room.len().min(piece.len());
            room[..count].copy_from_slice(&piece[..count]);
            replies.received(count);
            piece = &piece[count..];
        }
        while let Some(value) = replies.next()? {
            values.push(value);
        }
    }
    assert_eq!(replies.start, replies.end, "something is left");
    Ok(values)
}

/// A server may say something about any value, anywhere; it is the value that was asked for.
#[test]
fn attributes_are_passed_over() {
    let sent = b"|1\r\n+ttl\r\n:3600\r\n+OK\r\n*2\r\n|1\r\n+a\r\n*1\r\n:9\r\n:1\r\n:2\r\n\
        |1\r\n+a\r\n:1\r\n|1\r\n+b\r\n:1\r\n:7\r\n";
    let expected = vec![
        Value::Okay,
        Value::Array(vec![Value::Int(1), Value::Int(2)]),
        Value::Int(7),
    ];
    for size in [1, 2, 7, sent.len()] {
        assert_eq!(read(sent, size).as_ref(), Ok(&expected), "pieces of {size}");
    }
}

fn text(text: &str) -> Value {
    Value::BulkString(text.into())
}

#[test]
fn replies_are_the_same_in_whatever_pieces_they_come() {
    let sent = b"+OK\r\n$-1\r\n_\r\n:-7\r\n$4\r\na\r\nb\r\n*3\r\n:1\r\n$0\r\n\r\n*-1\r\n\
        *2\r\n*1\r\n:5\r\n+OK\r\n+PONG\r\n%1\r\n+a\r\n:1\r\n=6\r\ntxt:ab\r\n\
        >3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n1\r\n#t\r\n*0\r\n";
    let expected = vec![
        Value::Okay,
        Value::Nil,
        Value::Nil,
        Value::Int(-7),
        text("a\r\nb"),
        Value::Array(vec![Value::Int(1), text(""), Value::Nil]),
        Value::Array(vec![Value::Array(vec![Value::Int(5)]), Value::Okay]),
        Value::SimpleString("PONG".into()),
        Value::Map(vec![(Value::SimpleString("a".into()), Value::Int(1))]),
        Value::VerbatimString {
            format: VerbatimFormat::Text,
            text: "ab".into(),
        },
        Value::Push {
            kind: PushKind::Message,
            data: vec![text("c"), text("1")],
        },
        Value::Boolean(true),
        Value::Array(vec![]),
    ];
    for size in 1..=sent.len() {
        assert_eq!(read(sent, size).as_ref(), Ok(&expected), "pieces of {size}");
    }
}

#[test]
fn errors_are_values_with_their_code() {
    let values = read(b"-NOPERM no\r\n*2\r\n:1\r\n-ERR x\r\n", 3).unwrap();
    let [Value::ServerError(error), Value::Array(parts)] = values.as_slice() else {
        panic!("{values:?}");
    };
    assert_eq!((error.code(), error.details()), ("NOPERM", Some("no")));
    assert!(matches!(&parts[1], Value::ServerError(error) if error.code() == "ERR"));
}

#[test]
fn a_reply_larger_than_the_buffer_is_read_and_the_buffer_given_back() {
    let long = "x".repeat(5 * ROOM);
    let sent = format!("${}\r\n{long}\r\n:1\r\n", long.len());
    let values = read(sent.as_bytes(), 10_000).unwrap();
    assert_eq!(values, [text(&long), Value::Int(1)]);
    let mut replies = Replies {
        bytes: vec![0; 8 * ROOM],
        ..Replies::default()
    };
    assert_eq!(replies.room().len(), ROOM);
}

#[test]
fn what_is_no_reply_is_known_from_its_first_byte() {
    for garbage in ["HTTP/1.1 400", "\0", "\u{15}\u{3}", "$x\r\n", "*-2\r\n"] {
        let fault = read(garbage.as_bytes(), 100).unwrap_err();
        assert_eq!(fault.kind(), FaultKind::Protocol, "{garbage:?}");
    }
}

#[test]
fn no_reply_is_waited_for_without_end() {
    let fault = read(b"$99999999999\r\n", 100).unwrap_err();
    assert_eq!(fault.kind(), FaultKind::Protocol);
    let endless = vec![b'+'; LIMIT + 2 * ROOM];
    assert_eq!(
        read(&endless, ROOM).unwrap_err().kind(),
        FaultKind::Protocol
    );
}

#[test]
fn lists_in_lists_are_read_to_the_depth_that_redis_rs_reads() {
    let deep = "*1\r\n".repeat(50) + ":1\r\n";
    let mut value = &read(deep.as_bytes(), 7).unwrap()[0];
    let mut depth = 0;
    while let Value::Array(parts) = value {
        (value, depth) = (&parts[0], depth + 1);
    }
    assert_eq!((depth, value), (50, &Value::Int(1)));
    let deeper = "*1\r\n".repeat(5_000) + ":1\r\n";
    assert!(read(deeper.as_bytes(), 999).is_err());
}
