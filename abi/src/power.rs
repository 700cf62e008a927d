//! What a capability with a badge permits beyond what is everybody's.
//!
//! A badge of a process's capability to a server, or to the kernel, says who asks and what for:
//!
//! ```text
//!  63      52  51  50      38 37    32 31             0
//! ┌──────────┬────┬──────────┬────────┬────────────────┐
//! │  powers  │ 0  │  family  │  core  │     number     │
//! └──────────┴────┴──────────┴────────┴────────────────┘
//! ```
//! Core and number together are the [process](identity); core and family are its [family](family): the processes that
//! share what a server has only so much of, because one of them started the others. The process server of each core
//! numbers the families of its processes. Family number 0 is nobody's: a process with such a badge is a family of its
//! own.
//!
//! A badge of zero is that of the original, which permits everything. Badges cannot be changed, so a power is had by
//! whom it was given, and passed on by the process server to children of those who have it, if they say so.
//!
//! A server that gives out capabilities with badges of its own sets bit 51 ([`OBJECT`]), so that none of them is taken
//! for a process.

use bitflags::bitflags;

bitflags! {
    /// What a process may do besides what every process may.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Powers: u16 {
        /// Power the machine off.
        const POWER = 1 << 0;
        /// Ask which cores are on.
        const CORES = 1 << 1;
        /// Kill, suspend, resume and inspect all processes, not only the own descendants.
        const PROCESSES = 1 << 2;
        /// See everybody's memory and accounts, be told physical addresses and choose them, and choose how memory is
        /// managed.
        const MEMORY = 1 << 3;
        /// Change files of others.
        const FILES = 1 << 4;
        /// Register names that are not under the own program's.
        const NAMES = 1 << 5;
        /// Write to the terminal as it is, with escape sequences, and take it when nobody owns it.
        const TERMINAL = 1 << 6;
        /// Make reservations of processor time.
        const RESERVE = 1 << 7;
        /// Count instructions and other events, and ask the kernel what it counts.
        const COUNTERS = 1 << 8;
    }
}

/// Bits of a badge below the powers.
pub const SHIFT: u32 = 52;
/// In a badge: it stands for something that a server has, such as the end of a stream, and for no process.
pub const OBJECT: u64 = 1 << (SHIFT - 1);
/// Bits of a badge below the family's number.
pub const FAMILY_SHIFT: u32 = 38;
/// Numbers of families on one core, 0 included, which is nobody's: more than processes can live there.
pub const FAMILIES: u64 = 1 << (SHIFT - 1 - FAMILY_SHIFT);
/// The number from which on families are those of guests: of processes that somebody of another core has started. There
/// are more numbers on either side of it than processes can live.
pub const GUESTS: u64 = FAMILIES / 2;
/// Bits of a badge below the core.
pub const CORE_SHIFT: u32 = 32;
/// Cores of which processes can be told apart.
pub const CORES: u64 = 1 << (FAMILY_SHIFT - CORE_SHIFT);

/// The bits of a badge with the number of the family.
const FAMILY: u64 = (FAMILIES - 1) << FAMILY_SHIFT;
/// The bits of a badge with core and number.
const PROCESS: u64 = (1 << FAMILY_SHIFT) - 1;

impl Powers {
    /// Every word for a power, as people write it, and the power.
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
    /// Those that a capability to the kernel carries.
    pub const OF_KERNEL: Powers = Powers::POWER.union(Powers::CORES).union(Powers::MEMORY).union(Powers::COUNTERS);

    /// What a capability with this badge permits: all, if it has none.
    pub const fn of_badge(badge: u64) -> Powers {
        if badge == 0 { Powers::all() } else { Powers::from_bits_retain((badge >> SHIFT) as u16) }
    }

    /// Returns the badge of a process with these powers that is a family of its own.
    pub const fn badge(self, process: u64) -> u64 {
        (self.bits() as u64) << SHIFT | identity(process)
    }

    /// The power that people call so.
    pub fn from_word(word: &str) -> Option<Powers> {
        Powers::WORDS.iter().find(|(known, _)| *known == word).map(|(_, power)| *power)
    }

    /// The words for these powers, in order.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        Powers::WORDS.iter().filter(move |(_, power)| self.contains(*power)).map(|(word, _)| *word)
    }
}

/// Returns the process of a badge. What stands for an [object](OBJECT) is none: its number is none of a process either.
pub const fn identity(badge: u64) -> u64 {
    if badge & OBJECT == 0 { badge & PROCESS } else { badge & ((1 << SHIFT) - 1) }
}

/// Returns the family of a badge, of which no other core has one: whoever is in none is a family of its own, with the
/// number of the process.
pub const fn family(badge: u64) -> u64 {
    if badge & OBJECT == 0 && badge & FAMILY != 0 {
        badge & (FAMILY | PROCESS >> CORE_SHIFT << CORE_SHIFT)
    } else {
        identity(badge)
    }
}

/// Returns the family of this number on a core.
pub const fn family_of(core: u64, number: u64) -> u64 {
    (number % FAMILIES) << FAMILY_SHIFT | (core % CORES) << CORE_SHIFT
}

/// Returns the number of a family on its core, below [`FAMILIES`]; 0 for a process that is one of its own.
pub const fn family_number(family: u64) -> u64 {
    (family & FAMILY) >> FAMILY_SHIFT
}

/// Returns whether a family is one of [guests](GUESTS).
pub const fn is_of_guests(family: u64) -> bool {
    family & FAMILY >= GUESTS << FAMILY_SHIFT
}

/// Who asks, or has something: a process, and the family to which it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Client {
    /// The process.
    pub process: u64,
    /// Its [family](family).
    pub family: u64,
}

impl Client {
    /// Whoever has the capability without a badge: the servers that start the others.
    pub const AUTHORITY: Client = Client::alone(0);

    /// Returns the client with this badge.
    pub const fn of_badge(badge: u64) -> Client {
        Client { process: identity(badge), family: family(badge) }
    }

    /// Returns a process of which no family is known: it is one of its own.
    pub const fn alone(process: u64) -> Client {
        Client { process, family: process }
    }

    /// Returns the badge of this client with these powers.
    pub const fn badge(self, powers: Powers) -> u64 {
        powers.badge(self.process) | self.family & FAMILY
    }
}
