//! Messages between threads.

use alloc::string::String;
use alloc::vec::Vec;

use tench::abi::Kind;
use tench::memory::{self, make};
use tench::runtime::text;
use tench::sys::ipc::BOUND_REPLY;
use tench::sys::{Cap, CapAddress, Endpoint, Error, Message, Notification, Rights, Wait, offer_slots};
use tench::thread;

use crate::check;

/// Messages in registers.
pub fn short_messages() -> Result<(), String> {
    let endpoint = make::<Endpoint>(0).map_err(text)?.leak();
    let server = thread::spawn(move || {
        let mut request = endpoint.receive_words()?;
        while request.label() != 0 {
            let [a, b, ..] = request.words;
            request = endpoint.reply_receive1(request.label() + 1, a + b)?;
        }
        BOUND_REPLY.reply(&Message::new(9))
    });
    for number in 0..100 {
        let reply = endpoint.call2(7, number, 40).map_err(text)?;
        check!(reply.label() == 8 && reply.words == [number + 40, 0, 0, 0, 0, 0, 0, 0]);
    }
    let all = endpoint.call8(7, 1, 2, 3, 4, 5, 6, 7, 8).map_err(text)?;
    check!(all.words[0] == 3);
    check!(endpoint.call0(0).map_err(text)?.label() == 9);
    server.join().map_err(text)?;
    endpoint.delete().map_err(text)?;
    Ok(())
}

/// Messages of every length.
pub fn long_messages() -> Result<(), String> {
    let endpoint = make::<Endpoint>(0).map_err(text)?.leak();
    let server = thread::spawn(move || {
        let mut request = endpoint.receive(Wait::FOREVER)?;
        while request.label() != 0 {
            let mut words: Vec<u64> = request.words().into();
            words.reverse();
            request = endpoint.reply_receive(&Message::with_words(1, &words), Wait::FOREVER)?;
        }
        BOUND_REPLY.reply(&Message::new(0))
    });
    for length in [0, 1, 7, 8, 9, 10, 33, 63, 64] {
        let words: Vec<u64> = (0..length).map(|index| index * index + length).collect();
        let reply = endpoint.call(&Message::with_words(1, &words)).map_err(text)?;
        check!(reply.words().iter().rev().eq(words.iter()));
    }
    let mut long = Message::new(1);
    long.push_text(&[b'x'; 504]);
    check!(long.length() == 64);
    check!(endpoint.call(&long).map_err(text)?.word(63) == 504);
    long.push(1);
    check!(endpoint.call(&long).err() == Some(Error::MessageTooLong));
    endpoint.call0(0).map_err(text)?;
    server.join().map_err(text)?;
    endpoint.delete().map_err(text)?;
    Ok(())
}

/// Capabilities are copied and moved.
pub fn capabilities_in_messages() -> Result<(), String> {
    let endpoint = make::<Endpoint>(0).map_err(text)?.leak();
    let signalled = make::<Notification>(0).map_err(text)?;
    let server = thread::spawn(move || -> Result<usize, Error> {
        let first = memory::take_slots(2).map_err(|_| Error::NoSuchSlot)?;
        let second = CapAddress(first.0 + 1);
        offer_slots(&[first, second]);
        let request = endpoint.receive(Wait::FOREVER)?;
        let received: Vec<_> = request.caps().into();
        for cap in &received {
            Cap::<Notification>::new(*cap).signal()?;
        }
        for cap in &received {
            Cap::<Notification>::new(*cap).delete()?;
        }
        BOUND_REPLY.reply(&Message::new(0))?;
        memory::free_slot(first);
        memory::free_slot(second);
        Ok(received.len())
    });
    let minted = memory::take_slot().map_err(text)?;
    let minted = signalled.cap().mint_to(minted, Rights::WRITE, 6).map_err(text)?;
    let mut message = Message::new(1);
    message.copy_cap(signalled.cap()).move_cap(minted);
    endpoint.call(&message).map_err(text)?;
    check!(server.join().map_err(text)? == 2);
    check!(signalled.cap().poll() == Ok(7));
    check!(minted.identify().map_err(text)?.kind == Kind::Null);
    memory::free_slot(minted.address());
    endpoint.delete().map_err(text)?;
    Ok(())
}
