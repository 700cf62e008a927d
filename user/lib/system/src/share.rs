//! Division of a machine's memory among its cores, as the description states it and as the first core's monitor reads
//! it.

use serde::{Deserialize, Serialize};

use crate::Strings;

/// Maximum number of cores for which a description can set a share: all that there can be.
pub const MAX_SHARES: usize = 64;
/// Largest weight.
pub const MAX_WEIGHT: u64 = 1000;
/// Minimum and maximum size of a core's memory in mebibytes.
pub const SIZES: core::ops::RangeInclusive<u64> = 16..=1 << 20;

/// Share of a core of the machine's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Weight: the core gets this weight's fraction, of the sum of all weights, of the memory that is left after the
    /// cores with sizes.
    Weight(u64),
    /// Size in bytes.
    Size(u64),
}

impl Share {
    /// Default share of a core. If the description sets no shares, memory is divided evenly.
    pub const USUAL: Share = Share::Weight(1);

    /// Returns the share that a description writes as `text`: a number, or a size (`96M`, `2G`).
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

/// The shares of all cores, from the first on, stored in the form of the description.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shares<'a> {
    #[serde(borrow)]
    texts: Strings<'a>,
}

impl<'a> Shares<'a> {
    /// Returns the shares with these texts.
    pub const fn new(texts: Strings<'a>) -> Shares<'a> {
        Shares { texts }
    }

    /// Returns the share of a core.
    pub fn of(&self, core: u64) -> Share {
        let text = usize::try_from(core).ok().and_then(|core| self.texts.iter().nth(core));
        text.and_then(Share::from_text).unwrap_or(Share::USUAL)
    }

    /// Returns whether the shares are valid: the first core gets the memory that no other gets, so it needs a weight.
    pub(crate) fn is_well_formed(&self) -> bool {
        self.texts.is_well_formed()
            && self.texts.count() <= MAX_SHARES
            && self.texts.iter().all(|text| Share::from_text(text).is_some())
            && matches!(self.of(0), Share::Weight(_))
    }
}
