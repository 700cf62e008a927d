//! Tests of endpoints: what a message carries, and which sender meets which receiver.

use tench::abi::Operation;
use tench::abi::object::ThreadState;
use tench::sys::{Cap, Error, Instant, Message, Rights, Tag, Wait, ipc::BOUND_REPLY};

use crate::case::{Case, Outcome};
use crate::stage::{LOW, Stage, system_call};
use crate::worker::{Equipment, MOMENT, patience, soon};

pub const CASES: &[Case] = &[
    Case::new("END0001", "a send of 0 to 64 words arrives whole", send_lengths),
    Case::new("END0002", "a call and its reply of 0 to 64 words arrive whole", call_lengths),
    Case::new("END0003", "more than 64 words or 4 capabilities are refused", too_long),
    Case::new("END0004", "registers beyond the message's words are zero", no_leak),
    Case::new("END0005", "a receiver sees no flags of the sender", flags),
    Case::new("END0006", "labels have 48 bits", labels),
    Case::new("END0007", "a message carries the badge it was sent through", badges),
    Case::new("END0008", "senders are served in the order of their coming", senders_in_order),
    Case::new("END0009", "receivers are served in the order of their coming", receivers_in_order),
    Case::new("END0010", "a sender waits until its message is taken", sender_waits),
    Case::new("END0011", "sending without waiting needs a waiting receiver", try_send),
    Case::new("END0012", "receiving without waiting needs a waiting sender", try_receive),
    Case::new("END0013", "a receive ends at its deadline", receive_deadline),
    Case::new("END0014", "a send ends at its deadline", send_deadline),
    Case::new("END0015", "a call that nobody takes ends at its deadline", call_deadline),
    Case::new("END0016", "a call to which nobody replies ends at its deadline", reply_deadline),
    Case::new("END0017", "a message in time ends the deadline", in_time),
    Case::new("END0018", "deleting an endpoint ends the waits of senders and callers", deleted_senders),
    Case::new("END0019", "deleting an endpoint ends the waits of receivers", deleted_receivers),
    Case::new("END0020", "deleting an endpoint does not disturb who awaits a reply", deleted_after),
    Case::new("END0021", "deleting one capability of several ends no wait", one_of_several),
    Case::new("END0022", "a suspended sender leaves the queue", suspended_sender),
    Case::new("END0023", "a deleted sender and a deleted receiver leave the queue", deleted_threads),
    Case::new("END0024", "without an IPC buffer messages have eight words", without_buffer),
    Case::new("END0025", "a receiver without an IPC buffer gets the first eight words", receiver_without_buffer),
    Case::new("END0026", "a receive needs a reply object", no_reply_object),
    Case::new("END0027", "calls nest through several servers", nested),
    Case::new("END0028", "a server replies to thousands of calls on the fast path", many_calls),
];

/// Returns a message of `length` words, all different.
fn numbered(label: u64, length: usize) -> Message {
    let mut message = Message::new(label);
    for index in 0..length as u64 {
        message.push(label << 32 | index ^ 0x55);
    }
    message
}

/// Returns whether the words are those of `numbered`.
fn is_numbered(words: &[u64], label: u64) -> bool {
    words.iter().zip(0..).all(|(word, index)| *word == label << 32 | index ^ 0x55)
}

fn send_lengths(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let worker = stage.spawn(move || -> Result<(), Error> {
        for length in 0..=64 {
            endpoint.send(&numbered(length as u64 + 7, length), Wait::FOREVER)?;
        }
        Ok(())
    })?;
    for length in 0..=64 {
        let received = endpoint.receive(Wait::until(patience()))?;
        equal!(received.label(), length as u64 + 7);
        equal!((length, received.words().len()), (length, length));
        check!(is_numbered(received.words(), received.label()));
    }
    worker.join()??;
    Ok(())
}

