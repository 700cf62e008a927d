//! Kernel semantics, generic over the architecture, testable on the host.

#![no_std]
