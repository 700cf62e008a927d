//! The process information block, which a program finds at its start.

use core::mem::offset_of;

use tench_abi::memory::PAGE_SIZE;
use tench_abi::process::{INFO_PAGES, Info, MAGIC, Segment as SegmentInfo};
use tench_procs_interface::protocol::Defect;

use crate::addresses::Addresses;
use crate::program::Program;

/// Size of the block in bytes.
pub const BLOCK_SIZE: usize = INFO_PAGES * PAGE_SIZE;
/// Maximum size in bytes of a program's name, arguments and environment together.
pub const TEXT_SIZE: usize = BLOCK_SIZE - size_of::<Info>();

/// Contents of the block that do not come from the program's file.
#[derive(Clone, Copy, Debug)]
pub struct Description<'a> {
    /// Process identifier.
    pub pid: u64,
    /// Argument 0.
    pub name: &'a str,
    /// The other arguments, each terminated by a zero byte.
    pub arguments: &'a [u8],
    /// The environment, each entry terminated by a zero byte.
    pub environment: &'a [u8],
    /// Number of capabilities in the slots from `EXTRA` on.
    pub extra_count: u64,
    /// Ticks of the system counter per second.
    pub counter_frequency: u64,
    /// Addresses of the parts of the address space.
    pub addresses: Addresses,
}

/// The initial stack of a process, all of which is mapped; the page below it never is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Lowest address.
    pub bottom: u64,
    /// One past the highest address.
    pub top: u64,
    /// Size in bytes of the stack that the program then makes itself; 0 if it makes none.
    pub own: u64,
}

impl Stack {
    /// Returns the stack's size in bytes.
    pub const fn size(&self) -> u64 {
        self.top - self.bottom
    }
}

/// Writes the block into `block`, which must be zero. Returns the number of bytes in use.
pub fn write(block: &mut [u8; BLOCK_SIZE], program: &Program, given: &Description) -> Result<usize, Defect> {
    let arguments_offset = size_of::<Info>();
    let mut text = Text { block, end: arguments_offset };
    text.append(given.name.as_bytes())?;
    text.append(&[0])?;
    text.append(given.arguments)?;
    text.end_string(given.arguments)?;
    let environment_offset = text.end;
    text.append(given.environment)?;
    text.end_string(given.environment)?;
    let end = text.end;

    let mut field = |offset: usize, value: u64| block[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
    field(offset_of!(Info, magic), MAGIC);
    field(offset_of!(Info, pid), given.pid);
    field(offset_of!(Info, argument_count), 1 + strings(given.arguments));
    field(offset_of!(Info, arguments_offset), arguments_offset as u64);
    field(offset_of!(Info, environment_count), strings(given.environment));
    field(offset_of!(Info, environment_offset), environment_offset as u64);
    field(offset_of!(Info, extra_count), given.extra_count);
    field(offset_of!(Info, counter_frequency), given.counter_frequency);
    let addresses = &given.addresses;
    field(offset_of!(Info, stack_bottom), addresses.stack.bottom);
    field(offset_of!(Info, stack_top), addresses.stack.top);
    field(offset_of!(Info, own_stack), addresses.stack.own);
    field(offset_of!(Info, ipc_buffer), addresses.messages);
    field(offset_of!(Info, dynamic), addresses.dynamic);
    field(offset_of!(Info, metadata), addresses.metadata);
    field(offset_of!(Info, bias), program.bias);
    for (index, random) in addresses.random.iter().enumerate() {
        field(offset_of!(Info, random) + index * 8, *random);
    }
    field(offset_of!(Info, segment_count), program.segments.len() as u64);
    for (index, segment) in program.segments.iter().enumerate() {
        let start = offset_of!(Info, segments) + index * size_of::<SegmentInfo>();
        field(start + offset_of!(SegmentInfo, address), segment.address);
        field(start + offset_of!(SegmentInfo, size), segment.size);
        field(start + offset_of!(SegmentInfo, flags), segment.flags.bits());
    }
    Ok(end)
}

/// Returns the number of strings in `text`; the last one may lack its zero byte.
fn strings(text: &[u8]) -> u64 {
    let ended = text.iter().filter(|&&byte| byte == 0).count() as u64;
    ended + u64::from(text.last().is_some_and(|&last| last != 0))
}

/// The strings at the end of the block, while they are being added.
struct Text<'a> {
    block: &'a mut [u8; BLOCK_SIZE],
    end: usize,
}

impl Text<'_> {
    fn append(&mut self, bytes: &[u8]) -> Result<(), Defect> {
        let end = self.end + bytes.len();
        self.block.get_mut(self.end..end).ok_or(Defect::ArgumentsTooLong)?.copy_from_slice(bytes);
        self.end = end;
        Ok(())
    }

    /// Adds the terminating zero byte if the last string of `text` lacks it.
    fn end_string(&mut self, text: &[u8]) -> Result<(), Defect> {
        if text.last().is_some_and(|&last| last != 0) { self.append(&[0]) } else { Ok(()) }
    }
}
