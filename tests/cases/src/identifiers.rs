//! Tests with more address spaces than there are identifiers (ASIDs) for them.

use alloc::vec::Vec;

use tench::abi::object::NODE_BITS;
use tench::mem::Mem;
use tench::procs::Procs;
use tench::procs::protocol::State;
use tench::sys::{Cap, CapAddress, CapNode, Kind, Placement, Untyped};

use crate::case::{Case, Outcome};
use crate::stage::Stage;

pub const CASES: &[Case] = &[Case::new(
    "ASI0001",
    "whoever takes all address-space identifiers keeps nobody from making spaces, nor from living there",
    exhausted,
)];

/// Number of nodes, each with as many page-table roots as it has slots: with the existing processes' roots, more than
/// there are identifiers.
const NODES: u32 = 256;
const ROOTS: u64 = 256;
/// Nodes whose roots come from one block of memory, and log2 of its size: 8 KiB a root.
const NODES_OF_BLOCK: u32 = 32;
const BLOCK_BITS: u32 = 26;

/// Uses up all identifiers. Returns the memory of their roots.
fn take_all(stage: &mut Stage, blocks: &mut Vec<(CapAddress, u16)>) -> Outcome {
    let spaces = stage.make::<CapNode>(u64::from(NODE_BITS))?;
    let slot = stage.slot();
    for index in 0..NODES {
        let node: Cap<CapNode> = stage.pool.retype(u64::from(NODE_BITS), slot)?;
        spaces.install_node(index, node)?;
        if index % NODES_OF_BLOCK == 0 {
            let block = Mem::STANDARD.allocate(BLOCK_BITS, stage.slot())?;
            blocks.push((block.untyped.address(), block.number));
        }
        let block = blocks.last().map_or(CapAddress::NULL, |block| block.0);
        // Address 0 names no slot.
        let (first, count) = if index == 0 { (1, ROOTS - 1) } else { (0, ROOTS) };
        let first = CapAddress::new(index, first);
        let block = Cap::<Untyped>::new(block);
        block.retype_many(Kind::PageTable, 0, count, Placement::Watermark, spaces, first)?;
    }
    Ok(())
}

/// Runs processes at the same time in address spaces for which there is no identifier left.
fn live() -> Outcome {
    let mut children = Vec::with_capacity(3);
    for _ in 0..3 {
        children.push(Procs::STANDARD.prepare("hello")?.start()?);
    }
    for child in children {
        let end = Procs::STANDARD.wait(child)?;
        equal!((end.state, end.detail), (State::Exited, 0));
    }
    Ok(())
}

fn exhausted(stage: &mut Stage) -> Outcome {
    let mut blocks = Vec::with_capacity(16);
    let outcome = take_all(stage, &mut blocks).and_then(|()| live());
    for (untyped, number) in blocks {
        Cap::<Untyped>::new(untyped).revoke()?;
        Mem::STANDARD.free(number)?;
    }
    outcome?;
    live()
}
