//! Calls about terminals.

use tench_linux_calls::numbers::open;
use tench_linux_calls::records::u16_at;
use tench_linux_files::{Errno, Kind, NodeId};
use tench_linux_terminal::{Ending, Flow, MODES_SIZE, Modes, WindowSize};

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::devices;
use crate::process::Process;
use crate::signals::{Info, number};
use crate::terminal::Read;
use crate::waiting::{Interruption, Key};

/// Commands of `ioctl`, without `T` or `TIO` at the beginning.
mod command {
    pub const CGETS: u32 = 0x5401;
    pub const CSETS: u32 = 0x5402;
    pub const CSETSW: u32 = 0x5403;
    pub const CSETSF: u32 = 0x5404;
    pub const CSBRK: u32 = 0x5409;
    pub const CXONC: u32 = 0x540a;
    pub const CFLSH: u32 = 0x540b;
    pub const CSCTTY: u32 = 0x540e;
    pub const CGPGRP: u32 = 0x540f;
    pub const CSPGRP: u32 = 0x5410;
    pub const COUTQ: u32 = 0x5411;
    pub const CGWINSZ: u32 = 0x5413;
    pub const CSWINSZ: u32 = 0x5414;
    pub const FIONREAD: u32 = 0x541b;
    pub const FIONBIO: u32 = 0x5421;
    pub const CGSID: u32 = 0x5429;
    pub const FIONCLEX: u32 = 0x5450;
    pub const FIOCLEX: u32 = 0x5451;
    pub const FIOASYNC: u32 = 0x5452;
}

