//! Requests in both directions, with replies in any order.

mod host;

use std::collections::HashMap;

use host::{Count, Never, lines};
use proptest::collection::vec;
use proptest::prelude::*;
use tench_channel::{
    Broken, Calls, Frame, Incoming, Kind, MOST, Message, PAYLOAD, Refused, Request, Side, Unfit, open,
};

const LINES: usize = 4;

type Own<'m> = Calls<Frame<'m>, Count, LINES>;

fn pair<'m>(memory: &Frame<'m>, limit: u32) -> [Own<'m>; 2] {
    [Side::First, Side::Second].map(|side| Calls::open(memory, side, Count::default(), limit).unwrap())
}

/// One side, which makes requests until it has got a given number of replies, and replies in an order of its own.
struct Party<'m> {
    calls: Own<'m>,
    /// Expected replies to the requests in flight.
    expected: HashMap<usize, (Request, Vec<u64>)>,
    /// Requests without replies yet, with their words.
    owed: Vec<(Request, Vec<u64>)>,
    asked: u64,
    replied: u64,
    /// Number of messages refused for lack of room.
    full: u64,
}

fn reversed(words: &[u64]) -> Vec<u64> {
    words.iter().rev().map(|word| !word).collect()
}

impl<'m> Party<'m> {
    fn new(calls: Own<'m>) -> Party<'m> {
        Party { calls, expected: HashMap::new(), owed: Vec::new(), asked: 0, replied: 0, full: 0 }
    }

    /// Makes a request; returns whether it was sent.
    fn ask(&mut self, length: usize) -> bool {
        let words: Vec<u64> = (0..length as u64).map(|word| self.asked << 16 | word).collect();
        match self.calls.request(length as u16, &words) {
            Ok(request) => {
                self.asked += 1;
                assert!(self.expected.insert(request.index(), (request, reversed(&words))).is_none());
                true
            }
            Err(Refused::TooMany) => false,
            Err(refused) => {
                assert_eq!(refused, Refused::Full);
                self.full += 1;
                false
            }
        }
    }

    fn reply(&mut self, choice: usize) -> bool {
        if self.owed.is_empty() {
            return false;
        }
        let index = choice % self.owed.len();
        let (request, words) = &self.owed[index];
        match self.calls.reply(*request, &reversed(words)) {
            Ok(()) => {
                let (request, _) = self.owed.swap_remove(index);
                assert_eq!(self.calls.reply(request, &[]), Err(Refused::NotAsked));
                true
            }
            Err(refused) => {
                assert_eq!(refused, Refused::Full);
                self.full += 1;
                false
            }
        }
    }

    fn receive(&mut self) -> bool {
        match self.calls.receive().unwrap() {
            None => return false,
            Some(Incoming::Request(request, words)) => {
                assert_eq!(usize::from(request.operation()), words.len());
                self.owed.push((request, words.to_vec()));
            }
            Some(Incoming::Reply(request, words)) => {
                assert_eq!(self.expected.remove(&request.index()), Some((request, words.to_vec())));
                self.replied += 1;
            }
            Some(Incoming::Event(..)) => panic!("nobody sent it"),
        }
        assert_eq!(self.calls.owed() as usize, self.owed.len());
        assert_eq!(self.calls.in_flight() as usize, self.expected.len());
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn each_request_has_its_reply(
        ring in 1..6usize,
        limit in 1..=MOST,
        steps in vec((0..2usize, 0..3u8, 0..=LINES * PAYLOAD), 0..300),
    ) {
        let lines = lines(ring);
        let mut parties = pair(&Frame::of(&lines), limit).map(Party::new);
        for (side, what, number) in steps {
            match what {
                0 => parties[side].ask(number),
                1 => parties[side].reply(number),
                _ => parties[side].receive(),
            };
        }
        let mut rounds = 0;
        while parties.iter().any(|party| !(party.expected.is_empty() && party.owed.is_empty())) {
            parties.iter_mut().for_each(|party| _ = party.receive() | party.reply(7));
            rounds += 1;
            prop_assert!(rounds < 10_000, "nothing goes on");
        }
        for party in &parties {
            prop_assert_eq!((party.asked, party.expected.len(), party.owed.len()), (party.replied, 0, 0));
        }
    }

    /// Both sides send as much as they can, and receive only when they cannot: with one line in each direction, and
    /// with messages that do not fit into it.
    #[test]
    fn both_sides_full_of_requests_is_no_deadlock(ring in 1..4usize, limit in 1..=MOST, length in 0..=LINES * PAYLOAD, choice: usize) {
        const EACH: u64 = 200;
        let lines = lines(ring);
        let mut parties = pair(&Frame::of(&lines), limit).map(Party::new);
        let mut rounds = 0;
        while parties.iter().any(|party| party.replied < EACH) {
            for party in &mut parties {
                // Its own requests go first, and replies wait as long as there is room for requests.
                while party.asked < EACH && party.ask(length) {}
                while party.reply(choice) {}
                party.receive();
            }
            rounds += 1;
            prop_assert!(rounds < 100_000, "nothing goes on");
        }
        prop_assert!(parties.iter().all(|party| party.full > 0) || limit as usize <= ring);
    }
}

#[test]
fn more_requests_than_the_limit_are_refused() {
    let lines = lines(100);
    let [mut first, mut second] = pair(&Frame::of(&lines), 3);
    let requests: Vec<_> = (0..3).map(|operation| first.request(operation, &[]).unwrap()).collect();
    assert_eq!(first.request(3, &[]), Err(Refused::TooMany));
    for &request in &requests {
        assert_eq!(second.receive(), Ok(Some(Incoming::Request(request, &[]))));
    }
    second.reply(requests[1], &[5]).unwrap();
    assert_eq!(first.receive(), Ok(Some(Incoming::Reply(requests[1], &[5]))));
    // The index is reused, under another number.
    let again = first.request(1, &[]).unwrap();
    assert!(again.index() == requests[1].index() && again != requests[1]);
    assert_eq!(first.in_flight(), 3);
}

#[test]
fn limits_and_memory_that_cannot_be_are_refused() {
    let enough = lines(1);
    for limit in [0, 65] {
        let refused = Own::open(&Frame::of(&enough), Side::First, Count::default(), limit).err();
        assert_eq!(refused, Some(Unfit::Limit(limit)));
    }
    for count in [0, 1, 2, 3] {
        let refused = Own::open(&Frame::of(&enough[..count]), Side::First, Count::default(), 1).err();
        assert_eq!(refused, Some(Unfit::Lines(count)));
    }
}

/// Returns how often a side accepts a message that its peer sends by hand, and the error for the next identical one.
fn judge(kind: Kind, id: u16, operation: u16, asked: Option<u16>) -> (u32, Broken) {
    let lines = lines(3);
    let memory = Frame::of(&lines);
    let mut calls = Own::open(&memory, Side::First, Count::default(), 5).unwrap();
    let (mut peer, _) = open::<_, _, LINES>(&memory, Side::Second, Count::default()).unwrap();
    if let Some(operation) = asked {
        calls.request(operation, &[]).unwrap();
    }
    let mut accepted = 0;
    let broken = loop {
        peer.try_send(&Message { kind, operation, id, words: &[1] }).unwrap();
        match calls.receive() {
            Ok(incoming) => accepted += u32::from(incoming.is_some()),
            Err(broken) => break broken,
        }
    };
    // From now on the channel is closed for every operation.
    assert_eq!(calls.receive(), Err(broken));
    assert_eq!(calls.request(1, &[]), Err(Refused::Broken(broken)));
    assert_eq!(calls.event(1, &[]), Err(Refused::Broken(broken)));
    assert_eq!(calls.wait(true, &mut Never).and_then(|()| calls.receive().map(|_| ())), Err(broken));
    (accepted, broken)
}

#[test]
fn a_reply_without_a_request_closes_the_channel() {
    let unasked = |accepted, id, operation| (accepted, Broken::Unasked { id, operation });
    assert_eq!(judge(Kind::Reply, 3, 1, None), unasked(0, 3, 1));
    // The request in flight has number 64: here the number is another one of the same index, then the operation is
    // another, then the index is.
    assert_eq!(judge(Kind::Reply, 128, 1, Some(1)), unasked(0, 128, 1));
    assert_eq!(judge(Kind::Reply, 64, 2, Some(1)), unasked(0, 64, 2));
    assert_eq!(judge(Kind::Reply, 65, 1, Some(1)), unasked(0, 65, 1));
    // The request was made, but gets two replies.
    assert_eq!(judge(Kind::Reply, 64, 1, Some(1)), unasked(1, 64, 1));
}

#[test]
fn requests_that_cannot_be_close_the_channel() {
    // Indices 0 to 4 exist.
    assert_eq!(judge(Kind::Request, 5, 1, None), (0, Broken::Request(5)));
    assert_eq!(judge(Kind::Request, 64 + 63, 1, None), (0, Broken::Request(127)));
    // The second time, the first one has no reply yet.
    assert_eq!(judge(Kind::Request, 4, 1, None), (1, Broken::Request(4)));
}
