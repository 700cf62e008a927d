//! The memory profiles of R1's applications: while slabs are set up, a program makes the memory requests that the
//! program of the same name makes when it is started on R1's system. So `memctl record` records R1's workload.
//!
//! These programs do not use the objects: a Tench process needs others, of other sizes, which the process server gets
//! for it. The requests have the sizes of R1's, a page as a frame and everything else as untyped memory; the objects
//! stay until the process ends, which frees them.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

use tench_abi::Kind;
use tench_abi::memory::PAGE_SIZE;
use tench_mem_interface::Failure;
use tench_mem_interface::protocol::Error;
use tench_mem_interface::slabs::{Descriptor, Lifetime, Slabs};
pub use tench_slabs::Application;

/// Returns whether slabs are set up.
pub fn is_slab_mode() -> bool {
    !matches!(Slabs::STANDARD.policy(), Err(Failure::Refused(Error::NoSlabs) | Failure::Lost(_)))
}

/// Requests the objects that an application requests when it starts, and keeps. Returns their size in bytes; 0 if no
/// slabs are set up.
pub fn start(application: Application) -> Result<u64, Failure> {
    if !is_slab_mode() {
        return Ok(0);
    }
    let mut bytes = 0;
    for request in application.kept() {
        let kind = if request.size == PAGE_SIZE as u64 { Kind::Frame } else { Kind::Untyped };
        let descriptor = Descriptor { kind, size: request.size.ilog2(), count: request.count };
        Slabs::STANDARD.ask(Lifetime::Dynamic, &[descriptor], None)?;
        bytes += request.bytes();
    }
    Ok(bytes)
}
