//! Tests of pipes and their ends: against a slow model, and named cases for their users.

mod model;

use std::collections::{BTreeMap, BTreeSet};
use tench_quota::Client;

use proptest::prelude::*;
use tench_files::ends::{BATCH, Ends, Outcome};
use tench_files::owners::{MAX_ENDS, MAX_GIVEN, MAX_INHERITED, MAX_WAITING};
use tench_files::pipe::{CAPACITY, Completion, Data};
use tench_files::tree::{Requester, Tree};
use tench_files_interface::protocol::{self as files, How};
use tench_stream::protocol::{Error, Kind, MAX_DATA};

/// Returns a requester that may change everything.
const fn entitled(process: u64) -> Requester {
    Requester { client: Client::alone(process), is_entitled: true }
}

fn ends() -> Ends<u64> {
    Ends::new(Tree::new(8, 8, 1))
}

/// Children of one process once took all ends of streams.
#[test]
fn a_family_leaves_ends_and_waits_for_others() {
    let mut ends = ends();
    let of_family = |process| Client { process, family: 1 << 38 };
    let mut readers = Vec::new();
    for process in 1..=12 {
        while let Ok((reader, _)) = ends.pipe(of_family(process)) {
            readers.push(reader);
        }
    }
    assert_eq!(2 * readers.len(), MAX_ENDS / 2);
    let (others, _) = ends.pipe(Client::alone(20)).unwrap();
    let waits =
        (0..).map(|number| readers[number % readers.len()]).take_while(|end| read(&mut ends, *end, 1, 7).is_none());
    assert_eq!(waits.count(), MAX_WAITING / 2);
    assert_eq!(read(&mut ends, others, 1, 8), None, "somebody else waits");
    // Waits of the family that were given up make room for others of it.
    ends.forget_gone(readers[0], |_| true, |reply| assert_eq!(reply, 7));
    assert_eq!(read(&mut ends, readers[1], 1, 9), None);
    // An end that a child was given counts to its own family from then on.
    let given = ends.share(others, 5).unwrap();
    ended(&mut ends, 20);
    ends.process_lives(of_family(5), |_| ());
    ends.check_invariants();
    assert!(ends.pipe(of_family(6)).is_err() && ends.info(given).is_ok());
    (1..=12).for_each(|process| drop(ended(&mut ends, process)));
    assert_eq!(ends.usage().ends, 0);
}

/// Reports the end of a process as the process server does, until all of its ends are closed. Returns those who waited
/// there.
fn ended(ends: &mut Ends<u64>, process: u64) -> Vec<u64> {
    let mut refused = Vec::new();
    loop {
        ends.process_ended(process, process, |reply| refused.push(reply));
        ends.check_invariants();
        if ends.orphan(1) != Some(process) {
            return refused;
        }
    }
}

/// Reports that a process runs. Returns those who waited at ends beyond the maximum.
fn lives(ends: &mut Ends<u64>, process: u64) -> Vec<u64> {
    let mut refused = Vec::new();
    ends.process_lives(Client::alone(process), |reply| refused.push(reply));
    ends.check_invariants();
    refused
}

/// Reads; if the read must wait, it is `reply`.
fn read(ends: &mut Ends<u64>, end: u64, max: usize, reply: u64) -> Option<Result<Data, Error>> {
    match ends.read(end, max) {
        Outcome::Now(result) => Some(result),
        Outcome::Wait => {
            ends.wait_to_read(end, max, reply);
            None
        }
    }
}

/// Writes; if the write must wait, it is `reply`.
fn write(ends: &mut Ends<u64>, end: u64, data: &[u8], reply: u64) -> Option<Result<(), Error>> {
    match ends.write(end, data) {
        Outcome::Now(result) => Some(result),
        Outcome::Wait => {
            ends.wait_to_write(end, data, reply);
            None
        }
    }
}

/// Returns all replies that are due.
fn due(ends: &mut Ends<u64>) -> Vec<(u64, Completion)> {
    let due = std::iter::from_fn(|| ends.next_due().map(|due| (due.reply, due.completion))).collect();
    ends.check_invariants();
    due
}

fn data(bytes: &[u8]) -> Data {
    bytes.iter().copied().collect()
}

