//! Plays user mode at random: every system call with every shape of argument, sensible and not, while interrupts
//! arrive, time passes and threads fault.
//!
//! Arguments are drawn from what makes calls succeed often enough to build something up (addresses of filled and empty
//! slots, small numbers, sizes, flags), and from nonsense. Nothing here knows what a call should answer; whether the
//! kernel stays consistent is asked after each one.

use tench_abi::fault::{Class, Report};
use tench_abi::layout::{UNBIND, WATERMARK, slot};
use tench_abi::message::{AREA_SIZE, MAX_CAPS, MessageArea};
use tench_abi::object::NODE_SLOTS;
use tench_abi::{Kind, Operation, Tag};
use tench_arch_host::check::check;
use tench_arch_host::machine::{ARCHIVE, DEVICE, FREE, LARGE_DEVICE, Machine, RAM, RAM_MEDIUM, RAM_SMALL};
use tench_kernel::thread::ThreadState;
use tench_kernel::{Kernel, Ref, thread::Thread};

use crate::source::{Seeded, Source};

/// Slots that calls mostly name: the well-known ones, the untyped memory, and some that are empty at first.
const SLOTS: u64 = FREE + 40;
/// Second-level nodes that may get installed.
const NODES: u64 = 4;

/// A machine under random calls.
pub struct Player {
    /// The machine.
    pub machine: Machine,
    /// Calls made.
    pub calls: u64,
    /// Calls that succeeded, by operation number.
    pub succeeded: [u64; 128],
    /// Calls that were refused, by operation number.
    pub refused: [u64; 128],
    /// The last calls, newest last.
    pub history: Vec<String>,
}

impl Player {
    /// A machine with a few threads and objects. `seed` chooses what happens in windows.
    pub fn new(seed: u64, fast: bool) -> Player {
        let mut machine = Machine::new();
        machine.fast = fast;
        for priority in [255, 255, 200, 100] {
            machine.make_thread(priority);
        }
        for kind in [Kind::Endpoint, Kind::Endpoint, Kind::Notification, Kind::Reply] {
            machine.make(kind, 0);
        }
        for level in 0..4 {
            machine.make(Kind::PageTable, level);
        }
        machine.make(Kind::Frame, 12);
        machine.make(Kind::Frame, 21);
        machine.make(Kind::CapNode, 8);
        let mut choices = Seeded::new(seed);
        machine.host().hook = Some(Box::new(move |k| in_window(k, &mut choices)));
        Player { machine, calls: 0, succeeded: [0; 128], refused: [0; 128], history: Vec::new() }
    }

    /// One random event, and a check of the whole state. Answers whether anybody can still do something.
    pub fn step(&mut self, source: &mut impl Source) -> Result<bool, String> {
        if source.one_in(16) {
            self.event(source);
        }
        if self.machine.idle() {
            return Ok(self.wake_somebody(source));
        }
        let thread = self.machine.current();
        if !self.can_call(thread) {
            return Ok(false);
        }
        if source.one_in(64) {
            self.fault(source);
        } else {
            self.call(source);
        }
        check(&mut self.machine.kernel()).map(|()| true)
    }

    /// Whether a thread has a capability space with something in it.
    fn can_call(&mut self, thread: Ref<Thread>) -> bool {
        self.machine.thread(thread).space_slots != 0
    }

    /// Time passes, or a line fires, or the thread computes and touches memory.
    fn event(&mut self, source: &mut impl Source) {
        match source.below(4) {
            0 => self.machine.pass_time(source.below(2000)),
            1 => self.machine.raise(32 + source.below(6) as u32),
            _ => {
                for _ in 0..8 {
                    let address = address(source);
                    self.machine.host().access(address);
                }
            }
        }
    }

    /// Nobody runs: whatever can wake somebody happens. Answers whether it did.
    fn wake_somebody(&mut self, source: &mut impl Source) -> bool {
        self.machine.raise(32 + source.below(6) as u32);
        self.machine.pass_time(source.below(10_000));
        !self.machine.idle()
    }

