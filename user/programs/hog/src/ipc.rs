//! Calls to a server that is a thread of this process.

use alloc::string::String;

use tench::memory::{self, Made, make};
use tench::runtime::text;
use tench::sys::abi::message::{MAX_CAPS, MAX_WORDS};
use tench::sys::{Cap, CapAddress, Endpoint, Message, OWN_CSPACE, Wait, ipc::BOUND_REPLY, offer_slots};
use tench::thread::{Builder, JoinHandle};

use crate::loads::Rounds;

/// Labels of messages: an ordinary call, and the last one.
const CALL: u64 = 1;
const END: u64 = 2;

/// A client, and the server that it calls.
pub struct Ipc {
    endpoint: Made<Endpoint>,
    server: Option<JoinHandle<Result<(), String>>>,
    count: u64,
}

impl Ipc {
    /// Starts the server, with the client's priority.
    pub fn new(priority: u8) -> Result<Ipc, String> {
        let endpoint = make::<Endpoint>(0).map_err(text)?;
        let at = endpoint.cap();
        let server = Builder::new().name("ipc server").priority(priority).spawn(move || serve(at)).map_err(text)?;
        Ok(Ipc { endpoint, server: Some(server), count: 0 })
    }
}

impl Rounds for Ipc {
    fn round(&mut self) -> Result<(), String> {
        self.count += 1;
        let mut message = Message::with_words(CALL, &[self.count; MAX_WORDS]);
        for _ in 0..MAX_CAPS {
            message.copy_cap(self.endpoint.cap());
        }
        let reply = self.endpoint.cap().call(&message).map_err(text)?;
        let expected = (MAX_CAPS as u64, self.count.wrapping_add(1));
        if reply.words().len() == MAX_WORDS && (reply.label(), reply.word(MAX_WORDS - 1)) == expected {
            return Ok(());
        }
        Err("a message did not arrive as it was sent".into())
    }
}

impl Drop for Ipc {
    fn drop(&mut self) {
        // A server that has ended receives no call.
        let wait = Wait::until(tench::time::deadline(tench::time::Duration::from_secs(1)));
        let _ = self.endpoint.cap().call_with(&Message::new(END), wait);
        if let Some(server) = self.server.take() {
            // An error of the server has shown in the client as well.
            let _ = server.join();
        }
    }
}

/// Replies to calls with the number of attached capabilities, and with each word increased by one. Deletes the
/// capabilities.
fn serve(endpoint: Cap<Endpoint>) -> Result<(), String> {
    let first = memory::take_slots(MAX_CAPS).map_err(text)?;
    let slots: [CapAddress; MAX_CAPS] = core::array::from_fn(|number| CapAddress(first.0 + number as u32));
    offer_slots(&slots);
    let mut request = endpoint.receive(Wait::FOREVER).map_err(text)?;
    while request.label() == CALL {
        for cap in request.caps() {
            OWN_CSPACE.delete_at(*cap).map_err(text)?;
        }
        offer_slots(&slots);
        let mut words = [0; MAX_WORDS];
        words.iter_mut().zip(request.words()).for_each(|(word, value)| *word = value.wrapping_add(1));
        let response = Message::with_words(request.caps().len() as u64, &words);
        request = endpoint.reply_receive(&response, Wait::FOREVER).map_err(text)?;
    }
    offer_slots(&[]);
    slots.into_iter().for_each(memory::free_slot);
    BOUND_REPLY.reply(&Message::new(0)).map_err(text)
}
