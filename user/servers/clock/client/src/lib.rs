//! Client and protocol of the clock server.

#![no_std]
