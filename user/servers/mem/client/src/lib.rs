//! Client and protocol of the mem server.

#![no_std]
