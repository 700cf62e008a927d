//! The bootable kernel: reads what the machine is, builds the first process, and runs it.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod boot;

/// On the host there is nothing to boot; the kernel's semantics are tested in `kernel/core`.
#[cfg(not(target_os = "none"))]
fn main() {
    println!("This is a kernel for bare AArch64; build and boot it with ./tench run.");
}
