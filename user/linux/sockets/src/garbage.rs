//! Finds the sockets that hold each other by messages, and that nobody has open.
//!
//! ```text
//!  process ──▶ socket ──▶ rights in its queue ──▶ socket …
//!                   └───▶ connections that nobody has accepted ──▶ rights in their queues …
//! ```
//! A right that lies in a queue is a user of its file, so counts of users alone never end a socket whose own right lies
//! in its own queue, or two sockets with each other's. Marking begins at the sockets that have a user outside of all
//! queues, and follows the arrows. Nobody can ever receive what lies in the others: Linux drops it, too (`unix_gc`).

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::{SocketId, Sockets};

/// An open file that was sent, as the caller knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SentFile {
    /// Number of its users: descriptors of processes, calls that go on, and rights in queues.
    pub users: u32,
    /// The socket that it is, if it is one.
    pub socket: Option<SocketId>,
}

impl<R: Copy + Ord> Sockets<R> {
    /// Drops all that lies in queues of sockets that can be reached from nowhere but such queues, after a socket's file
    /// has lost a user and has others. The rights among it are returned by [`take_rights`](Self::take_rights); closing
    /// them closes the sockets. The caller describes the file of a right.
    pub fn collect(&mut self, id: SocketId, mut file: impl FnMut(R) -> SentFile) {
        // Others can have become unreachable only if the socket is in a circle with them.
        if self.holds_itself(id.0, |right| file(right).socket) {
            self.collect_all(file);
        }
    }

    /// Returns the rights that lie in a socket's queue.
    fn rights(&self, index: u32) -> impl Iterator<Item = R> {
        self.at(index).queue.segments.iter().flat_map(|segment| &segment.rights).copied()
    }

    /// Returns whether a way leads from a socket to itself.
    fn holds_itself(&self, index: u32, mut socket: impl FnMut(R) -> Option<SocketId>) -> bool {
        let mut is_seen = vec![false; self.slots.len()];
        let mut left = vec![index];
        while let Some(next) = left.pop() {
            let sent = self.rights(next).filter_map(&mut socket).map(|SocketId(index)| index);
            for found in sent.chain(self.at(next).connections.iter().copied()) {
                if found == index {
                    return true;
                }
                if !core::mem::replace(&mut is_seen[found as usize], true) {
                    left.push(found);
                }
            }
        }
        false
    }

    fn collect_all(&mut self, mut file: impl FnMut(R) -> SentFile) {
        let mut counts: BTreeMap<R, u32> = BTreeMap::new();
        for right in (0..self.slots.len() as u32).flat_map(|index| self.rights(index)) {
            *counts.entry(right).or_default() += 1;
        }
        let mut sent: BTreeMap<R, u32> = BTreeMap::new();
        let mut is_held = vec![true; self.slots.len()];
        for (right, count) in counts {
            let SentFile { users, socket } = file(right);
            if let Some(SocketId(index)) = socket {
                is_held[index as usize] = users > count;
                sent.insert(right, index);
            }
        }
        let is_reached = self.mark(&is_held, &sent);
        for index in (0..self.slots.len() as u32).filter(|index| !is_reached[*index as usize]) {
            if self.at(index).is_open {
                self.purge(index);
            }
        }
    }

    /// Returns which sockets can be reached from those that are held, by the rights that are sockets.
    fn mark(&self, is_held: &[bool], sent: &BTreeMap<R, u32>) -> Vec<bool> {
        let is_root = |index: &u32| is_held[*index as usize] && self.at(*index).is_open && !self.at(*index).is_embryo;
        let mut left: Vec<u32> = (0..self.slots.len() as u32).filter(is_root).collect();
        let mut is_reached = vec![false; self.slots.len()];
        while let Some(index) = left.pop() {
            if core::mem::replace(&mut is_reached[index as usize], true) {
                continue;
            }
            left.extend(self.rights(index).filter_map(|right| sent.get(&right)));
            left.extend(&self.at(index).connections);
        }
        is_reached
    }
}