    /// The running thread faults.
    fn fault(&mut self, source: &mut impl Source) {
        let class = source.pick(&Class::ALL) as u64;
        self.record(|| format!("fault of class {class}"));
        self.machine.fault(Report { class, address: 0, instruction: 4, syndrome: 0x9200_0046 });
    }

    /// Remembers what happens, for whoever looks for the cause of a failure.
    fn record(&mut self, event: impl FnOnce() -> String) {
        if self.history.len() == 32 {
            self.history.remove(0);
        }
        self.history.push(event());
    }

    /// A random system call.
    fn call(&mut self, source: &mut impl Source) {
        let thread = self.machine.current();
        let number = number(source);
        let mut registers: [u64; 13] = std::array::from_fn(|_| argument(source));
        if let Some(operation) = Operation::from_code(number) {
            sensible(operation, &mut registers, source);
        }
        if operation_waits(number) && self.runnable() < 2 {
            registers[1] |= Tag::DEADLINE;
            registers[12] = self.machine.host().time + source.below(100);
        }
        self.fill_area(thread, source);
        self.record(|| {
            let name = Operation::from_code(number).map_or("?", Operation::name);
            format!("{thread:?}: {name} ({number}) {registers:x?}")
        });
        let answer = self.machine.system_call(number, &registers);
        self.machine.powered_off = None;
        self.calls += 1;
        let counter = if answer.x[0] == 0 { &mut self.succeeded } else { &mut self.refused };
        counter[(number & 127) as usize] += 1;
    }

    /// Threads that could run now.
    fn runnable(&mut self) -> usize {
        let k = self.machine.kernel();
        count_ready(k)
    }

    /// Writes capabilities to send and slots to receive into a thread's message area.
    fn fill_area(&mut self, thread: Ref<Thread>, source: &mut impl Source) {
        if self.machine.thread(thread).message_area == 0 || !source.one_in(4) {
            return;
        }
        let area = self.machine.area(thread);
        for i in 0..MAX_CAPS {
            let moved = if source.one_in(4) { MessageArea::MOVE } else { 0 };
            area.send_caps[i] = filled(source) as u32 | moved;
            area.receive_slots[i] = empty(source) as u32;
        }
        area.upcall_running = u64::from(source.one_in(4));
    }
}

/// Ready threads, the running one included.
fn count_ready(mut k: Kernel<tench_arch_host::Host>) -> usize {
    let mut count = 1;
    for priority in 0..tench_abi::object::PRIORITIES {
        let mut at = k.state().ready[priority].head;
        while let Some(thread) = at {
            count += usize::from(matches!(k.get(thread).state, ThreadState::Ready));
            at = k.get(thread).next;
        }
    }
    count
}

/// What may happen in a window: a line fires, or a time slice ends.
fn in_window(k: &mut Kernel<tench_arch_host::Host>, source: &mut Seeded) {
    if source.one_in(4) {
        k.arch().pending.insert(32 + source.below(6) as u32);
        k.arch().time += source.below(2000);
    }
    if source.one_in(16) {
        tench_kernel::scheduler::rotate(k);
    }
    while k.arch().interrupted() {
        tench_kernel::entry::kernel_interrupt(k);
    }
}

/// Whether an operation can block.
fn operation_waits(number: u64) -> bool {
    number <= Operation::Send as u64
}

/// An operation's number, mostly one that exists.
fn number(source: &mut impl Source) -> u64 {
    if source.one_in(50) { source.below(256) } else { source.pick(Operation::ALL) as u64 }
}

