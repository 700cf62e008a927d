//! The memory profiles of R1's applications: while slabs are set up, a program of ours asks for what the program of the
//! same name asks for when it is started on R1's system. So what `memctl record` writes down is R1's workload.
//!
//! The objects are not what these programs live on: a process of ours needs others, of other sizes, which the process
//! server gets for it. They are asked for as they are there, a page as a frame and everything else as untyped memory of
//! its size, and stay until the process ends, which gives them back.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

use alloc::vec::Vec;

use tench_abi::Kind;
use tench_abi::memory::PAGE_SIZE;
use tench_mem_client::Failure;
use tench_mem_client::protocol::Error;
use tench_mem_client::slabs::{Descriptor, Lifetime, Slabs};
pub use tench_slabs::Application;
use tench_slabs::{Request, Trace};

/// Whether slabs are set up.
pub fn is_slab_mode() -> bool {
    !matches!(Slabs::STANDARD.policy(), Err(Failure::Refused(Error::NoSlabs) | Failure::Lost(_)))
}

/// Asks for what an application asks for when it starts, and keeps. Answers the bytes; 0 if no slabs are set up.
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

/// What a request asks for.
fn descriptors(trace: &Trace, request: &Request) -> Vec<Descriptor> {
    let Request::Alloc { bundle, .. } = request else { return Vec::new() };
    let of = |one: &tench_slabs::Descriptor| Descriptor {
        kind: if one.size == PAGE_SIZE as u64 { Kind::Frame } else { Kind::Untyped },
        size: one.size.ilog2(),
        count: one.count,
    };
    trace.bundle(bundle).iter().map(of).collect()
}
