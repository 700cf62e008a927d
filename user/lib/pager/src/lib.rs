//! External pagers: memory of one process that another provides, page by page, when it is touched.
//!
//! ```text
//!   client                        kernel                          pager
//!   load or store where  ───────► fault message ────────────────► serve: which page?
//!   nothing is mapped,            to the thread's                    │  new and zero, shared, or a copy
//!   or only for reading           fault endpoint                     ▼
//!   …is tried again     ◄──────── reply: resume  ◄─────────────── map into the client's table
//! ```
//! A client hands the pager a page table of its own address space, which shows 2 MiB ([`REGION_SIZE`]), and directs its
//! page faults to the pager's endpoint. The pager can map into that table and into nothing else; what it does wrong
//! harms who trusted it. Two regions can show the same pages ([`Pager::share`]): for reading, until one of them writes.
//! Then the writer gets a copy, and whoever has a page to itself gets it back without one.
//!
//! ```text
//! pool       pages and how many regions show each            } plain data, tested on the host
//! pager      regions, and what a fault in one does           }
//! frames     a frame of the pager's own, cut into pages, and mappings in foreign tables
//! server     the loop that receives faults and requests
//! client     regions from the client's side
//! protocol   what travels between them
//! ```
//! docs/manual/pagers.md shows both sides at work, and says what a dead or hostile pager can do.

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

/// Bytes of a region: what one page table of level 3 shows.
pub const REGION_SIZE: u64 = (TABLE_ENTRIES * PAGE_SIZE) as u64;
