//! Where the parts of an address space lie: chosen at random for each process.
//!
//! ```text
//!   page 1         0x1000_0000_0000   0x5000_…   0x5800_…      0x6000_…   0x7000_…           0x7800_…         2⁴⁷
//!   ├────────────────┼──────────────────┼──────────┼─────────────┼──────────┼──────────────────┼────────────────┤
//!     the program      what libraries     books      procs: where  procs:     a stack that the   information,
//!                      allocate           of that    it fills      the boot   loader maps whole  message areas,
//!                                                    frames        archive                       the first stack
//! ```
//! Each part moves by multiples of what one table of level 3 shows (2 MiB), and within that by pages, but never out of
//! the tables that it would need anyway. So it takes the same number of tables, and the same number of instructions,
//! wherever it lies. How many bits each choice has: docs/manual/programs.md.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use tench_abi::layout::address;
use tench_abi::memory::PAGE_SIZE;
use tench_abi::process::INFO_PAGES;

use crate::information::Stack;
use crate::program::Program;

const PAGE: u64 = PAGE_SIZE as u64;
/// What one table of level 3 shows.
const TABLE: u64 = 2 << 20;
/// What one table of level 2 shows.
const GIB: u64 = 1 << 30;

/// Where stacks lie that the loader maps whole.
const STACKS: (u64, u64) = (0x7000_0000_0000, 0x7800_0000_0000);
/// Where information block, message areas and first stack lie, one after another in what one table of level 3 shows.
const SMALL_PARTS: (u64, u64) = (0x7800_0000_0000, 0x7fff_fe00_0000);
/// Of that, what belongs to the information block, and then to the message areas; the first stack has the rest.
const INFORMATION: u64 = 512 << 10;
const MESSAGES: u64 = 512 << 10;
/// Where a loader fills frames.
const WINDOWS: (u64, u64) = (0x5800_0000_0000, 0x6000_0000_0000);
/// Where the process server has the boot archive.
const ARCHIVES: (u64, u64) = (address::BOOT_ARCHIVE, 0x6800_0000_0000);
/// Where the books of what libraries allocate lie.
const BOOKS: (u64, u64) = (address::DYNAMIC_END, 0x5800_0000_0000);
/// How far the beginning of what libraries allocate moves: 16 TiB.
const DYNAMIC_PLAY: u64 = 1 << 44;

/// Where random numbers come from: from one seed, a sequence for each process.
///
/// Each process takes the beginning of a sequence of its own, so that each costs the same. Nobody who knows some of the
/// numbers learns others from them.
#[derive(Clone, Debug)]
pub struct Randomness {
    seed: [u8; 32],
    used: u64,
}

impl Randomness {
    /// All that follows from a seed.
    pub const fn new(seed: [u8; 32]) -> Randomness {
        Randomness { seed, used: 0 }
    }

    /// What follows from a seed that all cores of a machine have: on each something else, and on the first what
    /// [`new`](Self::new) makes of it.
    pub fn of_core(mut seed: [u8; 32], core: u64) -> Randomness {
        // Spread, so that it is not the seed of another machine that differs by little.
        let mixed = core.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        seed.iter_mut().zip(mixed).for_each(|(byte, core)| *byte ^= core);
        Randomness::new(seed)
    }

    /// The same with the numbers that a process was given.
    pub fn from_words(words: [u64; 4]) -> Randomness {
        let mut seed = [0; 32];
        seed.chunks_exact_mut(8).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
        Randomness::new(seed)
    }

    /// The next sequence.
    pub fn sequence(&mut self) -> ChaCha8Rng {
        let mut sequence = ChaCha8Rng::from_seed(self.seed);
        sequence.set_stream(self.used);
        self.used += 1;
        sequence
    }
}

/// Where a loader fills frames: 2 MiB of its own address space.
pub fn window(random: &mut impl Rng) -> u64 {
    place(random, WINDOWS, TABLE)
}

/// Where a server maps the boot archive, which has `size` bytes.
pub fn archive(random: &mut impl Rng, size: u64) -> u64 {
    place(random, ARCHIVES, size)
}

/// Where the parts of a process's address space lie that do not lie where its program says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// By how much the program is moved, if it can be.
    pub bias: u64,
    /// The information block.
    pub information: u64,
    /// The message areas.
    pub messages: u64,
    /// The stack on which the process begins.
    pub stack: Stack,
    /// First address where libraries allocate.
    pub dynamic: u64,
    /// Where the books of that lie.
    pub books: u64,
    /// Random numbers for the process itself.
    pub random: [u64; 4],
}