fn call_lengths(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let worker = stage.spawn(move || -> Result<usize, Error> {
        for length in 0..=64 {
            let reply = endpoint.call(&numbered(length as u64 + 7, length))?;
            if reply.label() != 99 || reply.words().len() != 64 - length || !is_numbered(reply.words(), 99) {
                return Ok(length);
            }
        }
        Ok(65)
    })?;
    let mut received = endpoint.receive(Wait::until(patience()))?;
    for length in 0..=64 {
        equal!((length, received.words().len()), (length, length));
        check!(is_numbered(received.words(), received.label()));
        let reply = numbered(99, 64 - length);
        if length == 64 {
            BOUND_REPLY.reply(&reply)?;
        } else {
            received = endpoint.reply_receive(&reply, Wait::until(patience()))?;
        }
    }
    equal!(worker.join()??, 65);
    Ok(())
}

fn too_long(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let address = u64::from(endpoint.address().0);
    let tags = (65..256).map(|length| Tag::new(1, length)).chain((5..16).map(|caps| Tag::new(1, 0).with_caps(caps)));
    for tag in tags {
        for operation in [Operation::Call, Operation::Send, Operation::TrySend] {
            refused!(system_call(operation as u64, &[address, tag.0]), MessageTooLong);
        }
        refused!(system_call(Operation::ReplyReceive as u64, &[address, tag.0]), MessageTooLong);
    }
    // A reply that is too long leaves the caller waiting, and the server may try again.
    let worker = stage.spawn(move || endpoint.call(&Message::new(2)).map(|reply| reply.label()))?;
    endpoint.receive(Wait::until(patience()))?;
    refused!(system_call(Operation::Reply as u64, &[0, Tag::new(1, 65).0]), MessageTooLong);
    refused!(system_call(Operation::ReplyReceive as u64, &[address, Tag::new(1, 65).0]), MessageTooLong);
    equal!(worker.state()?, ThreadState::AwaitingReply);
    BOUND_REPLY.reply(&Message::new(3))?;
    equal!(worker.join()?, Ok(3));
    Ok(())
}

fn no_leak(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let address = u64::from(endpoint.address().0);
    for length in 0..8 {
        let worker = stage.spawn(move || {
            // All registers hold something, but the message has `length` words.
            let filled: [u64; 10] = core::array::from_fn(|index| match index {
                0 => address,
                1 => Tag::new(1, length).0,
                _ => 0xdead_0000 + index as u64,
            });
            system_call(Operation::Send as u64, &filled).map(drop)
        })?;
        let result = system_call(Operation::Receive as u64, &[address])?;
        for (index, word) in result[1..].iter().enumerate() {
            let expected = if index < length { 0xdead_0002 + index as u64 } else { 0 };
            equal!((length, index, *word), (length, index, expected));
        }
        worker.join()??;
        stage.workers = 0;
    }
    Ok(())
}

fn flags(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let address = u64::from(endpoint.address().0);
    let far = patience().ticks();
    let worker = stage.spawn(move || {
        let all = Tag::new(6, 1).with(Tag::DEADLINE | Tag::REPLY | Tag::KERNEL | Tag::NOTIFICATION).0;
        let send = system_call(Operation::Send as u64, &[address, all, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, far]).map(drop);
        let call = system_call(Operation::Call as u64, &[address, all, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, far]);
        (send, call.map(|result| result[0]))
    })?;
    equal!(endpoint.receive(Wait::until(patience()))?.tag(), Tag::new(6, 1));
    equal!(endpoint.receive(Wait::until(patience()))?.tag(), Tag::new(6, 1));
    let all = Tag::new(8, 0).with(Tag::KERNEL | Tag::NOTIFICATION | Tag::DEADLINE);
    system_call(Operation::Reply as u64, &[0, all.0])?;
    equal!(worker.join()?, (Ok(()), Ok(Tag::new(8, 0).0)));
    Ok(())
}

