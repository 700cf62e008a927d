//! All terminals of an instance: the console, and pseudo-terminals, which programs make.
//!
//! ```text
//!   processes of a session ── /dev/pts/N ── slave: line discipline ── master ── the program that opened /dev/ptmx
//!                                                     └─ output ──▶ arrived ──▶ read
//! ```
//! Output moves to where the master is read ([`Pair`]) as long as there is room, so that discarding output does not
//! reach it there: with Linux, the master has a buffer of its own, too. A pair exists until both sides
//! are closed. When the master is, the slave hangs up; the signals for that follow at the end of the call, by
//! [`HangUp`], since whoever closes a file knows no processes.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::vec::Vec;

use tench_linux_files::{Device, Errno, Last, NewNode, NodeId, Tree};
use tench_linux_terminal::{Ending, Modes, Terminal as Discipline, WindowSize};

use crate::descriptors::DescriptionId;
use crate::devices;
use crate::terminal::Terminal;
use crate::waiting::Key;
use crate::{Machine, System};

/// Number of bytes that wait for whoever reads the master at most: as many as Linux's buffer holds.
const MOST_ARRIVED: usize = 4095;
/// Bytes that a pair takes at most.
const SIZE: usize = Discipline::BUFFERS + MOST_ARRIVED + 2 * size_of::<Pair>();
/// Permissions of a slave.
const PERMISSIONS: u32 = 0o620;
/// The group `tty`, to which slaves belong.
const GROUP: u32 = 5;
/// Size of a pseudo-terminal's window until somebody says another.
const NO_WINDOW: WindowSize = WindowSize { rows: 0, columns: 0, width: 0, height: 0 };

/// Name of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TerminalId {
    /// The console.
    Console,
    /// The slave of a pseudo-terminal, with its number.
    Slave(u32),
}

impl TerminalId {
    /// Returns the device that the terminal is.
    pub const fn device(self) -> Device {
        match self {
            TerminalId::Console => devices::CONSOLE,
            TerminalId::Slave(number) => devices::slave(number),
        }
    }
}

/// The side from which an open file has a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The side of the processes that use the terminal.
    Terminal(TerminalId),
    /// The master of the pseudo-terminal with a number: in place of a screen and a keyboard.
    Master(u32),
}

/// A pseudo-terminal.
#[derive(Debug)]
pub struct Pair {
    /// The slave.
    pub terminal: Terminal,
    /// Bytes that processes have written, and whoever has the master has not read.
    arrived: VecDeque<u8>,
    /// The slave's node, with a user until the master is closed.
    pub node: NodeId,
    /// The master is open.
    has_master: bool,
    /// How often the slave is open.
    slaves: u32,
    /// The slave was open, and is not any more.
    pub is_abandoned: bool,
    /// The slave cannot be opened yet.
    pub is_locked: bool,
    /// There was no room for all that was written to the master.
    lacked_room: bool,
}

impl Pair {
    fn new(node: NodeId) -> Pair {
        let mut discipline = Discipline::new(Modes::PSEUDO);
        discipline.set_window(NO_WINDOW);
        Pair {
            terminal: Terminal::of_pair(discipline),
            arrived: VecDeque::with_capacity(MOST_ARRIVED),
            node,
            has_master: true,
            slaves: 0,
            is_abandoned: false,
            is_locked: true,
            lacked_room: false,
        }
    }

    /// Moves what processes have written to where the master is read. Returns whether something moved.
    fn move_output(&mut self) -> bool {
        self.terminal.discipline.move_output(&mut self.arrived, MOST_ARRIVED) > 0
    }

    /// Returns how many bytes can be read from the master.
    pub fn readable_bytes(&self) -> usize {
        self.arrived.len()
    }

    /// Returns whether the slave can be opened.
    pub const fn can_be_opened(&self) -> bool {
        self.has_master && !self.is_locked
    }
}

