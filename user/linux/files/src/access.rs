//! Rules that say who may do what with a file: by its owner, its group, and the caller's capabilities.

use tench_linux_calls::numbers::{capability, permission};

use crate::generated::{Class, Generated};
use crate::node::{Attributes, Kind, Node};
use crate::{Errno, NodeId, Tree};

/// The credentials of a caller that accesses files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials<'a> {
    /// The user.
    pub user: u32,
    /// The group.
    pub group: u32,
    /// Supplementary groups, in ascending order.
    pub groups: &'a [u32],
    /// The effective capabilities.
    pub capabilities: u64,
}

impl Credentials<'_> {
    /// Capabilities, each of which lets the caller search every directory.
    pub const SEARCH: u64 = capability::DAC_OVERRIDE | capability::DAC_READ_SEARCH;

    /// Returns whether one of the capabilities of a set is there.
    pub const fn has(&self, capabilities: u64) -> bool {
        self.capabilities & capabilities != 0
    }

    /// Returns whether a group is among the caller's.
    pub fn is_in(&self, group: u32) -> bool {
        self.group == group || self.groups.binary_search(&group).is_ok()
    }

    /// Returns whether the caller owns a file, or may do what only its owner may.
    pub const fn owns(&self, attributes: &Attributes) -> bool {
        self.user == attributes.user || self.has(capability::FOWNER)
    }

    /// Returns whether a file keeps the set-group-ID bit if the caller changes it.
    pub fn may_keep_group(&self, attributes: &Attributes) -> bool {
        self.is_in(attributes.group) || self.has(capability::FSETID)
    }

    /// Returns whether a file may be accessed as wanted: to read, to write, to execute or search.
    pub fn may(&self, attributes: &Attributes, is_directory: bool, wanted: u32) -> bool {
        let permissions = attributes.permissions;
        let granted = match () {
            () if attributes.user == self.user => permissions >> 6,
            () if self.is_in(attributes.group) => permissions >> 3,
            () => permissions,
        };
        let is_executed = wanted & permission::EXECUTE != 0;
        granted & wanted == wanted
            || self.has(capability::DAC_OVERRIDE) && (is_directory || !is_executed || permissions & 0o111 != 0)
            || self.has(capability::DAC_READ_SEARCH)
                && wanted & permission::WRITE == 0
                && (is_directory || !is_executed)
    }

    /// Returns whether an entry may be removed from a directory, as far as its sticky bit is concerned.
    pub const fn may_remove(&self, directory: &Attributes, entry: &Attributes) -> bool {
        let is_sticky = directory.permissions & permission::STICKY != 0;
        !is_sticky || self.user == entry.user || self.user == directory.user || self.has(capability::FOWNER)
    }
}

impl Tree {
    /// Checks that a path may lead through a directory.
    pub(crate) fn check_search(
        &self,
        generated: &dyn Generated,
        directory: NodeId,
        who: &Credentials<'_>,
    ) -> Result<(), Errno> {
        let node = self.node(directory);
        let may = match node.kind {
            Kind::Generated(Class::Directory) => generated.may_search(directory, who),
            _ => who.may(&node.attributes, true, permission::EXECUTE),
        };
        if may { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// Checks that a symbolic link at the end of a path may be followed: in a sticky directory that everybody may
    /// write, only if the caller or the directory's owner owns the link.
    ///
    /// # Errors
    /// `EACCES`, also for the super-user.
    pub(crate) fn check_follow(&self, generated: &dyn Generated, directory: NodeId, link: &Node) -> Result<(), Errno> {
        const SHARED: u32 = permission::STICKY | permission::OTHERS_WRITE;
        let Attributes { permissions, user, .. } = self.node(directory).attributes;
        if permissions & SHARED != SHARED || user == link.attributes.user {
            return Ok(());
        }
        let is_another = generated.user().is_some_and(|user| user != link.attributes.user);
        if is_another { Err(Errno::EACCES) } else { Ok(()) }
    }

    /// Returns whether the caller may make a hard link to a file, which its owner may want to delete.
    pub fn may_link(&self, node: NodeId, who: &Credentials<'_>) -> bool {
        const GROUP: u32 = permission::SET_GROUP | permission::GROUP_EXECUTE;
        let node = self.node(node);
        let permissions = node.attributes.permissions;
        let is_plain = matches!(node.kind, Kind::Regular(_))
            && permissions & permission::SET_USER == 0
            && permissions & GROUP != GROUP;
        who.owns(&node.attributes) || is_plain && who.may(&node.attributes, false, permission::READ | permission::WRITE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;

    fn file(permissions: u32, user: u32, group: u32) -> Attributes {
        let never = Time::default();
        Attributes { permissions, user, group, accessed: never, modified: never, changed: never }
    }

    #[test]
    fn the_first_class_of_users_decides() {
        let who = Credentials { user: 5, group: 6, groups: &[7, 9], capabilities: 0 };
        assert!(who.may(&file(0o600, 5, 0), false, 6) && !who.may(&file(0o600, 4, 6), false, 4));
        assert!(!who.may(&file(0o077, 5, 6), false, 4), "the owner, although all others may");
        assert!(!who.may(&file(0o707, 4, 9), false, 4) && who.may(&file(0o040, 4, 7), false, 4));
        assert!(who.may(&file(0o005, 4, 8), true, 5) && !who.may(&file(0o005, 4, 8), true, 2));
    }

    #[test]
    fn capabilities_let_more_be_done() {
        let with = |capabilities| Credentials { user: 5, group: 6, groups: &[], capabilities };
        let all = with(capability::DAC_OVERRIDE);
        assert!(all.may(&file(0, 0, 0), false, 6) && all.may(&file(0, 0, 0), true, 7));
        assert!(!all.may(&file(0o666, 0, 0), false, 1) && all.may(&file(0o100, 0, 0), false, 1));
        let reader = with(capability::DAC_READ_SEARCH);
        assert!(reader.may(&file(0, 0, 0), false, 4) && reader.may(&file(0, 0, 0), true, 5));
        assert!(!reader.may(&file(0, 0, 0), true, 2) && !reader.may(&file(0o100, 0, 0), false, 1));
        assert!(with(0).may_remove(&file(0o777, 0, 0), &file(0, 0, 0)));
        assert!(!with(0).may_remove(&file(0o1777, 0, 0), &file(0, 0, 0)));
        assert!(with(capability::FOWNER).may_remove(&file(0o1777, 0, 0), &file(0, 0, 0)));
    }
}
