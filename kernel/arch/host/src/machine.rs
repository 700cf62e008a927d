//! A booted kernel for tests, and the driver that plays user mode.
//!
//! The first thread's CSpace has the slots of [`tench_abi::layout::slot`]: CSpace, address space, thread, scheduling
//! context, reply object, IPC buffer frame, kernel, interrupt control, and untyped memory from `BOOT_UNTYPED` on, as
//! [`UNTYPED`] lists it. Addresses from [`FREE`] on are empty.
//!
//! ```
//! use tench_abi::{Kind, Operation};
//! use tench_arch_host::Machine;
//!
//! let mut machine = Machine::new();
//! let endpoint = machine.make(Kind::Endpoint, 0);
//! let copy = machine.take_free();
//! machine.call(Operation::Copy, &[0, endpoint, 0, copy]).ok();
//! assert_eq!(machine.call(Operation::Delete, &[0, copy]).ok()[1], 0, "another capability remains");
//! machine.check();
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;

use tench_abi::fault::{Class, Report, STEP_CLASS};
use tench_abi::layout::{WATERMARK, slot};
use tench_abi::message::IpcBuffer;
use tench_abi::object::{CapAddress, NODE_SLOTS, SLOT_SIZE};
use tench_abi::{Error, Kind, Operation, Tag};
use tench_kernel::fast::{self, Fast, Handoff};
use tench_kernel::kernel::{Kernel, State};
use tench_kernel::object::Ref;
use tench_kernel::thread::{THREAD_OFFSET, Thread, ThreadState, blocker};
use tench_kernel::{Arch, depletion, entry, scheduler, step};

use crate::host::{Host, PowerOff};
use crate::stack::Stacks;
use crate::{boot, check};

pub use crate::boot::{ARCHIVE, DEVICE, FREE, LARGE_DEVICE, PROGRAM, RAM, RAM_MEDIUM, RAM_SMALL, UNTYPED};

/// The registers of a thread after a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResultRegisters {
    /// Registers `x0`..`x10`.
    pub x: [u64; 11],
}

impl ResultRegisters {
    /// Returns the error if the call failed.
    pub fn error(&self) -> Option<Error> {
        if self.x[0] == 0 {
            return None;
        }
        Some(Error::from_code(self.x[0]).unwrap_or_else(|| panic!("no such error: {}", self.x[0])))
    }

    /// Returns the registers of a call that succeeded. Panics if it failed.
    #[track_caller]
    pub fn ok(self) -> [u64; 11] {
        match self.error() {
            None => self.x,
            Some(error) => panic!("refused: {error:?}: {error}"),
        }
    }

    /// Returns the error of a call that failed. Panics if it succeeded.
    #[track_caller]
    pub fn err(self) -> Error {
        self.error().unwrap_or_else(|| panic!("not refused: {:x?}", self.x))
    }
}

/// A kernel, its machine, and the threads that run on it.
pub struct Machine {
    state: NonNull<State<Host>>,
    stacks: Stacks,
    /// Take the fast path where the architecture's entry would.
    pub fast: bool,
    /// Status with which the power was switched off.
    pub powered_off: Option<u8>,
    /// The next address that [`make`](Self::make) uses.
    pub free: u64,
    /// The first thread.
    pub first: Ref<Thread>,
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}

impl Machine {
    /// Returns a booted machine. The first thread runs, at priority 255.
    pub fn new() -> Machine {
        let (state, first) = boot::boot();
        Machine { state, stacks: Stacks::default(), fast: false, powered_off: None, free: FREE, first }
    }

    /// Returns a kernel token. No other token is in use while the machine is borrowed.
    pub fn kernel(&mut self) -> &mut Kernel<Host> {
        self.token()
    }

