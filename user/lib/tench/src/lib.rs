//! The user library: runtime, heap, threads, printing, arguments.

#![no_std]
