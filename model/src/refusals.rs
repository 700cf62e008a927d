//! Refused calls: a system call that fails at once must have changed nothing.
//!
//! Before a call the whole machine is copied; if the call fails, it is compared with the copy, word by word. That takes
//! as long as many calls, so only some are compared. A call that has passed a preemption point is not: others have
//! acted meanwhile.

use std::mem::offset_of;

use tench_abi::fault::Registers;
use tench_abi::{Error, Operation};
use tench_arch_host::image::{Difference, Image, Regions};
use tench_arch_host::{Host, Machine};
use tench_kernel::Ref;
use tench_kernel::kernel::State;
use tench_kernel::thread::Thread;

/// One call of so many is compared, if it is refused.
const SAMPLED: u64 = 64;
/// Errors of operations that have done something, as the manual says: a part of the work is done, or other cores are
/// giving back their copies.
const ALLOWED: [u64; 2] = [Error::Unfinished as u64, Error::RemoteCopies as u64];
/// Number of differences that a description has.
const SHOWN: usize = 8;

/// The comparison of refused calls.
#[derive(Default)]
pub struct Refusals {
    /// Number of the next call; those with multiples of [`SAMPLED`] are compared.
    next: u64,
    image: Image,
    /// Number of refused calls that were compared.
    pub compared: u64,
}

/// The machine before a call.
pub struct Before {
    thread: Ref<Thread>,
    /// Program counter at the call. Operations that set it are not refused if it has changed.
    pc: u64,
    regions: Regions,
    preemption_points: u64,
}

impl Refusals {
    /// Begins an episode; `phase` decides which of its calls are compared.
    pub fn start(&mut self, phase: u64) {
        self.next = phase;
    }

    /// Copies the machine before a call of its running thread, if this call is to be compared.
    pub fn before(&mut self, machine: &mut Machine) -> Option<Before> {
        self.next = self.next.wrapping_add(1);
        // No image contains an entry that is suspended in the kernel.
        if !self.next.is_multiple_of(SAMPLED) || machine.suspended() > 0 {
            return None;
        }
        machine.mark_ipc_buffers();
        let regions = Regions::written(machine);
        let image = &mut self.image;
        without_translations(machine, |machine| machine.save(&regions, image));
        let preemption_points = machine.kernel().state().statistics.preemption_points;
        let thread = machine.current();
        Some(Before { thread, pc: machine.thread(thread).registers.pc, regions, preemption_points })
    }

    /// Compares the machine after the call, if that was refused.
    ///
    /// # Errors
    /// Fails with a description of what the call has changed.
    pub fn after(&mut self, machine: &mut Machine, before: &Before, number: u64) -> Result<(), String> {
        let thread = before.thread;
        let passed = machine.kernel().state().statistics.preemption_points != before.preemption_points;
        let Registers { x: [error, ..], pc, .. } = machine.thread(thread).registers;
        // `UpcallReturn` succeeds if there is an IPC buffer: with any `x0`, which then looks like an error, and perhaps
        // with the program counter that it was called with.
        let is_upcall_return = number == Operation::UpcallReturn as u64 && machine.thread(thread).ipc_buffer != 0;
        let returned = !passed && !is_upcall_return && machine.current() == thread && pc == before.pc;
        if !returned || error == 0 || ALLOWED.contains(&error) {
            return Ok(());
        }
        self.compared += 1;
        if without_translations(machine, |machine| machine.is_unchanged(&before.regions, &self.image, thread)) {
            return Ok(());
        }
        let mut found = machine.differences(&before.regions, &self.image);
        let registers = thread.address() + offset_of!(Thread, registers);
        found.retain(|difference| !(registers..registers + size_of::<Registers>()).contains(&difference.address));
        let all: Vec<String> =
            found.iter().take(SHOWN).map(|difference| describe(machine, thread, difference)).collect();
        Err(format!(
            "{number} was refused with error {error}, but has changed {} words: {}",
            found.len(),
            all.join("; ")
        ))
    }
}

/// Does something while no translations are cached: images have none.
fn without_translations<T>(machine: &mut Machine, act: impl FnOnce(&mut Machine) -> T) -> T {
    let cache = std::mem::take(&mut machine.host().cache);
    let result = act(machine);
    machine.host().cache = cache;
    result
}

/// Returns a difference as text.
fn describe(machine: &mut Machine, thread: Ref<Thread>, difference: &Difference) -> String {
    let Difference { address, image, machine: now } = *difference;
    let state = std::ptr::from_mut(machine.kernel().state()).addr();
    let base = machine.host().memory.base();
    let within = |start: usize, size: usize| address.checked_sub(start).filter(|offset| *offset < size);
    let place = if let Some(offset) = within(state, offset_of!(State<Host>, arch)) {
        format!("the state at {offset:#x}")
    } else if let Some(offset) = within(thread.address(), size_of::<Thread>()) {
        format!("the thread at {offset:#x}")
    } else {
        format!("physical {:#x}", address.wrapping_sub(base))
    };
    format!("{place}: {image:#x}, now {now:#x}")
}
