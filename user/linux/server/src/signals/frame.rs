//! The frame that a handler finds on its stack, and how the program goes on after it.
//!
//! ```text
//!       ┌──────────────────────┐
//!       │ x29, x30             │  so that debuggers find the interrupted function
//!       ├──────────────────────┤
//!       │ 0, end of records    │
//!       │ floating point       │
//!       │ registers            │  `sigcontext`
//!       │ blocked signals      │  `ucontext`
//!       │ signal stack         │
//!       ├──────────────────────┤
//!       │ signal               │  `siginfo`
//!       └──────────────────────┘ ◀─ sp, a multiple of 16
//! ```

use tench_linux_calls::records::{u32_at, u64_at};

use super::{Action, Info, Set, Stack, action_flag, only};
use crate::thread::{FloatRegisters, Registers};

/// Offset of the context.
const CONTEXT: usize = Info::SIZE;
/// Offset of the signal stack.
const SIGNAL_STACK: usize = CONTEXT + 16;
/// Offset of the flags in the record of the signal stack.
const SIGNAL_STACK_FLAG: usize = 8;
/// Offset of the blocked signals.
const BLOCKED: usize = CONTEXT + 40;
/// Offset of the registers: the fault's address, `x0` to `x30`, `sp`, `pc`, flags.
const REGISTERS: usize = CONTEXT + 176;
/// Offset of further records.
const RECORDS: usize = REGISTERS + 288;
/// Size of the room for further records.
const RECORDS_SIZE: usize = 4096;
/// Size of the whole frame.
pub const SIZE: usize = RECORDS + RECORDS_SIZE;
/// Size of what has a meaning: there are no records but that of floating-point registers, and the end of records.
pub const USED: usize = RECORDS + FLOAT_SIZE + 16;
/// Size of the two registers behind it.
const LINK: u64 = 16;
/// Begins the record of floating-point registers.
const FLOAT_MAGIC: u32 = 0x4650_8001;
/// Size of that record.
const FLOAT_SIZE: usize = 528;

/// Everything that a frame keeps.
#[derive(Clone, Debug)]
pub struct Interrupted {
    /// General registers.
    pub registers: Registers,
    /// Floating-point registers.
    pub float: FloatRegisters,
    /// The signals that were blocked.
    pub blocked: Set,
    /// The signal stack.
    pub stack: Stack,
}

/// A frame that is to be written.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Address of the frame.
    pub address: u64,
    /// The part of the frame that has a meaning.
    pub bytes: [u8; USED],
    /// Address of the two registers behind the frame.
    pub link: u64,
    /// These registers.
    pub linked: [u8; LINK as usize],
}

/// Returns where a frame goes: below the stack pointer, or at the end of the signal stack if the handler wants that and
/// is not on it already.
fn place(action: &Action, pointer: u64, stack: &Stack) -> u64 {
    match stack.range() {
        Some(stack) if action.flags() & action_flag::ONSTACK != 0 && !is_on(&stack, pointer) => stack.end,
        _ => pointer,
    }
}

/// Returns whether a stack pointer is on a stack, which grows downwards.
pub(crate) fn is_on(stack: &core::ops::Range<u64>, pointer: u64) -> bool {
    stack.start < pointer && pointer <= stack.end
}

/// Writes numbers from an offset on.
fn put_all<const N: usize>(bytes: &mut [u8], offset: usize, numbers: impl Iterator<Item = [u8; N]>) {
    for (place, number) in bytes[offset..].chunks_exact_mut(N).zip(numbers) {
        place.copy_from_slice(&number);
    }
}

