//! The register: every experiment, in the order in which they are listed.

use super::product::{adversary, cores, isolation, kernel, latency, linux, memory, processes, scale, stubs};
use super::studies::{latency_model, slabs, srr};
use super::support::Experiment;

/// Every experiment.
pub const EXPERIMENTS: &[Experiment] = &[
    kernel::IPC,
    srr::SRR,
    memory::MM,
    slabs::SLABS_LATENCY,
    kernel::DELETE_SIBLINGS,
    scale::SCALE,
    memory::FAULT,
    slabs::SLABS_RANDOM,
    slabs::SLABS_APPS,
    slabs::SLABS_POLICIES,
    memory::PAGING,
    memory::HEAP,
    processes::SOAK,
    processes::SPAWN_KILL,
    adversary::ADVERSARY,
    stubs::STUBS,
    cores::CORES,
    processes::THREADS,
    processes::RPC,
    processes::CONTENTION,
    isolation::ISOLATION,
    processes::SPAWN,
    linux::SYSCALL,
    kernel::BOOT,
    latency::LATENCY,
    latency_model::LATENCY_MODEL,
    // Last, since what they need may have to be fetched.
    linux::PTHREADS,
    linux::LMBENCH,
];
