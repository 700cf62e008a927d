//! Checks that the cores agree about memory. The check ignores the monitors' ledgers, and asks only the kernels.

use tench_abi::Kind;

use crate::core::{BASE, Core, Held, PAGE, POOL_BITS};

/// Use of a page of the machine's memory on one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// No client there can use it.
    None,
    /// A client there can map it.
    Frame,
    /// A client there can make objects of it.
    Memory,
}

/// Returns whether clients hold a capability. Untyped memory of another core is the monitor's own: clients have what
/// was made of it.
fn is_someones(held: &Held) -> bool {
    held.kind == Kind::Frame || !held.is_borrowed
}

/// Returns the use of a page: that of the smallest capability that covers it.
fn used(all: &[Held], page: u64) -> Use {
    let covers = |held: &&Held| held.base <= page && page < held.base + (1 << held.bits);
    let covering: Vec<&Held> = all.iter().filter(covers).filter(|held| is_someones(held)).collect();
    let Some(least) = covering.iter().map(|held| held.bits).min() else { return Use::None };
    let mut smallest = covering.into_iter().filter(|held| held.bits == least).peekable();
    if smallest.clone().any(|held| held.kind == Kind::Frame) {
        // An exported capability alone cannot be mapped.
        let can_be_mapped = smallest.any(|held| held.kind == Kind::Frame && !held.is_exported);
        return if can_be_mapped { Use::Frame } else { Use::None };
    }
    // Clients make smaller things only, so of equal ones each was lent on except perhaps the last.
    if smallest.all(|held| held.is_exported) { Use::None } else { Use::Memory }
}

/// Returns everything that a core has.
fn all(core: &Core, pool: tench_abi::CapAddress) -> Vec<Held> {
    Core::slots().chain([pool]).filter_map(|slot| core.held(slot)).collect()
}

/// Panics if memory has two uses.
pub fn check(cores: &[(usize, &Core, tench_abi::CapAddress)], count: usize) {
    let held: Vec<(usize, Vec<Held>)> = cores.iter().map(|(number, core, pool)| (*number, all(core, *pool))).collect();
    for page in (BASE..BASE + ((count as u64) << POOL_BITS)).step_by(PAGE as usize) {
        let uses: Vec<(usize, Use)> = held.iter().map(|(number, all)| (*number, used(all, page))).collect();
        let memory = uses.iter().filter(|(_, of)| *of == Use::Memory).count();
        let frames = uses.iter().filter(|(_, of)| *of == Use::Frame).count();
        assert!(memory <= 1 && (memory == 0 || frames == 0), "the page at {page:#x} is {uses:?}");
    }
}

/// Returns whether a core has anything usable within a range.
pub fn has(core: &Core, base: u64, bytes: u64) -> bool {
    let lies_in = |held: &Held| base <= held.base && held.base + (1 << held.bits) <= base + bytes;
    let held = Core::slots().filter_map(|slot| core.held(slot));
    held.filter(is_someones).any(|held| lies_in(&held) && !held.is_exported)
}
