//! Random values of the types that are sent in messages.

use tench_abi::{CapAddress, Kind, Rights};
use tench_protocol::{ArrayString, ArrayVec};
use tench_sys::Instant;

use crate::Dice;

/// A type that has random values.
pub trait Random: Sized {
    /// Returns a random value.
    fn random(dice: &mut Dice) -> Self;
}

macro_rules! integers {
    ($($type:ty)*) => { $(
        impl Random for $type {
            fn random(dice: &mut Dice) -> $type {
                dice.word() as $type
            }
        }
    )* };
}

integers! { u8 u16 u32 u64 usize i8 i16 i32 i64 isize }

impl Random for () {
    fn random(_: &mut Dice) {}
}

impl Random for bool {
    fn random(dice: &mut Dice) -> bool {
        dice.below(2) == 1
    }
}

impl Random for Instant {
    fn random(dice: &mut Dice) -> Instant {
        Instant::from_ticks(dice.word())
    }
}

impl Random for CapAddress {
    fn random(dice: &mut Dice) -> CapAddress {
        CapAddress(dice.word() as u32)
    }
}

impl Random for Kind {
    fn random(dice: &mut Dice) -> Kind {
        Kind::from_code(dice.below(16) as u64).unwrap_or(Kind::Null)
    }
}

impl Random for Rights {
    fn random(dice: &mut Dice) -> Rights {
        Rights::from_bits_truncate(dice.byte())
    }
}

impl<T: Random> Random for Option<T> {
    fn random(dice: &mut Dice) -> Option<T> {
        bool::random(dice).then(|| T::random(dice))
    }
}

impl<T: Random, const N: usize> Random for [T; N] {
    fn random(dice: &mut Dice) -> [T; N] {
        core::array::from_fn(|_| T::random(dice))
    }
}

impl<const MAX: usize> Random for ArrayString<MAX> {
    fn random(dice: &mut Dice) -> ArrayString<MAX> {
        ArrayString::from(&dice.text(MAX)).unwrap_or_default()
    }
}

impl<T: Random, const MAX: usize> Random for ArrayVec<T, MAX> {
    fn random(dice: &mut Dice) -> ArrayVec<T, MAX> {
        (0..dice.below(MAX + 1)).map(|_| T::random(dice)).collect()
    }
}
