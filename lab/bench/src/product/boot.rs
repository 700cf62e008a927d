//! The time until the system is up.

use alloc::format;
use alloc::string::String;

use tench::abi::object::Statistic;
use tench::time::instructions;

use crate::support::{KERNEL, figure};

/// Prints the counter, which starts at the kernel's first instruction, so it reads what booting took. This program is
/// started where the shell would be: after all servers are ready.
pub fn run() -> Result<(), String> {
    let now = instructions();
    let query = |statistic| KERNEL.query(statistic).map_err(|error| format!("asking the kernel: {error}"));
    figure("kernel_to_user", query(Statistic::BootInstructions)?);
    figure("kernel_to_prompt", now);
    figure("idle_ticks", query(Statistic::IdleTicks)?);
    figure("deepest_kernel_stack_bytes", query(Statistic::DeepestStack)?);
    Ok(())
}
