//! Permissions: what the caller may do with files, and who owns what it makes.

use tench_linux_calls::numbers::{capability, open, permission};
use tench_linux_files::{Attributes, Credentials, Errno, Found, Kind, NodeId, Rename};

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::identity::Identity;

/// Capabilities with which one may change every directory.
const ALL_DIRECTORIES: u64 = capability::DAC_OVERRIDE | capability::FOWNER;
/// The set-user-ID and set-group-ID bits of a mode.
const SET_IDS: u32 = permission::SET_USER | permission::SET_GROUP;
/// Bits of a set-group-ID program. Without execute permission for the group, the set-group-ID bit has another meaning.
const SET_GROUP: u32 = permission::SET_GROUP | permission::GROUP_EXECUTE;

/// Returns the permissions that opening a file with these flags needs.
pub(super) const fn wanted_to_open(flags: u32) -> u32 {
    let access = match flags & open::ACCESS {
        open::RDONLY => permission::READ,
        open::WRONLY => permission::WRITE,
        _ => permission::READ | permission::WRITE,
    };
    access | if flags & open::TRUNC != 0 { permission::WRITE } else { 0 }
}

/// Returns the set-user-ID and set-group-ID bits that a file loses when somebody changes its contents or its owner.
fn lost_bits(attributes: &Attributes, who: &Credentials<'_>) -> u32 {
    let permissions = attributes.permissions;
    let user = permissions & permission::SET_USER;
    let is_program = permissions & permission::GROUP_EXECUTE != 0;
    let keeps_group = !is_program && who.may_keep_group(attributes);
    user | if keeps_group { 0 } else { permissions & permission::SET_GROUP }
}

