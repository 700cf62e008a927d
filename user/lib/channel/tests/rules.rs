//! Each rule of the frame, broken by a peer that writes words by hand; and the behaviour of ends that follow the rules.

mod host;

use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

use host::{Count, lines};
use tench_channel::{Broken, Frame, Kind, LINE, Line, Memory, Message, Receiver, Refused, Sender, Side, Unfit, open};

const LINES: usize = 3;
const RING: usize = 4;
/// Start of the second side's half: its control line, and then its lines.
const PEER: usize = RING + 1;

type Ends<'m> = (Sender<Frame<'m>, Count, LINES>, Receiver<Frame<'m>, Count, LINES>);

/// Returns the receiver's result when the peer's lines begin with these headers.
fn after(headers: &[u64]) -> Result<usize, Broken> {
    let lines = lines(RING);
    let memory = Frame::of(&lines);
    for (line, &header) in headers.iter().enumerate() {
        memory.line(PEER + 1 + line)[0].store(header, Relaxed);
    }
    let (_, mut receiver): Ends = open(&memory, Side::First, Count::default()).unwrap();
    let mut messages = 0;
    loop {
        match receiver.try_receive() {
            Ok(Some(_)) => messages += 1,
            Ok(None) => return Ok(messages),
            Err(broken) => {
                assert_eq!(receiver.try_receive(), Err(broken));
                assert_eq!(receiver.prepare_sleep(), Err(broken));
                return Err(broken);
            }
        }
    }
}

/// Returns a header as `layout.rs` draws it.
fn header(lap: u64, length: u64, kind: u64) -> u64 {
    lap | length << 16 | kind << 28
}

#[test]
fn lines_have_to_be_of_the_lap_that_is_due() {
    assert_eq!(after(&[0, header(1, 0, 3)]), Ok(0));
    assert_eq!(after(&[header(1, 0, 3)]), Ok(1));
    assert_eq!(after(&[header(2, 0, 3)]), Err(Broken::Lap { due: 1, found: 2 }));
    assert_eq!(after(&[header(1, 0, 3), header(0xffff, 0, 3)]), Err(Broken::Lap { due: 1, found: 0xffff }));
}

#[test]
fn messages_begin_with_a_kind_that_exists() {
    for kind in 1..=3 {
        assert_eq!(after(&[header(1, 7, kind)]), Ok(1));
    }
    for kind in [0, 4, 5, 15] {
        assert_eq!(after(&[header(1, 7, kind)]), Err(Broken::Kind(kind as u8)));
    }
}

#[test]
fn messages_are_not_too_long() {
    assert_eq!(after(&[header(1, 21, 1), header(1, 14, 4), header(1, 7, 4)]), Ok(1));
    assert_eq!(after(&[header(1, 22, 1)]), Err(Broken::Length(22)));
    assert_eq!(after(&[header(1, 0xfff, 1)]), Err(Broken::Length(0xfff)));
}

#[test]
fn messages_go_on_as_they_began() {
    for wrong in [header(1, 13, 4), header(1, 14, 1), header(1, 14, 4) | 1 << 32, header(1, 14, 4) | 1 << 48] {
        assert_eq!(after(&[header(1, 21, 1), wrong]), Err(Broken::Rest(wrong)));
    }
}

#[test]
fn credits_do_not_exceed_what_was_sent_and_do_not_go_back() {
    let message = Message { kind: Kind::Event, operation: 0, id: 0, words: &[] };
    for (claims, broken) in [(&[5, 0][..], 5), (&[2, 1], 1), (&[3, 8], 8), (&[u64::MAX, 0], u64::MAX)] {
        let lines = lines(RING);
        let memory = Frame::of(&lines);
        let (mut sender, _): Ends = open(&memory, Side::First, Count::default()).unwrap();
        let refused = claims.iter().find_map(|&claim| {
            while sender.try_send(&message).is_ok() {}
            memory.line(PEER)[0].store(claim, Relaxed);
            sender.flush().err()
        });
        assert_eq!(refused, Some(Refused::Broken(Broken::Credits(broken))));
        assert_eq!(sender.try_send(&message), Err(Refused::Broken(Broken::Credits(broken))));
        assert_eq!(sender.prepare_wait(), Err(Broken::Credits(broken)));
    }
}

#[test]
fn a_lap_is_followed_by_the_next_for_ever() {
    let lines = lines(1);
    let memory = Frame::of(&lines);
    let (mut sender, _): Ends = open(&memory, Side::First, Count::default()).unwrap();
    let (_, mut receiver): Ends = open(&memory, Side::Second, Count::default()).unwrap();
    // With one line each message is a lap; their numbers have 16 bits.
    for number in 0..70_000 {
        assert_eq!(receiver.try_receive(), Ok(None));
        let message = Message { kind: Kind::Event, operation: 9, id: number as u16, words: &[number] };
        assert_eq!(sender.try_send(&message), Ok(()));
        assert_eq!(sender.try_send(&message), Err(Refused::Full));
        assert_eq!(receiver.try_receive(), Ok(Some(message)));
    }
}

#[test]
fn lines_that_do_not_fit_are_sent_later() {
    let lines = lines(1);
    let memory = Frame::of(&lines);
    let (mut sender, _): Ends = open(&memory, Side::First, Count::default()).unwrap();
    let (_, mut receiver): Ends = open(&memory, Side::Second, Count::default()).unwrap();
    let words: Vec<u64> = (1..=22).collect();
    let message = |length| Message { kind: Kind::Reply, operation: 1, id: 2, words: &words[..length] };
    assert_eq!(sender.try_send(&message(22)), Err(Refused::TooLong(22)));
    assert_eq!(sender.try_send(&message(21)), Ok(()));
    for _ in 0..2 {
        assert!(sender.is_partial());
        assert_eq!(sender.try_send(&message(1)), Err(Refused::Full));
        assert_eq!(receiver.try_receive(), Ok(None));
        let _ = sender.flush();
    }
    assert!(!sender.is_partial());
    assert_eq!(receiver.try_receive(), Ok(Some(message(21))));
}

#[test]
fn frames_have_a_size_and_an_alignment() {
    let memory = vec![[0u8; 64 << 10]; 3].leak().as_mut_ptr_range();
    let start = NonNull::new(memory.start.cast::<u8>()).unwrap();
    let aligned = start.map_addr(|address| address.checked_add(LINE - address.get() % LINE).unwrap());
    let at = |start, bytes| {
        // SAFETY: the memory is leaked, and nothing else uses it.
        unsafe { Frame::at(start, bytes) }
    };
    for bytes in [0, 64, 2 << 10, 5000, 12 << 10, 128 << 10] {
        assert_eq!(at(aligned, bytes).err(), Some(Unfit::Size(bytes)));
    }
    let odd = aligned.map_addr(|address| address.checked_add(8).unwrap());
    assert_eq!(at(odd, 4096).err(), Some(Unfit::Alignment(odd.addr().get())));
    for bytes in [4 << 10, 64 << 10] {
        assert_eq!(at(aligned, bytes).unwrap().lines(), bytes / size_of::<Line>());
    }
}

#[test]
fn errors_are_described() {
    assert_eq!(
        Broken::Lap { due: 3, found: 7 }.to_string(),
        "channel closed: the peer wrote a line of lap 7 where lap 3 is due"
    );
    assert_eq!(Refused::from(Broken::Closed).to_string(), "channel closed by this side");
    assert_eq!(Unfit::Size(5).to_string(), "a channel's frame has a power of two from 4 KiB to 64 KiB, not 5 bytes");
}
