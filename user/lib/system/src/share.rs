//! How a machine's memory is divided among its cores, as the description writes it and as the first core's monitor
//! reads it.

use serde::{Deserialize, Serialize};

use crate::Strings;

/// Cores of which a description can say something: as many as there can be.
pub const MAX_SHARES: usize = 64;
/// Largest weight.
pub const MAX_WEIGHT: u64 = 1000;
/// Fewest and most mebibytes that a core can be given by size.
pub const SIZES: core::ops::RangeInclusive<u64> = 16..=1 << 20;

/// What a core is to have of the machine's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Of what is left when all that have a size have got it: as large a part as this is of the sum of all weights.
    Weight(u64),
    /// So many bytes.
    Size(u64),
}

impl Share {
    /// What a core has of which the description says nothing. If it says nothing at all, memory is divided evenly.
    pub const USUAL: Share = Share::Weight(1);

    /// The share that a description writes as `text`: a number, or a size (`96M`, `2G`).
    pub fn from_text(text: &str) -> Option<Share> {
        let number = |digits: &str| {
            let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
            digits.parse::<u64>().ok().filter(|_| is_plain)
        };
        let size = |digits, bits: u32| {
            let mebibytes = number(digits)?.checked_mul(1 << bits).filter(|mebibytes| SIZES.contains(mebibytes))?;
            Some(Share::Size(mebibytes << 20))
        };
        match (text.strip_suffix('M'), text.strip_suffix('G')) {
            (Some(digits), _) => size(digits, 0),
            (_, Some(digits)) => size(digits, 10),
            _ => number(text).filter(|weight| *weight <= MAX_WEIGHT).map(Share::Weight),
        }
    }
}

/// The shares of all cores, from the first on, kept as the description wrote them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shares<'a> {
    #[serde(borrow)]
    texts: Strings<'a>,
}

impl<'a> Shares<'a> {
    /// The shares whose texts these are.
    pub const fn new(texts: Strings<'a>) -> Shares<'a> {
        Shares { texts }
    }

    /// What a core is to have.
    pub fn of(&self, core: u64) -> Share {
        let text = usize::try_from(core).ok().and_then(|core| self.texts.iter().nth(core));
        text.and_then(Share::from_text).unwrap_or(Share::USUAL)
    }

    /// The first core has what nobody else gets, so it has a weight.
    pub(crate) fn is_well_formed(&self) -> bool {
        self.texts.is_well_formed()
            && self.texts.count() <= MAX_SHARES
            && self.texts.iter().all(|text| Share::from_text(text).is_some())
            && matches!(self.of(0), Share::Weight(_))
    }
}