#[test]
fn bytes_come_out_in_order_and_the_end_when_all_writers_have_closed() {
    let mut ends = ends();
    let (reader, writer) = ends.pipe(Client::alone(1)).unwrap();
    assert_eq!(write(&mut ends, writer, b"hello", 1), Some(Ok(())));
    assert_eq!(read(&mut ends, reader, 3, 2), Some(Ok(data(b"hel"))));
    assert_eq!(ends.info(reader).map(|info| (info.kind, info.size, info.readable)), Ok((Kind::Pipe, 2, true)));
    let second = ends.share(writer, 2).unwrap();
    ends.close(writer, |_| unreachable!()).unwrap();
    assert_eq!(read(&mut ends, reader, 9, 3), Some(Ok(data(b"lo"))));
    assert_eq!(read(&mut ends, reader, 9, 4), None, "somebody can still write");
    assert_eq!(due(&mut ends), []);
    ends.close(second, |_| unreachable!()).unwrap();
    assert_eq!(due(&mut ends), [(4, Completion::Data(data(b"")))]);
    assert_eq!(read(&mut ends, reader, 9, 5), Some(Ok(data(b""))), "and so it stays");
    assert_eq!(ends.close(writer, |_| unreachable!()), Err(Error::Closed));
}

#[test]
fn a_write_without_readers_fails_even_in_the_middle() {
    let mut ends = ends();
    let (reader, writer) = ends.pipe(Client::alone(1)).unwrap();
    let shared = ends.share(reader, 2).unwrap();
    while write(&mut ends, writer, &[7; MAX_DATA], 1).is_some() {}
    assert_eq!(write(&mut ends, writer, b"!", 2), None, "in turn, even if it would fit");
    ends.close(reader, |_| unreachable!()).unwrap();
    assert_eq!(due(&mut ends), [], "another process reads");
    assert_eq!(ended(&mut ends, 2), [], "nobody waited there");
    let broken = Completion::Refused(Error::Broken);
    assert_eq!(due(&mut ends), [(1, broken.clone()), (2, broken)]);
    assert_eq!(write(&mut ends, writer, b"", 3), Some(Err(Error::Broken)));
    assert_eq!(ends.close(shared, |_| unreachable!()), Err(Error::Closed));
}

#[test]
fn a_writer_who_dies_while_it_waits_has_written_nothing() {
    let mut ends = ends();
    let (reader, first) = ends.pipe(Client::alone(1)).unwrap();
    let second = ends.share(first, 2).unwrap();
    let mut written = 0;
    while write(&mut ends, first, &[b'a'; 400], 0).is_some() {
        written += 400;
    }
    assert_eq!(write(&mut ends, second, b"never", 1), None);
    assert_eq!(ended(&mut ends, 2), [1]);
    assert_eq!(ended(&mut ends, 1), [0]);
    assert!(due(&mut ends).is_empty());
    // Process 1 also owned the reading end.
    assert_eq!(read(&mut ends, reader, 1, 2), Some(Err(Error::Closed)));
    assert!((CAPACITY - 400..=CAPACITY).contains(&written));
    assert_eq!(ends.usage(), files::Usage { most_bytes: 8 * 4096, ..files::Usage::default() });
}

#[test]
fn waiting_threads_are_served_in_turn() {
    let mut ends = ends();
    let (reader, writer) = ends.pipe(Client::alone(1)).unwrap();
    for number in 10..13 {
        assert_eq!(read(&mut ends, reader, 2, number), None);
    }
    assert_eq!(write(&mut ends, writer, b"abc", 1), Some(Ok(())));
    assert_eq!(due(&mut ends), [(10, Completion::Data(data(b"ab"))), (11, Completion::Data(data(b"c")))]);
    assert_eq!(write(&mut ends, writer, b"d", 1), Some(Ok(())));
    assert_eq!(due(&mut ends), [(12, Completion::Data(data(b"d")))]);
}

#[test]
fn bytes_for_a_reader_who_is_dead_go_to_the_next() {
    let mut ends = ends();
    let (reader, writer) = ends.pipe(Client::alone(1)).unwrap();
    assert_eq!(read(&mut ends, reader, 4, 10), None);
    assert_eq!(read(&mut ends, reader, 9, 11), None);
    assert_eq!(write(&mut ends, writer, b"abcdef", 1), Some(Ok(())));
    let first = ends.next_due().unwrap();
    assert_eq!((first.reply, &first.completion), (10, &Completion::Data(data(b"abcd"))));
    ends.undelivered(first.from, b"abcd");
    assert_eq!(due(&mut ends), [(11, Completion::Data(data(b"abcdef")))]);
}

#[test]
fn a_client_that_waits_at_all_ends_gets_half_and_the_next_is_served() {
    let mut ends = ends();
    let mut last = (0, 0);
    for process in 1..5 {
        let before = ends.usage();
        while let Ok(pipe) = ends.pipe(Client::alone(process)) {
            last = pipe;
        }
        assert_eq!(ends.open(entitled(process), "x", How::Write), Err(files::Error::Full));
        assert_eq!(ends.usage().ends - before.ends, MAX_ENDS as u64 >> process);
        let mut waiting = 0;
        while read(&mut ends, last.0, 1, process).is_none() {
            waiting += 1;
        }
        assert_eq!(waiting, MAX_WAITING >> process);
        ends.check_invariants();
    }
    for process in 1..5 {
        assert_eq!(ended(&mut ends, process), vec![process; MAX_WAITING >> process]);
    }
    assert_eq!(ends.usage(), files::Usage { most_bytes: 8 * 4096, ..files::Usage::default() });
}

