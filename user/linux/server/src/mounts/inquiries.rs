//! Inquiries: the errands that calls need, and what follows from their results.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use tench_files_interface::protocol::Status;
use tench_linux_files::{Errno, Kind, Mirror, NodeId, Version};
use tench_linux_memory::{ObjectId, PAGE_SIZE};

use super::errand::{AT_ONCE, Errand, Finding, Name};
use super::{Change, Changed, Fetch, Inquiry, Need, PART, Pending, version};
use crate::caller::Result;
use crate::descriptors::DescriptionId;
use crate::waiting::{Key, NO_THREAD, Waiting};
use crate::{Machine, System};

/// The most that one call asks for. Only a call whose arguments the program changes meanwhile needs more.
const MOST_ANSWERED: usize = 1000;
/// Number of times that contents are read again because others have changed them meanwhile. After that, the call gets
/// bytes of several versions.
const ATTEMPTS: u32 = 3;

impl<M: Machine> System<M> {
    /// Sends the errand that meets a need of a thread's call. Returns the key for which the call is to wait.
    ///
    /// # Errors
    /// `ENOENT`, `EINVAL`, `ENAMETOOLONG` if the server can have no such path; `ESTALE` if the file is lost; `EIO` if
    /// the call has asked for [too much](MOST_ANSWERED); `ENOMEM`.
    pub(crate) fn inquire(&mut self, thread: u32, need: Need) -> Result<Key> {
        if self.inquiry(thread).answered.len() >= MOST_ANSWERED {
            return Err(Errno::EIO);
        }
        let number = self.mounts.errands + 1;
        self.ask(thread, number, need)?;
        self.mounts.errands = number;
        Ok(Key::Errand(number))
    }

    /// Sends the errand that meets a need of a thread's call, under a number.
    fn ask(&mut self, thread: u32, number: u64, need: Need) -> Result<()> {
        let errand = self.errand(thread, &need)?;
        for node in need.nodes().into_iter().flatten() {
            self.tree.share(node);
            self.inquiry(thread).kept.push(node);
        }
        let path = self.path_of(thread, &need);
        self.inquiry(thread).pending = Some(Pending { number, need, path });
        self.memory.hardware.send_errand(number, errand);
        Ok(())
    }

    /// Returns the path at the server of the file or directory that a need is about, if it is about one.
    fn path_of(&self, thread: u32, need: &Need) -> Option<String> {
        let entry = |directory: &NodeId, name: &[u8]| self.path_at_server(*directory, name).ok();
        let file = |node: NodeId| self.name_at_server(node).ok().map(|name| name.path);
        match need {
            Need::Contents(node) | Need::Access(node) => file(*node),
            Need::Write => file(self.mounts.next_changed(thread)?),
            Need::Usage(_) => None,
            Need::Entries(directory) => entry(directory, b""),
            Need::Entry(directory, name)
            | Need::Create(directory, name)
            | Need::MakeDirectory(directory, name)
            | Need::Remove(directory, name, _)
            | Need::Rename((directory, name), _) => entry(directory, name),
        }
    }

    fn inquiry(&mut self, thread: u32) -> &mut Inquiry {
        self.mounts.inquiries.entry(thread).or_default()
    }

    /// Returns the path and number of a file at its server.
    fn name_at_server(&self, node: NodeId) -> Result<Name> {
        let Mirror { place: (directory, name), original, is_lost, .. } =
            self.tree.mirror_of(node).ok_or(Errno::ESTALE)?;
        if *is_lost {
            return Err(Errno::ESTALE);
        }
        let path = self.path_at_server(*directory, name)?;
        Ok(Name { path, original: *original })
    }

    fn errand(&mut self, thread: u32, need: &Need) -> Result<Errand> {
        Ok(match need {
            Need::Entry(directory, name) => Errand::Look(self.path_at_server(*directory, name)?),
            Need::Entries(directory) => self.errand_of_list(thread, *directory)?,
            Need::Contents(node) => self.errand_of_fetch(thread, *node)?,
            Need::Access(node) => Errand::CheckWrite(self.name_at_server(*node)?.path),
            Need::Usage(_) => Errand::Count,
            Need::Create(directory, name) => Errand::Create(self.path_at_server(*directory, name)?),
            Need::MakeDirectory(directory, name) => Errand::MakeDirectory(self.path_at_server(*directory, name)?),
            Need::Remove(directory, name, kind) => Errand::Remove(self.path_at_server(*directory, name)?, *kind),
            Need::Rename((from, old), (to, new)) => {
                Errand::Rename(self.path_at_server(*from, old)?, self.path_at_server(*to, new)?)
            }
            Need::Write => self.errand_of_change(thread)?,
        })
    }

