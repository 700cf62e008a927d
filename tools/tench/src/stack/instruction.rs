//! The effects of AArch64 instructions on the stack pointer and on the flow of control. No other effect matters here.

/// Number of the stack pointer where an instruction may name it.
const STACK_POINTER: u32 = 31;

/// The effect of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The next instruction follows, and the stack pointer is as before.
    None,
    /// The stack grows by so many bytes, or shrinks.
    Grow(i64),
    /// The stack pointer gets the value of a register.
    Replace,
    /// The stack pointer gets a value that cannot be known.
    Unknown,
    /// Control goes on elsewhere.
    Jump(u64),
    /// Control goes on elsewhere or at the next instruction.
    Branch(u64),
    /// A call.
    Call(u64),
    /// Control goes on at the address in a register.
    JumpTo(u32),
    /// A call of the address in a register.
    CallTo,
    /// The return from a call.
    Return,
    /// Control does not go on here: the exception level is left, or the instruction is none.
    End,
    /// Pending interrupts are admitted.
    Admit,
}

/// Returns the effect of an instruction at an address.
pub fn effect(word: u32, address: u64) -> Effect {
    control(word, address).unwrap_or_else(|| on_stack(word))
}

/// Returns the effect of an instruction on the flow of control, if it has one.
fn control(word: u32, address: u64) -> Option<Effect> {
    let target = |bits: u32, lowest: u32| address.wrapping_add_signed(signed(word, lowest, bits) * 4);
    let register = word >> 5 & 31;
    Some(match word {
        _ if word & 0xfc00_0000 == 0x1400_0000 => Effect::Jump(target(26, 0)),
        _ if word & 0xfc00_0000 == 0x9400_0000 => Effect::Call(target(26, 0)),
        // b.cond, then cbz and cbnz, then tbz and tbnz.
        _ if word & 0xff00_0000 == 0x5400_0000 => Effect::Branch(target(19, 5)),
        _ if word & 0x7e00_0000 == 0x3400_0000 => Effect::Branch(target(19, 5)),
        _ if word & 0x7e00_0000 == 0x3600_0000 => Effect::Branch(target(14, 5)),
        _ if word & 0xffff_fc1f == 0xd61f_0000 => Effect::JumpTo(register),
        _ if word & 0xffff_fc1f == 0xd63f_0000 => Effect::CallTo,
        _ if word & 0xffff_fc1f == 0xd65f_0000 => Effect::Return,
        0xd69f_03e0 => Effect::End,
        // brk, and what is permanently undefined.
        _ if word & 0xffe0_001f == 0xd420_0000 || word >> 16 == 0 => Effect::End,
        // msr daifclr with the bit of interrupts.
        _ if word & 0xffff_f2ff == 0xd503_42ff => Effect::Admit,
        _ => return None,
    })
}

/// Returns the effect of another instruction on the stack pointer.
fn on_stack(word: u32) -> Effect {
    let (destination, base) = (word & 31, word >> 5 & 31);
    let writes_back = base == STACK_POINTER;
    match word {
        // add and sub with a constant.
        _ if word & 0x1f80_0000 == 0x1100_0000 && word >> 29 & 1 == 0 && destination == STACK_POINTER => {
            let constant = i64::from(word >> 10 & 0xfff) << (12 * (word >> 22 & 1));
            match (base == STACK_POINTER, word >> 30 & 1) {
                (true, 0) => Effect::Grow(-constant),
                (true, _) => Effect::Grow(constant),
                (false, 0) if constant == 0 => Effect::Replace,
                (false, _) => Effect::Unknown,
            }
        }
        // add and sub with an extended register; and, orr and eor with a constant.
        _ if word & 0x3fe0_0000 == 0x0b20_0000 && destination == STACK_POINTER => Effect::Unknown,
        _ if word & 0x1f80_0000 == 0x1200_0000 && word >> 29 & 3 != 3 && destination == STACK_POINTER => {
            Effect::Unknown
        }
        // Pairs, stored and loaded with a change of the base register, before or after.
        _ if word & 0x3a80_0000 == 0x2880_0000 && writes_back => {
            Effect::Grow(-signed(word, 15, 7) * scale_of_pair(word))
        }
        // Single registers likewise.
        _ if word & 0x3b20_0400 == 0x3800_0400 && writes_back => Effect::Grow(-signed(word, 12, 9)),
        // Several vector registers likewise.
        _ if word & 0xbe80_0000 == 0x0c80_0000 && writes_back => Effect::Unknown,
        _ => Effect::None,
    }
}

/// Returns the size of one register of a pair.
fn scale_of_pair(word: u32) -> i64 {
    let (kind, is_vector) = (word >> 30, word >> 26 & 1 == 1);
    match kind {
        _ if is_vector => 4 << kind,
        0 | 1 => 4,
        _ => 8,
    }
}

/// Returns a signed field of an instruction.
fn signed(word: u32, lowest: u32, bits: u32) -> i64 {
    i64::from(((word >> lowest) << (32 - bits)).cast_signed() >> (32 - bits))
}

