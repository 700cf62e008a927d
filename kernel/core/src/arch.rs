//! The interface between the kernel and a machine.
//!
//! Each architecture is one crate with the same file names; the host is one of them. Everything here is a short
//! mechanism: no decision is made below this trait.

use crate::Kernel;
use crate::object::Ref;
use crate::thread::Thread;
use tench_abi::Error;
use tench_abi::fault::Registers;
use tench_abi::memory::MapFlags;
use tench_abi::object::CorePower;

/// A machine.
///
/// # Safety
/// For all memory that is made into untyped capabilities, the kernel must be able to read and write physical address
/// `p` at `base() + p`. `switch` must preserve the caller's context until it is resumed.
pub unsafe trait Arch: Sized {
    /// Number of address-space identifiers of the machine's TLB, 0 among them: 3 to [`ASIDS`](crate::kernel::ASIDS).
    const ASIDS: usize;
    /// Bytes of the instruction that makes a system call.
    const CALL_BYTES: u64;

    /// Returns the kernel virtual address of physical address 0.
    fn base(&self) -> usize;

    /// Returns the kernel virtual address that has a [number](Self::number) in units of `1 << shift` bytes.
    #[inline(always)]
    fn locate(&self, number: u32, shift: u32) -> usize {
        self.base() + ((number as usize) << shift)
    }
    /// Returns the number of a kernel virtual address that is a multiple of `1 << shift`: 31 bits, of which a machine
    /// may repeat the highest in the 32nd. The number of an address at which an object can lie is not 0.
    #[inline(always)]
    fn number(&self, address: usize, shift: u32) -> u32 {
        ((address - self.base()) >> shift) as u32
    }

    /// Returns the system counter, in ticks.
    fn now(&self) -> u64;
    /// Sets or clears the deadline of the timer interrupt, in ticks.
    fn set_timer(&mut self, deadline: Option<u64>);

    /// Fills memory with zeros. `address` and `length` are multiples of 16.
    ///
    /// # Safety
    /// The range is kernel-addressable memory that holds no live object.
    unsafe fn zero(&mut self, address: usize, length: usize);
    /// Copies words between two ranges that are identical or disjoint.
    ///
    /// # Safety
    /// Both are kernel-addressable memory, aligned to 8, to which no reference exists.
    unsafe fn copy(&mut self, from: usize, to: usize, words: usize);
    /// Copies a thread's [`Registers`] as [`copy`](Self::copy) would.
    ///
    /// # Safety
    /// As for [`copy`](Self::copy).
    unsafe fn copy_registers(&mut self, from: usize, to: usize) {
        // SAFETY: the caller's contract.
        unsafe { self.copy(from, to, size_of::<Registers>() / size_of::<u64>()) };
    }

    /// Acknowledges and returns the pending interrupt, or returns `None`.
    fn interrupt_acknowledge(&mut self) -> Option<u32>;
    /// Drops the running priority after [`interrupt_acknowledge`](Self::interrupt_acknowledge).
    fn interrupt_end(&mut self, number: u32);
    /// Unmasks a line.
    fn interrupt_enable(&mut self, number: u32);
    /// Masks a line.
    fn interrupt_disable(&mut self, number: u32);
    /// Returns whether this kernel can give a line of its own this trigger: an edge if `edge` is true, otherwise a
    /// level.
    fn interrupt_allows(&self, number: u32, edge: bool) -> bool;
    /// Routes a line to this core, and sets its trigger, which must be [allowed](Self::interrupt_allows).
    fn interrupt_claim(&mut self, number: u32, edge: bool);
    /// Returns whether user programs of this core may own this line. If they may, no other core's programs may.
    fn interrupt_exists(&self, number: u32) -> bool;
    /// Returns the number of cores.
    fn cores(&self) -> u64;
    /// Returns this core's number.
    fn core(&self) -> u64;
    /// Starts a core with the kernel whose image lies at physical address `image`, and with `boot` in its first
    /// register.
    ///
    /// # Errors
    /// `CoreRunning`, `CoreRefused`.
    fn start_core(&mut self, core: u64, image: u64, boot: u64) -> Result<(), Error>;
    /// Returns the power state of a core, as reported by the firmware.
    ///
    /// # Errors
    /// `CoreRefused` if the firmware does not report it.
    fn core_power(&self, core: u64) -> Result<CorePower, Error>;
    /// Notifies a core by an interrupt on one of its doorbell lines. The interrupted core sees what this core has
    /// written before.
    fn notify(&mut self, core: u64, line: u32);
    /// Checks that memory can be imported from another core: RAM that this kernel can address and in which it does not
    /// lie. (The kernel itself knows which memory it has as untypeds.)
    ///
    /// # Errors
    /// `InvalidArgument` if not all of it is such RAM, `Overlap` if the kernel lies in it.
    fn check_import(&self, physical: u64, size: u64) -> Result<(), Error>;
    /// Returns the line of the kernel's timer.
    fn timer_interrupt(&self) -> u32;
    /// Lets pending interrupts in for a moment: unmasks, and masks again. The handler enters through
    /// [`entry::kernel_interrupt`](crate::entry) with a token of its own, so this function takes the token and holds
    /// nothing.
    fn take_pending_interrupts(k: &mut Kernel<Self>);

    /// Prepares the way back to user mode for the running thread, which interrupts and other threads have used since it
    /// entered the kernel. `pc` and `sp` are its program counter and stack pointer.
    fn prepare_return(&mut self, pc: u64, sp: u64);

