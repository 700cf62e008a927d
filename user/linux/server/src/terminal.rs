//! A terminal: the console, or the slave of a pseudo-terminal.
//!
//! If the console was lent, each byte comes as it is typed, and the line discipline does everything. Otherwise the
//! console below edits lines and shows what is typed, so that the line discipline's echo is dropped. The master of a
//! pseudo-terminal never edits.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tench_linux_terminal::{Ending, MODES_SIZE, Modes, Progress, Reading, Terminal as Discipline, WindowSize, index};

/// Size of the window until somebody says another.
const WINDOW: WindowSize = WindowSize { rows: 24, columns: 80, width: 0, height: 0 };

/// A read that has begun.
#[derive(Debug)]
struct Begun {
    /// The thread that reads.
    thread: u32,
    reading: Reading,
    /// Number of bytes that it had when its time began.
    timed: usize,
}

/// The outcome of a read.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// The read is complete, perhaps without bytes, which is the end.
    Done(Vec<u8>),
    /// The read waits, at the longest for so many tenths of a second, which begin anew if `is_new`.
    Waits {
        /// Tenths of a second; none for ever.
        tenths: Option<u8>,
        /// Set if the time begins now.
        is_new: bool,
    },
    /// Another thread reads.
    Busy,
}

/// A terminal.
#[derive(Debug)]
pub struct Terminal {
    /// Modes, editing, echo, and the keys that are signals.
    pub discipline: Discipline,
    /// Each byte comes as it is typed.
    pub is_lent: bool,
    /// The locked modes: bits of flags that are set, and characters that are not 0.
    pub locked_modes: [u8; MODES_SIZE],
    begun: Option<Begun>,
    /// Bytes for which the line discipline has had no room.
    rest: VecDeque<u8>,
}

impl Terminal {
    /// Returns the slave of a pseudo-terminal.
    pub const fn of_pair(discipline: Discipline) -> Terminal {
        Terminal { discipline, is_lent: true, locked_modes: [0; MODES_SIZE], begun: None, rest: VecDeque::new() }
    }

    /// Returns the console as the terminal of a session, whose leader's group uses it.
    pub fn new(session: u32) -> Terminal {
        let mut discipline = Discipline::new(Modes::STANDARD);
        discipline.set_window(WINDOW);
        discipline.set_session(Some(session));
        discipline.set_foreground(Some(session));
        Terminal { discipline, is_lent: false, locked_modes: [0; MODES_SIZE], begun: None, rest: VecDeque::new() }
    }

    /// Takes what was typed; nothing at the end.
    pub fn input(&mut self, bytes: &[u8]) {
        let end = [self.discipline.modes().characters[index::VEOF]];
        self.rest.extend(if bytes.is_empty() { &end } else { bytes });
        self.go_on();
    }

    /// Gives the line discipline as much as there is room for.
    fn go_on(&mut self) {
        let accepted = self.discipline.input(self.rest.make_contiguous());
        self.rest.drain(..accepted);
        if !self.is_lent {
            self.discipline.flush_output();
        }
    }

    /// Reads at most so many bytes for a thread.
    pub fn read(&mut self, thread: u32, wanted: usize) -> Read {
        if self.begun.as_ref().is_some_and(|begun| begun.thread != thread) {
            return Read::Busy;
        }
        let is_first = self.begun.is_none();
        let mut begun = self.begun.take().unwrap_or_else(|| {
            let reading = self.discipline.begin_read(wanted);
            Begun { thread, reading, timed: 0 }
        });
        let progress = self.discipline.read(&mut begun.reading);
        self.go_on();
        match progress {
            Progress::Done => Read::Done(begun.reading.into_bytes()),
            Progress::Waits(tenths) => {
                let taken = begun.reading.taken().len();
                let is_new = is_first || taken > begun.timed;
                begun.timed = taken;
                self.begun = Some(begun);
                Read::Waits { tenths, is_new }
            }
        }
    }

    /// Returns whether a read can go on.
    pub fn may_be_read(&self) -> bool {
        self.begun.is_some() || self.discipline.readiness().is_readable
    }

    /// Returns whether a thread has begun to read.
    pub fn is_read_by(&self, thread: u32) -> bool {
        self.begun.as_ref().is_some_and(|begun| begun.thread == thread)
    }

    /// Ends the read of a thread that has read nothing yet. Returns whether there was one.
    pub fn let_others_read(&mut self, thread: u32) -> bool {
        let is_meant = |begun: &mut Begun| begun.thread == thread && begun.reading.taken().is_empty();
        self.begun.take_if(is_meant).is_some()
    }

    /// Ends the read of a thread. Returns what it has read, if it has read something.
    pub fn end_read(&mut self, thread: u32, ending: Ending) -> Option<Vec<u8>> {
        let begun = self.begun.take_if(|begun| begun.thread == thread)?;
        begun.reading.end(ending).ok()
    }

    /// Takes what is to be shown, as the console wants it: that puts the return before each new line by itself.
    pub fn take_output(&mut self) -> Vec<u8> {
        let output = self.discipline.take_output();
        let mut shown = Vec::with_capacity(output.len());
        for (at, byte) in output.iter().enumerate() {
            if *byte != b'\r' || output.get(at + 1) != Some(&b'\n') {
                shown.push(*byte);
            }
        }
        shown
    }
}
