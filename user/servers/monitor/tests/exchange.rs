//! Tests of capability transfers between cores, with fake kernels.

mod simulation;
mod world;

use simulation::Dice;
use tench_abi::power::{Client, family_of};
use tench_abi::{CapAddress, Rights};
use tench_monitor::message::MONITOR;
use tench_monitor::message::carried::{Carried, ObjectClass};
use tench_monitor::message::line::Line;
use tench_monitor::transfer::attachments::ATTACHMENT;
use tench_monitor::transfer::exchange::Kernel;
use tench_monitor_interface::protocol::{Error, pid_base};
use tench_remote::{Cores, Kind};
use world::{Heard, PAGE, World, core};

const SENDER: u64 = 17;
const RECEIVER: u64 = 23;

#[test]
fn a_frame_arrives_with_its_word_and_is_taken_back() {
    let mut world = World::new(2);
    let frame = world.make(0, Kind::Frame, 0x10_0000, PAGE);
    let receiver = world.take(1, RECEIVER);
    let given = world.give(0, SENDER, frame, 1, RECEIVER, 99);
    assert_eq!(world.result_of(given), Ok(()));
    let (from, word, copy) = world.transfer(receiver);
    assert_eq!((from, word), (pid_base(0) | SENDER, 99));
    assert_eq!(world.kernel(1).caps[&copy.0].shape.base, 0x10_0000);
    assert_eq!(world.kernel(0).revoke(frame), Err(tench_abi::Error::RemoteCopies));
    let revoked = world.revoke(0, SENDER, frame);
    assert_eq!(world.result_of(revoked), Ok(()));
    assert!(!world.kernel(1).caps.contains_key(&copy.0), "it survived");
    assert_eq!(world.kernel(0).revoke(frame), Ok(()));
    world.check_empty();
}

/// The monitor once knew only the number of a process that was sent an endpoint, so each was a family of its own.
#[test]
fn an_endpoint_that_is_sent_is_for_a_process_of_a_known_family() {
    let mut world = World::new(2);
    let to = Client { process: pid_base(1) | RECEIVER, family: family_of(1, 3) };
    let exchange = &mut world.cores[1];
    let reservation = exchange.reserve(core(0), pid_base(0) | SENDER, to, 99).unwrap();
    let (class, rights) = (ObjectClass::Endpoint, Rights::CALL);
    let carried = Carried::Held { class, number: 1, rights, is_plain: true, server: None };
    let (operation, words) = Line::Endpoint(reservation, carried).encode();
    exchange.receive(core(0), operation, &words);
    assert_eq!(exchange.arriving(), Some((core(0), reservation, Some(to), carried)));
    exchange.arrived(core(0), reservation, None);
    assert_eq!(exchange.arriving(), None);
    world.check_empty();
}

/// In a badge: the first family of the core.
const FAMILY: u64 = 1 << tench_abi::power::FAMILY_SHIFT;

/// On one core, the holder of a copy cannot revoke those of others. Nor can it on other cores.
#[test]
fn a_receiver_of_a_copy_revokes_nothing() {
    let mut world = World::new(2);
    let frame = world.make(0, Kind::Frame, 0x10_0000, PAGE);
    let receiver = world.take(1, RECEIVER);
    let given = world.give(0, SENDER, frame, 1, RECEIVER, 0);
    assert_eq!(world.result_of(given), Ok(()));
    let (.., copy) = world.transfer(receiver);
    // This is the same frame, held by another process of the same core.
    let revoked = world.revoke(0, SENDER + 1, frame);
    assert_eq!(world.result_of(revoked), Err(Error::NotAllowed));
    assert!(world.kernel(1).caps.contains_key(&copy.0), "it is there still");
    let revoked = world.revoke(0, SENDER, frame);
    assert_eq!(world.result_of(revoked), Ok(()));
    world.check_empty();
}

