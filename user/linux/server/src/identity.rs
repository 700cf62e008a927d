//! A thread's identity: its user and group IDs and its capabilities, and how these change together.

use alloc::sync::Arc;

use tench_linux_calls::numbers::capability;
use tench_linux_files::{Credentials, Errno};

use crate::capabilities::Capabilities;

/// The super-user, whose programs get all capabilities.
const SUPER_USER: u32 = 0;

/// Bits (`SECBIT_*`) that restrict what follows from being the super-user. The bit above each one locks it.
pub mod secure_bit {
    /// A program gets no capabilities from running as the super-user.
    pub const NO_ROOT: u32 = 1;
    /// Capabilities do not change with user IDs.
    pub const NO_SETUID_FIXUP: u32 = 4;
    /// Permitted capabilities stay when the last user ID of the super-user is given up.
    pub const KEEP_CAPABILITIES: u32 = 16;
    /// No capability can be made ambient.
    pub const NO_AMBIENT_RAISE: u32 = 64;
    /// All bits.
    pub const ALL: u32 = NO_ROOT | NO_SETUID_FIXUP | KEEP_CAPABILITIES | NO_AMBIENT_RAISE;
    /// All locks.
    pub const LOCKS: u32 = ALL << 1;
}

/// The user IDs, or the group IDs, of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ids {
    /// The real ID: whose process it is.
    pub real: u32,
    /// The effective ID, as which the thread acts.
    pub effective: u32,
    /// The saved ID, which can become the effective one again.
    pub saved: u32,
    /// The filesystem ID, as which the thread accesses files.
    pub files: u32,
}

impl Ids {
    /// Returns whether the real, the effective and the saved one are this.
    pub const fn are_all(self, id: u32) -> bool {
        self.real == id && self.effective == id && self.saved == id
    }

    /// Returns whether an ID is the real, effective or saved one.
    pub const fn has(self, id: u32) -> bool {
        id == self.real || id == self.effective || id == self.saved
    }

    /// Returns whether the real, effective or saved ID is the super-user's.
    const fn has_super_user(self) -> bool {
        self.has(SUPER_USER)
    }

    /// Returns the IDs after `setuid` or `setgid`, which set the effective and filesystem ID, and all with `may_all`.
    ///
    /// # Errors
    /// `EPERM`
    pub const fn set_one(self, id: u32, may_all: bool) -> Result<Ids, Errno> {
        match may_all {
            true => Ok(Ids { real: id, effective: id, saved: id, files: id }),
            false if id == self.real || id == self.saved => Ok(Ids { effective: id, files: id, ..self }),
            false => Err(Errno::EPERM),
        }
    }

    /// Returns the IDs after the real and the effective one were set; `None` keeps one.
    ///
    /// # Errors
    /// `EPERM`
    pub fn set_two(self, real: Option<u32>, effective: Option<u32>, may_all: bool) -> Result<Ids, Errno> {
        let may_be_real = |id| id == self.real || id == self.effective;
        if !(may_all || real.is_none_or(may_be_real) && effective.is_none_or(|id| self.has(id))) {
            return Err(Errno::EPERM);
        }
        let now = effective.unwrap_or(self.effective);
        let is_saved = real.is_some() || effective.is_some_and(|id| id != self.real);
        let saved = if is_saved { now } else { self.saved };
        Ok(Ids { real: real.unwrap_or(self.real), effective: now, saved, files: now })
    }

    /// Returns the IDs after the real, the effective and the saved one were set; `None` keeps one.
    ///
    /// # Errors
    /// `EPERM`
    pub fn set_three(self, new: [Option<u32>; 3], may_all: bool) -> Result<Ids, Errno> {
        if !may_all && !new.iter().flatten().all(|id| self.has(*id)) {
            return Err(Errno::EPERM);
        }
        let [real, effective, saved] = new;
        let effective = effective.unwrap_or(self.effective);
        Ok(Ids { real: real.unwrap_or(self.real), effective, saved: saved.unwrap_or(self.saved), files: effective })
    }

    /// Returns the IDs after the filesystem ID was set, which stays as it is if it may not be set.
    pub const fn set_files(self, id: u32, may_all: bool) -> Ids {
        if may_all || self.has(id) || id == self.files { Ids { files: id, ..self } } else { self }
    }
}

/// A thread's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Users.
    pub user: Ids,
    /// Groups.
    pub group: Ids,
    /// IDs of supplementary groups, in ascending order.
    pub groups: Option<Arc<[u32]>>,
    /// Capabilities.
    pub capabilities: Capabilities,
    /// Bits of [`secure_bit`].
    pub secure_bits: u32,
    /// No program that the thread runs gives it more power.
    pub has_no_new_privileges: bool,
}

