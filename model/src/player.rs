//! Plays user mode at random: every system call with every shape of argument, sensible and not, while interrupts
//! arrive, time passes and threads fault.
//!
//! The player does not know what a call should return; it checks after each call that the kernel's state is consistent.

use std::collections::HashMap;

use tench_abi::fault::{Class, Report};
use tench_abi::memory::entry_bits;
use tench_abi::message::{IpcBuffer, MAX_CAPS};
use tench_abi::{Error, Kind, Operation, Tag};
use tench_arch_host::check::{Inventory, check};
use tench_arch_host::{Host, Machine};
use tench_kernel::slot::flag;
use tench_kernel::thread::{THREAD_OFFSET, Thread, ThreadState};
use tench_kernel::{Kernel, Ref, account, endpoint, scheduler};

use crate::arguments::{Catalogue, argument, sensible};
use crate::refusals::Refusals;
use crate::source::{Seeded, Source};

/// A machine under random calls.
pub struct Player {
    /// The machine.
    pub machine: Machine,
    /// Number of calls made.
    pub calls: u64,
    /// Number of calls that succeeded, by operation number.
    pub succeeded: [u64; 128],
    /// Number of calls that failed, by operation number.
    pub refused: [u64; 128],
    /// Comparison of the state before and after calls that fail.
    pub refusals: Refusals,
    /// The call that each thread, by its address, has made and not yet been seen to return from.
    outstanding: HashMap<usize, Outstanding>,
    /// The last events, newest last.
    pub history: Vec<String>,
    /// Set to keep no history, which takes longer than many a call.
    pub is_silent: bool,
}

/// A call that a thread has made.
struct Outstanding {
    operation: u64,
    /// Program counter of the thread when it made the call. No other call was made there: a thread that is at another
    /// pc has other registers by now, and a thread that got the reply to a fault there may have another `x0`.
    pc: u64,
}

/// Program counter of the first call: above all addresses that are used otherwise.
const FIRST_PC: u64 = 1 << 40;

