//! Random use of a terminal, compared with what a pseudo-terminal of the Linux under these tests does.

mod support;

use rustix::event::PollFlags;
use support::{Pair, one_of, set_there};
use tench_linux_terminal::{
    Ending, Errno, Flow, MODES_SIZE, Modes, Progress, Terminal, index, input_modes, local, output_modes,
};
use tench_random::Random;

/// Flags that change the behaviour, with how often out of eight they are set in random modes.
const INPUT: [(u32, u64); 11] = [
    (input_modes::PARMRK, 1),
    (input_modes::ISTRIP, 1),
    (input_modes::INLCR, 1),
    (input_modes::IGNCR, 1),
    (input_modes::ICRNL, 5),
    (input_modes::IUCLC, 1),
    (input_modes::IXON, 4),
    (input_modes::IXANY, 2),
    (input_modes::IMAXBEL, 4),
    (input_modes::IUTF8, 4),
    (input_modes::IGNBRK, 1),
];
const OUTPUT: [(u32, u64); 7] = [
    (output_modes::OPOST, 6),
    (output_modes::OLCUC, 1),
    (output_modes::ONLCR, 5),
    (output_modes::OCRNL, 1),
    (output_modes::ONOCR, 1),
    (output_modes::ONLRET, 1),
    (output_modes::XTABS, 2),
];
const LOCAL: [(u32, u64); 12] = [
    (local::ISIG, 4),
    (local::ICANON, 5),
    (local::ECHO, 6),
    (local::ECHOE, 6),
    (local::ECHOK, 6),
    (local::ECHONL, 2),
    (local::NOFLSH, 2),
    (local::ECHOCTL, 5),
    (local::ECHOPRT, 1),
    (local::ECHOKE, 6),
    (local::IEXTEN, 6),
    (local::EXTPROC, 1),
];
/// Special characters, and those that they may be instead.
const CHARACTERS: [(usize, [u8; 3]); 15] = [
    (index::VINTR, [0x03, 0x03, b'i']),
    (index::VQUIT, [0x1c, 0, b'q']),
    (index::VERASE, [0x7f, 0x08, b'#']),
    (index::VKILL, [0x15, 0x15, b'@']),
    (index::VEOF, [0x04, 0x04, 0]),
    (index::VTIME, [0, 0, 1]),
    (index::VMIN, [1, 0, 70]),
    (index::VSTART, [0x11, 0x11, 0x13]),
    (index::VSTOP, [0x13, 0x13, 0]),
    (index::VSUSP, [0x1a, 0x1a, 0]),
    (index::VEOL, [0, b'.', 0xff]),
    (index::VREPRINT, [0x12, b'@', b'r']),
    (index::VWERASE, [0x17, 0xff, b'w']),
    (index::VLNEXT, [0x16, b'.', b'l']),
    (index::VEOL2, [0, b'|', b'\r']),
];

/// Number of bytes of output for which Linux certainly has room.
const MAX_OUTPUT: usize = 4000;

/// Returns how much output comes at once at most if output starts now, whatever the modes are then.
fn most_output(mut terminal: Terminal) -> usize {
    terminal.control_flow_by_call(Flow::StartOutput);
    let output = output_modes::OPOST | output_modes::ONLCR | output_modes::XTABS;
    let modes = Modes { output, input: input_modes::IXON, ..*terminal.modes() };
    terminal.set_modes(modes);
    terminal.set_modes(Modes { input: 0, ..modes });
    terminal.waiting_output()
}

struct Both {
    here: Terminal,
    there: Pair,
    random: Random,
    log: Vec<String>,
}

/// Returns what shows that input was processed: whether there is something to read, and how much.
fn state(terminal: &Terminal) -> (bool, u64) {
    (terminal.readiness().is_readable, terminal.readable_bytes() as u64)
}

impl Both {
    fn new(seed: u64) -> Option<Both> {
        let there = Pair::open()?;
        Some(Both { here: Terminal::new(Modes::PSEUDO), there, random: Random::new(seed), log: Vec::new() })
    }

    fn flags(&mut self, all: &[(u32, u64)]) -> u32 {
        all.iter().filter(|(_, often)| self.random.below(8) < *often).fold(0, |flags, (flag, _)| flags | flag)
    }

