//! Capabilities: the powers of the super-user, of which a thread can give up some.

use tench_linux_calls::numbers::capability::{ALL, SETPCAP};
use tench_linux_files::Errno;

/// The capabilities of a thread, in sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Those that count.
    pub effective: u64,
    /// Those that can be made to count.
    pub permitted: u64,
    /// Those that a program run by the thread may get.
    pub inheritable: u64,
    /// Those that a program of the super-user gets.
    pub bounding: u64,
    /// Those that every program run by the thread gets.
    pub ambient: u64,
}

impl Capabilities {
    /// The capabilities of the super-user's programs when they begin.
    pub const SUPER_USER: Capabilities =
        Capabilities { effective: ALL, permitted: ALL, inheritable: 0, bounding: ALL, ambient: 0 };

    /// Returns whether all capabilities of a set count.
    #[inline(always)]
    pub const fn has_all(&self, set: u64) -> bool {
        self.effective & set == set
    }

    /// Returns the capabilities after a thread has set them to new ones. Capabilities that do not exist do not count,
    /// and those that every program gets are among the permitted and inheritable ones.
    ///
    /// # Errors
    /// `EPERM` for more than is permitted.
    pub fn set(self, new: Capabilities) -> Result<Capabilities, Errno> {
        let may_inherit = self.inheritable | if self.effective & SETPCAP != 0 { ALL } else { self.permitted };
        let (permitted, inheritable) = (new.permitted & ALL, new.inheritable & ALL);
        let ambient = self.ambient & permitted & inheritable;
        let new = Capabilities { effective: new.effective & ALL, permitted, inheritable, ambient, ..self };
        let is_within = |set: u64, limit: u64| set & !limit == 0;
        let is_allowed = is_within(new.inheritable, may_inherit)
            && is_within(new.inheritable, self.inheritable | self.bounding)
            && is_within(new.permitted, self.permitted)
            && is_within(new.effective, new.permitted);
        if is_allowed { Ok(new) } else { Err(Errno::EPERM) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_up_does_not_come_back() {
        let all = Capabilities::SUPER_USER;
        let few = Capabilities { effective: 1, permitted: 3, ..all };
        assert_eq!(all.set(few), Ok(few));
        assert_eq!(few.set(all), Err(Errno::EPERM));
        assert_eq!(few.set(Capabilities { effective: 3, ..few }), Ok(Capabilities { effective: 3, ..few }));
        assert_eq!(few.set(Capabilities { effective: 4, ..few }), Err(Errno::EPERM));
        assert_eq!(few.set(Capabilities { effective: 2, permitted: 1, ..few }), Err(Errno::EPERM));
        // Without the capability for it, no more can be inherited than is permitted.
        assert_eq!(few.set(Capabilities { inheritable: 4, ..few }), Err(Errno::EPERM));
        assert_eq!(few.set(Capabilities { inheritable: 2, ..few }), Ok(Capabilities { inheritable: 2, ..few }));
        assert_eq!(all.set(Capabilities { inheritable: ALL, ..few }), Ok(Capabilities { inheritable: ALL, ..few }));
        let bounded = Capabilities { bounding: 1, ..all };
        assert_eq!(bounded.set(Capabilities { inheritable: 2, ..bounded }), Err(Errno::EPERM));
        let ambient = Capabilities { inheritable: 3, ambient: 3, ..all };
        assert_eq!(ambient.set(Capabilities { inheritable: 2, ..ambient }).map(|new| new.ambient), Ok(2));
        assert_eq!(all.set(Capabilities { permitted: u64::MAX, ..few }), Ok(Capabilities { permitted: ALL, ..few }));
    }
}
