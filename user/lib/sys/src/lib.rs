//! Raw system calls, typed capabilities and the message builder.

#![no_std]
