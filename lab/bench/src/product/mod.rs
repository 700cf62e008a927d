//! Experiments about what the system needs: its costs, and what must hold under load.

pub mod adversary;
pub mod boot;
pub mod contention;
pub mod cores;
pub mod fault;
pub mod heap;
pub mod ipc;
pub mod isolation;
pub mod latency;
pub mod linux;
pub mod mm;
pub mod paging;
pub mod rpc;
pub mod scale;
pub mod siblings;
pub mod soak;
pub mod spawn;
pub mod spawn_kill;
pub mod stubs;
pub mod threads;