impl<M: Machine> Caller<'_, M> {
    /// Returns the thread's identity.
    #[inline(always)]
    pub(crate) fn identity(&self) -> &Identity {
        &self.process.thread().identity
    }

    /// Gives the thread another identity. If its user changes, the signal for its parent's end is forgotten.
    pub(crate) fn become_other(&mut self, new: Identity) {
        let is_another = new.is_another_than(self.identity());
        if is_another {
            self.process.is_dumpable = false;
            self.process.thread_mut().end_of_parent = 0;
        }
        self.process.thread_mut().identity = new;
    }

    /// Returns the owner and the permissions of a node, of the tree or a generated one.
    pub(super) fn attributes(&self, node: NodeId) -> Attributes {
        let recorded = self.system.tree.node(node).attributes;
        match self.generated_facts(node) {
            Some(facts) => {
                Attributes { permissions: facts.permissions, user: facts.user, group: facts.group, ..recorded }
            }
            None => recorded,
        }
    }

    /// Checks that a file may be accessed as wanted.
    ///
    /// # Errors
    /// `EACCES`
    #[inline(always)]
    pub(crate) fn may_access(&self, node: NodeId, wanted: u32) -> Result<()> {
        if wanted & permission::EXECUTE == 0 && self.identity().has(capability::DAC_OVERRIDE) {
            return Ok(());
        }
        self.check_access(node, wanted)
    }

    #[cold]
    fn check_access(&self, node: NodeId, wanted: u32) -> Result<()> {
        let is_directory = self.system.tree.node(node).is_directory();
        let may = self.identity().for_files().may(&self.attributes(node), is_directory, wanted);
        if may { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// Checks that what was found may be opened. The check passes if opening it fails for another reason anyway.
    ///
    /// # Errors
    /// `EACCES`, `EPERM`
    #[inline(always)]
    pub(super) fn may_open(&self, found: &Found, flags: u32) -> Result<()> {
        if flags & open::PATH != 0 || self.identity().capabilities.has_all(ALL_DIRECTORIES) {
            return Ok(());
        }
        self.check_open(found, flags)
    }

    #[cold]
    fn check_open(&self, found: &Found, flags: u32) -> Result<()> {
        let makes = flags & open::CREAT != 0;
        if makes && found.slash && found.is_named() {
            return Ok(());
        }
        let Some(node) = found.entry()? else {
            return if makes { self.may_enter(found, false) } else { Ok(()) };
        };
        let wanted = wanted_to_open(flags);
        let entry = self.system.tree.node(node);
        let is_directory = entry.is_directory();
        let fails = makes && flags & open::EXCL != 0
            || is_directory && (makes || wanted & permission::WRITE != 0)
            || !is_directory && (found.slash || flags & open::DIRECTORY != 0)
            || matches!(entry.kind, Kind::Link(_));
        if fails {
            return Ok(());
        }
        self.may_access(node, wanted)?;
        let is_owner = || self.identity().for_files().owns(&self.attributes(node));
        if flags & open::NOATIME != 0 && !is_owner() { Err(Errno::EPERM) } else { Ok(()) }
    }

    /// Checks that an entry may be made at a place, unless that fails anyway.
    ///
    /// # Errors
    /// `EACCES`
    pub(super) fn may_enter(&self, place: &Found, is_directory: bool) -> Result<()> {
        if self.identity().has(capability::DAC_OVERRIDE) {
            return Ok(());
        }
        let fails = !place.is_named()
            || place.entry()?.is_some()
            || place.slash && !is_directory
            || place.parent.is_generated()
            || self.system.tree.is_removed(place.parent);
        if fails { Ok(()) } else { self.may_access(place.parent, permission::WRITE | permission::EXECUTE) }
    }

    /// Checks that a node may have another name at a place, unless that fails anyway.
    ///
    /// # Errors
    /// `EPERM`, `EACCES`
    pub(super) fn may_add_name(&self, node: NodeId, place: &Found) -> Result<()> {
        let fails = !place.is_named()
            || place.entry()?.is_some()
            || place.slash
            || node.is_generated() != place.parent.is_generated();
        if fails || self.identity().capabilities.has_all(ALL_DIRECTORIES) {
            return Ok(());
        }
        if !self.system.tree.may_link(node, &self.identity().for_files()) {
            return Err(Errno::EPERM);
        }
        self.may_enter(place, false)
    }

    /// Checks that an entry may be removed, unless that fails anyway.
    ///
    /// # Errors
    /// `EACCES`, `EPERM`
    pub(super) fn may_leave(&self, place: &Found) -> Result<()> {
        let Some(node) = place.node.filter(|_| place.is_named()) else { return Ok(()) };
        if self.identity().capabilities.has_all(ALL_DIRECTORIES) || place.parent.is_generated() {
            return Ok(());
        }
        if place.slash && !self.system.tree.node(node).is_directory() {
            return Ok(());
        }
        self.may_access(place.parent, permission::WRITE | permission::EXECUTE)?;
        let (directory, entry) = (self.attributes(place.parent), self.attributes(node));
        let may = self.identity().for_files().may_remove(&directory, &entry);
        if may { Ok(()) } else { Err(Errno::EPERM) }
    }

    /// Checks that an entry may move, unless that fails anyway.
    ///
    /// # Errors
    /// `EACCES`, `EPERM`
    pub(super) fn may_move(&self, from: &Found, to: &Found, how: Rename) -> Result<()> {
        if self.identity().capabilities.has_all(ALL_DIRECTORIES) {
            return Ok(());
        }
        let Some((node, is_directory)) = self.system.tree.check_rename(from, to, how)? else { return Ok(()) };
        self.may_leave(from)?;
        match to.node {
            Some(_) => self.may_leave(to)?,
            None => self.may_enter(to, is_directory)?,
        }
        if from.parent == to.parent {
            return Ok(());
        }
        // The entry `..` of a directory changes.
        if is_directory {
            self.may_access(node, permission::WRITE)?;
        }
        match to.node {
            Some(other) if how == Rename::Exchange && self.system.tree.node(other).is_directory() => {
                self.may_access(other, permission::WRITE)
            }
            _ => Ok(()),
        }
    }

    /// Checks that the caller owns a file, or may do what its owner may.
    ///
    /// # Errors
    /// `EPERM`
    pub(super) fn must_own(&self, node: NodeId) -> Result<()> {
        let may = self.identity().for_files().owns(&self.attributes(node));
        if may { Ok(()) } else { Err(Errno::EPERM) }
    }

    /// Makes the caller the owner of something without a name that it has made.
    pub(crate) fn own(&mut self, node: NodeId) {
        let identity = self.identity();
        let (user, group) = (identity.user.files, identity.group.files);
        if user | group != 0 {
            let attributes = &mut self.system.tree.node_mut(node).attributes;
            (attributes.user, attributes.group) = (user, group);
        }
    }

    /// Makes the caller the owner of what it has made in a directory, and a set-group-ID directory's group its group.
    pub(super) fn own_in(&mut self, directory: NodeId, node: NodeId) {
        let parent = self.system.tree.node(directory).attributes;
        self.own(node);
        if parent.permissions & permission::SET_GROUP == 0 {
            return;
        }
        let new = self.system.tree.node(node);
        let attributes = Attributes { group: parent.group, ..new.attributes };
        let is_refused =
            attributes.permissions & SET_GROUP == SET_GROUP && !self.identity().for_files().may_keep_group(&attributes);
        let permissions = match new.kind {
            Kind::Directory(_) => attributes.permissions | permission::SET_GROUP,
            _ if is_refused => attributes.permissions & !permission::SET_GROUP,
            _ => attributes.permissions,
        };
        self.system.tree.node_mut(node).attributes = Attributes { permissions, ..attributes };
    }

    /// Clears the set-user-ID and set-group-ID bits of a file whose contents are about to change.
    #[inline(always)]
    pub(crate) fn distrust(&mut self, node: NodeId) {
        if self.system.tree.node(node).attributes.permissions & SET_IDS != 0 {
            self.take_bits(node);
        }
    }

    #[cold]
    fn take_bits(&mut self, node: NodeId) {
        let who = self.process.thread().identity.for_files();
        if !who.has(capability::FSETID) {
            let attributes = &mut self.system.tree.node_mut(node).attributes;
            attributes.permissions &= !lost_bits(attributes, &who);
        }
    }

    /// Returns the permissions that `chmod` by the caller gives to a file.
    ///
    /// # Errors
    /// `EPERM`
    pub(super) fn permitted_mode(&self, node: NodeId, mode: u32) -> Result<u32> {
        self.must_own(node)?;
        let keeps = self.identity().for_files().may_keep_group(&self.attributes(node));
        Ok(mode & 0o7777 & if keeps { u32::MAX } else { !permission::SET_GROUP })
    }

    /// Returns a file's attributes after `chown` by the caller.
    ///
    /// # Errors
    /// `EPERM`
    pub(super) fn permitted_owner(&self, node: NodeId, user: Option<u32>, group: Option<u32>) -> Result<Attributes> {
        let old = self.attributes(node);
        let who = self.identity().for_files();
        let is_owner = who.user == old.user;
        let may_give = who.has(capability::CHOWN);
        let may_user = user.is_none_or(|user| is_owner && user == old.user);
        let may_group = group.is_none_or(|group| is_owner && (group == old.group || who.is_in(group)));
        if !(may_give || may_user && may_group) {
            return Err(Errno::EPERM);
        }
        let lost = match self.system.tree.node(node).is_directory() {
            true => 0,
            false => lost_bits(&old, &who),
        };
        if lost != 0 && !who.owns(&old) {
            return Err(Errno::EPERM);
        }
        let permissions = old.permissions & !lost;
        Ok(Attributes { permissions, user: user.unwrap_or(old.user), group: group.unwrap_or(old.group), ..old })
    }
}
