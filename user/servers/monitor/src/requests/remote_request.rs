//! Remote requests about processes, as one monitor sends them to another. Everything that arrives is checked here.
//!
//! ```text
//! word 0      the requesting process and its family: a badge without powers
//!      1      the process in question; or, if there is none, the addressed core, as the base of its process numbers
//!      2      for a start: the highest priority that the requester may assign
//!      then   for a start: the size of the strings in bytes, and the strings
//! ```
//! Process numbers are checked: no core can make requests for processes of another, or about processes of a third. Each
//! core vouches for the ceilings of its own processes.

extern crate alloc;

use alloc::boxed::Box;

use tench_abi::Powers;
use tench_abi::power::Client;
use tench_monitor_interface::protocol::{MAX_STRINGS, split_pid};

use crate::message::{Malformed, Strings, Words, decode_badge, decode_ceiling, split};

tench_protocol::codes! {
    /// The operation of a remote request.
    pub enum Operation {
        /// Starts a program. Text: its name and arguments. Reply: the process.
        Spawn = 4;
        /// Waits for the end of a process. Reply: its status.
        Wait = 5;
        /// Gets the core's use of memory. Reply: the figures.
        Memory = 8;
    }
}

impl Operation {
    /// Returns whether the operation can block for ever.
    pub const fn waits(self) -> bool {
        matches!(self, Operation::Wait)
    }

    /// Returns whether the request has a ceiling and text.
    const fn starts(self) -> bool {
        matches!(self, Operation::Spawn)
    }
}

/// A remote request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteRequest {
    /// The requested operation.
    pub operation: Operation,
    /// The requesting process and its family.
    pub requester: Client,
    /// The process in question; its core is the addressed one.
    pub subject: u64,
    /// For a start: the highest priority that the requester may assign.
    pub ceiling: Option<u8>,
    /// For a start: the program's name and arguments.
    pub text: Option<Box<Strings>>,
}

impl RemoteRequest {
    /// Returns a request without text.
    pub const fn new(operation: Operation, requester: Client, subject: u64) -> RemoteRequest {
        RemoteRequest { operation, requester, subject, ceiling: None, text: None }
    }

    /// Returns the requester as the badge of a capability without powers.
    pub const fn badge(&self) -> u64 {
        self.requester.badge(Powers::empty())
    }

    /// Returns the request with the highest priority that the requester may assign.
    pub fn with_ceiling(self, ceiling: u8) -> RemoteRequest {
        RemoteRequest { ceiling: Some(ceiling), ..self }
    }

    /// Returns the request with this text.
    pub fn with_text(self, text: Strings) -> RemoteRequest {
        RemoteRequest { text: Some(Box::new(text)), ..self }
    }

    /// Returns the addressed core.
    pub const fn core(&self) -> u64 {
        split_pid(self.subject).0
    }

    /// Returns the request as words of a message to another monitor.
    pub fn encode(&self) -> Words {
        let mut words: Words = [self.badge(), self.subject].into_iter().collect();
        words.extend(self.ceiling.map(u64::from));
        self.text.iter().for_each(|text| text.encode_into(&mut words));
        words
    }