/// A virtual address that may be mapped: small indices at each level, or one of the first process's.
fn address(source: &mut impl Source) -> u64 {
    if source.one_in(4) {
        return source.pick(&[0x20_0000, 0x7fff_0000_0000, 0x7fff_0010_0000, 0x7ffd_ffff_f000]);
    }
    (0..4).fold(0, |address, level| {
        let index = if source.one_in(8) { source.below(512) } else { source.below(8) };
        address | index << tench_abi::memory::entry_bits(level)
    }) & (tench_abi::memory::USER_END - 1)
}

/// An address at which a capability may lie.
fn filled(source: &mut impl Source) -> u64 {
    match source.below(16) {
        0 => source.below(SLOTS + 64),
        1 => source.below(NODES) * NODE_SLOTS as u64 + source.below(16),
        2..=4 => 1 + source.below(15),
        _ => FREE + source.below(40),
    }
}

/// An address at which a slot may be empty.
fn empty(source: &mut impl Source) -> u64 {
    match source.below(8) {
        0 => source.below(SLOTS),
        1 => source.below(NODES + 1) * NODE_SLOTS as u64 + source.below(16),
        _ => FREE + 28 + source.below(24),
    }
}

/// A capability space: mostly the own one.
fn space(source: &mut impl Source) -> u64 {
    if source.one_in(8) { filled(source) } else { source.pick(&[0, 0, slot::CSPACE.0 as u64]) }
}

/// An untyped.
fn untyped(source: &mut impl Source) -> u64 {
    if source.one_in(4) {
        filled(source)
    } else {
        source.pick(&[RAM, RAM, RAM_MEDIUM, RAM_SMALL, DEVICE, LARGE_DEVICE, ARCHIVE, ARCHIVE + 1])
    }
}

/// Any number.
fn argument(source: &mut impl Source) -> u64 {
    match source.below(8) {
        0 => source.word(),
        1 => source.pick(&[u64::MAX, UNBIND, WATERMARK, 1 << 63, 1 << 32, 1 << 31, u64::MAX - 1]),
        2 => 1 << source.below(64),
        3 => (1u64 << source.below(64)).wrapping_sub(1),
        4 => source.below(64) << 12,
        _ => source.below(300),
    }
}

/// An entry of a table and a number of entries.
fn entries(source: &mut impl Source) -> (u64, u64) {
    let first = if source.one_in(4) { source.below(513) } else { source.below(8) };
    let count = if source.one_in(4) { source.below(514) } else { 1 + source.below(3) };
    (first, count)
}

/// A message tag.
fn tag(source: &mut impl Source) -> u64 {
    let length = if source.one_in(4) { source.below(70) } else { source.below(9) } as usize;
    let caps = if source.one_in(2) { 0 } else { source.below(6) as usize };
    let flags = if source.one_in(4) { source.below(16) << 12 } else { 0 };
    Tag::new(source.below(6), length).with_caps(caps).with(flags).0
}

/// Replaces most arguments of an operation by such as may succeed.
fn sensible(operation: Operation, x: &mut [u64; 13], source: &mut impl Source) {
    if source.one_in(12) {
        return;
    }
    let keep = *x;
    shape(operation, x, source);
    if source.one_in(6) {
        let spoiled = source.below(8) as usize;
        x[spoiled] = keep[spoiled];
    }
}