/// A number below `count`, which is not 0.
///
/// By multiplication, so that it takes no division and always as many instructions; that some numbers are more probable
/// than others by one part in 2¹⁶ or less shows nowhere, because no range here has more than 2⁴⁸ members.
fn below(random: &mut impl Rng, count: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(count)) >> 64) as u64
}

/// A place for a part of `size` bytes in a range: a multiple of the page size.
///
/// Counted in tables of level 3, the part takes as few as it can.
fn place(random: &mut impl Rng, (start, end): (u64, u64), size: u64) -> u64 {
    let tables = size.next_multiple_of(TABLE);
    let table = below(random, (end - start - tables) / TABLE + 1);
    let page = below(random, (tables - size) / PAGE + 1);
    start + table * TABLE + page * PAGE
}

impl Addresses {
    /// Chooses where a program lies, and the rest. `stack` says how large the stack is.
    pub fn choose(program: &Program, stack: StackSize, random: &mut impl Rng) -> Addresses {
        let bias = bias(program, random);
        let (start, end) = SMALL_PARTS;
        let small_parts = start + below(random, (end - start) / TABLE) * TABLE;
        let part = |random: &mut _, from: u64, room: u64, size: u64| from + below(random, (room - size) / PAGE) * PAGE;
        let information = part(random, small_parts, INFORMATION, INFO_PAGES as u64 * PAGE);
        let messages = part(random, small_parts + INFORMATION, MESSAGES, PAGE);
        let stack = match stack {
            StackSize::Own(own) => {
                // A page below it is the guard, also against the message areas.
                let from = small_parts + INFORMATION + MESSAGES + PAGE;
                let room = TABLE - INFORMATION - MESSAGES - PAGE;
                let bottom = part(random, from, room, address::FIRST_STACK_SIZE);
                Stack { bottom, top: bottom + address::FIRST_STACK_SIZE, own }
            }
            StackSize::Whole(size) => {
                let bottom = PAGE + place(random, STACKS, size + PAGE);
                Stack { bottom, top: bottom + size, own: 0 }
            }
        };
        // What is allocated goes there from the beginning on. In the first half of what a table of level 2 shows it
        // needs another one as late as can be.
        let gib = below(random, DYNAMIC_PLAY / GIB) * GIB;
        let dynamic = address::DYNAMIC + gib + below(random, GIB / 2 / TABLE) * TABLE;
        let (start, end) = BOOKS;
        let books = start + below(random, (end - start) / address::BOOKS_SIZE) * address::BOOKS_SIZE;
        let random = [(); 4].map(|()| random.next_u64());
        Addresses { bias, information, messages, stack, dynamic, books, random }
    }
}

/// By how much a program is moved.
fn bias(program: &Program, random: &mut impl Rng) -> u64 {
    if !program.position_independent {
        return 0;
    }
    // From the beginning of the table that shows its first page.
    let first = program.segments.first().map_or(0, |segment| segment.address) & !(TABLE - 1);
    let size = program.end() - first;
    let tables = size.next_multiple_of(TABLE);
    let last = (address::DYNAMIC - tables) / TABLE;
    let table = 1 + below(random, last - first / TABLE);
    let within = below(random, (tables - size) / program.alignment + 1);
    table * TABLE + within * program.alignment
}

/// How large the stack is on which a process begins, or that it makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackSize {
    /// So many bytes, all of which are mapped.
    Whole(u64),
    /// So many bytes that it makes itself; it begins on a small one.
    Own(u64),
}

/// Bytes of a main thread's stack that the program makes itself, unless something else is said. It costs addresses.
const OWN_STACK: u64 = 1 << 20;

impl StackSize {
    /// A stack of `bytes`, a multiple of the page size (0: as usual), for a program that has no other.
    pub const fn whole(bytes: u64) -> StackSize {
        StackSize::Whole(if bytes == 0 { address::STACK_SIZE } else { bytes })
    }

    /// The stack for a program whose main thread is to have `bytes`, a multiple of the page size (0: as usual). If it
    /// makes that stack itself, it begins on a small one.
    pub const fn of(program: &Program, bytes: u64) -> StackSize {
        if program.makes_stack {
            StackSize::Own(if bytes == 0 { OWN_STACK } else { bytes })
        } else {
            StackSize::whole(bytes)
        }
    }
}