    /// Returns the errand that lists the next entries of a directory.
    fn errand_of_list(&mut self, thread: u32, directory: NodeId) -> Result<Errand> {
        let path = self.path_at_server(directory, b"")?;
        let last = self.inquiry(thread).listed.last_key_value();
        let after = last.and_then(|(name, _)| core::str::from_utf8(name).ok()).unwrap_or("").into();
        Ok(Errand::List(path, after))
    }

    /// Returns the errand that reads the next part of a file's contents.
    fn errand_of_fetch(&mut self, thread: u32, node: NodeId) -> Result<Errand> {
        let name = self.name_at_server(node)?;
        let Kind::Regular(object) = self.tree.node(node).kind else { return Err(Errno::EINVAL) };
        let size = self.memory.objects.get(object).length();
        let is_other = self.inquiry(thread).fetch.as_ref().is_none_or(|fetch| fetch.node != node);
        if is_other {
            let object = self.memory.objects.make(size, &[]);
            let new = Fetch { node, object, done: 0, size, version: None, attempts: 0 };
            if let Some(old) = self.inquiry(thread).fetch.replace(new) {
                self.memory.objects.release(&mut self.memory.pool, old.object);
            }
        }
        let (done, size) = self.inquiry(thread).fetch.as_ref().map_or((0, 0), |fetch| (fetch.done, fetch.size));
        let length = PART.min(usize::try_from(size.saturating_sub(done)).unwrap_or(PART));
        self.memory.check_room(length)?;
        Ok(Errand::Read(name, done, vec![0; length]))
    }

    /// Returns the errand that writes the first change of a call, or the next part of it.
    fn errand_of_change(&mut self, thread: u32) -> Result<Errand> {
        let change = self.inquiry(thread).changes.front().ok_or(Errno::EIO)?;
        let (node, object, what) = (change.node, change.object, change.what.clone());
        let name = self.name_at_server(node)?;
        Ok(match what {
            Changed::Length(length) => Errand::Resize(name, length),
            Changed::Least(length) => Errand::Enlarge(name, length),
            Changed::Bytes(range) => {
                let length = PART.min((range.end - range.start) as usize);
                self.memory.check_room(length)?;
                let mut bytes = vec![0; length];
                let count = self.memory.objects.read(&mut self.memory.hardware, object, range.start, &mut bytes);
                if count < length {
                    // The file was made shorter meanwhile, without the rest of the range.
                    bytes.truncate(count);
                    if let Some(change) = self.inquiry(thread).changes.front_mut() {
                        change.what = Changed::Bytes(range.start..range.start + count as u64);
                    }
                }
                Errand::Write(name, range.start, bytes)
            }
        })
    }

    /// Takes the result of an errand, for the call that waits for it.
    pub(crate) fn take_finding(&mut self, number: u64, finding: Result<Finding>) {
        // If no call waits for the errand, its thread has ended.
        let Some((thread, Pending { need, path, .. })) = self.mounts.take_pending(number) else { return };
        // The instance itself may have renamed the file or directory since the errand was sent. Then an error, or what
        // was at the old path, says nothing: the call is made again, and sends another errand.
        let has_moved = self.path_of(thread, &need).is_some_and(|present| Some(present) != path);
        if has_moved && (finding.is_err() || matches!(need, Need::Entry(..) | Need::Entries(_))) {
            return self.waiters.wake(Key::Errand(number));
        }
        let result = finding.and_then(|finding| self.learn(thread, &need, finding));
        if let (Need::Create(directory, name), Err(Errno::EEXIST)) = (&need, result) {
            // Another program has made the file since the call has looked, so the call has to look again.
            let looked = Need::Entry(*directory, name.clone());
            self.inquiry(thread).answered.retain(|(need, _)| *need != looked);
        }
        if need == Need::Write && result == Ok(false) && self.write_next(thread, number) {
            return;
        }
        // A need of several errands has no reply before the last of them, so that the call sends the next one.
        if result != Ok(false) {
            self.inquiry(thread).answered.push((need, result.map(drop)));
        }
        if self.is_watching() {
            self.settle_watches();
        }
        self.waiters.wake(Key::Errand(number));
    }