fn labels(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let label = 0xfedc_ba98_7654;
    let worker = stage.spawn(move || endpoint.call(&Message::new(label)).map(|reply| reply.label()))?;
    equal!(endpoint.receive(Wait::until(patience()))?.label(), label);
    BOUND_REPLY.reply(&Message::new(label - 1))?;
    equal!(worker.join()?, Ok(label - 1));
    Ok(())
}

fn badges(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let badged = stage.mint(endpoint, Rights::WRITE | Rights::CALL, u64::MAX)?;
    let copied = stage.copy(badged)?;
    let worker = stage.spawn(move || {
        let call = badged.call(&Message::new(1)).map(|reply| reply.badge());
        (call, copied.send(&Message::new(2), Wait::FOREVER), endpoint.send(&Message::new(3), Wait::FOREVER))
    })?;
    equal!(endpoint.receive(Wait::until(patience()))?.badge(), u64::MAX);
    equal!(endpoint.reply_receive(&Message::new(0), Wait::until(patience()))?.badge(), u64::MAX);
    equal!(endpoint.receive(Wait::until(patience()))?.badge(), 0);
    equal!(worker.join()?, (Ok(0), Ok(()), Ok(())));
    refused!(badged.receive(Wait::until(soon())), MissingRights);
    Ok(())
}

fn senders_in_order(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let mut workers = [None; 5];
    for (label, worker) in workers.iter_mut().enumerate() {
        *worker = Some(stage.spawn(move || endpoint.send(&Message::new(label as u64), Wait::FOREVER))?);
    }
    for (label, worker) in workers.into_iter().flatten().enumerate() {
        equal!(worker.state()?, ThreadState::Sending);
        equal!(endpoint.receive(Wait::until(patience()))?.label(), label as u64);
        check!(worker.has_ended());
    }
    Ok(())
}

fn receivers_in_order(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let mut workers = [None; 5];
    for worker in &mut workers {
        *worker = Some(stage.spawn(move || endpoint.receive(Wait::FOREVER).map(|received| received.label()))?);
    }
    for (label, worker) in workers.into_iter().flatten().enumerate() {
        equal!(worker.state()?, ThreadState::Receiving);
        endpoint.send(&Message::new(label as u64), Wait::until(patience()))?;
        equal!(worker.join()?, Ok(label as u64));
    }
    Ok(())
}

fn sender_waits(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let worker = stage.spawn(move || endpoint.send(&Message::new(1), Wait::FOREVER))?;
    crate::worker::pause(stage)?;
    equal!(worker.state()?, ThreadState::Sending);
    endpoint.receive(Wait::until(patience()))?;
    equal!(worker.join()?, Ok(()));
    // A caller waits for the reply as well.
    let caller = stage.spawn(move || endpoint.call(&Message::new(1)).map(drop))?;
    equal!(caller.state()?, ThreadState::Sending);
    endpoint.receive(Wait::until(patience()))?;
    equal!(caller.state()?, ThreadState::AwaitingReply);
    BOUND_REPLY.reply(&Message::new(0))?;
    equal!(caller.join()?, Ok(()));
    Ok(())
}

fn try_send(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    refused!(endpoint.try_send(&Message::new(1)), WouldBlock);
    let sender = stage.spawn(move || endpoint.send(&Message::new(2), Wait::FOREVER))?;
    refused!(endpoint.try_send(&Message::new(1)), WouldBlock);
    equal!(endpoint.receive(Wait::until(patience()))?.label(), 2);
    sender.join()??;
    let receiver = stage.spawn(move || endpoint.receive(Wait::FOREVER).map(|received| received.words().len()))?;
    endpoint.try_send(&numbered(1, 33))?;
    equal!(receiver.join()?, Ok(33));
    refused!(endpoint.try_send(&Message::new(1)), WouldBlock);
    Ok(())
}

