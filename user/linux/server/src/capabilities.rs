//! Capabilities: the powers of the super-user, of which a thread can give up some.

use tench_linux_files::Errno;

/// All capabilities of Linux 6.1.
const ALL: u64 = (1 << 41) - 1;
/// The capability to inherit more than one has.
const SET_CAPABILITIES: u64 = 1 << 8;

/// The capabilities of a thread, in sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Those that count.
    pub effective: u64,
    /// Those that can be made to count.
    pub permitted: u64,
    /// Those that a program run by the thread may get.
    pub inheritable: u64,
}

impl Capabilities {
    /// The capabilities of the super-user's programs when they begin.
    pub const SUPER_USER: Capabilities = Capabilities { effective: ALL, permitted: ALL, inheritable: 0 };

    /// Returns the capabilities after a thread has set them to new ones. Capabilities that do not exist do not count.
    ///
    /// # Errors
    /// `EPERM` for more than is permitted.
    pub fn set(self, new: Capabilities) -> Result<Capabilities, Errno> {
        let may_inherit = self.inheritable | if self.effective & SET_CAPABILITIES != 0 { ALL } else { self.permitted };
        let Capabilities { effective, permitted, inheritable } = new;
        let new =
            Capabilities { effective: effective & ALL, permitted: permitted & ALL, inheritable: inheritable & ALL };
        let is_within = |set: u64, limit: u64| set & !limit == 0;
        let is_allowed = is_within(new.inheritable, may_inherit)
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
        let few = Capabilities { effective: 1, permitted: 3, inheritable: 0 };
        assert_eq!(all.set(few), Ok(few));
        assert_eq!(few.set(all), Err(Errno::EPERM));
        assert_eq!(few.set(Capabilities { effective: 3, ..few }), Ok(Capabilities { effective: 3, ..few }));
        assert_eq!(few.set(Capabilities { effective: 4, ..few }), Err(Errno::EPERM));
        assert_eq!(few.set(Capabilities { effective: 2, permitted: 1, ..few }), Err(Errno::EPERM));
        // Without the capability for it, no more can be inherited than is permitted.
        assert_eq!(few.set(Capabilities { inheritable: 4, ..few }), Err(Errno::EPERM));
        assert_eq!(few.set(Capabilities { inheritable: 2, ..few }), Ok(Capabilities { inheritable: 2, ..few }));
        assert_eq!(all.set(Capabilities { inheritable: ALL, ..few }), Ok(Capabilities { inheritable: ALL, ..few }));
        assert_eq!(all.set(Capabilities { permitted: u64::MAX, ..few }), Ok(Capabilities { permitted: ALL, ..few }));
    }
}
