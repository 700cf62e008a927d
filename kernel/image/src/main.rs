//! The bootable kernel: the bootstrap, and what it leaves behind. The linker script says what lies where.

#![forbid(unsafe_code)]
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
use tench_bootstrap as _;

/// Reports a panic.
#[cfg(target_os = "none")]
#[panic_handler]
#[expect(unused_attributes, reason = "it is inlined when everything is linked, and then nothing formats the messages")]
#[inline(always)]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    tench_arch_aarch64::fatal::panic(info)
}

/// There is nothing to boot on the host; `kernel/core` tests the kernel's semantics.
#[cfg(not(target_os = "none"))]
fn main() {
    println!("This is a kernel for bare AArch64; build and boot it with ./tench run.");
}
