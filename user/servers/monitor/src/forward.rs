//! Receives what programs of this core ask servers that run on the first core only.
//!
//! A thread for each of those servers receives at its endpoint, and hands what arrives to the main thread, together with the reply object in
//! which whoever asked waits. So programs find the capabilities that they always find, and no thread waits for an answer.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tench::memory;
use tench::sync::Mutex;
use tench::thread;
use tench_monitor::message::{Forward, Outcome, Words, decode_answer};
use tench_monitor_client::Monitor;
use tench_names_client::Names;
use tench_names_client::protocol::MAX_NAME;
use tench_places::Places;
use tench_protocol::wire::Source;
use tench_protocol::{ArrayVec, DONE, RESTARTED, Rejection};
use tench_sys::{
    Cap, CapAddress, Endpoint, Error, Message, Notification, OWN_SPACE, Received, Reply, Rights, Wait, offer_slots,
};

/// Requests of programs that wait for their answers. The channel has room for more, which are the process server's.
const LIMIT: usize = 56;
/// Requests of the process server that wait: it gives up after a moment, and may ask again.
const OWN_LIMIT: u32 = 4;
/// Bytes of a thread's stack.
const STACK: usize = 16 * 1024;

/// A request that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    reply: Cap<Reply>,
    process: u64,
}

/// A request that has arrived.
pub struct Arrived {
    /// Who waits.
    pub waiting: Waiting,
    service: u64,
    label: u64,
    words: ArrayVec<u64, { tench_abi::message::MAX_WORDS }>,
}

impl Arrived {
    /// Its words, as another monitor understands them.
    pub fn encode(&self) -> Words {
        let process = self.waiting.process;
        Forward { service: self.service, process, label: self.label, words: &self.words }.encode()
    }
}

/// What the threads share with the main thread.
struct State {
    arrived: VecDeque<Arrived>,
    /// Whose the requests are that have not been answered.
    places: Places,
    /// How many of them are the process server's.
    own: u32,
    /// Reply objects in which nobody waits.
    spare: Vec<Cap<Reply>>,
}

/// Where requests arrive.
#[derive(Clone)]
pub struct Inbox {
    state: Arc<Mutex<State>>,
    /// Wakes the main thread.
    wake: Cap<Notification>,
}

impl Inbox {
    /// Nothing arrives yet.
    pub fn new(wake: Cap<Notification>) -> Inbox {
        let (arrived, places, spare) = (VecDeque::new(), Places::new(LIMIT), Vec::new());
        Inbox { state: Arc::new(Mutex::new(State { arrived, places, own: 0, spare })), wake }
    }

    /// Receives at an endpoint in the place of a server from now on.
    pub fn open(&self, service: u64, endpoint: Cap<Endpoint>) -> Result<(), memory::Error> {
        let (inbox, slots, reply) = (self.clone(), [memory::take_slot()?, memory::take_slot()?], self.take_reply()?);
        let builder = thread::Builder::new().stack_size(STACK).name("forward");
        builder.spawn(move || inbox.receive(service, endpoint, slots, reply))?.detach();
        Ok(())
    }

    /// The request that has waited longest, and has not been taken out.
    pub fn take(&self) -> Option<Arrived> {
        self.state.lock().arrived.pop_front()
    }

    /// Puts it back: it cannot be sent now.
    pub fn put_back(&self, arrived: Arrived) {
        self.state.lock().arrived.push_front(arrived);
    }

    /// Answers whoever waits with what another monitor says.
    pub fn answer(&self, waiting: Waiting, words: &[u64]) {
        let mut message = Message::new(0);
        match decode_answer(words) {
            Ok((Outcome::Answered, label, words)) => {
                message.restart(label);
                message.extend(words);
            }
            Ok((Outcome::Restarted, ..)) => message.restart(RESTARTED),
            Ok((outcome, ..)) => reject(&mut message, why(outcome)),
            Err(_) => reject(&mut message, Rejection::Unreachable),
        }
        self.finish(waiting, &message);
    }

    /// Refuses whoever waits, because the first core does not answer.
    pub fn refuse(&self, waiting: Waiting) {
        let mut message = Message::new(0);
        reject(&mut message, Rejection::Unreachable);
        self.finish(waiting, &message);
    }

