//! The shell reads lines and runs commands and programs.
//!
//! ```text
//!  bytes ──► editor ──► line ──► parse ──► pipelines ──► launch ──► commands ──► system ──► servers, kernel
//!               ▲                                          │  └─────► jobs ─────────┘
//!               └─────────────── completion ◄──────────────┘
//! ```
//! Everything up to the trait [`system::System`] is free of system calls and tested on the host, with a fake system.
//! `live.rs` of the program implements the real one.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod commands;
pub mod completion;
pub mod editor;
pub mod effective_settings;
pub mod format;
mod jobs;
mod launch;
pub mod parse;
pub mod picture;
mod reading;
pub mod shell;
pub mod suggest;
pub mod system;

pub use commands::words_of;
