//! The implementation of the kernel's interface to the machine.

use arrayvec::ArrayVec;
use tench_abi::Error;
use tench_abi::memory::MapFlags;
use tench_abi::object::CorePower;
use tench_kernel::thread::{FloatState, Thread};
use tench_kernel::{Arch, Kernel, Ref};

use crate::cores::Cores;
use crate::interrupts::Interrupts;
use crate::layout::{MAX_BANKS, RAM_END, Region};
use crate::{BASE, early, float, layout, memory, paging, power, start, step, timer, trap};

/// One core of an AArch64 machine.
pub struct Machine {
    interrupts: Interrupts,
    empty_space: u64,
    cores: Cores,
    memory: ArrayVec<Region, MAX_BANKS>,
    reserved: ArrayVec<Region, MAX_BANKS>,
}

impl Machine {
    /// Returns the machine, with its interrupt controller set up and the timer's line unmasked. All its memory, in
    /// banks, is mapped; parts of it are reserved.
    pub fn new(
        interrupts: Interrupts,
        cores: Cores,
        memory: ArrayVec<Region, MAX_BANKS>,
        reserved: ArrayVec<Region, MAX_BANKS>,
    ) -> Machine {
        interrupts.enable(timer::LINE);
        step::init();
        Machine { interrupts, empty_space: start::empty_table(), cores, memory, reserved }
    }
}

// SAFETY: `BASE` is where start.S maps physical memory, and `tench_switch` saves what the procedure-call standard
// preserves on the stack of the thread that it switches away from.
unsafe impl Arch for Machine {
    const ASIDS: usize = tench_kernel::kernel::ASIDS;
    const CALL_BYTES: u64 = 4;

    #[inline(always)]
    fn base(&self) -> usize {
        BASE
    }

    #[inline(always)]
    fn locate(&self, number: u32, shift: u32) -> usize {
        layout::locate(number, shift)
    }

