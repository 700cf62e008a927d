//! A peer that writes anything anywhere in the frame, before any access of the other side: it can close its channel,
//! but cause no panic, no endless loop, and no change of another channel.

mod host;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::atomic::Ordering;

use host::{Count, Never, lines};
use proptest::collection::vec;
use proptest::prelude::*;
use tench_channel::{Broken, Calls, Frame, Incoming, Memory, PAYLOAD, Refused, Request, Side, WORDS, Word};

const LINES: usize = 4;
/// Maximum number of accesses of one call: those of the lines of the longest message, once sent and once received, and
/// of control words.
const MOST_ACCESSES: u32 = 2 * LINES as u32 * WORDS as u32 + 20;

/// A write of the peer: position, value, and the number of accesses since the last one. It keeps some bits of the old
/// value.
#[derive(Clone, Copy, Debug)]
struct Blow {
    after: u32,
    word: usize,
    keep: u64,
    change: u64,
}

/// Memory under attack, which counts the victim's accesses.
#[derive(Clone)]
struct Attacked {
    lines: Rc<Vec<[Attackable; WORDS]>>,
    attack: Rc<Attack>,
}

struct Attack {
    values: Vec<Cell<u64>>,
    blows: RefCell<VecDeque<Blow>>,
    /// Number of accesses since the last write, and since the last call began.
    quiet: Cell<u32>,
    accesses: Cell<u32>,
}

struct Attackable {
    index: usize,
    attack: Rc<Attack>,
}

impl Attackable {
    /// Returns the word, after performing the peer's writes that precede this access.
    fn access(&self) -> &Cell<u64> {
        let Attack { values, blows, quiet, accesses } = &*self.attack;
        accesses.set(accesses.get() + 1);
        quiet.set(quiet.get() + 1);
        while let Some(blow) = blows.borrow_mut().pop_front_if(|blow| blow.after <= quiet.get()) {
            quiet.set(0);
            values[blow.word].set(values[blow.word].get() & blow.keep ^ blow.change);
        }
        &values[self.index]
    }
}

impl Word for Attackable {
    fn load(&self, _: Ordering) -> u64 {
        self.access().get()
    }

    fn store(&self, value: u64, _: Ordering) {
        self.access().set(value);
    }
}

impl Memory for Attacked {
    type Word = Attackable;

    fn lines(&self) -> usize {
        self.lines.len()
    }

    fn line(&self, index: usize) -> &[Attackable; WORDS] {
        &self.lines[index]
    }
}

impl Attacked {
    fn new(ring: usize, blows: Vec<Blow>) -> Attacked {
        let count = 2 * (ring + 1);
        let attack = Rc::new(Attack {
            values: vec![Cell::new(0); count * WORDS],
            blows: RefCell::new(blows.into()),
            quiet: Cell::new(0),
            accesses: Cell::new(0),
        });
        let word = |index| Attackable { index, attack: Rc::clone(&attack) };
        let lines = (0..count).map(|line| std::array::from_fn(|index| word(line * WORDS + index))).collect();
        Attacked { lines: Rc::new(lines), attack }
    }

    /// Runs one call, and checks that it makes few accesses.
    fn bounded<T>(&self, call: impl FnOnce() -> T) -> T {
        self.attack.accesses.set(0);
        let result = call();
        let accesses = self.attack.accesses.get();
        assert!(accesses <= MOST_ACCESSES, "{accesses} accesses in one call");
        result
    }
}

/// Generates words as a peer would write them that follows the protocol except for one rule: laps, lengths, kinds and
/// numbers near the expected ones, or the old value with one bit changed; as bits to keep and bits to change.
fn value() -> impl Strategy<Value = (u64, u64)> {
    let header = (0..4u64, 0..40u64, 0..6u64, 0..3u64, prop_oneof![0..3u64, 64..67u64]);
    let header = header
        .prop_map(|(lap, length, kind, operation, id)| lap | length << 16 | kind << 28 | operation << 32 | id << 48);
    prop_oneof![
        1 => any::<u64>().prop_map(|word| (0, word)),
        1 => (0..20u64).prop_map(|word| (0, word)),
        6 => header.prop_map(|word| (0, word)),
        6 => (0..64).prop_map(|bit| (u64::MAX, 1u64 << bit)),
    ]
}

fn blow(ring: usize, pause: u32) -> impl Strategy<Value = Blow> {
    let words = (ring + 1) * WORDS;
    // Mostly headers and control words of its own half, which is the second.
    let word = prop_oneof![
        1 => 0..2 * words,
        1 => words..words + 3,
        4 => (1..=ring).prop_map(move |line| words + line * WORDS),
    ];
    (0..pause, word, value()).prop_map(|(after, word, (keep, change))| Blow { after, word, keep, change })
}