/// An attachment sent with a message may count to a process of unknown family; the process itself is still the granter.
#[test]
fn a_sender_revokes_its_copies_whatever_family_is_known() {
    for (sent_as, asked_as) in [(SENDER, FAMILY | SENDER), (FAMILY | SENDER, SENDER)] {
        let mut world = World::new(2);
        let frame = world.make(0, Kind::Frame, 0x10_0000, PAGE);
        let receiver = world.take(1, RECEIVER);
        let given = world.give(0, sent_as, frame, 1, RECEIVER, 0);
        assert_eq!(world.result_of(given), Ok(()));
        let _ = world.transfer(receiver);
        let revoked = world.revoke(0, FAMILY | (SENDER + 1), frame);
        assert_eq!(world.result_of(revoked), Err(Error::NotAllowed), "another process of the family");
        let revoked = world.revoke(0, asked_as, frame);
        assert_eq!(world.result_of(revoked), Ok(()));
        world.check_empty();
    }
}

/// A process whose revoke meets remote capabilities need not make a request to have them revoked.
#[test]
fn a_copy_whose_deletion_was_requested_is_revoked() {
    let mut world = World::new(3);
    let frame = world.make(0, Kind::Frame, 0x10_0000, PAGE);
    let other = world.make(0, Kind::Frame, 0x20_0000, PAGE);
    for (at, class) in [(1, frame), (2, frame), (1, other)] {
        let receiver = world.take(at, RECEIVER);
        let given = world.give(0, SENDER, class, at, RECEIVER, 0);
        assert_eq!(world.result_of(given), Ok(()));
        world.transfer(receiver);
    }
    world.poll();
    assert_eq!(world.kernel(0).revoke(frame), Err(tench_abi::Error::RemoteCopies));
    assert_eq!((world.kernel(1).caps.len(), world.kernel(2).caps.len()), (4, 2), "nobody has looked yet");
    world.poll();
    assert_eq!(world.kernel(0).revoke(frame), Ok(()));
    assert_eq!((world.kernel(1).caps.len(), world.kernel(2).caps.len()), (2, 0), "the other frame is there still");
    assert_eq!(world.kernel(0).revoke(other), Err(tench_abi::Error::RemoteCopies));
    world.poll();
    world.check_empty();
}

/// An attachment stays in the mailbox until its message comes, and no other process can get it.
#[test]
fn memory_for_a_message_is_claimed_by_its_number() {
    let mut world = World::new(3);
    let frame = world.make(1, Kind::Frame, 0x10_0000, PAGE);
    let other = world.make(2, Kind::Frame, 0x20_0000, PAGE);
    for (at, class, number) in [(1, frame, 7), (1, frame, 8), (2, other, 7)] {
        let given = world.give(at, SENDER, class, 0, MONITOR, ATTACHMENT | number);
        assert_eq!(world.result_of(given), Ok(()));
    }
    let exchange = &mut world.cores[0];
    assert!(exchange.own_transfer().is_none() && exchange.receivers().is_empty());
    assert_eq!((exchange.claim(core(1), 9), exchange.claim(core(2), 8)), (None, None));
    let [first, second] = [core(1), core(2)].map(|from| exchange.claim(from, 7).expect("it is there"));
    assert_eq!(exchange.claim(core(1), 7), None, "it was taken out");
    assert_eq!([first, second].map(|slot| world.kernel(0).caps[&slot.0].shape.base), [0x10_0000, 0x20_0000]);
    [first, second].into_iter().for_each(|slot| world.kernel(0).delete(slot));
    let unneeded = world.cores[0].claim(core(1), 8).expect("it is there");
    world.kernel(0).delete(unneeded);
    world.check_empty();
}

/// A core that has stopped sends no more messages for attachments that have come.
#[test]
fn memory_for_messages_of_a_core_that_stops_is_dropped() {
    let mut world = World::new(2);
    let frame = world.make(0, Kind::Frame, 0x10_0000, PAGE);
    let receiver = world.take(1, RECEIVER);
    let given = world.give(0, SENDER, frame, 1, RECEIVER, 0);
    assert_eq!(world.result_of(given), Ok(()));
    let (.., copy) = world.transfer(receiver);
    // The owner's own memory comes home: only the mailbox would keep it.
    let given = world.give(1, SENDER, copy, 0, MONITOR, ATTACHMENT | 1);
    assert_eq!(world.result_of(given), Ok(()));
    assert_eq!(world.cores[0].count().2, 1);
    world.cores[0].lose(core(1));
    assert_eq!((world.cores[0].claim(core(1), 1), world.cores[0].count().2), (None, 0));
    world.run_until_idle();
    assert_eq!(world.kernel(0).revoke(frame), Ok(()), "nobody else has it");
}

