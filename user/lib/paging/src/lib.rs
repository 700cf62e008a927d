//! Address spaces: which addresses are reserved, what is mapped there, and with which rights.
//!
//! ```text
//!   alloc  alloc_fixed  map  map_fixed  back  unmap  protect  classify
//!                              │
//!                           Paging ─────────────▶ Backend: tables, frames, mappings, slots, memory for metadata
//!          ┌───────────────────┼──────────────┐
//!       regions             shadow        mappings and frames
//!   balanced tree with   arrays like the    one node for each
//!   the largest gap      hardware's tables  kernel object
//! ```
//! One [`Paging`] describes one address space, its own process's or another's. It decides; a [`Backend`] executes. On
//! the target that is the kernel, in tests a model that checks every step.
//!
//! - *Regions* are reserved addresses. Finding free ones, finding the region of an address, adding, dividing and
//!   freeing take O(log n) steps with n regions.
//! - *Mappings* cover up to 512 entries of one page table each. Pages of 2 MiB and 1 GiB are used automatically where
//!   address, offset and size allow. Part of a mapping can be removed or change its rights: the mapping is deleted and
//!   the rest mapped again. Everything needed is reserved before the deletion, and if it still fails, the old mapping
//!   is restored.
//! - *Lazy* regions are populated on the first access, which faults: [`Paging::classify`] returns the meaning of a
//!   fault, [`Paging::populate_page`] maps zeroed memory, and [`Paging::fault`] does both.
//! - *Metadata never runs out within an operation.* Each operation first counts what it can need at worst, and grows
//!   the metadata before it changes anything. The backend provides the memory without using the metadata, so growing
//!   cannot recurse.
//!
//! A call that fails has changed nothing, except where its documentation says so: [`Paging::unmap`] and
//! [`Paging::protect`] of several mappings stop at the one that failed, and can be repeated.

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
