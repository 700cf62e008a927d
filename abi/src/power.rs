//! What a capability with a badge permits beyond what is everybody's.
//!
//! A badge of a process's capability to a server, or to the kernel, says who asks and what for:
//!
//! ```text
//!  63          48 47                     0
//! ┌──────────────┬───────────────────────┐
//! │    powers    │   number of process   │
//! └──────────────┴───────────────────────┘
//! ```
//! A badge of zero is that of the original, which permits everything. Badges cannot be changed, so a power is had by whom it was
//! given, and passed on by the process server to children of those who have it, if they say so.

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
        /// See everybody's memory and accounts, be told physical addresses and choose them, and choose how memory is managed.
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
pub const SHIFT: u32 = 48;

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

    /// The badge of a process with these powers.
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

/// The process of a badge.
pub const fn identity(badge: u64) -> u64 {
    badge & ((1 << SHIFT) - 1)
}