/// A monitor learns when memory that it has lent itself has come back, on whichever core.
#[test]
fn memory_that_a_monitor_has_lent_comes_back_to_it() {
    for at in [0, 1] {
        let mut world = World::new(2);
        let memory = world.make(at, Kind::Untyped, 0x40_0000, 16 * PAGE);
        let given = world.give(at, MONITOR, memory, 1 - at, MONITOR, 0);
        assert_eq!(world.result_of(given), Ok(()));
        assert_eq!((world.cores[at].has_exports(), world.cores[at].returned()), (false, None));
        let transfer = world.cores[1 - at].own_transfer().expect("it has come");
        world.kernel(1 - at).delete(transfer.slot);
        world.poll();
        assert_eq!((at, world.cores[at].returned()), (at, Some(0x40_0000)));
        world.check_empty();
    }
}

#[test]
fn unused_copies_are_returned() {
    let mut world = World::new(2);
    let frame = world.make(0, Kind::Frame, 0x10_0000, PAGE);
    for _ in 0..3 {
        let given = world.give(0, SENDER, frame, 1, RECEIVER, 0);
        assert_eq!(world.result_of(given), Ok(()));
    }
    assert_eq!((world.cores[0].count(), world.cores[1].count()), ((1, 0, 0), (0, 1, 3)));
    for _ in 0..3 {
        let receiver = world.take(1, RECEIVER);
        let (.., copy) = world.transfer(receiver);
        assert_eq!(world.cores[1].give_back(0x10_0000), Err(Error::InUse));
        world.kernel(1).delete(copy);
    }
    assert_eq!(world.cores[1].give_back(0x20_0000), Err(Error::NotForeign));
    assert_eq!(world.cores[1].give_back(0x10_0000), Ok(()));
    world.check_empty();
}

#[test]
fn a_copy_is_sent_on_to_a_third_core_and_to_its_owner() {
    let mut world = World::new(3);
    let frame = world.make(0, Kind::Frame, 0x10_0000, PAGE);
    let receiver = world.take(1, RECEIVER);
    let given = world.give(0, SENDER, frame, 1, RECEIVER, 1);
    assert_eq!(world.result_of(given), Ok(()));
    let (.., copy) = world.transfer(receiver);
    // The copy is sent on with fewer rights.
    world.kernel(1).caps.get_mut(&copy.0).unwrap().rights = Rights::READ;
    let (third, owner) = (world.take(2, 5), world.take(0, 6));
    let transfers = [world.give(1, RECEIVER, copy, 2, 5, 2), world.give(1, RECEIVER, copy, 0, 6, 3)];
    assert_eq!(transfers.map(|transfer| world.result_of(transfer)), [Ok(()), Ok(())]);
    let (from, word, there) = world.transfer(third);
    assert_eq!((from, word, world.kernel(2).caps[&there.0].rights), (pid_base(1) | RECEIVER, 2, Rights::READ));
    let (_, word, here) = world.transfer(owner);
    assert_eq!((word, world.kernel(0).caps[&here.0].rights), (3, Rights::READ));
    // Only its owner can revoke it.
    let revoked = world.revoke(1, RECEIVER, copy);
    assert_eq!(world.result_of(revoked), Err(Error::Borrowed));
    let revoked = world.revoke(0, SENDER, frame);
    assert_eq!(world.result_of(revoked), Ok(()));
    assert_eq!((world.kernel(1).caps.len(), world.kernel(2).caps.len()), (0, 0));
    world.check_empty();
}