#[test]
fn the_giver_of_an_end_is_charged_for_few_of_its_waits() {
    let mut ends = ends();
    let (reader, _) = ends.pipe(Client::alone(1)).unwrap();
    // The sharer keeps a capability to process 2's end; that does not harm process 2.
    let given = ends.share(reader, 2).unwrap();
    for _ in 0..MAX_GIVEN / 2 {
        let next = ends.share(given, 3).unwrap();
        ends.share(next, 2).unwrap();
    }
    assert_eq!(ends.share(given, 1), Err(Error::Full));
    for reply in 0..u64::from(MAX_GIVEN) {
        assert_eq!(read(&mut ends, given, 1, reply), None);
    }
    assert_eq!(read(&mut ends, given, 1, 99), Some(Err(Error::Full)));
    ends.check_invariants();
    assert_eq!(read(&mut ends, reader, 1, 99), None, "the granter's own end is another matter");
    let mut own = 0;
    while ends.pipe(Client::alone(2)).is_ok() {
        own += 2;
    }
    assert_eq!(own, (MAX_ENDS - 2 - 1 - MAX_GIVEN as usize).div_ceil(2) & !1);
    assert!(ends.pipe(Client::alone(1)).is_ok(), "nor is the granter");
    assert_eq!(ended(&mut ends, 2).len(), MAX_GIVEN as usize);
    ends.check_invariants();
}

#[test]
fn of_those_who_gave_up_waiting_nobody_is_in_the_way() {
    let mut ends = ends();
    let (reader, writer) = ends.pipe(Client::alone(1)).unwrap();
    while write(&mut ends, writer, &[0; 400], 1).is_some() {}
    let mut reply = 2;
    while write(&mut ends, writer, &[0; 400], reply).is_none() {
        reply += 1;
    }
    let (other, _) = ends.pipe(Client::alone(1)).unwrap();
    assert_eq!(read(&mut ends, other, 1, 0), Some(Err(Error::Full)));
    let mut forgotten = Vec::new();
    ends.forget_gone(other, |reply| reply.is_multiple_of(3), |reply| forgotten.push(reply));
    ends.check_invariants();
    assert_eq!(forgotten, (1..reply).filter(|reply| reply.is_multiple_of(3)).collect::<Vec<_>>());
    assert_eq!(read(&mut ends, other, 1, 0), None);
    assert_eq!(due(&mut ends), [], "no room");
    assert!(matches!(read(&mut ends, reader, 400, 0), Some(Ok(_))));
    assert_eq!(due(&mut ends), [(1, Completion::Done)]);
}

#[test]
fn a_process_inherits_a_few_ends_and_no_blocks() {
    let mut ends = ends();
    let (reader, writer) = ends.pipe(Client::alone(1)).unwrap();
    let file = ends.open(entitled(1), "f", How::Write).unwrap();
    let file = ends.share(file, 7).unwrap();
    let second = ends.share(writer, 7).unwrap();
    for _ in 0..2 * BATCH {
        ends.share(reader, 7).unwrap();
    }
    assert_eq!(write(&mut ends, file, b"x", 0), Some(Ok(())));
    assert_eq!(ends.tree.space.held(1), 1, "who gave the end pays for what is written through it");
    ended(&mut ends, 1);
    while let Some(process) = ends.orphan(1) {
        assert_eq!(process, 7);
        lives(&mut ends, 7);
    }
    assert_eq!(ends.usage().ends, MAX_INHERITED as u64);
    assert_eq!(write(&mut ends, second, b"x", 0), Some(Ok(())), "the first that were given stay");
    ends.seek(file, 9000).unwrap();
    assert_eq!(write(&mut ends, file, b"x", 0), Some(Ok(())));
    assert_eq!((ends.tree.space.held(7), ends.tree.space.used()), (0, 2));
    // There are no more orphans of ended processes than before.
    let (reader, _) = ends.pipe(Client::alone(2)).unwrap();
    ends.share(reader, 7).unwrap();
    ended(&mut ends, 2);
    assert_eq!(ends.orphan(1), Some(7));
    lives(&mut ends, 7);
    assert_eq!((ends.orphan(1), ends.usage().ends), (None, MAX_INHERITED as u64));
    ended(&mut ends, 7);
    assert_eq!((ends.usage().ends, ends.usage().pipes), (0, 0));
    ends.check_invariants();
}