    /// As [`kernel`](Self::kernel), for an entry that may be suspended. Then others use tokens of their own.
    fn token(&mut self) -> &'static mut Kernel<Host> {
        // SAFETY: the state lives as long as the machine, and all entries end before; suspended ones hold their tokens
        // at preemption points.
        unsafe { Kernel::from_state(self.state) }
    }

    /// Returns the machine below the kernel. The kernel token is not in use while this reference lives.
    pub fn host(&mut self) -> &mut Host {
        // SAFETY: as above; the reference borrows the machine.
        unsafe { &mut self.state.as_mut().arch }
    }

    /// Returns the running thread.
    pub fn current(&mut self) -> Ref<Thread> {
        self.kernel().current()
    }

    /// Returns true if no thread can run.
    pub fn idle(&mut self) -> bool {
        let k = self.kernel();
        k.current() == k.state().idle
    }

    /// Returns a thread's fields.
    pub fn thread(&mut self, thread: Ref<Thread>) -> &mut Thread {
        // SAFETY: the caller names a live thread, and borrows the machine meanwhile.
        unsafe { &mut *std::ptr::with_exposed_provenance_mut(thread.address()) }
    }

    /// Returns the thread object that a capability in the first thread's CSpace names.
    pub fn thread_at(&mut self, address: u64) -> Ref<Thread> {
        let object = self.cap(address).object;
        // SAFETY: a thread capability names a live thread object.
        unsafe { Ref::at(object + THREAD_OFFSET) }.expect("not null")
    }

    /// Returns the physical address of the object in a slot, or of the memory that a mapping there shows, as the kernel
    /// tells it to holders of the kernel capability.
    #[track_caller]
    pub fn physical(&mut self, address: u64) -> u64 {
        self.call(Operation::Identify, &[0, address, at(slot::KERNEL)]).ok()[5]
    }

    /// Returns the capability at an address of the first thread's CSpace.
    pub fn cap(&mut self, address: u64) -> tench_kernel::Cap {
        let first = self.first;
        let k = self.kernel();
        let slot = tench_kernel::cspace::lookup_of(k, first, address).expect("a capability lies there");
        k.slot(slot).cap
    }

    /// Enters the kernel as the running thread.
    pub(crate) fn enter(&mut self, job: impl FnOnce(&mut Kernel<Host>) -> Ref<Thread> + 'static) {
        let k = self.token();
        let thread = k.current();
        let inner = self.token();
        let continues = |next: Ref<Thread>| {
            let next: *const Thread = std::ptr::with_exposed_provenance(next.address());
            // SAFETY: the kernel has returned `next`, so it is alive; no entry runs now, so the thread is not being
            // written.
            unsafe { (*next).kernel_stack_pointer != 0 }
        };
        let stacks = &mut self.stacks;
        let result = catch_unwind(AssertUnwindSafe(|| stacks.enter(thread, move || job(inner), continues)));
        match result {
            Ok(next) => {
                assert!(k.current() == next, "the kernel returns {next:?}, but {:?} is current", k.current());
                assert_eq!(k.arch().active.len(), 0, "interrupts acknowledged and not ended");
                assert_eq!(k.state().nesting, 0, "handlers of interrupts entered and not left");
            }
            Err(payload) => match PowerOff::find(payload.as_ref()) {
                Some(PowerOff(status)) => self.powered_off = Some(status),
                None => resume_unwind(payload),
            },
        }
    }

    /// Makes system call `number` with these registers (`x0`..`x12`, without `x10`) as the running thread. Returns the
    /// thread's registers afterwards; they hold the call's results only once the thread runs again.
    pub fn system_call(&mut self, number: u64, registers: &[u64; 13]) -> ResultRegisters {
        let thread = self.current();
        assert!(!self.idle(), "nobody runs");
        let x = &mut self.thread(thread).registers.x;
        x[..13].copy_from_slice(registers);
        x[10] = number;
        let fast = self.fast;
        self.enter(move |k| match fast.then(|| fast_path_without_current(k, thread)).flatten() {
            Some(next) => next,
            None => entry::system_call(k),
        });
        self.results(thread)
    }

    /// Returns the registers of a thread.
    pub fn results(&mut self, thread: Ref<Thread>) -> ResultRegisters {
        let mut result = ResultRegisters { x: [0; 11] };
        result.x.copy_from_slice(&self.thread(thread).registers.x[..11]);
        result
    }

    /// Makes a system call as the running thread; `arguments` are `x0`, `x1` and so on.
    pub fn call(&mut self, operation: Operation, arguments: &[u64]) -> ResultRegisters {
        let mut registers = [0; 13];
        registers[..arguments.len()].copy_from_slice(arguments);
        self.system_call(operation as u64, &registers)
    }

    /// Makes a system call as `thread`, which becomes the running thread.
    pub fn call_as(&mut self, thread: Ref<Thread>, operation: Operation, arguments: &[u64]) -> ResultRegisters {
        self.run(thread);
        self.call(operation, arguments)
    }

    /// Makes a ready thread the running one, whatever its priority.
    pub fn run(&mut self, thread: Ref<Thread>) {
        let current = self.current();
        if current == thread {
            return;
        }
        let k = self.kernel();
        assert!(scheduler::runnable(k, thread), "{thread:?} is {:?}", k.get(thread).state);
        assert!(k.get(thread).kernel_stack_pointer == 0, "{thread:?} continues in the kernel");
        let is_budgeted = |k: &mut Kernel<Host>, thread: Ref<Thread>| k.get(thread).blockers & blocker::BUDGETED != 0;
        if is_budgeted(k, current) {
            depletion::pause(k, current, false);
        }
        scheduler::dequeue(k, thread);
        let space = k.get(thread).space_register;
        k.arch().load_space(space);
        k.state().current = thread;
        if current != k.state().idle && scheduler::runnable(k, current) {
            scheduler::enqueue(k, current);
        }
        if is_budgeted(k, thread) {
            scheduler::charge(k);
            depletion::start_timing(k, thread);
        }
        if k.get(thread).blockers & blocker::STEP != 0 {
            step::begin(k);
        }
    }

    /// Raises an interrupt line. An unmasked line interrupts the running thread.
    pub fn raise(&mut self, number: u32) {
        self.host().pending.insert(number);
        self.interrupts();
    }

    /// Advances the time by `ticks`, and lets the timer fire.
    pub fn pass_time(&mut self, ticks: u64) {
        self.host().time += ticks;
        self.interrupts();
    }

    /// Lets the kernel choose the thread to run, as after an interrupt without effect.
    pub fn reschedule(&mut self) {
        self.enter(scheduler::leave);
    }

    /// Lets the idle thread, which must be the running one, handle a pending interrupt, if there is one.
    pub fn idle_turn(&mut self) {
        assert!(self.idle(), "somebody runs");
        self.enter(|k| {
            entry::idle(k);
            k.current()
        });
    }

    /// Handles pending interrupts as if they arrived in user mode, or while the core is idle.
    fn interrupts(&mut self) {
        while self.host().interrupted() {
            self.interrupt_once();
        }
    }

    /// Handles one pending interrupt.
    pub fn interrupt_once(&mut self) {
        if self.idle() { self.idle_turn() } else { self.enter(entry::user_interrupt) }
    }

    /// Returns the number of threads that are suspended in the kernel, or were when they were deleted.
    pub fn suspended(&self) -> usize {
        self.stacks.suspended()
    }

    /// Forgets the suspended entries into the kernel. Their threads continue in user mode, as after their registers
    /// were written.
    pub fn forget_suspended(&mut self) {
        if self.stacks.suspended() > 0 {
            self.stacks.forget();
        }
    }

    /// Accesses an address of the running thread's address space. Returns the page that is mapped there.
    pub fn access(&mut self, address: u64) -> Option<crate::translation::Page> {
        // The thread's first instruction would not be fetched if its address space were not loaded.
        entry::space_was_missing(self.kernel());
        self.host().access(address)
    }

    /// Raises a fault of the running thread.
    pub fn fault(&mut self, report: Report) {
        let class = Class::from_code(report.class).expect("a class");
        let thread = self.current();
        let fast = self.fast;
        self.enter(move |k| match fast.then(|| fast_fault(k, thread, class, report)).flatten() {
            Some(next) => next,
            None => entry::exception(k, class, report),
        });
    }

    /// Raises the exception of a step, as the machine does after or before an instruction while
    /// [`steps`](Host::steps) are on. Returns whether the running thread was to make one.
    pub fn step(&mut self) -> bool {
        assert!(self.host().steps, "steps are off");
        let thread = self.current();
        let instruction = self.thread(thread).registers.pc;
        let syndrome = STEP_CLASS << 26;
        let report = Report { class: Class::Exception as u64, address: 0, instruction, syndrome };
        let is_meant = step::end(self.kernel());
        if is_meant {
            self.fault(report);
        }
        is_meant
    }

    /// Retypes `count` objects at the watermark of an untyped, into the slots from `destination` on.
    pub fn retype(&mut self, untyped: u64, kind: Kind, size: u64, count: u64, destination: u64) -> ResultRegisters {
        self.call(Operation::UntypedRetype, &[untyped, kind as u64, size, count, WATERMARK, 0, destination])
    }

    /// Makes an object from ordinary memory in the next free slot of the first thread's CSpace. Returns the slot's
    /// address.
    #[track_caller]
    pub fn make(&mut self, kind: Kind, size: u64) -> u64 {
        let address = self.take_free();
        self.retype(RAM, kind, size, 1, address).ok();
        address
    }

    /// Returns the next free address.
    pub fn take_free(&mut self) -> u64 {
        self.free += 1;
        self.free - 1
    }

    /// Makes a thread in the first thread's CSpace and address space, with a scheduling context and a reply object of
    /// its own, and resumes it. Returns the thread.
    #[track_caller]
    pub fn make_thread(&mut self, priority: u64) -> Ref<Thread> {
        let address = self.make(Kind::Thread, 0);
        let time = self.make(Kind::SchedulingContext, 0);
        let reply = self.make(Kind::Reply, 0);
        let frame = self.make(Kind::Frame, 12);
        self.call(Operation::SchedulingConfigure, &[time, priority, priority, 0]).ok();
        let (cspace, root) = (u64::from(slot::CSPACE.0), u64::from(slot::VSPACE.0));
        self.call(Operation::ThreadConfigure, &[address, cspace, root, frame, 0]).ok();
        self.call(Operation::ThreadBind, &[address, time, reply, 0]).ok();
        self.call(Operation::ThreadResume, &[address]).ok();
        self.thread_at(address)
    }

    /// Returns a thread's IPC buffer.
    pub fn buffer(&mut self, thread: Ref<Thread>) -> &mut IpcBuffer {
        let address = self.thread(thread).ipc_buffer;
        assert!(address != 0, "{thread:?} has no IPC buffer");
        // SAFETY: a bound IPC buffer is live, aligned RAM, and the machine is borrowed meanwhile.
        unsafe { &mut *std::ptr::with_exposed_provenance_mut(address) }
    }

    /// Panics unless the kernel's whole state is consistent.
    #[track_caller]
    pub fn check(&mut self) {
        if let Err(wrong) = check::check(self.kernel()) {
            panic!("the kernel's state is inconsistent: {wrong}");
        }
    }

    /// Returns true if a thread waits for something.
    pub fn waits(&mut self, thread: Ref<Thread>) -> bool {
        !matches!(self.thread(thread).state, ThreadState::Ready)
    }
}

