//! The kernel on the host: object memory is a buffer, address spaces are maps, time is a counter.

#![no_std]
