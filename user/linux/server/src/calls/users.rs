//! Calls about users and groups, and about what follows from them.

use alloc::vec::Vec;

use tench_linux_calls::numbers::capability;
use tench_linux_calls::records::u32_at;
use tench_linux_files::Errno;

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::capabilities::Capabilities;
use crate::identity::{Identity, Ids, secure_bit};

/// The most supplementary groups of a process.
const MOST_GROUPS: u64 = 65_536;
/// Stands for no user or group.
const NOBODY: u32 = u32::MAX;

/// Returns a user or group, if one is given.
pub(super) const fn given(id: u64) -> Option<u32> {
    if id as u32 == NOBODY { None } else { Some(id as u32) }
}

/// Operations of `prctl`.
mod operation {
    pub const GET_DUMPABLE: u64 = 3;
    pub const SET_DUMPABLE: u64 = 4;
    pub const GET_KEEPCAPS: u64 = 7;
    pub const SET_KEEPCAPS: u64 = 8;
    pub const CAPBSET_READ: u64 = 23;
    pub const CAPBSET_DROP: u64 = 24;
    pub const GET_SECUREBITS: u64 = 27;
    pub const SET_SECUREBITS: u64 = 28;
    pub const SET_NO_NEW_PRIVS: u64 = 38;
    pub const GET_NO_NEW_PRIVS: u64 = 39;
    pub const CAP_AMBIENT: u64 = 47;
}

/// Operations of `PR_CAP_AMBIENT`.
mod ambient {
    pub const IS_SET: u64 = 1;
    pub const RAISE: u64 = 2;
    pub const LOWER: u64 = 3;
    pub const CLEAR_ALL: u64 = 4;
}

