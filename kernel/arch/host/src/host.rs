//! The host as a machine: [`Arch`] over a buffer, a counter and two sets of interrupt numbers.

use std::any::Any;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::resume_unwind;

use tench_abi::Error;
use tench_abi::memory::MapFlags;
use tench_abi::object::{CorePower, DOORBELLS};
use tench_kernel::object::Ref;
use tench_kernel::thread::{FloatState, OBJECT_SIZE, Thread};
use tench_kernel::{Arch, Kernel, entry};

use crate::memory::{Memory, RAM_START};
use crate::{stack, translation};

/// End of the range of interrupt lines that user programs may own; the range begins at 32.
pub const INTERRUPT_LINES: u32 = 64;
/// The first line beyond that range; it belongs to another core.
pub const LINE_ELSEWHERE: u32 = INTERRUPT_LINES;
/// A line in that range that a level triggers; its trigger cannot be changed.
pub const LEVEL_LINE: u32 = 63;
/// Interrupt number of the kernel's timer.
pub const TIMER_INTERRUPT: u32 = 27;
/// Number of cores of the machine; this kernel runs on the first.
pub const CORES: u64 = 4;

/// A function that runs at a preemption point.
pub type PreemptionHook = Box<dyn FnMut(&mut Kernel<Host>)>;

/// The payload with which `power_off` unwinds: the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerOff(pub u8);

impl PowerOff {
    /// Returns the `PowerOff` that a panic carries, if it carries one.
    pub fn find(payload: &(dyn Any + Send)) -> Option<PowerOff> {
        payload.downcast_ref().copied()
    }
}

/// The host's machine state below the kernel.
pub struct Host {
    /// Physical memory.
    pub memory: Memory,
    /// The translation cache.
    pub cache: translation::Cache,
    /// The counter, in ticks. Only the test advances it, unless [`look`](Self::look) is set.
    pub time: u64,
    /// Ticks that each reading of the clock takes.
    pub look: u64,
    /// Ticks that readings of the clock have taken so far.
    looked: Cell<u64>,
    /// Time at which the timer fires.
    pub timer: Option<u64>,
    /// Lines that have fired and are not acknowledged.
    pub pending: BTreeSet<u32>,
    /// Lines that are unmasked.
    pub enabled: BTreeSet<u32>,
    /// Lines that are acknowledged and whose handling has not ended.
    pub active: Vec<u32>,
    /// The translation register.
    pub space: u64,
    /// Permission of programs to read the event counters.
    pub may_count: bool,
    /// All bytes printed so far.
    pub output: Vec<u8>,
    /// Cores that were started, each with the addresses of its image and its boot page.
    pub started: BTreeMap<u64, (u64, u64)>,
    /// Cores that have stopped.
    pub stopped: BTreeSet<u64>,
    /// Doorbells of other cores that were notified, in order: core and line.
    pub notified: Vec<(u64, u32)>,
    /// Bytes for which caches were maintained.
    pub maintained: usize,
    /// Hook that runs at each preemption point of an operation, after pending interrupts.
    pub hook: Option<PreemptionHook>,
    /// Hook that runs at each preemption point of an interrupt handler, before pending interrupts. No other thread can
    /// run there.
    pub nested_hook: Option<PreemptionHook>,
    /// Steps are on: the thread that runs raises an exception after its next instruction, or before it.
    pub steps: bool,
    thread_pointer: u64,
    float: FloatState,
    float_enabled: bool,
}

impl Host {
    /// Returns a machine with `memory` bytes of RAM.
    pub fn new(memory: usize) -> Host {
        Host {
            memory: Memory::new(memory),
            cache: translation::Cache::default(),
            time: 1,
            look: 0,
            looked: Cell::new(0),
            timer: None,
            pending: BTreeSet::new(),
            enabled: BTreeSet::from([TIMER_INTERRUPT]),
            active: Vec::new(),
            space: 0,
            may_count: false,
            output: Vec::new(),
            started: BTreeMap::new(),
            stopped: BTreeSet::new(),
            notified: Vec::new(),
            maintained: 0,
            hook: None,
            nested_hook: None,
            thread_pointer: 0,
            float: FloatState { registers: [[0; 2]; 32], status: 0, control: 0 },
            float_enabled: false,
            steps: false,
        }
    }

