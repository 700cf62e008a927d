//! Every order of steps of two sides: nothing torn, nothing lost, no endless sleep. Also each order without one fence
//! or ordering, to check that the checker would find the mistake.

mod checker;

use checker::{Lines, Mistake, Signal, Silent, check};
use loom::thread;
use tench_channel::{Calls, Incoming, Kind, Message, Notifier, Receiver, Refused, Request, Sender, Side, open};

const LINES: usize = 3;

fn words(length: usize, number: u64) -> Vec<u64> {
    (0..length as u64).map(|index| number << 32 | index).collect()
}

fn expect(message: Message<'_>, number: u64, length: usize) {
    assert_eq!(message.words, words(length, number));
    assert_eq!((message.kind, u64::from(message.id)), (Kind::Event, number));
}

/// Sends messages one by one, polling.
fn send_polling<B: Notifier>(sender: &mut Sender<Lines, B, LINES>, lengths: &[usize]) {
    for (number, &length) in lengths.iter().enumerate() {
        let words = words(length, number as u64);
        let message = Message { kind: Kind::Event, operation: 0, id: number as u16, words: &words };
        while let Err(refused) = sender.try_send(&message) {
            assert_eq!(refused, Refused::Full);
            thread::yield_now();
        }
    }
    while let Err(refused) = sender.flush() {
        assert_eq!(refused, Refused::Full);
        thread::yield_now();
    }
}

fn receive_polling<B: Notifier>(receiver: &mut Receiver<Lines, B, LINES>, lengths: &[usize]) {
    for (number, &length) in lengths.iter().enumerate() {
        loop {
            if let Some(message) = receiver.try_receive().unwrap() {
                break expect(message, number as u64, length);
            }
            thread::yield_now();
        }
    }
}

/// Runs two sides that poll.
fn polling(ring: usize, preemptions: usize, mistake: Mistake, lengths: &'static [usize]) {
    check(preemptions, move || {
        let memory = Lines::new(ring, mistake);
        let (mut sender, _) = open::<_, _, LINES>(&memory, Side::First, Silent).unwrap();
        let other = thread::spawn(move || {
            let (_, mut receiver) = open::<_, _, LINES>(&memory, Side::Second, Silent).unwrap();
            receive_polling(&mut receiver, lengths);
        });
        send_polling(&mut sender, lengths);
        other.join().unwrap();
    });
}

fn send_sleeping<B: Notifier>(sender: &mut Sender<Lines, B, LINES>, lengths: &[usize], own: &Signal) {
    for (number, &length) in lengths.iter().enumerate() {
        let words = words(length, number as u64);
        let message = Message { kind: Kind::Event, operation: 0, id: number as u16, words: &words };
        while let Err(refused) = sender.try_send(&message) {
            assert_eq!(refused, Refused::Full);
            sender.wait(&mut own.clone()).unwrap();
        }
    }
    while sender.is_partial() {
        sender.wait(&mut own.clone()).unwrap();
    }
}

/// Runs two sides that sleep whenever there is nothing to do. One of them can be without its fences.
fn sleeping(ring: usize, preemptions: usize, careless: Option<Side>, lengths: &'static [usize]) {
    check(preemptions, move || {
        let memory = Lines::new(ring, Mistake::Nothing);
        let of = |side| if careless == Some(side) { memory.without_fences() } else { memory.clone() };
        let (mine, theirs) = (Signal::new(), Signal::new());
        let (mut sender, _) = open::<_, _, LINES>(&of(Side::First), Side::First, theirs.clone()).unwrap();
        let (_, mut receiver) = open::<_, _, LINES>(&of(Side::Second), Side::Second, mine.clone()).unwrap();
        let other = thread::spawn(move || {
            for (number, &length) in lengths.iter().enumerate() {
                loop {
                    if let Some(message) = receiver.try_receive().unwrap() {
                        break expect(message, number as u64, length);
                    }
                    receiver.wait(&mut theirs.clone()).unwrap();
                }
            }
        });
        send_sleeping(&mut sender, lengths, &mine);
        other.join().unwrap();
    });
}

/// Runs a sender that sleeps until the receiver, which polls, has received the first of two lines. One of them can be
/// without its fences.
fn waiting(careless: Option<Side>) {
    check(4, move || {
        let memory = Lines::new(1, Mistake::Nothing);
        let of = |side| if careless == Some(side) { memory.without_fences() } else { memory.clone() };
        let mine = Signal::new();
        let (mut sender, _) = open::<_, _, LINES>(&of(Side::First), Side::First, Silent).unwrap();
        let (_, mut receiver) = open::<_, _, LINES>(&of(Side::Second), Side::Second, mine.clone()).unwrap();
        let other = thread::spawn(move || receive_polling(&mut receiver, &[1]));
        send_sleeping(&mut sender, &[1, 1], &mine);
        other.join().unwrap();
    });
}

