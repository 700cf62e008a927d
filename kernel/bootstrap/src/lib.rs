//! From the boot loader to the first process, on AArch64: code that runs once on each core.
//!
//! | file          | what it does                                                         |
//! |---------------|----------------------------------------------------------------------|
//! | `start`       | from the boot loader to Rust, with both halves of the address space  |
//! | `tree`        | reading of flattened device trees                                    |
//! | `platform`    | what the device tree says                                            |
//! | `plan`        | which memory is whose when the first process starts                  |
//! | `boot`        | all of it, up to the first process                                   |
//!
//! The linker script of the image puts this crate, and the libraries that only it uses, in sections of their own
//! (`.boot.*`) at both ends of the image:
//!
//! ```text
//!  .boot.text │ .text  .rodata  .data  .bss │ .boot.bss
//!  └bootstrap┘ └───── the kernel stays ────┘ └ its stack
//! ```
//! Their memory is in the first process's untyped memory like any other that is free. The last thing that happens on
//! the boot stack is that the kernel maps them as data (`leave_bootstrap`). So nothing that stays may refer to them,
//! which a test of the image's relocations verifies.

#![no_std]
#![deny(missing_docs)]

pub mod plan;
pub mod platform;
pub mod tree;

#[cfg(target_os = "none")]
pub mod boot;
#[cfg(target_os = "none")]
pub mod start;
