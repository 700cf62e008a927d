//! The sockets of Linux processes.
//!
//! [`Sockets`] has all sockets: those of the family `AF_UNIX`, and those of `AF_INET` and `AF_INET6` as far as the
//! network of one machine goes, which is loopback. There are no packets: what is sent lies in the receiver's queue at
//! once, and a connection is made by the call that asks for it.
//!
//! ```text
//!  connect → [connections] → accept          Both sides know each other;
//!  send → [bytes, messages] → receive        the queue is the receiver's.
//! ```
//!
//! Nothing here waits, or knows processes, descriptors or files. The caller has these tasks:
//!
//! - An operation that would wait says for [which event](Refusal::Waits) of which socket; it is made again after that.
//!   [`Sockets::take_events`] says what has happened.
//! - [Addresses](address) are parsed before. A path is looked up, and the node found is a [`Target::Node`]; its key is
//!   any number that no other node has meanwhile.
//! - Rights (open files) that are sent are values of a type `R`, which this crate only keeps. Those that nobody can
//!   receive any more are returned by [`Sockets::take_rights`]. Sockets that only hold each other, as rights in their
//!   queues, are found by [`Sockets::collect`].
//!
//! Behaviour that looks strange is Linux's, with whose sockets the tests compare this crate. What differs: a closed
//! connection leaves nothing behind that keeps its port (`TIME_WAIT`). `connect` succeeds or fails at once, or waits
//! for room in the listener's queue; after [`Sockets::attempt`], the program learns the result later. A connection of
//! TCP takes [a fixed number of bytes](Sockets::TCP_BYTES) unless options say otherwise. There is no urgent data.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod address;
mod check;
pub mod control;
mod creation;
mod garbage;
mod internet;
pub mod numbers;
mod options;
mod parts;
mod ports;
mod queue;
mod readiness;
mod socket;
mod sockets;
mod tcp;
mod transfer;
mod udp;
mod unix;
mod unix_transfer;

pub use control::Credentials;
pub use garbage::SentFile;
pub use options::OptionValue;
pub use readiness::Readiness;
pub use sockets::{Event, Limits, Refusal, SocketId, Sockets, Target};
pub use tench_linux_calls::Errno;
pub use transfer::{Message, Received, Sender};