#[test]
fn lent_memory_comes_back_with_all_that_was_made_of_it() {
    let mut world = World::new(3);
    let memory = world.make(0, Kind::Untyped, 0x40_0000, 16 * PAGE);
    let receiver = world.take(1, RECEIVER);
    let lent = world.give(0, SENDER, memory, 1, RECEIVER, 1);
    assert_eq!(world.result_of(lent), Ok(()));
    let (.., _borrowed) = world.transfer(receiver);
    // A frame made of it is sent to the third core, and to the lender.
    let frame = world.make(1, Kind::Frame, 0x40_2000, PAGE);
    let (third, lender) = (world.take(2, 5), world.take(0, SENDER));
    let transfers = [world.give(1, RECEIVER, frame, 2, 5, 2), world.give(1, RECEIVER, frame, 0, SENDER, 3)];
    assert_eq!(transfers.map(|transfer| world.result_of(transfer)), [Ok(()), Ok(())]);
    world.transfer(third);
    world.transfer(lender);
    let other = world.recall(0, SENDER + 1, 0, u64::MAX);
    assert_eq!(world.result_of(other), Ok(()));
    assert_eq!(world.kernel(2).caps.len(), 2, "somebody else takes nothing back");
    let recalled = world.recall(0, SENDER, 0x40_0000, 16 * PAGE);
    assert_eq!(world.result_of(recalled), Ok(()));
    assert_eq!(world.cores.iter_mut().map(|core| core.kernel().caps.len()).sum::<usize>(), 0);
    world.check_empty();
}

#[test]
fn memory_is_lent_to_one_core_and_unused() {
    let mut world = World::new(3);
    let memory = world.make(0, Kind::Untyped, 0x40_0000, 16 * PAGE);
    let child = world.make(0, Kind::Frame, 0x40_0000, PAGE);
    let lent = world.give(0, SENDER, memory, 1, RECEIVER, 1);
    assert_eq!(world.result_of(lent), Err(Error::InUse));
    world.kernel(0).delete(child);
    world.check_empty();
    let memory = world.make(0, Kind::Untyped, 0x40_0000, 16 * PAGE);
    let receiver = world.take(1, RECEIVER);
    let lent = world.give(0, SENDER, memory, 1, RECEIVER, 1);
    assert_eq!(world.result_of(lent), Ok(()));
    let (.., borrowed) = world.transfer(receiver);
    // It is lent on, so it counts as derived from what was borrowed.
    let receiver = world.take(2, 5);
    let on = world.give(1, RECEIVER, borrowed, 2, 5, 1);
    assert_eq!(world.result_of(on), Ok(()));
    let (.., third) = world.transfer(receiver);
    assert_eq!(world.cores[1].give_back(0x40_0000), Err(Error::InUse));
    world.kernel(2).delete(third);
    assert_eq!(world.cores[2].give_back(0x40_0000), Ok(()));
    world.run_until_idle();
    assert_eq!(world.cores[1].give_back(0x40_0000), Ok(()));
    world.check_empty();
}

#[test]
fn unsendable_capabilities_are_refused_and_leave_nothing() {
    let mut world = World::new(2);
    assert_eq!(world.cores[0].check(CapAddress(77)), Err(Error::NotSendable));
    world.kernel(0).devices.push(0x900_0000);
    let device = world.make(0, Kind::Frame, 0x900_0000, PAGE);
    let given = world.give(0, SENDER, device, 1, RECEIVER, 0);
    assert_eq!(world.result_of(given), Err(Error::DeviceMemory));
    world.check_empty();
    // Each call to either kernel fails once.
    let frame = world.make(0, Kind::Frame, 0x10_0000, PAGE);
    for (at, patience) in [(0, 0), (1, 0), (1, 1)] {
        world.kernel(at).patience = Some(patience);
        let given = world.give(0, SENDER, frame, 1, RECEIVER, 0);
        assert_eq!(world.result_of(given), Err(Error::Refused));
        world.kernel(at).patience = None;
        world.check_empty();
    }
    // Some process there has this memory.
    world.make(1, Kind::Frame, 0x10_0000, PAGE);
    let given = world.give(0, SENDER, frame, 1, RECEIVER, 0);
    assert_eq!(world.result_of(given), Err(Error::Refused));
    world.check_empty();
}