fn try_receive(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    refused!(endpoint.try_receive(Wait::FOREVER), WouldBlock);
    let sender = stage.spawn(move || endpoint.call(&numbered(2, 20)).map(|reply| reply.label()))?;
    let received = endpoint.try_receive(Wait::FOREVER)?;
    check!(is_numbered(received.words(), 2) && received.words().len() == 20);
    BOUND_REPLY.reply(&Message::new(9))?;
    equal!(sender.join()?, Ok(9));
    refused!(endpoint.try_receive(Wait::FOREVER), WouldBlock);
    Ok(())
}

/// Returns the result of a call, and the ticks that it took.
fn ticks<T>(function: impl FnOnce() -> T) -> (T, u64) {
    let begin = Instant::now();
    let result = function();
    (result, Instant::now().since(begin))
}

fn receive_deadline(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let (result, passed) = ticks(|| endpoint.receive(Wait::until(soon())).map(drop));
    refused!(result, TimedOut);
    check!(passed >= MOMENT);
    refused!(endpoint.receive(Wait::until(Instant::from_ticks(0))), TimedOut);
    refused!(endpoint.reply_receive(&Message::new(0), Wait::until(soon())), TimedOut);
    refused!(endpoint.try_send(&Message::new(1)), WouldBlock);
    Ok(())
}

fn send_deadline(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let (result, passed) = ticks(|| endpoint.send(&Message::new(1), Wait::until(soon())));
    refused!(result, TimedOut);
    check!(passed >= MOMENT);
    refused!(endpoint.send(&Message::new(1), Wait::until(Instant::from_ticks(0))), TimedOut);
    refused!(endpoint.try_receive(Wait::FOREVER), WouldBlock);
    Ok(())
}

fn call_deadline(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let (result, passed) = ticks(|| endpoint.call_with(&Message::new(1), Wait::until(soon())).map(drop));
    refused!(result, TimedOut);
    check!(passed >= MOMENT);
    refused!(endpoint.try_receive(Wait::FOREVER), WouldBlock);
    Ok(())
}

fn reply_deadline(stage: &mut Stage) -> Outcome {
    let (endpoint, never) = (stage.endpoint()?, stage.notification()?);
    // Late enough for the worker to come to its second receive on a machine that runs several cores in turn.
    let deadline = soon().after(20 * MOMENT);
    let worker = stage.spawn(move || {
        let first = endpoint.receive(Wait::FOREVER)?;
        // The reply object holds the caller, so nothing else can be received with it.
        let second = endpoint.try_receive(Wait::FOREVER).err();
        // The caller gives up meanwhile; its reply is dropped, and the next call is replied to as usual.
        let third = never.wait_until(deadline.after(10 * MOMENT)).err();
        let late = BOUND_REPLY.reply(&Message::new(1)).err();
        let fourth = endpoint.receive(Wait::FOREVER)?;
        BOUND_REPLY.reply(&Message::new(77))?;
        Ok::<_, Error>((first.label(), [second, third, late], fourth.label()))
    })?;
    let (result, passed) = ticks(|| endpoint.call_with(&Message::new(5), Wait::until(deadline)).map(drop));
    refused!(result, TimedOut);
    check!(passed >= MOMENT);
    let reply = endpoint.call_with(&Message::new(6), Wait::until(patience()))?;
    equal!(reply.label(), 77);
    let errors = [Some(Error::ReplyInUse), Some(Error::TimedOut), Some(Error::NoCaller)];
    equal!(worker.join()?, Ok((5, errors, 6)));
    Ok(())
}

fn in_time(stage: &mut Stage) -> Outcome {
    let (endpoint, other) = (stage.endpoint()?, stage.endpoint()?);
    let deadline = soon().after(50 * MOMENT);
    let worker = stage.spawn(move || {
        let first = endpoint.receive(Wait::until(deadline)).map(drop);
        let second = other.send(&Message::new(1), Wait::FOREVER);
        (first, second)
    })?;
    endpoint.send(&Message::new(1), Wait::FOREVER)?;
    let never = stage.notification()?;
    refused!(never.wait_until(deadline.after(MOMENT)), TimedOut);
    equal!(worker.state()?, ThreadState::Sending);
    other.receive(Wait::until(patience()))?;
    equal!(worker.join()?, (Ok(()), Ok(())));
    Ok(())
}

