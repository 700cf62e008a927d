//! Questions of programs about network interfaces. There is one, the loopback interface, which is always up.

use tench_linux_calls::records::{u32_at, u64_at};
use tench_linux_files::Errno;
use tench_linux_sockets::numbers::family;

use crate::Machine;
use crate::caller::{Caller, Result};

mod command {
    //! Commands of `ioctl`, without `SIOCG` at the beginning, but for the first.
    pub const GIFNAME: u32 = 0x8910;
    pub const IFCONF: u32 = 0x8912;
    pub const IFFLAGS: u32 = 0x8913;
    pub const IFADDR: u32 = 0x8915;
    pub const IFBRDADDR: u32 = 0x8919;
    pub const IFNETMASK: u32 = 0x891b;
    pub const IFMTU: u32 = 0x8921;
    pub const IFHWADDR: u32 = 0x8927;
    pub const IFINDEX: u32 = 0x8933;
}

/// Size of a record about an interface, `ifreq`: its name, and one of several values.
const REQUEST: usize = 40;
/// Length of a name, which is also the offset of the value.
const NAME: usize = 16;
/// The name of the loopback interface.
const LOOPBACK: &[u8] = b"lo\0";
/// Number of the interface.
const INDEX: u32 = 1;
/// Flags of the interface: it is up, the loopback interface, and works.
const FLAGS: u16 = 1 | 8 | 0x40;
/// The longest packet.
const MTU: u32 = 65536;
/// The family of its hardware's address, which has none.
const HARDWARE: u16 = 772;

/// Returns the record of an address without a port.
fn internet_address(address: [u8; 4]) -> [u8; 16] {
    let mut record = [0; 16];
    record[..2].copy_from_slice(&family::INET.to_le_bytes());
    record[4..8].copy_from_slice(&address);
    record
}

impl<M: Machine> Caller<'_, M> {
    /// Tells about the network interfaces.
    pub(super) fn ask_interfaces(&mut self, descriptor: u64, command: u32, argument: u64) -> Result {
        let (socket, ..) = self.socket_of(descriptor)?;
        let has_addresses = socket.family == family::INET;
        if command == command::IFCONF && has_addresses {
            return self.list_interfaces(argument);
        }
        let is_known = matches!(
            command,
            command::GIFNAME | command::IFFLAGS | command::IFMTU | command::IFHWADDR | command::IFINDEX
        );
        let is_address = matches!(command, command::IFADDR | command::IFBRDADDR | command::IFNETMASK);
        if !(is_known || is_address && has_addresses) {
            return Err(Errno::ENOTTY);
        }
        let mut record: [u8; REQUEST] = self.read_record(argument)?;
        let is_there = match command {
            command::GIFNAME => u32_at(&record, NAME) == INDEX,
            _ => record.starts_with(LOOPBACK),
        };
        is_there.then_some(()).ok_or(Errno::ENODEV)?;
        let mut put = |bytes: &[u8]| record[NAME..NAME + bytes.len()].copy_from_slice(bytes);
        match command {
            command::GIFNAME => record[..LOOPBACK.len()].copy_from_slice(LOOPBACK),
            command::IFFLAGS => put(&FLAGS.to_le_bytes()),
            command::IFMTU => put(&MTU.to_le_bytes()),
            command::IFINDEX => put(&INDEX.to_le_bytes()),
            command::IFADDR => put(&internet_address([127, 0, 0, 1])),
            command::IFNETMASK => put(&internet_address([255, 0, 0, 0])),
            command::IFHWADDR => {
                let mut address = [0; 16];
                address[..2].copy_from_slice(&HARDWARE.to_le_bytes());
                put(&address);
            }
            // Nothing is sent to all that are there.
            _ => put(&internet_address([0; 4])),
        }
        self.write(argument, &record).map(|()| 0)
    }

    /// Writes a list of the interfaces that have addresses, or only its length.
    fn list_interfaces(&mut self, argument: u64) -> Result {
        let head: [u8; 16] = self.read_record(argument)?;
        let (room, into) = (u32_at(&head, 0).cast_signed(), u64_at(&head, 8));
        let mut length = REQUEST;
        if into != 0 {
            if room >= REQUEST as i32 {
                let mut record = [0; REQUEST];
                record[..LOOPBACK.len()].copy_from_slice(LOOPBACK);
                record[NAME..NAME + 16].copy_from_slice(&internet_address([127, 0, 0, 1]));
                self.write(into, &record)?;
            } else {
                length = 0;
            }
        }
        self.write(argument, &(length as u32).to_le_bytes()).map(|()| 0)
    }
}
