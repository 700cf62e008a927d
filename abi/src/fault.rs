//! Faults and foreign system calls: classes, reports, and the registers that travel with them.

use crate::message::REGISTER_WORDS;

/// A class of faults. A thread can direct each class to an upcall or endpoint of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum Class {
    /// A memory access or instruction fetch that the address space does not allow.
    PageFault = 0,
    /// Any other synchronous exception: undefined or privileged instruction, misalignment, breakpoint.
    Exception = 1,
    /// An `svc` with an immediate other than 1.
    ForeignCall = 2,
    /// The budget of the scheduling context that the thread runs on is used up. No instruction has failed: if the
    /// handler replies with [`RESUME`](reply::RESUME), or if there is no handler, the thread goes on when there is
    /// budget again.
    Timeout = 3,
}

impl Class {
    /// Number of classes.
    pub const COUNT: usize = 4;
    /// Every class.
    pub const ALL: [Class; 4] = [Class::PageFault, Class::Exception, Class::ForeignCall, Class::Timeout];
    /// The classes that stop a thread if nobody handles them.
    pub const STOPPING: [Class; 3] = [Class::PageFault, Class::Exception, Class::ForeignCall];

    /// Returns the class with this number.
    pub const fn from_code(code: u64) -> Option<Class> {
        match code {
            0 => Some(Class::PageFault),
            1 => Some(Class::Exception),
            2 => Some(Class::ForeignCall),
            3 => Some(Class::Timeout),
            _ => None,
        }
    }
}

/// Description of a fault. In a fault message these are words 0..4 (label = class, `K` set in the tag), but for a
/// [`ForeignCall`]; in an upcall they lie in the IPC buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Report {
    /// [`Class`] as a number.
    pub class: u64,
    /// Page fault: the address that was accessed. Timeout: the ticks that the scheduling context has consumed.
    /// Otherwise 0.
    pub address: u64,
    /// Address of the faulting instruction. Timeout: address of the instruction at which the thread goes on.
    pub instruction: u64,
    /// The architecture's syndrome (AArch64: `ESR_EL1`). Foreign call: the immediate. Timeout: a constant of
    /// [`timeout`].
    pub syndrome: u64,
}

impl Report {
    /// Returns the report that a fault message carries, from its label and its first words.
    pub const fn of_message(label: u64, words: &[u64; REGISTER_WORDS]) -> Report {
        let class = label & 0xffff;
        if class != Class::ForeignCall as u64 {
            return Report { class, address: words[1], instruction: words[2], syndrome: words[3] };
        }
        let call = ForeignCall::of_message(label, words);
        Report { class, address: 0, instruction: call.instruction, syndrome: call.immediate }
    }
}

/// A foreign system call as its handler receives it. The message has eight words: the number, the arguments and the
/// instruction's address; the immediate lies above the class in the label. All other registers stay with the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignCall {
    /// `x8`, by convention the number of the call.
    pub number: u64,
    /// `x0`..`x5`.
    pub arguments: [u64; 6],
    /// Address of the `svc`.
    pub instruction: u64,
    /// Immediate of the `svc`, 0 on Linux.
    pub immediate: u64,
}

impl ForeignCall {
    /// Returns the call that a message of this class carries, from its label and words.
    pub const fn of_message(label: u64, words: &[u64; REGISTER_WORDS]) -> ForeignCall {
        let [number, a, b, c, d, e, f, instruction] = *words;
        ForeignCall { number, arguments: [a, b, c, d, e, f], instruction, immediate: label >> 16 }
    }

    /// Returns the label of a message that carries the call.
    pub const fn label(immediate: u64) -> u64 {
        Class::ForeignCall as u64 | immediate << 16
    }
}

/// Kind of a faulting access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An instruction fetch.
    Execute,
}

impl Report {
    /// Returns the kind of access of a page fault.
    pub const fn access(&self) -> Access {
        let class = self.syndrome >> 26 & 0x3f;
        if class == 0x20 || class == 0x21 {
            Access::Execute
        } else if self.syndrome & 1 << 6 != 0 && self.syndrome & 1 << 8 == 0 {
            Access::Write
        } else {
            Access::Read
        }
    }

    /// Returns whether a page fault hit a mapped page without the required right, rather than an unmapped page.
    pub const fn is_permission(&self) -> bool {
        self.syndrome >> 2 & 0xf == 0b0011
    }
}

/// A thread's general registers, as carried by upcalls, `ReadRegisters` and `WriteRegisters`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Registers {
    /// `x0`..`x30`.
    pub x: [u64; 31],
    /// Stack pointer.
    pub sp: u64,
    /// Program counter.
    pub pc: u64,
    /// Condition flags (bits 28..31). Other bits are ignored when registers are written; when they are read, bit 21 may
    /// be set while the thread is about to make a [step](write::STEP).
    pub flags: u64,
    /// `TPIDR_EL0`, the thread pointer.
    pub thread_pointer: u64,
}

impl Registers {
    /// Registers that are all zero.
    pub const ZERO: Registers = Registers { x: [0; 31], sp: 0, pc: 0, flags: 0, thread_pointer: 0 };
}

/// A thread's floating-point and vector registers, as carried by `ThreadReadFloat` and `ThreadWriteFloat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FloatRegisters {
    /// `q0`..`q31`; they fill the words of an IPC buffer.
    pub q: [u128; 32],
    /// `FPSR`, the status.
    pub status: u64,
    /// `FPCR`, the control register.
    pub control: u64,
}

impl Default for Registers {
    fn default() -> Self {
        Self::ZERO
    }
}

/// Flags of `ThreadWriteRegisters`.
pub mod write {
    /// Resumes the thread afterwards. A thread that waits for a reply goes on waiting.
    pub const RESUME: u64 = 1;
    /// Lets the thread execute one instruction when it goes on, and then raise an exception with the syndrome's class
    /// [`STEP_CLASS`](super::STEP_CLASS). An instruction that faults is tried again before that. Registers that are
    /// written meanwhile without this flag bring the exception forward: the thread raises it before its next
    /// instruction.
    pub const STEP: u64 = 2;
}

/// Class of exceptions in the upper bits of the syndrome, from bit 26 on, that ends a [step](write::STEP).
pub const STEP_CLASS: u64 = 0x32;

/// Labels of a fault handler's reply to a fault message.
pub mod reply {
    /// Resumes the thread where the fault happened; the access is tried again. (A foreign call continues after the
    /// `svc`.)
    pub const RESUME: u64 = 0;
    /// Resumes the thread with `x0` = word 0 of the reply (the result of a foreign system call).
    pub const RESULT: u64 = 1;
    /// Leaves the thread stopped, in state `Faulted`.
    pub const STOP: u64 = 2;
    /// Resumes the thread with all its registers from the handler's IPC buffer. (A thread whose budget was used up
    /// continues with them, too.) Without an IPC buffer, the reply fails with `NoIpcBuffer`.
    pub const REGISTERS: u64 = 3;
}

/// Causes of a timeout: the syndrome of a [`Class::Timeout`].
pub mod timeout {
    /// The budget of the thread's own scheduling context is used up.
    pub const OWN: u64 = 0;
    /// The budget of the scheduling context of a caller for which the thread works is used up.
    pub const CALLER: u64 = 1;
}

/// Number of words of a fault message: those of [`Report`].
pub const MESSAGE_WORDS: usize = 4;
/// Number of words of a foreign call's message ([`ForeignCall`]).
pub const FOREIGN_WORDS: usize = REGISTER_WORDS;
