//! The modes of a terminal, as programs read and set them.

/// Number of special characters.
const CHARACTERS: usize = 19;
/// Size of the kernel's `struct termios` on AArch64, in bytes.
pub const MODES_SIZE: usize = 17 + CHARACTERS;

/// Flags of [`Modes::input`].
#[allow(missing_docs, reason = "these are Linux's names; its manual pages explain them")]
pub mod input {
    pub const IGNBRK: u32 = 0o1;
    pub const BRKINT: u32 = 0o2;
    pub const IGNPAR: u32 = 0o4;
    pub const PARMRK: u32 = 0o10;
    pub const INPCK: u32 = 0o20;
    pub const ISTRIP: u32 = 0o40;
    pub const INLCR: u32 = 0o100;
    pub const IGNCR: u32 = 0o200;
    pub const ICRNL: u32 = 0o400;
    pub const IUCLC: u32 = 0o1000;
    pub const IXON: u32 = 0o2000;
    pub const IXANY: u32 = 0o4000;
    pub const IXOFF: u32 = 0o10000;
    pub const IMAXBEL: u32 = 0o20000;
    pub const IUTF8: u32 = 0o40000;
}

/// Flags of [`Modes::output`].
#[allow(missing_docs, reason = "these are Linux's names; its manual pages explain them")]
pub mod output {
    pub const OPOST: u32 = 0o1;
    pub const OLCUC: u32 = 0o2;
    pub const ONLCR: u32 = 0o4;
    pub const OCRNL: u32 = 0o10;
    pub const ONOCR: u32 = 0o20;
    pub const ONLRET: u32 = 0o40;
    pub const TABDLY: u32 = 0o14000;
    /// The value of [`TABDLY`] with which tabs become spaces.
    pub const XTABS: u32 = 0o14000;
}

/// Flags of [`Modes::control`].
#[allow(missing_docs, reason = "these are Linux's names; its manual pages explain them")]
pub mod control {
    pub const B38400: u32 = 0o17;
    pub const CSIZE: u32 = 0o60;
    pub const CS8: u32 = 0o60;
    pub const CREAD: u32 = 0o200;
    pub const PARENB: u32 = 0o400;
    pub const HUPCL: u32 = 0o2000;
}

/// Flags of [`Modes::local`].
#[allow(missing_docs, reason = "these are Linux's names; its manual pages explain them")]
pub mod local {
    pub const ISIG: u32 = 0o1;
    pub const ICANON: u32 = 0o2;
    pub const ECHO: u32 = 0o10;
    pub const ECHOE: u32 = 0o20;
    pub const ECHOK: u32 = 0o40;
    pub const ECHONL: u32 = 0o100;
    pub const NOFLSH: u32 = 0o200;
    pub const TOSTOP: u32 = 0o400;
    pub const ECHOCTL: u32 = 0o1000;
    pub const ECHOPRT: u32 = 0o2000;
    pub const ECHOKE: u32 = 0o4000;
    pub const IEXTEN: u32 = 0o100_000;
    pub const EXTPROC: u32 = 0o200_000;
}

/// Indices into [`Modes::characters`].
#[allow(missing_docs, reason = "these are Linux's names; its manual pages explain them")]
pub mod index {
    pub const VINTR: usize = 0;
    pub const VQUIT: usize = 1;
    pub const VERASE: usize = 2;
    pub const VKILL: usize = 3;
    pub const VEOF: usize = 4;
    pub const VTIME: usize = 5;
    pub const VMIN: usize = 6;
    pub const VSWTC: usize = 7;
    pub const VSTART: usize = 8;
    pub const VSTOP: usize = 9;
    pub const VSUSP: usize = 10;
    pub const VEOL: usize = 11;
    pub const VREPRINT: usize = 12;
    pub const VDISCARD: usize = 13;
    pub const VWERASE: usize = 14;
    pub const VLNEXT: usize = 15;
    pub const VEOL2: usize = 16;
}

/// The modes of a terminal: Linux's `struct termios`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    /// Changes of input: `c_iflag`.
    pub input: u32,
    /// Changes of output: `c_oflag`.
    pub output: u32,
    /// Speed, and format of a byte on a line: `c_cflag`.
    pub control: u32,
    /// Lines, echo and signals: `c_lflag`.
    pub local: u32,
    /// The number of the line discipline: `c_line`. It is recorded only.
    pub line: u8,
    /// The special characters and the numbers of non-canonical reading: `c_cc`. A character that is 0 is disabled.
    pub characters: [u8; CHARACTERS],
}

