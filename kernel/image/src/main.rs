//! The bootable kernel: glue and linker script.

fn main() {}
