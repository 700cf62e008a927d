//! Decisions made by bytes. When the bytes have run out, every decision is 0.

use tench_sys::{CapAddress, Kind, Message};

/// Bytes that make decisions.
#[derive(Clone, Debug)]
pub struct Dice {
    bytes: Vec<u8>,
    next: usize,
}

/// Numbers at which behaviour may change.
const EDGES: [u64; 12] =
    [0, 1, 7, 8, 64, 255, 256, u32::MAX as u64, 1 << 32, i64::MAX as u64, i64::MIN as u64, u64::MAX];

impl Dice {
    /// Makes dice of these bytes.
    pub fn new(bytes: &[u8]) -> Dice {
        Dice { bytes: bytes.to_vec(), next: 0 }
    }

    /// Returns whether no bytes are left.
    pub fn is_done(&self) -> bool {
        self.next >= self.bytes.len()
    }

    /// Returns the next byte.
    pub fn byte(&mut self) -> u8 {
        let byte = self.bytes.get(self.next).copied().unwrap_or(0);
        self.next += 1;
        byte
    }

    /// Returns a number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        let number = if limit <= 256 {
            usize::from(self.byte())
        } else {
            usize::from(self.byte()) << 8 | usize::from(self.byte())
        };
        number % limit
    }

    /// Returns any word: often a small one, or one at an edge.
    pub fn word(&mut self) -> u64 {
        match self.byte() % 4 {
            0 => u64::from(self.byte()),
            1 => EDGES[self.below(EDGES.len())].wrapping_add(self.below(3) as u64).wrapping_sub(1),
            _ => u64::from_le_bytes(core::array::from_fn(|_| self.byte())),
        }
    }

    /// Returns at most `max` bytes. A few bytes decide them all.
    pub fn bytes(&mut self, max: usize) -> Vec<u8> {
        let (length, mut random) = (self.below(max + 1), tench_random::Random::new(self.word()));
        (0..length).map(|_| random.below(256) as u8).collect()
    }

    /// Returns text of at most `max` bytes, with characters of one to four bytes.
    pub fn text(&mut self, max: usize) -> String {
        let mut text = String::new();
        for byte in self.bytes(max) {
            let letter = ['a', '\0', 'é', '€', '🐟', 'Z'][usize::from(byte) % 6];
            if text.len() + letter.len_utf8() <= max {
                text.push(letter);
            }
        }
        text
    }

    /// Returns a capability of this kind, or of any; sometimes a null capability.
    pub fn cap(&mut self, kind: Option<Kind>) -> CapAddress {
        let kind = kind.map_or_else(|| self.below(16) as u32, |kind| kind as u32);
        CapAddress(kind << 8 | u32::from(self.byte()))
    }

    /// Returns a random message whose label may be one of `labels`.
    pub fn message(&mut self, labels: &[u64]) -> Message {
        let label = labels[self.below(labels.len())];
        let label = match self.byte() % 8 {
            0 => self.word() & 0xffff_ffff_ffff,
            1 => label ^ 1 << self.below(48),
            _ => label,
        };
        let mut message = Message::new(label);
        match self.byte() % 8 {
            0 => _ = message.push_text(self.text(500).as_bytes()),
            1 => _ = message.push_text(&self.bytes(500)),
            _ => {}
        }
        // Texts usually fill all that is left.
        for _ in 0..self.below(72) * usize::from(message.length() == 0) {
            message.push(self.word());
        }
        for _ in 0..self.below(6) {
            if self.byte().is_multiple_of(2) {
                message.copy_cap(self.cap(None))
            } else {
                message.move_cap(self.cap(None))
            };
        }
        message
    }

    /// Returns a message that differs a little from `message`.
    pub fn disturbed(&mut self, message: &Message) -> Message {
        let received = tench_sys::Received::from_message(message, 0);
        let (mut words, mut caps) = (received.words().to_vec(), received.caps().to_vec());
        let mut label = message.label();
        for _ in 0..=self.below(3) {
            match self.byte() % 8 {
                0 => words.truncate(self.below(words.len() + 1)),
                1 => words.push(self.word()),
                2 => caps.push(self.cap(None)),
                3 => drop(caps.pop()),
                4 => label ^= 1 << self.below(48),
                5 if !caps.is_empty() => {
                    let index = self.below(caps.len());
                    caps[index] = self.cap(None);
                }
                _ if !words.is_empty() => {
                    let index = self.below(words.len());
                    words[index] =
                        if self.byte().is_multiple_of(2) { self.word() } else { words[index] ^ 1 << self.below(64) };
                }
                _ => {}
            }
        }
        let mut message = Message::with_words(label, &words);
        caps.iter().for_each(|cap| _ = message.copy_cap(*cap));
        message
    }
}
