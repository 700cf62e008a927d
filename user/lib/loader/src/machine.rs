//! Executor of the loader's decisions: objects, mappings and threads of the kernel.

use arrayvec::ArrayVec;
use tench_abi::fault::{Class, Registers};
use tench_abi::layout::slot;
use tench_abi::memory::{MapFlags, PAGE_BITS, PAGE_SIZE, TABLE_ENTRIES};
use tench_abi::object::{NODE_BITS, NODE_SLOTS, ROOT_MAX_BITS};
use tench_abi::{CapAddress, Error, Kind, Rights};
use tench_sys::thread::Binding;
use tench_sys::{
    Bindings, Cap, CapNode, Endpoint, Frame, Mapping, OWN_CSPACE, PageTable, Reply, SchedulingContext, Thread,
};

use crate::information::Description;
use crate::program::Program;
use crate::space::{self, Builder, LoadError, Origin, Space};

/// Log2 of the number of second-level nodes that a process's CSpace can have, if its maker wants no more.
pub const ROOT_BITS: u32 = 6;

/// Returns log2 of the number of second-level nodes for this many slots, at least [`ROOT_BITS`]; `None` if no CSpace
/// has as many.
pub fn root_bits(slots: u64) -> Option<u32> {
    let bits = slots.div_ceil(NODE_SLOTS as u64).checked_next_power_of_two()?.ilog2();
    (bits <= ROOT_MAX_BITS).then_some(bits.max(ROOT_BITS))
}

/// Source of slots and memory for the loader.
pub trait Resources {
    /// Takes an empty slot of the own CSpace, which stays the new process's until that ends.
    fn slot(&mut self) -> Result<CapAddress, LoadError>;

    /// Takes an empty slot of the own CSpace for a capability that the loader uses again when the process runs.
    fn lasting_slot(&mut self) -> Result<CapAddress, LoadError> {
        self.slot()
    }

    /// Makes an object of zeroed memory in an empty slot of the own CSpace.
    fn make(&mut self, kind: Kind, size: u64, slot: CapAddress) -> Result<(), LoadError>;
}

/// A part of the loader's address space through which it fills frames.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    start: u64,
    table: Cap<PageTable>,
    slot: CapAddress,
}

impl Window {
    /// Makes the tables for the window, once for each loader. It takes the 2 MiB at `start`, a multiple of that, which
    /// must be unused ([`addresses::window`](crate::addresses::window) chooses such an address).
    pub fn new(resources: &mut impl Resources, start: u64) -> Result<Window, LoadError> {
        let mut builder = Machine::without_window(resources);
        let table = Space::over(slot::VSPACE).table(&mut builder, start, 3)?;
        Ok(Window { start, table: Cap::new(table), slot: resources.slot()? })
    }

    /// Copies bytes into a frame of 2^`size_bits` bytes, from an offset on. Fails with `InvalidArgument` if they do not
    /// fit.
    pub fn fill(&self, frame: Cap<Frame>, size_bits: u32, offset: u64, bytes: &[u8]) -> Result<(), LoadError> {
        if (1u64 << size_bits).checked_sub(offset).is_none_or(|room| room < bytes.len() as u64) {
            return Err(LoadError::Kernel(Error::InvalidArgument));
        }
        let mut at = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let page = at & !(PAGE_SIZE as u64 - 1);
            let lead = (at - page) as usize;
            let pages = (lead + rest.len()).div_ceil(PAGE_SIZE).min(TABLE_ENTRIES);
            let (part, after) = rest.split_at(rest.len().min((pages << PAGE_BITS) - lead));
            let flags = MapFlags::READ | MapFlags::WRITE;
            let mapping: Cap<Mapping> = frame.map(self.table, 0, pages as u64, page, flags, self.slot)?;
            let target = core::ptr::with_exposed_provenance_mut::<u8>(self.start as usize + lead);
            // SAFETY: `lead + part.len()` bytes from the window's start are mapped writable just above, nothing else in
            // this program uses the window, and `part` lies elsewhere.
            unsafe { core::ptr::copy_nonoverlapping(part.as_ptr(), target, part.len()) };
            mapping.delete()?;
            at += part.len() as u64;
            rest = after;
        }
        Ok(())
    }
}

/// Maximum number of frames of a [`Shown`].
const MAX_FRAMES: usize = 32;

/// Memory that is contiguous in the loader's address space, never changes, and may be mapped into every process: the
/// boot archive. Parts of a program's file that are only read and executed, and fill whole pages, are mapped into
/// processes from there instead of being copied.
#[derive(Clone, Debug)]
pub struct Shown {
    start: u64,
    end: u64,
    /// Frames with their first addresses.
    frames: ArrayVec<(Cap<Frame>, u64), MAX_FRAMES>,
}

