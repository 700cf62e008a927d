//! `/dev/pts`, which programs see as a file system of its own: only the system makes and removes what is there.

use tench_linux_files::{Errno, Found, Kind, NodeId};

use crate::caller::{Caller, Result};
use crate::devices;
use crate::{Machine, System};

/// Number of the file system of `/dev/pts`, as programs see it.
pub(crate) const SLAVES_DEVICE: u32 = 23;
/// Magic number of that file system.
pub(super) const SLAVES_MAGIC: u64 = 0x1cd1;

impl<M: Machine> System<M> {
    /// Returns whether a node is the directory of slaves, or a slave there.
    pub(super) fn is_of_slaves(&self, node: NodeId) -> bool {
        match self.tree.node(node).kind {
            Kind::Character(device) if devices::is_slave(device) => self.terminals.is_slave(device.0 & 0xff, node),
            Kind::Directory(_) => node == self.terminals.directory(),
            _ => false,
        }
    }
}

impl<M: Machine> Caller<'_, M> {
    fn is_among_slaves(&self, place: &Found) -> bool {
        place.parent == self.system.terminals.directory()
    }

    /// Checks that a node may be made at a place.
    ///
    /// # Errors
    /// `EPERM`
    pub(super) fn may_make(&self, place: &Found) -> Result<()> {
        if self.is_among_slaves(place) && place.node.is_none() { Err(Errno::EPERM) } else { Ok(()) }
    }

    /// Checks that a file may be made by opening it at a place.
    ///
    /// # Errors
    /// `EACCES`
    pub(super) fn may_create(&self, place: &Found) -> Result<()> {
        self.may_make(place).map_err(|_| Errno::EACCES)
    }

    /// Checks that an entry may be removed.
    ///
    /// # Errors
    /// `EPERM`; `EBUSY` if the directory of slaves itself would be.
    pub(super) fn may_remove(&self, place: &Found, is_directory: bool) -> Result<()> {
        if is_directory && place.node == Some(self.system.terminals.directory()) {
            return Err(Errno::EBUSY);
        }
        if !is_directory && self.is_among_slaves(place) && place.node.is_some() { Err(Errno::EPERM) } else { Ok(()) }
    }

    /// Checks that a node may have another entry at a place.
    ///
    /// # Errors
    /// `EXDEV`, `EPERM`
    pub(super) fn may_link(&self, node: NodeId, place: &Found) -> Result<()> {
        Self::may_pass(self.system.is_of_slaves(node), self.is_among_slaves(place))
    }

    /// Checks that an entry may move.
    ///
    /// # Errors
    /// `EXDEV`, `EPERM`; `EBUSY` if the directory of slaves itself would move or be replaced.
    pub(super) fn may_rename(&self, from: &Found, to: &Found) -> Result<()> {
        let directory = Some(self.system.terminals.directory());
        if from.node == directory || to.node == directory {
            return Err(Errno::EBUSY);
        }
        Self::may_pass(self.is_among_slaves(from), self.is_among_slaves(to))
    }

    const fn may_pass(from: bool, to: bool) -> Result<()> {
        match (from, to) {
            (true, true) => Err(Errno::EPERM),
            (false, false) => Ok(()),
            _ => Err(Errno::EXDEV),
        }
    }
}
