//! The system description as init reads it.

#![no_std]
