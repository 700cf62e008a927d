//! Powers: what a badged capability permits beyond what every process may do.
//!
//! The badge of a process's capability to a server or to the kernel identifies the process and its powers:
//!
//! ```text
//!  63      52  51  50      38 37    32 31             0
//! ┌──────────┬────┬──────────┬────────┬────────────────┐
//! │  powers  │ 0  │  family  │  core  │     number     │
//! └──────────┴────┴──────────┴────────┴────────────────┘
//! ```
//! Core and number together identify the [process](identity); core and family identify its [family]: the
//! processes that share a server's limited resources, because one of them started the others. The process server of
//! each core numbers the families of its processes. Family number 0 is unused: a process whose badge has it is a family
//! of its own.
//!
//! The original capability has badge 0, which permits everything. Badges cannot be changed, so a process has exactly
//! the powers that it was given. The process server passes them on to the children of a process that has them, if that
//! process asks for it.
//!
//! A server that hands out capabilities with badges of its own sets bit 51 ([`OBJECT`]), so that none of them is
//! mistaken for a process.

use bitflags::bitflags;

bitflags! {
    /// Operations that a process may do besides those that every process may.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Powers: u16 {
        /// Power the machine off.
        const POWER = 1 << 0;
        /// Ask which cores are on.
        const CORES = 1 << 1;
        /// Kill, suspend, resume and inspect all processes, not only the process's own descendants.
        const PROCESSES = 1 << 2;
        /// See the memory and accounts of all processes, learn and choose physical addresses, and choose how memory is
        /// managed.
        const MEMORY = 1 << 3;
        /// Change files of other processes.
        const FILES = 1 << 4;
        /// Register names outside the process's own program name.
        const NAMES = 1 << 5;
        /// Write raw output, with escape sequences, to the terminal, and take the terminal when nobody owns it.
        const TERMINAL = 1 << 6;
        /// Make reservations of processor time.
        const RESERVE = 1 << 7;
        /// Count instructions and other events, and query the kernel's statistics.
        const COUNTERS = 1 << 8;
    }
}

/// Number of bits of a badge below the powers.
pub const SHIFT: u32 = 52;
/// Bit of a badge that identifies a server's object, such as the end of a stream, and not a process.
pub const OBJECT: u64 = 1 << (SHIFT - 1);
/// Number of bits of a badge below the family's number.
pub const FAMILY_SHIFT: u32 = 38;
/// Number of family numbers on one core, including the unused 0: more than the processes that can run there.
pub const FAMILIES: u64 = 1 << (SHIFT - 1 - FAMILY_SHIFT);
/// First number of families of guests, that is, of processes that were started from another core. Both ranges hold more
/// numbers than there can be processes.
pub const GUESTS: u64 = FAMILIES / 2;
/// Number of bits of a badge below the core.
pub const CORE_SHIFT: u32 = 32;
/// Number of cores whose processes can be distinguished.
pub const CORES: u64 = 1 << (FAMILY_SHIFT - CORE_SHIFT);

/// Mask of the bits of a badge with the family's number.
const FAMILY: u64 = (FAMILIES - 1) << FAMILY_SHIFT;
/// Mask of the bits of a badge with core and number.
const PROCESS: u64 = (1 << FAMILY_SHIFT) - 1;

impl Powers {
    /// Every power with the word by which users name it.
    pub const WORDS: [(&'static str, Powers); 9] = [
        ("power", Powers::POWER),
        ("cores", Powers::CORES),
        ("processes", Powers::PROCESSES),
        ("memory", Powers::MEMORY),
        ("files", Powers::FILES),
        ("names", Powers::NAMES),
        ("terminal", Powers::TERMINAL),
        ("reserve", Powers::RESERVE),
        ("counters", Powers::COUNTERS),
    ];
    /// The powers that a capability to the kernel carries.
    pub const OF_KERNEL: Powers = Powers::POWER.union(Powers::CORES).union(Powers::MEMORY).union(Powers::COUNTERS);

    /// Returns the powers of a capability with this badge: all, if the badge is 0.
    pub const fn of_badge(badge: u64) -> Powers {
        if badge == 0 { Powers::all() } else { Powers::from_bits_retain((badge >> SHIFT) as u16) }
    }

    /// Returns the badge of a process with these powers that is a family of its own.
    pub const fn badge(self, process: u64) -> u64 {
        (self.bits() as u64) << SHIFT | identity(process)
    }

    /// Returns the power that users name with this word.
    pub fn from_word(word: &str) -> Option<Powers> {
        Powers::WORDS.iter().find(|(known, _)| *known == word).map(|(_, power)| *power)
    }

    /// Returns the words for these powers, in order.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        Powers::WORDS.iter().filter(move |(_, power)| self.contains(*power)).map(|(word, _)| *word)
    }
}

/// Returns the process of a badge. For an [object](OBJECT) it returns a number that no process has.
pub const fn identity(badge: u64) -> u64 {
    if badge & OBJECT == 0 { badge & PROCESS } else { badge & ((1 << SHIFT) - 1) }
}

/// Returns the family of a badge, which is unique across cores. A process without a family is a family of its own, with
/// the number of the process.
pub const fn family(badge: u64) -> u64 {
    if badge & OBJECT == 0 && badge & FAMILY != 0 {
        badge & (FAMILY | PROCESS >> CORE_SHIFT << CORE_SHIFT)
    } else {
        identity(badge)
    }
}

/// Returns the identity of the family with this number on a core.
pub const fn family_of(core: u64, number: u64) -> u64 {
    (number % FAMILIES) << FAMILY_SHIFT | (core % CORES) << CORE_SHIFT
}

/// Returns the number of a family on its core, below [`FAMILIES`]; 0 for a process that is a family of its own.
pub const fn family_number(family: u64) -> u64 {
    (family & FAMILY) >> FAMILY_SHIFT
}

/// Returns whether a family is one of [guests](GUESTS).
pub const fn is_of_guests(family: u64) -> bool {
    family & FAMILY >= GUESTS << FAMILY_SHIFT
}

/// A client or owner: a process, and the family to which it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Client {
    /// The process.
    pub process: u64,
    /// [Family](family) of the process.
    pub family: u64,
}

impl Client {
    /// The holder of the unbadged capability: the servers that start the others.
    pub const AUTHORITY: Client = Client::alone(0);

    /// Returns the client with this badge.
    pub const fn of_badge(badge: u64) -> Client {
        Client { process: identity(badge), family: family(badge) }
    }

    /// Returns a client whose process is a family of its own.
    pub const fn alone(process: u64) -> Client {
        Client { process, family: process }
    }

    /// Returns the badge of this client with these powers.
    pub const fn badge(self, powers: Powers) -> u64 {
        powers.badge(self.process) | self.family & FAMILY
    }
}
