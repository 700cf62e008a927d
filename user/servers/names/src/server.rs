//! Requests carried out.

use tench::memory;
use tench_abi::layout::slot;
use tench_names::table::{GROWTH, Table, Wait as Waiting};
use tench_names_client::protocol::{Error, Label};
use tench_protocol::{DONE, Replies};
use tench_sys::{
    Cap, CapAddress, Endpoint, Error as Refusal, Kind, Message, OWN_SPACE, Received, Reply, Wait, offer_slots,
};

/// Where requests arrive.
const SERVICE: Cap<Endpoint> = Cap::new(slot::SERVICE);
/// The badge of those who may say that a process has ended.
const AUTHORITY: u64 = 0;
/// Names that can be registered.
const MAX_NAMES: usize = 1024;
/// Threads that can wait for names.
const MAX_WAITERS: usize = 256;

/// The server's state.
pub struct Server {
    table: Table<CapAddress, Cap<Reply>>,
    replies: Replies<MAX_WAITERS>,
    /// The slot for a capability that comes with the next request; empty.
    incoming: Option<CapAddress>,
}

impl Server {
    /// A server that knows no names.
    pub fn new() -> Result<Server, memory::Error> {
        memory::serve_without_faults(2 * GROWTH)?;
        let replies = Replies::new(Cap::new(slot::REPLY));
        Ok(Server { table: Table::new(MAX_NAMES, MAX_WAITERS), replies, incoming: None })
    }

    /// Answers requests for ever.
    pub fn serve(&mut self) {
        let mut answer = None;
        loop {
            self.offer();
            let wait = self.replies.wait(Wait::FOREVER);
            let received = match &answer {
                Some(answer) => SERVICE.reply_receive(answer, wait),
                None => SERVICE.receive(wait),
            };
            answer = match received {
                Ok(request) => self.answer(&request),
                Err(_) => None,
            };
        }
    }

    /// Offers a slot for a capability. Without one, registering is refused.
    fn offer(&mut self) {
        self.incoming = self.incoming.or_else(|| memory::take_slot().ok());
        match self.incoming {
            Some(slot) => offer_slots(&[slot]),
            None => offer_slots(&[]),
        }
    }

    /// The answer to a request, if it is answered now.
    fn answer(&mut self, request: &Received) -> Option<Message> {
        let cap = request.caps().first().copied();
        let answer = match self.carry_out(request, cap) {
            Ok(answer) => answer,
            Err(error) => Some(Message::new(error as u64)),
        };
        if let (Some(cap), Some(slot)) = (cap, self.incoming)
            && cap == slot
        {
            // Nobody has kept it; the slot is for the next one.
            let _ = OWN_SPACE.delete_at(slot);
        }
        answer
    }

    fn carry_out(&mut self, request: &Received, cap: Option<CapAddress>) -> Result<Option<Message>, Error> {
        let label = Label::from_code(request.label()).filter(|_| !request.is_fault()).ok_or(Error::BadRequest)?;
        let process = request.badge();
        if label == Label::ProcessEnded {
            return self.process_ended(process, request.word(0)).map(Some);
        }
        // What is refused now would have to be refused in the middle; and as much again stays for those who end.
        if matches!(label, Label::Register | Label::Await) && memory::reserve_heap(2 * GROWTH).is_err() {
            return Err(Error::Full);
        }
        let name = request.reader().text().ok_or(Error::BadRequest)?;
        let name = core::str::from_utf8(name).map_err(|_| Error::BadName)?;
        match label {
            Label::Register => self.register(name, process, cap).map(Some),
            Label::LookUp => Ok(Some(found(self.table.look_up(name)?))),
            Label::Await => self.wait(name, process),
            Label::Unregister => {
                let cap = self.table.unregister(name, process)?;
                discard(cap);
                Ok(Some(Message::new(DONE)))
            }
            Label::Next => {
                let (next, owner) = self.table.next(name).ok_or(Error::Unknown)?;
                let mut answer = Message::with_words(DONE, &[owner]);
                answer.push_text(next.as_bytes());
                Ok(Some(answer))
            }
            Label::ProcessEnded => Err(Error::BadRequest),
        }
    }

    fn register(&mut self, name: &str, process: u64, cap: Option<CapAddress>) -> Result<Message, Error> {
        let cap = cap.filter(|&cap| is_endpoint(cap)).ok_or(Error::NoCapability)?;
        let waiters = self.table.register(name, process, cap)?;
        self.incoming = None;
        for reply in waiters {
            // Who gave up meanwhile is answered nothing.
            let _ = reply.reply(&found(cap));
            self.release(reply);
        }
        Ok(Message::new(DONE))
    }

    fn wait(&mut self, name: &str, process: u64) -> Result<Option<Message>, Error> {
        match self.table.look_up(name) {
            Ok(cap) => return Ok(Some(found(cap))),
            Err(Error::Unknown) => {}
            Err(error) => return Err(error),
        }
        let reply = self.replies.keep(make_reply).map_err(|_| Error::Full)?;
        match self.table.wait(name, process, reply) {
            Waiting::Waits => Ok(None),
            Waiting::Known(cap, reply) => {
                self.resume(reply);
                Ok(Some(found(cap)))
            }
            Waiting::Refused(error, reply) => {
                self.resume(reply);
                Err(error)
            }
        }
    }

    fn process_ended(&mut self, caller: u64, process: u64) -> Result<Message, Error> {
        if caller != AUTHORITY {
            return Err(Error::NotAllowed);
        }
        let (caps, replies) = self.table.process_ended(process);
        caps.into_iter().for_each(discard);
        for reply in replies {
            self.release(reply);
        }
        Ok(Message::new(DONE))
    }

    /// The caller in a kept reply object is answered at once after all.
    fn resume(&mut self, reply: Cap<Reply>) {
        if let Some(surplus) = self.replies.make_current(reply) {
            discard(surplus.address());
        }
    }

    /// A reply object is done with.
    fn release(&mut self, reply: Cap<Reply>) {
        if let Some(surplus) = self.replies.release(reply) {
            discard(surplus.address());
        }
    }
}

/// The answer with a copy of a capability.
fn found(cap: CapAddress) -> Message {
    let mut answer = Message::new(DONE);
    answer.copy_cap(cap);
    answer
}

/// Whether an endpoint lies in a slot.
fn is_endpoint(cap: CapAddress) -> bool {
    OWN_SPACE.identify_at(cap).is_ok_and(|identity| identity.kind == Kind::Endpoint)
}

/// Deletes a capability and gives its slot back.
fn discard(cap: CapAddress) {
    if OWN_SPACE.delete_at(cap).is_ok() {
        memory::free_slot(cap);
    }
}

/// A new reply object.
fn make_reply() -> Result<Cap<Reply>, Refusal> {
    memory::make::<Reply>(0).map(|made| made.leak()).map_err(|_| Refusal::OutOfMemory)
}
