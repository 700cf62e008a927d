//! Client and protocol of the names server.

#![no_std]