    /// Returns the request in words that core `from` has sent to core `own`.
    pub fn decode(operation: Operation, words: &[u64], from: u64, own: u64) -> Result<RemoteRequest, Malformed> {
        let most = if operation.starts() { 2 + MAX_STRINGS.div_ceil(size_of::<u64>()) } else { 0 };
        let ([badge, subject], rest) = split::<2>(words, most)?;
        let (ceiling, text) = match rest {
            _ if !operation.starts() => (None, None),
            [ceiling, text @ ..] => (Some(decode_ceiling(*ceiling)?), Some(Box::new(Strings::decode(text)?))),
            [] => return Err(Malformed::TooShort),
        };
        let (requester, powers) = decode_badge(badge, from)?;
        if !powers.is_empty() {
            return Err(Malformed::Power);
        }
        if split_pid(subject).0 != own {
            return Err(Malformed::Core);
        }
        Ok(RemoteRequest { operation, requester, subject, ceiling, text })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;
    use tench_abi::power::family_of;
    use tench_monitor_interface::protocol::pid_base;
    use tench_random::Random;

    /// A process of the second core, in its third family.
    const REQUESTER: Client = Client { process: pid_base(2) | 9, family: family_of(2, 3) };

    fn ask(operation: Operation, subject: u64) -> RemoteRequest {
        let request = RemoteRequest::new(operation, REQUESTER, subject);
        let strings = || Strings::new(b"cat\0a b\0").unwrap();
        if operation.starts() { request.with_ceiling(50).with_text(strings()) } else { request }
    }

    #[test]
    fn requests_arrive_as_they_were_sent() {
        for &operation in Operation::ALL {
            let request = ask(operation, pid_base(1) | 5);
            assert_eq!(RemoteRequest::decode(operation, &request.encode(), 2, 1), Ok(request.clone()));
            assert_eq!(request.core(), 1);
        }
        let longest = [&[b'x'; MAX_STRINGS - 1][..], &[0]].concat();
        let request = RemoteRequest::new(Operation::Spawn, Client::alone(9), pid_base(1)).with_ceiling(50);
        let request = request.with_text(Strings::new(&longest).unwrap());
        assert_eq!(RemoteRequest::decode(Operation::Spawn, &request.encode(), 0, 1), Ok(request));
    }

    #[test]
    fn words_that_are_no_request_are_refused_by_name() {
        let decode = |words: &[u64]| RemoteRequest::decode(Operation::Wait, words, 2, 0).map(|_| ());
        assert_eq!(decode(&[pid_base(2) | 9, 5]), Ok(()));
        assert_eq!(decode(&[pid_base(2) | 9]), Err(Malformed::TooShort));
        assert_eq!(decode(&[pid_base(2) | 9, 5, 0]), Err(Malformed::TooLong));
        for powers in [1 << 61, Powers::PROCESSES.badge(0)] {
            assert_eq!(decode(&[powers | pid_base(2) | 9, 5]), Err(Malformed::Power));
        }
        // Processes of other cores, of this core, and process 0.
        let nobody = Powers::all().badge(pid_base(2));
        for requester in [9, pid_base(1) | 9, pid_base(2), nobody, 0, u64::MAX] {
            assert_eq!(decode(&[requester, 5]), Err(Malformed::Process), "{requester:#x}");
        }
        for subject in [pid_base(1) | 5, pid_base(2) | 5, u64::MAX] {
            assert_eq!(decode(&[pid_base(2) | 9, subject]), Err(Malformed::Core), "{subject:#x}");
        }
        let spawn = |words: &[u64]| RemoteRequest::decode(Operation::Spawn, words, 0, 2).map(|_| ());
        assert_eq!(spawn(&[9, pid_base(2)]), Err(Malformed::TooShort));
        assert_eq!(spawn(&[9, pid_base(2), 50]), Err(Malformed::TooShort));
        assert_eq!(spawn(&[9, pid_base(2), 256, 1, 0]), Err(Malformed::Ceiling));
        assert_eq!(spawn(&[9, pid_base(2), 50, 1, 0]), Err(Malformed::Strings));
        assert_eq!(spawn(&[9, pid_base(2), 50, u64::MAX]), Err(Malformed::TooLong));
        assert_eq!(spawn(&[0; 62]), Err(Malformed::TooLong));
        assert_eq!(Operation::from_code(9), None, "that one is an event");
    }

    /// Any words that a hostile monitor could send are refused, or decode to a request that encodes to the same
    /// meaning.
    #[test]
    fn any_words_are_a_request_or_refused() {
        let mut numbers = Random::new(1);
        let mut random = || numbers.next() >> 20;
        let (mut accepted, mut refused) = (0, 0);
        for _ in 0..50_000 {
            let operation = Operation::ALL[random() as usize % Operation::ALL.len()];
            let length = random() as usize % 70;
            let mut words: Vec<u64> = (0..length).map(|_| random() >> (random() % 44)).collect();
            let number = 1 + random() % 9;
            let powers = Powers::from_bits_retain(if random() % 8 == 0 { random() as u16 % 0x280 } else { 0 });
            let likely = [powers.badge(pid_base(2) | number), pid_base(random() % 3) | number];
            words.iter_mut().zip(likely).for_each(|(word, likely)| *word = likely);
            if random() % 2 == 0 {
                let text = ask(operation, 0).encode();
                words.splice(words.len().min(2).., text.iter().skip(2).copied());
            }
            match RemoteRequest::decode(operation, &words, 2, 0) {
                Ok(request) => {
                    accepted += 1;
                    assert_eq!(RemoteRequest::decode(operation, &request.encode(), 2, 0), Ok(request));
                }
                Err(_) => refused += 1,
            }
        }
        assert!(accepted > 1000 && refused > 1000, "{accepted} accepted, {refused} refused");
    }
}