#[test]
fn a_message_arrives_whole() {
    polling(2, 4, Mistake::Nothing, &[7]);
}

#[test]
fn messages_arrive_in_order_through_a_ring_that_is_too_small_for_them() {
    polling(2, 3, Mistake::Nothing, &[7, 1, 7, 7, 0]);
    polling(3, 3, Mistake::Nothing, &[7, 7, 7, 2, 7]);
}

#[test]
fn a_long_message_passes_through_a_small_ring() {
    polling(1, 3, Mistake::Nothing, &[15]);
    polling(2, 3, Mistake::Nothing, &[2, 20, 7]);
}

#[test]
fn a_receiver_that_sleeps_until_a_line_arrives_is_woken() {
    sleeping(2, 4, None, &[7]);
    sleeping(3, 3, None, &[1, 1, 1]);
}

#[test]
fn a_sender_that_sleeps_until_a_line_is_free_is_woken() {
    sleeping(1, 3, None, &[1, 1, 1]);
    waiting(None);
    sleeping(2, 3, None, &[15, 1]);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_line_is_missed_without_the_senders_fence() {
    sleeping(2, 4, Some(Side::First), &[7]);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_line_is_missed_without_the_receivers_fence() {
    sleeping(2, 4, Some(Side::Second), &[7]);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_free_line_is_missed_without_the_senders_fence() {
    waiting(Some(Side::First));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_free_line_is_missed_without_the_receivers_fence() {
    waiting(Some(Side::Second));
}

#[test]
#[should_panic(expected = "ausality violation")]
fn without_release_and_acquire_a_message_is_torn() {
    polling(2, 4, Mistake::Header, &[7]);
}

#[test]
#[should_panic(expected = "ausality violation")]
fn without_release_and_acquire_credits_let_a_line_be_overwritten_while_it_is_read() {
    polling(1, 4, Mistake::Credits, &[7, 7]);
}

/// Runs two sides that make requests, reply, and sleep whenever there is nothing to do: neither sleeps for ever, though
/// each line of the other side has to be received before there is room.
fn asking(ring: usize, preemptions: usize, length: usize) {
    check(preemptions, move || {
        let memory = Lines::new(ring, Mistake::Nothing);
        let (mine, theirs) = (Signal::new(), Signal::new());
        let first = Calls::open(&memory, Side::First, theirs.clone(), 2).unwrap();
        let second = Calls::open(&memory, Side::Second, mine.clone(), 2).unwrap();
        let other = thread::spawn(move || ask_and_reply(second, theirs, length));
        ask_and_reply(first, mine, length);
        other.join().unwrap();
    });
}

fn ask_and_reply(mut calls: Calls<Lines, Signal, LINES>, mut own: Signal, length: usize) {
    let (mut asked, mut replied, mut owed) = (None, false, None);
    while !replied || asked.is_none() || owed != Some(true) || calls.is_partial() {
        asked = asked.or_else(|| calls.request(1, &words(length, 1)).ok());
        if let Some(incoming) = calls.receive().unwrap() {
            match incoming {
                Incoming::Request(request, received) => {
                    assert_eq!(received, words(length, 1));
                    // With one line the request of this side may be in the way of the reply.
                    while let Err(refused) = calls.reply(request, &words(1, 2)) {
                        assert_eq!(refused, Refused::Full);
                        calls.wait(true, &mut own).unwrap();
                        replied |= take_reply(&mut calls, asked);
                    }
                    owed = Some(true);
                }
                Incoming::Reply(request, received) => {
                    assert_eq!((Some(request), received), (asked, &words(1, 2)[..]));
                    replied = true;
                }
                Incoming::Event(..) => panic!("nobody sent it"),
            }
        } else if !replied || owed.is_none() || calls.is_partial() {
            calls.wait(asked.is_none(), &mut own).unwrap();
        }
    }
}

/// Receives what can only be a reply, if it has arrived.
fn take_reply(calls: &mut Calls<Lines, Signal, LINES>, asked: Option<Request>) -> bool {
    match calls.receive().unwrap() {
        Some(Incoming::Reply(request, _)) => {
            assert_eq!(Some(request), asked);
            true
        }
        Some(other) => panic!("{other:?}"),
        None => false,
    }
}

#[test]
fn both_sides_send_requests_and_replies_and_neither_sleeps_for_ever() {
    asking(1, 2, 1);
    asking(2, 2, 8);
    asking(1, 2, 8);
}
