//! Loading with the real kernel, which accepts every step; taking the process's memory back undoes all of it.

use tench_abi::layout::slot;
use tench_abi::memory::MapFlags;
use tench_abi::{CapAddress, Kind, Operation};
use tench_arch_host::Machine;
use tench_arch_host::machine::RAM;
use tench_corpus::elf::{Header, RW};
use tench_corpus::good;
use tench_loader::addresses::{Addresses, Randomness, StackSize};
use tench_loader::information::Description;
use tench_loader::space::Image;
use tench_loader::{Builder, LoadError, Program, space};

/// A loader that makes the kernel's operations. It does not fill frames, whose contents the model tests.
struct Kernel {
    m: Machine,
    untyped: u64,
}

impl Kernel {
    fn call(&mut self, operation: Operation, arguments: &[u64]) -> Result<[u64; 11], LoadError> {
        let result = self.m.call(operation, arguments);
        self.m.check();
        match result.error() {
            None => Ok(result.x),
            Some(error) => Err(LoadError::Kernel(error)),
        }
    }
}

impl Builder for Kernel {
    fn make(&mut self, kind: Kind, size: u64) -> Result<CapAddress, LoadError> {
        let slot = self.m.take_free();
        let arguments = [self.untyped, kind as u64, size, 1, tench_abi::layout::WATERMARK, 0, slot];
        self.call(Operation::UntypedRetype, &arguments)?;
        Ok(CapAddress(slot as u32))
    }

    fn fill(&mut self, _: CapAddress, size_bits: u32, offset: u64, bytes: &[u8]) -> Result<(), LoadError> {
        assert!(offset + bytes.len() as u64 <= 1 << size_bits);
        Ok(())
    }

    fn install(&mut self, table: CapAddress, parent: CapAddress, entry: u64) -> Result<(), LoadError> {
        self.call(Operation::PageTableMap, &[table.0.into(), parent.0.into(), entry]).map(drop)
    }

    fn map(
        &mut self,
        frame: CapAddress,
        table: CapAddress,
        first: u64,
        count: u64,
        offset: u64,
        flags: MapFlags,
    ) -> Result<(), LoadError> {
        let slot = self.m.take_free();
        let arguments = [frame.0.into(), table.0.into(), first, count, offset, flags.bits(), slot];
        self.call(Operation::FrameMap, &arguments).map(drop)
    }
}

fn load(kernel: &mut Kernel) -> Result<Image, LoadError> {
    let mut elf = good::fixed();
    // Across two tables of level 3, and not a power of two.
    elf.headers[2] = Header::load(RW, 0x3f_e010, 0x13000, b"data");
    let file = elf.write();
    let program = Program::parse(&file).unwrap();
    let mut random = Randomness::new([3; 32]);
    let addresses = Addresses::choose(&program, StackSize::whole(0x11000), &mut random.sequence());
    let description = Description {
        pid: 4,
        name: "hello",
        arguments: b"",
        environment: b"",
        extra_count: 0,
        counter_frequency: 1,
        addresses,
    };
    space::image(kernel, &program, &description)
}

#[test]
fn every_step_is_accepted_and_revoking_undoes_all_of_it() {
    let mut m = Machine::new();
    let untyped = m.take_free();
    m.retype(RAM, Kind::Untyped, 20, 1, untyped).ok();
    let before = m.free;
    let mut kernel = Kernel { m, untyped };
    let image = load(&mut kernel).unwrap();
    let root = kernel.call(Operation::Identify, &[0, image.space.root().0.into()]).unwrap();
    assert_eq!(Kind::from_code(root[1]), Some(Kind::PageTable));

    kernel.call(Operation::Revoke, &[0, untyped]).unwrap();
    for slot in before..kernel.m.free {
        let found = kernel.call(Operation::Identify, &[0, slot]).unwrap();
        assert_eq!(Kind::from_code(found[1]), Some(Kind::Null));
    }
    // All of the memory is free again, and loading can be repeated.
    load(&mut kernel).unwrap();
}

#[test]
fn too_little_memory_is_an_error() {
    let mut m = Machine::new();
    let untyped = m.take_free();
    m.retype(RAM, Kind::Untyped, 17, 1, untyped).ok();
    let mut kernel = Kernel { m, untyped };
    assert_eq!(load(&mut kernel).err(), Some(LoadError::Kernel(tench_abi::Error::OutOfMemory)));
}

#[test]
fn further_page_tables_are_installed_in_an_existing_address_space() {
    let mut kernel = Kernel { m: Machine::new(), untyped: RAM };
    let mut space = space::Space::over(slot::VSPACE);
    let frame = kernel.make(Kind::Frame, 16).unwrap();
    space.map(&mut kernel, frame, 0x6000_001f_8000, 1 << 16, MapFlags::READ).unwrap();
}
