//! The Redis wire format, by hand: enough of RESP2 and RESP3 to read any reply.

use std::io;

/// No reply or request in these tests comes near to this; a larger length is garbage.
const MAX_LENGTH: usize = 64 << 20;
const MAX_DEPTH: usize = 16;

/// One value as it stood on the wire. Maps and sets become flat arrays, doubles and big numbers
/// keep their text, booleans become 1 and 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Simple(String),
    Error(String),
    Int(i64),
    Bulk(Vec<u8>),
    Nil,
    Array(Vec<Reply>),
    /// A message nobody asked for (RESP3 only); it answers no request.
    Push(Vec<Reply>),
}

impl Reply {
    /// The bytes of a bulk or simple string.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Reply::Bulk(bytes) => Some(bytes),
            Reply::Simple(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    /// The bytes as text, with anything that is not UTF-8 replaced.
    pub fn text(&self) -> Option<String> {
        self.bytes()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    pub fn int(&self) -> Option<i64> {
        match self {
            Reply::Int(number) => Some(*number),
            _ => None,
        }
    }

    pub fn items(&self) -> Option<&[Reply]> {
        match self {
            Reply::Array(items) | Reply::Push(items) => Some(items),
            _ => None,
        }
    }

    pub fn error(&self) -> Option<&str> {
        match self {
            Reply::Error(text) => Some(text),
            _ => None,
        }
    }
}

/// A command as clients send it: an array of bulk strings.
pub fn encode<A: AsRef<[u8]>>(args: &[A]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        let arg = arg.as_ref();
        out.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// Reads the first value in `bytes` and says how many bytes it took; `None` while it is not whole.
///
/// # Errors
/// `InvalidData` when the bytes cannot be the beginning of a value.
pub fn parse(bytes: &[u8]) -> io::Result<Option<(Reply, usize)>> {
    let mut cursor = Cursor { bytes, at: 0 };
    Ok(cursor.value(0)?.map(|reply| (reply, cursor.at)))
}

/// Counts whole values in a stream that arrives in pieces; pushes are not counted.
#[derive(Debug, Default)]
pub struct FrameCount {
    rest: Vec<u8>,
    frames: u64,
    lost: bool,
}

impl FrameCount {
    /// Takes the next piece and returns how many values have been whole so far. A stream that is
    /// no RESP (TLS, say) counts one value a piece.
    pub fn feed(&mut self, bytes: &[u8]) -> u64 {
        self.rest.extend_from_slice(bytes);
        while !self.lost {
            match parse(&self.rest) {
                Ok(Some((reply, used))) => {
                    self.rest.drain(..used);
                    self.frames += u64::from(!matches!(reply, Reply::Push(_)));
                }
                Ok(None) => return self.frames,
                Err(_) => self.lost = true,
            }
        }
        self.rest.clear();
        self.frames += 1;
        self.frames
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn value(&mut self, depth: usize) -> io::Result<Option<Reply>> {
        if depth > MAX_DEPTH {
            return Err(garbage("values nested too deep"));
        }
        let Some(line) = self.line()? else {
            return Ok(None);
        };
        let Some((kind, rest)) = line.split_first() else {
            return Err(garbage("an empty line"));
        };
        let text = || String::from_utf8_lossy(rest).into_owned();
        Ok(match kind {
            b'+' | b',' | b'(' => Some(Reply::Simple(text())),
            b'-' => Some(Reply::Error(text())),
            b':' => Some(Reply::Int(number(rest)?)),
            b'#' => Some(Reply::Int(i64::from(rest == b"t"))),
            b'_' => Some(Reply::Nil),
            b'$' => self
                .blob(rest)?
                .map(|blob| blob.map_or(Reply::Nil, |b| Reply::Bulk(b.to_vec()))),
            b'!' => self.blob(rest)?.map(|blob| {
                Reply::Error(String::from_utf8_lossy(blob.unwrap_or_default()).into_owned())
            }),
            // Three letters of format and a colon stand before a verbatim string.
            b'=' => self.blob(rest)?.map(|blob| {
                Reply::Bulk(
                    blob.unwrap_or_default()
                        .get(4..)
                        .unwrap_or_default()
                        .to_vec(),
                )
            }),
            b'*' | b'~' => self
                .items(rest, 1, depth)?
                .map(|i| i.map_or(Reply::Nil, Reply::Array)),
            b'>' => self
                .items(rest, 1, depth)?
                .map(|i| Reply::Push(i.unwrap_or_default())),
            b'%' => self
                .items(rest, 2, depth)?
                .map(|i| Reply::Array(i.unwrap_or_default())),
            // An attribute describes the value behind it; only that value is kept.
            b'|' => match self.items(rest, 2, depth)? {
                Some(_) => self.value(depth + 1)?,
                None => None,
            },
            other => return Err(garbage(&format!("no value begins with byte {other:#04x}"))),
        })
    }

    fn line(&mut self) -> io::Result<Option<&'a [u8]>> {
        let rest = &self.bytes[self.at..];
        match rest.windows(2).position(|pair| pair == b"\r\n") {
            Some(end) => {
                self.at += end + 2;
                Ok(Some(&rest[..end]))
            }
            None if rest.len() > MAX_LENGTH => Err(garbage("a line without an end")),
            // A wrong first byte is told at once: the rest of the line may never come.
            None if rest
                .first()
                .is_some_and(|kind| !b"+-:$*_,#(!=~>%|".contains(kind)) =>
            {
                Err(garbage(&format!(
                    "no value begins with byte {:#04x}",
                    rest[0]
                )))
            }
            None => Ok(None),
        }
    }

    /// The outer `None` is "not whole yet", the inner one the null of RESP2.
    fn blob(&mut self, length: &[u8]) -> io::Result<Option<Option<&'a [u8]>>> {
        let Some(length) = size(length)? else {
            return Ok(Some(None));
        };
        let Some(blob) = self.bytes.get(self.at..self.at + length + 2) else {
            return Ok(None);
        };
        self.at += length + 2;
        Ok(Some(Some(&blob[..length])))
    }

    fn items(
        &mut self,
        count: &[u8],
        each: usize,
        depth: usize,
    ) -> io::Result<Option<Option<Vec<Reply>>>> {
        let Some(count) = size(count)? else {
            return Ok(Some(None));
        };
        let mut items = Vec::new();
        for _ in 0..count * each {
            match self.value(depth + 1)? {
                Some(item) => items.push(item),
                None => return Ok(None),
            }
        }
        Ok(Some(Some(items)))
    }
}

fn number(text: &[u8]) -> io::Result<i64> {
    let text = std::str::from_utf8(text).ok();
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| garbage("a number that is none"))
}

fn size(text: &[u8]) -> io::Result<Option<usize>> {
    match number(text)? {
        -1 => Ok(None),
        length => match usize::try_from(length) {
            Ok(length) if length <= MAX_LENGTH => Ok(Some(length)),
            _ => Err(garbage("a length out of bounds")),
        },
    }
}

fn garbage(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not RESP: {what}"))
}