impl<M: Machine> Caller<'_, M> {
    /// Sets the users.
    fn set_users(&mut self, user: Ids) -> Result {
        let new = self.identity().clone().with_users(user);
        self.become_other(new);
        Ok(0)
    }

    /// Sets the groups, except the supplementary ones.
    fn set_group(&mut self, group: Ids) -> Result {
        let new = Identity { group, ..self.identity().clone() };
        self.become_other(new);
        Ok(0)
    }

    fn may_set_users(&self) -> (Ids, bool) {
        (self.identity().user, self.identity().has(capability::SETUID))
    }

    fn may_set_groups(&self) -> (Ids, bool) {
        (self.identity().group, self.identity().has(capability::SETGID))
    }

    /// Sets the effective user, or all.
    pub fn setuid(&mut self, user: u64) -> Result {
        let (ids, may_all) = self.may_set_users();
        self.set_users(ids.set_one(given(user).ok_or(Errno::EINVAL)?, may_all)?)
    }

    /// Sets the effective group, or all.
    pub fn setgid(&mut self, group: u64) -> Result {
        let (ids, may_all) = self.may_set_groups();
        self.set_group(ids.set_one(given(group).ok_or(Errno::EINVAL)?, may_all)?)
    }

    /// Sets the real and the effective user.
    pub fn setreuid(&mut self, real: u64, effective: u64) -> Result {
        let (ids, may_all) = self.may_set_users();
        self.set_users(ids.set_two(given(real), given(effective), may_all)?)
    }

    /// Sets the real and the effective group.
    pub fn setregid(&mut self, real: u64, effective: u64) -> Result {
        let (ids, may_all) = self.may_set_groups();
        self.set_group(ids.set_two(given(real), given(effective), may_all)?)
    }

    /// Sets the real, the effective and the saved user.
    pub fn setresuid(&mut self, new: [u64; 3]) -> Result {
        let (ids, may_all) = self.may_set_users();
        self.set_users(ids.set_three(new.map(given), may_all)?)
    }

    /// Sets the real, the effective and the saved group.
    pub fn setresgid(&mut self, new: [u64; 3]) -> Result {
        let (ids, may_all) = self.may_set_groups();
        self.set_group(ids.set_three(new.map(given), may_all)?)
    }

    /// Sets the user as whom files are accessed, if that may be. Returns the one before.
    pub fn setfsuid(&mut self, user: u64) -> Result {
        let (ids, may_all) = self.may_set_users();
        if let Some(user) = given(user) {
            let new = self.identity().clone().with_file_user(ids.set_files(user, may_all));
            self.become_other(new);
        }
        Ok(ids.files.into())
    }

    /// Sets the group as which files are accessed, if that may be. Returns the one before.
    pub fn setfsgid(&mut self, group: u64) -> Result {
        let (ids, may_all) = self.may_set_groups();
        if let Some(group) = given(group) {
            self.set_group(ids.set_files(group, may_all))?;
        }
        Ok(ids.files.into())
    }

    /// Reads the real, the effective and the saved ID, of users or of groups.
    pub fn read_ids(&mut self, ids: Ids, into: [u64; 3]) -> Result {
        let all = [ids.real, ids.effective, ids.saved];
        into.into_iter().zip(all).try_for_each(|(place, id)| self.write(place, &id.to_le_bytes())).map(|()| 0)
    }

    /// Reads the supplementary groups of the process; only their number, if there is room for none.
    pub fn getgroups(&mut self, room: u64, into: u64) -> Result {
        let groups = self.identity().groups.clone();
        let groups = groups.as_deref().unwrap_or_default();
        let room = (room as u32).cast_signed();
        if room < 0 || room > 0 && (room as usize) < groups.len() {
            return Err(Errno::EINVAL);
        }
        if room > 0 {
            self.system.memory.check_room(2 * size_of_val(groups))?;
            let bytes: Vec<u8> = groups.iter().flat_map(|group| group.to_le_bytes()).collect();
            self.write(into, &bytes)?;
        }
        Ok(groups.len() as u64)
    }

    /// Sets the supplementary groups of the process.
    pub fn setgroups(&mut self, count: u64, from: u64) -> Result {
        if !self.identity().has(capability::SETGID) {
            return Err(Errno::EPERM);
        }
        let count = u64::from(count as u32);
        if count > MOST_GROUPS {
            return Err(Errno::EINVAL);
        }
        // For the bytes, the numbers, and the copy that stays.
        self.system.memory.check_room(4 * count as usize * size_of::<u32>())?;
        let bytes = self.read(from, count as usize * 4)?;
        let mut groups: Vec<u32> = (0..count as usize).map(|index| u32_at(&bytes, index * 4)).collect();
        if groups.contains(&NOBODY) {
            return Err(Errno::EINVAL);
        }
        groups.sort_unstable();
        self.process.thread_mut().identity.groups = (count != 0).then(|| groups.into());
        Ok(0)
    }

    /// Does an operation of `prctl` about what the process may do; nothing if it is another one.
    pub(super) fn control_power(&mut self, operation: u64, arguments: [u64; 4]) -> Option<Result> {
        let [argument, second, third, fourth] = arguments;
        let (identity, rest) = (self.identity(), second | third | fourth);
        let is_kept = identity.is_secure(secure_bit::KEEP_CAPABILITIES);
        Some(match operation {
            operation::GET_DUMPABLE => Ok(self.process.is_dumpable.into()),
            operation::SET_DUMPABLE if argument <= 1 => {
                self.process.is_dumpable = argument == 1;
                Ok(0)
            }
            operation::GET_KEEPCAPS => Ok(is_kept.into()),
            operation::SET_KEEPCAPS => self.keep_capabilities(argument),
            operation::CAPBSET_READ if argument <= 40 => Ok(identity.capabilities.bounding >> argument & 1),
            operation::CAPBSET_DROP => self.drop_bounding(argument),
            operation::GET_SECUREBITS => Ok(identity.secure_bits.into()),
            operation::SET_SECUREBITS => self.set_secure_bits(argument),
            operation::SET_NO_NEW_PRIVS if argument == 1 && rest == 0 => {
                self.process.thread_mut().identity.has_no_new_privileges = true;
                Ok(0)
            }
            operation::GET_NO_NEW_PRIVS if argument | rest == 0 => Ok(identity.has_no_new_privileges.into()),
            operation::CAP_AMBIENT if third | fourth == 0 => self.control_ambient(argument, second),
            _ => return None,
        })
    }

    /// Sets or clears the secure bit that keeps capabilities when user IDs change.
    fn keep_capabilities(&mut self, argument: u64) -> Result {
        if argument > 1 {
            return Err(Errno::EINVAL);
        }
        let identity = &mut self.process.thread_mut().identity;
        if identity.is_secure(secure_bit::KEEP_CAPABILITIES << 1) {
            return Err(Errno::EPERM);
        }
        let others = identity.secure_bits & !secure_bit::KEEP_CAPABILITIES;
        identity.secure_bits = others | if argument == 1 { secure_bit::KEEP_CAPABILITIES } else { 0 };
        Ok(0)
    }

    /// Removes a capability from the bounding set.
    fn drop_bounding(&mut self, number: u64) -> Result {
        let identity = &mut self.process.thread_mut().identity;
        if !identity.has(capability::SETPCAP) {
            return Err(Errno::EPERM);
        }
        if number > 40 {
            return Err(Errno::EINVAL);
        }
        identity.capabilities.bounding &= !(1 << number);
        Ok(0)
    }

    /// Sets the secure bits.
    fn set_secure_bits(&mut self, bits: u64) -> Result {
        let identity = &mut self.process.thread_mut().identity;
        let locks = identity.secure_bits & secure_bit::LOCKS;
        let bits = u32::try_from(bits).map_err(|_| Errno::EPERM)?;
        let is_locked = locks >> 1 & (identity.secure_bits ^ bits) != 0 || locks & !bits != 0;
        let is_unknown = bits & !(secure_bit::ALL | secure_bit::LOCKS) != 0;
        if is_locked || is_unknown || !identity.has(capability::SETPCAP) {
            return Err(Errno::EPERM);
        }
        identity.secure_bits = bits;
        Ok(0)
    }

    /// Reads and sets the ambient capabilities.
    fn control_ambient(&mut self, what: u64, number: u64) -> Result {
        let identity = &mut self.process.thread_mut().identity;
        let is_refused = identity.is_secure(secure_bit::NO_AMBIENT_RAISE);
        let Capabilities { permitted, inheritable, ambient, .. } = &mut identity.capabilities;
        if what == ambient::CLEAR_ALL && number == 0 {
            *ambient = 0;
            return Ok(0);
        }
        if what == ambient::CLEAR_ALL || number > 40 {
            return Err(Errno::EINVAL);
        }
        let one = 1 << number;
        match what {
            ambient::IS_SET => return Ok((*ambient & one != 0).into()),
            ambient::RAISE if *permitted & *inheritable & one == 0 || is_refused => return Err(Errno::EPERM),
            ambient::RAISE => *ambient |= one,
            ambient::LOWER => *ambient &= !one,
            _ => return Err(Errno::EINVAL),
        }
        Ok(0)
    }
}