    /// Returns true if an interrupt would be taken now.
    pub fn interrupted(&self) -> bool {
        self.active.is_empty() && (self.timer_is_due() || self.next_line().is_some())
    }

    /// Returns true if the timer's line is high and unmasked.
    fn timer_is_due(&self) -> bool {
        self.enabled.contains(&TIMER_INTERRUPT)
            && self.timer.is_some_and(|deadline| deadline <= self.time + self.looked.get())
    }

    /// Returns the line that would be acknowledged next.
    fn next_line(&self) -> Option<u32> {
        self.pending.intersection(&self.enabled).next().copied()
    }

    /// Translates an address of the current address space as the hardware would, through the cache.
    pub fn access(&mut self, address: u64) -> Option<translation::Page> {
        self.cache.access(&self.memory, self.space, address)
    }

    /// Returns the floating-point unit's registers if the unit is enabled, for tests that pretend to compute.
    pub fn float(&mut self) -> Option<&mut FloatState> {
        self.float_enabled.then_some(&mut self.float)
    }
}

/// Registers, status and control of the floating-point unit.
type FloatWords = ([[u64; 2]; 32], u64, u64);

/// The part of the machine's own state that an [`Image`](crate::image::Image) contains.
#[derive(Clone, Default, PartialEq)]
pub struct Registers {
    time: u64,
    looked: u64,
    timer: Option<u64>,
    pending: BTreeSet<u32>,
    enabled: BTreeSet<u32>,
    started: BTreeMap<u64, (u64, u64)>,
    stopped: BTreeSet<u64>,
    may_count: bool,
    space: u64,
    thread_pointer: u64,
    float: FloatWords,
    float_enabled: bool,
    steps: bool,
}

impl Host {
    /// Returns the registers, for an image. An image contains no translations, so none may be cached.
    pub(crate) fn registers(&self) -> Registers {
        assert!(self.cache.is_empty() && self.active.is_empty(), "translations are cached, or an interrupt is active");
        Registers {
            time: self.time,
            looked: self.looked.get(),
            timer: self.timer,
            pending: self.pending.clone(),
            enabled: self.enabled.clone(),
            started: self.started.clone(),
            stopped: self.stopped.clone(),
            may_count: self.may_count,
            space: self.space,
            thread_pointer: self.thread_pointer,
            float: self.float_words(),
            float_enabled: self.float_enabled,
            steps: self.steps,
        }
    }

    /// Returns the floating-point registers in a form that can be compared.
    fn float_words(&self) -> FloatWords {
        (self.float.registers, self.float.status, self.float.control)
    }

    /// Returns true if the registers differ from those of an image.
    pub(crate) fn registers_differ(&self, registers: &Registers) -> bool {
        !self.cache.is_empty() || !self.active.is_empty() || self.registers() != *registers
    }

    /// Sets the registers, and clears the output and the list of notified doorbells.
    pub(crate) fn set_registers(&mut self, registers: &Registers) {
        self.cache = translation::Cache::default();
        self.active.clear();
        self.output.clear();
        self.notified.clear();
        self.time = registers.time;
        self.looked.set(registers.looked);
        self.timer = registers.timer;
        self.pending.clone_from(&registers.pending);
        self.enabled.clone_from(&registers.enabled);
        self.started.clone_from(&registers.started);
        self.stopped.clone_from(&registers.stopped);
        self.may_count = registers.may_count;
        self.space = registers.space;
        self.thread_pointer = registers.thread_pointer;
        let (words, status, control) = registers.float;
        self.float = FloatState { registers: words, status, control };
        self.float_enabled = registers.float_enabled;
        self.steps = registers.steps;
    }
}

