//! The kernel on AArch64.

#![no_std]