/// The end of the use of a terminal by a session, of which its processes are to be told.
#[derive(Clone, Copy, Debug)]
pub struct HangUp {
    /// The terminal.
    pub terminal: TerminalId,
    /// The session, if the terminal had one.
    pub session: Option<u32>,
    /// The group that used the terminal.
    pub foreground: Option<u32>,
}

/// All terminals of an instance.
#[derive(Debug)]
pub struct Terminals {
    /// The console.
    pub console: Terminal,
    /// The pseudo-terminals by their numbers.
    pairs: BTreeMap<u32, Box<Pair>>,
    /// The directory of the slaves, with a user.
    directory: NodeId,
    /// Terminals that have hung up, and whose sessions have not been told.
    pub hang_ups: Vec<HangUp>,
}

impl Terminals {
    /// The most pseudo-terminals at once.
    pub const MOST: u32 = 256;

    /// Returns a console, which a session uses, and no pseudo-terminals.
    pub const fn new(console: Terminal) -> Terminals {
        Terminals { console, pairs: BTreeMap::new(), directory: Tree::ROOT, hang_ups: Vec::new() }
    }

    /// Returns a terminal, if it exists.
    pub fn get(&self, id: TerminalId) -> Option<&Terminal> {
        match id {
            TerminalId::Console => Some(&self.console),
            TerminalId::Slave(number) => self.pairs.get(&number).map(|pair| &pair.terminal),
        }
    }

    /// Returns a terminal, to be changed.
    ///
    /// # Errors
    /// `EIO` if it does not exist.
    pub fn terminal(&mut self, id: TerminalId) -> Result<&mut Terminal, Errno> {
        match id {
            TerminalId::Console => Ok(&mut self.console),
            TerminalId::Slave(number) => Ok(&mut self.pair(number)?.terminal),
        }
    }

    /// Returns a pseudo-terminal.
    ///
    /// # Errors
    /// `EIO` if it does not exist.
    pub fn pair(&mut self, number: u32) -> Result<&mut Pair, Errno> {
        self.pairs.get_mut(&number).map(|pair| &mut **pair).ok_or(Errno::EIO)
    }

    /// Ends what a thread's wait for some things has begun to read.
    pub fn end_reads(&mut self, thread: u32, keys: &[Key]) {
        for key in keys {
            if let Key::Terminal(id) = *key
                && let Ok(terminal) = self.terminal(id)
            {
                terminal.end_read(thread, Ending::Interrupted);
            }
        }
    }

    /// Returns the number of pseudo-terminals.
    pub fn count(&self) -> usize {
        self.pairs.len()
    }

    /// Returns all terminals.
    pub fn iter(&self) -> impl Iterator<Item = (TerminalId, &Terminal)> {
        let pairs = self.pairs.iter().map(|(number, pair)| (TerminalId::Slave(*number), &pair.terminal));
        pairs.chain([(TerminalId::Console, &self.console)])
    }

    /// Returns the directory of the slaves.
    pub const fn directory(&self) -> NodeId {
        self.directory
    }

    /// Returns whether a node is the slave of the pseudo-terminal with a number.
    pub fn is_slave(&self, number: u32, node: NodeId) -> bool {
        self.pairs.get(&number).is_some_and(|pair| pair.node == node)
    }

    /// Returns the lowest number that no pseudo-terminal has, if there may be another one.
    fn free_number(&self) -> Option<u32> {
        (0..Terminals::MOST).find(|number| !self.pairs.contains_key(number))
    }
}

impl<M: Machine> System<M> {
    /// Adds `/dev/pts`, where slaves are.
    ///
    /// # Errors
    /// Those of [`Tree::make`].
    pub(crate) fn add_slaves(&mut self) -> Result<(), Errno> {
        let directory = self.tree.make_directories(&mut self.memory, b"/dev/pts")?;
        self.tree.share(directory);
        self.terminals.directory = directory;
        let place = self.tree.walk(Tree::ROOT, directory, b"ptmx", Last::Name)?;
        self.tree.make(&mut self.memory, &place, NewNode::Character(devices::MASTERS), 0).map(drop)
    }

