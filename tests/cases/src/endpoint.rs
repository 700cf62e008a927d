//! Endpoints.

use tench::sys::{Error, Message, Wait};

use crate::case::{Case, Outcome};
use crate::stage::Stage;
use crate::worker::patience;

/// The cases.
pub const CASES: &[Case] = &[
    Case::new("END0001", "a send of 0 to 64 words arrives whole", send_lengths),
    Case::new("END0002", "a call and its reply of 0 to 64 words arrive whole", call_lengths),
];

/// A message of so many words, each different.
fn numbered(label: u64, length: usize) -> Message {
    let mut message = Message::new(label);
    for index in 0..length as u64 {
        message.push(label << 32 | index ^ 0x55);
    }
    message
}

/// Whether the words are those of `numbered`.
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
            tench::sys::ipc::BOUND_REPLY.reply(&reply)?;
        } else {
            received = endpoint.reply_receive(&reply, Wait::until(patience()))?;
        }
    }
    equal!(worker.join()??, 65);
    Ok(())
}
