//! Functions for copying and filling memory that the compiler calls. See bytes.S.

core::arch::global_asm!(include_str!("bytes.S"));