    /// Makes a pseudo-terminal, whose master a user is about to open. Returns its number.
    ///
    /// # Errors
    /// `ENOSPC` if there are too many, `ENOMEM`, and those of [`Tree::make`].
    pub(crate) fn make_pair(&mut self, user: u32) -> Result<u32, Errno> {
        let number = self.terminals.free_number().ok_or(Errno::ENOSPC)?;
        self.memory.check_room(SIZE)?;
        self.update_time();
        let name = format!("{number}");
        let place = self.tree.walk(Tree::ROOT, self.terminals.directory, name.as_bytes(), Last::Name)?;
        let new = NewNode::Character(devices::slave(number));
        let node = self.tree.make(&mut self.memory, &place, new, PERMISSIONS)?;
        let attributes = &mut self.tree.node_mut(node).attributes;
        (attributes.user, attributes.group) = (user, GROUP);
        self.tree.share(node);
        self.terminals.pairs.insert(number, Box::new(Pair::new(node)));
        Ok(number)
    }

    /// Opens a node that is a terminal's, with a user for the open file.
    pub(crate) fn open_end(&mut self, node: NodeId, flags: u32, end: End) -> DescriptionId {
        let description = self.open(node, flags);
        self.descriptions.get(description).end = Some(end);
        if let End::Terminal(TerminalId::Slave(number)) = end
            && let Ok(pair) = self.terminals.pair(number)
        {
            pair.slaves += 1;
            pair.is_abandoned = false;
        }
        description
    }

    /// Closes one side of a terminal, as far as an open file is concerned.
    pub(crate) fn close_end(&mut self, end: End) {
        let (number, is_master) = match end {
            End::Terminal(TerminalId::Console) => return,
            End::Terminal(TerminalId::Slave(number)) => (number, false),
            End::Master(number) => (number, true),
        };
        let Ok(pair) = self.terminals.pair(number) else { return };
        if is_master {
            pair.has_master = false;
        } else {
            pair.slaves -= 1;
            pair.is_abandoned = pair.slaves == 0;
        }
        let (has_master, slaves, node) = (pair.has_master, pair.slaves, pair.node);
        if is_master {
            self.hang_up(number, node);
        } else if slaves == 0 {
            self.waiters.wake(Key::Master(number));
        }
        if !has_master && slaves == 0 {
            self.terminals.pairs.remove(&number);
        }
    }

    /// Hangs the slave of a pseudo-terminal up, whose master was closed.
    fn hang_up(&mut self, number: u32, node: NodeId) {
        let name = format!("{number}");
        let place = self.tree.walk(Tree::ROOT, self.terminals.directory, name.as_bytes(), Last::Name);
        if let Some(place) = place.ok().filter(|place| place.node == Some(node)) {
            let removed = self.tree.unlink(&mut self.memory, &place);
            debug_assert!(removed.is_ok(), "a slave is no directory");
        }
        self.tree.release(&mut self.memory, node);
        let terminal = TerminalId::Slave(number);
        if let Ok(Terminal { discipline, .. }) = self.terminals.terminal(terminal) {
            let (session, foreground) = (discipline.session(), discipline.foreground());
            discipline.hang_up();
            discipline.set_session(None);
            discipline.set_foreground(None);
            // What was waited for comes before the signals.
            self.waiters.wake(Key::Terminal(terminal));
            self.waiters.wake(Key::TerminalOutput(terminal));
            if session.is_some() {
                self.terminals.hang_ups.push(HangUp { terminal, session, foreground });
                self.waiters.make_files_ready();
            }
        }
    }