#[test]
fn a_mailbox_fills_up_for_who_fills_it() {
    let mut world = World::new(2);
    let frame = world.make(0, Kind::Frame, 0x10_0000, PAGE);
    let mut sent = 0;
    loop {
        let given = world.give(0, SENDER, frame, 1, RECEIVER, sent);
        match world.result_of(given) {
            Ok(()) => sent += 1,
            refused => break assert_eq!(refused, Err(Error::MailboxFull)),
        }
    }
    assert_eq!(sent, 128);
    let other = world.give(0, SENDER + 1, frame, 1, RECEIVER, 7);
    assert_eq!(world.result_of(other), Ok(()));
    // A transfer within its own core counts as well.
    let local = world.make(1, Kind::Frame, 0x20_0000, PAGE);
    let given = world.give(1, 3, local, 1, RECEIVER, 8);
    assert_eq!(world.result_of(given), Ok(()));
    assert_eq!(world.cores[1].receivers(), [RECEIVER]);
    for word in 0..4 {
        let receiver = world.take(1, RECEIVER);
        assert_eq!(world.transfer(receiver).1, word, "in the order in which they were sent");
    }
    world.cores[1].discard_for(RECEIVER);
    assert_eq!(world.cores[1].count(), (0, 1, 0));
    let revoked = world.revoke(0, SENDER, frame);
    assert_eq!(world.result_of(revoked), Ok(()));
    world.check_empty();
}

#[test]
fn receivers_wait_in_turn_and_ended_ones_lose_nothing() {
    let mut world = World::new(2);
    let frame = world.make(0, Kind::Frame, 0x10_0000, PAGE);
    let receivers: Vec<u64> = (0..70).map(|_| world.take(1, RECEIVER)).collect();
    world.run_until_idle();
    assert_eq!(world.heard.get(&receivers[63]), None);
    assert_eq!(world.heard.get(&receivers[64]), Some(&Heard::Reply(Err(Error::Full))));
    // A search with few looks goes on where the last one ended.
    let comes_later = |who: &u64| (receivers[8]..receivers[60]).contains(who);
    assert_eq!(world.cores[1].forget(8, comes_later), []);
    assert_eq!(world.cores[1].forget(8, comes_later), receivers[8..16]);
    let gone = world.cores[1].forget(usize::MAX, |who| *who < receivers[60]);
    assert_eq!(gone, [&receivers[..8], &receivers[16..60]].concat());
    let given = world.give(0, SENDER, frame, 1, RECEIVER, 4);
    assert_eq!(world.result_of(given), Ok(()));
    assert_eq!(world.transfer(receivers[60]).1, 4);
    let revoked = world.revoke(0, SENDER, frame);
    assert_eq!(world.result_of(revoked), Ok(()));
    world.cores[1].forget(usize::MAX, |_| true);
    world.check_empty();
}

#[test]
fn a_core_that_is_lost_has_nothing_any_more() {
    let mut world = World::new(3);
    let (frame, theirs) = (world.make(0, Kind::Frame, 0x10_0000, PAGE), world.make(1, Kind::Frame, 0x50_0000, PAGE));
    let receiver = world.take(0, 4);
    let transfers = [world.give(0, SENDER, frame, 1, RECEIVER, 1), world.give(1, RECEIVER, theirs, 0, 4, 2)];
    assert_eq!(transfers.map(|transfer| world.result_of(transfer)), [Ok(()), Ok(())]);
    world.transfer(receiver);
    let waiting = world.give(0, SENDER, frame, 1, RECEIVER, 3);
    world.cores[0].lose(core(1));
    assert_eq!(world.result_of(waiting), Err(Error::CoreLost));
    let late = world.give(0, SENDER, frame, 1, RECEIVER, 3);
    assert_eq!(world.result_of(late), Err(Error::CoreLost));
    assert_eq!((world.cores[0].count(), world.cores[2].count()), ((0, 0, 0), (0, 0, 0)));
    assert_eq!(world.kernel(0).revoke(frame), Ok(()), "nobody else has it");
}