#[test]
fn a_process_is_queried_once_when_it_opens_its_first_end() {
    let mut ends = ends();
    let other_core = 1 << 32 | 5;
    let (reader, _) = ends.pipe(Client::alone(5)).unwrap();
    ends.pipe(Client::alone(other_core)).unwrap();
    let file = ends.open(entitled(6), "f", How::Write).unwrap();
    ends.share(reader, 7).unwrap();
    // The process server of its core asks about it; about the receiver of an end, none asks.
    assert_eq!((ends.question(99), ends.question(1 << 32), ends.question(2 << 32)), (Some(5), Some(other_core), None));
    lives(&mut ends, 5);
    assert_eq!(ends.question(99), Some(6));
    ends.close(file, |_| ()).unwrap();
    ends.pipe(Client::alone(5)).unwrap();
    assert_eq!(ends.question(99), None, "its end will be said");
    // An end is opened in the ended process's name: when the end is reported again, all is gone.
    ended(&mut ends, 5);
    lives(&mut ends, 7);
    let before = ends.usage().ends;
    ends.pipe(Client::alone(5)).unwrap();
    ends.check_invariants();
    assert_eq!(ends.question(99), Some(5));
    ended(&mut ends, 5);
    assert_eq!((ends.question(99), ends.usage().ends), (None, before));
    // The holder of an unbadged capability is no process, on whichever core.
    ends.pipe(Client::alone(0)).unwrap();
    lives(&mut ends, other_core);
    ends.pipe(Client::alone(1 << 32)).unwrap();
    assert_eq!((ends.question(99), ends.question(1 << 32)), (None, None));
    ends.check_invariants();
}

/// Sharing an end with a process of another core, and ending, once closed everything that this process had.
#[test]
fn a_remote_process_is_known_by_its_own_core() {
    let mut ends = ends();
    let (here, there, further) = (7, 1 << 32 | 5, 2 << 32 | 5);
    let (own, _) = ends.pipe(Client::alone(there)).unwrap();
    for (payer, is_asked) in [(1, [true, false, false]), (1 << 32 | 9, [true, true, false])] {
        let (reader, _) = ends.pipe(Client::alone(payer)).unwrap();
        let given = [here, there, further].map(|process| ends.share(reader, process).unwrap());
        ended(&mut ends, payer);
        assert_eq!(given.map(|end| ends.info(end).is_ok()), is_asked, "of others nobody says anything");
        assert_eq!(ends.orphan(2 << 32), None);
        assert_eq!(ends.orphan(1 << 32), is_asked[1].then_some(there));
        assert_eq!(ends.orphan(0), Some(here));
        lives(&mut ends, here);
        lives(&mut ends, there);
        assert_eq!(ends.info(own).map(|info| info.kind), Ok(Kind::Pipe));
        assert_eq!((ends.orphan(0), ends.orphan(1 << 32)), (None, None));
    }
}

#[test]
fn a_process_with_many_ends_is_closed_in_batches() {
    let mut ends = ends();
    while ends.pipe(Client::alone(1)).is_ok() {}
    let all = ends.usage().ends;
    let mut batches = 0;
    loop {
        ends.process_ended(1, 1, |_| ());
        batches += 1;
        ends.check_invariants();
        assert_eq!(ends.usage().ends, all.saturating_sub(batches * BATCH as u64));
        if ends.orphan(1).is_none() {
            break;
        }
        assert_eq!(ends.orphan(1), Some(1));
    }
    assert_eq!((batches, ends.usage().pipes), (all / BATCH as u64 + 1, 0));
}

#[test]
fn ends_that_were_given_to_nobody_are_found_when_the_granter_ends() {
    let mut ends = ends();
    let (reader, writer) = ends.pipe(Client::alone(1)).unwrap();
    ends.share(reader, 2).unwrap();
    ends.share(writer, 3).unwrap();
    ends.share(writer, 777).unwrap();
    assert_eq!(ends.orphan(1), None, "process 1 pays");
    ended(&mut ends, 1);
    let mut asked = Vec::new();
    while let Some(process) = ends.orphan(1) {
        asked.push(process);
        match process {
            777 => _ = ended(&mut ends, 777),
            process => _ = lives(&mut ends, process),
        }
        ends.check_invariants();
    }
    asked.sort_unstable();
    assert_eq!((asked, ends.usage().ends), (vec![2, 3, 777], 2));
    ended(&mut ends, 2);
    ended(&mut ends, 3);
    assert_eq!((ends.orphan(1), ends.usage().pipes), (None, 0));
}
