//! Events of files, of which those who watch them are told.
//!
//! While nothing is watched, calls only ask for that. Otherwise most events are told by what a call was and has
//! returned, in [`calls::watches`](crate::calls); here are those of which that does not say enough.

use tench_linux_calls::numbers::{open, watch};
use tench_linux_files::{Found, Kind, NodeId, Tree};
use tench_linux_watches::Happened;

use crate::descriptors::{DescriptionId, Place};
use crate::notices::RENAMED;
use crate::waiting::Key;
use crate::{Machine, System};

impl<M: Machine> System<M> {
    /// Returns whether any process watches files or directories.
    pub(crate) fn is_watching(&self) -> bool {
        !self.watches.is_empty() || !self.notices.is_empty()
    }

    /// Tells those who watch a file, or a directory with a name in it.
    fn tell(&mut self, file: NodeId, name: Option<&[u8]>, what: Happened) {
        self.notify(file, what.mask);
        let System { watches, memory, .. } = self;
        watches.tell(file, name, what, &mut |bytes| memory.check_room(bytes).is_ok());
    }

    /// Returns the flag of an event that happens to a directory.
    fn directory_flag(&self, node: NodeId) -> u32 {
        if self.tree.node(node).is_directory() { watch::ISDIR } else { 0 }
    }

    /// Tells what has happened to a file, by its name in a directory.
    #[cold]
    pub(crate) fn tell_of(&mut self, node: NodeId, place: Option<&Place>, mask: u32) {
        let found = if place.is_none() { self.place_of_directory(node) } else { None };
        let place = place.or(found.as_ref());
        let is_there = |place: &Place| self.tree.leads_to(place.directory, &place.name, node);
        let is_unlinked = !node.is_generated() && !place.is_none_or(is_there);
        let what = Happened { is_unlinked, ..Happened::new(mask | self.directory_flag(node)) };
        if let Some(place) = place {
            self.tell(place.directory, Some(&place.name), what);
        }
        self.tell(node, None, what);
        self.settle_watches();
    }

    /// Returns where a directory is, if somebody watches the one above.
    fn place_of_directory(&self, node: NodeId) -> Option<Place> {
        if node == Tree::ROOT {
            return None;
        }
        let directory = self.tree.node(node).directory()?.parent();
        let is_watched = self.watches.is_watched(directory) || self.notices.has(directory);
        let watched = is_watched.then(|| self.tree.node(directory).directory())??;
        Some(Place { directory, name: watched.name_of(node)?.into() })
    }

    /// Tells that a file is opened, as far as the descriptor does not say it: that it is made or cut off.
    #[cold]
    pub(crate) fn tell_of_opening(&mut self, found: &Found, node: NodeId, flags: u32) {
        let name = Some(&*found.name);
        if found.node.is_none() {
            self.tell(found.parent, name, Happened::new(watch::CREATE));
        } else if flags & open::TRUNC != 0 && matches!(self.tree.node(node).kind, Kind::Regular(_)) {
            self.tell(found.parent, name, Happened::new(watch::MODIFY));
            self.tell(node, None, Happened::new(watch::MODIFY));
        }
        self.settle_watches();
    }

    /// Tells that an open file is closed.
    #[cold]
    pub(crate) fn tell_of_closing(&mut self, description: DescriptionId) {
        let open_file = self.descriptions.get(description);
        if !open_file.is_path() {
            let mask = if open_file.writes() { watch::CLOSE_WRITE } else { watch::CLOSE_NOWRITE };
            let (node, place) = (open_file.node, open_file.place.clone());
            self.tell_of(node, place.as_ref(), mask);
        }
    }

    /// Tells that an entry was made, which is another one of its node or the first.
    #[cold]
    pub(crate) fn tell_of_making(&mut self, found: &Found, is_another: bool) {
        let Some(node) = found.node else { return };
        if is_another {
            self.tell(node, None, Happened::new(watch::ATTRIB));
        }
        let flag = self.directory_flag(node);
        self.tell(found.parent, Some(&found.name), Happened::new(watch::CREATE | flag));
        self.settle_watches();
    }

    /// Tells that an entry was removed, whose node may have ended with that.
    #[cold]
    pub(crate) fn tell_of_removal(&mut self, found: &Found, is_directory: bool) {
        let flag = if is_directory { watch::ISDIR } else { 0 };
        if let Some(node) = found.node.filter(|_| !is_directory) {
            self.tell(node, None, Happened::new(watch::ATTRIB));
        }
        // As on Linux, a node that has ended says so before its directory does.
        self.settle_watches();
        self.tell(found.parent, Some(&found.name), Happened::new(watch::DELETE | flag));
        self.settle_watches();
    }

    /// Tells that a node has another name, and another one perhaps its old one.
    #[cold]
    pub(crate) fn tell_of_renaming(&mut self, from: &Found, to: &Found, exchanges: bool) {
        let Some(node) = from.node.filter(|node| to.node != Some(*node)) else { return };
        self.tell_of_move(from, to, node, to.node.filter(|_| !exchanges));
        if let Some(other) = to.node.filter(|_| exchanges) {
            self.tell_of_move(to, from, other, None);
        }
        self.settle_watches();
    }

    fn tell_of_move(&mut self, from: &Found, to: &Found, node: NodeId, replaced: Option<NodeId>) {
        let (cookie, flag) = (self.watches.next_cookie(), self.directory_flag(node));
        let what = |mask: u32, cookie: u32| Happened { cookie, ..Happened::new(mask) };
        if from.parent == to.parent {
            self.notify(from.parent, RENAMED);
        }
        self.tell(from.parent, Some(&from.name), what(watch::MOVED_FROM | flag, cookie));
        self.tell(to.parent, Some(&to.name), what(watch::MOVED_TO | flag, cookie));
        if let Some(replaced) = replaced {
            self.tell(replaced, None, what(watch::ATTRIB | flag, 0));
        }
        self.tell(node, None, what(watch::MOVE_SELF, 0));
    }

    /// Removes a user from a node, of whose end those who watch it learn.
    pub(crate) fn release_node(&mut self, node: NodeId) {
        self.tree.release(&mut self.memory, node);
        if !self.watches.is_empty() {
            self.settle_watches();
        }
    }

    /// Ends the watches of nodes that have ended, and wakes who has got something to read. Whatever changes watches
    /// comes here.
    #[cold]
    pub(crate) fn settle_watches(&mut self) {
        let System { watches, memory, tree, waiters, .. } = self;
        for node in tree.take_ended() {
            watches.end_file(node, &mut |bytes| memory.check_room(bytes).is_ok());
        }
        for instance in watches.take_woken() {
            waiters.wake(Key::Watch(instance));
        }
        tree.keep_ended(!watches.is_empty());
    }
}