impl Identity {
    /// The super-user's programs when they begin.
    pub const SUPER_USER: Identity = Identity {
        user: Ids { real: 0, effective: 0, saved: 0, files: 0 },
        group: Ids { real: 0, effective: 0, saved: 0, files: 0 },
        groups: None,
        capabilities: Capabilities::SUPER_USER,
        secure_bits: 0,
        has_no_new_privileges: false,
    };

    /// Returns whether one of the capabilities of a set is effective.
    #[inline(always)]
    pub const fn has(&self, capabilities: u64) -> bool {
        self.capabilities.effective & capabilities != 0
    }

    /// Returns whether a bit of [`secure_bit`] is set.
    pub const fn is_secure(&self, bit: u32) -> bool {
        self.secure_bits & bit != 0
    }

    /// Returns the credentials with which the thread accesses files.
    pub fn for_files(&self) -> Credentials<'_> {
        let groups = self.groups.as_deref().unwrap_or_default();
        let capabilities = self.capabilities.effective;
        Credentials { user: self.user.files, group: self.group.files, groups, capabilities }
    }

    /// Returns the identity with other user IDs. Capabilities change with them.
    #[must_use]
    pub fn with_users(mut self, user: Ids) -> Identity {
        let old = core::mem::replace(&mut self.user, user);
        if self.is_secure(secure_bit::NO_SETUID_FIXUP) {
            return self;
        }
        let has_left = old.has_super_user() && !user.has_super_user();
        let capabilities = &mut self.capabilities;
        if has_left {
            if self.secure_bits & secure_bit::KEEP_CAPABILITIES == 0 {
                (capabilities.permitted, capabilities.effective) = (0, 0);
            }
            capabilities.ambient = 0;
        }
        match (old.effective, user.effective) {
            (SUPER_USER, 1..) => capabilities.effective = 0,
            (1.., SUPER_USER) => capabilities.effective = capabilities.permitted,
            _ => {}
        }
        self
    }

    /// Returns the identity with another filesystem user ID. Effective capabilities about files change with it.
    #[must_use]
    pub const fn with_file_user(mut self, user: Ids) -> Identity {
        let old = core::mem::replace(&mut self.user, user);
        if self.is_secure(secure_bit::NO_SETUID_FIXUP) {
            return self;
        }
        let Capabilities { effective, permitted, .. } = self.capabilities;
        self.capabilities.effective = match (old.files, user.files) {
            (SUPER_USER, 1..) => effective & !capability::OF_FILES,
            (1.., SUPER_USER) => effective | permitted & capability::OF_FILES,
            _ => effective,
        };
        self
    }

    /// Returns the identity with which `access` checks what the real user may do with a file.
    #[must_use]
    pub fn as_real(&self) -> Identity {
        let mut real = self.clone();
        (real.user.files, real.group.files) = (self.user.real, self.group.real);
        if !self.is_secure(secure_bit::NO_SETUID_FIXUP) {
            real.capabilities.effective = if self.user.real == SUPER_USER { self.capabilities.permitted } else { 0 };
        }
        real
    }

    /// Returns the identity after `execve` of a program, which may run as its file's user and group, and whether the
    /// program must not trust its caller (`AT_SECURE`).
    pub fn after_program(&self, user: Option<u32>, group: Option<u32>) -> (Identity, bool) {
        let mut new = self.clone();
        let old = self.capabilities;
        if !self.has_no_new_privileges {
            new.user.effective = user.unwrap_or(self.user.effective);
            new.group.effective = group.unwrap_or(self.group.effective);
        }
        let (effective, real) = (new.user.effective, self.user.real);
        let is_root = |user: u32| user == SUPER_USER && !self.is_secure(secure_bit::NO_ROOT);
        let mut permitted = if is_root(effective) || is_root(real) { old.bounding | old.inheritable } else { 0 };
        let is_other = new.user.effective != self.user.real || new.group.effective != self.group.real;
        if self.has_no_new_privileges && (is_other || permitted & !old.permitted != 0) {
            (new.user.effective, new.group.effective) = (self.user.real, self.group.real);
            permitted &= old.permitted;
        }
        for ids in [&mut new.user, &mut new.group] {
            (ids.saved, ids.files) = (ids.effective, ids.effective);
        }
        let ambient = if is_other { 0 } else { old.ambient };
        new.capabilities.ambient = ambient;
        new.capabilities.permitted = permitted | ambient;
        new.capabilities.effective = if is_root(effective) { permitted | ambient } else { ambient };
        new.secure_bits &= !secure_bit::KEEP_CAPABILITIES;
        let has_more = is_root(effective) || new.capabilities.permitted & !ambient != 0;
        let distrusts = is_other || real != SUPER_USER && has_more;
        (new, distrusts)
    }

    /// Returns whether the thread may send a signal to a process with another identity.
    pub fn may_signal(&self, other: &Identity) -> bool {
        let reaches = |id: u32| id == other.user.saved || id == other.user.real;
        reaches(self.user.effective) || reaches(self.user.real) || self.has(capability::KILL)
    }

    /// Returns whether a process with another identity belongs to the thread's effective user.
    pub const fn is_owner_of(&self, other: &Identity) -> bool {
        self.user.effective == other.user.effective || self.user.effective == other.user.real
    }

    /// Returns whether the thread may read and set the limits of a process with another identity.
    pub const fn may_limit(&self, other: &Identity) -> bool {
        other.user.are_all(self.user.real) && other.group.are_all(self.group.real) || self.has(capability::SYS_RESOURCE)
    }

    /// Returns whether the thread may read what `/proc` shows of the memory of a process with another identity, which
    /// is dumpable or is not.
    pub const fn may_inspect(&self, other: &Identity, is_dumpable: bool) -> bool {
        let is_same = other.user.are_all(self.user.files) && other.group.are_all(self.group.files);
        let is_within = other.capabilities.permitted & !self.capabilities.effective == 0;
        is_same && is_dumpable && is_within || self.has(capability::SYS_PTRACE)
    }

    /// Returns whether the thread may read and write the memory of a process with another identity, which is dumpable
    /// or is not. Its real IDs count.
    pub const fn may_attach(&self, other: &Identity, is_dumpable: bool) -> bool {
        let is_same = other.user.are_all(self.user.real) && other.group.are_all(self.group.real);
        let is_within = other.capabilities.permitted & !self.capabilities.permitted == 0;
        is_same && is_dumpable && is_within || self.has(capability::SYS_PTRACE)
    }

    /// Returns whether a thread that changes from `old` to this identity stops being dumpable.
    pub const fn is_another_than(&self, old: &Identity) -> bool {
        self.user.effective != old.user.effective
            || self.group.effective != old.group.effective
            || self.user.files != old.user.files
            || self.group.files != old.group.files
            || self.capabilities.permitted & !old.capabilities.permitted != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(id: u32) -> Identity {
        let ids = Ids { real: id, effective: id, saved: id, files: id };
        Identity { group: ids, ..Identity::SUPER_USER.with_users(ids) }
    }

    #[test]
    fn capabilities_follow_users() {
        let other = user(5);
        assert_eq!((other.capabilities.permitted, other.capabilities.effective), (0, 0));
        let root = Identity::SUPER_USER;
        let acting = root.clone().with_users(Ids { effective: 5, files: 5, ..root.user });
        assert_eq!((acting.capabilities.permitted, acting.capabilities.effective), (capability::ALL, 0));
        assert_eq!(acting.clone().with_users(root.user), root);
        let keeping = Identity { secure_bits: secure_bit::KEEP_CAPABILITIES, ..root.clone() };
        let kept = keeping.with_users(other.user).capabilities;
        assert_eq!((kept.permitted, kept.effective), (capability::ALL, 0));
        let files = root.clone().with_file_user(Ids { files: 5, ..root.user });
        assert_eq!(files.capabilities.effective, capability::ALL & !capability::OF_FILES);
        assert_eq!(files.with_file_user(root.user), root);
    }

    #[test]
    fn a_program_runs_as_its_file_says_unless_that_is_given_up() {
        let (new, distrusts) = user(5).after_program(Some(0), None);
        assert_eq!((new.user, distrusts), (Ids { real: 5, effective: 0, saved: 0, files: 0 }, true));
        assert_eq!(new.capabilities.effective, capability::ALL);
        let bound = Identity { has_no_new_privileges: true, ..user(5) };
        assert_eq!(bound.after_program(Some(0), Some(0)), (bound.clone(), false));
        let (same, distrusts) = Identity::SUPER_USER.after_program(None, None);
        assert_eq!((same, distrusts), (Identity::SUPER_USER, false));
    }

    #[test]
    fn saved_users_follow_the_effective_one() {
        let ids = Ids { real: 1, effective: 2, saved: 3, files: 2 };
        assert_eq!(ids.set_two(None, Some(1), false), Ok(Ids { real: 1, effective: 1, saved: 3, files: 1 }));
        assert_eq!(ids.set_two(None, Some(3), false), Ok(Ids { real: 1, effective: 3, saved: 3, files: 3 }));
        assert_eq!(ids.set_two(Some(3), None, false), Err(Errno::EPERM));
        assert_eq!(ids.set_one(2, false), Err(Errno::EPERM));
        assert_eq!(ids.set_three([Some(3), Some(1), Some(2)], false).map(|ids| ids.saved), Ok(2));
        assert_eq!((ids.set_files(4, false).files, ids.set_files(3, false).files), (2, 3));
    }
}
