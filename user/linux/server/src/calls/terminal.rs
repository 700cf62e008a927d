//! The call that controls devices, of which most are terminals.

use tench_linux_calls::numbers::{capability, open};
use tench_linux_calls::records::u16_at;
use tench_linux_files::{Errno, Kind, NodeId};
use tench_linux_terminal::{Flow, MODES_SIZE, Modes, WindowSize};

use super::modes;
use crate::Machine;
use crate::caller::{Caller, Result};
use crate::signals::number;
use crate::terminals::{End, TerminalId};
use crate::waiting::Key;

/// Commands of `ioctl`, without `T` or `TIO` at the beginning.
mod command {
    pub const CGETS: u32 = 0x5401;
    pub const CSETS: u32 = 0x5402;
    pub const CSETSW: u32 = 0x5403;
    pub const CSETSF: u32 = 0x5404;
    pub const CGETA: u32 = 0x5405;
    pub const CSETA: u32 = 0x5406;
    pub const CSETAW: u32 = 0x5407;
    pub const CSETAF: u32 = 0x5408;
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
    pub const CNOTTY: u32 = 0x5422;
    pub const CSBRKP: u32 = 0x5425;
    pub const CGSID: u32 = 0x5429;
    pub const GPTPEER: u32 = 0x5441;
    pub const FIONCLEX: u32 = 0x5450;
    pub const FIOCLEX: u32 = 0x5451;
    pub const FIOASYNC: u32 = 0x5452;
    pub const GLCKTRMIOS: u32 = 0x5456;
    pub const SLCKTRMIOS: u32 = 0x5457;
    pub const GPTN: u32 = 0x8004_5430;
    pub const SPTLCK: u32 = 0x4004_5431;
    pub const SIG: u32 = 0x4004_5436;
    pub const GPTLCK: u32 = 0x8004_5439;
}