impl Modes {
    /// The modes that a fresh terminal has.
    pub const STANDARD: Modes = Modes {
        input: input::ICRNL | input::IXON,
        output: output::OPOST | output::ONLCR,
        control: control::B38400 | control::CS8 | control::CREAD | control::HUPCL,
        local: local::ISIG
            | local::ICANON
            | local::ECHO
            | local::ECHOE
            | local::ECHOK
            | local::ECHOCTL
            | local::ECHOKE
            | local::IEXTEN,
        line: 0,
        characters: Self::STANDARD_CHARACTERS,
    };

    /// The modes that a fresh pseudo-terminal has.
    pub const PSEUDO: Modes = Modes { control: control::B38400 | control::CS8 | control::CREAD, ..Modes::STANDARD };

    const STANDARD_CHARACTERS: [u8; CHARACTERS] = {
        let mut characters = [0; CHARACTERS];
        characters[index::VINTR] = control_key(b'C');
        characters[index::VQUIT] = control_key(b'\\');
        characters[index::VERASE] = 0x7f;
        characters[index::VKILL] = control_key(b'U');
        characters[index::VEOF] = control_key(b'D');
        characters[index::VMIN] = 1;
        characters[index::VSTART] = control_key(b'Q');
        characters[index::VSTOP] = control_key(b'S');
        characters[index::VSUSP] = control_key(b'Z');
        characters[index::VREPRINT] = control_key(b'R');
        characters[index::VDISCARD] = control_key(b'O');
        characters[index::VWERASE] = control_key(b'W');
        characters[index::VLNEXT] = control_key(b'V');
        characters
    };

    /// Reads modes from a `struct termios`.
    pub fn parse(record: &[u8; MODES_SIZE]) -> Modes {
        let flags = |at: usize| u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]]);
        let mut characters = [0; CHARACTERS];
        characters.copy_from_slice(&record[17..]);
        Modes { input: flags(0), output: flags(4), control: flags(8), local: flags(12), line: record[16], characters }
    }

    /// Returns the modes as a `struct termios`.
    pub fn to_record(&self) -> [u8; MODES_SIZE] {
        let mut record = [0; MODES_SIZE];
        for (at, flags) in [self.input, self.output, self.control, self.local].iter().enumerate() {
            record[4 * at..4 * at + 4].copy_from_slice(&flags.to_le_bytes());
        }
        record[16] = self.line;
        record[17..].copy_from_slice(&self.characters);
        record
    }

    /// Returns whether one of these flags of input is set.
    pub const fn has_input(&self, flags: u32) -> bool {
        self.input & flags != 0
    }

    /// Returns whether one of these flags of output is set.
    pub const fn has_output(&self, flags: u32) -> bool {
        self.output & flags != 0
    }

    /// Returns whether one of these local flags is set.
    pub const fn has_local(&self, flags: u32) -> bool {
        self.local & flags != 0
    }

    /// Returns whether input is edited and read by lines. With `EXTPROC` the device's side edits, and bytes pass.
    pub(crate) const fn reads_lines(&self) -> bool {
        self.has_local(local::ICANON) && !self.has_local(local::EXTPROC)
    }

    /// Returns whether `byte` is the special character at `index`.
    pub(crate) const fn is(&self, byte: u8, index: usize) -> bool {
        self.characters[index] == byte
    }

    /// Returns whether received bytes pass as they are.
    pub(crate) const fn is_raw(&self) -> bool {
        let of_input =
            input::ISTRIP | input::IUCLC | input::IGNCR | input::ICRNL | input::INLCR | input::IXON | input::PARMRK;
        !self.has_input(of_input) && !self.has_local(local::ICANON | local::ISIG | local::ECHO)
    }

    /// Returns the bytes with a meaning of their own. 0 never has one: it stands for a disabled character.
    pub(crate) fn special(&self) -> [bool; 256] {
        let mut special = [false; 256];
        let mut add =
            |indices: &[usize]| indices.iter().for_each(|at| special[usize::from(self.characters[*at])] = true);
        let is_canonical = self.has_local(local::ICANON);
        if is_canonical {
            add(&[index::VERASE, index::VKILL, index::VEOF, index::VEOL]);
            if self.has_local(local::IEXTEN) {
                add(&[index::VWERASE, index::VLNEXT, index::VEOL2]);
                if self.has_local(local::ECHO) {
                    add(&[index::VREPRINT]);
                }
            }
        }
        if self.has_input(input::IXON) {
            add(&[index::VSTART, index::VSTOP]);
        }
        if self.has_local(local::ISIG) {
            add(&[index::VINTR, index::VQUIT, index::VSUSP]);
        }
        special[usize::from(b'\r')] |= self.has_input(input::IGNCR | input::ICRNL);
        special[usize::from(b'\n')] |= is_canonical || self.has_input(input::INLCR);
        special[0] = false;
        special
    }
}

/// Returns the byte of a key together with the control key.
const fn control_key(key: u8) -> u8 {
    key & 0x1f
}