impl<M: Machine> Caller<'_, M> {
    /// Controls a device.
    pub fn ioctl(&mut self, descriptor: u64, command: u64, argument: u64) -> Result {
        let own = self.process.descriptors.get(descriptor)?;
        let open_file = self.system.descriptions.get(own.description);
        if open_file.flags & open::PATH != 0 {
            return Err(Errno::EBADF);
        }
        let node = open_file.node;
        let command = command as u32;
        match command {
            command::FIOCLEX | command::FIONCLEX => self.fcntl(descriptor, 2, (command == command::FIOCLEX).into()),
            command::FIONBIO => {
                let is_on = u32::from_le_bytes(self.read_record(argument)?) != 0;
                let flags = &mut self.system.descriptions.get(own.description).flags;
                *flags = *flags & !open::NONBLOCK | if is_on { open::NONBLOCK } else { 0 };
                Ok(0)
            }
            command::FIOASYNC => self.set_signals(own.description, argument),
            command::FIONREAD | command::COUTQ if self.is_socket_node(node) => {
                let (socket, ..) = self.socket_of(descriptor)?;
                self.count_socket_bytes(&socket, command == command::COUTQ, argument)
            }
            command::FIONREAD => self.count_readable(node, argument),
            _ if self.is_socket_node(node) => self.ask_interfaces(descriptor, command, argument),
            _ if self.is_terminal(node) => self.control_terminal(command, argument),
            _ => Err(Errno::ENOTTY),
        }
    }

    /// Returns whether a node is a socket.
    pub(super) fn is_socket_node(&self, node: NodeId) -> bool {
        matches!(self.system.tree.node(node).kind, Kind::Special(number) if self.system.specials.is_socket(number))
    }

    /// Returns whether a node is a terminal.
    fn is_terminal(&self, node: NodeId) -> bool {
        matches!(self.system.tree.node(node).kind, Kind::Character(device) if devices::is_terminal(device))
    }

    /// Tells how many bytes can be read.
    fn count_readable(&mut self, node: NodeId, into: u64) -> Result {
        let count = if self.is_terminal(node) {
            self.system.terminal.discipline.readable_bytes()
        } else {
            self.system.tree.pipe_mut(node).ok_or(Errno::ENOTTY)?.len()
        };
        self.write(into, &(count as u32).to_le_bytes()).map(|()| 0)
    }

    fn control_terminal(&mut self, command: u32, argument: u64) -> Result {
        let discipline = &mut self.system.terminal.discipline;
        match command {
            command::CGETS => {
                let record = discipline.modes().to_record();
                self.write(argument, &record).map(|()| 0)
            }
            command::CSETS | command::CSETSW | command::CSETSF => self.set_modes(command, argument),
            // Whatever was written has gone out.
            command::CSBRK => Ok(0),
            command::COUTQ => self.write(argument, &[0; 4]).map(|()| 0),
            command::CXONC => {
                let flow = match argument {
                    0 => Flow::StopOutput,
                    1 => Flow::StartOutput,
                    2 => Flow::StopInput,
                    3 => Flow::StartInput,
                    _ => return Err(Errno::EINVAL),
                };
                discipline.control_flow_by_call(flow);
                self.show_output().map(|()| 0)
            }
            command::CFLSH if argument < 3 => {
                if argument != 1 {
                    discipline.flush_input();
                }
                if argument != 0 {
                    discipline.flush_output();
                }
                Ok(0)
            }
            command::CGWINSZ => {
                let WindowSize { rows, columns, width, height } = discipline.window();
                let record = [rows, columns, width, height].map(u16::to_le_bytes).concat();
                self.write(argument, &record).map(|()| 0)
            }
            command::CSWINSZ => self.set_window(argument),
            command::CGPGRP | command::CSPGRP | command::CGSID | command::CSCTTY => {
                self.control_session(command, argument)
            }
            _ => Err(Errno::EINVAL),
        }
    }

    fn set_modes(&mut self, command: u32, argument: u64) -> Result {
        let record: [u8; MODES_SIZE] = self.read_record(argument)?;
        let discipline = &mut self.system.terminal.discipline;
        if command == command::CSETSF {
            discipline.flush_input();
        }
        discipline.set_modes(Modes::parse(&record));
        // What was typed may be readable in the new modes.
        self.system.waiters.wake(Key::Terminal);
        Ok(0)
    }

    fn set_window(&mut self, argument: u64) -> Result {
        let record: [u8; 8] = self.read_record(argument)?;
        let [rows, columns, width, height] = [0, 2, 4, 6].map(|offset| u16_at(&record, offset));
        if self.system.terminal.discipline.set_window(WindowSize { rows, columns, width, height }) {
            self.signal_foreground(number::WINCH);
        }
        Ok(0)
    }

    /// Sends a signal to the processes that use the terminal.
    fn signal_foreground(&mut self, signal: u32) {
        let foreground = self.system.terminal.discipline.foreground();
        for process in self.others.iter_mut().chain([&mut *self.process]) {
            if Some(process.group) == foreground {
                self.system.send(process, Info::from_system(signal));
            }
        }
    }

    /// Reads and sets to whom the terminal belongs.
    fn control_session(&mut self, command: u32, argument: u64) -> Result {
        let session = self.process.session;
        let owner = self.system.terminal.discipline.session();
        if command == command::CSCTTY {
            return if owner == Some(session) { Ok(0) } else { Err(Errno::EPERM) };
        }
        if owner != Some(session) {
            return Err(Errno::ENOTTY);
        }
        if command == command::CGSID {
            return self.write(argument, &session.to_le_bytes()).map(|()| 0);
        }
        if command == command::CGPGRP {
            let group = self.system.terminal.discipline.foreground().unwrap_or(0);
            return self.write(argument, &group.to_le_bytes()).map(|()| 0);
        }
        let group = u32::from_le_bytes(self.read_record(argument)?);
        if group.cast_signed() < 0 {
            return Err(Errno::EINVAL);
        }
        let mut members = self.others.iter().chain([&*self.process]).filter(|process| process.group == group);
        match members.next() {
            None => return Err(Errno::ESRCH),
            Some(member) if member.session != session => return Err(Errno::EPERM),
            Some(_) => {}
        }
        self.system.terminal.discipline.set_foreground(Some(group));
        Ok(0)
    }

    /// Shows the terminal's output.
    fn show_output(&mut self) -> Result<()> {
        match self.system.show_output() {
            Err(Errno::EPIPE) => Err(self.broken_pipe()),
            result => result,
        }
    }

    /// Writes to the terminal; waits while output is stopped.
    pub(crate) fn write_terminal(&mut self, flags: u32, from: &[u8]) -> Result<usize> {
        let count = self.system.terminal.discipline.write(from)?;
        self.show_output()?;
        match count {
            0 if from.is_empty() => Ok(0),
            0 if flags & open::NONBLOCK != 0 => Err(Errno::EAGAIN),
            0 => Err(self.wait(&[Key::TerminalOutput], None, Interruption::Restartable)),
            count => Ok(count),
        }
    }

    /// Reads what was typed at the terminal; waits if nothing was, or stops in the background.
    pub(crate) fn read_terminal(&mut self, flags: u32, into: &mut [u8]) -> Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        if self.is_in_background() {
            return Err(self.stop_in_background());
        }
        let id = self.process.thread().id;
        let bytes = match self.system.terminal.read(id, into.len()) {
            Read::Done(bytes) => bytes,
            _ if flags & open::NONBLOCK != 0 => {
                let read = self.system.terminal.end_read(id, Ending::WouldBlock);
                self.system.memory.hardware.await_input();
                read.ok_or(Errno::EAGAIN)?
            }
            Read::Busy => return Err(self.wait(&[Key::Terminal], None, Interruption::Restartable)),
            Read::Waits { tenths, is_new } => self.wait_for_input(tenths, is_new)?,
        };
        self.system.show_output()?;
        self.system.waiters.wake(Key::Terminal);
        into[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    /// Waits for input, at the longest for so many tenths of a second. Returns what was read when they are over.
    fn wait_for_input(&mut self, tenths: Option<u8>, is_new: bool) -> Result<alloc::vec::Vec<u8>> {
        self.system.memory.hardware.await_input();
        let deadline = if is_new {
            let span = tenths.map(|tenths| core::time::Duration::from_millis(100 * u64::from(tenths)));
            span.map(|span| self.system.memory.hardware.monotonic().saturating_add(span))
        } else {
            self.deadline()
        };
        if self.has_passed(deadline) {
            let thread = self.process.thread().id;
            let read = self.system.terminal.end_read(thread, Ending::TimedOut);
            return Ok(read.unwrap_or_default());
        }
        Err(self.wait(&[Key::Terminal], deadline, Interruption::Restartable))
    }

    /// Returns whether others use the process's terminal.
    fn is_in_background(&self) -> bool {
        let discipline = &self.system.terminal.discipline;
        let is_own = discipline.session() == Some(self.process.session);
        is_own && discipline.foreground().is_some_and(|group| group != self.process.group)
    }

    /// Sends the process's group the signal for reading in the background. Returns what the call is to return.
    fn stop_in_background(&mut self) -> Errno {
        let is_blocked = self.process.thread().signals.blocks(number::TTIN);
        if self.process.signals.is_ignored(number::TTIN) || is_blocked {
            return Errno::EIO;
        }
        let group = self.process.group;
        let is_member = |process: &&mut Process<M>| process.group == group;
        for process in self.others.iter_mut().chain([&mut *self.process]).filter(is_member) {
            self.system.send(process, Info::from_system(number::TTIN));
        }
        self.wait(&[Key::Terminal], None, Interruption::Restartable)
    }
}
