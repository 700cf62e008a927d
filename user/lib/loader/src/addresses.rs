//! Layout of an address space: its parts lie at random addresses in each process.
//!
//! ```text
//!   page 1         0x1000_0000_0000   0x5000_…   0x5800_…      0x6000_…   0x7000_…           0x7800_…         2⁴⁷
//!   ├────────────────┼──────────────────┼──────────┼─────────────┼──────────┼──────────────────┼────────────────┤
//!     the program      what libraries     metadata   procs: where  procs:     a stack that the   information,
//!                      allocate           of that    it fills      the boot   loader maps whole  IPC buffers,
//!                                                    frames        archive                       the first stack
//! ```
//! The address of each part varies by multiples of what one table of level 3 maps (2 MiB), and within that by pages,
//! but never so that it would need more tables. So it takes the same number of tables, and the same number of
//! instructions, wherever it lies. The number of random bits of each choice is in docs/manual/programs.md.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use tench_abi::layout::address;
use tench_abi::memory::PAGE_SIZE;
use tench_abi::process::INFO_PAGES;

use crate::information::Stack;
use crate::program::Program;

const PAGE: u64 = PAGE_SIZE as u64;
/// Number of bytes that one table of level 3 maps.
const TABLE: u64 = 2 << 20;
/// Number of bytes that one table of level 2 maps.
const GIB: u64 = 1 << 30;

/// Range for stacks that the loader maps whole.
const STACKS: (u64, u64) = (0x7000_0000_0000, 0x7800_0000_0000);
/// Range for information block, IPC buffers and first stack, which lie one after another within what one table of level
/// 3 maps.
const SMALL_PARTS: (u64, u64) = (0x7800_0000_0000, 0x7fff_fe00_0000);
/// Bytes of that for the information block, and the same for the IPC buffers; the first stack has the rest.
const INFORMATION: u64 = 512 << 10;
const MESSAGES: u64 = 512 << 10;
/// Range in which a loader fills frames.
const WINDOWS: (u64, u64) = (0x5800_0000_0000, 0x6000_0000_0000);
/// Range in which the process server maps the boot archive.
const ARCHIVES: (u64, u64) = (address::BOOT_ARCHIVE, 0x6800_0000_0000);
/// Range for the metadata of what libraries allocate.
const METADATA: (u64, u64) = (address::DYNAMIC_END, 0x5800_0000_0000);
/// Range over which the start of what libraries allocate varies: 16 TiB.
const DYNAMIC_PLAY: u64 = 1 << 44;

/// A source of random numbers: one seed, from which each process gets a sequence.
///
/// Each process uses the beginning of a sequence of its own, so that each costs the same. Knowing some of the numbers
/// reveals no others.
#[derive(Clone, Debug)]
pub struct Randomness {
    seed: [u8; 32],
    used: u64,
}

impl Randomness {
    /// Returns the source with this seed.
    pub const fn new(seed: [u8; 32]) -> Randomness {
        Randomness { seed, used: 0 }
    }

    /// Returns the source of one core, from a seed that all cores of a machine share: each core's differs, and the
    /// first's is that of [`new`](Self::new).
    pub fn of_core(mut seed: [u8; 32], core: u64) -> Randomness {
        // Spread over the bits, so that it is not the seed of another machine that differs by little.
        let mixed = core.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        seed.iter_mut().zip(mixed).for_each(|(byte, core)| *byte ^= core);
        Randomness::new(seed)
    }

    /// Returns the source whose seed is the random numbers that a process was given.
    pub fn from_words(words: [u64; 4]) -> Randomness {
        let mut seed = [0; 32];
        seed.chunks_exact_mut(8).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
        Randomness::new(seed)
    }

    /// Returns the next sequence.
    pub fn sequence(&mut self) -> ChaCha8Rng {
        let mut sequence = ChaCha8Rng::from_seed(self.seed);
        sequence.set_stream(self.used);
        self.used += 1;
        sequence
    }
}

/// Returns the address at which a loader fills frames: 2 MiB of its own address space.
pub fn window(random: &mut impl Rng) -> u64 {
    random_address(random, WINDOWS, TABLE)
}

/// Returns the address at which a server maps the boot archive, which has `size` bytes.
pub fn archive(random: &mut impl Rng, size: u64) -> u64 {
    random_address(random, ARCHIVES, size)
}

/// Addresses of the parts of a process's address space that its program does not determine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Distance in bytes by which the program is moved, if it can be.
    pub bias: u64,
    /// Address of the information block.
    pub information: u64,
    /// Address of the IPC buffers.
    pub messages: u64,
    /// The initial stack of the process.
    pub stack: Stack,
    /// First address at which libraries allocate.
    pub dynamic: u64,
    /// Address of the metadata of that range.
    pub metadata: u64,
    /// Random numbers for the process's own use.
    pub random: [u64; 4],
}

