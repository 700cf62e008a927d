//! Textual descriptions of faults.
//!
//! The kernel reports the address and the instruction; this module knows the layout of the process.

use core::fmt;

use arrayvec::ArrayVec;
use tench_abi::fault::{Access, Class, Report};
use tench_abi::layout::address;
use tench_abi::memory::{MapFlags, PAGE_SIZE, USER_END};
use tench_abi::message::IPC_BUFFER_SIZE;
use tench_abi::process::{INFO_PAGES, MAX_SEGMENTS};
use tench_procs_interface::protocol::{FaultKind, RegionKind};

use crate::information::Description;
use crate::program::Program;

const PAGE: u64 = PAGE_SIZE as u64;

/// A part of a process's address space that the loader made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// First address.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
    /// Rights.
    pub flags: MapFlags,
}

impl Part {
    fn contains(&self, address: u64) -> bool {
        address >= self.address && address - self.address < self.size
    }
}

/// The parts that the loader put into an address space.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// The program's segments.
    pub segments: ArrayVec<Part, MAX_SEGMENTS>,
    /// Lowest address of the initial stack.
    pub stack_bottom: u64,
    /// One past the highest address of the initial stack.
    pub stack_top: u64,
    /// Address of the information block.
    pub information: u64,
    /// Address of the IPC buffers.
    pub messages: u64,
    /// First address at which libraries allocate.
    pub dynamic: u64,
    /// Distance in bytes by which the program was moved.
    pub bias: u64,
    /// Set if the program handles its page faults, as every program does that makes its stack itself.
    pub handles_faults: bool,
}

/// Region in which an address lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// The first page, which is never mapped.
    FirstPage,
    /// A segment of the program.
    Segment(Part),
    /// The initial stack.
    Stack,
    /// The page below the initial stack.
    StackGuard,
    /// The process information block.
    Information,
    /// IPC buffers.
    IpcBuffers,
    /// The range in which libraries allocate: heap, further stacks, mapped frames.
    Dynamic,
    /// The kernel's half of the address space.
    Kernel,
    /// None of the others.
    Nothing,
}

impl Layout {
    /// Returns the layout of a process loaded from `program` with this description.
    pub fn new(program: &Program, description: &Description) -> Layout {
        let addresses = &description.addresses;
        let parts = program.segments.iter();
        let parts = parts.map(|segment| Part { address: segment.address, size: segment.size, flags: segment.flags });
        Layout {
            segments: parts.collect(),
            stack_bottom: addresses.stack.bottom,
            stack_top: addresses.stack.top,
            information: addresses.information,
            messages: addresses.messages,
            dynamic: addresses.dynamic,
            bias: program.bias,
            handles_faults: addresses.stack.own != 0,
        }
    }

    /// Returns the address in the program's file that corresponds to an address of the program; other addresses
    /// unchanged.
    pub fn linked(&self, address: u64) -> u64 {
        match self.segments.iter().any(|part| part.contains(address)) {
            true => address - self.bias,
            false => address,
        }
    }

    /// Returns the region in which `address` lies.
    pub fn region(&self, address: u64) -> Region {
        if let Some(part) = self.segments.iter().find(|part| part.contains(address)) {
            return Region::Segment(*part);
        }
        let information = Part { address: self.information, size: INFO_PAGES as u64 * PAGE, flags: MapFlags::READ };
        // A page has room for four threads' IPC buffers; the loader maps the first page.
        let buffers = Part { address: self.messages, size: 4 * IPC_BUFFER_SIZE as u64, flags: MapFlags::all() };
        match address {
            0..PAGE => Region::FirstPage,
            USER_END.. => Region::Kernel,
            _ if (self.stack_bottom..self.stack_top).contains(&address) => Region::Stack,
            _ if (self.stack_bottom.saturating_sub(PAGE)..self.stack_bottom).contains(&address) => Region::StackGuard,
            _ if information.contains(address) => Region::Information,
            _ if buffers.contains(address) => Region::IpcBuffers,
            _ if (self.dynamic..address::DYNAMIC_END).contains(&address) => Region::Dynamic,
            _ => Region::Nothing,
        }
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Region::Segment(part) => {
                let right = |flag, letter| if part.flags.contains(flag) { letter } else { '-' };
                let rights = [right(MapFlags::READ, 'r'), right(MapFlags::WRITE, 'w'), right(MapFlags::EXECUTE, 'x')];
                let [r, w, x] = rights;
                return write!(f, "segment {:#x}..{:#x} {r}{w}{x}", part.address, part.address + part.size);
            }
            Region::FirstPage => "first page",
            Region::Stack => "stack",
            Region::StackGuard => "guard page below the stack",
            Region::Information => "process information, read-only",
            Region::IpcBuffers => "IPC buffers",
            Region::Dynamic => "dynamic memory",
            Region::Kernel => "kernel's half",
            Region::Nothing => "nothing there",
        };
        f.write_str(text)
    }
}

