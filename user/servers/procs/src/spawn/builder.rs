//! Process builders: what a process is prepared with.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use tench::server::delete_in_parts;
use tench_abi::CapAddress;
use tench_abi::layout::slot;
use tench_abi::memory::PAGE_SIZE;
use tench_boot::Content;
use tench_loader::information::TEXT_SIZE;
use tench_loader::{Source, root_bits};
use tench_procs::spawn::catalogue::File;
use tench_procs_interface::protocol::{Error, MAX_STACK, Strings};
use tench_protocol::{Any, Arrived};

use super::memory::Account;
use super::running::Service;

/// A process builder: everything with which a process is to start.
#[derive(Default)]
pub struct ProcessBuilder {
    /// Program from the boot archive.
    pub(super) program: Option<&'static File<'static>>,
    /// Program that the parent hands over.
    pub(super) content: Option<Box<Handed>>,
    /// First argument: the name under which the program was requested.
    pub(super) name: String,
    pub(super) arguments: Vec<u8>,
    pub(super) environment: Vec<u8>,
    /// Capabilities given by the parent: for each, the slot in the new process, and this server's slot that holds it.
    pub(super) given: Vec<(CapAddress, CapAddress)>,
    /// Bytes of the main thread's stack; 0 for the usual size.
    pub(super) stack_size: u64,
    /// Log2 of the number of nodes of slots that the process can have; 0 for the usual number.
    pub(super) root_bits: u32,
}

/// A program's file that a parent hands over. Its memory is charged to the process that is to run it.
pub(super) struct Handed {
    pub(super) content: Content,
    account: Account,
}

impl Handed {
    /// Frees the file and everything else on the account.
    fn take_back(mut self) {
        // A file's size is bounded, and so is this loop.
        while !self.account.take_back() {}
    }
}

/// Returns a valid stack size: whole pages, or 0 for the usual size.
pub fn stack_size(bytes: u64) -> Result<u64, Error> {
    match bytes {
        0..=MAX_STACK => Ok(bytes.next_multiple_of(PAGE_SIZE as u64)),
        _ => Err(Error::StackTooLarge),
    }
}

/// Returns whether a parent may give a capability in this slot.
fn may_be_given(to: CapAddress) -> bool {
    let extra = slot::EXTRA.0..slot::EXTRA.0 + slot::EXTRA_COUNT;
    let named = [slot::NAMES, slot::CONSOLE, slot::FILES, slot::KERNEL, slot::INTERRUPT_CONTROL, slot::SERVICE];
    let streams = [slot::STDIN, slot::STDOUT, slot::STDERR];
    extra.contains(&to.0) || named.contains(&to) || streams.contains(&to)
}

impl ProcessBuilder {
    /// Returns the builder of a process whose program is from the boot archive and was requested as `name`.
    pub fn new(program: &'static File<'static>, name: &str) -> ProcessBuilder {
        ProcessBuilder { program: Some(program), name: String::from(name), ..ProcessBuilder::default() }
    }

    /// Returns the builder of a process whose program its parent calls `name` and hands over.
    pub(super) fn of_content(name: &str, content: Content, account: Account) -> ProcessBuilder {
        let content = Some(Box::new(Handed { content, account }));
        ProcessBuilder { content, name: String::from(name), ..ProcessBuilder::default() }
    }

    /// Returns the program's file, if the parent hands it over.
    pub(super) fn content(&mut self) -> Option<&mut Content> {
        self.content.as_mut().map(|handed| &mut handed.content)
    }

    /// Sets the size of the stack.
    pub fn set_stack_size(&mut self, bytes: u64) {
        self.stack_size = bytes;
    }

    /// Sets how many slots the process can have. Fails with `TooManySlots` if no process can have as many.
    pub fn set_slots(&mut self, slots: u64) -> Result<(), Error> {
        self.root_bits = root_bits(slots).ok_or(Error::TooManySlots)?;
        Ok(())
    }

    /// Returns the size of the texts after `appended` more bytes. Fails with `TextTooLong` if that exceeds the maximum
    /// for a process.
    pub fn text_after(&self, appended: usize) -> Result<usize, Error> {
        let length = self.arguments.len() + self.environment.len() + appended;
        if length > TEXT_SIZE { Err(Error::TextTooLong) } else { Ok(length) }
    }

    /// Appends text to a list.
    pub fn append(&mut self, to: Strings, text: &[u8]) -> Result<(), Error> {
        let strings = match to {
            Strings::Arguments => &mut self.arguments,
            Strings::Environment => &mut self.environment,
        };
        strings.try_reserve(text.len()).map_err(|_| Error::OutOfMemory)?;
        strings.extend_from_slice(text);
        Ok(())
    }

    /// Returns the number of given capabilities when one more is added in this slot. Fails with `BadSlot` if the slot
    /// is not allowed or taken.
    pub fn given_with(&self, to: CapAddress) -> Result<usize, Error> {
        if may_be_given(to) && !self.has(to) { Ok(self.given.len() + 1) } else { Err(Error::BadSlot) }
    }

    /// Takes over an arrived capability, for a slot in which one [may be given](Self::given_with).
    pub fn give<How>(&mut self, to: CapAddress, cap: Arrived<'_, Any, How>) {
        self.given.push((to, cap.keep().address()));
    }

    /// Returns whether the parent has given a capability for this slot.
    pub(super) fn has(&self, to: CapAddress) -> bool {
        self.given.iter().any(|(given, _)| *given == to)
    }

    /// Removes and returns the endpoint at which the process will serve.
    pub fn take_service(&mut self) -> Option<Service> {
        let index = self.given.iter().position(|(to, _)| *to == slot::SERVICE)?;
        Some(Service::Given(self.given.swap_remove(index).1))
    }

    /// Returns the path of the program.
    pub fn path(&self) -> &str {
        self.program.map_or("", |program| &program.path)
    }

    /// Checks that a server can be started from this builder, and started again. Fails with `WrongState` if the
    /// program's file was handed over, since it lives no longer than its process, with `BadSlot` without an endpoint.
    pub fn check_lasting(&self) -> Result<(), Error> {
        if self.content.is_some() {
            return Err(Error::WrongState);
        }
        if self.has(slot::SERVICE) { Ok(()) } else { Err(Error::BadSlot) }
    }

    /// Discards the process builder.
    pub fn abandon(self) {
        self.given.into_iter().for_each(|(_, from)| delete_in_parts(from));
        self.content.into_iter().for_each(|handed| handed.take_back());
    }
}