/// Lets the caller go on with these values in its first registers.
fn hand_back(k: &mut Kernel<Host>, thread: Ref<Thread>, values: [u64; 4]) -> Ref<Thread> {
    let x = &mut k.get(thread).registers.x;
    x[..11].fill(0);
    x[..4].copy_from_slice(&values);
    thread
}

/// Runs the fast path while `State::current` names somebody else, as it does on the machine: a fast path goes on with
/// another thread without recording that.
fn fast_path_without_current(k: &mut Kernel<Host>, thread: Ref<Thread>) -> Option<Ref<Thread>> {
    let number = k.get(thread).registers.x[10];
    let sets_current = [Operation::ThreadReadRegisters as u64, Operation::ThreadWriteRegisters as u64];
    if !sets_current.contains(&number) {
        k.state().current = k.state().idle;
    }
    let next = fast_path(k, thread);
    k.state().current = next.unwrap_or(thread);
    next
}

/// Runs the fast path, as the architecture's entry does before the slow path. This is that assembly's logic in Rust.
fn fast_path(k: &mut Kernel<Host>, thread: Ref<Thread>) -> Option<Ref<Thread>> {
    let (address, tag, number) = {
        let x = &k.get(thread).registers.x;
        (x[0], x[1], x[10])
    };
    let found = match Operation::from_code(number)? {
        Operation::Call if fast::is_special(tag) => fast::call_specially(k, thread, address, tag),
        Operation::Call if fast::is_long(tag) => fast::call::<_, true>(k, thread, address, tag),
        Operation::Call => fast::call::<_, false>(k, thread, address, tag),
        Operation::ReplyReceive if fast::names_reply(tag) => {
            fast::named::reply_receive(k, thread, address, (tag, tag & fast::SHAPE))
        }
        Operation::ReplyReceive if fast::is_special(tag) => fast::reply_receive_specially(k, thread, address, tag),
        Operation::ReplyReceive if fast::is_long(tag) => fast::reply_receive::<_, true>(k, thread, address, tag),
        Operation::ReplyReceive => fast::reply_receive::<_, false>(k, thread, address, tag),
        Operation::Signal => fast::signals::signal(k, thread, address),
        Operation::Receive => fast::signals::receive(k, thread, address, tag),
        Operation::Yield => fast::give_way(k, thread),
        Operation::MappingSet => fast::mappings::set_entry(k, thread, address, tag),
        Operation::Copy => fast::capabilities::copy(k, thread, address, tag),
        Operation::Delete => fast::capabilities::delete(k, thread, address, tag),
        Operation::FrameMap => fast::mappings::map(k, thread, address, tag),
        Operation::ThreadReadRegisters => fast::threads::read_registers(k, thread, address, tag),
        Operation::ThreadWriteRegisters => fast::threads::write_registers(k, thread, address, tag),
        _ => return None,
    };
    let found = match (found, Operation::from_code(number)?) {
        (Fast::Float(slot), Operation::Call) => fast::float_users::call(k, thread, slot, tag),
        (Fast::Float(slot), _) => fast::float_users::reply_receive(k, thread, slot, tag),
        (found, _) => found,
    };
    let found = match (found, Operation::from_code(number)?) {
        (Fast::Other(slot), Operation::Signal) => fast::signals::notify(k, slot),
        (Fast::Other(slot), Operation::Call) => fast::special::call(k, thread, slot, tag),
        (Fast::Other(slot), Operation::ReplyReceive) => fast::special::reply_receive(k, thread, slot, tag),
        (Fast::Other(slot), _) => fast::receive_message(k, thread, slot, tag),
        (found, _) => found,
    };
    let handoff = match found {
        Fast::HandOff(handoff) => handoff,
        Fast::Return(code) => return Some(hand_back(k, thread, [code, 0, 0, 0])),
        Fast::Results([first, second, third]) => return Some(hand_back(k, thread, [0, first, second, third])),
        Fast::Resume(next) => return Some(exchange(k, thread, next)),
        Fast::Begin(next) => {
            scheduler::begin(k, next);
            return Some(exchange(k, thread, next));
        }
        Fast::Other(_) | Fast::Float(_) | Fast::Slow => return None,
    };
    let words: [u64; 8] = std::array::from_fn(|i| k.get(thread).registers.x[i + 2]);
    Some(hand_off(k, thread, handoff, words))
}

