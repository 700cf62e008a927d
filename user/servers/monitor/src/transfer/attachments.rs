//! Attachments: memory that goes with a message to another core, and the messages that wait for it.
//!
//! ```text
//!   sending monitor                                        receiving monitor
//!   message with memory ─ waits                            mailbox: for the monitor itself
//!        └─ each attachment, as a transfer ═ protocol ═══▶ transfer, with ATTACHMENT and a number as its word
//!   message ─ is sent, with the number ══════════════════▶ takes the attachment: the capability is the message's
//!   or fails: attachments that arrived ════ RELEASE ═════▶ takes the attachment, and drops it
//! ```
//! Frames and untyped memory leave their core only by the protocol of `user/lib/remote`, which takes a while; the
//! message follows when all attachments have arrived. A number is never used again.

use alloc::collections::BTreeMap;

use tench_monitor_interface::protocol::{CORE_SHIFT, pid_base};

/// Set in the word of a transfer that is an attachment.
pub const ATTACHMENT: u64 = 1 << 63;

/// Returns the sender of the attachments of replies to a core, which is not a process.
pub const fn replier(own: u64, core: u64) -> u64 {
    pid_base(own) | NOBODY | core
}

/// Set in a number that stands for no process.
const NOBODY: u64 = 1 << (CORE_SHIFT - 1);

/// Set in the number of a [release](crate::message::operation::RELEASE) that means an attachment.
pub const UNCLAIMED: u64 = 1 << 47;

/// A message that waits for attachments.
struct Waiting<M, E> {
    message: M,
    /// Number of attachments, and how many of them are still to come.
    count: u64,
    left: u64,
    result: Result<(), E>,
}

/// Messages that wait for attachments.
pub struct Attachments<M, E> {
    /// The messages, by the first number of their attachments.
    waiting: BTreeMap<u64, Waiting<M, E>>,
    last: u64,
}

impl<M, E> Attachments<M, E> {
    /// Returns an empty set.
    pub const fn new() -> Attachments<M, E> {
        Attachments { waiting: BTreeMap::new(), last: 0 }
    }

    /// Returns a new number for an attachment. The numbers of a message are consecutive.
    pub const fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Adds a message that waits for `count` attachments, which have the last `count` numbers.
    pub fn wait(&mut self, message: M, count: u64) {
        let first = self.last + 1 - count;
        self.waiting.insert(first, Waiting { message, count, left: count, result: Ok(()) });
    }

    /// Notes that an attachment has arrived or has failed. If its message waits for nothing more, returns the message
    /// with the first error.
    pub fn arrived(&mut self, number: u64, result: Result<(), E>) -> Option<(M, Result<(), E>)> {
        let (&first, waiting) = self.waiting.range_mut(..=number).next_back()?;
        if number - first >= waiting.count {
            return None;
        }
        waiting.left = waiting.left.saturating_sub(1);
        if waiting.result.is_ok() {
            waiting.result = result;
        }
        if waiting.left > 0 {
            return None;
        }
        self.waiting.remove(&first).map(|waiting| (waiting.message, waiting.result))
    }

    /// Returns the waiting messages.
    pub fn messages(&mut self) -> impl Iterator<Item = &mut M> {
        self.waiting.values_mut().map(|waiting| &mut waiting.message)
    }
}

impl<M, E> Default for Attachments<M, E> {
    fn default() -> Attachments<M, E> {
        Attachments::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_goes_when_all_its_memory_has_arrived() {
        let mut attachments: Attachments<char, u8> = Attachments::new();
        let numbers: [u64; 3] = core::array::from_fn(|_| attachments.number());
        attachments.wait('a', 3);
        let single = attachments.number();
        attachments.wait('b', 1);
        assert_eq!(attachments.arrived(numbers[2], Ok(())), None);
        assert_eq!(attachments.arrived(single, Ok(())), Some(('b', Ok(()))));
        assert_eq!(attachments.arrived(numbers[0], Ok(())), None);
        assert_eq!((attachments.arrived(numbers[1], Ok(())), attachments.messages().count()), (Some(('a', Ok(()))), 0));
    }

    #[test]
    fn a_message_fails_with_the_first_of_its_memory_that_does_but_waits_for_the_rest() {
        let mut attachments: Attachments<char, u8> = Attachments::new();
        let numbers: [u64; 4] = core::array::from_fn(|_| attachments.number());
        attachments.wait('a', 4);
        assert_eq!(attachments.arrived(numbers[0], Ok(())), None);
        assert_eq!(attachments.arrived(numbers[1], Err(7)), None);
        assert_eq!(attachments.arrived(numbers[3], Err(8)), None);
        assert_eq!(attachments.arrived(numbers[2], Ok(())), Some(('a', Err(7))));
        let numbers: [u64; 2] = core::array::from_fn(|_| attachments.number());
        attachments.wait('b', 2);
        assert_eq!(attachments.arrived(numbers[1] + 1, Ok(())), None, "nobody waits for that");
        assert_eq!(attachments.messages().map(|message| *message).collect::<alloc::vec::Vec<_>>(), ['b']);
    }
}