    fn random_modes(&mut self) -> Modes {
        let mut modes = *self.here.modes();
        match self.random.below(6) {
            0 => modes = Modes::PSEUDO,
            1 => (modes.input, modes.output, modes.local) = (0, 0, 0),
            2 => modes.local ^= local::ICANON,
            3 => {
                let (flag, _) = LOCAL[self.random.index(LOCAL.len())];
                modes.local ^= flag;
            }
            _ => {
                (modes.input, modes.output, modes.local) =
                    (self.flags(&INPUT), self.flags(&OUTPUT), self.flags(&LOCAL));
            }
        }
        for (index, choices) in CHARACTERS {
            if self.random.once_in(8) {
                modes.characters[index] = choices[self.random.index(3)];
            }
        }
        modes
    }

    fn set_modes(&mut self) {
        let modes = self.random_modes();
        let flushes = self.random.once_in(6) && self.here.waiting_input() == 0;
        self.log.push(format!("modes {modes:x?}, flush: {flushes}"));
        if flushes {
            self.here.flush_input();
        }
        self.here.set_modes(modes);
        set_there(&self.there.slave, &modes, flushes);
        assert_eq!(*self.here.modes(), self.there.modes());
    }

    /// Returns a byte that is likely to mean something.
    fn byte(&mut self) -> u8 {
        match self.random.below(40) {
            0..16 => b"abcdeXYZ 019_-"[self.random.index(14)],
            16..26 => {
                let (index, _) = CHARACTERS[self.random.index(CHARACTERS.len())];
                self.here.modes().characters[index]
            }
            26..29 => b'\n',
            29 => b'\r',
            30 => b'\t',
            31..34 => [0xc3, 0xa4, 0xe2, 0x82, 0xac, 0xff, 0xd6][self.random.index(7)],
            34 => self.random.below(256) as u8,
            35 => self.random.below(32) as u8,
            _ => b'a',
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        let length = match self.random.below(20) {
            0..10 => 1 + self.random.below(3),
            10..19 => 1 + self.random.below(40),
            _ => 1 + self.random.below(300),
        };
        (0..length).map(|_| self.byte()).collect()
    }

    /// Returns whether both must process these bytes in the same way. Linux does not say in which order a key's signal
    /// discards output and the other side receives it, when keys act for whose bytes there is no room, nor how much
    /// output there is room for.
    fn is_defined(&self, bytes: &[u8]) -> bool {
        let has_flow = self.here.modes().has_input(input_modes::IXON)
            && self.last_key(bytes, &[index::VSTART, index::VSTOP]).is_some();
        let after = self.after(bytes);
        if has_flow && after.waiting_input() > 0 || most_output(after) > MAX_OUTPUT {
            return false;
        }
        match self.last_signal(bytes) {
            0 => true,
            last => {
                let output = self.after(&bytes[..last]).waiting_output();
                !has_flow && !self.here.is_stopped() && last < 60 && output < 80
            }
        }
    }

    /// Returns whether one can see when Linux has processed these bytes: either there is nothing to read afterwards,
    /// so that `poll` waits for the processing, or there is another number of bytes than before. That number does not
    /// show while bytes are processed, except when a key's signal discards what came before it.
    fn is_visible(&self, bytes: &[u8]) -> bool {
        let after = self.after(bytes);
        let end = state(&after);
        let before = bytes.len() - 1;
        let may_show = if self.last_signal(bytes) > 0 { 0..=before } else { before..=before };
        let is_unlike = |length| state(&self.after(&bytes[..length])).1 != end.1;
        !end.0 || end != state(&self.here) && (after.waiting_input() > 0 || may_show.clone().all(is_unlike))
    }

    /// Returns a copy of the terminal that has received further bytes.
    fn after(&self, bytes: &[u8]) -> Terminal {
        let mut after = self.here.clone();
        assert_eq!(after.input(bytes), bytes.len());
        after
    }

    /// Returns the index of the last byte, after the first, that may raise a signal; 0 if there is none.
    fn last_signal(&self, bytes: &[u8]) -> usize {
        let has_signals = self.here.modes().has_local(local::ISIG);
        let last = self.last_key(bytes, &[index::VINTR, index::VQUIT, index::VSUSP]);
        last.filter(|_| has_signals).unwrap_or(0)
    }

    /// Returns the index of the last byte that may be one of these special characters.
    fn last_key(&self, bytes: &[u8], keys: &[usize]) -> Option<usize> {
        let modes = self.here.modes();
        let is_key = |byte: &u8| {
            let byte = if modes.has_input(input_modes::ISTRIP) { byte & 0x7f } else { *byte };
            let is = |key: &usize| [byte, byte.to_ascii_lowercase()].contains(&modes.characters[*key]);
            keys.iter().any(is)
        };
        bytes.iter().rposition(is_key)
    }

    fn type_bytes(&mut self) {
        let mut bytes = self.bytes();
        if self.random.once_in(30) {
            bytes = vec![self.byte(); 200 + self.random.index(800)];
        }
        for end in [&b""[..], b"\n", b"z\n", b"z"] {
            let bytes = [&bytes, end].concat();
            if self.is_defined(&bytes) && self.is_visible(&bytes) {
                self.log.push(format!("type {:?}", bytes.escape_ascii().to_string()));
                assert_eq!(self.here.input(&bytes), bytes.len());
                self.there.type_bytes(&bytes);
                self.settle();
                return;
            }
        }
    }

    fn write(&mut self) {
        let bytes = self.bytes();
        self.log.push(format!("write {:?}", bytes.escape_ascii().to_string()));
        let here = match self.here.write(&bytes) {
            Ok(0) => Err(Errno::EAGAIN.into_raw()),
            other => other.map_err(Errno::into_raw),
        };
        assert_eq!(here, self.there.write(&bytes), "written, after {:#?}", self.last());
    }

    fn read(&mut self) {
        let wanted = [0, 1, 2, 3, 5, 63, 64, 65, 100, 300, 5000][self.random.index(11)];
        let mut reading = self.here.begin_read(wanted);
        self.log.push(format!("read {wanted}"));
        let here = match self.here.read(&mut reading) {
            Progress::Done => Ok(reading.into_bytes()),
            Progress::Waits(_) => reading.end(Ending::WouldBlock).map_err(Errno::into_raw),
        };
        let there = self.there.read(wanted);
        assert_eq!(here, there, "read here, and there, after {:#?}", self.last());
        self.settle();
    }

    fn flush(&mut self) {
        use rustix::termios::{QueueSelector, tcflush};
        let which = self.random.below(3);
        self.log.push(format!("flush {which}"));
        if which != 1 {
            self.here.flush_input();
        }
        if which != 0 {
            self.here.flush_output();
        }
        let there = [QueueSelector::IFlush, QueueSelector::OFlush, QueueSelector::IOFlush];
        tcflush(&self.there.slave, one_of(there, which)).unwrap();
        self.settle();
    }

    fn control_flow(&mut self) {
        use rustix::termios::{Action, tcflow};
        let all = [Flow::StopOutput, Flow::StartOutput, Flow::StopInput, Flow::StartInput];
        let there = [Action::OOff, Action::OOn, Action::IOff, Action::IOn];
        let which = self.random.below(4);
        self.log.push(format!("{:?}", all[which as usize]));
        self.here.control_flow_by_call(all[which as usize]);
        tcflow(&self.there.slave, one_of(there, which)).unwrap();
    }

    /// Returns what was done last, the last first.
    fn last(&self) -> Vec<&str> {
        self.log.iter().rev().take(25).map(|line| line.get(..300).unwrap_or(line)).collect()
    }

    /// Waits until Linux has processed what was typed.
    fn settle(&mut self) {
        let end = state(&self.here);
        if !self.there.wait_for(|there| there == end) {
            panic!("here {end:?}, there {:?}, after {:#?}", self.there.state(), self.last());
        }
    }

    fn step(&mut self) {
        match self.random.below(24) {
            0..3 => self.set_modes(),
            3..12 => self.type_bytes(),
            12..16 => self.write(),
            16..22 => self.read(),
            22 => self.flush(),
            _ => self.control_flow(),
        }
        let here = self.here.take_output();
        let there = self.there.output();
        if here != there {
            let at = here.iter().zip(&there).take_while(|(here, there)| here == there).count();
            let [here, there] =
                [here, there].map(|bytes| bytes[at..bytes.len().min(at + 200)].escape_ascii().to_string());
            panic!("output here {here:?}, there {there:?}, {at} equal bytes before, after {:#?}", self.last());
        }
        assert_eq!(state(&self.here), self.there.state(), "here, and there, after {:#?}", self.last());
        let is_writable = self.there.poll().contains(PollFlags::OUT);
        assert_eq!(self.here.readiness().is_writable, is_writable, "after {:#?}", self.last());
    }
}

/// Number of sequences.
const SEEDS: u64 = 300;

#[test]
fn terminals_do_what_linuxs_do() {
    for seed in 0..SEEDS {
        let Some(mut both) = Both::new(seed) else { return };
        assert_eq!(*both.here.modes(), both.there.modes(), "of a fresh terminal");
        for _ in 0..400 {
            both.step();
        }
    }
}

#[test]
fn a_terminal_that_is_hung_up_is_like_linuxs() {
    let Some(mut there) = Pair::open() else { return };
    let mut here = Terminal::new(Modes::PSEUDO);
    here.input(b"line\n");
    there.type_bytes(b"line\n");
    assert!(there.wait_for(|state| state == (true, 5)));
    here.hang_up();
    there.hang_up();
    let mut reading = here.begin_read(10);
    assert_eq!(here.read(&mut reading), Progress::Done);
    assert_eq!(Ok(reading.into_bytes()), there.read(10));
    assert_eq!(here.write(b"x").map_err(Errno::into_raw), there.write(b"x"));
    let flags = there.poll();
    assert!(flags.contains(PollFlags::IN | PollFlags::OUT | PollFlags::ERR | PollFlags::HUP), "{flags:?}");
    let readiness = here.readiness();
    assert!(readiness.is_readable && readiness.is_writable && readiness.is_hung_up);
}

/// Compares reads that wait. A row is the number of bytes typed before, `VMIN`, `VTIME`, and the bytes that are wanted.
#[test]
fn time_limits_are_linuxs() {
    for (typed, minimum, time, wanted) in [
        (0, 0, 1, 10),
        (2, 0, 1, 10),
        (3, 5, 1, 10),
        (5, 5, 1, 10),
        (7, 5, 1, 10),
        (70, 80, 1, 100),
        (30, 200, 1, 100),
        (0, 0, 0, 10),
    ] {
        let mut modes = Modes { input: 0, output: 0, local: 0, ..Modes::PSEUDO };
        modes.characters[index::VMIN] = minimum;
        modes.characters[index::VTIME] = time;
        let Some((mut here, mut there)) = pair(&modes) else { return };
        let bytes = vec![b'x'; typed];
        here.input(&bytes);
        there.type_bytes(&bytes);
        assert!(there.wait_for(|there| there.1 == typed as u64));
        let mut reading = here.begin_read(wanted);
        let here = match here.read(&mut reading) {
            Progress::Done => reading.into_bytes(),
            Progress::Waits(limit) => {
                assert_eq!(limit, Some(1), "{typed} {minimum} {time}");
                reading.end(Ending::TimedOut).unwrap()
            }
        };
        there.make_blocking();
        assert_eq!(Ok(here), there.read(wanted), "{typed} typed, VMIN {minimum}, VTIME {time}, {wanted} wanted");
    }
}

#[test]
fn keys_stop_output_although_there_is_no_room_for_them() {
    let modes = Modes { input: input_modes::IXON, output: 0, local: 0, ..Modes::PSEUDO };
    let Some((mut here, mut there)) = pair(&modes) else { return };
    for bytes in [&[b'x'; 1000][..]; 5].into_iter().chain([&b"\x13"[..]]) {
        here.input(bytes);
        there.type_bytes(bytes);
    }
    assert!(here.is_stopped() && there.wait_until(|there| !there.poll().contains(PollFlags::OUT)));
    for input in [0, input_modes::IXON] {
        here.set_modes(Modes { input, ..modes });
        set_there(&there.slave, here.modes(), false);
    }
    assert!(!here.is_stopped() && there.poll().contains(PollFlags::OUT));
    // The key does not act again when there is room for it.
    let mut all = Vec::new();
    while all.len() < 5000 {
        let mut reading = here.begin_read(512);
        assert_eq!(here.read(&mut reading), Progress::Done);
        let bytes = reading.into_bytes();
        assert_eq!(Ok(&bytes), there.read(512).as_ref());
        assert!(there.wait_for(|there| there == state(&here)));
        all.extend(bytes);
    }
    assert_eq!(all, [b'x'; 5000]);
    assert!(!here.is_stopped() && there.poll().contains(PollFlags::OUT));
}

/// Makes a terminal here and one there with the same modes.
fn pair(modes: &Modes) -> Option<(Terminal, Pair)> {
    let there = Pair::open()?;
    let mut here = Terminal::new(Modes::PSEUDO);
    here.set_modes(*modes);
    set_there(&there.slave, modes, false);
    Some((here, there))
}

/// Types bytes here and there, after which the state there must become the one here.
fn type_at_both(here: &mut Terminal, there: &mut Pair, bytes: &[u8]) {
    assert_eq!(here.input(bytes), bytes.len());
    there.type_bytes(bytes);
    assert!(there.wait_for(|there| there == state(here)), "{:?} {:?}", state(here), there.state());
}

fn read_at_both(here: &mut Terminal, there: &mut Pair) -> Vec<u8> {
    let mut reading = here.begin_read(9999);
    assert_eq!(here.read(&mut reading), Progress::Done);
    let bytes = reading.into_bytes();
    assert_eq!(Ok(&bytes), there.read(9999).as_ref());
    bytes
}

#[test]
fn a_line_that_is_too_long_can_be_edited_and_ended() {
    let modes = Modes { local: local::ICANON, ..Modes::PSEUDO };
    let Some((mut here, mut there)) = pair(&modes) else { return };
    for edit in [&b""[..], b"y", b"yz", b"\x7f", b"\x7f\x7fy", b"\x7f\x7fyz", b"y\x7fz\x04"] {
        for digit in b"01234" {
            type_at_both(&mut here, &mut there, &[*digit; 1000]);
        }
        type_at_both(&mut here, &mut there, edit);
        type_at_both(&mut here, &mut there, b"\n");
        assert!(read_at_both(&mut here, &mut there).len() > 4000);
        while here.readiness().is_readable {
            read_at_both(&mut here, &mut there);
        }
    }
}

#[test]
fn echo_that_waits_for_long_loses_its_beginning() {
    let modes = Modes { input: input_modes::IXON, local: local::ECHO, ..Modes::PSEUDO };
    let Some((mut here, mut there)) = pair(&modes) else { return };
    type_at_both(&mut here, &mut there, b"\x13");
    for digit in b'0'..=b'9' {
        type_at_both(&mut here, &mut there, &[digit; 1000]);
        read_at_both(&mut here, &mut there);
    }
    type_at_both(&mut here, &mut there, b"\x11");
    let echo = here.take_output();
    assert_eq!(echo, there.output());
    assert!((3000..4000).contains(&echo.len()), "{}", echo.len());
}

/// Types more that is echoed at once than waiting echo has space for: its beginning is overwritten, and what is put out
/// begins in the midst of it.
#[test]
fn echo_of_a_long_line_overwrites_itself() {
    let modes = Modes { input: input_modes::IUTF8, ..Modes::PSEUDO };
    for (parts, count) in
        [(&b"\x01"[..], 3000), (b"\x01\xff", 1600), (b"a\xff\x02", 1300), (b"\xff", 3500), (b"a", 4000)]
    {
        let Some((mut here, mut there)) = pair(&modes) else { return };
        let line = parts.repeat(count);
        let edits = [&b"\x12"[..], b"x", b"\x12", b"\x17", b"\x12\x7f", b"\x12\x15", b"\tb\t\x7f\x7f", b"\x15"];
        for typed in line.chunks(500).chain(edits) {
            type_at_both(&mut here, &mut there, typed);
            assert_eq!(here.take_output(), there.output(), "{:?}", typed.escape_ascii().to_string());
        }
    }
}

#[test]
fn a_change_of_modes_forgets_the_key_that_makes_the_next_literal() {
    let Some((mut here, mut there)) = pair(&Modes::PSEUDO) else { return };
    for changed in [0, local::ICANON] {
        type_at_both(&mut here, &mut there, b"\x16");
        assert_eq!(here.take_output(), there.output());
        let modes = Modes { local: here.modes().local ^ changed, ..Modes::PSEUDO };
        here.set_modes(modes);
        set_there(&there.slave, &modes, false);
        type_at_both(&mut here, &mut there, b"\x03");
        assert_eq!(here.take_output(), there.output());
        assert_eq!(here.take_signals().len(), if changed == 0 { 0 } else { 1 });
    }
}

#[test]
fn a_file_ends_by_its_character_alone_if_the_other_side_edits() {
    let modes = Modes { local: local::ICANON | local::EXTPROC, ..Modes::PSEUDO };
    let Some((mut here, mut there)) = pair(&modes) else { return };
    for (bytes, expected) in [(&b"\x04"[..], &b""[..]), (b"a\x04", b"a\x04"), (b"a\n", b"a\n"), (b"\x04", b"")] {
        type_at_both(&mut here, &mut there, bytes);
        assert_eq!(read_at_both(&mut here, &mut there), expected);
        assert_eq!(state(&here), there.state());
    }
}

#[test]
fn modes_have_the_layout_of_the_kernel() {
    let record: [u8; MODES_SIZE] = std::array::from_fn(|at| at as u8 + 1);
    let modes = Modes::parse(&record);
    assert_eq!((modes.input, modes.output, modes.control), (0x0403_0201, 0x0807_0605, 0x0c0b_0a09));
    assert_eq!((modes.local, modes.line, modes.characters[0], modes.characters[18]), (0x100f_0e0d, 17, 18, 36));
    assert_eq!(modes.to_record(), record);
}
