//! How long the areas of a process may be together.

use core::ops::Range;

use super::{Allowance, Space};
use crate::areas::Area;
use crate::{Errno, Hardware, Rights};

impl Area {
    /// Returns whether the area counts as data.
    const fn is_data(&self) -> bool {
        self.rights.contains(Rights::WRITE) && !self.shared && !self.grows
    }
}

impl<H: Hardware> Space<H> {
    /// Returns how much longer the areas that count may become together, if `allowed` bytes are allowed. Looks through
    /// all areas, unless there is no limit.
    fn left_of(&self, allowed: u64, counts: impl Fn(&Area) -> bool) -> u64 {
        if allowed == u64::MAX {
            return u64::MAX;
        }
        let counted = self.areas.iter().filter(|(_, area)| counts(area));
        allowed.saturating_sub(counted.map(|(start, area)| area.end - start).sum())
    }

    /// Refuses an area in a range, in place of what is there, if the areas would be longer than allowed.
    ///
    /// # Errors
    /// `ENOMEM`
    pub(super) fn check_allowance(&self, range: Range<u64>, area: &Area) -> Result<(), Errno> {
        if self.allowance.all == u64::MAX && self.allowance.data == u64::MAX {
            return Ok(());
        }
        // As on Linux, all that is replaced counts as gone, of whatever kind it is.
        let overlap = |(place, _): (Range<u64>, &Area)| place.end.min(range.end) - place.start.max(range.start);
        let replaced: u64 = self.areas.within(range.clone()).map(overlap).sum();
        self.check_longer(range.end - range.start - replaced, area)
    }

    /// Refuses to make an area so much longer if the areas would be longer than allowed.
    ///
    /// # Errors
    /// `ENOMEM`
    pub(super) fn check_longer(&self, by: u64, area: &Area) -> Result<(), Errno> {
        let Allowance { all, data, .. } = self.allowance;
        let is_allowed =
            by <= self.left_of(all, |_| true) && (!area.is_data() || by <= self.left_of(data, Area::is_data));
        if is_allowed { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    /// Returns whether an area that grows downwards may grow by so many bytes, to a length.
    pub(super) fn may_grow(&self, length: u64, by: u64) -> bool {
        length <= self.allowance.stack && by <= self.left_of(self.allowance.all, |_| true)
    }
}