    /// Sends the errand that writes the next change of a call, even if its process is stopped: as long as changes are
    /// unwritten, what other programs do to the file is not seen here. Returns whether there was one to send.
    fn write_next(&mut self, thread: u32, number: u64) -> bool {
        let has_next = self.mounts.next_changed(thread).is_some_and(|node| self.tree.mirror_of(node).is_some());
        // If the errand cannot be sent, the call finds out why.
        has_next && self.ask(thread, number, Need::Write).is_ok()
    }

    /// Updates the tree to a server's reply. Returns whether the need is met; if not, the call checks what is missing.
    fn learn(&mut self, thread: u32, need: &Need, finding: Finding) -> Result<bool> {
        match (need, finding) {
            (Need::Entry(directory, name), Finding::Status(status)) => {
                self.prepare_nodes(1)?;
                let seen = status.map(|status| self.seen(&status, self.is_read_only(*directory)));
                self.tree.compare_entry(&mut self.memory, *directory, name, seen.as_ref());
            }
            (Need::Entries(directory), Finding::Entries(entries)) => {
                return self.add_entries(thread, *directory, entries);
            }
            (Need::Contents(node), Finding::Bytes(bytes, before)) => {
                // The mirror's version tells whether the contents are complete.
                return self.add_contents(thread, *node, &bytes, &before).map(|()| false);
            }
            (Need::Write, Finding::Changed { status, before, count }) => {
                self.note_written(thread, &status, before, count);
                return Ok(false);
            }
            (Need::Create(directory, _) | Need::MakeDirectory(directory, _), Finding::Status(Some(status))) => {
                let seen = self.seen(&status, self.is_read_only(*directory));
                self.inquiry(thread).made = Some(seen);
            }
            (Need::Usage(_), Finding::Usage(usage)) => self.inquiry(thread).usage = Some(usage),
            (_, Finding::Done) => {}
            _ => return Err(Errno::EIO),
        }
        Ok(true)
    }

    /// Adds entries to those of the directory that a call lists. Returns whether they are all there, as the mirror then
    /// has them.
    fn add_entries(&mut self, thread: u32, directory: NodeId, entries: Vec<(String, Status)>) -> Result<bool> {
        let is_over = entries.len() < AT_ONCE;
        let listed = self.inquiry(thread).listed.len() + entries.len();
        self.prepare_nodes(listed)?;
        let is_read_only = self.is_read_only(directory);
        for (name, status) in entries {
            let seen = self.seen(&status, is_read_only);
            self.inquiry(thread).listed.insert(name.into_bytes().into_boxed_slice(), seen);
        }
        if is_over {
            let listed = core::mem::take(&mut self.inquiry(thread).listed);
            self.tree.compare_entries(&mut self.memory, directory, &listed);
        }
        Ok(is_over)
    }

    /// Makes room for further nodes.
    fn prepare_nodes(&mut self, count: usize) -> Result<()> {
        // Bytes that a new node takes at most beside its place in the tables, with all copies of its name.
        const NODE: usize = 1024;
        self.memory.check_room(count * NODE)?;
        self.tree.prepare(&mut self.memory, count)?;
        self.memory.prepare_objects(count)
    }

    /// Adds bytes to the contents that a call reads. When the contents are complete, the file gets them.
    fn add_contents(&mut self, thread: u32, node: NodeId, bytes: &[u8], before: &Status) -> Result<()> {
        let inquiry = self.mounts.inquiries.entry(thread).or_default();
        let Some(fetch) = &mut inquiry.fetch else { return Ok(()) };
        let present = version(before);
        if fetch.version.is_some_and(|first| first != present) && fetch.attempts < ATTEMPTS {
            // Others have changed the file since its first bytes were read.
            (fetch.version, fetch.done) = (None, 0);
            fetch.attempts += 1;
            return Ok(());
        }
        if fetch.version.is_none() {
            // The file may have grown since its status was compared.
            (fetch.version, fetch.size) = (Some(present), before.size);
        }
        let first = fetch.version;
        let (object, done) = (fetch.object, fetch.done);
        fetch.done += bytes.len() as u64;
        self.fill(object, done, bytes)?;
        let Some(fetch) = &self.inquiry(thread).fetch else { return Ok(()) };
        if fetch.done < fetch.size && !bytes.is_empty() {
            return Ok(());
        }
        let done = fetch.done;
        let memory = &mut self.memory;
        memory.objects.set_length(&mut memory.pool, &mut memory.hardware, object, done);
        self.reapply_changes(node, object)?;
        self.inquiry(thread).fetch = None;
        self.tree.set_contents(&mut self.memory, node, object);
        if let Some(mirror) = &mut self.tree.node_mut(node).mirror {
            // If the original has changed since, the next comparison finds that out.
            mirror.version = first;
        }
        Ok(())
    }