    #[inline(always)]
    fn number(&self, address: usize, shift: u32) -> u32 {
        layout::number(address, shift)
    }
    #[inline(always)]
    fn now(&self) -> u64 {
        timer::now()
    }
    #[inline(always)]
    fn set_timer(&mut self, deadline: Option<u64>) {
        timer::set(deadline);
    }
    #[inline(always)]
    unsafe fn zero(&mut self, address: usize, length: usize) {
        // SAFETY: the caller's contract is the same.
        unsafe { memory::zero(address, length) };
    }
    #[inline(always)]
    unsafe fn copy(&mut self, from: usize, to: usize, words: usize) {
        // SAFETY: the caller's contract is the same.
        unsafe { memory::copy(from, to, words) };
    }
    #[inline(always)]
    unsafe fn copy_registers(&mut self, from: usize, to: usize) {
        // SAFETY: the caller's contract is the same.
        unsafe { memory::copy_registers(from, to) };
    }
    #[inline(always)]
    fn interrupt_acknowledge(&mut self) -> Option<u32> {
        self.interrupts.acknowledge()
    }
    #[inline(always)]
    fn interrupt_end(&mut self, number: u32) {
        self.interrupts.end(number);
    }
    #[inline(always)]
    fn interrupt_enable(&mut self, number: u32) {
        self.interrupts.enable(number);
    }
    #[inline(always)]
    fn interrupt_disable(&mut self, number: u32) {
        self.interrupts.disable(number);
    }
    fn interrupt_allows(&self, number: u32, edge: bool) -> bool {
        self.interrupts.allows(number, edge)
    }
    fn interrupt_claim(&mut self, number: u32, edge: bool) {
        self.interrupts.claim(number, edge);
    }
    fn interrupt_exists(&self, number: u32) -> bool {
        self.interrupts.exists(number)
    }
    fn cores(&self) -> u64 {
        self.cores.count()
    }
    fn core(&self) -> u64 {
        self.cores.own
    }
    fn start_core(&mut self, core: u64, image: u64, boot: u64) -> Result<(), Error> {
        self.cores.start(core, image, boot)
    }
    fn core_power(&self, core: u64) -> Result<CorePower, Error> {
        self.cores.power(core)
    }
    fn notify(&mut self, core: u64, line: u32) {
        if let Some(affinity) = self.cores.affinity(core) {
            Interrupts::notify(affinity, line);
        }
    }
    fn check_import(&self, physical: u64, size: u64) -> Result<(), Error> {
        let wanted = Region::new(physical, size).ok_or(Error::InvalidArgument)?;
        let is_inside = |bank: &Region| bank.start <= wanted.start && wanted.end <= bank.end;
        let overlaps = |region: &Region| region.start < wanted.end && wanted.start < region.end;
        if wanted.end > RAM_END || !self.memory.iter().any(is_inside) || self.reserved.iter().any(overlaps) {
            return Err(Error::InvalidArgument);
        }
        if overlaps(&start::resident()) { Err(Error::Overlap) } else { Ok(()) }
    }
    #[inline(always)]
    fn timer_interrupt(&self) -> u32 {
        timer::LINE
    }
    #[inline(always)]
    fn take_pending_interrupts(_: &mut Kernel<Machine>) {
        // SAFETY: unmasks interrupts for a moment. The handler makes a token of its own while this one is borrowed by
        // a caller that holds no reference into kernel state, and returns here.
        unsafe { core::arch::asm!("msr daifclr, #2", "isb", "msr daifset, #2", options(nostack)) };
    }
    fn prepare_return(&mut self, pc: u64, sp: u64) {
        // SAFETY: writes the state with which this core leaves the kernel. A system call leaves it as the exception set
        // it. The way out of any other exception loads all of it again.
        unsafe {
            core::arch::asm!("msr elr_el1, {}", "msr sp_el0, {}", "msr spsr_el1, xzr", in(reg) pc, in(reg) sp,
                options(nomem, nostack, preserves_flags))
        };
    }
    #[inline(always)]
    fn interrupt_is_pending(_: &mut Kernel<Machine>) -> bool {
        let pending: u64;
        // SAFETY: reads a register that describes pending interrupts.
        unsafe { core::arch::asm!("mrs {}, isr_el1", out(reg) pending, options(nomem, nostack, preserves_flags)) };
        pending != 0
    }
    #[inline(always)]
    fn page_entry(&self, physical: u64, level: u32, flags: MapFlags) -> u64 {
        paging::page(physical, level, flags)
    }
    #[inline(always)]
    fn table_entry(&self, physical: u64) -> u64 {
        paging::table(physical)
    }
    #[inline(always)]
    unsafe fn write_entry(&mut self, table: usize, index: usize, entry: u64) {
        // SAFETY: entry `index` of a live table (caller). Volatile: the walker reads it.
        unsafe { (table as *mut u64).add(index).write_volatile(entry) };
    }
    #[inline(always)]
    unsafe fn read_entry(&self, table: usize, index: usize) -> u64 {
        // SAFETY: entry `index` of a live table (caller).
        unsafe { (table as *const u64).add(index).read() }
    }
    #[inline(always)]
    fn restrict_entry(&self, entry: u64, mask: MapFlags) -> u64 {
        paging::restrict(entry, mask)
    }
    #[inline(always)]
    fn publish_entries(&mut self) {
        paging::publish();
    }
    #[inline(always)]
    fn invalidate(&mut self, asid: u16, address: u64, level: u32, count: usize) {
        paging::invalidate(asid, address, level, count);
    }
    fn invalidate_space(&mut self, asid: u16) {
        paging::invalidate_space(asid);
    }
    fn synchronise_instructions(&mut self, address: usize, length: usize) {
        memory::synchronise_instructions(address, length);
    }
    fn clean_memory(&mut self, address: usize, length: usize) {
        memory::clean(address, length);
    }
    #[inline(always)]
    fn space_register(&self, physical: u64, asid: u16) -> u64 {
        paging::register(physical, asid)
    }
    #[inline(always)]
    fn empty_space_register(&self) -> u64 {
        self.empty_space
    }
    #[inline(always)]
    fn space(&self) -> u64 {
        paging::loaded()
    }
    #[inline(always)]
    fn load_space(&mut self, register: u64) {
        paging::load(register);
    }
    #[inline(always)]
    fn thread_pointer(&self) -> u64 {
        let value: u64;
        // SAFETY: reads a register that only user mode uses.
        unsafe { core::arch::asm!("mrs {}, tpidr_el0", out(reg) value, options(nomem, nostack, preserves_flags)) };
        value
    }
    #[inline(always)]
    fn set_thread_pointer(&mut self, value: u64) {
        // SAFETY: writes a register that only user mode uses.
        unsafe { core::arch::asm!("msr tpidr_el0, {}", in(reg) value, options(nomem, nostack, preserves_flags)) };
    }
    #[inline(always)]
    unsafe fn pair<T, const OFFSET: usize>(base: &T) -> [u64; 2] {
        let (first, second);
        // SAFETY: the caller's contract.
        unsafe {
            core::arch::asm!("ldp {}, {}, [{}, #{}]", out(reg) first, out(reg) second, in(reg) base, const OFFSET,
                options(pure, readonly, nostack, preserves_flags));
        }
        [first, second]
    }
    #[inline(always)]
    fn float_enable(&mut self, enable: bool) {
        float::enable(enable);
    }
    #[inline(always)]
    fn float_save(&mut self, state: &mut FloatState) {
        float::save(state);
    }
    #[inline(always)]
    fn float_restore(&mut self, state: &FloatState) {
        float::restore(state);
    }
    #[inline(always)]
    fn float_exchange(&mut self, from: &mut FloatState, to: &FloatState) {
        float::exchange(from, to);
    }
    const STEP_FLAG: u64 = step::FLAG;
    #[inline(always)]
    fn step_enable(&mut self, enable: bool) {
        step::enable(enable);
    }
    unsafe fn switch(from: Ref<Thread>, to: Ref<Thread>) {
        // SAFETY: the caller's contract is the assembly's.
        unsafe { trap::tench_switch(from.address(), to.address()) };
    }
    fn can_print(&self) -> bool {
        early::can_write()
    }
    fn print(&mut self, byte: u8) {
        early::print(byte);
    }
    fn power_off(&mut self, status: u8) -> ! {
        power::off(status)
    }
    #[inline(always)]
    fn instructions(&self) -> u64 {
        crate::counter::instructions()
    }
    fn let_count(&mut self, readable: bool) {
        crate::counter::let_count(readable);
    }
    #[inline(always)]
    fn call_site() -> usize {
        let address: usize;
        // SAFETY: reads the return address from the frame record, which every function of a kernel that measures has:
        // the address after a call.
        unsafe { core::arch::asm!("ldr {}, [x29, #8]", out(reg) address, options(nostack, preserves_flags)) };
        address - 4
    }
    #[inline(always)]
    fn marker<const ID: u16>() {
        // SAFETY: writes the zero register.
        unsafe { core::arch::asm!("movz xzr, #{}", const ID, options(nomem, nostack, preserves_flags)) };
    }
}
