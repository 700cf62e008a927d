//! How the monitors of several cores agree about capabilities that left their core.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod asks;
mod copies;
mod error;
mod exports;
mod holder;
mod loss;
mod losses;
mod machine;
mod message;
mod object;
mod owner;
mod requests;

pub use copies::{Copy, Stage};
pub use error::{Error, Fault, Why};
pub use exports::{Export, Holder};
pub use machine::{Effects, Input, Limits, Machine};
pub use message::{Malformed, Message, WORDS};
pub use object::{Core, Cores, Kind, MAX_CORES, ObjectId, RequestId, Send, Sent, Shape, Token};
