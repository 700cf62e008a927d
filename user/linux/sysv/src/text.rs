//! The lists in `/proc/sysvipc`.

use alloc::string::String;
use core::fmt::Write;

use crate::messages::Queues;
use crate::segments::Segments;
use crate::semaphores::Semaphores;
use crate::table::Entry;

/// Begins a line: the key, the identifier and the mode.
fn begin<T>(text: &mut String, entry: &Entry<T>) {
    let Entry { id, permissions, .. } = entry;
    // Writing to a string cannot fail.
    let _ = write!(text, "{:10} {id:10}  {:4o} ", permissions.key, permissions.mode);
}

/// Goes on with the users and groups.
fn users<T>(text: &mut String, entry: &Entry<T>) {
    let permissions = &entry.permissions;
    for number in [permissions.user, permissions.group, permissions.maker_user, permissions.maker_group] {
        let _ = write!(text, " {number:5}");
    }
}

/// Goes on with times.
fn times<const N: usize>(text: &mut String, times: [u64; N]) {
    for time in times {
        let _ = write!(text, " {time:10}");
    }
}

impl<C> Segments<C> {
    /// Returns a list of all segments. `held` says how many bytes of its contents are in memory.
    pub fn list(&self, mut held: impl FnMut(&C) -> u64) -> String {
        let mut text = String::from(
            "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      \
             atime      dtime      ctime                   rss                  swap\n",
        );
        for entry in self.iter() {
            let segment = &entry.value;
            begin(&mut text, entry);
            let (size, maker, last, attachments) = (segment.size, segment.maker, segment.last, segment.attachments);
            let _ = write!(text, "{size:21} {maker:5} {last:5}  {attachments:5}");
            users(&mut text, entry);
            times(&mut text, [segment.attached, segment.detached, segment.changed]);
            let _ = writeln!(text, " {:21} {:21}", held(&segment.content), 0);
        }
        text
    }
}

impl Semaphores {
    /// Returns a list of all sets.
    pub fn list(&self) -> String {
        let mut text =
            String::from("       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n");
        for entry in self.iter() {
            begin(&mut text, entry);
            let _ = write!(text, "{:10}", entry.value.count());
            users(&mut text, entry);
            times(&mut text, [entry.value.operated, entry.value.changed]);
            text.push('\n');
        }
        text
    }
}

impl Queues {
    /// Returns a list of all queues.
    pub fn list(&self) -> String {
        let mut text = String::from(
            "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      stime      \
             rtime      ctime\n",
        );
        for entry in self.iter() {
            let queue = &entry.value;
            begin(&mut text, entry);
            let _ = write!(text, " {:10} {:10} {:5} {:5}", queue.bytes, queue.count(), queue.sender, queue.receiver);
            users(&mut text, entry);
            times(&mut text, [queue.sent, queue.received, queue.changed]);
            text.push('\n');
        }
        text
    }
}
