//! The memory profiles of R1's applications: while slabs are set up, a program makes the memory requests that the
//! program of the same name makes when it is started on R1's system. So `memctl record` records R1's workload.
//!
//! These programs do not use the objects: a Tench process needs others, of other sizes, which the process server gets
//! for it. The requests have the sizes of R1's, a page as a frame and everything else as untyped memory; the objects
//! stay until the process ends, which frees them.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

use alloc::vec::Vec;

use tench_abi::Kind;
use tench_abi::memory::PAGE_SIZE;
use tench_mem_interface::Failure;
use tench_mem_interface::protocol::Error;
use tench_mem_interface::slabs::{Descriptor, Lifetime, Slabs};
pub use tench_slabs::Application;
use tench_slabs::{Request, Trace};

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
    let trace = application.start();
    let freed = application.freed_while_running();
    let kept =
        trace.requests().iter().enumerate().filter(|(number, _)| !freed.iter().any(|range| range.contains(number)));
    let mut bytes = 0;
    for (_, request) in kept {
        let descriptors = descriptors(&trace, request);
        if !descriptors.is_empty() {
            Slabs::STANDARD.ask(Lifetime::Dynamic, &descriptors, None)?;
            bytes += descriptors.iter().filter_map(|one| Some(one.object_size()? * u64::from(one.count))).sum::<u64>();
        }
    }
    Ok(bytes)
}

/// Returns the descriptors of a request.
fn descriptors(trace: &Trace, request: &Request) -> Vec<Descriptor> {
    let Request::Alloc { bundle, .. } = request else { return Vec::new() };
    let of = |one: &tench_slabs::Descriptor| Descriptor {
        kind: if one.size == PAGE_SIZE as u64 { Kind::Frame } else { Kind::Untyped },
        size: one.size.ilog2(),
        count: one.count,
    };
    trace.bundle(bundle).iter().map(of).collect()
}