    /// Writes all bytes to an object, or fails with `ENOMEM`. If pages are short, it frees copies of other files first.
    fn fill(&mut self, object: ObjectId, at: u64, bytes: &[u8]) -> Result<()> {
        let memory = &mut self.memory;
        let count = memory.objects.write(&mut memory.pool, &mut memory.hardware, object, at, bytes).unwrap_or(0);
        if count < bytes.len() && self.tree.forget_contents(&mut self.memory) {
            return self.fill(object, at + count as u64, &bytes[count..]);
        }
        if count < bytes.len() { Err(Errno::ENOMEM) } else { Ok(()) }
    }

    /// Repeats the changes of a file that are not written to its server yet in contents that were read from the server.
    fn reapply_changes(&mut self, node: NodeId, new: ObjectId) -> Result<()> {
        let memory = &mut self.memory;
        let mut page = [0; PAGE_SIZE as usize];
        let all = self.mounts.inquiries.values_mut().flat_map(|inquiry| &mut inquiry.changes);
        let mut changes: Vec<&mut Change> = all.filter(|change| change.node == node).collect();
        changes.sort_unstable_by_key(|change| change.order);
        for change in changes {
            let length = memory.objects.get(new).length();
            match &change.what {
                Changed::Bytes(range) => {
                    let mut at = range.start;
                    while at < range.end {
                        let part = &mut page[..PAGE_SIZE.min(range.end - at) as usize];
                        let count = memory.objects.read(&mut memory.hardware, change.object, at, part);
                        if count == 0 {
                            break;
                        }
                        let part = &part[..count];
                        let count = memory.objects.write(&mut memory.pool, &mut memory.hardware, new, at, part)?;
                        if count < part.len() {
                            return Err(Errno::ENOMEM);
                        }
                        at += count as u64;
                    }
                }
                Changed::Length(wanted) => {
                    memory.objects.set_length(&mut memory.pool, &mut memory.hardware, new, *wanted);
                }
                Changed::Least(wanted) => {
                    let wanted = length.max(*wanted);
                    memory.objects.set_length(&mut memory.pool, &mut memory.hardware, new, wanted);
                }
            }
            memory.objects.share(new);
            let old = core::mem::replace(&mut change.object, new);
            memory.objects.release(&mut memory.pool, old);
        }
        Ok(())
    }

    /// Notes that the first change of a call, or a part of it, has been written to the server. If nobody else has
    /// changed the file since it was compared, and the file has not got other contents here, its contents are still
    /// those of the original.
    fn note_written(&mut self, thread: u32, status: &Status, before: Option<u64>, count: usize) {
        let Some(change) = self.inquiry(thread).changes.front_mut() else { return };
        let (node, object) = (change.node, change.object);
        let is_over = match &mut change.what {
            Changed::Length(_) | Changed::Least(_) => true,
            Changed::Bytes(range) => {
                range.start = range.end.min(range.start + count as u64);
                range.is_empty()
            }
        };
        if is_over {
            self.drop_change(thread);
        }
        let seen = self.seen(status, false);
        let changed = self.tree.node_mut(node);
        let is_present = matches!(changed.kind, Kind::Regular(present) if present == object);
        let Some(mirror) = &mut changed.mirror else { return };
        let is_same = is_present && mirror.version.is_some_and(|present| before == Some(present.changes));
        mirror.version = is_same.then_some(seen.version);
        (changed.attributes.modified, changed.attributes.changed) = (seen.modified, seen.modified);
    }

    /// Keeps the changes and the result of a call until the changes are written to their servers, and the open file
    /// whose position the call has moved, if there is one.
    pub(crate) fn keep_changes(&mut self, thread: u32, result: u64, moved: Option<DescriptionId>) {
        for (node, object, what) in core::mem::take(&mut self.mounts.changes) {
            self.tree.share(node);
            self.memory.objects.share(object);
            if let Some(mirror) = &mut self.tree.node_mut(node).mirror {
                mirror.unwritten += 1;
            }
            let order = self.mounts.changes_made;
            self.mounts.changes_made += 1;
            let inquiry = self.inquiry(thread);
            inquiry.kept.push(node);
            inquiry.changes.push_back(Change { node, object, what, order });
        }
        if let Some(description) = moved {
            self.descriptions.share(description);
        }
        let inquiry = self.inquiry(thread);
        (inquiry.result, inquiry.moved) = (Some(result), moved);
    }

