//! External pagers: memory of one process that another provides, page by page, when it is touched.
//!
//! ```text
//!   client                        kernel                          pager
//!   load or store where  ───────► fault message ────────────────► serve: which page?
//!   nothing is mapped,            to the thread's                    │  new and zero, shared, or a copy
//!   or only for reading           fault endpoint                     ▼
//!   …is tried again     ◄──────── reply: resume  ◄─────────────── map into the client's table
//! ```
//! A client gives the pager a page table of its own address space, which maps 2 MiB ([`REGION_SIZE`]), and directs its
//! page faults to the pager's endpoint. The pager can map into that table and into nothing else; its mistakes harm only
//! those who trust it. Two regions can map the same pages ([`Pager::share`]) for reading, until one of them writes.
//! Then the writer gets a copy, and a region that is the only one left with a page can write it without a copy.
//!
//! ```text
//! pool       pages, and the number of regions that map each  } plain data, tested on the host
//! pager      regions, and the handling of faults in them     }
//! frames     the pager's own frame, cut into pages, and mappings in clients' tables
//! server     the loop that receives faults and requests
//! client     the client's side of regions
//! protocol   the interface
//! ```
//! docs/manual/pagers.md shows both sides at work, and describes the effects of a dead or hostile pager.

#![no_std]

extern crate alloc;

pub mod client;
pub mod frames;
pub mod pager;
pub mod pool;
pub mod protocol;
pub mod server;

pub use client::Region;
pub use frames::Frames;
pub use pager::{Memory, Pager};
pub use pool::{Page, Pool};
pub use protocol::Error;

use tench::abi::memory::{PAGE_SIZE, TABLE_ENTRIES};

/// Size of a region in bytes: the memory that one page table of level 3 maps.
pub const REGION_SIZE: u64 = (TABLE_ENTRIES * PAGE_SIZE) as u64;
