//! The loop that receives faults and requests.

use tench::abi::CapAddress;
use tench::abi::fault::{Report, answer};
use tench::memory;
use tench::sys::{Cap, Endpoint, Kind, Message, OWN_SPACE, PageTable, Received, Wait, offer_slots};
use tench_protocol::DONE;

use crate::frames::Frames;
use crate::pager::Pager;
use crate::protocol::{Error, Label};

/// The client's number of whoever may do everything: who has the endpoint's own capability.
const AUTHORITY: u64 = 0;

/// What the owner of a pager decides.
pub trait Policy {
    /// Whether a client may see the pages of another.
    fn may_fork(&mut self, client: u64, from: u64) -> bool;

    /// A client has touched what it may not, or what there is no page for. Its thread stops.
    fn refused(&mut self, client: u64, report: &Report, error: Error);
}

/// A pager with its endpoint.
pub struct Server<P> {
    endpoint: Cap<Endpoint>,
    pager: Pager<Frames>,
    policy: P,
    /// The slot in which the next table arrives.
    offered: Option<CapAddress>,
    stopped: bool,
}

impl<P: Policy> Server<P> {
    /// A server that receives at `endpoint`.
    pub fn new(endpoint: Cap<Endpoint>, pager: Pager<Frames>, policy: P) -> Server<P> {
        Server { endpoint, pager, policy, offered: None, stopped: false }
    }

    /// Serves until it is told to stop, or nobody can reach it any more. Answers the pager as it is then.
    pub fn run(mut self) -> Pager<Frames> {
        let mut reply = None;
        loop {
            self.offer();
            let request = match reply.take() {
                Some(message) => self.endpoint.reply_receive(&message, Wait::FOREVER),
                None => self.endpoint.receive(Wait::FOREVER),
            };
            let Ok(request) = request else { break };
            let message = self.serve(&request);
            self.tidy(&request);
            if self.stopped {
                // Who asked may have given up.
                let _ = tench::sys::ipc::BOUND_REPLY.reply(&message);
                break;
            }
            reply = Some(message);
        }
        offer_slots(&[]);
        self.offered.take().into_iter().for_each(memory::free_slot);
        self.pager
    }

    /// Offers a slot for the next table. Without one, `Attach` is refused.
    fn offer(&mut self) {
        if self.offered.is_none() {
            self.offered = memory::take_slot().ok();
            offer_slots(self.offered.as_slice());
        }
    }

    /// Deletes what came along and was not kept. (What was kept has been taken out of `offered`.)
    fn tidy(&mut self, request: &Received) {
        if let (Some(slot), [arrived, ..]) = (self.offered, request.caps())
            && slot == *arrived
        {
            // It holds what arrived.
            let _ = OWN_SPACE.delete_at(slot);
            offer_slots(&[slot]);
        }
    }

    /// What is answered to a message.
    fn serve(&mut self, request: &Received) -> Message {
        let client = request.badge();
        if request.is_fault() {
            let [class, address, instruction, syndrome] = core::array::from_fn(|index| request.word(index));
            let report = Report { class, address, instruction, syndrome };
            return match self.pager.fault(client, &report) {
                Ok(()) => Message::new(answer::RESUME),
                Err(error) => {
                    self.policy.refused(client, &report, error);
                    Message::new(answer::STOP)
                }
            };
        }
        match self.request(client, request) {
            Ok(answer) => answer,
            Err(error) => Message::new(error as u64),
        }
    }

    fn request(&mut self, client: u64, request: &Received) -> Result<Message, Error> {
        let mut words = request.reader();
        let mut word = || words.word().ok_or(Error::BadRequest);
        match Label::from_code(request.label()).ok_or(Error::BadRequest)? {
            Label::Attach => self.attach(client, word()?, request).map(|()| Message::new(DONE)),
            Label::Detach => {
                let table = self.pager.detach(client, word()?)?;
                drop_table(table);
                Ok(Message::new(DONE))
            }
            Label::Fork => {
                let (address, from) = (word()?, word()?);
                if !self.policy.may_fork(client, from) {
                    return Err(Error::NotAllowed);
                }
                Ok(Message::with_words(DONE, &[self.pager.share(from, client, address)?]))
            }
            Label::Forget if client == AUTHORITY => {
                self.pager.forget(word()?).into_iter().for_each(drop_table);
                Ok(Message::new(DONE))
            }
            Label::Statistics => {
                let found = self.pager.statistics();
                let free = self.pager.free() as u64;
                let words = [found.fresh, found.copied, found.kept, found.joined, found.refused, free];
                Ok(Message::with_words(DONE, &words))
            }
            Label::Stop if client == AUTHORITY => {
                self.stopped = true;
                Ok(Message::new(DONE))
            }
            Label::Forget | Label::Stop => Err(Error::NotAllowed),
        }
    }

    /// Keeps the table that came along, if it is one.
    fn attach(&mut self, client: u64, address: u64, request: &Received) -> Result<(), Error> {
        let &[slot] = request.caps() else { return Err(Error::NoTable) };
        if OWN_SPACE.identify_at(slot).is_ok_and(|found| found.kind != Kind::PageTable) {
            return Err(Error::NoTable);
        }
        self.pager.attach(client, address, Cap::new(slot)).map_err(|(error, _)| error)?;
        self.offered = None;
        Ok(())
    }
}

/// Lets go of a client's table.
fn drop_table(table: Cap<PageTable>) {
    // If the client has ended, it is gone.
    let _ = table.delete();
    memory::free_slot(table.address());
}