/// Takes the fast path of a fault, if its class has one.
fn fast_fault(k: &mut Kernel<Host>, thread: Ref<Thread>, class: Class, report: Report) -> Option<Ref<Thread>> {
    if !matches!(class, Class::ForeignCall) {
        return None;
    }
    let handoff = fast::faults::foreign_call(k, thread, report)?;
    let x = &k.get(thread).registers.x;
    let words = [x[8], x[0], x[1], x[2], x[3], x[4], x[5], report.instruction];
    Some(hand_off(k, thread, handoff, words))
}

/// Continues with the partner of a message with these words.
fn hand_off(k: &mut Kernel<Host>, thread: Ref<Thread>, handoff: Handoff, words: [u64; 8]) -> Ref<Thread> {
    let length = Tag(handoff.tag).length();
    let x = &mut k.get(handoff.next).registers.x;
    x[0] = 0;
    x[1] = handoff.tag;
    x[10] = handoff.badge;
    for (i, word) in words.into_iter().enumerate() {
        x[i + 2] = if i < length { word } else { 0 };
    }
    exchange(k, thread, handoff.next)
}

/// Loads the per-thread registers of the thread that runs next, and saves those of the previous thread.
fn exchange(k: &mut Kernel<Host>, thread: Ref<Thread>, next: Ref<Thread>) -> Ref<Thread> {
    let pointer = k.arch().thread_pointer();
    k.get(thread).registers.thread_pointer = pointer;
    let (space, pointer) = (k.get(next).space_register, k.get(next).registers.thread_pointer);
    k.arch().load_space(space);
    k.arch().set_thread_pointer(pointer);
    k.state().current = next;
    next
}

impl Drop for Machine {
    fn drop(&mut self) {
        // The suspended entries use the memory while they unwind.
        self.stacks = Stacks::default();
        // SAFETY: made by `boot` from a box, and no token exists any more.
        drop(unsafe { Box::from_raw(self.state.as_ptr()) });
    }
}

/// Number of slots of a CNode, as addresses count them.
pub const SLOTS: u64 = NODE_SLOTS as u64;
const _: () = assert!(SLOTS as usize * SLOT_SIZE == 1 << 14);

/// Returns the address of a well-known slot, as system calls take it.
pub const fn at(address: CapAddress) -> u64 {
    address.0 as u64
}
