//! Experiments about what the system needs: its costs, and what must hold under load.

pub mod adversary;
pub mod cores;
pub mod isolation;
pub mod kernel;
pub mod latency;
pub mod linux;
pub mod memory;
pub mod processes;
pub mod scale;
pub mod stubs;
