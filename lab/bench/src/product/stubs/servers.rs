//! The servers: an echoing one, one with generated dispatch, one with the generic message builder.

use tench::abi::layout::slot;
use tench::memory;
use tench::server::slots;
use tench::sys::{Cap, Endpoint, Error as KernelError, Message, Notification, OWN_CSPACE, Wait, offer_slots};
use tench_protocol::{ArrayString, Arrived, Event, Factory, Port, Replies, Text};

use super::interface::{Error, Measured, MeasuredService, TASK, TaskInfo};

/// Label of the request that ends a server. No interface uses it.
pub const STOP: u64 = 0xffff_ffff_ffff;

/// Runs a server that echoes all words; capabilities do not arrive, since no slots are on offer.
pub fn echo(endpoint: Cap<Endpoint>) -> Result<(), KernelError> {
    let mut request = endpoint.receive_words()?;
    while request.label() != STOP {
        let [a, b, c, d, e, f, g, h] = request.words;
        request = match request.tag.length() {
            0 => endpoint.reply_receive0(0),
            1 => endpoint.reply_receive1(0, a),
            3 => endpoint.reply_receive3(0, a, b, c),
            4 => endpoint.reply_receive4(0, a, b, c, d),
            _ => endpoint.reply_receive8(0, a, b, c, d, e, f, g, h),
        }?;
    }
    bow_out(endpoint)
}

/// Replies to the request to stop.
fn bow_out(endpoint: Cap<Endpoint>) -> Result<(), KernelError> {
    // The reply is sent even if no sender waits; then there is nothing to receive.
    let _ = endpoint.reply_receive(&Message::new(0), Wait::until(tench::sys::Instant::from_ticks(0)));
    Ok(())
}

/// State of the echoing server with generated dispatch.
struct Echo {
    text: ArrayString<16>,
}

impl MeasuredService for Echo {
    fn zero(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn one(&mut self, a: u64) -> Result<u64, Error> {
        Ok(a)
    }

    fn four(&mut self, a: u64, b: u64, c: u64, d: u64) -> Result<(u64, u64, u64, u64), Error> {
        Ok((a, b, c, d))
    }

    fn eight(&mut self, words: [u64; 8]) -> Result<[u64; 8], Error> {
        Ok(words)
    }

    fn text(&mut self, text: Text<'_, 16>) -> Result<Text<'_, 16>, Error> {
        self.text = text.to_owned();
        // Text that arrived as such can be sent as such.
        Ok(Text::new(&self.text).unwrap_or_default())
    }

    fn cap(&mut self, _: Arrived<'_, Notification>) -> Result<(), Error> {
        Ok(())
    }

    fn task_info(&mut self, task: u64) -> Result<TaskInfo, Error> {
        if task == TASK { Ok(TaskInfo::SAMPLE) } else { Err(Error::NoSuchTask) }
    }
}

/// Runs a server built as usual: [`Port`] and the generated dispatch.
pub fn generated(endpoint: Cap<Endpoint>) -> Result<(), KernelError> {
    // Nothing is replied to later, so the bound reply object is never named.
    let replies = Replies::new(Cap::new(slot::REPLY), Factory::NONE);
    let mut port = Port::new(endpoint, replies, slots(1));
    let mut server = Echo { text: ArrayString::new() };
    loop {
        if port.next(Wait::FOREVER) == Event::Request && port.request().is_some_and(|request| request.label() == STOP) {
            port.close().into_iter().for_each(memory::free_slot);
            return bow_out(endpoint);
        }
        port.carry_out(|request, context, reply| Measured::dispatch(&mut server, request, context, reply));
    }
}

/// Runs a server written with the message builder: a table of labels, a reader, a message.
pub fn generic(endpoint: Cap<Endpoint>) -> Result<(), KernelError> {
    let slot = memory::take_slot().map_err(|_| KernelError::OutOfMemory)?;
    offer_slots(&[slot]);
    let mut request = endpoint.receive(Wait::FOREVER)?;
    while request.label() != STOP {
        let mut reader = request.reader();
        let mut reply = Message::new(0);
        let mut good = true;
        match request.label() {
            Measured::ZERO => {}
            Measured::ONE | Measured::FOUR | Measured::EIGHT => {
                while let Some(word) = reader.word() {
                    reply.push(word);
                }
            }
            Measured::TEXT => match reader.text().and_then(|text| core::str::from_utf8(text).ok()) {
                Some(text) => _ = reply.push_text(text.as_bytes()),
                None => good = false,
            },
            Measured::CAP => match request.caps() {
                [cap] => {
                    good = OWN_CSPACE.identify_at(*cap).is_ok_and(|found| found.kind == tench::abi::Kind::Notification);
                    OWN_CSPACE.delete_at(*cap)?;
                    offer_slots(&[slot]);
                }
                _ => good = false,
            },
            _ => good = false,
        }
        if !good {
            reply = Message::new(Error::NoSuchTask as u64);
        }
        request = endpoint.reply_receive(&reply, Wait::FOREVER)?;
    }
    offer_slots(&[]);
    memory::free_slot(slot);
    bow_out(endpoint)
}
