//! What the kernel asks of a machine.
//!
//! Each architecture is one crate with the same file names; the host is one of them. Everything here is a short
//! mechanism: no decision is made below this trait.

use crate::Kernel;
use crate::object::Ref;
use crate::thread::Thread;
use tench_abi::Error;
use tench_abi::memory::MapFlags;
use tench_abi::object::CorePower;

/// A machine.
///
/// # Safety
/// `base` must be such that `base() + p` is where physical address `p` can be read and written by the kernel for all
/// memory that is made into untyped capabilities, and `switch` must preserve the caller's context until it is resumed.
pub unsafe trait Arch: Sized {
    /// Address-space identifiers that its translation caches know, 0 among them: 3 to [`ASIDS`](crate::kernel::ASIDS).
    const ASIDS: usize;

    /// Kernel virtual address of physical address 0.
    fn base(&self) -> usize;

    /// Returns the kernel virtual address that a [number](Self::number) of units of `1 << shift` bytes stands for.
    #[inline(always)]
    fn locate(&self, number: u32, shift: u32) -> usize {
        self.base() + ((number as usize) << shift)
    }
    /// Returns a number for a kernel virtual address that is a multiple of `1 << shift`: 31 bits, of which a machine
    /// may repeat the highest in the 32nd. It is not 0 for an address at which an object can lie.
    #[inline(always)]
    fn number(&self, address: usize, shift: u32) -> u32 {
        ((address - self.base()) >> shift) as u32
    }

    /// Ticks of the system counter.
    fn now(&self) -> u64;
    /// Asks for a timer interrupt at `deadline`, or none.
    fn set_timer(&mut self, deadline: Option<u64>);

    /// Fills memory with zeros. `address` and `length` are multiples of 16.
    ///
    /// # Safety
    /// The range is kernel-addressable memory that holds no live object.
    unsafe fn zero(&mut self, address: usize, length: usize);
    /// Copies words from one place to another that is the same or does not overlap it.
    ///
    /// # Safety
    /// Both are kernel-addressable memory, aligned to 8, that no reference exists to.
    unsafe fn copy(&mut self, from: usize, to: usize, words: usize);

    /// The interrupt that is pending, acknowledged, or `None`.
    fn interrupt_acknowledge(&mut self) -> Option<u32>;
    /// Drops the running priority after [`interrupt_acknowledge`](Self::interrupt_acknowledge).
    fn interrupt_end(&mut self, number: u32);
    /// Lets a line in.
    fn interrupt_enable(&mut self, number: u32);
    /// Keeps a line out.
    fn interrupt_disable(&mut self, number: u32);
    /// Sets a line to edge- or level-triggered.
    fn interrupt_set_edge(&mut self, number: u32, edge: bool);
    /// Whether user programs may own this line.
    fn interrupt_exists(&self, number: u32) -> bool;
    /// How many cores the machine has.
    fn cores(&self) -> u64;
    /// Which of them this is.
    fn core(&self) -> u64;
    /// Starts a core with the kernel whose image lies at one physical address, and the other in its first register.
    ///
    /// # Errors
    /// `CoreRunning`, `CoreRefused`.
    fn start_core(&mut self, core: u64, image: u64, boot: u64) -> Result<(), Error>;
    /// Whether a core is on, as the firmware says.
    ///
    /// # Errors
    /// `CoreRefused` if it does not say.
    fn core_power(&self, core: u64) -> Result<CorePower, Error>;
    /// Interrupts a core on one of the lines for that. What this core has written before is seen by whoever is
    /// interrupted.
    fn ring(&mut self, core: u64, line: u32);
    /// Whether memory could be another core's: RAM that this kernel reaches and does not lie in itself. (What it has in
    /// untyped memory it knows.)
    ///
    /// # Errors
    /// `InvalidArgument` if not all of it is such RAM, `Overlap` if the kernel lies in it.
    fn check_import(&self, physical: u64, size: u64) -> Result<(), Error>;
    /// Which line is the kernel's timer.
    fn timer_interrupt(&self) -> u32;
    /// Lets pending interrupts in for a moment: unmasks, and masks again. The handler enters through
    /// [`entry::kernel_interrupt`](crate::entry) with a token of its own, so this takes the token and holds nothing.
    fn open_window(k: &mut Kernel<Self>);

