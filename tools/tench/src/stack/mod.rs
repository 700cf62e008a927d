//! How deep the kernel's stacks can get: a bound that holds for every path through the machine code, whether a test
//! takes it or not.
//!
//! ```text
//!  instruction  what one instruction does to the stack pointer and to the flow of control
//!  code         the machine code, its functions, and which of them have their addresses taken
//!  walk         one procedure: its own depth, and its calls
//!  calls        the calls together: the deepest chain from each entry
//! ```
//! A call through a pointer may lead to any function whose address an instruction takes; that of the table of
//! operations, to any whose address a constant holds. Recursion has no bound, so it is a fault.
//!
//! Where the kernel admits interrupts, a handler's depth is added. At most [`INTERRUPTS`] are in progress: see
//! "Interrupts in handlers" in `docs/manual/latency.md`.

mod calls;
mod code;
mod instruction;
mod walk;

use std::path::Path;

use miette::Result;
use tench_abi::Operation;

use crate::workspace;
use calls::Calls;
use code::Code;

/// Largest number of interrupts in progress: the timer's, which alone admits others and is masked meanwhile, and one
/// more.
const INTERRUPTS: usize = 2;
/// Vector of interrupts in the kernel.
const INTERRUPT: &str = "el1_irq";

/// A way to use a stack.
struct Entry {
    /// Name for people.
    name: &'static str,
    /// Symbol, or part of the mangled one.
    symbol: &'static str,
    /// Interrupts in progress from the beginning.
    interrupts: usize,
    /// The stack.
    stack: Stack,
}

/// Kinds of stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// A thread's, in its object.
    Thread,
    /// The one for reports of fatal exceptions.
    Fatal,
    /// The one on which the kernel boots.
    Boot,
}

impl Stack {
    /// Returns the symbols of its two ends.
    fn ends(self) -> [&'static str; 2] {
        match self {
            Stack::Thread => ["tench_thread_stack_bottom", "tench_thread_stack_top"],
            Stack::Fatal => ["tench_fatal_stack_bottom", "tench_fatal_stack_top"],
            Stack::Boot => ["tench_boot_stack_bottom", "tench_boot_stack_top"],
        }
    }
}

const ENTRIES: [Entry; 7] = [
    Entry { name: "a system call", symbol: "el0_sync", interrupts: 0, stack: Stack::Thread },
    Entry { name: "a fault", symbol: "el0_exception", interrupts: 0, stack: Stack::Thread },
    Entry { name: "an interrupt", symbol: "el0_irq", interrupts: 1, stack: Stack::Thread },
    Entry { name: "the idle thread", symbol: "4idle9idle_loop", interrupts: 1, stack: Stack::Thread },
    Entry { name: "a fatal exception", symbol: "fatal_common", interrupts: INTERRUPTS, stack: Stack::Fatal },
    Entry { name: "a report", symbol: "tench_report", interrupts: INTERRUPTS, stack: Stack::Fatal },
    Entry { name: "the bootstrap", symbol: "tench_boot", interrupts: INTERRUPTS, stack: Stack::Boot },
];

/// The bound for an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Name of the entry.
    pub name: &'static str,
    /// The stack that the entry uses.
    pub stack: Stack,
    /// Deepest use in bytes.
    pub bytes: u64,
    /// Size of the stack in bytes.
    pub space: u64,
    /// Calls of the deepest chain: depth in bytes and name.
    pub chain: Vec<(u64, String)>,
}

/// Returns the bounds of the kernel at `path`, and sentences about what has none.
pub fn bounds(path: &Path) -> Result<(Vec<Bound>, Vec<String>)> {
    let code = Code::parse(&workspace::read_file(path)?)?;
    let addresses = ENTRIES.iter().map(|entry| code.symbol_with(entry.symbol)).collect::<Result<Vec<u64>>>()?;
    let mut calls = Calls::new(&code, code.symbol(INTERRUPT)?, &addresses);
    let mut bounds = Vec::new();
    for (entry, address) in ENTRIES.iter().zip(addresses) {
        let [bottom, top] = entry.stack.ends();
        bounds.push(Bound {
            name: entry.name,
            bytes: calls.depth(address, entry.interrupts).unsigned_abs(),
            space: code.symbol(top)? - code.symbol(bottom)?,
            chain: calls.chain(address, entry.interrupts),
            stack: entry.stack,
        });
    }
    let mut faults: Vec<String> = calls.faults.into_iter().collect();
    if code.in_constants.len() != Operation::LIMIT {
        faults.push("constants hold addresses of other functions than the operations".to_owned());
    }
    Ok((bounds, faults))
}

/// Returns the bound for the threads' stacks in bytes.
pub fn of_threads(bounds: &[Bound]) -> u64 {
    let on_threads = bounds.iter().filter(|bound| bound.stack == Stack::Thread);
    on_threads.map(|bound| bound.bytes).max().unwrap_or_default()
}

impl Bound {
    /// Returns a sentence about a stack that is too small, with the calls that take it deepest.
    pub fn complaint(&self) -> Option<String> {
        let calls = self.chain.iter().map(|(bytes, name)| format!("\n{bytes:6}  {name}")).collect::<String>();
        let Bound { name, bytes, space, .. } = self;
        (bytes > space).then(|| format!("{name} can need {bytes} bytes of a stack that has {space}:{calls}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_that_is_too_small_is_complained_about() {
        let chain = vec![(48, "first".to_owned()), (16, "second".to_owned())];
        let bound = |space| Bound { name: "a fault", stack: Stack::Thread, bytes: 64, space, chain: chain.clone() };
        assert_eq!(bound(64).complaint(), None);
        let expected = "a fault can need 64 bytes of a stack that has 63:\n    48  first\n    16  second";
        assert_eq!(bound(63).complaint().as_deref(), Some(expected));
        assert_eq!(of_threads(&[bound(64), Bound { stack: Stack::Fatal, bytes: 80, ..bound(96) }]), 64);
    }
}