/// If a core other than the first reports the end of another, the core asks its own kernel whether it is so.
#[test]
fn the_discoverer_of_a_stopped_core_tells_the_others_which_check() {
    let mut world = World::new(4);
    let frame = world.make(2, Kind::Frame, 0x10_0000, PAGE);
    let given = world.give(2, SENDER, frame, 1, RECEIVER, 1);
    assert_eq!(world.result_of(given), Ok(()));
    assert_eq!(world.cores[2].awaited(), Cores::NONE, "who has something is not waited for");
    assert!(!world.cores[2].stop(core(1)), "it is on");
    let lost = Line::Lost(core(1)).encode();
    world.cores[3].receive(core(2), lost.0, &lost.1);
    assert!(!world.cores[3].is_closed(core(1)));
    assert_eq!(world.cores[3].faults(), 1, "it is not so");
    // The kernel of the fourth knows nothing.
    for at in [0, 2] {
        world.kernel(at).off.push(core(1));
    }
    let revoked = world.revoke(2, SENDER, frame);
    assert_eq!(world.cores[2].awaited(), Cores::NONE.with(core(1)));
    assert!(world.cores[2].stop(core(1)));
    assert_eq!(world.result_of(revoked), Ok(()));
    assert_eq!(world.cores[2].awaited(), Cores::NONE);
    // The first has been told, and is trusted.
    assert_eq!([0, 2, 3].map(|at: usize| world.cores[at].is_closed(core(1))), [true; 3]);
    assert!(world.cores[2].stop(core(1)), "it stays so");
    assert_eq!(world.kernel(2).revoke(frame), Ok(()), "nobody else has it");
}

/// The owner has no channel to the receiver of its frame, which another core forwards: its events wait until there is
/// one.
#[test]
fn messages_wait_for_their_channel() {
    let mut world = World::with(3, |lower, _| lower == 0);
    let frame = world.make(1, Kind::Frame, 0x10_0000, PAGE);
    let receiver = world.take(0, SENDER);
    let given = world.give(1, RECEIVER, frame, 0, SENDER, 1);
    assert_eq!(world.result_of(given), Ok(()));
    let (.., copy) = world.transfer(receiver);
    let (receiver, on) = (world.take(2, 5), world.give(0, SENDER, copy, 2, 5, 2));
    world.run_until_idle();
    assert_eq!((world.heard.get(&on), world.heard.get(&receiver)), (None, None));
    assert_eq!((world.cores[1].wanted(), world.cores[1].wanted()), (Some(core(2)), None));
    world.cores[1].want(core(2));
    world.run_until_idle();
    assert_eq!((world.cores[0].link(), world.cores[0].link()), (Some((core(1), core(2))), None));
    world.cores[1].connect(core(2));
    world.cores[2].connect(core(1));
    assert_eq!(world.result_of(on), Ok(()));
    assert_eq!(world.transfer(receiver).1, 2);
    let revoked = world.revoke(1, RECEIVER, frame);
    assert_eq!(world.result_of(revoked), Ok(()));
    assert_eq!((world.kernel(0).caps.len(), world.kernel(2).caps.len()), (0, 0));
    world.check_empty();
}

#[test]
fn messages_of_no_correct_monitor_are_counted_and_change_nothing() {
    let mut world = World::new(2);
    let frame = world.make(0, Kind::Frame, 0x10_0000, PAGE);
    let given = world.give(0, SENDER, frame, 1, RECEIVER, 1);
    assert_eq!(world.result_of(given), Ok(()));
    let mut dice = Dice::new(1);
    for _ in 0..20_000 {
        let words: Vec<u64> = (0..dice.below(9)).map(|_| dice.word() >> dice.below(64)).collect();
        // A core revokes what it has sent: that is no violation.
        if words.first().is_none_or(|word| word & 0xff != 6) {
            world.cores[1].receive(core(0), 32 + dice.below(6) as u16, &words);
        }
    }
    assert!(world.cores[1].faults() > 10_000);
    assert_eq!(world.cores[1].count().1, 1);
    let receiver = world.take(1, RECEIVER);
    assert_eq!(world.transfer(receiver).1, 1);
}
