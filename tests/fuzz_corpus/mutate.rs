//! Inputs that are nearly right: those of a corpus with a few changes drawn by chance.

/// Pieces that readers have a branch for.
const PIECES: [&[u8]; 54] = [
    b"\r\n",
    b"\0",
    b"\xff",
    b"\xc3\xa9",
    b"\"",
    b"'",
    b"\"\"\"",
    b"[",
    b"]",
    b"[[",
    b"{",
    b"}",
    b"=",
    b" = ",
    b"#",
    b",",
    b".",
    b":",
    b"::",
    b"//",
    b"://",
    b"@",
    b"%",
    b"%00",
    b"%2",
    b"?",
    b"&",
    b"-",
    b"--",
    b"+",
    b"$-1\r\n",
    b"*-1\r\n",
    b"*0\r\n",
    b"*1\r\n",
    b":0\r\n",
    b"_\r\n",
    b">3\r\n",
    b"%1\r\n",
    b"|1\r\n",
    b"~1\r\n",
    b"=5\r\n",
    b"#t\r\n",
    b",nan\r\n",
    b"(1\r\n",
    b"0",
    b"1",
    b"-1",
    b"1e400",
    b"nan",
    b"18446744073709551615",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"4294967296",
    b"ms",
];

/// Nothing longer is tried: what is found is to be read by people.
const LONGEST: usize = 4 << 10;

pub struct Mutator {
    state: u64,
    corpus: Vec<Vec<u8>>,
}

impl Mutator {
    pub fn new(seed: u64, corpus: Vec<Vec<u8>>) -> Mutator {
        Mutator {
            state: seed,
            corpus,
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit.max(1) as u64) as usize
    }

    fn any(&mut self) -> Vec<u8> {
        let at = self.below(self.corpus.len());
        self.corpus[at].clone()
    }

    /// The next input: one of the corpus, changed from one to eight times.
    pub fn next(&mut self) -> Vec<u8> {
        let mut input = self.any();
        for _ in 0..=self.below(8) {
            self.change(&mut input);
        }
        input.truncate(LONGEST);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let length = self.below(16).min(input.len() - at);
        let range = at..at + length;
        match self.below(8) {
            0 => drop(input.drain(range)),
            1 => {
                let piece = PIECES[self.below(PIECES.len())];
                drop(input.splice(range, piece.iter().copied()));
            }
            2 => {
                let piece = PIECES[self.below(PIECES.len())];
                drop(input.splice(at..at, piece.iter().copied()));
            }
            3 => {
                let byte = self.below(256) as u8;
                input.insert(at, byte);
            }
            4 => {
                let copy = input[range].to_vec();
                let to = self.below(input.len() + 1);
                drop(input.splice(to..to, copy));
            }
            5 => {
                // The beginning of this one, the end of another.
                let other = self.any();
                let from = self.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            6 => {
                let again = 1 + self.below(64);
                let copy = input[range].repeat(again);
                drop(input.splice(at..at, copy));
            }
            _ => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.below(8);
                }
            }
        }
    }
}
