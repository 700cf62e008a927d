//! Calls of an instance with mounts: what they need to know of file servers, and what they change there.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tench_linux_calls::Sysno;
use tench_linux_calls::numbers::open;
use tench_linux_files::{Attributes, Errno, Found, Kind, NewNode, NodeId, Rename};
use tench_linux_memory::{ObjectId, PAGE_SIZE};

use crate::Machine;
use crate::caller::{Caller, Outcome, Result};
use crate::mounts::errand::Removed;
use crate::mounts::{Changed, Need};
use crate::waiting::{Interruption, Key, Waiting};

/// The highest number of an error.
const MAX_ERROR: i64 = 4095;

/// How much of a file a call uses.
enum Use {
    /// No more than its length.
    Length,
    /// The contents.
    Contents,
    /// The entries of a directory.
    Entries,
}

/// Returns the descriptors that a call uses, and how.
fn used(call: Sysno, &[a, b, c, _, e, _]: &[u64; 6]) -> [Option<(u64, Use)>; 2] {
    match call {
        Sysno::read | Sysno::pread64 | Sysno::readv | Sysno::preadv | Sysno::preadv2 => {
            [Some((a, Use::Contents)), None]
        }
        Sysno::write | Sysno::pwrite64 | Sysno::writev | Sysno::pwritev | Sysno::pwritev2 => {
            [Some((a, Use::Length)), None]
        }
        Sysno::lseek | Sysno::fstat | Sysno::ftruncate | Sysno::fallocate => [Some((a, Use::Length)), None],
        Sysno::sendfile => [Some((b, Use::Contents)), Some((a, Use::Length))],
        Sysno::splice | Sysno::copy_file_range => [Some((a, Use::Contents)), Some((c, Use::Length))],
        Sysno::mmap => [Some((e, Use::Contents)), None],
        Sysno::getdents64 => [Some((a, Use::Entries)), None],
        _ => [None, None],
    }
}

/// Returns whether a call has failed or waits.
fn has_failed(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Wait => true,
        Outcome::Return(result) => (-MAX_ERROR..0).contains(&result.cast_signed()),
        _ => false,
    }
}