impl Shown {
    /// Returns an empty range; the first frame will be mapped at `start`.
    pub const fn new(start: u64) -> Shown {
        Shown { start, end: start, frames: ArrayVec::new_const() }
    }

    /// Returns the first address.
    pub const fn start(&self) -> u64 {
        self.start
    }

    /// Returns one past the last address.
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Returns the size in bytes.
    pub const fn size(&self) -> u64 {
        self.end - self.start
    }

    /// Returns the frames, by increasing address.
    pub fn frames(&self) -> impl Iterator<Item = Cap<Frame>> {
        self.frames.iter().map(|(frame, _)| *frame)
    }

    /// Adds a frame of 2^`size_bits` bytes, mapped at the end.
    pub fn add(&mut self, frame: Cap<Frame>, size_bits: u32) -> Result<(), LoadError> {
        self.frames.try_push((frame, self.end)).map_err(|_| LoadError::OutOfMemory)?;
        self.end += 1 << size_bits;
        Ok(())
    }

    /// Returns the origin of the pages that begin at `address`, of at most `bytes` bytes.
    fn origin(&self, address: u64, bytes: u64) -> Option<Origin> {
        let index = self.frames.partition_point(|(_, first)| *first <= address).checked_sub(1)?;
        let (frame, first) = *self.frames.get(index)?;
        let end = self.frames.get(index + 1).map_or(self.end, |(_, next)| *next);
        let bytes = bytes.min(end.checked_sub(address)?) & !(PAGE_SIZE as u64 - 1);
        let is_page = address.is_multiple_of(PAGE_SIZE as u64);
        (is_page && bytes > 0).then_some(Origin { frame: frame.address(), offset: address - first, bytes })
    }
}

/// A [`Builder`] that makes system calls.
pub struct Machine<'a, R> {
    resources: &'a mut R,
    window: Option<Window>,
    shown: Option<&'a Shown>,
}

impl<'a, R> Machine<'a, R> {
    /// Returns a builder with these resources that maps contents from `shown` where it need not copy them.
    pub const fn new(resources: &'a mut R, window: Window, shown: &'a Shown) -> Machine<'a, R> {
        Machine { resources, window: Some(window), shown: Some(shown) }
    }

    /// Returns a builder with these resources that cannot fill frames.
    pub const fn without_window(resources: &'a mut R) -> Machine<'a, R> {
        Machine { resources, window: None, shown: None }
    }
}

impl<R: Resources> Machine<'_, R> {
    /// Makes an object that the loader uses again when the process runs.
    fn make_lasting(&mut self, kind: Kind, size: u64) -> Result<CapAddress, LoadError> {
        let slot = self.resources.lasting_slot()?;
        self.resources.make(kind, size, slot)?;
        Ok(slot)
    }
}

impl<R: Resources> Builder for Machine<'_, R> {
    fn origin(&self, contents: &[u8]) -> Option<Origin> {
        self.shown?.origin(contents.as_ptr().addr() as u64, contents.len() as u64)
    }

    fn make(&mut self, kind: Kind, size: u64) -> Result<CapAddress, LoadError> {
        let slot = self.resources.slot()?;
        self.resources.make(kind, size, slot)?;
        Ok(slot)
    }

    fn fill(&mut self, frame: CapAddress, size_bits: u32, offset: u64, bytes: &[u8]) -> Result<(), LoadError> {
        let window = self.window.ok_or(LoadError::Kernel(Error::NotMapped))?;
        window.fill(Cap::new(frame), size_bits, offset, bytes)
    }

    fn install(&mut self, table: CapAddress, parent: CapAddress, entry: u64) -> Result<(), LoadError> {
        Ok(Cap::<PageTable>::new(table).install(Cap::new(parent), entry)?)
    }

    fn map(
        &mut self,
        frame: CapAddress,
        table: CapAddress,
        first: u64,
        count: u64,
        offset: u64,
        flags: MapFlags,
    ) -> Result<(), LoadError> {
        let slot = self.resources.slot()?;
        Cap::<Frame>::new(frame).map(Cap::new(table), first, count, offset, flags, slot)?;
        Ok(())
    }
}

/// A process's kernel objects; the capabilities are in the loader's CSpace.
pub struct Process {
    /// Root of its CSpace.
    pub root: Cap<CapNode>,
    /// Main thread of the process.
    pub thread: Cap<Thread>,
    space: Cap<PageTable>,
    /// The main thread's scheduling context, needed, like the fields below, until the process is
    /// [ready](Self::make_ready).
    scheduling: Cap<SchedulingContext>,
    reply: Cap<Reply>,
    message: Cap<Frame>,
    entry: u64,
    stack_top: u64,
    information: u64,
}

