//! The bootable kernel: reads the machine's description, builds the first process, and runs it.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod boot;

/// There is nothing to boot on the host; `kernel/core` tests the kernel's semantics.
#[cfg(not(target_os = "none"))]
fn main() {
    println!("This is a kernel for bare AArch64; build and boot it with ./tench run.");
}
