//! Address spaces from the outside: which addresses are taken, what is mapped there, and how.
//!
//! ```text
//!   alloc  alloc_fixed  map  map_fixed  back  unmap  protect  classify
//!                              │
//!                           Paging ─────────────▶ Backend: tables, frames, mappings, slots, memory for the books
//!          ┌───────────────────┼──────────────┐
//!       regions             shadow        mappings and frames
//!   balanced tree with   arrays like the    one node for each
//!   the largest gap      hardware's tables  kernel object
//! ```
//! One [`Paging`] describes one address space, its own process's or another's. It decides; a [`Backend`] carries out.
//! On the target that is the kernel, in tests a model that checks every step.
//!
//! - *Regions* are reserved addresses. Finding free ones, finding what an address belongs to, adding, dividing and
//!   freeing take O(log n) steps with n regions.
//! - *Mappings* cover up to 512 entries of one page table each. Pages of 2 MiB and 1 GiB are used by themselves where
//!   address, offset and size allow. Part of a mapping can go or change its rights: the mapping is deleted and the rest
//!   mapped again. Everything that this takes is there before the deletion, and if it still fails, the old mapping is
//!   made again.
//! - *Lazily backed* regions find their memory on the first access, which faults: [`Paging::classify`] says what a
//!   fault means, [`Paging::back`] maps zeroed memory, and [`Paging::fault`] does both.
//! - *Books never run out within an operation.* Each operation counts first what it can need at worst, and has the
//!   books grow before it changes anything. Growing is the backend's affair and does not use the books, so it cannot
//!   nest.
//!
//! A call that fails has changed nothing, except where it says so: [`Paging::unmap`] and [`Paging::protect`] of several
//! mappings stop at the one that failed, and can be repeated.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod backend;
mod change;
mod demand;
mod mapping;
mod paging;
pub mod pool;
mod regions;
mod reserve;
mod shadow;
mod types;

pub use backend::{Backend, Object, Run};
pub use demand::RUN_SIZE;
pub use paging::Paging;
pub use regions::{Kind, Region};
pub use tench_abi::memory::MapFlags;
pub use types::{Account, Error, FrameCap, Request, Verdict};