/// The victim's use of the channel: once it is broken, all operations must fail alike.
struct Victim {
    calls: Calls<Attacked, Count, LINES>,
    memory: Attacked,
    owed: Vec<Request>,
    broken: Option<Broken>,
}

impl Victim {
    fn new(memory: &Attacked, side: Side) -> Victim {
        let calls = Calls::open(memory, side, Count::default(), 8).unwrap();
        Victim { calls, memory: memory.clone(), owed: Vec::new(), broken: None }
    }

    fn note(&mut self, broken: Broken) {
        assert_eq!(*self.broken.get_or_insert(broken), broken);
    }

    fn refused<T>(&mut self, result: Result<T, Refused>) {
        match result {
            Err(Refused::Broken(broken)) => self.note(broken),
            Ok(_) => assert_eq!(self.broken, None),
            Err(Refused::Full | Refused::TooMany) => assert_eq!(self.broken, None),
            Err(refused) => panic!("{refused}"),
        }
    }

    fn step(&mut self, what: u8, length: usize) {
        let words = vec![1; length];
        let (calls, memory) = (&mut self.calls, &self.memory);
        match what {
            0 => {
                let result = memory.bounded(|| calls.request(1, &words));
                self.refused(result);
            }
            1 if !self.owed.is_empty() => {
                let request = self.owed[0];
                let result = memory.bounded(|| calls.reply(request, &words));
                if result.is_ok() {
                    self.owed.remove(0);
                }
                self.refused(result);
            }
            2 => {
                if let Err(broken) = memory.bounded(|| calls.wait(length > 5, &mut Never)) {
                    self.note(broken);
                }
            }
            _ => match memory.bounded(|| calls.receive()) {
                Ok(incoming) => {
                    assert_eq!(self.broken, None);
                    if let Some(Incoming::Request(request, words)) = incoming {
                        assert!(words.len() <= LINES * PAYLOAD && request.index() < 8);
                        self.owed.push(request);
                        assert!(self.owed.len() <= 8);
                    }
                }
                Err(broken) => self.note(broken),
            },
        }
    }
}

/// A channel with both sides following the protocol.
struct Quiet<'m> {
    sides: [Calls<Frame<'m>, Count, LINES>; 2],
    asked: HashMap<Request, Vec<u64>>,
    number: u64,
}

impl<'m> Quiet<'m> {
    fn step(&mut self) {
        self.number += 1;
        let words: Vec<u64> = (0..self.number % 20).map(|word| self.number + word).collect();
        if let Ok(request) = self.sides[0].request(7, &words) {
            self.asked.insert(request, words);
        }
        let request = match self.sides[1].receive().unwrap() {
            Some(Incoming::Request(request, words)) => {
                assert_eq!(words, self.asked[&request]);
                Some((request, words.to_vec()))
            }
            None => None,
            other => panic!("{other:?}"),
        };
        if let Some((request, words)) = request {
            self.sides[1].reply(request, &words).unwrap();
        }
        if let Some(incoming) = self.sides[0].receive().unwrap() {
            let Incoming::Reply(request, words) = incoming else { panic!("{incoming:?}") };
            assert_eq!(words, self.asked.remove(&request).unwrap());
        }
    }
}

/// Generates a number of lines, writes with pauses of bounded numbers of accesses, and steps: which side, which
/// operation, which length.
fn attack(
    blows: usize,
    pause: u32,
    steps: usize,
) -> impl Strategy<Value = (usize, Vec<Blow>, Vec<(usize, u8, usize)>)> {
    (1..5usize).prop_flat_map(move |ring| {
        (Just(ring), vec(blow(ring, pause), 0..blows), vec((0..2usize, 0..6u8, 0..=LINES * PAYLOAD), 1..steps))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn a_peer_disturbs_its_own_channel_alone((ring, blows, steps) in attack(60, 12, 80)) {
        let mut victim = Victim::new(&Attacked::new(ring, blows), Side::First);
        let lines = lines(8);
        let frame = Frame::of(&lines);
        let sides = [Side::First, Side::Second].map(|side| Calls::open(&frame, side, Count::default(), 8).unwrap());
        let mut quiet = Quiet { sides, asked: HashMap::new(), number: 0 };
        for (_, what, length) in steps {
            victim.step(what, length);
            quiet.step();
        }
    }

    /// The peer follows the protocol most of the time, so the channel is well under way when a word changes. Both sides
    /// are victims.
    #[test]
    fn a_peer_breaks_the_rules_now_and_then((ring, blows, steps) in attack(4, 600, 150)) {
        let memory = Attacked::new(ring, blows);
        let mut sides = [Side::First, Side::Second].map(|side| Victim::new(&memory, side));
        for (side, what, length) in steps {
            sides[side].step(what, length);
        }
    }
}