    /// Returns whether an interrupt waits to be taken.
    fn interrupt_is_pending(k: &mut Kernel<Self>) -> bool;

    /// Returns a page-table entry that maps memory at `physical` in a table of `level` (1 to 3). The entry for the
    /// memory that follows is greater by the size.
    fn page_entry(&self, physical: u64, level: u32, flags: MapFlags) -> u64;
    /// Returns a page-table entry for the child table at `physical`.
    fn table_entry(&self, physical: u64) -> u64;
    /// Writes one entry of a hardware page table at `table` (kernel virtual) without maintenance.
    ///
    /// # Safety
    /// `table` is a live page table and `index` is below 512.
    unsafe fn write_entry(&mut self, table: usize, index: usize, entry: u64);
    /// Returns one entry of a hardware page table at `table` (kernel virtual).
    ///
    /// # Safety
    /// `table` is a live page table and `index` is below 512.
    unsafe fn read_entry(&self, table: usize, index: usize) -> u64;
    /// Returns an entry of a page without those of the rights to write and execute that are not in `mask`.
    fn restrict_entry(&self, entry: u64, mask: MapFlags) -> u64;
    /// Makes written entries visible to the page-table walk. Needed after entries have become valid.
    fn publish_entries(&mut self);
    /// Invalidates TLB entries for `count` entries of `level` from virtual address `address` on.
    fn invalidate(&mut self, asid: u16, address: u64, level: u32, count: usize);
    /// Invalidates all TLB entries of an address space.
    fn invalidate_space(&mut self, asid: u16);
    /// Makes instructions that were written through other mappings visible to instruction fetches.
    fn synchronise_instructions(&mut self, address: usize, length: usize);
    /// Cleans and invalidates the caches for a range, before it is mapped without caching: memory below the cache may
    /// still hold a former owner's contents.
    fn clean_memory(&mut self, address: usize, length: usize);
    /// Returns the value of the translation-table base register for a root table at `physical` with `asid`.
    fn space_register(&self, physical: u64, asid: u16) -> u64;
    /// Returns the value of that register for a thread without an address space: nothing is mapped.
    fn empty_space_register(&self) -> u64;
    /// Returns the current translation-table base register.
    fn space(&self) -> u64;
    /// Sets the translation-table base register (between threads, or when the current thread's address space was
    /// deleted).
    fn load_space(&mut self, register: u64);
    /// Returns the thread-pointer register of user mode.
    fn thread_pointer(&self) -> u64;
    /// Sets the thread-pointer register of user mode.
    fn set_thread_pointer(&mut self, value: u64);

    /// Returns the two words at an offset from `base`, read at once. Compiled code would read the second when it is
    /// needed, with one more instruction.
    ///
    /// # Safety
    /// The words are valid, and nothing else has a mutable reference to them.
    #[inline(always)]
    unsafe fn pair<T, const OFFSET: usize>(base: &T) -> [u64; 2] {
        // SAFETY: the caller's contract.
        let first = unsafe { core::ptr::from_ref(base).byte_add(OFFSET) };
        // SAFETY: likewise.
        unsafe { first.cast::<[u64; 2]>().read() }
    }

    /// Lets the current thread use the floating-point unit, or makes its next use trap.
    fn float_enable(&mut self, enable: bool);
    /// Saves the registers of the unit, which is on, into a thread.
    fn float_save(&mut self, state: &mut crate::thread::FloatState);
    /// Loads the registers of the unit, which is on, from a thread.
    fn float_restore(&mut self, state: &crate::thread::FloatState);
    /// Saves the registers of the unit, which is on for user mode, into one thread, and loads them from another.
    fn float_exchange(&mut self, from: &mut crate::thread::FloatState, to: &crate::thread::FloatState);

    /// Flag of [`Registers`] with which a thread returns to user mode for one instruction.
    const STEP_FLAG: u64;
    /// Lets user mode run, or raises an exception after each instruction there: at once, if the thread returns without
    /// [`STEP_FLAG`](Self::STEP_FLAG). Takes effect on entry to user mode.
    fn step_enable(&mut self, enable: bool);

    /// Saves the current kernel context (that of `from`, at a preemption point), and continues with `to`: in the kernel
    /// if [`Thread::kernel_stack_pointer`] is not zero, else in user mode. Returns when another thread switches back to
    /// `from`.
    ///
    /// # Safety
    /// `from` is the thread whose kernel stack is in use; `to` is alive. No reference into kernel state is held.
    unsafe fn switch(from: Ref<Thread>, to: Ref<Thread>);

    /// Returns whether the early output accepts a byte without waiting.
    fn can_print(&self) -> bool {
        true
    }
    /// Writes one byte to the early output.
    fn print(&mut self, byte: u8);
    /// Ends the machine with an exit status; on a core that another has started, powers off this core only.
    fn power_off(&mut self, status: u8) -> !;
    /// Returns the instructions retired since boot.
    fn instructions(&self) -> u64;
    /// Sets whether programs may read the counters of events and cycles. At first they may not.
    fn let_count(&mut self, readable: bool);
    /// Returns the address of the call to the function into which this is inlined, for
    /// [`latency_tracer`](crate::latency_tracer); 0 if unknown. Only kernels that measure may ask: they alone keep
    /// frame records.
    #[inline(always)]
    fn call_site() -> usize {
        0
    }
    /// Emits a number that outside tools can see in the instruction stream. It costs one no-op. See docs/manual/lab.md.
    #[inline(always)]
    fn marker<const ID: u16>() {}
}