/// Returns whether an instruction leaves a sum of registers in a register: so a table's jumps are computed.
pub fn is_sum(word: u32, register: u32) -> bool {
    word & 0xff20_0000 == 0x8b00_0000 && word & 31 == register
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: u64 = 0xffff_fff0_4020_7000;

    #[test]
    fn constants_move_the_stack_pointer() {
        for (word, expected) in [
            (0xd103_03ff, Effect::Grow(192)),        // sub sp, sp, #192
            (0x9103_03ff, Effect::Grow(-192)),       // add sp, sp, #192
            (0xd140_0bff, Effect::Grow(2 << 12)),    // sub sp, sp, #2, lsl #12
            (0x9140_0bff, Effect::Grow(-(2 << 12))), // add sp, sp, #2, lsl #12
            (0x9100_001f, Effect::Replace),          // mov sp, x0
            (0x9100_43bf, Effect::Unknown),          // add sp, x29, #16
            (0xd100_43bf, Effect::Unknown),          // sub sp, x29, #16
            (0x9100_03fd, Effect::None),             // mov x29, sp
            (0xf100_43ff, Effect::None),             // cmp sp, #16
            (0xcb20_63ff, Effect::Unknown),          // sub sp, sp, x0
            (0x927c_ed3f, Effect::Unknown),          // and sp, x9, #0xfffffffffffffff0
            (0xf27c_ed3f, Effect::None),             // tst x9, #0xfffffffffffffff0
            (0xeb00_001f, Effect::None),             // cmp x0, x0
        ] {
            assert_eq!(effect(word, HERE), expected, "{word:#x}");
        }
    }

    #[test]
    fn stores_and_loads_move_the_stack_pointer() {
        for (word, expected) in [
            (0xf81d_0ffe, Effect::Grow(48)),  // str x30, [sp, #-48]!
            (0xf843_07fe, Effect::Grow(-48)), // ldr x30, [sp], #48
            (0xa9bd_57fe, Effect::Grow(48)),  // stp x30, x21, [sp, #-48]!
            (0xa8c3_57fe, Effect::Grow(-48)), // ldp x30, x21, [sp], #48
            (0xadbf_07e0, Effect::Grow(32)),  // stp q0, q1, [sp, #-32]!
            (0x29bf_07e0, Effect::Grow(8)),   // stp w0, w1, [sp, #-8]!
            (0x3c9f_0fe0, Effect::Grow(16)),  // str q0, [sp, #-16]!
            (0xa901_57fe, Effect::None),      // stp x30, x21, [sp, #16]
            (0xf940_07fe, Effect::None),      // ldr x30, [sp, #8]
            (0xf85f_83fe, Effect::None),      // ldur x30, [sp, #-8]
            (0xf861_6be0, Effect::None),      // ldr x0, [sp, x1]
            (0xf81d_0c1e, Effect::None),      // str x30, [x0, #-48]!
            (0x4c9f_73e0, Effect::Unknown),   // st1 { v0.16b }, [sp], #16
        ] {
            assert_eq!(effect(word, HERE), expected, "{word:#x}");
        }
    }

    #[test]
    fn control_goes_where_the_instruction_says() {
        for (word, expected) in [
            (0x1400_0002, Effect::Jump(HERE + 8)),   // b .+8
            (0x17ff_ffff, Effect::Jump(HERE - 4)),   // b .-4
            (0x97ff_ffff, Effect::Call(HERE - 4)),   // bl .-4
            (0x5400_0041, Effect::Branch(HERE + 8)), // b.ne .+8
            (0xb400_0040, Effect::Branch(HERE + 8)), // cbz x0, .+8
            (0x35ff_ffe0, Effect::Branch(HERE - 4)), // cbnz w0, .-4
            (0xb607_fff0, Effect::Branch(HERE - 4)), // tbz x16, #32, .-4
            (0x3718_0040, Effect::Branch(HERE + 8)), // tbnz w0, #3, .+8
            (0xd61f_0200, Effect::JumpTo(16)),       // br x16
            (0xd63f_0100, Effect::CallTo),           // blr x8
            (0xd65f_03c0, Effect::Return),           // ret
            (0xd69f_03e0, Effect::End),              // eret
            (0xd420_0020, Effect::End),              // brk #1
            (0x0000_0000, Effect::End),              // udf #0
            (0xd503_42ff, Effect::Admit),            // msr daifclr, #2
            (0xd503_42df, Effect::None),             // msr daifset, #2
            (0xd503_41ff, Effect::None),             // msr daifclr, #1
            (0xd503_201f, Effect::None),             // nop
        ] {
            assert_eq!(effect(word, HERE), expected, "{word:#x}");
        }
    }

    #[test]
    fn a_sum_is_known_by_its_register() {
        assert!(is_sum(0x8b11_0210, 16)); // add x16, x16, x17
        assert!(is_sum(0x8b10_0a31, 17)); // add x17, x17, x16, lsl #2
        assert!(!is_sum(0x8b11_0210, 17));
        assert!(!is_sum(0x9100_c3ff, 31)); // add sp, sp, #48
    }
}