impl<M: Machine> Caller<'_, M> {
    fn thread(&self) -> u32 {
        self.process.thread().id
    }

    /// Makes a call that may have to do with mounts. If the call needs a server's reply, it waits for the reply and is
    /// made again. Its changes are written to the file servers before it returns.
    pub(crate) fn call_with_mounts(&mut self, number: u64, arguments: &[u64; 6]) -> Outcome {
        let thread = self.thread();
        if self.waiting().is_some_and(Waiting::is_for_errand) {
            if let Some(errand) = self.system.mounts.pending(thread) {
                // The errand is not done: something else has ended the wait.
                return self.await_errand(Key::Errand(errand), number, arguments);
            }
            // The call goes on with the wait in which it was before it needed the errand.
            let before = self.system.take_wait_before(thread);
            self.process.thread_mut().waiting = before;
        }
        let outcome = match self.system.mounts.result(thread) {
            Some(result) => self.write_changes(number, result),
            None => self.call_informed(number, arguments),
        };
        let outcome = match (self.system.mounts.take_wanted(), outcome) {
            (Some(need), outcome) if has_failed(&outcome) => match self.system.inquire(thread, need) {
                Ok(key) => return self.await_errand(key, number, arguments),
                Err(error) => {
                    let result = match self.system.mounts.result(thread) {
                        Some(result) => self.end_unwritten(number, result, error),
                        None => Err(error),
                    };
                    self.end_call(number, arguments, result.into())
                }
            },
            (_, outcome) => outcome,
        };
        self.system.end_inquiry(thread);
        outcome
    }

    /// Makes a call, unless it has to wait for a server's reply first.
    fn call_informed(&mut self, number: u64, arguments: &[u64; 6]) -> Outcome {
        let call = usize::try_from(number).ok().and_then(Sysno::new);
        if let Some(call) = call
            && let Err(error) = self.inform(call, arguments)
        {
            return self.end_call(number, arguments, Err(error).into());
        }
        let outcome = self.call_untraced(number, arguments);
        if self.system.mounts.changes.is_empty() {
            return outcome;
        }
        let Outcome::Return(result) = outcome else {
            debug_assert!(false, "a call that has changed a file in a mount returns");
            self.system.mounts.changes.clear();
            return outcome;
        };
        let moves = matches!(call, Some(Sysno::write | Sysno::writev | Sysno::sendfile));
        let moved = if moves { self.descriptor(arguments[0]).ok() } else { None };
        let thread = self.thread();
        self.system.keep_changes(thread, result, moved);
        self.write_changes(number, result)
    }

    /// Lets the call wait for an errand, after which it is made again.
    fn await_errand(&mut self, key: Key, number: u64, arguments: &[u64; 6]) -> Outcome {
        let thread = self.thread();
        if !self.waiting().is_some_and(Waiting::is_for_errand) {
            let before = self.process.thread_mut().waiting.take();
            self.system.keep_wait(thread, before);
        }
        let error = self.wait(&[key], None, Interruption::Never);
        let outcome = Err(error).into();
        self.note_wait(number, arguments, &outcome);
        outcome
    }

    /// Ends a call with an outcome, whether or not it has waited.
    fn end_call(&mut self, number: u64, arguments: &[u64; 6], outcome: Outcome) -> Outcome {
        if self.waiting().is_some() {
            self.note_wait(number, arguments, &outcome);
        }
        outcome
    }

    /// Writes the changes of a call, and returns its result when all are written.
    fn write_changes(&mut self, number: u64, result: u64) -> Outcome {
        let thread = self.thread();
        while let Some(node) = self.system.mounts.next_changed(thread) {
            if let Some(error) = self.system.mounts.failure(thread) {
                return self.end_unwritten(number, result, error).into();
            }
            if self.system.tree.mirror_of(node).is_some() {
                self.system.mounts.want(Need::Write);
                return Outcome::Wait;
            }
            // The instance itself has removed the file meanwhile, so that it is nowhere but here.
            self.system.drop_change(thread);
        }
        Outcome::Return(result)
    }

    /// Returns the result of a call whose changes could not all be written: the number of bytes that were written, or
    /// the error if there were none.
    fn end_unwritten(&mut self, number: u64, result: u64, error: Errno) -> Result {
        let thread = self.thread();
        let missing = self.system.give_up_changes(thread);
        match usize::try_from(number).ok().and_then(Sysno::new) {
            Some(Sysno::openat) => {
                // The file that the call has opened could not be emptied.
                self.close(result)?;
                Err(error)
            }
            _ if missing > 0 && missing < result => Ok(result - missing),
            _ => Err(error),
        }
    }

    /// Checks that the files in mounts that a call uses are up to date with their servers, as far as the call uses
    /// them.
    fn inform(&mut self, call: Sysno, arguments: &[u64; 6]) -> Result<()> {
        let thread = self.thread();
        for (descriptor, how) in used(call, arguments).into_iter().flatten() {
            // The call finds out itself what is wrong with its descriptor.
            let Ok(description) = self.descriptor(descriptor) else { continue };
            let open_file = self.system.descriptions.find(description);
            let (node, is_at_start, is_path) = (open_file.node, open_file.position == 0, open_file.is_path());
            let (mounts, tree) = (&self.system.mounts, &self.system.tree);
            if tree.mirror_of(node).is_none() || is_path && call != Sysno::fstat {
                continue;
            }
            match how {
                Use::Contents => mounts.need_contents(tree, thread, node)?,
                Use::Length if matches!(call, Sysno::fstat | Sysno::lseek) => self.look_in_mount(node)?,
                Use::Length => mounts.need_state(tree, thread, node)?,
                Use::Entries if is_at_start && !tree.is_removed(node) => mounts.need(thread, Need::Entries(node))?,
                Use::Entries => {}
            }
        }
        Ok(())
    }

    /// Notes that a call has changed the contents of a regular file: sets its times, and keeps the change for its
    /// server if the file lies in a mount.
    pub(super) fn note_contents(&mut self, node: NodeId, object: ObjectId, changed: impl FnOnce() -> Changed) {
        self.system.update_time();
        self.system.tree.touch(node);
        if self.system.tree.node(node).mirror.is_some() {
            self.system.mounts.changes.push((node, object, changed()));
        }
    }

    /// Returns whether a directory lies in a mount, or is a mount point.
    fn is_mounted(&self, directory: NodeId) -> bool {
        self.system.tree.mirror_of(directory).is_some()
    }

    fn need(&self, need: Need) -> Result<()> {
        self.system.mounts.need(self.thread(), need)
    }

    /// Checks that what is recorded of a file is what its server has; for a lost file, the last known status counts.
    pub(super) fn look_in_mount(&self, node: NodeId) -> Result<()> {
        if self.system.mounts.is_empty() {
            return Ok(());
        }
        match self.system.mounts.need_state(&self.system.tree, self.thread(), node) {
            Err(Errno::ESTALE) => Ok(()),
            result => result,
        }
    }

    /// Checks that a node does not lie in a read-only mount.
    ///
    /// # Errors
    /// `EROFS`
    fn check_writable(&self, node: NodeId) -> Result<()> {
        if self.system.is_read_only(node) { Err(Errno::EROFS) } else { Ok(()) }
    }

    /// Checks that a file in a mount may be written.
    ///
    /// # Errors
    /// `EROFS`, and refusals of the server.
    pub(super) fn may_write_in_mount(&self, node: NodeId) -> Result<()> {
        self.check_writable(node)?;
        let is_file = matches!(self.system.tree.node(node).kind, Kind::Regular(_));
        if is_file && self.is_mounted(node) { self.need(Need::Access(node)) } else { Ok(()) }
    }

    /// Lets a server make the file that a call opens, or check that the file may be written. Returns the flags with
    /// which the call goes on.
    pub(super) fn open_in_mount(&self, found: &Found, flags: u32) -> Result<u32> {
        if flags & open::PATH != 0 || self.system.mounts.is_empty() {
            return Ok(flags);
        }
        let makes = flags & open::CREAT != 0 && self.is_mounted(found.parent) && found.is_named();
        let creation = || Need::Create(found.parent, found.name.clone());
        if makes && self.has_done(&creation()) {
            return Ok(flags & !open::EXCL);
        }
        let writes = flags & open::ACCESS != open::RDONLY || flags & open::TRUNC != 0;
        match found.entry()? {
            Some(node) => {
                let has_to_make = flags & open::CREAT != 0 && flags & open::EXCL != 0;
                let is_directory = self.system.tree.node(node).is_directory();
                let fails = has_to_make || is_directory || flags & open::DIRECTORY != 0 || found.slash;
                if writes && !fails {
                    self.may_write_in_mount(node)?;
                }
            }
            None if makes && !found.slash && !self.system.tree.is_removed(found.parent) => {
                self.check_writable(found.parent)?;
                self.need(creation())?;
            }
            None => {}
        }
        Ok(flags)
    }

    /// Makes a node that was just made at a place the mirror of the original that the server has made for the call.
    pub(super) fn adopt(&mut self, found: &Found, node: NodeId) {
        if self.system.mounts.is_empty() {
            return;
        }
        if let Some(seen) = self.system.mounts.made(self.thread())
            && self.is_mounted(found.parent)
        {
            let place = (found.parent, &found.name[..]);
            self.system.tree.become_mirror(&mut self.system.memory, node, place, &seen);
        }
    }

    /// Lets a server make a node at a place, if that is in a mount. Returns whether the node is there already, because
    /// another call has looked since the server made it.
    ///
    /// # Errors
    /// `EPERM` if the node is to be neither a file nor a directory, `EROFS`, and refusals of the server.
    pub(super) fn make_in_mount(&self, found: &Found, new: &NewNode<'_>) -> Result<bool> {
        if !self.is_mounted(found.parent) || !found.is_named() {
            return Ok(false);
        }
        let (directory, name) = (found.parent, found.name.clone());
        let need = match new {
            NewNode::Directory => Some(Need::MakeDirectory(directory, name)),
            NewNode::Regular(_) => Some(Need::Create(directory, name)),
            _ => None,
        };
        let is_there = found.entry()?.is_some();
        if need.as_ref().is_some_and(|need| self.has_done(need)) {
            return Ok(is_there);
        }
        if is_there || found.slash && *new != NewNode::Directory || self.system.tree.is_removed(directory) {
            return Ok(false);
        }
        self.check_writable(directory)?;
        self.need(need.ok_or(Errno::EPERM)?).map(|()| false)
    }

    /// Returns whether a server has met a need of the call.
    fn has_done(&self, need: &Need) -> bool {
        self.system.mounts.has_done(self.thread(), need)
    }

    /// Lets a server remove an entry, if that is in a mount. Returns whether the entry is gone already, because another
    /// call has looked since the server removed it.
    ///
    /// # Errors
    /// `EBUSY` if the entry is a mount point, `EROFS`, and refusals of the server.
    pub(super) fn remove_in_mount(&mut self, found: &Found, removes_directory: bool) -> Result<bool> {
        if self.system.mounts.is_empty() || !found.is_named() {
            return Ok(false);
        }
        let what = if removes_directory { Removed::Directory } else { Removed::File };
        let need = Need::Remove(found.parent, found.name.clone(), what);
        self.check_writable(found.parent)?;
        let Some(node) = found.node else { return Ok(self.has_done(&need)) };
        let is_directory = self.system.tree.node(node).is_directory();
        if !self.is_mounted(found.parent) {
            let is_place = removes_directory && self.system.is_mount_point(node);
            return if is_place { Err(Errno::EBUSY) } else { Ok(false) };
        }
        if is_directory != removes_directory || found.slash && !is_directory {
            return Ok(false);
        }
        self.keep_contents(node)?;
        self.need(need)?;
        self.leave_mount(node);
        Ok(false)
    }

    /// Checks that the contents of a file are here before it loses its name, if somebody uses the file.
    fn keep_contents(&self, node: NodeId) -> Result<()> {
        if self.system.tree.node(node).users() == 0 {
            return Ok(());
        }
        match self.system.mounts.need_contents(&self.system.tree, self.thread(), node) {
            Err(Errno::ESTALE) => Ok(()),
            result => result,
        }
    }

    /// Ends the mirror of a node that a server has removed. A directory loses all its entries.
    fn leave_mount(&mut self, node: NodeId) {
        let names: Vec<Box<[u8]>> = match self.system.tree.node(node).directory() {
            Some(directory) => directory.entries(node, 2).map(|entry| entry.name.into()).collect(),
            None => Vec::new(),
        };
        for name in names {
            self.system.tree.lose_entry(&mut self.system.memory, node, &name);
        }
        match &mut self.system.tree.node_mut(node).mirror {
            // Somebody has opened the file since the server removed it, and nobody had read its contents before.
            Some(mirror) if mirror.version.is_none() => mirror.is_lost = true,
            mirror => *mirror = None,
        }
    }

    /// Checks that a node may get other permissions or owners, of which servers record none.
    ///
    /// # Errors
    /// `EROFS`; `EPERM` if the node lies in a mount, and its present ones are not the same.
    pub(super) fn may_set_in_mount(&self, node: NodeId, is_same: impl FnOnce(&Attributes) -> bool) -> Result<()> {
        self.check_writable(node)?;
        let node = self.system.tree.node(node);
        if node.mirror.is_none() || is_same(&node.attributes) { Ok(()) } else { Err(Errno::EPERM) }
    }

    /// Sets the time of the last change of a file in a mount to the present.
    ///
    /// # Errors
    /// `EPERM` for other times, and for directories: servers let nobody set them. Those of
    /// [`may_write_in_mount`](Self::may_write_in_mount).
    pub(super) fn touch_in_mount(&mut self, node: NodeId, is_touch: bool) -> Result {
        self.check_writable(node)?;
        let Kind::Regular(object) = self.system.tree.node(node).kind else { return Err(Errno::EPERM) };
        if !is_touch {
            return Err(Errno::EPERM);
        }
        self.system.mounts.need_state(&self.system.tree, self.thread(), node)?;
        self.may_write_in_mount(node)?;
        self.note_contents(node, object, || Changed::Least(0));
        Ok(0)
    }

    /// Returns how many pages the server of a node has, and how many of them are free.
    pub(super) fn usage_of_mount(&self, node: NodeId) -> Result<(u64, u64)> {
        self.need(Need::Usage(node))?;
        let usage = self.system.mounts.usage(self.thread()).ok_or(Errno::EIO)?;
        Ok((usage.most_bytes / PAGE_SIZE, usage.most_bytes.saturating_sub(usage.bytes) / PAGE_SIZE))
    }

    /// Checks that a node may get another entry at a place: not if the place or the node is in a mount.
    ///
    /// # Errors
    /// `EXDEV` if the two are in different mounts, or only one is in a mount; otherwise `EROFS` and `EPERM`.
    pub(super) fn link_in_mount(&self, node: NodeId, place: &Found) -> Result<()> {
        let mount = |node| self.system.mount_of(node).map(|mounted| mounted.node);
        match (mount(place.parent), mount(node)) {
            _ if place.node.is_some() => Ok(()),
            (target, source) if target != source => Err(Errno::EXDEV),
            (Some(_), _) => self.check_writable(node).and(Err(Errno::EPERM)),
            (None, _) => Ok(()),
        }
    }

    /// Lets a server rename a file or directory, if both places are in one mount. Returns whether it has its new name
    /// already, because another call has looked since the server renamed it.
    ///
    /// # Errors
    /// - `EXDEV`: only one of the places is in a mount, or they are in different mounts.
    /// - `EBUSY`: a mount point is at one of the places.
    /// - `EINVAL`: a file that has the new name already is to be kept, or to be exchanged.
    /// - `ENOTDIR`, `EISDIR`: a directory would replace a file, or a file a directory.
    /// - `EROFS`, those of [`Tree::check_rename`](tench_linux_files::Tree::check_rename), and refusals of the server.
    pub(super) fn rename_in_mount(&mut self, from: &Found, to: &Found, how: Rename) -> Result<bool> {
        if self.system.mounts.is_empty() {
            return Ok(false);
        }
        let mount = |place: &Found| self.system.mount_of(place.parent).map(|mounted| mounted.node);
        let (source, target) = (mount(from), mount(to));
        if source != target {
            return Err(Errno::EXDEV);
        }
        let is_place = |found: &Found| found.node.is_some_and(|node| self.system.is_mount_point(node));
        if is_place(from) || is_place(to) {
            return Err(Errno::EBUSY);
        }
        if source.is_none() {
            return Ok(false);
        }
        self.check_writable(from.parent)?;
        if how != Rename::Replace {
            return Err(Errno::EINVAL);
        }
        let entry = |found: &Found| (found.parent, found.name.clone());
        let need = Need::Rename(entry(from), entry(to));
        if from.node.is_none() && self.has_done(&need) {
            return Ok(true);
        }
        let Some((_, is_directory)) = self.system.tree.check_rename(from, to, how)? else { return Ok(false) };
        if let Some(replaced) = to.node {
            match (is_directory, self.system.tree.node(replaced).is_directory()) {
                (true, false) => return Err(Errno::ENOTDIR),
                (false, true) => return Err(Errno::EISDIR),
                (true, true) => {}
                (false, false) => self.keep_contents(replaced)?,
            }
        }
        self.need(need)?;
        if let Some(replaced) = to.node {
            self.leave_mount(replaced);
        }
        Ok(false)
    }
}
