//! A channel between two threads of this core that sleep whenever there is nothing to do, and wake each other with
//! doorbells.
//!
//! A core receives its own doorbells as it receives those of others, so this is the cost of a round trip between two
//! otherwise idle cores: each side notifies, is interrupted and is woken. The excess of `sleep_1` is the monitors'
//! work.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::sync::atomic::{AtomicBool, Ordering};

use tench::abi::layout::slot;
use tench::memory;
use tench::sys::{Cap, Doorbell, InterruptControl, Notification, Trigger};
use tench::thread;
use tench_channel::{Calls, Frame, Idle, Incoming, Notifier, Side};

use super::channel::{LIMIT, LINES, ONE_LINE, WORDS, lines, mean, sent};
use super::{TOGETHER, by_number, problem};
use crate::support::figure;

/// Doorbell lines of the two threads.
const OWN_LINES: [u64; 2] = [4, 5];
/// This core.
const CORE: u64 = 0;
/// Words of the messages.
const LENGTHS: [usize; 4] = [1, ONE_LINE, 64, 512];
/// Operation that is replied to, and operation that ends the other thread.
const ECHO: u16 = 1;
const END: u16 = 2;

/// Listener of a thread's doorbell.
#[derive(Clone, Copy)]
struct Listener(Cap<Notification>);

impl Listener {
    fn new(line: u64) -> Result<Listener, String> {
        let slot = memory::take_slot().map_err(|_| "no slot")?;
        let taken = Cap::<InterruptControl>::new(slot::INTERRUPT_CONTROL).get(line, Trigger::Doorbell, slot);
        let line = taken.map_err(problem("taking a line"))?;
        let notification = memory::make::<Notification>(0).map_err(|_| "no notification")?.leak();
        line.bind(Some(notification)).map_err(problem("binding a line"))?;
        Ok(Listener(notification))
    }

    /// Waits until the doorbell is notified.
    fn listen(self) -> Result<(), String> {
        self.0.wait().map(drop).map_err(problem("waiting for a doorbell"))
    }
}

impl Idle for Listener {
    fn polls(&self) -> u32 {
        0
    }

    fn pause(&mut self) {}

    fn sleep(&mut self) {
        // The line is this thread's own and is not taken away.
        let _ = self.listen();
    }
}

/// Notifies the other thread.
#[derive(Clone, Copy)]
struct PeerDoorbell(Cap<Doorbell>);

impl PeerDoorbell {
    fn new(line: u64) -> Result<PeerDoorbell, String> {
        let slot = memory::take_slot().map_err(|_| "no slot")?;
        let made = Cap::<InterruptControl>::new(slot::INTERRUPT_CONTROL).doorbell(CORE, line, slot);
        made.map(PeerDoorbell).map_err(problem("making a doorbell"))
    }
}

impl Notifier for PeerDoorbell {
    fn notify(&self) {
        // A doorbell that was made can be notified.
        let _ = self.0.notify();
    }
}

type Channel = Box<Calls<Frame<'static>, PeerDoorbell>>;

/// One of the two threads.
#[derive(Clone, Copy)]
struct End {
    listener: Listener,
    other: PeerDoorbell,
}

/// Runs the experiment.
pub fn run() -> Result<(), String> {
    let [own, others] = OWN_LINES;
    let mine = End { listener: Listener::new(own)?, other: PeerDoorbell::new(others)? };
    let its = End { listener: Listener::new(others)?, other: PeerDoorbell::new(own)? };
    bare(mine, its)?;
    messages(mine, its)
}

/// Measures two threads that notify each other in turn.
fn bare(mine: End, its: End) -> Result<(), String> {
    static ENOUGH: AtomicBool = AtomicBool::new(false);
    let echo = thread::spawn(move || {
        while !ENOUGH.load(Ordering::Relaxed) {
            its.listener.listen()?;
            its.other.notify();
        }
        Ok::<(), String>(())
    });
    let round = || {
        mine.other.notify();
        mine.listener.listen()
    };
    figure("doorbell", mean(round)?);
    ENOUGH.store(true, Ordering::Relaxed);
    round()?;
    echo.join()
}

/// Measures round trips over a channel.
fn messages(mine: End, its: End) -> Result<(), String> {
    let frame: &'static [tench_channel::Line; LINES] = Box::leak(lines());
    let open = |side, doorbell| {
        let opened = Calls::open(&Frame::of(&frame[..]), side, doorbell, LIMIT);
        opened.map(Box::new).map_err(|_| String::from("the channel could not be opened"))
    };
    let (mut client, server) = (open(Side::First, mine.other)?, open(Side::Second, its.other)?);
    let serving = thread::spawn(move || serve(server, its.listener));
    for words in LENGTHS {
        figure(&format!("doorbell_{words}"), mean(|| trip(&mut client, mine.listener, words, 1))?);
    }
    for together in TOGETHER {
        by_number("doorbell_7", together, mean(|| trip(&mut client, mine.listener, ONE_LINE, together))? / together);
    }
    sent(client.event(END, &[]))?;
    serving.join()
}

/// Replies what it was sent, until it is told to end.
fn serve(mut channel: Channel, mut listener: Listener) -> Result<(), String> {
    loop {
        let (request, words) = match channel.receive().map_err(problem("the channel"))? {
            Some(Incoming::Request(request, words)) => (request, words.len()),
            Some(Incoming::Event(END, _)) => return Ok(()),
            Some(_) => continue,
            None => {
                channel.wait(false, &mut listener).map_err(problem("the channel"))?;
                continue;
            }
        };
        while !sent(channel.reply(request, &WORDS[..words]))? {
            channel.wait(true, &mut listener).map_err(problem("the channel"))?;
        }
    }
}

/// Makes requests of this many words, and awaits their replies.
fn trip(channel: &mut Channel, mut listener: Listener, words: usize, together: u64) -> Result<(), String> {
    let (mut asked, mut replied) = (0, 0);
    while replied < together {
        while asked < together && sent(channel.request(ECHO, &WORDS[..words]).map(drop))? {
            asked += 1;
        }
        match channel.receive().map_err(problem("the channel"))? {
            Some(Incoming::Reply(..)) => replied += 1,
            Some(_) => {}
            None => channel.wait(asked < together, &mut listener).map_err(problem("the channel"))?,
        }
    }
    Ok(())
}
