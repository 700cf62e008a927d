//! Copying and filling memory, as the compiler asks for it. See bytes.S.

core::arch::global_asm!(include_str!("bytes.S"));
