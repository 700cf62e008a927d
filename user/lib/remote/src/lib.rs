//! Remote capabilities: the protocol of the monitors of several cores about capabilities that were sent to other cores.
//!
//! Each core's kernel knows the capabilities of that core alone. A capability that is sent to another core becomes a
//! *remote copy* there; its object keeps one *owner*, the core in whose derivation tree the original lies, and the
//! owner serialises all operations on the object. This crate is the monitors' protocol about it, as a state machine:
//! [`Machine::step`] takes an [`Input`] and has [`Effects`], and there is no clock, no waiting, and no memory that
//! grows. The monitors drive it, and so do the tests.
//!
//! Only memory is exported. *Frames* are shared: any core can have copies. *Untyped memory* is lent: to one core at a
//! time, which makes objects from it as from its own memory and owns those; it can send them on, also to the lender.
//! Borrowed memory itself cannot be sent on. (Endpoints and notifications stay on their core, and have proxies on
//! others.)
//!
//! # Messages
//!
//! ```text
//! sending one's own             sending a remote copy              revoking
//!
//! owner            holder       holder    owner     other          owner   borrower    other
//!   │    Grant (1)    │           │  Ask    │         │              │ Withdraw │          │
//!   ├────────────────►│ import    ├────────►│ Grant   │              ├─────────►│ Withdraw │  of all that was made
//!   │    Taken (1)    │           │         ├────────►│ import       │          ├─────────►│  of it and sent on
//!   │◄────────────────┤           │         │  Taken  │              │          │          ├─╮
//!   ┊                 ┊           │ Reply   │◄────────┤              │          │Withdrawn │◄╯ delete, deleted
//!   │   Release (1)   │           │◄────────┤         │              │          │◄─────────┤
//!   │  ╭──────────────┤ close                                        │          ├─╮
//!   │ Grant (2)       │           a core is lost                     │Withdrawn │◄╯ delete, deleted
//!   ├─────────────────│─►                                            │◄─────────┤
//!   │◄─╯              │ import    any ── Gone ──► all others         │ unexport, reply
//! ```
//! Channels deliver in order. The protocol relies on that and on the counts alone:
//! - *Grants are counted*, for each object and holder. A `Release` says up to which count nothing is left; the owner
//!   forgets the holder only if that was the last copy it sent. So a release that crosses a new copy (above, right to
//!   left) does not drop that copy.
//! - *Only the owner grants.* From a `Withdraw` to its `Withdrawn` the owner sends no copy, and everything it sent
//!   before arrives before. So after the reply no copy is left, and none is on its way.
//! - *Each `Withdraw` gets one reply*, even if a release crossed it; the owner then waits for that reply and ignores
//!   the release.
//! - *A name is assigned once*: with the generation of its table entry, so that late messages name nothing.
//!
//! An object that is being withdrawn counts as deleted: new requests for it, or to send an object made from it, fail
//! with [`Error::BeingRevoked`].
//!
//! # Freedom from deadlock
//!
//! A monitor never waits in the middle of a step, so only the withdrawal of an object can wait: the owner's, until the
//! holders have withdrawn; the holder's, until the objects made there from it, and sent on, are withdrawn. The former
//! waits for the same object on another core, the latter for objects derived from it; derivation has no cycles, even if
//! it goes from core to core and back, so neither has waiting. Memory of the same extent can lie in a tree several
//! times (lent, lent back, lent again), so each export notes, when it is first sent, from what it was made: the
//! innermost borrowed memory around it, of equal ones the last that came.
//!
//! A slow core delays only sends to it and withdrawals of objects that it has. [`Input::GiveBack`] gets its reply at
//! once, all else when the cores concerned have replied. Deleting the owner's last capability waits for nothing: the
//! exported capability keeps the object alive until the last remote copy is released, and then the memory is free
//! ([`Effects::unexport`]).
//!
//! # Lost cores
//!
//! A lost core has stopped for good. Its requests are dropped; requests that need it fail ([`Error::CoreLost`],
//! [`Error::OwnerLost`]); the copies it had count as withdrawn. Copies of *its* objects are withdrawn everywhere, also
//! memory that was borrowed from it: it may in turn have borrowed that from a core that wants it back.
//!
//! Memory that was lent to it returns, but not at once, since it may have made objects from it and sent them to cores
//! that the lender does not know of. Each core that has heard of the loss, and has nothing left of the lost core's
//! objects, tells all others (`Gone`). Memory is *tainted* by the lost cores to which it, or part of it, was lent, and
//! is reused only when all live cores have sent `Gone` for each of those. `Withdrawn` and `Gone` carry the taints of
//! the objects that they are about, because one lost core may have lent to another. The lender that reuses the memory
//! has to wait. A borrower that withdraws memory on another core's behalf does not wait (two of them could wait for
//! each other): it *gives up* what it had lent on to the lost core, keeps its exported capability until the memory
//! around it is deleted, and passes on the taint. A slow core thus delays the return of memory from a lost one, for it
//! may be the one that has a copy.
//!
//! # Duties of the kernel and the monitor
//!
//! - A local revocation that meets an exported capability deletes everything else it finds and then fails with
//!   `RemoteCopies`; the revoking client asks the monitor ([`Input::Revoke`]) and begins anew. (If it stopped at the
//!   exported capability, the other holders on this core could send the object again and again.)
//! - Exported untyped memory cannot be retyped, split or exported again; memory with children cannot be exported.
//! - [`Effects::import`] refuses memory that overlaps an object on this core, except memory that this core has lent. A
//!   monitor is otherwise trusted about memory that it owns.
//! - When a copy or an exported capability is deleted, the kernel is asked again whether the root around it is unused
//!   ([`Input::Unused`]).
//! - Clients share [`Limits::requests`]; the monitor decides how many one client may have.
//!
//! # What a malicious monitor can do
//!
//! A malicious monitor can take back or keep memory that was lent to it or by it, fill the table of remote objects, and
//! keep memory that it or a lost core had from being reused. It gets no more rights than it was sent, and reaches no
//! object that it never had. A [`Fault`] names it. A peer with a queue of outgoing messages longer than
//! [`Limits::messages`] violates the protocol, and is treated as lost.
//!
//! # How it is tested
//!
//! `tests/exhaustive.rs` tries all events in all orders, for two to four cores and short scripts; `tests/walks.rs` runs
//! long random scripts; `tests/hostile.rs` has a malicious monitor. The oracle is `tests/world/judge.rs`: in every
//! state no memory is two things, one core can retype it, and the tables agree with the kernels; a revocation gets its
//! reply when nothing is left, and nothing appears afterwards; in the end every request has got one reply, and all
//! tables are consistent.

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
pub use error::{Error, Fault, FaultKind};
pub use exports::{Export, Holder};
pub use machine::{Effects, Input, Limits, Machine};
pub use message::{Malformed, Message, WORDS};
pub use object::{Core, Cores, Kind, MAX_CORES, ObjectId, RequestId, Send, Sent, Shape, Token};
