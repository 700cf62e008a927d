//! Descriptors of processes (`pidfd`), each of which refers to the same process as long as it is open.

use tench_linux_calls::numbers::open;
use tench_linux_calls::records::u32_at;
use tench_linux_files::Errno;

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::generated::{Owner, What};
use crate::signals::Info;
use crate::specials::{ProcessName, Special};

impl<M: Machine> Caller<'_, M> {
    /// Opens a descriptor of a process, which may be a zombie.
    pub fn pidfd_open(&mut self, id: u64, flags: u64) -> Result {
        let (id, flags) = (id as u32, flags as u32);
        if flags & !open::NONBLOCK != 0 || id.cast_signed() <= 0 {
            return Err(Errno::EINVAL);
        }
        let process = if id == self.process.id { Some(&*self.process) } else { self.others.find(id) };
        let Some(process) = process else {
            let is_thread = self.process.index_of(id).is_ok() || self.others.owner(id).is_some();
            return Err(if is_thread { Errno::EINVAL } else { Errno::ESRCH });
        };
        let name = ProcessName { id, round: process.round };
        self.add_special(Special::Process(name), open::RDWR | flags, true)
    }

    /// Returns the process to which a descriptor refers.
    ///
    /// # Errors
    /// `EBADF` if it is not the descriptor of a process.
    pub(super) fn process_handle(&mut self, descriptor: u64) -> Result<ProcessName> {
        let number = self.special(descriptor).map_err(|_| Errno::EBADF)?;
        match self.system.specials.get(number) {
            Special::Process(name) => Ok(*name),
            _ => Err(Errno::EBADF),
        }
    }

    /// Returns the process that a descriptor means, which may also be one of its directory in `/proc`.
    ///
    /// # Errors
    /// `EBADF` if it is neither.
    fn process_or_directory(&mut self, descriptor: u64) -> Result<ProcessName> {
        let description = self.descriptor(descriptor)?;
        match What::of(self.system.descriptions.get(description).node) {
            Some(What::Process(Owner { id, round })) => Ok(ProcessName { id, round }),
            _ => self.process_handle(descriptor),
        }
    }

    /// Returns whether a process is a zombie; nothing if it has been waited for.
    pub(super) fn has_named_ended(&self, name: ProcessName) -> Option<bool> {
        let process = if name.id == self.process.id { Some(&*self.process) } else { self.others.find(name.id) };
        process.filter(|process| process.round == name.round).map(|process| process.has_ended())
    }

    /// Sends a signal to a process, by a descriptor; perhaps with a value.
    pub fn pidfd_send_signal(&mut self, descriptor: u64, signal: u64, record: u64, flags: u64) -> Result {
        if flags as u32 != 0 {
            return Err(Errno::EINVAL);
        }
        let name = self.process_or_directory(descriptor)?;
        let signal_number = super::signals::signal(signal)?;
        let info = match record {
            0 => Info::from_process(signal_number, self.process.id, self.identity().user.real),
            _ => {
                let said: [u8; Info::SIZE] = self.read_record(record)?;
                if u32_at(&said, 0) != signal_number {
                    return Err(Errno::EINVAL);
                }
                self.read_info(signal, record, name.id)?
            }
        };
        self.has_named_ended(name).ok_or(Errno::ESRCH)?;
        self.send_to(name.id, info)
    }
}
