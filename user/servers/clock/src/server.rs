//! Requests carried out, and delays that have passed.

use tench::memory;
use tench_abi::layout::slot;
use tench_clock::queue::{GROWTH, Queue};
use tench_clock::time::{nanoseconds, next_tick};
use tench_clock_client::Clock;
use tench_clock_client::protocol::{Error, Event, Label};
use tench_names_client::{Failure, Names};
use tench_protocol::{DONE, Failure as AnyFailure, Replies};
use tench_sys::{Cap, Endpoint, Error as Refusal, Instant, Message, OWN_SPACE, Received, Reply, Rights, Wait};

/// Where requests arrive.
const SERVICE: Cap<Endpoint> = Cap::new(slot::SERVICE);
/// The badge of those who may say that a process has ended.
const AUTHORITY: u64 = 0;
/// The badge of everybody who found the server by its name.
const ANYBODY: u64 = u64::MAX;
/// Threads that can wait.
const MAX_WAITERS: usize = 1024;
/// Spare reply objects that are kept.
const MAX_SPARE: usize = 64;

/// The server's state.
pub struct Server {
    queue: Queue<Cap<Reply>>,
    replies: Replies<MAX_SPARE>,
    frequency: u64,
}

impl Server {
    /// Registers the server.
    pub fn new() -> Result<Server, Failure> {
        memory::serve_without_faults(2 * GROWTH).map_err(|_| AnyFailure::Lost(Refusal::OutOfMemory))?;
        let slot = memory::take_slot().map_err(|_| AnyFailure::Lost(Refusal::NoSuchSlot))?;
        let public = SERVICE.mint_to(slot, Rights::WRITE | Rights::CALL, ANYBODY).map_err(AnyFailure::Lost)?;
        Names::STANDARD.register(Clock::NAME, public)?;
        let frequency = tench::time::frequency();
        Ok(Server { queue: Queue::new(MAX_WAITERS), replies: Replies::new(Cap::new(slot::REPLY)), frequency })
    }

    /// Answers requests for ever.
    pub fn serve(&mut self) {
        let mut answer = None;
        loop {
            let wait = match self.queue.next_deadline() {
                Some(deadline) => Wait::until(Instant::from_ticks(deadline)),
                None => Wait::FOREVER,
            };
            let wait = self.replies.wait(wait);
            let received = match &answer {
                Some(answer) => SERVICE.reply_receive(answer, wait),
                None => SERVICE.receive(wait),
            };
            // An error is the earliest deadline: whose time has come is answered below.
            answer = received.ok().and_then(|request| self.answer(&request));
            self.expire();
        }
    }

    /// Answers those whose time has come.
    fn expire(&mut self) {
        if self.queue.next_deadline().is_none() {
            return;
        }
        let now = Instant::now().ticks();
        while let Some(reply) = self.queue.pop_expired(now) {
            // Who gave up meanwhile is answered nothing.
            let _ = reply.reply(&Message::with_words(DONE, &[now]));
            self.release(reply);
        }
    }

    /// The answer to a request, if it is answered now.
    fn answer(&mut self, request: &Received) -> Option<Message> {
        match self.carry_out(request) {
            Ok(answer) => answer,
            Err(error) => Some(Message::new(error as u64)),
        }
    }

    fn carry_out(&mut self, request: &Received) -> Result<Option<Message>, Error> {
        let label = Label::from_code(request.label()).filter(|_| !request.is_fault()).ok_or(Error::BadRequest)?;
        let now = Instant::now().ticks();
        let argument = || request.words().first().copied().ok_or(Error::BadRequest);
        let deadline = match label {
            Label::Time => {
                let words = [now, self.frequency, nanoseconds(now, self.frequency)];
                return Ok(Some(Message::with_words(DONE, &words)));
            }
            Label::ProcessEnded => return self.process_ended(request.badge(), argument()?).map(Some),
            Label::Delay => now.saturating_add(argument()?),
            Label::DelayUntil => argument()?,
            Label::AwaitEvent => match Event::from_code(argument()?).ok_or(Error::NoSuchEvent)? {
                Event::Tick => next_tick(now, self.frequency),
            },
        };
        if deadline <= now {
            return Ok(Some(Message::with_words(DONE, &[now])));
        }
        // As much again stays for those who end.
        memory::reserve_heap(2 * GROWTH).map_err(|_| Error::Full)?;
        let reply = self.replies.keep(make_reply).map_err(|_| Error::Full)?;
        match self.queue.push(deadline, request.badge(), reply) {
            Ok(()) => Ok(None),
            Err(reply) => {
                if let Some(surplus) = self.replies.make_current(reply) {
                    discard(surplus);
                }
                Err(Error::Full)
            }
        }
    }

    fn process_ended(&mut self, caller: u64, process: u64) -> Result<Message, Error> {
        if caller != AUTHORITY {
            return Err(Error::NotAllowed);
        }
        for reply in self.queue.process_ended(process) {
            self.release(reply);
        }
        Ok(Message::new(DONE))
    }

    /// A reply object is done with.
    fn release(&mut self, reply: Cap<Reply>) {
        if let Some(surplus) = self.replies.release(reply) {
            discard(surplus);
        }
    }
}

/// Deletes a reply object that is not needed any more.
fn discard(reply: Cap<Reply>) {
    if OWN_SPACE.delete_at(reply.address()).is_ok() {
        memory::free_slot(reply.address());
    }
}

/// A new reply object.
fn make_reply() -> Result<Cap<Reply>, Refusal> {
    memory::make::<Reply>(0).map(|made| made.leak()).map_err(|_| Refusal::OutOfMemory)
}
