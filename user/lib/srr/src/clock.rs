//! The clock server: time, delay, delay until.
//!
//! As in R4, there are two tasks. The *server* replies to requests and keeps the tasks that wait for a time. The
//! *notifier*, which has a higher priority, awaits the clock's event and tells the server. It awaits the event only
//! while some task waits for a time; otherwise the server leaves it waiting for its reply. So a session with a clock
//! server still ends when no task can run and none waits for a time, and no work is done every 10 milliseconds for
//! nobody.
//!
//! A request has three bytes that distinguish it from messages meant for others, one with the kind of request, and
//! eight with a number. A reply has the same three bytes, one with the outcome, and the time in ticks.

use alloc::collections::BTreeMap;

use crate::{CLOCK_EVENT, Error, Tid, await_event, create, receive, register_as, reply, send, ticks};

/// First bytes of requests and replies.
const MAGIC: [u8; 3] = *b"clk";
/// Size of a request, and of a reply, in bytes.
const SIZE: usize = 12;

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Question {
    Time = 0,
    Delay = 1,
    DelayUntil = 2,
    /// From the notifier: the event has come.
    Tick = 3,
    /// From the notifier: another task waits for the event.
    Taken = 4,
    Shutdown = 5,
}

impl Question {
    /// Returns the request with this number.
    const fn from_code(code: u8) -> Option<Question> {
        match code {
            0 => Some(Question::Time),
            1 => Some(Question::Delay),
            2 => Some(Question::DelayUntil),
            3 => Some(Question::Tick),
            4 => Some(Question::Taken),
            5 => Some(Question::Shutdown),
            _ => None,
        }
    }
}

/// Returns an encoded request or reply.
fn pack(code: u8, number: u64) -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    bytes[..3].copy_from_slice(&MAGIC);
    bytes[3] = code;
    bytes[4..].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// Returns the arguments of [`pack`], if it made these bytes.
fn unpack(bytes: &[u8]) -> Option<(u8, u64)> {
    let [a, b, c, code, number @ ..] = bytes else { return None };
    let number = u64::from_le_bytes(number.try_into().ok()?);
    ([*a, *b, *c] == MAGIC).then_some((*code, number))
}

/// Outcome bytes of a reply.
const DONE: u8 = 0;
const NEGATIVE: u8 = 1;
const TAKEN: u8 = 2;
/// To the notifier: end the task.
const END: u8 = 3;

/// Tasks that wait for times, in the order of the times, and of arrival where these are equal.
#[derive(Debug, Default)]
struct Waiting {
    waiters: BTreeMap<(u64, u64), Tid>,
    arrivals: u64,
}

impl Waiting {
    fn push(&mut self, time: u64, tid: Tid) {
        self.arrivals += 1;
        self.waiters.insert((time, self.arrivals), tid);
    }

    /// Removes the first task whose time has come.
    fn pop(&mut self, now: u64) -> Option<Tid> {
        let first = self.waiters.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
    }
}

/// Replies to a task. The reply is dropped if the task has ended or does not wait.
fn reply_with(tid: Tid, outcome: u8) {
    let _ = reply(tid, &pack(outcome, ticks()));
}

/// Runs the server's task.
fn serve(name: Option<&str>) {
    if let Some(name) = name {
        // Without a name server, or room in it, the server cannot be found by name, but it can be used by its
        // identifier.
        let _ = register_as(name);
    }
    let mut waiting = Waiting::default();
    // The notifier, while it waits until some task waits for a time.
    let mut resting = None;
    loop {
        let mut message = [0; SIZE];
        let (sender, length) = receive(&mut message);
        let Some((code, number)) = unpack(&message[..length]) else {
            // A sender of another message has mistaken the server for another.
            let _ = reply(sender, b"");
            continue;
        };
        match Question::from_code(code) {
            Some(Question::Time) => reply_with(sender, DONE),
            Some(Question::Delay | Question::DelayUntil) if (number as i64) < 0 => reply_with(sender, NEGATIVE),
            Some(Question::Delay) => waiting.push(ticks() + number, sender),
            Some(Question::DelayUntil) => waiting.push(number, sender),
            Some(Question::Tick) => resting = Some(sender),
            Some(Question::Taken) => {
                resting = Some(sender);
                while let Some(tid) = waiting.pop(u64::MAX) {
                    reply_with(tid, TAKEN);
                }
            }
            Some(Question::Shutdown) => {
                while let Some(tid) = waiting.pop(u64::MAX) {
                    reply_with(tid, DONE);
                }
                resting.into_iter().for_each(|notifier| reply_with(notifier, END));
                reply_with(sender, DONE);
                return;
            }
            None => _ = reply(sender, b""),
        }
        while let Some(tid) = waiting.pop(ticks()) {
            reply_with(tid, DONE);
        }
        if !waiting.waiters.is_empty()
            && let Some(notifier) = resting.take()
        {
            reply_with(notifier, DONE);
        }
    }
}

/// Runs the notifier's task.
fn notify(server: Tid) {
    let mut question = Question::Tick;
    loop {
        let mut message = [0; SIZE];
        let sent = send(server, &pack(question as u8, 0), &mut message);
        match sent.ok().and_then(|length| unpack(&message[..length])) {
            Some((DONE, _)) => {}
            // The server has ended.
            _ => return,
        }
        question = if await_event(CLOCK_EVENT).is_ok() { Question::Tick } else { Question::Taken };
    }
}

/// Creates a clock server with this priority, and its notifier with the next higher one. The server registers `name`,
/// if any, with the name server. Returns the server's identifier.
/// Errors: those of [`create`].
pub fn start(priority: i32, name: Option<&'static str>) -> Result<Tid, Error> {
    let server = create(priority, move || serve(name))?;
    match create(priority.saturating_add(1), move || notify(server)) {
        Ok(_) => Ok(server),
        Err(error) => {
            let _ = shutdown(server);
            Err(error)
        }
    }
}

/// Makes a request to a clock server. Returns the time.
fn ask(server: Tid, question: Question, number: u64) -> Result<u64, Error> {
    let mut message = [0; SIZE];
    let length = send(server, &pack(question as u8, number), &mut message).map_err(|_| Error::NoClockServer)?;
    match unpack(&message[..length]) {
        Some((DONE, time)) => Ok(time),
        Some((NEGATIVE, _)) => Err(Error::NegativeDelay),
        Some((TAKEN, _)) => Err(Error::EventTaken),
        _ => Err(Error::NoClockServer),
    }
}

/// Returns the session's time in ticks. R4's `Time`.
/// Errors: `NoClockServer` (-1).
pub fn time(server: Tid) -> Result<u64, Error> {
    ask(server, Question::Time, 0)
}

/// Waits for `ticks` ticks, of which the first may be nearly over. Returns the time. R4's `Delay`.
/// Errors: `NoClockServer` (-1), `NegativeDelay` (-2), `EventTaken` (-2, another task awaits the clock's event itself).
pub fn delay(server: Tid, ticks: i32) -> Result<u64, Error> {
    ask(server, Question::Delay, i64::from(ticks) as u64)
}

/// Waits until a time in ticks; a time in the past does not wait. Returns the time. R4's `DelayUntil`.
/// Errors: those of [`delay`].
pub fn delay_until(server: Tid, time: i32) -> Result<u64, Error> {
    ask(server, Question::DelayUntil, i64::from(time) as u64)
}

/// Ends a clock server. Tasks that wait get their replies at once.
/// Errors: `NoClockServer`.
pub fn shutdown(server: Tid) -> Result<(), Error> {
    ask(server, Question::Shutdown, 0).map(|_| ())
}