/// Tells the operation at whose preemption point a hook runs that another thread has run there: the hook has done what
/// one could do.
pub fn disturb(k: &mut Kernel<Host>) {
    k.state().statistics.preemptions += 1;
}

/// Runs a hook, which may install another one in its place.
fn run_hook(k: &mut Kernel<Host>, hook_of: fn(&mut Host) -> &mut Option<PreemptionHook>) {
    if let Some(mut hook) = hook_of(k.arch()).take() {
        hook(k);
        hook_of(k.arch()).get_or_insert(hook);
    }
}

// SAFETY: `base() + p` lies in the buffer for all of RAM, device memory is never touched, and `switch` suspends a
// coroutine, which keeps its whole stack.
unsafe impl Arch for Host {
    const ASIDS: usize = 8;
    const CALL_BYTES: u64 = 4;

    fn base(&self) -> usize {
        self.memory.base()
    }

    fn now(&self) -> u64 {
        self.looked.set(self.looked.get() + self.look);
        self.time + self.looked.get()
    }

    fn set_timer(&mut self, deadline: Option<u64>) {
        self.timer = deadline;
    }

    unsafe fn zero(&mut self, address: usize, length: usize) {
        assert!(address.is_multiple_of(16) && length.is_multiple_of(16), "zero({address:#x}, {length:#x})");
        self.memory.zero(address, length);
    }

    unsafe fn copy(&mut self, from: usize, to: usize, words: usize) {
        let from = std::ptr::with_exposed_provenance::<u64>(from);
        // SAFETY: the caller keeps the contract of this function.
        unsafe { std::ptr::with_exposed_provenance_mut::<u64>(to).copy_from(from, words) };
    }

    fn interrupt_acknowledge(&mut self) -> Option<u32> {
        let number = if self.timer_is_due() {
            TIMER_INTERRUPT
        } else {
            let number = self.next_line()?;
            self.pending.remove(&number);
            number
        };
        self.active.push(number);
        Some(number)
    }

    fn interrupt_end(&mut self, number: u32) {
        assert_eq!(self.active.pop(), Some(number), "ended an interrupt that was not the last acknowledged");
    }

    fn interrupt_enable(&mut self, number: u32) {
        self.enabled.insert(number);
    }

    fn interrupt_disable(&mut self, number: u32) {
        self.enabled.remove(&number);
    }

    fn interrupt_allows(&self, number: u32, edge: bool) -> bool {
        !(edge && number == LEVEL_LINE)
    }

    fn interrupt_claim(&mut self, number: u32, edge: bool) {
        assert!(self.interrupt_exists(number) && self.interrupt_allows(number, edge), "line {number} is claimed");
    }

    fn interrupt_exists(&self, number: u32) -> bool {
        number == TIMER_INTERRUPT || u64::from(number) < DOORBELLS || (32..INTERRUPT_LINES).contains(&number)
    }

    fn cores(&self) -> u64 {
        CORES
    }

    fn core(&self) -> u64 {
        0
    }

    fn start_core(&mut self, core: u64, image: u64, boot: u64) -> Result<(), Error> {
        if core == 0 || self.started.contains_key(&core) {
            return Err(Error::CoreRunning);
        }
        self.started.insert(core, (image, boot));
        Ok(())
    }

    fn core_power(&self, core: u64) -> Result<CorePower, Error> {
        let is_on = (core == 0 || self.started.contains_key(&core)) && !self.stopped.contains(&core);
        Ok(if is_on { CorePower::On } else { CorePower::Off })
    }

    fn notify(&mut self, core: u64, line: u32) {
        if core == 0 {
            self.pending.insert(line);
        } else {
            self.notified.push((core, line));
        }
    }

    fn check_import(&self, physical: u64, size: u64) -> Result<(), Error> {
        if !self.memory.contains(self.memory.base().wrapping_add(physical as usize), size as usize) {
            return Err(Error::InvalidArgument);
        }
        // The test owns whatever else lies in RAM and in no boot untyped.
        if physical < RAM_START + OBJECT_SIZE as u64 { Err(Error::Overlap) } else { Ok(()) }
    }