    /// Forgets the first change of a thread's call that is not written yet.
    pub(crate) fn drop_change(&mut self, thread: u32) {
        if let Some(change) = self.inquiry(thread).changes.pop_front() {
            self.end_change(&change);
        }
    }

    fn end_change(&mut self, change: &Change) {
        self.memory.objects.release(&mut self.memory.pool, change.object);
        if let Some(mirror) = &mut self.tree.node_mut(change.node).mirror {
            mirror.unwritten -= 1;
        }
    }

    /// Gives up the changes of a thread's call that are not written to their servers, and moves the open file's
    /// position back by their bytes. Returns the number of these bytes.
    pub(crate) fn give_up_changes(&mut self, thread: u32) -> u64 {
        let mut bytes = 0;
        for change in core::mem::take(&mut self.inquiry(thread).changes) {
            if let Changed::Bytes(range) = &change.what {
                bytes += range.end - range.start;
            }
            self.end_change(&change);
            // The file's contents here are not those of the original.
            if let Some(mirror) = &mut self.tree.node_mut(change.node).mirror {
                mirror.version = None;
            }
        }
        if let Some(description) = self.inquiry(thread).moved {
            let position = &mut self.descriptions.get(description).position;
            *position = position.saturating_sub(bytes);
        }
        bytes
    }

    /// Keeps the wait in which a call was before it waited for an errand.
    pub(crate) fn keep_wait(&mut self, thread: u32, before: Option<Waiting>) {
        self.inquiry(thread).before = before;
    }

    /// Takes the wait in which a call was before it waited for an errand.
    pub(crate) fn take_wait_before(&mut self, thread: u32) -> Option<Waiting> {
        self.mounts.inquiries.get_mut(&thread)?.before.take()
    }

    /// Ends the inquiry of a thread's call.
    #[inline]
    pub(crate) fn end_inquiry(&mut self, thread: u32) {
        if self.mounts.inquiries.contains_key(&thread) {
            self.end_existing_inquiry(thread);
        }
    }

    fn end_existing_inquiry(&mut self, thread: u32) {
        self.give_up_changes(thread);
        let Some(inquiry) = self.mounts.inquiries.remove(&thread) else { return };
        if let Some(fetch) = inquiry.fetch {
            self.memory.objects.release(&mut self.memory.pool, fetch.object);
        }
        if let Some(description) = inquiry.moved {
            self.close(description);
        }
        for node in inquiry.kept {
            self.release_node(node);
        }
        if let Some(before) = inquiry.before {
            self.cancel(thread, &before);
        }
    }

    /// Compares the file at a path with its original and reads its contents, before there are threads that could wait.
    /// Does nothing for a path that leads into no mount.
    ///
    /// # Errors
    /// Those of the file server.
    pub fn bring(&mut self, path: &[u8]) -> Result<()> {
        let below = |place: &str| path.strip_prefix(place.as_bytes()).filter(|rest| rest.starts_with(b"/"));
        let mut mounts = self.mounts.all.iter();
        let Some((mut node, rest)) = mounts.find_map(|all| Some((all.node, below(&all.mount.mount_point)?))) else {
            return Ok(());
        };
        for name in rest.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            self.do_now(&Need::Entry(node, name.into()))?;
            let directory = self.tree.node(node).directory();
            match directory.and_then(|directory| directory.get(name)) {
                Some(next) => node = next,
                None => return Ok(()),
            }
        }
        while self.tree.mirror_of(node).is_some_and(|mirror| mirror.version.is_none())
            && !self.tree.node(node).is_directory()
        {
            self.do_now(&Need::Contents(node))?;
        }
        self.end_inquiry(NO_THREAD);
        Ok(())
    }

    /// Returns all files whose contents are those of a version of their original, with their names at the server, that
    /// version and their contents, for tests.
    pub fn copies(&self) -> impl Iterator<Item = (Name, Version, ObjectId)> {
        self.tree.regular_files().filter_map(|(node, object)| {
            let version = self.tree.mirror_of(node)?.version?;
            Some((self.name_at_server(node).ok()?, version, object))
        })
    }

    /// Does an errand at once, while no thread is served, and takes its result.
    fn do_now(&mut self, need: &Need) -> Result<()> {
        let errand = self.errand(NO_THREAD, need)?;
        let finding = self.memory.hardware.run_errand(errand)?;
        self.learn(NO_THREAD, need, finding).map(drop)
    }
}