    fn finish(&self, waiting: Waiting, message: &Message) {
        // Who asked may have gone.
        let _ = waiting.reply.reply(message);
        let mut state = self.state.lock();
        match waiting.process {
            0 => state.own -= 1,
            process => state.places.give_back(process),
        }
        state.spare.push(waiting.reply);
    }

    fn take_reply(&self) -> Result<Cap<Reply>, memory::Error> {
        let spare = self.state.lock().spare.pop();
        spare.map_or_else(|| memory::make::<Reply>(0).map(memory::Made::leak), Ok)
    }

    /// Receives for ever. The endpoint stays as long as the monitor.
    fn receive(&self, service: u64, endpoint: Cap<Endpoint>, slots: [CapAddress; 2], mut reply: Cap<Reply>) {
        let [slot, own] = slots;
        let mut received = Received::new();
        loop {
            offer_slots(&[slot]);
            match endpoint.receive_into(Wait::FOREVER.with_reply(reply), &mut received) {
                Ok(()) => {}
                Err(Error::Aborted) => return,
                Err(error) => panic!("receiving in the place of a server: {error}"),
            }
            if is_for_this(&received) {
                answer_here(&received, own, reply);
            } else if let Some(next) = self.arrives(service, &received, reply) {
                reply = next;
            }
            if !received.caps().is_empty() {
                // It is there, and this thread's own.
                let _ = OWN_SPACE.delete_at(slot);
            }
        }
    }

    /// Hands a request on, and answers with which reply object to receive the next; or refuses it.
    fn arrives(&self, service: u64, received: &Received, reply: Cap<Reply>) -> Option<Cap<Reply>> {
        let mut message = Message::new(0);
        if !received.caps().is_empty() {
            reject(&mut message, Rejection::OtherCore);
            let _ = reply.reply(&message);
            return None;
        }
        let process = received.badge();
        let next = self.take_reply().ok();
        if let Some(next) = next {
            let mut state = self.state.lock();
            if state.admit(process) {
                let words = received.words().iter().copied().collect();
                let waiting = Waiting { reply, process };
                state.arrived.push_back(Arrived { waiting, service, label: received.label(), words });
                drop(state);
                // It is there as long as this process.
                let _ = self.wake.signal();
                return Some(next);
            }
            state.spare.push(next);
        }
        reject(&mut message, Rejection::Busy);
        let _ = reply.reply(&message);
        None
    }
}

/// Whether somebody looks up the monitor of this core: that is nobody else's business.
fn is_for_this(received: &Received) -> bool {
    let kept = core::cell::Cell::new(0);
    let mut words = Source::new(received.words(), &[], &kept);
    let is_look_up = matches!(received.label(), Names::LOOK_UP | Names::WAIT_FOR) && received.caps().is_empty();
    is_look_up && words.text(MAX_NAME) == Some(Monitor::NAME) && words.is_done()
}

/// Answers with the monitor's own endpoint, with the number of the process that asks.
fn answer_here(received: &Received, slot: CapAddress, reply: Cap<Reply>) {
    let mut message = Message::new(DONE);
    let service = Cap::<Endpoint>::new(tench_abi::layout::slot::SERVICE);
    match service.mint_to(slot, Rights::WRITE | Rights::CALL | Rights::GRANT, received.badge()) {
        Ok(_) => drop(message.move_cap(slot)),
        Err(_) => reject(&mut message, Rejection::Busy),
    }
    // Who asked may have gone, or have no slot for it.
    let _ = reply.reply(&message);
    let _ = OWN_SPACE.delete_at(slot);
}

impl State {
    /// Takes a place for a request, if there is one for whoever asks.
    fn admit(&mut self, process: u64) -> bool {
        let may = if process == 0 { self.own < OWN_LIMIT } else { self.places.may_take(process) };
        match (may, process) {
            (false, _) => {}
            (true, 0) => self.own += 1,
            (true, _) => self.places.take(process),
        }
        may
    }
}

fn reject(message: &mut Message, why: Rejection) {
    let _ = why.write(message);
}

/// What whoever asked is told.
const fn why(outcome: Outcome) -> Rejection {
    match outcome {
        Outcome::Busy => Rejection::Busy,
        Outcome::Capabilities => Rejection::OtherCore,
        _ => Rejection::Unreachable,
    }
}
