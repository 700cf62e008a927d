//! Random messages through small rings, both sides scheduled at random, against queues.

mod host;

use std::collections::VecDeque;

use host::{Count, lines};
use proptest::collection::vec;
use proptest::prelude::*;
use tench_channel::{Frame, Kind, Message, PAYLOAD, Receiver, Refused, Sender, Side, open};

const LINES: usize = 5;

#[derive(Clone, Copy, Debug)]
enum Step {
    Send(usize, usize),
    Receive(usize),
    Flush(usize),
    SleepForLine(usize),
    SleepForCapacity(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let side = || 0..2usize;
    prop_oneof![
        4 => (side(), prop_oneof![3 => 0..=PAYLOAD, 2 => 0..=LINES * PAYLOAD + 1]).prop_map(|(side, words)| Step::Send(side, words)),
        4 => side().prop_map(Step::Receive),
        1 => side().prop_map(Step::Flush),
        1 => side().prop_map(Step::SleepForLine),
        1 => side().prop_map(Step::SleepForCapacity),
    ]
}

struct End<'m> {
    sender: Sender<Frame<'m>, Count, LINES>,
    receiver: Receiver<Frame<'m>, Count, LINES>,
    /// The peer's doorbell.
    doorbell: Count,
    /// Set while this end sleeps: for a line, and for room.
    asleep: (bool, bool),
    /// Messages sent and not yet received by the peer.
    sent: VecDeque<Vec<u64>>,
}

struct World<'m> {
    ends: [End<'m>; 2],
    number: u64,
}

impl<'m> World<'m> {
    fn new(memory: Frame<'m>) -> World<'m> {
        let doorbells = [Count::default(), Count::default()];
        let end = |side, own: usize| {
            let (sender, receiver) = open(&memory, side, doorbells[1 - own].clone()).unwrap();
            End { sender, receiver, doorbell: doorbells[own].clone(), asleep: (false, false), sent: VecDeque::new() }
        };
        World { ends: [end(Side::First, 0), end(Side::Second, 1)], number: 0 }
    }

    fn send(&mut self, side: usize, length: usize) {
        self.number += 1;
        let words: Vec<u64> = (0..length as u64).map(|word| self.number << 16 | word).collect();
        let (operation, id) = (length as u16, self.number as u16);
        let end = &mut self.ends[side];
        match end.sender.try_send(&Message { kind: Kind::Event, operation, id, words: &words }) {
            Ok(()) => end.sent.push_back(words),
            Err(Refused::TooLong(_)) => assert!(length > LINES * PAYLOAD),
            // A peer that has received everything has made room.
            Err(refused) => assert!(refused == Refused::Full && !end.sent.is_empty()),
        }
    }

    /// Receives a message; returns whether there was one.
    fn receive(&mut self, side: usize) -> bool {
        let [first, second] = &mut self.ends;
        let (end, peer) = if side == 0 { (first, second) } else { (second, first) };
        match end.receiver.try_receive().unwrap() {
            Some(message) => {
                assert_eq!(message.words, peer.sent.pop_front().expect("it was sent"));
                assert_eq!((message.kind, message.operation as usize), (Kind::Event, message.words.len()));
                true
            }
            None => {
                assert!(peer.sent.len() <= usize::from(peer.sender.is_partial()), "all of it is there");
                false
            }
        }
    }

    /// Wakes the notified sides, and checks that only sleeping ones were notified.
    fn wake(&mut self) {
        for end in &mut self.ends {
            let (line, capacity) = end.asleep;
            let notified = end.doorbell.take();
            assert!(
                notified <= u32::from(line) + u32::from(capacity),
                "notified {notified} times in a sleep for {:?}",
                end.asleep
            );
            if notified > 0 {
                end.sender.awake();
                end.receiver.awake();
                end.asleep = (false, false);
            }
        }
    }

    fn is_awake(&self, side: usize) -> bool {
        self.ends[side].asleep == (false, false)
    }

    fn step(&mut self, step: Step) {
        let (Step::Send(side, _)
        | Step::Receive(side)
        | Step::Flush(side)
        | Step::SleepForLine(side)
        | Step::SleepForCapacity(side)) = step;
        if !self.is_awake(side) {
            return;
        }
        let end = &mut self.ends[side];
        match step {
            Step::Send(_, length) => self.send(side, length),
            Step::Receive(_) => {
                self.receive(side);
            }
            Step::Flush(_) => assert!(matches!(end.sender.flush(), Ok(()) | Err(Refused::Full))),
            // Only the sender itself sends the unsent part of a message.
            Step::SleepForLine(_) if end.sender.is_partial() => {}
            Step::SleepForLine(_) => end.asleep.0 = end.receiver.prepare_sleep().unwrap(),
            Step::SleepForCapacity(_) => {
                // A side that waits for room still receives what comes.
                let (line, capacity) = (end.receiver.prepare_sleep().unwrap(), end.sender.prepare_wait().unwrap());
                end.asleep = if line && capacity { (true, true) } else { (false, false) };
                if !(line && capacity) {
                    end.sender.awake();
                    end.receiver.awake();
                }
            }
        }
        self.wake();
    }

    /// Lets both sides finish: everything arrives, and a sleeper is woken by what it sleeps for.
    fn finish(&mut self) {
        // A message in parts needs at most this many rounds until all of it has arrived.
        let mut quiet = 0;
        while quiet <= LINES {
            quiet += 1;
            for side in 0..2 {
                if self.is_awake(side) {
                    let _ = self.ends[side].sender.flush();
                    if self.receive(side) {
                        quiet = 0;
                    }
                } else {
                    // It may sleep only if there is nothing to receive.
                    assert!(!self.ends[side].receiver.has_line());
                }
                self.wake();
            }
        }
        for end in &self.ends {
            assert!(end.sent.is_empty(), "lost: {:?}", end.sent);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn rings_are_queues(ring in 1..7usize, steps in vec(step(), 0..200)) {
        let lines = lines(ring);
        let mut world = World::new(Frame::of(&lines));
        for step in steps {
            world.step(step);
        }
        world.finish();
    }
}
