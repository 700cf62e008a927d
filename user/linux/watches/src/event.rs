//! Events, and how they are read.

use alloc::boxed::Box;

use tench_linux_calls::numbers::watch;

/// Bytes of an event before the name.
const HEAD: usize = 16;

/// Something that happened to a watched file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Number of the watch; -1 for none.
    pub watch: i32,
    /// The kind of event, with flags.
    pub mask: u32,
    /// A number that two events have if they are one.
    pub cookie: u32,
    /// The name in the directory that is watched.
    pub name: Option<Box<[u8]>>,
}

impl Event {
    /// The event that says that others were lost.
    pub const OVERFLOW: Event = Event { watch: -1, mask: watch::Q_OVERFLOW, cookie: 0, name: None };

    /// Returns how many bytes the event has when it is read.
    pub fn size(&self) -> usize {
        HEAD + self.padded()
    }

    /// Returns how many bytes the name has with the zeros behind it.
    fn padded(&self) -> usize {
        self.name.as_ref().map_or(0, |name| (name.len() + 1).next_multiple_of(HEAD))
    }

    /// Returns how many bytes of memory the event takes at most.
    pub fn memory(&self) -> usize {
        2 * size_of::<Event>() + self.name.as_ref().map_or(0, |name| name.len() + HEAD)
    }

    /// Returns whether another event right behind this one says nothing new.
    pub fn says(&self, next: &Event) -> bool {
        let is_equal = self.mask == next.mask && self.watch == next.watch && self.name == next.name;
        is_equal && self.mask & watch::IGNORED == 0
    }

    /// Writes the event as programs read it, to as many bytes as it has.
    pub fn write(&self, into: &mut [u8]) {
        let (head, rest) = into.split_at_mut(HEAD);
        head[..4].copy_from_slice(&self.watch.to_le_bytes());
        head[4..8].copy_from_slice(&self.mask.to_le_bytes());
        head[8..12].copy_from_slice(&self.cookie.to_le_bytes());
        head[12..].copy_from_slice(&(self.padded() as u32).to_le_bytes());
        rest.fill(0);
        if let Some(name) = &self.name {
            rest[..name.len()].copy_from_slice(name);
        }
    }
}