    fn timer_interrupt(&self) -> u32 {
        TIMER_INTERRUPT
    }

    fn take_pending_interrupts(k: &mut Kernel<Self>) {
        let nested = k.state().nesting > 0;
        if nested {
            run_hook(k, |host| &mut host.nested_hook);
        }
        while k.arch().interrupted() {
            entry::kernel_interrupt(k);
        }
        if !nested {
            run_hook(k, |host| &mut host.hook);
        }
    }

    fn prepare_return(&mut self, _: u64, _: u64) {}

    fn interrupt_is_pending(k: &mut Kernel<Self>) -> bool {
        k.arch().hook.is_some() || k.arch().interrupted()
    }

    fn page_entry(&self, physical: u64, level: u32, flags: MapFlags) -> u64 {
        assert!((1..4).contains(&level), "pages of level {level}");
        translation::page_entry(physical, flags)
    }

    fn table_entry(&self, physical: u64) -> u64 {
        translation::table_entry(physical)
    }

    unsafe fn write_entry(&mut self, table: usize, index: usize, entry: u64) {
        assert!(index < 512, "entry {index}");
        let physical = (table - self.memory.base()) as u64;
        self.memory.write(physical + index as u64 * 8, entry);
    }

    unsafe fn read_entry(&self, table: usize, index: usize) -> u64 {
        assert!(index < 512, "entry {index}");
        self.memory.read((table - self.memory.base() + index * 8) as u64)
    }

    fn restrict_entry(&self, entry: u64, mask: MapFlags) -> u64 {
        translation::restrict(entry, mask)
    }

    fn publish_entries(&mut self) {}

    fn invalidate(&mut self, asid: u16, address: u64, level: u32, count: usize) {
        self.cache.invalidate(asid, address, level, count);
    }

    fn invalidate_space(&mut self, asid: u16) {
        self.cache.invalidate_space(asid);
    }

    fn synchronise_instructions(&mut self, address: usize, length: usize) {
        self.maintained += length;
        assert!(self.memory.contains(address, length), "caches hold RAM only: {address:#x} + {length:#x}");
    }

    fn clean_memory(&mut self, address: usize, length: usize) {
        self.maintained += length;
        assert!(self.memory.contains(address, length), "caches hold RAM only: {address:#x} + {length:#x}");
    }

    fn space_register(&self, physical: u64, asid: u16) -> u64 {
        translation::space_register(physical, asid)
    }

    fn empty_space_register(&self) -> u64 {
        0
    }

    fn space(&self) -> u64 {
        self.space
    }

    fn load_space(&mut self, register: u64) {
        self.space = register;
    }

    fn thread_pointer(&self) -> u64 {
        self.thread_pointer
    }

    fn set_thread_pointer(&mut self, value: u64) {
        self.thread_pointer = value;
    }

    fn float_enable(&mut self, enable: bool) {
        self.float_enabled = enable;
    }

    const STEP_FLAG: u64 = 1 << 21;
    fn step_enable(&mut self, enable: bool) {
        self.steps = enable;
    }

    fn float_save(&mut self, state: &mut FloatState) {
        *state = self.float;
    }

    fn float_restore(&mut self, state: &FloatState) {
        self.float = *state;
    }

    fn float_exchange(&mut self, from: &mut FloatState, to: &FloatState) {
        assert!(self.float_enabled, "the floating-point unit is off");
        self.float_save(from);
        self.float_restore(to);
    }

    unsafe fn switch(from: Ref<Thread>, to: Ref<Thread>) {
        stack::switch(from, to);
    }

    fn print(&mut self, byte: u8) {
        self.output.push(byte);
    }

    fn power_off(&mut self, status: u8) -> ! {
        resume_unwind(Box::new(PowerOff(status)))
    }

    fn instructions(&self) -> u64 {
        self.time
    }

    fn let_count(&mut self, readable: bool) {
        self.may_count = readable;
    }
}
