//! Functions in which every instruction and register matters.
//!
//! On the host none of this exists, because programs are only type-checked there.

/// Defines functions that consist of nothing but the given instructions.
macro_rules! assembly {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? { $($line:literal)* })*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// What the instructions do must be allowed, or be a fault that is handled.
            #[cfg(target_os = "none")]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
                core::arch::naked_asm!(".arch_extension fp", ".arch_extension simd", $($line),*)
            }

            $(#[$doc])*
            ///
            /// # Safety
            /// Not to be called: there are no programs on the host.
            #[cfg(not(target_os = "none"))]
            pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
                $(let _ = $argument;)*
                unreachable!("programs run on the target only")
            }
        )*
    };
}

assembly! {
    /// Entry point of a worker. A frame record of zeros ends every backtrace here.
    fn begin() {
        "mov x29, xzr"
        "mov x30, xzr"
        "br x3"
    }

    /// Makes a system call with the registers as they are, and ends: `x19` is the thread, `x20` the number of
    /// `ThreadSuspend`.
    fn once() {
        "svc #1"
        "mov x0, x19"
        "mov x10, x20"
        "svc #1"
        "b ."
    }

    /// Loads a word. The load is the first instruction.
    fn load(address: u64) -> u64 {
        "ldr x0, [x0]"
        "ret"
    }

    /// Stores a word. The store is the first instruction.
    fn store(address: u64) -> u64 {
        "str x0, [x0]"
        "ret"
    }

    /// Jumps to an address, which may return.
    fn jump(address: u64) -> u64 {
        "br x0"
    }

    /// Loads exclusively, which needs an aligned address even in ordinary memory.
    fn load_exclusive(address: u64) -> u64 {
        "ldaxr x0, [x0]"
        "ret"
    }

    /// Executes an undefined instruction.
    fn undefined(unused: u64) -> u64 {
        "udf #7"
        "ret"
    }

    /// Reads a register that belongs to the kernel.
    fn privileged(unused: u64) -> u64 {
        "mrs x0, ttbr0_el1"
        "ret"
    }

    /// Writes a register that belongs to the kernel.
    fn privileged_write(unused: u64) -> u64 {
        "msr vbar_el1, x0"
        "ret"
    }

    /// Tries to mask interrupts.
    fn mask_interrupts(unused: u64) -> u64 {
        "msr daifset, #2"
        "ret"
    }

    /// Executes a breakpoint.
    fn breakpoint(unused: u64) -> u64 {
        "brk #5"
        "ret"
    }

    /// Makes a hypervisor call, where there is no hypervisor.
    fn hypervisor(unused: u64) -> u64 {
        "hvc #0"
        "ret"
    }

    /// Makes a foreign system call with these arguments.
    fn foreign(a: u64, b: u64, c: u64) -> u64 {
        "svc #7"
        "ret"
    }

    /// Returns 42; copied to memory that is made executable.
    fn forty_two() -> u64 {
        "mov x0, #42"
        "ret"
    }

    /// Fills all registers from `given` (`x0` to `x30`, then the thread pointer), executes the instruction that `kind`
    /// chooses (0: a system call, 1: a foreign one, 2: a load from `x0`, 3: an endless loop of one instruction, 4:
    /// 4,096 `nop`), and stores all registers into `found`, with the flags and the stack pointer's change behind them.
    fn probe(given: u64, found: u64, kind: u64) -> u64 {
        "sub sp, sp, #128"
        "stp x19, x20, [sp, #0]"
        "stp x21, x22, [sp, #16]"
        "stp x23, x24, [sp, #32]"
        "stp x25, x26, [sp, #48]"
        "stp x27, x28, [sp, #64]"
        "stp x29, x30, [sp, #80]"
        "mrs x3, tpidr_el0"
        "stp x1, x3, [sp, #96]"
        "mov x4, sp"
        "str x4, [sp, #112]"
        // The place to go on is kept in the flags: zero, carry, neither; both.
        "ldr x3, [x0, #248]"
        "msr tpidr_el0, x3"
        "mov x5, #0x40000000"
        "cmp x2, #0"
        "b.eq 1f"
        "mov x5, #0xa0000000"
        "cmp x2, #1"
        "b.eq 1f"
        "mov x5, #0x10000000"
        "cmp x2, #2"
        "b.eq 1f"
        "mov x5, #0x60000000"
        "cmp x2, #4"
        "b.eq 1f"
        "mov x5, #0x90000000"
        "1:"
        "msr nzcv, x5"
        "ldp x1, x2, [x0, #8]"
        "ldp x3, x4, [x0, #24]"
        "ldp x5, x6, [x0, #40]"
        "ldp x7, x8, [x0, #56]"
        "ldp x9, x10, [x0, #72]"
        "ldp x11, x12, [x0, #88]"
        "ldp x13, x14, [x0, #104]"
        "ldp x15, x16, [x0, #120]"
        "ldp x17, x18, [x0, #136]"
        "ldp x19, x20, [x0, #152]"
        "ldp x21, x22, [x0, #168]"
        "ldp x23, x24, [x0, #184]"
        "ldp x25, x26, [x0, #200]"
        "ldp x27, x28, [x0, #216]"
        "ldp x29, x30, [x0, #232]"
        "ldr x0, [x0]"
        "b.eq 2f"
        "b.cs 3f"
        "b.pl 4f"
        "5: b 5b"
        "b 6f"
        "4: ldr xzr, [x0]"
        "b 6f"
        "3: svc #7"
        "b 6f"
        "2: b.cs 7f"
        "svc #1"
        "b 6f"
        "7: .rept 4096"
        "nop"
        ".endr"
        "6:"
        // The stack pointer must be what it was, or nothing below works; the caller compares it nevertheless.
        "str x0, [sp, #-16]!"
        "str x1, [sp, #8]"
        "ldr x0, [sp, #112]"
        "stp x2, x3, [x0, #16]"
        "ldp x1, x2, [sp], #16"
        "stp x1, x2, [x0]"
        "stp x4, x5, [x0, #32]"
        "stp x6, x7, [x0, #48]"
        "stp x8, x9, [x0, #64]"
        "stp x10, x11, [x0, #80]"
        "stp x12, x13, [x0, #96]"
        "stp x14, x15, [x0, #112]"
        "stp x16, x17, [x0, #128]"
        "stp x18, x19, [x0, #144]"
        "stp x20, x21, [x0, #160]"
        "stp x22, x23, [x0, #176]"
        "stp x24, x25, [x0, #192]"
        "stp x26, x27, [x0, #208]"
        "stp x28, x29, [x0, #224]"
        "mrs x1, tpidr_el0"
        "stp x30, x1, [x0, #240]"
        "mrs x1, nzcv"
        "mov x2, sp"
        "ldr x3, [sp, #112]"
        "sub x2, x2, x3"
        "stp x1, x2, [x0, #256]"
        "ldp x1, x3, [sp, #96]"
        "msr tpidr_el0, x3"
        "ldp x19, x20, [sp, #0]"
        "ldp x21, x22, [sp, #16]"
        "ldp x23, x24, [sp, #32]"
        "ldp x25, x26, [sp, #48]"
        "ldp x27, x28, [sp, #64]"
        "ldp x29, x30, [sp, #80]"
        "add sp, sp, #128"
        "mov x0, #0"
        "ret"
    }

    /// Takes `count` instructions longer; `count` is below 16.
    fn delay(count: u64) {
        "adr x1, 1f"
        "sub x1, x1, x0, lsl #2"
        "br x1"
        ".rept 16"
        "nop"
        ".endr"
        "1: ret"
    }

    /// Fills the vector registers, rounding mode and status from 34 pairs of words.
    fn fill_vectors(given: u64) {
        "ldp q0, q1, [x0, #0]"
        "ldp q2, q3, [x0, #32]"
        "ldp q4, q5, [x0, #64]"
        "ldp q6, q7, [x0, #96]"
        "ldp q8, q9, [x0, #128]"
        "ldp q10, q11, [x0, #160]"
        "ldp q12, q13, [x0, #192]"
        "ldp q14, q15, [x0, #224]"
        "ldp q16, q17, [x0, #256]"
        "ldp q18, q19, [x0, #288]"
        "ldp q20, q21, [x0, #320]"
        "ldp q22, q23, [x0, #352]"
        "ldp q24, q25, [x0, #384]"
        "ldp q26, q27, [x0, #416]"
        "ldp q28, q29, [x0, #448]"
        "ldp q30, q31, [x0, #480]"
        "ldr x1, [x0, #512]"
        "ldr x2, [x0, #520]"
        "msr fpcr, x1"
        "msr fpsr, x2"
        "ret"
    }

    /// Stores the registers that `fill_vectors` loads.
    fn dump_vectors(found: u64) {
        "stp q0, q1, [x0, #0]"
        "stp q2, q3, [x0, #32]"
        "stp q4, q5, [x0, #64]"
        "stp q6, q7, [x0, #96]"
        "stp q8, q9, [x0, #128]"
        "stp q10, q11, [x0, #160]"
        "stp q12, q13, [x0, #192]"
        "stp q14, q15, [x0, #224]"
        "stp q16, q17, [x0, #256]"
        "stp q18, q19, [x0, #288]"
        "stp q20, q21, [x0, #320]"
        "stp q22, q23, [x0, #352]"
        "stp q24, q25, [x0, #384]"
        "stp q26, q27, [x0, #416]"
        "stp q28, q29, [x0, #448]"
        "stp q30, q31, [x0, #480]"
        "mrs x1, fpcr"
        "mrs x2, fpsr"
        "str x1, [x0, #512]"
        "str x2, [x0, #520]"
        "ret"
    }
}
