//! How the monitors of several cores agree about capabilities that left their core.
//!
//! Each core's kernel knows the capabilities of that core alone. A capability that is sent to another core becomes a
//! *foreign copy* there; its object keeps one *owner*, the core in whose derivation tree the original lies, and
//! whatever is to happen to the object the owner puts in order. This crate is what the monitors say to each other about
//! it, as a state machine: [`Machine::step`] takes an [`Input`] and has [`Effects`], and there is no clock, no waiting,
//! and no memory that grows. The monitors drive it, and so do the tests.
//!
//! Three kinds of objects can leave. *Frames* and *endpoints* are shared: any core can have copies. *Untyped memory* is
//! lent: to one core at a time, which makes objects of it as of its own memory and owns those; it can send them on,
//! also to the lender. What was borrowed cannot be sent on as it is. An endpoint and each badge of it are objects of
//! their own, since each is revoked alone.
//!
//! # Messages
//!
//! ```text
//! sending one's own             sending a foreign copy             revoking
//!
//! owner            holder       holder    owner     other          owner   borrower    other
//!   │    Grant (1)    │           │  Ask    │         │              │ Withdraw │          │
//!   ├────────────────►│ import    ├────────►│ Grant   │              ├─────────►│ Withdraw │  of all that was made
//!   │    Taken (1)    │           │         ├────────►│ import       │          ├─────────►│  of it and sent on
//!   │◄────────────────┤           │         │  Taken  │              │          │          ├─╮
//!   ┊                 ┊           │ Answer  │◄────────┤              │          │Withdrawn │◄╯ delete, deleted
//!   │   Release (1)   │           │◄────────┤         │              │          │◄─────────┤
//!   │  ╭──────────────┤ close                                        │          ├─╮
//!   │ Grant (2)       │           a core is lost                     │Withdrawn │◄╯ delete, deleted
//!   ├─────────────────│─►                                            │◄─────────┤
//!   │◄─╯              │ import    any ── Gone ──► all others         │ unexport, answer
//! ```
//! Channels deliver in order. That and the counts are all that holds the protocol together:
//! - *Grants are counted*, for each object and holder. A `Release` says up to which count nothing is left; the owner
//!   forgets the holder only if that was the last it sent. So a release that crosses a new copy (above, right to left)
//!   does not drop it.
//! - *Only the owner grants.* From a `Withdraw` to the `Withdrawn` that answers it the owner sends no copy, and all it
//!   sent before has arrived before. So after the answer no copy is left, and none is on its way.
//! - *Each `Withdraw` is answered once*, also if a release crossed it; the owner then waits for that answer and lets
//!   the release be.
//! - *A name is given once*: with the generation of its place, so that what comes late names nothing.
//!
//! What is being withdrawn counts as deleted: new requests for it, or to send what was made of it, get
//! [`Error::BeingRevoked`].
//!
//! # Nobody waits for ever
//!
//! A monitor never waits in the middle of a step, so what can wait is the withdrawal of an object: the owner's, until
//! the holders have withdrawn; the holder's, until what was made there of the object, and sent on, is withdrawn. The
//! former waits for the same object on another core, the latter for objects that were derived from it; derivation has
//! no circles, even if it goes from core to core and back, so neither has waiting. That memory of the same extent can
//! lie in a tree several times (lent, lent back, lent again) is why each export notes what it was made of, when it is
//! first sent: the innermost borrowed memory around it, of equal ones the last that came.
//!
//! A core that is slow delays only sends to it and withdrawals of what it has. [`Input::GiveBack`] is answered at once,
//! all else when the cores concerned have answered. Deleting the owner's last capability waits for nothing: the
//! stand-in keeps the object alive until the last foreign copy is released, and then the memory is free
//! ([`Effects::unexport`]).
//!
//! # A core that is lost
//!
//! has stopped for good. Its requests are dropped; requests that need it are answered ([`Error::CoreLost`],
//! [`Error::OwnerLost`]); the copies it had count as withdrawn. Copies of *its* objects are withdrawn everywhere,
//! memory that was borrowed from it too: it may in turn have borrowed that from a core that wants it back.
//!
//! Memory that was lent to it returns, but not at once, since it may have made objects of that and sent them to cores
//! that the lender does not know of. Each core that has heard of the loss, and has nothing left of the lost core's
//! objects, says so to all others (`Gone`). Memory is *tainted* by the lost cores to which it, or part of it, was lent,
//! and is reused only when all that are alive have said `Gone` for each of those. `Withdrawn` and `Gone` carry the
//! taints of what they speak of, because one lost core may have lent to another. The wait is the lender's that reuses
//! the memory. A borrower that withdraws memory on another's behalf does not wait (two of them could wait for each
//! other): it *gives up* what it had lent on to the lost core, keeps its stand-in until the memory around it is
//! deleted, and passes on the taint. A slow core thus delays the return of memory from a lost one, for it may be the
//! one that has a copy.
//!
//! # What the kernel and the monitor have to do
//!
//! - A local revocation that meets a stand-in deletes what else it finds and then says `ForeignCopies`; whoever revokes
//!   asks the monitor ([`Input::Revoke`]) and begins anew. (If it stopped at the stand-in, the other holders on this
//!   core could send the object again and again.)
//! - Untyped memory with a stand-in is not retyped, split or made a stand-in of again; memory with children cannot get
//!   one.
//! - [`Effects::import`] refuses memory that overlaps something on this core, but what this core has lent. What a
//!   monitor says about memory that it owns is otherwise believed.
//! - When a copy or a stand-in went, the kernel is asked again whether the root around it is unused
//!   ([`Input::Unused`]).
//! - Clients share [`Limits::requests`]; how many one may have is the monitor's business.
//!
//! # What a monitor that says anything can do
//!
//! It can take back or keep what was lent to it or by it, fill the table of foreign objects, and keep memory from being
//! reused that it or a lost core had. It gets no more rights than it was sent, and reaches no object that it never had.
//! A [`Fault`] names it. A peer for which more waits to be sent than [`Limits::messages`] does not keep to the
//! protocol, and is treated as lost.
//!
//! # How it is tested
//!
//! `tests/exhaustive.rs` makes everything happen in every order, for two to four cores and short scripts;
//! `tests/walks.rs` long random scripts; `tests/hostile.rs` a monitor that says anything. The judge is
//! `tests/world/judge.rs`: in every state no memory is two things, one core can retype it, the books agree with the
//! kernels; a revocation is answered when nothing is left, and nothing appears afterwards; in the end all is answered,
//! once, and all books are equal.

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
