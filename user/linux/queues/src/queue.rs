//! One queue.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};

use tench_linux_calls::Errno;

/// The highest priority of a message.
pub const MAX_PRIORITY: u32 = 32_767;

/// How much a queue holds, which its maker says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Number of messages.
    pub messages: u64,
    /// Bytes of a message.
    pub bytes: u64,
}

impl Limits {
    /// Those of a queue whose maker says nothing.
    pub const USUAL: Limits = Limits { messages: 10, bytes: 8192 };
    /// The highest ones.
    const HIGHEST: Limits = Limits { messages: 65_536, bytes: 16 << 20 };
    /// Bytes that Linux counts for a message beside its own, and for a priority.
    const BESIDE: u64 = 48;

    /// Returns whether everybody may make a queue with these limits.
    pub(crate) const fn are_usual(self) -> bool {
        self.messages <= Limits::USUAL.messages && self.bytes <= Limits::USUAL.bytes
    }

    /// Returns the bytes for which the maker of a queue is charged.
    ///
    /// # Errors
    /// `EINVAL`, if no queue can have these limits.
    pub(crate) fn charge(self) -> Result<u64, Errno> {
        let Limits { messages, bytes } = self;
        let highest = Limits::HIGHEST;
        if !(1..=highest.messages).contains(&messages) || !(1..=highest.bytes).contains(&bytes) {
            return Err(Errno::EINVAL);
        }
        let priorities = messages.min(u64::from(MAX_PRIORITY) + 1);
        Ok(messages * (bytes + Limits::BESIDE) + priorities * Limits::BESIDE)
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The higher ones are received first.
    pub priority: u32,
    /// Contents of the message.
    pub bytes: Box<[u8]>,
}

/// Messages that were sent and not received.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// By priority, each in the order in which they were sent. No priority is empty.
    all: BTreeMap<u32, VecDeque<Box<[u8]>>>,
    count: u64,
}

impl Messages {
    /// Returns their number.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// Adds a message.
    pub(crate) fn add(&mut self, message: Message) {
        self.all.entry(message.priority).or_default().push_back(message.bytes);
        self.count += 1;
    }

    /// Takes the oldest one of the highest priority.
    pub(crate) fn take(&mut self) -> Option<Message> {
        let mut highest = self.all.last_entry()?;
        let priority = *highest.key();
        let bytes = highest.get_mut().pop_front()?;
        if highest.get().is_empty() {
            highest.remove();
        }
        self.count -= 1;
        Some(Message { priority, bytes })
    }

    /// Checks that messages are counted, and that no priority is empty.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.all.values().any(VecDeque::is_empty) {
            return Err("a priority without messages is kept");
        }
        let count: usize = self.all.values().map(VecDeque::len).sum();
        if self.count == count as u64 { Ok(()) } else { Err("messages are counted wrongly") }
    }
}
