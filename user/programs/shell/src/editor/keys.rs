//! Decoder from typed bytes to keys: control characters, escape sequences, UTF-8.

/// Bytes of the longest escape sequence that is decoded; longer ones are skipped.
const MAX_PARAMETERS: usize = 16;

/// A key, or a report of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A printable character.
    Char(char),
    /// Carriage return or line feed; one key for both together.
    Enter,
    /// Tab.
    Tab,
    /// Backspace, Ctrl-H.
    Backspace,
    /// Delete.
    Delete,
    /// Cursor left, Ctrl-B.
    Left,
    /// Cursor right, Ctrl-F.
    Right,
    /// Cursor up, Ctrl-P.
    Up,
    /// Cursor down, Ctrl-N.
    Down,
    /// Home, Ctrl-A.
    Home,
    /// End, Ctrl-E.
    End,
    /// Ctrl-Left, Alt-B.
    WordLeft,
    /// Ctrl-Right, Alt-F.
    WordRight,
    /// Ctrl-K.
    KillToEnd,
    /// Ctrl-U.
    KillToStart,
    /// Ctrl-W.
    KillWord,
    /// Ctrl-L.
    ClearScreen,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    EndOfInput,
    /// The terminal's report of its cursor's column, counted from 1.
    CursorColumn(usize),
    /// A key without a meaning here.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ground,
    Escape,
    /// After `ESC [`.
    Sequence,
    /// After `ESC O`.
    Single,
    /// Inside a character of several bytes, of which this many are missing.
    Character(u32),
}

/// Decoder, fed byte by byte.
#[derive(Debug)]
pub struct Keys {
    state: State,
    after_return: bool,
    parameters: [u8; MAX_PARAMETERS],
    parameter_count: usize,
    /// Code point of the incomplete character.
    character: u32,
}

impl Default for Keys {
    fn default() -> Keys {
        let parameters = [0; MAX_PARAMETERS];
        Keys { state: State::Ground, after_return: false, parameters, parameter_count: 0, character: 0 }
    }
}

impl Keys {
    /// Decodes a byte. Returns the key that it completes.
    pub fn feed(&mut self, byte: u8) -> Option<Key> {
        let after_return = core::mem::replace(&mut self.after_return, byte == b'\r');
        match self.state {
            State::Ground if after_return && byte == b'\n' => None,
            State::Ground => self.ground(byte),
            State::Escape => self.escape(byte),
            State::Sequence => self.sequence(byte),
            State::Single => {
                self.state = State::Ground;
                Some(cursor_key(byte).unwrap_or(Key::Unknown))
            }
            State::Character(missing) => self.character(byte, missing),
        }
    }

    fn ground(&mut self, byte: u8) -> Option<Key> {
        let control = |letter: u8| letter & 0x1f;
        Some(match byte {
            b'\r' | b'\n' => Key::Enter,
            b'\t' => Key::Tab,
            8 | 127 => Key::Backspace,
            27 => {
                self.state = State::Escape;
                return None;
            }
            _ if byte == control(b'A') => Key::Home,
            _ if byte == control(b'B') => Key::Left,
            _ if byte == control(b'C') => Key::Interrupt,
            _ if byte == control(b'D') => Key::EndOfInput,
            _ if byte == control(b'E') => Key::End,
            _ if byte == control(b'F') => Key::Right,
            _ if byte == control(b'K') => Key::KillToEnd,
            _ if byte == control(b'L') => Key::ClearScreen,
            _ if byte == control(b'N') => Key::Down,
            _ if byte == control(b'P') => Key::Up,
            _ if byte == control(b'U') => Key::KillToStart,
            _ if byte == control(b'W') => Key::KillWord,
            0..32 => Key::Unknown,
            32..127 => Key::Char(char::from(byte)),
            0x80.. => return self.lead(byte),
        })
    }

    /// Decodes the first byte of a character of several bytes.
    fn lead(&mut self, byte: u8) -> Option<Key> {
        let (missing, bits) = match byte {
            0xc2..=0xdf => (1, byte & 0x1f),
            0xe0..=0xef => (2, byte & 0x0f),
            0xf0..=0xf4 => (3, byte & 0x07),
            _ => return Some(Key::Unknown),
        };
        self.state = State::Character(missing);
        self.character = u32::from(bits);
        None
    }

    fn character(&mut self, byte: u8, missing: u32) -> Option<Key> {
        if byte & 0xc0 != 0x80 {
            // The character was cut off; this byte begins a new one.
            self.state = State::Ground;
            return self.ground(byte);
        }
        self.character = self.character << 6 | u32::from(byte & 0x3f);
        if missing > 1 {
            self.state = State::Character(missing - 1);
            return None;
        }
        self.state = State::Ground;
        let character = char::from_u32(self.character).filter(|character| !character.is_control());
        Some(character.map_or(Key::Unknown, Key::Char))
    }

    fn escape(&mut self, byte: u8) -> Option<Key> {
        self.state = State::Ground;
        match byte {
            b'[' => {
                self.state = State::Sequence;
                self.parameter_count = 0;
                None
            }
            b'O' => {
                self.state = State::Single;
                None
            }
            27 => {
                self.state = State::Escape;
                None
            }
            b'b' => Some(Key::WordLeft),
            b'f' => Some(Key::WordRight),
            8 | 127 => Some(Key::KillWord),
            _ => Some(Key::Unknown),
        }
    }

    fn sequence(&mut self, byte: u8) -> Option<Key> {
        match byte {
            0x20..0x40 => {
                if let Some(place) = self.parameters.get_mut(self.parameter_count) {
                    *place = byte;
                }
                self.parameter_count += 1;
                None
            }
            0x40..0x7f => {
                self.state = State::Ground;
                Some(self.sequence_key(byte))
            }
            // The byte is not part of a sequence: that was cut off.
            _ => {
                self.state = State::Ground;
                self.ground(byte)
            }
        }
    }

    fn sequence_key(&self, last: u8) -> Key {
        let Some(parameters) = self.parameters.get(..self.parameter_count) else { return Key::Unknown };
        let mut numbers = parameters.split(|&byte| byte == b';').map(number);
        let first = numbers.next().flatten();
        let second = numbers.next().flatten();
        let with_control = second == Some(5);
        match (last, first) {
            (b'C', _) if with_control => Key::WordRight,
            (b'D', _) if with_control => Key::WordLeft,
            (b'~', Some(1 | 7)) => Key::Home,
            (b'~', Some(3)) => Key::Delete,
            (b'~', Some(4 | 8)) => Key::End,
            (b'R', _) => second.map_or(Key::Unknown, Key::CursorColumn),
            _ => cursor_key(last).unwrap_or(Key::Unknown),
        }
    }
}

/// Returns the key that ends with `last` in both kinds of sequences.
const fn cursor_key(last: u8) -> Option<Key> {
    Some(match last {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        _ => return None,
    })
}

/// Parses a decimal number.
fn number(digits: &[u8]) -> Option<usize> {
    core::str::from_utf8(digits).ok()?.parse().ok()
}