    /// A page-table entry that shows memory at `physical` in a table of `level` (1 to 3). The entry for the memory
    /// behind it is greater by the size.
    fn page_entry(&self, physical: u64, level: u32, flags: MapFlags) -> u64;
    /// A page-table entry that leads to the table at `physical`.
    fn table_entry(&self, physical: u64) -> u64;
    /// Writes one entry of a hardware page table at `table` (kernel virtual) without maintenance.
    ///
    /// # Safety
    /// `table` is a live page table and `index` is below 512.
    unsafe fn write_entry(&mut self, table: usize, index: usize, entry: u64);
    /// Makes written entries visible to the table walk. Needed after entries became valid.
    fn publish_entries(&mut self);
    /// Forgets cached translations of `count` entries of `level` from virtual address `address` on.
    fn invalidate(&mut self, asid: u16, address: u64, level: u32, count: usize);
    /// Forgets every cached translation of an address space.
    fn invalidate_space(&mut self, asid: u16);
    /// Makes instructions written through other mappings visible to fetches.
    fn synchronise_instructions(&mut self, address: usize, length: usize);
    /// Writes cached contents of a range back to memory and forgets them, before it is mapped without caching: what
    /// lies in memory below the cache may still be a former owner's.
    fn clean_memory(&mut self, address: usize, length: usize);
    /// The value of the translation register for a root table at `physical` and `asid`.
    fn space_register(&self, physical: u64, asid: u16) -> u64;
    /// The value for a thread without an address space: nothing is mapped.
    fn empty_space_register(&self) -> u64;
    /// The current translation register.
    fn space(&self) -> u64;
    /// Makes this the current translation register (between threads, or when the current thread's space vanished).
    fn load_space(&mut self, register: u64);
    /// The thread-pointer register of user mode.
    fn thread_pointer(&self) -> u64;
    /// Sets it.
    fn set_thread_pointer(&mut self, value: u64);

    /// Lets the current thread use the floating-point unit, or makes its next use trap.
    fn float_enable(&mut self, enable: bool);
    /// Saves the unit's registers into a thread.
    fn float_save(&mut self, state: &mut crate::thread::FloatState);
    /// Loads the unit's registers from a thread.
    fn float_restore(&mut self, state: &crate::thread::FloatState);

    /// Saves the current kernel context (that of `from`, inside a window), and continues with `to`: in the kernel if
    /// [`Thread::kernel_stack_pointer`] is not zero, else in user mode. Returns when somebody switches back.
    ///
    /// # Safety
    /// `from` is the thread whose kernel stack is in use; `to` is alive. No reference into kernel state is held.
    unsafe fn switch(from: Ref<Thread>, to: Ref<Thread>);

    /// Whether the early output takes a byte without waiting.
    fn print_has_room(&self) -> bool {
        true
    }
    /// One byte to the early output.
    fn print(&mut self, byte: u8);
    /// Ends everything with an exit status; where another core has started this one, this core alone.
    fn power_off(&mut self, status: u8) -> !;
    /// Retired instructions since boot.
    fn instructions(&self) -> u64;
    /// Says whether programs may read the counters of events and cycles. At first they may not.
    fn let_count(&mut self, readable: bool);
    /// The address of the call of the function that this is inlined into, for [`watch`](crate::watch); 0 if unknown.
    #[inline(always)]
    fn place() -> usize {
        0
    }
    /// A number that outside tools can see in the instruction stream; costs one no-op. See docs/manual/lab.md.
    #[inline(always)]
    fn marker<const ID: u16>() {}
}