/// Exception classes of an AArch64 syndrome (`ESR_EL1.EC`).
mod exception {
    pub const UNKNOWN: u64 = 0x00;
    pub const FLOATING_POINT: u64 = 0x07;
    pub const ILLEGAL_STATE: u64 = 0x0e;
    pub const SYSTEM_REGISTER: u64 = 0x18;
    pub const PC_ALIGNMENT: u64 = 0x22;
    pub const DATA_ABORT: u64 = 0x24;
    pub const DATA_ABORT_SAME: u64 = 0x25;
    pub const SP_ALIGNMENT: u64 = 0x26;
    pub const BREAKPOINT: u64 = 0x30;
    pub const BRK: u64 = 0x3c;
}

/// Fault status of a data abort caused by misalignment.
const ALIGNMENT_FAULT: u64 = 0x21;

/// A fault of a process.
#[derive(Clone, Copy, Debug)]
pub struct Fault<'a> {
    /// The kernel's report.
    pub report: Report,
    /// Layout of the process.
    pub layout: &'a Layout,
    /// The process's own report, if it saw its fault first. About the parts that the loader made it knows less than
    /// `layout`.
    pub own: Option<OwnReport>,
}

/// A process's report of its own page fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnReport {
    /// Kind of the fault.
    pub kind: FaultKind,
    /// The region that the process made there: purpose, first address, size in bytes.
    pub region: Option<(RegionKind, u64, u64)>,
}

impl Fault<'_> {
    /// Returns the kind of the fault.
    pub fn kind(&self) -> FaultKind {
        match Class::from_code(self.report.class) {
            Some(Class::PageFault) => self.page_fault(),
            Some(Class::ForeignCall) => FaultKind::ForeignCall,
            Some(Class::Timeout) => FaultKind::Timeout,
            Some(Class::Exception) | None => self.exception(),
        }
    }

    fn page_fault(&self) -> FaultKind {
        if self.is_alignment() {
            return FaultKind::Misaligned;
        }
        let region = self.layout.region(self.report.address);
        if let Some(own) = self.own
            && matches!(region, Region::Dynamic | Region::Nothing)
        {
            return own.kind;
        }
        match region {
            Region::FirstPage => FaultKind::NullDereference,
            Region::Kernel => FaultKind::KernelAddress,
            Region::StackGuard => FaultKind::GuardPage,
            // The process would have handled this fault itself, since memory may come on demand there. So the thread
            // was in an upcall.
            Region::Dynamic | Region::Nothing if self.layout.handles_faults => FaultKind::InHandler,
            _ if self.report.is_permission() => FaultKind::RightsViolation,
            // The loader maps these whole, so the program removed the missing mapping.
            _ => FaultKind::NeverAllocated,
        }
    }

    fn exception(&self) -> FaultKind {
        match self.exception_class() {
            exception::UNKNOWN => FaultKind::UndefinedInstruction,
            exception::SYSTEM_REGISTER | exception::FLOATING_POINT => FaultKind::PrivilegedInstruction,
            exception::PC_ALIGNMENT | exception::SP_ALIGNMENT => FaultKind::Misaligned,
            exception::BREAKPOINT | exception::BRK => FaultKind::Breakpoint,
            _ if self.is_alignment() => FaultKind::Misaligned,
            exception::ILLEGAL_STATE => FaultKind::UndefinedInstruction,
            _ => FaultKind::Other,
        }
    }

    const fn exception_class(&self) -> u64 {
        self.report.syndrome >> 26 & 0x3f
    }

    const fn is_alignment(&self) -> bool {
        let is_data = matches!(self.exception_class(), exception::DATA_ABORT | exception::DATA_ABORT_SAME);
        is_data && self.report.syndrome & 0x3f == ALIGNMENT_FAULT
    }

    /// Returns whether an address belongs to the fault.
    fn has_address(&self) -> bool {
        let is_data = matches!(self.exception_class(), exception::DATA_ABORT | exception::DATA_ABORT_SAME);
        self.report.class == Class::PageFault as u64 || is_data
    }
}

impl fmt::Display for Fault<'_> {
    /// Writes a line like `null dereference: write to 0x0 at instruction 0x201004 (region first page)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = &self.report;
        let kind = self.kind();
        write!(f, "{kind}: ")?;
        if self.has_address() {
            let access = match report.access() {
                Access::Read => "read from",
                Access::Write => "write to",
                Access::Execute => "jump to",
            };
            write!(f, "{access} {:#x} at instruction {:#x} ", report.address, report.instruction)?;
            let region = self.layout.region(report.address);
            return match self.own.and_then(|own| own.region) {
                Some((kind, start, size)) if matches!(region, Region::Dynamic | Region::Nothing) => {
                    write!(f, "(region {kind} {start:#x}..{:#x})", start.wrapping_add(size))
                }
                _ => write!(f, "(region {region})"),
            };
        }
        let region = self.layout.region(report.instruction);
        match kind {
            FaultKind::ForeignCall => write!(f, "svc #{} ", report.syndrome & 0xffff)?,
            FaultKind::UndefinedInstruction | FaultKind::PrivilegedInstruction | FaultKind::Breakpoint => {}
            FaultKind::Timeout => write!(f, "after {} ticks ", report.address)?,
            _ => write!(f, "syndrome {:#x} ", report.syndrome)?,
        }
        write!(f, "at instruction {:#x} (region {region})", report.instruction)
    }
}
