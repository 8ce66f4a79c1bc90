//! What a stub can answer.

use std::time::Duration;

/// What a stub does about one command.
#[derive(Debug, Clone, PartialEq)]
pub enum StubReply {
    /// These bytes, whatever they are.
    Raw(Vec<u8>),
    Ok,
    /// The null of RESP2, which RESP3 clients read too.
    Nil,
    Int(i64),
    Bulk(Vec<u8>),
    Simple(String),
    /// An error with its code first: `"NOAUTH Authentication required."`
    Error(String),
    Array(Vec<StubReply>),
    /// Nothing; the connection stays open.
    Silence,
    /// The end of the connection (FIN).
    Close,
    /// The end of the connection (RST).
    Reset,
    /// The same later; the connection's next commands wait behind it.
    After(Duration, Box<StubReply>),
    /// Several one after another: a reply and then `Close`, say.
    Then(Vec<StubReply>),
}

impl StubReply {
    pub fn error(text: &str) -> StubReply {
        StubReply::Error(text.to_owned())
    }

    pub fn bulk(bytes: impl AsRef<[u8]>) -> StubReply {
        StubReply::Bulk(bytes.as_ref().to_vec())
    }

    pub fn after(self, delay: Duration) -> StubReply {
        StubReply::After(delay, Box::new(self))
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            StubReply::Raw(bytes) => out.extend_from_slice(bytes),
            StubReply::Ok => out.extend_from_slice(b"+OK\r\n"),
            StubReply::Nil => out.extend_from_slice(b"$-1\r\n"),
            StubReply::Int(number) => out.extend_from_slice(format!(":{number}\r\n").as_bytes()),
            StubReply::Simple(text) => out.extend_from_slice(format!("+{text}\r\n").as_bytes()),
            StubReply::Error(text) => out.extend_from_slice(format!("-{text}\r\n").as_bytes()),
            StubReply::Bulk(bytes) => {
                out.extend_from_slice(format!("${}\r\n", bytes.len()).as_bytes());
                out.extend_from_slice(bytes);
                out.extend_from_slice(b"\r\n");
            }
            StubReply::Array(items) => {
                out.extend_from_slice(format!("*{}\r\n", items.len()).as_bytes());
                items.iter().for_each(|item| item.encode(out));
            }
            StubReply::Silence | StubReply::Close | StubReply::Reset => {}
            StubReply::After(..) | StubReply::Then(_) => panic!("{self:?} inside an array"),
        }
    }
}