fn deleted_senders(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let sender = stage.spawn(move || endpoint.send(&numbered(1, 64), Wait::FOREVER))?;
    let caller = stage.spawn(move || endpoint.call(&Message::new(1)).map(drop))?;
    let patient = stage.spawn(move || endpoint.send(&Message::new(1), Wait::until(patience())))?;
    check!(endpoint.delete()?.freed.is_some());
    equal!(sender.join()?, Err(Error::Aborted));
    equal!(caller.join()?, Err(Error::Aborted));
    equal!(patient.join()?, Err(Error::Aborted));
    Ok(())
}

fn deleted_receivers(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let first = stage.spawn(move || endpoint.receive(Wait::FOREVER).map(drop))?;
    let second = stage.spawn(move || {
        let waited = endpoint.receive(Wait::until(patience())).map(drop);
        (waited, endpoint.receive(Wait::FOREVER).map(drop))
    })?;
    check!(endpoint.delete()?.freed.is_some());
    equal!(first.join()?, Err(Error::Aborted));
    equal!(second.join()?, (Err(Error::Aborted), Err(Error::InvalidCapability)));
    Ok(())
}

fn deleted_after(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let caller = stage.spawn(move || endpoint.call(&Message::new(1)).map(|reply| reply.label()))?;
    endpoint.receive(Wait::until(patience()))?;
    check!(endpoint.delete()?.freed.is_some());
    equal!(caller.state()?, ThreadState::AwaitingReply);
    BOUND_REPLY.reply(&Message::new(4))?;
    equal!(caller.join()?, Ok(4));
    Ok(())
}

fn one_of_several(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let badged = stage.mint(endpoint, Rights::all(), 3)?;
    let sender = stage.spawn(move || badged.send(&Message::new(1), Wait::FOREVER))?;
    equal!(badged.delete()?.freed, None);
    equal!(sender.state()?, ThreadState::Sending);
    equal!(endpoint.receive(Wait::until(patience()))?.badge(), 3);
    equal!(sender.join()?, Ok(()));
    Ok(())
}

fn suspended_sender(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let first = stage.spawn(move || endpoint.send(&Message::new(1), Wait::FOREVER))?;
    let second = stage.spawn(move || endpoint.send(&Message::new(2), Wait::FOREVER))?;
    let third = stage.spawn(move || endpoint.send(&Message::new(3), Wait::FOREVER))?;
    second.thread.suspend()?;
    equal!(endpoint.try_receive(Wait::FOREVER)?.label(), 1);
    equal!(endpoint.try_receive(Wait::FOREVER)?.label(), 3);
    refused!(endpoint.try_receive(Wait::FOREVER), WouldBlock);
    second.thread.resume()?;
    equal!(second.join()?, Err(Error::Aborted));
    first.join()??;
    third.join()??;
    Ok(())
}

fn deleted_threads(stage: &mut Stage) -> Outcome {
    let (endpoint, other) = (stage.endpoint()?, stage.endpoint()?);
    let sender = stage.spawn(move || endpoint.send(&Message::new(1), Wait::until(patience())))?;
    let receiver = stage.spawn(move || other.receive(Wait::until(patience())).map(drop))?;
    check!(sender.thread.delete()?.freed.is_some());
    check!(receiver.thread.delete()?.freed.is_some());
    refused!(endpoint.try_receive(Wait::FOREVER), WouldBlock);
    refused!(other.try_send(&Message::new(1)), WouldBlock);
    Ok(())
}

