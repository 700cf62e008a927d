//! Identifiers, keys and permissions, which all three kinds of objects have.

use alloc::collections::BTreeMap;

use tench_linux_calls::{Errno, ipc};

/// Bits of an identifier that are the index.
const INDEX_BITS: u32 = 15;
/// The lowest index that none has.
const INDICES: u32 = 1 << INDEX_BITS;
/// The lowest number above the index that no identifier has.
const SEQUENCES: u32 = i32::MAX as u32 >> INDEX_BITS;
/// Indices that are used at least before they begin anew.
const LEAST_CYCLE: u32 = 64;
/// Bits of a mode that are permissions.
const PERMISSIONS: u32 = 0o777;

/// A user who makes a call.
#[derive(Clone, Copy, Debug)]
pub struct User<'a> {
    /// Number of the effective user.
    pub user: u32,
    /// Number of the effective group.
    pub group: u32,
    /// Numbers of the user's other groups.
    pub groups: &'a [u32],
    /// Permissions refuse nothing to this user.
    pub may_access_all: bool,
    /// Everything can be changed and ended by this user as by its owner.
    pub may_change_all: bool,
    /// Limits that anybody can lower can be raised by this user.
    pub may_raise_limits: bool,
}

impl User<'_> {
    /// The super-user.
    pub const SUPER_USER: User<'static> =
        User { user: 0, group: 0, groups: &[], may_access_all: true, may_change_all: true, may_raise_limits: true };
}

/// By whom and when something is done.
#[derive(Clone, Copy, Debug)]
pub struct By<'a> {
    /// The user.
    pub user: User<'a>,
    /// Number of the process.
    pub process: u32,
    /// Number of the thread.
    pub thread: u32,
    /// The date in seconds.
    pub now: u64,
}

/// Permissions of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// The key by which it is found; [`PRIVATE`](ipc::PRIVATE) if it is not.
    pub key: i32,
    /// Number of the user to whom it belongs.
    pub user: u32,
    /// Number of the group to which it belongs.
    pub group: u32,
    /// Number of the user who has made it.
    pub maker_user: u32,
    /// Number of the group that has made it.
    pub maker_group: u32,
    /// Permissions as those of files, and flags of shared memory.
    pub mode: u32,
}

impl Permissions {
    fn new(key: i32, flags: u32, user: &User<'_>) -> Permissions {
        let (user, group) = (user.user, user.group);
        Permissions { key, user, group, maker_user: user, maker_group: group, mode: flags & PERMISSIONS }
    }

    /// Checks that a user has the wanted permissions, whose bits may be those for the owner, the group or others.
    ///
    /// # Errors
    /// `EACCES`
    pub fn check(&self, user: &User<'_>, wanted: u32) -> Result<(), Errno> {
        let wanted = (wanted >> 6 | wanted >> 3 | wanted) & 7;
        let in_group = |group: u32| user.group == group || user.groups.contains(&group);
        let granted = if user.user == self.maker_user || user.user == self.user {
            self.mode >> 6
        } else if in_group(self.maker_group) || in_group(self.group) {
            self.mode >> 3
        } else {
            self.mode
        };
        if user.may_access_all || wanted & !granted == 0 { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// Checks that a user may change permissions or remove the object: its owner, its maker, or a privileged user.
    ///
    /// # Errors
    /// `EPERM`
    fn check_owner(&self, user: &User<'_>) -> Result<(), Errno> {
        let is_owner = user.user == self.user || user.user == self.maker_user;
        if is_owner || user.may_change_all { Ok(()) } else { Err(Errno::EPERM) }
    }
}

/// To whom something is to belong.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    /// Number of the user.
    pub user: u32,
    /// Number of the group.
    pub group: u32,
    /// Permissions.
    pub mode: u32,
}

/// An object with its identifier.
#[derive(Debug)]
pub struct Entry<T> {
    /// The identifier.
    pub id: i32,
    /// The permissions.
    pub permissions: Permissions,
    /// The segment, set or queue.
    pub value: T,
}

impl<T> Entry<T> {
    /// Returns the number in the identifier that rises when indices begin anew.
    pub fn sequence(&self) -> u16 {
        (self.id >> INDEX_BITS) as u16
    }
}

/// How something is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// By its identifier.
    ById,
    /// By its index, of which other bits do not matter.
    ByIndex,
    /// By its index, without a check of permissions.
    ByAnybody,
}

/// Everything of a kind.
#[derive(Debug)]
pub(crate) struct Table<T> {
    all: BTreeMap<u32, Entry<T>>,
    keys: BTreeMap<i32, u32>,
    /// The most that there may be.
    limit: usize,
    /// The index that is tried first.
    next: u32,
    /// The last index that was given.
    last: Option<u32>,
    sequence: u32,
}

/// Returns the index in an identifier.
pub(crate) const fn index_of(id: i32) -> u32 {
    id.cast_unsigned() % INDICES
}

impl<T> Table<T> {
    pub const fn new(limit: usize) -> Table<T> {
        Table { all: BTreeMap::new(), keys: BTreeMap::new(), limit, next: 0, last: None, sequence: 0 }
    }

    /// Returns the identifier of the object with a key, or nothing if it is to be made.
    ///
    /// # Errors
    /// `EEXIST` if it is there and must not be, `ENOENT` if it is not and must be, those of `fits`, `EACCES`.
    pub fn find(
        &self,
        by: &By<'_>,
        key: i32,
        flags: u32,
        fits: impl FnOnce(&T) -> Result<(), Errno>,
    ) -> Result<Option<i32>, Errno> {
        if key == ipc::PRIVATE {
            return Ok(None);
        }
        let Some(entry) = self.keys.get(&key).and_then(|index| self.all.get(index)) else {
            return if flags & ipc::CREAT == 0 { Err(Errno::ENOENT) } else { Ok(None) };
        };
        if flags & ipc::CREAT != 0 && flags & ipc::EXCL != 0 {
            return Err(Errno::EEXIST);
        }
        fits(&entry.value)?;
        entry.permissions.check(&by.user, flags)?;
        Ok(Some(entry.id))
    }

