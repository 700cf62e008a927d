//! Faults and foreign system calls: classes, reports and the registers that travel with them.

/// What a thread can say a destination for. Each class has its own upcall or endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum Class {
    /// A memory access or instruction fetch that the address space does not allow.
    PageFault = 0,
    /// Any other synchronous exception: undefined or privileged instruction, misalignment, breakpoint.
    Exception = 1,
    /// `svc` with an immediate other than 1.
    ForeignCall = 2,
    /// The budget of the scheduling context that the thread runs on is used up. No instruction has failed: answered
    /// with [`RESUME`](answer::RESUME), or without anybody who handles it, the thread goes on when there is budget
    /// again.
    Timeout = 3,
}

impl Class {
    /// Number of classes.
    pub const COUNT: usize = 4;
    /// Every class.
    pub const ALL: [Class; 4] = [Class::PageFault, Class::Exception, Class::ForeignCall, Class::Timeout];
    /// The classes that stop a thread for which nobody handles them.
    pub const STOPPING: [Class; 3] = [Class::PageFault, Class::Exception, Class::ForeignCall];

    /// The class with this number.
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

/// What happened. In a fault message these are words 0..4 (label = class, `K` set in the tag); in an upcall they lie in
/// the message area.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Report {
    /// [`Class`] as a number.
    pub class: u64,
    /// Page fault: the address that was accessed. Timeout: the ticks that the scheduling context has consumed.
    /// Otherwise 0.
    pub address: u64,
    /// Address of the instruction. Timeout: of that with which the thread goes on.
    pub instruction: u64,
    /// The architecture's syndrome (AArch64: `ESR_EL1`). Foreign call: the immediate. Timeout: one of
    /// [`timeout`].
    pub syndrome: u64,
}

/// Why an access was made, from an AArch64 syndrome.
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
    /// The kind of access of a page fault.
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

    /// Whether a page fault hit a mapped page without the right (rather than an unmapped one).
    pub const fn is_permission(&self) -> bool {
        self.syndrome >> 2 & 0xf == 0b0011
    }
}

/// A thread's general registers as upcalls, `ReadRegisters` and `WriteRegisters` carry them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Registers {
    /// `x0`..`x30`.
    pub x: [u64; 31],
    /// Stack pointer.
    pub sp: u64,
    /// Program counter.
    pub pc: u64,
    /// Condition flags (bits 28..31); other bits are ignored.
    pub flags: u64,
    /// `TPIDR_EL0`, the thread pointer.
    pub thread_pointer: u64,
}

impl Registers {
    /// All zero.
    pub const ZERO: Registers = Registers { x: [0; 31], sp: 0, pc: 0, flags: 0, thread_pointer: 0 };
}

impl Default for Registers {
    fn default() -> Self {
        Self::ZERO
    }
}

/// Labels with which a fault handler answers a fault message.
pub mod answer {
    /// Resume where the fault happened; the access is tried again. (A foreign call continues after the `svc`.)
    pub const RESUME: u64 = 0;
    /// Resume with `x0` = word 0 of the reply (the result of a foreign system call).
    pub const RESULT: u64 = 1;
    /// Leave the thread stopped, in state `Faulted`.
    pub const STOP: u64 = 2;
}

/// Why a thread cannot go on: the syndrome of a [`Class::Timeout`].
pub mod timeout {
    /// The budget of its own scheduling context is used up.
    pub const OWN: u64 = 0;
    /// The budget of the scheduling context of somebody for whom it works is used up.
    pub const CALLER: u64 = 1;
}

/// Words of a fault message: those of [`Report`].
pub const MESSAGE_WORDS: usize = 4;
/// Words of a foreign call's message: those of [`Report`], then `x0`..`x8`. The words beyond the eighth need a message
/// area at the receiver, and are missing without one.
pub const FOREIGN_WORDS: usize = 13;