/// The arguments that an operation takes.
fn shape(operation: Operation, x: &mut [u64; 13], source: &mut impl Source) {
    x[0] = filled(source);
    match operation {
        Operation::Call
        | Operation::ReplyReceive
        | Operation::Receive
        | Operation::Send
        | Operation::TrySend
        | Operation::TryReceive
        | Operation::Reply => {
            x[1] = tag(source);
            x[11] = filled(source);
            x[12] = source.below(5000);
            if operation == Operation::Reply && source.one_in(2) {
                x[0] = 0;
            }
        }
        Operation::Yield | Operation::Signal | Operation::UpcallReturn | Operation::MappingQuery => {}
        Operation::UntypedRetype => {
            x[0] = untyped(source);
            x[1] = source.below(14);
            x[2] = source.pick(&[0, 1, 2, 3, 4, 5, 8, 12, 12, 13, 14, 16, 21, 22]);
            x[3] = if source.one_in(8) { source.below(258) } else { 1 + source.below(3) };
            x[4] = if source.one_in(3) { source.below(64) << 12 } else { WATERMARK };
            x[5] = space(source);
            x[6] = empty(source);
        }
        Operation::UntypedQuery => x[0] = untyped(source),
        Operation::Copy | Operation::Mint | Operation::Move => {
            x[0] = space(source);
            x[1] = if source.one_in(8) { untyped(source) } else { filled(source) };
            x[2] = space(source);
            x[3] = empty(source);
            x[4] = source.below(16);
            x[5] = if source.one_in(2) { 0 } else { source.below(4) };
        }
        Operation::Delete | Operation::Revoke | Operation::Identify => {
            x[0] = space(source);
            // What everything hangs on goes seldom, or little would ever happen.
            x[1] = if source.one_in(40) { filled(source) } else { FREE + 20 + source.below(24) };
        }
        Operation::NodeInstall | Operation::NodeRemove => {
            x[0] = space(source);
            x[1] = source.below(NODES + 1);
            x[2] = if operation == Operation::NodeInstall { filled(source) } else { empty(source) };
        }
        _ => shape_rest(operation, x, source),
    }
}

/// The same for mappings, threads and devices.
fn shape_rest(operation: Operation, x: &mut [u64; 13], source: &mut impl Source) {
    match operation {
        Operation::FrameMap => {
            x[1] = filled(source);
            (x[2], x[3]) = entries(source);
            x[4] = if source.one_in(3) { source.below(16) << 12 } else { 0 };
            x[5] = source.pick(&[1, 3, 5, 1, 3, 5, 7, 9, 11, 17, 0, 2]);
            x[6] = empty(source);
        }
        Operation::MappingProtect => x[1] = source.pick(&[1, 3, 5, 9, 17, 7]),
        Operation::PageTableMap => {
            x[1] = filled(source);
            x[2] = if source.one_in(8) { source.below(513) } else { source.below(8) };
        }
        Operation::ThreadConfigure => {
            x[1] = if source.one_in(4) { filled(source) } else { slot::CSPACE.0 as u64 };
            x[2] = filled(source);
            x[3] = if source.one_in(4) { 0 } else { filled(source) };
            x[4] = source.below(6) * AREA_SIZE as u64;
        }
        Operation::ThreadBind => {
            for argument in &mut x[1..4] {
                *argument = match source.below(4) {
                    0 => 0,
                    1 => UNBIND,
                    _ => filled(source),
                };
            }
        }
        Operation::ThreadFaults => {
            x[1] = source.below(3);
            x[2] = if source.one_in(2) { 0 } else { filled(source) };
            x[3] = source.pick(&[0, 0x20_0000]);
            x[4] = source.pick(&[0, 0x7ffe_0000_0000]);
        }
        Operation::ThreadReadRegisters | Operation::ThreadWriteRegisters => x[1] = source.below(3),
        Operation::SchedulingConfigure => {
            x[1] = source.pick(&[255, 255, 200, 100, 100, 50]);
            x[2] = source.pick(&[255, 255, 100]);
            x[3] = source.pick(&[0, 10, 1000]);
            x[4] = if source.one_in(4) { filled(source) } else { 0 };
        }
        Operation::InterruptGet => {
            x[0] = slot::INTERRUPT_CONTROL.0 as u64;
            x[1] = 32 + source.below(6);
            x[2] = source.below(2);
            x[3] = empty(source);
        }
        Operation::InterruptBind => x[1] = if source.one_in(4) { 0 } else { filled(source) },
        Operation::KernelPowerOff | Operation::KernelPrint | Operation::KernelQuery => {
            x[0] = slot::KERNEL.0 as u64;
            x[1] = source.below(70);
        }
        _ => {}
    }
}