    /// Checks that there may be another one.
    ///
    /// # Errors
    /// `ENOSPC`
    pub fn check_count(&self) -> Result<(), Errno> {
        if self.all.len() < self.limit { Ok(()) } else { Err(Errno::ENOSPC) }
    }

    /// Adds something. There [may be](Self::check_count) another one. Returns its identifier.
    pub fn add(&mut self, by: &By<'_>, key: i32, flags: u32, value: T) -> i32 {
        let count = self.all.len() as u32;
        let end = (count * 3 / 2).clamp(LEAST_CYCLE, INDICES);
        let free = |from: u32| (from..end).find(|index| !self.all.contains_key(index));
        let index = free(self.next).or_else(|| free(0)).unwrap_or(count);
        self.next = index + 1;
        if self.last.is_some_and(|last| index <= last) {
            self.sequence = (self.sequence + 1) % SEQUENCES;
        }
        self.last = Some(index);
        let id = (self.sequence << INDEX_BITS | index).cast_signed();
        self.all.insert(index, Entry { id, permissions: Permissions::new(key, flags, &by.user), value });
        if key != ipc::PRIVATE {
            self.keys.insert(key, index);
        }
        id
    }

    /// Returns something by its identifier.
    ///
    /// # Errors
    /// `EINVAL` if it is not there.
    pub fn get(&self, id: i32) -> Result<&Entry<T>, Errno> {
        let entry = self.all.get(&index_of(id)).filter(|entry| entry.id == id);
        entry.ok_or(Errno::EINVAL)
    }

    /// As [`get`](Self::get), to be changed.
    pub fn get_mut(&mut self, id: i32) -> Result<&mut Entry<T>, Errno> {
        let entry = self.all.get_mut(&index_of(id)).filter(|entry| entry.id == id);
        entry.ok_or(Errno::EINVAL)
    }

    /// Returns something by its index, to be changed.
    pub fn at(&mut self, index: u32) -> Option<&mut Entry<T>> {
        self.all.get_mut(&index)
    }

    /// Returns something for a user who may read it, and what a call about it returns.
    ///
    /// # Errors
    /// `EINVAL` if it is not there, `EACCES`.
    pub fn look(&self, by: &By<'_>, id: i32, how: Found) -> Result<(&Entry<T>, u64), Errno> {
        if id < 0 {
            return Err(Errno::EINVAL);
        }
        let entry = match how {
            Found::ById => self.get(id)?,
            Found::ByIndex | Found::ByAnybody => self.all.get(&index_of(id)).ok_or(Errno::EINVAL)?,
        };
        if how != Found::ByAnybody {
            entry.permissions.check(&by.user, 0o444)?;
        }
        Ok((entry, if how == Found::ById { 0 } else { u64::from(entry.id.cast_unsigned()) }))
    }

    /// Returns something for a user to whom it belongs.
    ///
    /// # Errors
    /// `EINVAL` if it is not there, `EPERM` if it belongs to another.
    pub fn own(&mut self, by: &By<'_>, id: i32) -> Result<&mut Entry<T>, Errno> {
        let entry = self.get_mut(id)?;
        entry.permissions.check_owner(&by.user)?;
        Ok(entry)
    }

    /// Gives something to somebody.
    ///
    /// # Errors
    /// Those of [`own`](Self::own), `EINVAL` if nobody has such a number.
    pub fn give(&mut self, by: &By<'_>, id: i32, owner: &Owner) -> Result<&mut T, Errno> {
        let entry = self.own(by, id)?;
        if owner.user == u32::MAX || owner.group == u32::MAX {
            return Err(Errno::EINVAL);
        }
        let permissions = &mut entry.permissions;
        (permissions.user, permissions.group) = (owner.user, owner.group);
        permissions.mode = permissions.mode & !PERMISSIONS | owner.mode & PERMISSIONS;
        Ok(&mut entry.value)
    }

    /// Removes something.
    pub fn remove(&mut self, index: u32) -> Option<T> {
        self.hide(index);
        self.all.remove(&index).map(|entry| entry.value)
    }

    /// Takes an object's key away.
    pub fn hide(&mut self, index: u32) {
        if let Some(entry) = self.all.get_mut(&index) {
            let key = core::mem::replace(&mut entry.permissions.key, ipc::PRIVATE);
            self.keys.remove(&key);
        }
    }

    /// Returns the number of objects.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Returns the highest index; 0 if there is none.
    pub fn highest(&self) -> u64 {
        self.all.last_key_value().map_or(0, |(index, _)| u64::from(*index))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Entry<T>> {
        self.all.values()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry<T>> {
        self.all.values_mut()
    }

    /// Checks that keys lead to the objects that have them, and that there are no more than allowed.
    pub fn check(&self) -> Result<(), &'static str> {
        let keyed = self.all.values().filter(|entry| entry.permissions.key != ipc::PRIVATE).count();
        let leads = |(key, index): (&i32, &u32)| self.all.get(index).is_some_and(|to| to.permissions.key == *key);
        if keyed != self.keys.len() || !self.keys.iter().all(leads) {
            return Err("a key does not lead to what has it");
        }
        if self.all.iter().any(|(index, entry)| index_of(entry.id) != *index) {
            return Err("an identifier has another index");
        }
        if self.all.len() <= self.limit { Ok(()) } else { Err("there are more than there may be") }
    }
}
