//! Send, Receive, Reply: the choochoos interface as a library.

#![no_std]
