//! Moves, and their source.

use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// A move of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Move {
    /// Rock, which beats scissors.
    Rock = 1,
    /// Paper, which beats rock.
    Paper = 2,
    /// Scissors, which beat paper.
    Scissors = 3,
}

impl Move {
    /// Every move, in order of its number.
    pub const ALL: [Move; 3] = [Move::Rock, Move::Paper, Move::Scissors];

    /// Returns the move with this number.
    pub const fn from_code(code: u8) -> Option<Move> {
        match code {
            1 => Some(Move::Rock),
            2 => Some(Move::Paper),
            3 => Some(Move::Scissors),
            _ => None,
        }
    }

    /// Returns the move's name.
    pub const fn name(self) -> &'static str {
        match self {
            Move::Rock => "rock",
            Move::Paper => "paper",
            Move::Scissors => "scissors",
        }
    }

    /// Returns the move with this name.
    pub fn from_name(name: &str) -> Option<Move> {
        Move::ALL.into_iter().find(|choice| choice.name() == name)
    }

    /// Returns true if this move wins against another.
    pub const fn beats(self, other: Move) -> bool {
        matches!(
            (self, other),
            (Move::Rock, Move::Scissors) | (Move::Paper, Move::Rock) | (Move::Scissors, Move::Paper)
        )
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The moves of all players in the order in which they are made: first those of a list, then those that the seed gives.
///
/// Players share it. Only one of them runs at a time, so the order in which they take moves is that of the transcript.
#[derive(Debug)]
pub struct Moves {
    list: Vec<Move>,
    used: AtomicUsize,
    state: AtomicU64,
}

impl Moves {
    /// Returns the moves of a list, followed by those of a seed.
    pub fn new(seed: u64, list: &[Move]) -> Moves {
        Moves { list: list.to_vec(), used: AtomicUsize::new(0), state: AtomicU64::new(seed) }
    }

    /// Takes the next move.
    pub fn take(&self) -> Move {
        match self.list.get(self.used.fetch_add(1, Relaxed)) {
            Some(choice) => *choice,
            None => Move::ALL[(self.random() % 3) as usize],
        }
    }

    /// Returns the next number of Steele, Lea and Flood's generator SplitMix64: small, and good from any seed.
    fn random(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self.state.fetch_add(STEP, Relaxed).wrapping_add(STEP);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_move_beats_one_and_loses_to_one() {
        for choice in Move::ALL {
            assert!(!choice.beats(choice));
            assert_eq!(Move::ALL.iter().filter(|other| choice.beats(**other)).count(), 1);
            assert_eq!(Move::ALL.iter().filter(|other| other.beats(choice)).count(), 1);
        }
        assert!(Move::Rock.beats(Move::Scissors) && Move::Paper.beats(Move::Rock));
    }

    #[test]
    fn codes_and_names_lead_back() {
        for choice in Move::ALL {
            assert_eq!(Move::from_code(choice as u8), Some(choice));
            assert_eq!(Move::from_name(choice.name()), Some(choice));
        }
        assert_eq!((Move::from_code(0), Move::from_code(4), Move::from_name("Rock")), (None, None, None));
    }

    #[test]
    fn the_list_comes_first_and_then_the_seed() {
        let moves = Moves::new(2, &[Move::Paper, Move::Rock]);
        let seeded = Moves::new(2, &[]);
        assert_eq!((moves.take(), moves.take()), (Move::Paper, Move::Rock));
        for _ in 0..100 {
            assert_eq!(moves.take(), seeded.take());
        }
    }

    #[test]
    fn a_seed_gives_every_move_about_equally_often() {
        for seed in [0, 1, 2, u64::MAX] {
            let moves = Moves::new(seed, &[]);
            let mut counts = [0; 3];
            for _ in 0..3000 {
                counts[moves.take() as usize - 1] += 1;
            }
            assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
        }
    }
}
