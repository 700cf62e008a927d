//! Client and protocol of the procs server.

#![no_std]
