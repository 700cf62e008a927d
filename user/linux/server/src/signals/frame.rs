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

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Action, Cause, Info, Set, Stack, action_flag, only};
use crate::thread::{FloatRegisters, Registers};

/// Size of the room for further records.
const RECORDS_SIZE: usize = 4096;
/// Size of the room for blocked signals, of which there are fewer.
const SET_SIZE: usize = 128;
/// Begins the record of floating-point registers.
const FLOAT_MAGIC: u32 = 0x4650_8001;
/// Offset of the context.
const CONTEXT: u64 = core::mem::offset_of!(Kept, flags) as u64;
/// Size of the whole frame.
pub const SIZE: u64 = (core::mem::offset_of!(Kept, float) + RECORDS_SIZE) as u64;

/// The part of a frame that has a meaning.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Kept {
    /// The signal: `siginfo`.
    info: [u8; Info::SIZE],
    /// `ucontext` from here on: its flags and its successor, of which there are none.
    flags: [u64; 2],
    /// The signal stack.
    stack: [u8; Stack::SIZE],
    /// The signals that were blocked.
    blocked: Set,
    unused: [u8; SET_SIZE - size_of::<Set>()],
    /// `sigcontext` is aligned to 16 bytes.
    before_context: u64,
    /// The address of a fault.
    fault: u64,
    x: [u64; 31],
    sp: u64,
    pc: u64,
    processor_state: u64,
    before_records: u64,
    float: Float,
    /// There are no further records: a kind and a size of 0.
    end: [u64; 2],
}

/// The record of floating-point registers.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Float {
    magic: u32,
    size: u32,
    status: u32,
    control: u32,
    q: [u128; 32],
}

/// The two registers behind a frame.
type Link = [u64; 2];

/// Where a frame is.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Address of the frame.
    pub frame: u64,
    /// Address of the two registers behind it.
    pub link: u64,
}

impl Place {
    /// Returns where a frame goes: below the stack pointer, or at the end of the signal stack if the handler wants that
    /// and is not on it already.
    pub fn new(action: &Action, pointer: u64, stack: &Stack) -> Place {
        let top = match stack.range() {
            Some(stack) if action.flags() & action_flag::ONSTACK != 0 && !is_on(&stack, pointer) => stack.end,
            _ => pointer,
        };
        let link = (top & !15).wrapping_sub(size_of::<Link>() as u64);
        let frame = link.wrapping_sub(SIZE) & !15;
        Place { frame, link: frame.wrapping_add(SIZE) }
    }

    /// Turns the registers of what was interrupted into those with which the handler begins. `trampoline` is the
    /// address of code that ends it, if the program has none.
    pub fn enter(self, info: &Info, action: &Action, trampoline: u64, registers: &mut Registers) {
        registers.x[0] = info.signal.into();
        registers.x[1] = self.frame;
        registers.x[2] = self.frame.wrapping_add(CONTEXT);
        registers.x[29] = self.link;
        registers.x[30] = action.restorer().unwrap_or(trampoline);
        registers.sp = self.frame;
        registers.pc = action.handler();
    }
}

/// Returns whether a stack pointer is on a stack, which grows downwards.
pub(crate) fn is_on(stack: &core::ops::Range<u64>, pointer: u64) -> bool {
    stack.start < pointer && pointer <= stack.end
}

impl Kept {
    /// Returns a frame for a handler, with what was interrupted: registers, blocked signals and the signal stack.
    #[inline]
    pub fn new(info: &Info, registers: &Registers, float: &FloatRegisters, blocked: Set, stack: &Stack) -> Kept {
        let Registers { x, sp, pc, flags, .. } = *registers;
        let mut stack_record = stack.0;
        if stack.range().is_some_and(|stack| is_on(&stack, sp)) {
            // It is in use.
            stack_record[Stack::FLAG] = 1;
        }
        let fault = if let Cause::Fault { address } = info.cause { address } else { 0 };
        Kept {
            info: info.record(),
            flags: [0; 2],
            stack: stack_record,
            blocked,
            unused: [0; _],
            before_context: 0,
            fault,
            x,
            sp,
            pc,
            processor_state: flags,
            before_records: 0,
            float: Float {
                magic: FLOAT_MAGIC,
                size: size_of::<Float>() as u32,
                status: float.status as u32,
                control: float.control as u32,
                q: float.q,
            },
            end: [0; 2],
        }
    }

    /// Returns whether these bytes are a frame.
    pub fn is_whole(&self) -> bool {
        (self.float.magic, self.float.size) == (FLOAT_MAGIC, size_of::<Float>() as u32)
    }

    /// Returns the registers, as the handler has perhaps changed them. The thread pointer is not among them.
    #[inline]
    pub fn registers(&self, thread_pointer: u64) -> Registers {
        let Kept { x, sp, pc, processor_state, .. } = *self;
        Registers { x, sp, pc, flags: processor_state, thread_pointer }
    }

    /// Returns the floating-point registers.
    #[inline]
    pub fn float(&self) -> FloatRegisters {
        let Float { status, control, q, .. } = self.float;
        FloatRegisters { q, status: status.into(), control: control.into() }
    }

    /// Returns the signals that were blocked.
    pub const fn blocked(&self) -> Set {
        self.blocked & !super::UNBLOCKABLE
    }

    /// Returns the signal stack.
    pub const fn stack(&self) -> Stack {
        let mut record = self.stack;
        record[Stack::FLAG] &= Stack::DISABLED as u8;
        Stack(record)
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
