//! The kernel on AArch64: QEMU's `virt` machine and similar ones.
//!
//! | file          | what it does                                                         |
//! |---------------|----------------------------------------------------------------------|
//! | `start`       | the image in memory, and the end of the bootstrap                    |
//! | `trap`        | exception vectors, system-call entry                                 |
//! | `leave`       | the ways back to user mode from a fast path                          |
//! | `exceptions`  | faults and foreign system calls                                      |
//! | `layout`      | memory layout                                                        |
//! | `interrupts`  | GICv3                                                                |
//! | `cores`       | the other cores, and starting them                                   |
//! | `timer`       | the virtual timer                                                    |
//! | `paging`      | page-table entries and the TLB                                       |
//! | `memory`      | zeroing and cache maintenance                                        |
//! | `counter`     | retired instructions                                                 |
//! | `float`       | floating-point registers                                             |
//! | `early`       | the serial port for the earliest output                              |
//! | `digits`      | numbers as text                                                      |
//! | `power`       | switching the machine off                                            |
//! | `conduit`     | the instructions that call the firmware                              |
//! | `fatal`       | reports of panics and exceptions in the kernel                       |
//! | `first`       | the first process                                                    |
//! | `idle`        | the kernel's state, and the thread that waits for interrupts         |
//! | `machine`     | all of it, as `tench_kernel::Arch`                                   |
//!
//! Code that needs the processor is compiled for it alone; the pure parts also compile on the host, where they are
//! tested.

#![no_std]
#![deny(missing_docs)]

pub mod conduit;
pub mod digits;
pub mod layout;

#[cfg(target_os = "none")]
pub mod cores;
#[cfg(target_os = "none")]
pub mod counter;
#[cfg(target_os = "none")]
pub mod early;
#[cfg(target_os = "none")]
pub mod exceptions;
#[cfg(target_os = "none")]
pub mod fatal;
#[cfg(target_os = "none")]
pub mod first;
#[cfg(target_os = "none")]
pub mod float;
#[cfg(target_os = "none")]
pub mod idle;
#[cfg(target_os = "none")]
pub mod interrupts;
#[cfg(target_os = "none")]
mod leave;
#[cfg(target_os = "none")]
pub mod machine;
#[cfg(target_os = "none")]
pub mod memory;
#[cfg(target_os = "none")]
pub mod paging;
#[cfg(target_os = "none")]
pub mod power;
#[cfg(target_os = "none")]
pub mod start;
#[cfg(target_os = "none")]
pub mod step;
#[cfg(target_os = "none")]
pub mod timer;
#[cfg(target_os = "none")]
pub mod trap;

#[cfg(target_os = "none")]
pub use machine::Machine;

pub use layout::BASE;