impl Player {
    /// Makes a machine with a few threads and objects. `seed` chooses what happens at preemption points.
    pub fn new(seed: u64, fast: bool) -> Player {
        let mut machine = Machine::new();
        for priority in [255, 255, 255, 255, 255, 200, 100] {
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
        let mut player = Player {
            machine,
            calls: 0,
            succeeded: [0; 128],
            refused: [0; 128],
            refusals: Refusals::default(),
            outstanding: HashMap::new(),
            history: Vec::new(),
            is_silent: false,
        };
        player.start(seed, fast);
        player
    }

    /// Begins an episode, in whatever state the machine is, and forgets earlier calls. `seed` chooses what happens at
    /// preemption points.
    pub fn start(&mut self, seed: u64, fast: bool) {
        self.machine.fast = fast;
        let mut choices = Seeded::new(seed);
        self.machine.host().hook = Some(Box::new(move |k| at_preemption_point(k, &mut choices)));
        self.calls = 0;
        self.refusals.start(seed);
        self.outstanding.clear();
        self.history.clear();
    }

    /// Plays one random event, and checks the whole state. Returns true if any thread can still do something.
    pub fn step(&mut self, source: &mut impl Source) -> Result<bool, String> {
        if source.one_in(6) {
            self.event(source);
        }
        if self.machine.idle() {
            return Ok(self.wake_somebody(source));
        }
        let thread = self.machine.current();
        self.count_result(thread);
        if !self.can_call(thread) {
            // The thread lost its capabilities. All it can do is to yield, or to be deleted.
            self.machine.call(Operation::Yield, &[]);
            self.machine.pass_time(1000);
            self.calls += 1;
            if source.one_in(4) && self.machine.current() == thread {
                self.fault(source);
            }
        } else if source.one_in(100) {
            self.fault(source);
        } else {
            self.call(source)?;
        }
        if self.machine.host().steps && !self.machine.idle() && source.one_in(2) {
            self.record(|| "step".to_owned());
            self.machine.step();
        }
        check(self.machine.kernel()).map(|()| true)
    }

    /// Returns true if a thread has a CSpace with a capability in it.
    fn can_call(&mut self, thread: Ref<Thread>) -> bool {
        !Catalogue::of(self.machine.kernel(), thread).filled.is_empty()
    }

    /// Plays an event: time passes, or a line fires, or the thread computes and touches memory.
    fn event(&mut self, source: &mut impl Source) {
        match source.below(5) {
            0 => self.machine.pass_time(source.below(2000)),
            1 => self.machine.raise(line(source)),
            2 | 3 if self.runnable() < 5 => self.resume_somebody(source),
            _ => {
                for _ in 0..8 {
                    let address = address(source);
                    self.machine.access(address);
                }
            }
        }
    }

    /// Lets events happen that can wake a thread while the core is idle. Returns true if one was woken.
    fn wake_somebody(&mut self, source: &mut impl Source) -> bool {
        self.machine.raise(line(source));
        self.machine.pass_time(source.below(10_000));
        if self.machine.idle() {
            self.resume_somebody(source);
        }
        !self.machine.idle()
    }

    /// Ends the wait or the suspension of a thread that could run, as `ThreadSuspend`, `ThreadResume` and
    /// `AccountSuspend` from outside would.
    fn resume_somebody(&mut self, source: &mut impl Source) {
        let k = self.machine.kernel();
        let Ok(inventory) = Inventory::take(k) else { return };
        let mut able = Vec::new();
        for thread in &inventory.threads[1..] {
            let t = k.get(*thread);
            let rests = !matches!(t.state, ThreadState::Ready) || t.account_suspended;
            // A thread that is being deleted is no longer named by any capability.
            let lives = inventory.objects.get(&(thread.address() - THREAD_OFFSET));
            let lives = lives.is_some_and(|cap| cap.flags & flag::ZOMBIE == 0);
            if t.base.context.is_some() && t.cspace_slots != 0 && rests && lives {
                able.push(*thread);
            }
        }
        if able.is_empty() {
            return;
        }
        let thread = source.pick(&able);
        endpoint::cancel(k, thread, Error::Aborted);
        account::set_suspended(k, thread, false);
        if matches!(k.get(thread).state, ThreadState::Suspended | ThreadState::Faulted) {
            scheduler::make_ready(k, thread);
        }
        self.record(|| format!("{thread:?} is resumed from outside"));
        self.machine.reschedule();
    }

    /// Raises a fault of the running thread.
    fn fault(&mut self, source: &mut impl Source) {
        let class = source.pick(&Class::ALL) as u64;
        self.record(|| format!("fault of class {class}"));
        self.machine.fault(Report { class, address: 0, instruction: 4, syndrome: 0x9200_0046 });
    }

    /// Records an event, to help find the cause of a failure.
    fn record(&mut self, event: impl FnOnce() -> String) {
        if self.is_silent {
            return;
        }
        if self.history.len() == 32 {
            self.history.remove(0);
        }
        self.history.push(event());
    }

    /// Makes a random system call.
    fn call(&mut self, source: &mut impl Source) -> Result<(), String> {
        let thread = self.machine.current();
        let known = Catalogue::of(self.machine.kernel(), thread);
        let number = number(source);
        let mut registers: [u64; 13] = std::array::from_fn(|_| argument(source));
        if let Some(operation) = Operation::from_code(number) {
            sensible(operation, &mut registers, &known, source);
        }
        if operation_waits(number) && self.runnable() < 2 {
            registers[12] = self.machine.host().time + source.below(100);
            registers[1] |= Tag::DEADLINE | if registers[12].is_multiple_of(2) { 0 } else { Tag::ALARM };
        }
        self.fill_ipc_buffer(thread, &known, source);
        self.record(|| {
            let name = Operation::from_code(number).map_or("?", Operation::name);
            format!("{thread:?}: {name} ({number}) {registers:x?}")
        });
        self.make_call(thread, number, &registers)
    }

    /// Makes a system call as the running thread.
    fn make_call(&mut self, thread: Ref<Thread>, number: u64, registers: &[u64; 13]) -> Result<(), String> {
        let pc = FIRST_PC + self.calls;
        self.machine.thread(thread).registers.pc = pc;
        self.outstanding.insert(thread.address(), Outstanding { operation: number, pc });
        let before = self.refusals.before(&mut self.machine);
        self.machine.system_call(number, registers);
        let unchanged = before.map_or(Ok(()), |before| self.refusals.after(&mut self.machine, &before, number));
        if self.machine.powered_off.take().is_some() {
            // The call does not return, but the test continues.
            self.machine.thread(thread).registers.x[0] = 0;
        }
        self.calls += 1;
        unchanged
    }

    /// Counts the last call of a thread that runs now, and so has returned, if its result can be known. It cannot if
    /// the thread was made anew meanwhile, or given other registers.
    fn count_result(&mut self, thread: Ref<Thread>) {
        let Some(Outstanding { operation, pc }) = self.outstanding.remove(&thread.address()) else { return };
        let t = self.machine.thread(thread);
        let (is_there, has_faulted) = (t.registers.pc == pc, t.fault.instruction == pc);
        let refused = if operation == Operation::UpcallReturn as u64 {
            // This call returns to other registers.
            is_there
        } else if is_there && !has_faulted {
            t.registers.x[0] != 0
        } else {
            return;
        };
        let counter = if refused { &mut self.refused } else { &mut self.succeeded };
        counter[(operation & 127) as usize] += 1;
    }

    /// Returns the number of threads that could run now.
    fn runnable(&mut self) -> usize {
        let k = self.machine.kernel();
        count_ready(k)
    }

    /// Writes capabilities to send and slots to receive into a thread's IPC buffer.
    fn fill_ipc_buffer(&mut self, thread: Ref<Thread>, known: &Catalogue, source: &mut impl Source) {
        if self.machine.thread(thread).ipc_buffer == 0 || !source.one_in(4) {
            return;
        }
        let buffer = self.machine.buffer(thread);
        for i in 0..MAX_CAPS {
            let moved = if source.one_in(4) { IpcBuffer::MOVE } else { 0 };
            buffer.send_caps[i] = known.any(source) as u32 | moved;
            buffer.receive_slots[i] = known.empty(source) as u32;
        }
        buffer.upcall_running = u64::from(source.one_in(4));
    }
}

/// Returns the number of ready threads, the running one included.
fn count_ready(k: &mut Kernel<Host>) -> usize {
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

/// Makes what may happen at a preemption point: a line fires, or a time slice ends.
fn at_preemption_point(k: &mut Kernel<Host>, source: &mut Seeded) {
    if source.one_in(3) {
        k.arch().pending.insert(32 + source.below(6) as u32);
        k.arch().time += source.below(2000);
    }
    if source.one_in(3) {
        tench_kernel::scheduler::rotate(k);
    }
    while k.arch().interrupted() {
        tench_kernel::entry::kernel_interrupt(k);
    }
}

/// Returns a line of a device, or a doorbell line of the core.
fn line(source: &mut impl Source) -> u32 {
    (if source.one_in(2) { 32 + source.below(6) } else { source.below(4) }) as u32
}

/// Returns true if an operation can block.
fn operation_waits(number: u64) -> bool {
    number <= Operation::Send as u64
}

/// Returns an operation's number, mostly one that exists.
fn number(source: &mut impl Source) -> u64 {
    if source.one_in(50) { source.below(256) } else { source.pick(Operation::ALL) as u64 }
}

/// Returns a virtual address that may be mapped: small indices at each level, or one of the first process's.
fn address(source: &mut impl Source) -> u64 {
    if source.one_in(4) {
        return source.pick(&[0x20_0000, 0x7fff_0000_0000, 0x7fff_0010_0000, 0x7ffd_ffff_f000]);
    }
    (0..4).fold(0, |address, level| {
        let index = if source.one_in(8) { source.below(512) } else { source.below(8) };
        address | index << entry_bits(level)
    }) & (tench_abi::memory::USER_END - 1)
}

#[cfg(test)]
mod tests {
    use tench_abi::fault::reply;
    use tench_abi::layout::slot;
    use tench_arch_host::machine::{FREE, at};

    use super::*;

    /// The first thread that a player makes, and that thread's endpoint, which lies behind all seven threads.
    const THREAD: u64 = FREE;
    const ENDPOINT: u64 = FREE + 7 * 4;
    const REFUSED: Operation = Operation::AccountOpen;

    /// Runs `then` after a call of that thread has failed and before the player sees the thread again. Returns the
    /// numbers of successes and failures that the player counted.
    fn counted(then: impl FnOnce(&mut Machine, Ref<Thread>)) -> (u64, u64) {
        let mut player = Player::new(0, false);
        player.machine.host().hook = None;
        let thread = player.machine.thread_at(THREAD);
        player.machine.run(thread);
        player.make_call(thread, REFUSED as u64, &[0; 13]).expect("it has changed nothing");
        assert_ne!(player.machine.results(thread).x[0], 0);
        then(&mut player.machine, thread);
        player.count_result(thread);
        player.count_result(thread);
        (player.succeeded[REFUSED as usize], player.refused[REFUSED as usize])
    }

    #[test]
    fn a_result_is_counted_once() {
        assert_eq!(counted(|_, _| {}), (0, 1));
    }

    #[test]
    fn registers_written_by_others_are_no_result() {
        let written = |m: &mut Machine, _| {
            let first = m.first;
            m.call_as(first, Operation::ThreadSuspend, &[THREAD]).ok();
            m.call_as(first, Operation::ThreadWriteRegisters, &[THREAD, 1]).ok();
        };
        assert_eq!(counted(written), (0, 0));
    }

    #[test]
    fn the_reply_to_a_fault_is_no_result() {
        let faulted = |m: &mut Machine, thread| {
            let first = m.first;
            m.call_as(first, Operation::ThreadFaults, &[THREAD, Class::PageFault as u64, ENDPOINT, 0, 0]).ok();
            let mut receive = [0; 13];
            (receive[0], receive[11]) = (ENDPOINT, at(slot::REPLY));
            m.system_call(Operation::Receive as u64, &receive);
            m.run(thread);
            m.fault(Report { class: 0, address: 0, instruction: FIRST_PC, syndrome: 0 });
            assert_eq!(m.current(), first);
            m.call(Operation::Reply, &[0, Tag::new(reply::RESULT, 1).0]).ok();
            assert_eq!(m.results(thread).x[0], 0);
        };
        assert_eq!(counted(faulted), (0, 0));
    }

    #[test]
    fn an_upcall_returns_to_other_registers() {
        let mut player = Player::new(0, false);
        let (first, number) = (player.machine.first, Operation::UpcallReturn as usize);
        player.make_call(first, number as u64, &[0; 13]).expect("it succeeds");
        player.count_result(first);
        assert_eq!((player.succeeded[number], player.refused[number]), (1, 0));
    }
}