    /// Lets others read what a thread waits to read, and of which it has got nothing: its process stops, or is in the
    /// background. Its call is made again later.
    pub(crate) fn let_others_read(&mut self, thread: u32, keys: &[Key]) {
        for key in keys {
            if let Key::Terminal(id) = *key
                && let Ok(terminal) = self.terminals.terminal(id)
                && terminal.let_others_read(thread)
            {
                self.waiters.wake(*key);
            }
        }
    }

    /// Lets what has been written to a terminal, and its echo, be seen: on the console, or at the master.
    ///
    /// # Errors
    /// Those of the machine.
    pub(crate) fn show_output(&mut self, id: TerminalId) -> Result<(), Errno> {
        let TerminalId::Slave(number) = id else { return self.show_console() };
        if self.terminals.pair(number)?.move_output() {
            self.waiters.wake(Key::Master(number));
            self.waiters.wake(Key::TerminalOutput(id));
        }
        Ok(())
    }

    /// Lets the master be written again, if there was no room and there is now.
    pub(crate) fn tell_of_room(&mut self, id: TerminalId) {
        let TerminalId::Slave(number) = id else { return };
        let Ok(pair) = self.terminals.pair(number) else { return };
        if pair.lacked_room && pair.terminal.discipline.input_room() > 0 {
            pair.lacked_room = false;
            self.waiters.wake(Key::MasterRoom(number));
        }
    }

    /// Asks for what is typed, if the terminal is the console.
    pub(crate) fn await_terminal(&mut self, id: TerminalId) {
        if id == TerminalId::Console {
            self.memory.hardware.await_input();
        }
    }

    /// Reads what has arrived at a master. Returns the number of bytes, perhaps none.
    ///
    /// # Errors
    /// `EIO` if nothing is left, and nobody has the slave open any more.
    pub(crate) fn read_arrived(&mut self, number: u32, into: &mut [u8]) -> Result<usize, Errno> {
        let pair = self.terminals.pair(number)?;
        let count = pair.arrived.len().min(into.len());
        for (place, byte) in into.iter_mut().zip(pair.arrived.drain(..count)) {
            *place = byte;
        }
        if count == 0 && pair.is_abandoned {
            return Err(Errno::EIO);
        }
        if pair.terminal.discipline.waiting_output() > 0 {
            // Who writes may have waited for room.
            pair.move_output();
            self.waiters.wake(Key::TerminalOutput(TerminalId::Slave(number)));
        }
        Ok(count)
    }

    /// Types bytes at a master. Returns the number of those for which there was room.
    ///
    /// # Errors
    /// `EIO` if the pseudo-terminal does not exist.
    pub(crate) fn type_at(&mut self, number: u32, bytes: &[u8]) -> Result<usize, Errno> {
        let pair = self.terminals.pair(number)?;
        let count = pair.terminal.discipline.input(bytes);
        pair.lacked_room = pair.terminal.discipline.input_room() == 0;
        let is_writable = pair.terminal.discipline.readiness().is_writable;
        if pair.terminal.may_be_read() {
            self.waiters.wake(Key::Terminal(TerminalId::Slave(number)));
        }
        // What was typed may have let output go on.
        if is_writable {
            self.waiters.wake(Key::TerminalOutput(TerminalId::Slave(number)));
        }
        Ok(count)
    }

    /// Discards what has arrived at a master, or what was typed there and waits for room.
    ///
    /// # Errors
    /// `EIO` if the pseudo-terminal does not exist.
    pub(crate) fn flush_master(&mut self, number: u32, input: bool, output: bool) -> Result<(), Errno> {
        let pair = self.terminals.pair(number)?;
        if input {
            pair.arrived.clear();
            pair.move_output();
            self.waiters.wake(Key::TerminalOutput(TerminalId::Slave(number)));
        }
        if output {
            self.terminals.pair(number)?.terminal.discipline.discard_received();
            self.tell_of_room(TerminalId::Slave(number));
        }
        Ok(())
    }
}
