//! Calls about terminals.

use tench_linux_calls::numbers::open;
use tench_linux_files::{Errno, Kind};

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::devices;
use crate::process::Process;

/// Modes of a terminal that edits lines: input, output, control, local.
const MODES: [u32; 4] = [0x500, 0x5, 0xbf, 0x8a3b];
/// Characters with a meaning.
const CHARACTERS: [u8; 19] = [3, 0x1c, 0x7f, 0x15, 4, 0, 1, 0, 0x11, 0x13, 0x1a, 0, 0x12, 0xf, 0x17, 0x16, 0, 0, 0];
/// Rows and columns.
const SIZE: [u16; 4] = [24, 80, 0, 0];

impl<M: Machine> Caller<'_, M> {
    /// Controls a device.
    pub fn ioctl(&mut self, descriptor: u64, command: u64, argument: u64) -> Result {
        const GET_MODES: u32 = 0x5401;
        const SET_MODES: core::ops::RangeInclusive<u32> = 0x5402..=0x5404;
        const GET_GROUP: u32 = 0x540f;
        const SET_GROUP: u32 = 0x5410;
        const GET_SIZE: u32 = 0x5413;
        const READABLE: u32 = 0x541b;
        const CLOSE_ON_EXEC: u32 = 0x5451;
        const KEEP_ON_EXEC: u32 = 0x5450;
        let own = self.process.descriptors.get(descriptor)?;
        let open_file = self.system.descriptions.get(own.description);
        if open_file.flags & open::PATH != 0 {
            return Err(Errno::EBADF);
        }
        let node = open_file.node;
        let command = command as u32;
        if command == CLOSE_ON_EXEC || command == KEEP_ON_EXEC {
            return self.fcntl(descriptor, 2, (command == CLOSE_ON_EXEC).into());
        }
        if command == READABLE
            && let Some(pipe) = self.system.tree.pipe_mut(node)
        {
            let length = pipe.len() as u32;
            return self.write(argument, &length.to_le_bytes()).map(|()| 0);
        }
        let is_terminal =
            matches!(self.system.tree.node(node).kind, Kind::Character(device) if devices::is_terminal(device));
        if !is_terminal {
            return Err(Errno::ENOTTY);
        }
        match command {
            GET_MODES => {
                let mut record = MODES.map(u32::to_le_bytes).concat();
                record.push(0);
                record.extend_from_slice(&CHARACTERS);
                self.write(argument, &record).map(|()| 0)
            }
            command if SET_MODES.contains(&command) => self.read(argument, 36).map(|_| 0),
            GET_GROUP => {
                let group = self.system.terminal.group.unwrap_or(self.process.group);
                self.write(argument, &group.to_le_bytes()).map(|()| 0)
            }
            SET_GROUP => {
                let group = u32::from_le_bytes(self.read_record(argument)?);
                let session = self.process.session;
                let is_group = |process: &Process<M>| process.group == group && process.session == session;
                if !self.others.iter().any(is_group) && !is_group(self.process) {
                    return Err(Errno::EPERM);
                }
                self.system.terminal.group = Some(group);
                Ok(0)
            }
            READABLE => {
                let length = self.system.terminal.len() as u32;
                self.write(argument, &length.to_le_bytes()).map(|()| 0)
            }
            GET_SIZE => self.write(argument, &SIZE.map(u16::to_le_bytes).concat()).map(|()| 0),
            _ => Err(Errno::ENOTTY),
        }
    }
}