/// Returns a random number below `count`, which must not be 0.
///
/// The number is scaled by multiplication, which needs no division and always takes the same number of instructions.
/// The bias of one part in 2¹⁶ or less is negligible, because no range here has more than 2⁴⁸ members.
fn below(random: &mut impl Rng, count: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(count)) >> 64) as u64
}

/// Returns a random address for a part of `size` bytes in a range: a multiple of the page size.
///
/// The part needs as few tables of level 3 as possible.
fn random_address(random: &mut impl Rng, (start, end): (u64, u64), size: u64) -> u64 {
    let tables = size.next_multiple_of(TABLE);
    let table = below(random, (end - start - tables) / TABLE + 1);
    let page = below(random, (tables - size) / PAGE + 1);
    start + table * TABLE + page * PAGE
}

impl Addresses {
    /// Chooses the addresses for a program. `stack` is the size of the stack.
    pub fn choose(program: &Program, stack: StackSize, random: &mut impl Rng) -> Addresses {
        let bias = bias(program, random);
        let (start, end) = SMALL_PARTS;
        let small_parts = start + below(random, (end - start) / TABLE) * TABLE;
        let part = |random: &mut _, from: u64, room: u64, size: u64| from + below(random, (room - size) / PAGE) * PAGE;
        let information = part(random, small_parts, INFORMATION, INFO_PAGES as u64 * PAGE);
        let messages = part(random, small_parts + INFORMATION, MESSAGES, PAGE);
        let stack = match stack {
            StackSize::Own(own) => {
                // A guard page lies below it, also against the IPC buffers.
                let from = small_parts + INFORMATION + MESSAGES + PAGE;
                let room = TABLE - INFORMATION - MESSAGES - PAGE;
                let bottom = part(random, from, room, address::FIRST_STACK_SIZE);
                Stack { bottom, top: bottom + address::FIRST_STACK_SIZE, own }
            }
            StackSize::Whole(size) => {
                let bottom = PAGE + random_address(random, STACKS, size + PAGE);
                Stack { bottom, top: bottom + size, own: 0 }
            }
        };
        // Allocation begins at the start of the range. In the first half of what a table of level 2 maps, another table
        // is needed as late as possible.
        let gib = below(random, DYNAMIC_PLAY / GIB) * GIB;
        let dynamic = address::DYNAMIC + gib + below(random, GIB / 2 / TABLE) * TABLE;
        let (start, end) = METADATA;
        let metadata = start + below(random, (end - start) / address::METADATA_SIZE) * address::METADATA_SIZE;
        let random = [(); 4].map(|()| random.next_u64());
        Addresses { bias, information, messages, stack, dynamic, metadata, random }
    }
}

/// Returns the distance by which a program is moved.
fn bias(program: &Program, random: &mut impl Rng) -> u64 {
    if !program.position_independent {
        return 0;
    }
    // Counted from the start of the table that maps its first page.
    let first = program.segments.first().map_or(0, |segment| segment.address) & !(TABLE - 1);
    let size = program.end() - first;
    let tables = size.next_multiple_of(TABLE);
    let last = (address::DYNAMIC - tables) / TABLE;
    let table = 1 + below(random, last - first / TABLE);
    let within = below(random, (tables - size) / program.alignment + 1);
    table * TABLE + within * program.alignment
}

/// Size of the stack on which a process begins, or that it makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackSize {
    /// A stack of this size in bytes, all of which is mapped.
    Whole(u64),
    /// A stack of this size in bytes that the process makes itself; it begins on a small one.
    Own(u64),
}

/// Default size in bytes of a main thread's stack that the program makes itself. It costs only addresses.
const OWN_STACK: u64 = 1 << 20;

impl StackSize {
    /// Returns a stack of `bytes`, a multiple of the page size (0: the default), for a program that makes no other.
    pub const fn whole(bytes: u64) -> StackSize {
        StackSize::Whole(if bytes == 0 { address::STACK_SIZE } else { bytes })
    }

    /// Returns the stack for a program whose main thread is to have `bytes`, a multiple of the page size (0: the
    /// default). If the program makes that stack itself, it begins on a small one.
    pub const fn of(program: &Program, bytes: u64) -> StackSize {
        if program.makes_stack {
            StackSize::Own(if bytes == 0 { OWN_STACK } else { bytes })
        } else {
            StackSize::whole(bytes)
        }
    }
}
