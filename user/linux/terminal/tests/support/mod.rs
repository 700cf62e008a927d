//! A pseudo-terminal of the Linux under these tests.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{self, OptionalActions, SpecialCodeIndex};
use tench_linux_terminal::{Modes, index};

/// Time after which Linux has certainly processed what was typed, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(20);

/// Names of special characters, here and there.
const CHARACTERS: [(usize, SpecialCodeIndex); 17] = [
    (index::VINTR, SpecialCodeIndex::VINTR),
    (index::VQUIT, SpecialCodeIndex::VQUIT),
    (index::VERASE, SpecialCodeIndex::VERASE),
    (index::VKILL, SpecialCodeIndex::VKILL),
    (index::VEOF, SpecialCodeIndex::VEOF),
    (index::VTIME, SpecialCodeIndex::VTIME),
    (index::VMIN, SpecialCodeIndex::VMIN),
    (index::VSWTC, SpecialCodeIndex::VSWTC),
    (index::VSTART, SpecialCodeIndex::VSTART),
    (index::VSTOP, SpecialCodeIndex::VSTOP),
    (index::VSUSP, SpecialCodeIndex::VSUSP),
    (index::VEOL, SpecialCodeIndex::VEOL),
    (index::VREPRINT, SpecialCodeIndex::VREPRINT),
    (index::VDISCARD, SpecialCodeIndex::VDISCARD),
    (index::VWERASE, SpecialCodeIndex::VWERASE),
    (index::VLNEXT, SpecialCodeIndex::VLNEXT),
    (index::VEOL2, SpecialCodeIndex::VEOL2),
];

/// Returns one of several things.
pub fn one_of<T, const N: usize>(all: [T; N], which: u64) -> T {
    all.into_iter().nth(which as usize).unwrap()
}

/// Sets the modes of a terminal, perhaps after input was discarded.
pub fn set_there(slave: &OwnedFd, modes: &Modes, flushes: bool) {
    let mut there = termios::tcgetattr(slave).unwrap();
    there.input_modes = termios::InputModes::from_bits_retain(modes.input);
    there.output_modes = termios::OutputModes::from_bits_retain(modes.output);
    there.control_modes = termios::ControlModes::from_bits_retain(modes.control);
    there.local_modes = termios::LocalModes::from_bits_retain(modes.local);
    for (here, name) in CHARACTERS {
        there.special_codes[name] = modes.characters[here];
    }
    let action = if flushes { OptionalActions::Flush } else { OptionalActions::Now };
    termios::tcsetattr(slave, action, &there).unwrap();
}

/// The two sides of a pseudo-terminal.
pub struct Pair {
    master: Option<OwnedFd>,
    pub slave: OwnedFd,
}

impl Pair {
    /// Opens a pair, whose slave is nobody's controlling terminal. Returns nothing, and says so, if there is no such
    /// device.
    pub fn open() -> Option<Pair> {
        let Ok(master) = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC) else {
            eprintln!("skipped: this machine has no /dev/ptmx");
            return None;
        };
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let slave = ioctl_tiocgptpeer(&master, flags).unwrap();
        for side in [&master, &slave] {
            fcntl_setfl(side, fcntl_getfl(side).unwrap() | OFlags::NONBLOCK).unwrap();
        }
        Some(Pair { master: Some(master), slave })
    }

    fn master(&self) -> &OwnedFd {
        self.master.as_ref().unwrap()
    }

    /// Lets reads wait.
    pub fn make_blocking(&self) {
        fcntl_setfl(&self.slave, fcntl_getfl(&self.slave).unwrap() - OFlags::NONBLOCK).unwrap();
    }

    /// Closes the master.
    pub fn hang_up(&mut self) {
        self.master = None;
    }

    pub fn type_bytes(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            assert_eq!(rustix::io::write(self.master(), bytes), Ok(bytes.len()));
        }
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, i32> {
        rustix::io::write(&self.slave, bytes).map_err(|error| error.raw_os_error())
    }

    pub fn read(&mut self, wanted: usize) -> Result<Vec<u8>, i32> {
        let mut bytes = vec![0; wanted];
        let count = rustix::io::read(&self.slave, &mut bytes[..]).map_err(|error| error.raw_os_error())?;
        bytes.truncate(count);
        Ok(bytes)
    }

    /// Returns what can be done at the slave without waiting.
    pub fn poll(&self) -> PollFlags {
        let mut all = [PollFd::new(&self.slave, PollFlags::IN | PollFlags::OUT)];
        poll(&mut all, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
        all[0].revents()
    }

    /// Returns whether there is something to read, and how much.
    pub fn state(&self) -> (bool, u64) {
        let is_readable = self.poll().contains(PollFlags::IN);
        (is_readable, rustix::io::ioctl_fionread(&self.slave).unwrap())
    }

    /// Waits for a state. Returns whether it came. Linux lets a thread of its own process what is typed: `poll` waits
    /// for it if there is nothing to read, and `FIONREAD` is never answered in the midst of it.
    pub fn wait_for(&self, is_end: impl Fn((bool, u64)) -> bool) -> bool {
        self.wait_until(|pair| is_end(pair.state()))
    }

    /// Waits until something holds. Returns whether it does.
    pub fn wait_until(&self, holds: impl Fn(&Pair) -> bool) -> bool {
        let begin = Instant::now();
        while !holds(self) {
            if begin.elapsed() > PATIENCE {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    /// Takes all output. A read at the master waits until Linux has brought it there.
    pub fn output(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut part = [0; 4096];
        while let Ok(count) = rustix::io::read(self.master(), &mut part) {
            all.extend_from_slice(&part[..count]);
        }
        all
    }

    pub fn modes(&self) -> Modes {
        let there = termios::tcgetattr(&self.slave).unwrap();
        let mut modes = Modes {
            input: there.input_modes.bits(),
            output: there.output_modes.bits(),
            control: there.control_modes.bits(),
            local: there.local_modes.bits(),
            line: there.line_discipline,
            characters: [0; 19],
        };
        for (here, name) in CHARACTERS {
            modes.characters[here] = there.special_codes[name];
        }
        modes
    }
}
