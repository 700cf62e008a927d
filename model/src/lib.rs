//! Slow, obvious specification of the kernel, and property tests against it.

#![no_std]