fn without_buffer(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let address = u64::from(endpoint.address().0);
    let worker = stage.spawn_with(Equipment { buffer: false, ..Equipment::at(LOW) }, move || {
        let send = |tag: Tag| system_call(Operation::Send as u64, &[address, tag.0]).map(drop);
        (send(Tag::new(1, 9)), send(Tag::new(1, 0).with_caps(1)), send(Tag::new(1, 8)))
    })?;
    let received = endpoint.receive(Wait::until(patience()))?;
    equal!(received.words().len(), 8);
    equal!(worker.join()?, (Err(Error::NoIpcBuffer), Err(Error::NoIpcBuffer), Ok(())));
    Ok(())
}

fn receiver_without_buffer(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let worker = stage.spawn_with(Equipment { buffer: false, ..Equipment::at(LOW) }, move || {
        let received = endpoint.receive(Wait::FOREVER)?;
        Ok::<_, Error>((received.words().len(), received.caps().len(), is_numbered(received.words(), 4)))
    })?;
    let mut message = numbered(4, 30);
    message.copy_cap(endpoint);
    endpoint.send(&message, Wait::until(patience()))?;
    equal!(worker.join()?, Ok((8, 0, true)));
    Ok(())
}

fn no_reply_object(stage: &mut Stage) -> Outcome {
    let (endpoint, notification) = (stage.endpoint()?, stage.notification()?);
    let other = stage.reply()?;
    notification.signal()?;
    let worker = stage.spawn_with(Equipment { reply: false, ..Equipment::at(LOW) }, move || {
        let without = endpoint.receive(Wait::FOREVER).map(drop);
        let both = endpoint.reply_receive(&Message::new(0), Wait::FOREVER).map(drop);
        let polled = endpoint.try_receive(Wait::FOREVER).map(drop);
        // A notification needs no reply object.
        let signal = notification.wait();
        let named = endpoint.receive(Wait::FOREVER.with_reply(other)).map(|received| received.label());
        (without, both, polled, signal, named, other.reply(&Message::new(2)))
    })?;
    let reply = endpoint.call_with(&Message::new(3), Wait::until(patience()))?;
    equal!(reply.label(), 2);
    let missing = Err(Error::NoReplyObject);
    equal!(worker.join()?, (missing, missing, missing, Ok(1), Ok(3), Ok(())));
    Ok(())
}

fn nested(stage: &mut Stage) -> Outcome {
    let endpoints = [stage.endpoint()?, stage.endpoint()?, stage.endpoint()?, stage.endpoint()?];
    for pair in 0..3 {
        let (own, next) = (endpoints[pair], endpoints[pair + 1]);
        stage.spawn(move || -> Result<(), Error> {
            let mut received = own.receive(Wait::FOREVER)?;
            loop {
                let reply = next.call(&Message::with_words(1, &[received.word(0) + 1]))?;
                received = own.reply_receive(&Message::with_words(1, &[reply.word(0) * 2]), Wait::FOREVER)?;
            }
        })?;
    }
    let last: Cap<_> = endpoints[3];
    stage.spawn(move || -> Result<(), Error> {
        let mut received = last.receive(Wait::FOREVER)?;
        loop {
            received = last.reply_receive(&Message::with_words(1, &[received.word(0) + 100]), Wait::FOREVER)?;
        }
    })?;
    for number in 0..20 {
        let reply = endpoints[0].call_with(&Message::with_words(1, &[number]), Wait::until(patience()))?;
        equal!(reply.word(0), (number + 103) * 8);
    }
    Ok(())
}

fn many_calls(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    stage.spawn(move || -> Result<(), Error> {
        let mut words = endpoint.receive_words()?;
        loop {
            words = endpoint.reply_receive2(words.label(), words.words[0] + 1, words.words[1])?;
        }
    })?;
    for number in 0..5000 {
        let reply = endpoint.call2(number, number, !number)?;
        equal!((reply.label(), reply.words[0], reply.words[1], reply.words[2]), (number, number + 1, !number, 0));
    }
    Ok(())
}
