//! Two threads of the host, each with a side, that make requests, reply, poll and sleep.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use tench_channel::{Calls, Frame, Idle, Incoming, LONGEST, Line, Notifier, PAYLOAD, Refused, Request, SMALLEST, Side};

/// Number of requests of each side.
const EACH: u64 = 150_000;
/// Duration longer than any sleep, unless a notification was lost.
const FOREVER: Duration = Duration::from_secs(20);

/// A notification: a doorbell signal is remembered.
#[derive(Clone, Default)]
struct Notification(Arc<(Mutex<bool>, Condvar, AtomicU64)>);

impl Notifier for Notification {
    fn notify(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_one();
        self.0.2.fetch_add(1, Relaxed);
    }
}

struct Sleeper {
    notification: Notification,
    polls: u32,
    slept: u64,
}

impl Idle for Sleeper {
    fn polls(&self) -> u32 {
        self.polls
    }

    fn pause(&mut self) {
        std::hint::spin_loop();
    }

    fn sleep(&mut self) {
        self.slept += 1;
        let guard = self.notification.0.0.lock().unwrap();
        let (mut guard, timeout) =
            self.notification.0.1.wait_timeout_while(guard, FOREVER, |notified| !*notified).unwrap();
        assert!(!timeout.timed_out(), "asleep for ever");
        *guard = false;
    }
}

/// Returns the length of a message, whose words are determined by its number; now and then it is long.
fn length(number: u64) -> usize {
    if number.is_multiple_of(97) { (number * 31) as usize % (LONGEST * PAYLOAD + 1) } else { number as usize % 8 }
}

struct Party {
    calls: Box<Calls<Frame<'static>, Notification>>,
    idle: Sleeper,
    /// The number of each request in flight.
    asked: [u64; 64],
    owed: Vec<(Request, u64)>,
    next: u64,
    replied: u64,
    served: u64,
}

impl Party {
    /// Sends all that can be sent. Returns whether there is more to send.
    fn send(&mut self) -> bool {
        // The youngest first, so the order is not that of the requests.
        while let Some(&(request, number)) = self.owed.last() {
            let words = vec![!number; length(number).max(1)];
            match self.calls.reply(request, &words) {
                Ok(()) => self.owed.pop(),
                Err(Refused::Full) => return true,
                Err(refused) => panic!("{refused}"),
            };
        }
        while self.next < EACH {
            let words = vec![self.next; length(self.next).max(1)];
            match self.calls.request(3, &words) {
                Ok(request) => self.asked[request.index()] = self.next,
                Err(Refused::Full) => return true,
                Err(Refused::TooMany) => return false,
                Err(refused) => panic!("{refused}"),
            }
            self.next += 1;
        }
        false
    }

    fn receive(&mut self) -> bool {
        match self.calls.receive().unwrap() {
            None => return false,
            Some(Incoming::Request(request, words)) => {
                let number = words[0];
                assert!(words.len() == length(number).max(1) && words.iter().all(|&word| word == number));
                self.owed.push((request, number));
                self.served += 1;
            }
            Some(Incoming::Reply(request, words)) => {
                let number = self.asked[request.index()];
                assert!(words.len() == length(number).max(1) && words.iter().all(|&word| word == !number));
                self.replied += 1;
            }
            Some(Incoming::Event(..)) => panic!("nobody sent it"),
        }
        true
    }

    fn run(mut self) -> u64 {
        loop {
            let more = self.send();
            let mut received = false;
            while self.receive() {
                received = true;
            }
            let done = self.replied == EACH && self.served == EACH && self.owed.is_empty() && !more;
            if done && !self.calls.is_partial() {
                return self.idle.slept;
            }
            if !received {
                self.calls.wait(more, &mut self.idle).unwrap();
            }
        }
    }
}

/// Runs both sides, which poll the given number of times before they sleep. Returns how often they slept, and how often
/// they were notified.
fn hammer(polls: [u32; 2]) -> [(u64, u64); 2] {
    let lines: Vec<Line> = (0..SMALLEST / size_of::<Line>()).map(|_| Line::default()).collect();
    let frame = Frame::of(Box::leak(lines.into_boxed_slice()));
    let notifications = [Notification::default(), Notification::default()];
    let handles = [(Side::First, 0), (Side::Second, 1)].map(|(side, own)| {
        let notification = notifications[own].clone();
        let calls = Calls::open(&frame, side, notifications[1 - own].clone(), 48).unwrap();
        let idle = Sleeper { notification, polls: polls[own], slept: 0 };
        let (calls, asked) = (Box::new(calls), [0; 64]);
        let party = Party { calls, idle, asked, owed: Vec::new(), next: 0, replied: 0, served: 0 };
        thread::spawn(move || party.run())
    });
    let slept = handles.map(|handle| handle.join().unwrap());
    let notified = notifications.map(|notification| notification.0.2.load(Relaxed));
    [(slept[0], notified[0]), (slept[1], notified[1])]
}

#[test]
fn threads_that_sleep_at_once() {
    for (slept, notified) in hammer([0, 0]) {
        // For a line and for room, once each.
        assert!(notified <= 2 * slept + 2, "slept {slept} times, notified {notified} times");
    }
}

#[test]
fn threads_that_poll() {
    hammer([1000, 1000]);
}

#[test]
fn one_that_polls_and_one_that_sleeps() {
    hammer([0, 1000]);
}
