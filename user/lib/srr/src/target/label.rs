//! Encoding of the label of a kernel message.
//!
//! All tasks live in one process and nobody else holds capabilities to their endpoints, so labels are trusted.

use crate::Tid;

/// Kind of a message between two threads of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// A message that a task sends.
    Message {
        /// The sender.
        from: Tid,
        /// Length in bytes.
        length: usize,
    },
    /// A task's reply.
    Reply {
        /// Length in bytes.
        length: usize,
        /// A task to signal first.
        wake: Option<Tid>,
    },
    /// To a sender: the receiver has ended.
    Aborted,
    /// To every task that waits: the session has ended.
    End,
    /// To a thread without a task: run the function that is ready for you.
    Start,
    /// As [`Start`](Label::Start), in a call, to which the thread has to reply first.
    StartAndReply,
}

impl Label {
    /// Returns the label as a number of 48 bits: 4 of kind, 12 of length, then the task's identifier plus 1.
    pub const fn pack(self) -> u64 {
        const fn number(kind: u64, length: usize, tid: Option<Tid>) -> u64 {
            let tid = match tid {
                Some(tid) => tid.0 as u64 + 1,
                None => 0,
            };
            kind | (length as u64 & 0xfff) << 4 | tid << 16
        }
        match self {
            Label::Message { from, length } => number(0, length, Some(from)),
            Label::Reply { length, wake } => number(1, length, wake),
            Label::Aborted => number(2, 0, None),
            Label::End => number(3, 0, None),
            Label::Start => number(4, 0, None),
            Label::StartAndReply => number(5, 0, None),
        }
    }

    /// Returns the label that a number encodes.
    pub const fn unpack(number: u64) -> Label {
        let length = (number >> 4 & 0xfff) as usize;
        let tid = match (number >> 16) as u32 {
            0 => None,
            tid => Some(Tid(tid - 1)),
        };
        match (number & 15, tid) {
            (0, Some(from)) => Label::Message { from, length },
            (1, wake) => Label::Reply { length, wake },
            (2, _) => Label::Aborted,
            (4, _) => Label::Start,
            (5, _) => Label::StartAndReply,
            _ => Label::End,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::{MAX_MESSAGE, MAX_TASKS};

    #[test]
    fn labels_lead_back_and_fit() {
        let tids = [Tid(0), Tid(1), Tid(MAX_TASKS as u32 - 1)];
        let lengths = [0, 1, 8, 255, 256, MAX_MESSAGE];
        let mut labels = Vec::from([Label::Aborted, Label::End, Label::Start, Label::StartAndReply]);
        for length in lengths {
            labels.push(Label::Reply { length, wake: None });
            for tid in tids {
                labels.push(Label::Message { from: tid, length });
                labels.push(Label::Reply { length, wake: Some(tid) });
            }
        }
        for label in labels {
            assert_eq!(Label::unpack(label.pack()), label);
            assert!(label.pack() < 1 << 48);
        }
    }
}
