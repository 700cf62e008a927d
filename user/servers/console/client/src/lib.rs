//! Client and protocol of the console server.

#![no_std]
