//! Calls that open, read, write and await terminals, from either side.

use core::time::Duration;

use alloc::format;
use alloc::vec::Vec;

use tench_linux_calls::numbers::open;
use tench_linux_files::{Device, Errno, NodeId};
use tench_linux_terminal::{Ending, local};

use super::descriptors::{LARGE, MOMENTARY};
use crate::Machine;
use crate::caller::{Caller, Result};
use crate::descriptors::{DescriptionId, Descriptor, Place};
use crate::devices;
use crate::signals::number;
use crate::terminal::Read;
use crate::terminals::{End, TerminalId};
use crate::waiting::{Interruption, Key};

/// Readiness of one side of a terminal.
pub(super) struct EndReadiness {
    pub is_readable: bool,
    pub is_writable: bool,
    /// The other side is closed.
    pub is_hung_up: bool,
    /// Reads and writes fail.
    pub has_failed: bool,
}

impl<M: Machine> Caller<'_, M> {
    /// Opens a node that is a terminal, and has got a user for the open file.
    pub(super) fn open_terminal(
        &mut self,
        node: NodeId,
        device: Device,
        flags: u32,
        kept: u32,
    ) -> Result<DescriptionId> {
        match self.end_of(node, device) {
            Ok(end) => Ok(self.open_terminal_end(node, end, flags, kept)),
            Err(error) => {
                self.system.tree.release(&mut self.system.memory, node);
                Err(error)
            }
        }
    }

    /// Returns what is opened with a node that is a terminal.
    fn end_of(&mut self, node: NodeId, device: Device) -> Result<End> {
        match device {
            devices::CONSOLE => Ok(End::Terminal(TerminalId::Console)),
            devices::TERMINAL => self.process.terminal.map(End::Terminal).ok_or(Errno::ENXIO),
            devices::MASTERS => self.system.make_pair(self.identity().user.files).map(End::Master),
            device => {
                let number = device.0 & 0xff;
                let pair = self.system.terminals.pair(number)?;
                let can_be_opened = pair.node == node && pair.can_be_opened();
                can_be_opened.then_some(End::Terminal(TerminalId::Slave(number))).ok_or(Errno::EIO)
            }
        }
    }

    fn open_terminal_end(&mut self, node: NodeId, end: End, flags: u32, kept: u32) -> DescriptionId {
        let description = self.system.open_end(node, kept, end);
        let reads = self.system.descriptions.get(description).reads();
        if let End::Terminal(id @ TerminalId::Slave(_)) = end
            && reads
            && flags & open::NOCTTY == 0
        {
            self.take_free_terminal(id);
        }
        description
    }

    /// Opens the slave of a master, without a path: `TIOCGPTPEER`.
    pub(super) fn open_peer(&mut self, number: u32, flags: u64) -> Result {
        let flags = flags as u32;
        let pair = self.system.terminals.pair(number)?;
        if !pair.can_be_opened() {
            return Err(Errno::EIO);
        }
        let node = pair.node;
        self.system.tree.share(node);
        let end = End::Terminal(TerminalId::Slave(number));
        let description = self.open_terminal_end(node, end, flags, (flags | LARGE) & !MOMENTARY);
        let name = format!("{number}").into_bytes().into_boxed_slice();
        let place = Place { directory: self.system.terminals.directory(), name };
        self.system.descriptions.get(description).place = Some(place);
        self.add_descriptor(Descriptor { description, closes_on_exec: flags & open::CLOEXEC != 0 }, 0)
    }

    /// Reads from a terminal, from the side from which it is open.
    pub(super) fn read_end(&mut self, description: DescriptionId, into: &mut [u8]) -> Result<usize> {
        let open_file = self.system.descriptions.get(description);
        let blocks = open_file.flags & open::NONBLOCK == 0;
        match open_file.end.ok_or(Errno::ENXIO)? {
            _ if into.is_empty() => Ok(0),
            End::Terminal(id) => self.read_terminal(id, blocks, into),
            End::Master(number) => match self.system.read_arrived(number, into)? {
                0 if blocks => Err(self.wait(&[Key::Master(number)], None, Interruption::Restartable)),
                0 => Err(Errno::EAGAIN),
                count => Ok(count),
            },
        }
    }

    /// Writes to a terminal, from the side from which it is open.
    pub(super) fn write_end(&mut self, description: DescriptionId, from: &[u8]) -> Result<usize> {
        let open_file = self.system.descriptions.get(description);
        let blocks = open_file.flags & open::NONBLOCK == 0;
        let (count, key) = match open_file.end.ok_or(Errno::ENXIO)? {
            End::Terminal(id) => (self.write_terminal(id, from)?, Key::TerminalOutput(id)),
            End::Master(number) => {
                let count = self.system.type_at(number, from)?;
                self.settle_terminal(TerminalId::Slave(number))?;
                (count, Key::MasterRoom(number))
            }
        };
        match count {
            0 if from.is_empty() => Ok(0),
            0 if blocks => Err(self.wait(&[key], None, Interruption::Restartable)),
            0 => Err(Errno::EAGAIN),
            count => Ok(count),
        }
    }

    /// Returns what can be done with a terminal without waiting, and adds what others would come with.
    pub(super) fn end_events(&mut self, description: DescriptionId, keys: &mut Vec<Key>) -> EndReadiness {
        let open_file = self.system.descriptions.get(description);
        let (end, reads) = (open_file.end, open_file.reads());
        match end {
            Some(End::Terminal(id)) => {
                keys.extend([Key::Terminal(id), Key::TerminalOutput(id)]);
                if let Some(terminal) = self.system.terminals.get(id) {
                    let readiness = terminal.discipline.readiness();
                    if !readiness.is_readable && reads {
                        self.system.await_terminal(id);
                    }
                    return EndReadiness {
                        is_readable: readiness.is_readable,
                        is_writable: readiness.is_writable,
                        is_hung_up: readiness.is_hung_up,
                        has_failed: readiness.is_hung_up,
                    };
                }
            }
            Some(End::Master(number)) => {
                keys.extend([Key::Master(number), Key::MasterRoom(number)]);
                if let Ok(pair) = self.system.terminals.pair(number) {
                    return EndReadiness {
                        is_readable: pair.readable_bytes() > 0,
                        is_writable: pair.terminal.discipline.input_room() > 0,
                        is_hung_up: pair.is_abandoned,
                        has_failed: false,
                    };
                }
            }
            None => {}
        }
        EndReadiness { is_readable: false, is_writable: false, is_hung_up: true, has_failed: true }
    }

    /// Sends the signals of keys, and shows a terminal's output.
    pub(super) fn settle_terminal(&mut self, id: TerminalId) -> Result<()> {
        for signal in self.system.terminals.terminal(id)?.discipline.take_signals() {
            self.signal_foreground(id, signal.number());
        }
        self.system.tell_of_room(id);
        match self.system.show_output(id) {
            Err(Errno::EPIPE) => Err(self.broken_pipe()),
            result => result,
        }
    }

    /// Writes to a terminal. Returns the number of bytes that have gone out.
    fn write_terminal(&mut self, id: TerminalId, from: &[u8]) -> Result<usize> {
        let discipline = &self.system.terminals.terminal(id)?.discipline;
        if discipline.is_hung_up() {
            return Err(Errno::EIO);
        }
        if discipline.modes().local & local::TOSTOP != 0 {
            self.check_foreground(id, number::TTOU)?;
        }
        let count = self.system.terminals.terminal(id)?.discipline.write(from)?;
        self.settle_terminal(id)?;
        Ok(count)
    }

    /// Reads what was typed at a terminal; waits if nothing was, or stops in the background.
    fn read_terminal(&mut self, id: TerminalId, blocks: bool, into: &mut [u8]) -> Result<usize> {
        let thread = self.process.thread().id;
        let terminal = self.system.terminals.terminal(id)?;
        if terminal.discipline.is_hung_up() {
            // Who has waited finds that the other side is gone; for the others it is the end.
            let has_waited = terminal.is_read_by(thread);
            terminal.end_read(thread, Ending::Interrupted);
            return if has_waited { Err(Errno::EIO) } else { Ok(0) };
        }
        self.check_foreground(id, number::TTIN)?;
        let read = self.system.terminals.terminal(id)?.read(thread, into.len());
        self.settle_terminal(id)?;
        let bytes = match read {
            Read::Done(bytes) => bytes,
            _ if !blocks => {
                let read = self.system.terminals.terminal(id)?.end_read(thread, Ending::WouldBlock);
                self.system.await_terminal(id);
                read.ok_or(Errno::EAGAIN)?
            }
            Read::Busy => return Err(self.wait(&[Key::Terminal(id)], None, Interruption::Restartable)),
            Read::Waits { tenths, is_new } => self.wait_for_input(id, tenths, is_new)?,
        };
        self.system.waiters.wake(Key::Terminal(id));
        into[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    /// Waits for input, at the longest for so many tenths of a second. Returns what was read when they are over.
    fn wait_for_input(&mut self, id: TerminalId, tenths: Option<u8>, is_new: bool) -> Result<Vec<u8>> {
        self.system.await_terminal(id);
        let deadline = if is_new {
            let span = tenths.map(|tenths| Duration::from_millis(100 * u64::from(tenths)));
            span.map(|span| self.system.memory.hardware.monotonic().saturating_add(span))
        } else {
            self.deadline()
        };
        if self.has_passed(deadline) {
            let thread = self.process.thread().id;
            let read = self.system.terminals.terminal(id)?.end_read(thread, Ending::TimedOut);
            return Ok(read.unwrap_or_default());
        }
        Err(self.wait(&[Key::Terminal(id)], deadline, Interruption::Restartable))
    }
}