/// Returns the frame for a handler, with what was interrupted: registers, blocked signals and the signal stack.
pub fn build(
    info: &Info,
    action: &Action,
    registers: &Registers,
    float: &FloatRegisters,
    blocked: Set,
    stack: &Stack,
) -> Frame {
    let link = (place(action, registers.sp, stack) & !15).wrapping_sub(LINK);
    let address = link.wrapping_sub(SIZE as u64) & !15;
    let (mut bytes, mut linked) = ([0; USED], [0; LINK as usize]);
    let mut put = |offset: usize, part: &[u8]| bytes[offset..offset + part.len()].copy_from_slice(part);
    put(0, &info.record());
    put(SIGNAL_STACK, &stack.0);
    if stack.range().is_some_and(|stack| is_on(&stack, registers.sp)) {
        // It is in use.
        put(SIGNAL_STACK + SIGNAL_STACK_FLAG, &1u32.to_le_bytes());
    }
    put(BLOCKED, &blocked.to_le_bytes());
    if let super::Cause::Fault { address } = info.cause {
        put(REGISTERS, &address.to_le_bytes());
    }
    let words = registers.x.iter().chain([&registers.sp, &registers.pc, &registers.flags]);
    put_all(&mut bytes, REGISTERS + 8, words.map(|word| word.to_le_bytes()));
    let head = [FLOAT_MAGIC, FLOAT_SIZE as u32, float.status as u32, float.control as u32];
    put_all(&mut bytes, RECORDS, head.into_iter().map(u32::to_le_bytes));
    put_all(&mut bytes, RECORDS + 16, float.q.iter().map(|word| word.to_le_bytes()));
    put_all(&mut linked, 0, registers.x[29..].iter().map(|word| word.to_le_bytes()));
    Frame { address, bytes, link: address.wrapping_add(SIZE as u64), linked }
}

impl Frame {
    /// Turns the registers of what was interrupted into those with which the handler begins. `trampoline` is the
    /// address of code that ends it, if the program has none.
    pub fn enter(&self, info: &Info, action: &Action, trampoline: u64, registers: &mut Registers) {
        registers.x[0] = info.signal.into();
        registers.x[1] = self.address;
        registers.x[2] = self.address.wrapping_add(CONTEXT as u64);
        registers.x[29] = self.link;
        registers.x[30] = action.restorer().unwrap_or(trampoline);
        registers.sp = self.address;
        registers.pc = action.handler();
    }
}

/// Returns whether two records say the same but for whether the stack is in use.
pub(crate) fn is_same_stack(one: &Stack, other: &Stack) -> bool {
    one.range() == other.range()
}

/// Returns the signals that are blocked while a handler runs.
pub fn blocked_meanwhile(info: &Info, action: &Action, blocked: Set) -> Set {
    let own = if action.flags() & action_flag::NODEFER != 0 { 0 } else { only(info.signal) };
    (blocked | action.mask() | own) & !super::UNBLOCKABLE
}

/// Returns what a frame has kept, and how the handler has perhaps changed it; `None` if it is no frame. The thread
/// pointer is not in it.
pub fn read(bytes: &[u8; USED], thread_pointer: u64) -> Option<Interrupted> {
    let word = |index: usize| u64_at(bytes, REGISTERS + 8 * (index + 1));
    let x = core::array::from_fn(word);
    let registers = Registers { x, sp: word(31), pc: word(32), flags: word(33), thread_pointer };
    let is_float = u32_at(bytes, RECORDS) == FLOAT_MAGIC && u32_at(bytes, RECORDS + 4) as usize == FLOAT_SIZE;
    if !is_float {
        return None;
    }
    let q = core::array::from_fn(|index| {
        let bytes = bytes[RECORDS + 16 + 16 * index..].first_chunk();
        bytes.map_or(0, |bytes| u128::from_le_bytes(*bytes))
    });
    let (status, control) = (u32_at(bytes, RECORDS + 8).into(), u32_at(bytes, RECORDS + 12).into());
    let mut stack = [0; Stack::SIZE];
    stack.copy_from_slice(&bytes[SIGNAL_STACK..SIGNAL_STACK + Stack::SIZE]);
    let blocked = u64_at(bytes, BLOCKED) & !super::UNBLOCKABLE;
    stack[SIGNAL_STACK_FLAG] &= Stack::DISABLED as u8;
    Some(Interrupted { registers, float: FloatRegisters { q, status, control }, blocked, stack: Stack(stack) })
}