/// Scheduling parameters of a process.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Priority of its main thread.
    pub priority: u8,
    /// Highest priority that it may assign.
    pub ceiling: u8,
    /// Time slice in ticks.
    pub slice: u64,
}

impl Process {
    /// Makes everything that a process needs, and puts its own capabilities into the well-known slots. Its CSpace can
    /// have 2^`root_bits` second-level nodes.
    pub fn new<R: Resources>(
        machine: &mut Machine<'_, R>,
        program: &Program,
        description: &Description,
        root_bits: u32,
    ) -> Result<Process, LoadError> {
        let image = space::image(machine, program, description)?;
        let root: Cap<CapNode> = Cap::new(machine.make_lasting(Kind::CapNode, u64::from(root_bits))?);
        let node: Cap<CapNode> = Cap::new(machine.make(Kind::CapNode, u64::from(NODE_BITS))?);
        // The root takes this copy; the loader's own capability is the source of the process's copy.
        let installed = node.copy_to(machine.resources.slot()?)?;
        root.install_node(0, installed)?;

        let process = Process {
            root,
            thread: Cap::new(machine.make_lasting(Kind::Thread, 0)?),
            scheduling: Cap::new(machine.make(Kind::SchedulingContext, 0)?),
            reply: Cap::new(machine.make(Kind::Reply, 0)?),
            message: Cap::new(image.message),
            space: Cap::<PageTable>::new(image.space.root()).copy_to(machine.resources.lasting_slot()?)?,
            entry: program.entry,
            stack_top: description.addresses.stack.top,
            information: description.addresses.information,
        };
        for (to, from) in [
            (slot::CSPACE, root.address()),
            (slot::NODE0, node.address()),
            (slot::THREAD, process.thread.address()),
            (slot::SCHEDULING, process.scheduling.address()),
            (slot::REPLY, process.reply.address()),
            (slot::IPC_BUFFER, image.message),
        ] {
            root.copy_from(to, OWN_CSPACE, from)?;
        }
        // Without `GRANT`: a process cannot decide which threads belong to its account, or suspend it.
        let rights = Rights::READ | Rights::WRITE;
        root.mint_from(slot::VSPACE, OWN_CSPACE, process.space.address(), rights, 0)?;
        root.mint_from(slot::PROCESS_INFO, OWN_CSPACE, image.information, Rights::READ, 0)?;
        Ok(process)
    }

    /// Puts a copy of a capability into one of the process's slots.
    pub fn give(&self, to: CapAddress, cap: impl Into<CapAddress>) -> Result<(), Error> {
        self.root.copy_from(to, OWN_CSPACE, cap.into())
    }

    /// Puts a capability to a server into one of the process's slots, with the rights to send, call and transfer
    /// capabilities, and with `badge`.
    pub fn give_client(&self, to: CapAddress, server: Cap<Endpoint>, badge: u64) -> Result<(), Error> {
        let rights = Rights::WRITE | Rights::CALL | Rights::GRANT;
        self.root.mint_from(to, OWN_CSPACE, server.address(), rights, badge)
    }

    /// Returns the root of its address space, to which its account belongs.
    pub const fn address_space(&self) -> Cap<PageTable> {
        self.space
    }

    /// Makes the process ready to run. Its faults go to `faults`, whose badge identifies the process. An account must
    /// be opened before.
    pub fn make_ready(&self, schedule: Schedule, faults: Cap<Endpoint>) -> Result<(), Error> {
        let Schedule { priority, ceiling, slice } = schedule;
        self.scheduling.configure(u64::from(priority), u64::from(ceiling), slice, None)?;
        self.thread.configure(self.root, self.space, Some((self.message, 0)))?;
        self.thread.bind(Bindings {
            scheduling: Binding::To(self.scheduling),
            reply: Binding::To(self.reply),
            notification: Binding::Keep,
        })?;
        for class in Class::STOPPING {
            self.thread.faults_to(class, Some(faults))?;
        }
        Ok(())
    }

    /// Starts the process, which must be [ready](Self::make_ready).
    pub fn start(&self) -> Result<(), Error> {
        let mut registers = Registers { sp: self.stack_top, pc: self.entry, ..Registers::ZERO };
        registers.x[0] = self.information;
        // SAFETY: the thread lives in an address space of its own.
        unsafe { self.thread.write_registers(&registers, true) }
    }
}