impl<M: Machine> Caller<'_, M> {
    /// Controls a device.
    pub fn ioctl(&mut self, descriptor: u64, command: u64, argument: u64) -> Result {
        let own = self.process.descriptors.get(descriptor)?;
        let open_file = self.system.descriptions.get(own.description);
        if open_file.flags & open::PATH != 0 {
            return Err(Errno::EBADF);
        }
        let (node, end) = (open_file.node, open_file.end);
        let command = command as u32;
        match command {
            command::FIOCLEX | command::FIONCLEX => self.fcntl(descriptor, 2, (command == command::FIOCLEX).into()),
            command::FIONBIO => {
                let is_on = u32::from_le_bytes(self.read_record(argument)?) != 0;
                let flags = &mut self.system.descriptions.get(own.description).flags;
                *flags = *flags & !open::NONBLOCK | if is_on { open::NONBLOCK } else { 0 };
                Ok(0)
            }
            command::FIOASYNC => self.set_signals(own.description, descriptor, argument),
            command::FIONREAD | command::COUTQ if self.is_socket_node(node) => {
                let (socket, ..) = self.socket_of(descriptor)?;
                self.count_socket_bytes(&socket, command == command::COUTQ, argument)
            }
            _ if self.is_socket_node(node) => self.ask_interfaces(descriptor, command, argument),
            _ => match end {
                Some(end) => self.control_terminal(end, command, argument),
                None if command == command::FIONREAD => {
                    let count = self.count_readable(node)?;
                    self.write_count(argument, count)
                }
                None => Err(Errno::ENOTTY),
            },
        }
    }

    /// Returns whether a node is a socket.
    pub(super) fn is_socket_node(&self, node: NodeId) -> bool {
        matches!(self.system.tree.node(node).kind, Kind::Special(number) if self.system.specials.is_socket(number))
    }

    /// Returns how many bytes of a pipe or of events can be read.
    fn count_readable(&mut self, node: NodeId) -> Result<usize> {
        if let Kind::Special(number) = self.system.tree.node(node).kind
            && let Some(instance) = self.system.specials.watches(number)
        {
            return Ok(self.system.watches.readable(instance));
        }
        Ok(self.system.tree.pipe_mut(node).ok_or(Errno::ENOTTY)?.len())
    }

    /// Tells a number of bytes.
    fn write_count(&mut self, into: u64, count: usize) -> Result {
        self.write(into, &(count as u32).to_le_bytes()).map(|()| 0)
    }

    fn control_terminal(&mut self, end: End, command: u32, argument: u64) -> Result {
        let id = match end {
            End::Terminal(id) => id,
            End::Master(number) => TerminalId::Slave(number),
        };
        let discipline = &mut self.system.terminals.terminal(id)?.discipline;
        if discipline.is_hung_up() {
            return Err(if command == command::CSPGRP { Errno::ENOTTY } else { Errno::EIO });
        }
        match command {
            command::CGETS => {
                let record = discipline.modes().to_record();
                self.write(argument, &record).map(|()| 0)
            }
            command::CSETS | command::CSETSW | command::CSETSF => {
                self.check_foreground(id, number::TTOU)?;
                let record = self.read_record(argument)?;
                self.set_modes(id, command == command::CSETSF, &record)
            }
            command::CGETA | command::CSETA | command::CSETAW | command::CSETAF => {
                self.control_short_modes(id, command, argument)
            }
            command::GLCKTRMIOS | command::SLCKTRMIOS => self.control_locked_modes(id, command, argument),
            // Whatever was written has gone out.
            command::CSBRK | command::CSBRKP => self.check_change(end).map(|()| 0),
            command::COUTQ => self.write_count(argument, 0),
            command::CXONC => self.control_flow(end, argument),
            command::CFLSH => self.flush(end, argument),
            command::CGWINSZ => {
                let WindowSize { rows, columns, width, height } = discipline.window();
                let record = [rows, columns, width, height].map(u16::to_le_bytes).concat();
                self.write(argument, &record).map(|()| 0)
            }
            command::CSWINSZ => self.set_window(id, argument),
            command::CSCTTY => self.set_terminal(id, argument),
            command::CNOTTY => match end {
                End::Terminal(id) => self.leave_terminal(id),
                End::Master(_) => Err(Errno::ENOTTY),
            },
            command::CGPGRP => self.terminal_group(end, id, argument),
            command::CSPGRP => self.set_terminal_group(id, argument),
            command::CGSID => self.terminal_session(end, id, argument),
            command => match end {
                End::Terminal(_) if command == command::FIONREAD => {
                    let count = discipline.readable_bytes();
                    self.write_count(argument, count)
                }
                End::Terminal(_) => Err(Errno::ENOTTY),
                End::Master(number) => self.control_master(number, command, argument),
            },
        }
    }

    /// Reads or sets the modes as the short record of old programs.
    fn control_short_modes(&mut self, id: TerminalId, command: u32, argument: u64) -> Result {
        let modes = |caller: &mut Self| {
            caller.system.terminals.terminal(id).map(|terminal| terminal.discipline.modes().to_record())
        };
        if command == command::CGETA {
            let record = modes::short(&modes(self)?);
            return self.write(argument, &record).map(|()| 0);
        }
        self.check_foreground(id, number::TTOU)?;
        let record = self.read_record(argument)?;
        let record = modes::with_short(modes(self)?, &record);
        self.set_modes(id, command == command::CSETAF, &record)
    }

    /// Reads or sets the record of locked modes.
    fn control_locked_modes(&mut self, id: TerminalId, command: u32, argument: u64) -> Result {
        if command == command::GLCKTRMIOS {
            let record = self.system.terminals.terminal(id)?.locked_modes;
            return self.write(argument, &record).map(|()| 0);
        }
        if !self.identity().has(capability::SYS_ADMIN) {
            return Err(Errno::EPERM);
        }
        let record = self.read_record(argument)?;
        self.system.terminals.terminal(id)?.locked_modes = record;
        Ok(0)
    }

    /// Controls what only the master of a pseudo-terminal has.
    fn control_master(&mut self, number: u32, command: u32, argument: u64) -> Result {
        match command {
            command::FIONREAD => {
                let count = self.system.terminals.pair(number)?.readable_bytes();
                self.write_count(argument, count)
            }
            command::GPTN => self.write(argument, &number.to_le_bytes()).map(|()| 0),
            command::SPTLCK => {
                let is_locked = u32::from_le_bytes(self.read_record(argument)?) != 0;
                self.system.terminals.pair(number)?.is_locked = is_locked;
                Ok(0)
            }
            command::GPTLCK => {
                let is_locked = self.system.terminals.pair(number)?.is_locked;
                self.write(argument, &u32::from(is_locked).to_le_bytes()).map(|()| 0)
            }
            command::GPTPEER => self.open_peer(number, argument),
            command::SIG => match argument as u32 {
                signal @ (number::INT | number::QUIT | number::TSTP) => {
                    self.signal_foreground(TerminalId::Slave(number), signal);
                    Ok(0)
                }
                _ => Err(Errno::EINVAL),
            },
            _ => Err(Errno::ENOTTY),
        }
    }

    /// Checks that the process may change its terminal. Whoever has the master may.
    fn check_change(&mut self, end: End) -> Result<()> {
        match end {
            End::Terminal(id) => self.check_foreground(id, number::TTOU),
            End::Master(_) => Ok(()),
        }
    }

    fn set_modes(&mut self, id: TerminalId, flushes: bool, record: &[u8; MODES_SIZE]) -> Result {
        let terminal = self.system.terminals.terminal(id)?;
        let discipline = &mut terminal.discipline;
        if flushes {
            discipline.flush_input();
        }
        let old = discipline.modes().to_record();
        discipline.set_modes(Modes::parse(&modes::unless_locked(&terminal.locked_modes, &old, record)));
        self.settle_terminal(id)?;
        // What was typed may be readable in the new modes, and what was stopped may go on.
        self.system.waiters.wake(Key::Terminal(id));
        self.system.waiters.wake(Key::TerminalOutput(id));
        Ok(0)
    }

    fn control_flow(&mut self, end: End, argument: u64) -> Result {
        self.check_change(end)?;
        let flow = match argument {
            0 => Flow::StopOutput,
            1 => Flow::StartOutput,
            2 => Flow::StopInput,
            3 => Flow::StartInput,
            _ => return Err(Errno::EINVAL),
        };
        // What a master would stop is never sent.
        let End::Terminal(id) = end else { return Ok(0) };
        self.system.terminals.terminal(id)?.discipline.control_flow_by_call(flow);
        self.settle_terminal(id)?;
        self.system.waiters.wake(Key::TerminalOutput(id));
        Ok(0)
    }

    /// Discards input, output or both that nobody has taken.
    fn flush(&mut self, end: End, argument: u64) -> Result {
        self.check_change(end)?;
        let (input, output) = match argument {
            0 => (true, false),
            1 => (false, true),
            2 => (true, true),
            _ => return Err(Errno::EINVAL),
        };
        let id = match end {
            End::Terminal(id) => id,
            End::Master(number) => return self.system.flush_master(number, input, output).map(|()| 0),
        };
        let discipline = &mut self.system.terminals.terminal(id)?.discipline;
        if input {
            discipline.flush_input();
        }
        if output {
            discipline.flush_output();
        }
        self.settle_terminal(id)?;
        if output {
            self.system.waiters.wake(Key::TerminalOutput(id));
        }
        Ok(0)
    }

    fn set_window(&mut self, id: TerminalId, argument: u64) -> Result {
        let record: [u8; 8] = self.read_record(argument)?;
        let [rows, columns, width, height] = [0, 2, 4, 6].map(|offset| u16_at(&record, offset));
        let window = WindowSize { rows, columns, width, height };
        if self.system.terminals.terminal(id)?.discipline.set_window(window) {
            self.signal_foreground(id, number::WINCH);
        }
        Ok(0)
    }
}
