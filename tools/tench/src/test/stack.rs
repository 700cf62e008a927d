//! A test of the kernels' files: no stack of a kernel can overflow, on whichever path.
//!
//! Besides, each operation checks a word at the end of its stack on the target, and `lab boot` records how deep stacks
//! have been. Both only see what happens.

use miette::Result;

use super::Target;
use super::report::Report;
use super::resident::SYSTEM;
use crate::build::Kernel;
use crate::stack;

/// Runs the test.
pub fn run(target: &Target, report: &Report) -> Result<()> {
    let (system, build) = target.get(SYSTEM)?;
    for kernel in Kernel::ALL {
        let name = format!("stack/{}", kernel.name());
        let build = build.clone().with_kernel(target.workspace, target.packages()?, &system, kernel)?;
        let (bounds, mut faults) = stack::bounds(build.kernel(&system)?)?;
        faults.extend(bounds.iter().filter_map(stack::Bound::complaint));
        if faults.is_empty() {
            report.passed(&name);
        } else {
            report.failed(&name, &faults.join("\n"));
        }
    }
    Ok(())
}
