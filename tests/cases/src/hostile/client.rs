//! A hostile client of one server. It goes on until it is killed.

use tench::abi::layout::slot;
use tench::clock::Clock;
use tench::console::protocol::Console;
use tench::files::Files;
use tench::mem::Mem;
use tench::names::Names;
use tench::procs::Procs;
use tench::reserve::Reserve;
use tench::sys::{Cap, CapAddress, Endpoint, Instant, Message, Wait, offer_slots};
use tench::{memory, process, thread};
use tench_pager::protocol::PagerClient;
use tench_protocol::label;
use tench_random::Random;

use super::{pager, shares, streams};
use crate::child::{self, Arguments};

/// Threads that attack at the same time.
const THREADS: u64 = 3;
/// Number of method numbers from which one is chosen.
const METHODS: u64 = 28;
/// Slot in which an unwanted capability may arrive.
const REFUSE: CapAddress = CapAddress(child::OBJECTS + 60);
/// Maximum number of ticks after which the client gives a request up: 20 µs, in which most are replied to and some are
/// not.
const PATIENCE: u64 = 1250;

/// Server that is attacked.
#[derive(Clone, Copy)]
struct Victim {
    name: &'static str,
    server: Cap<Endpoint>,
    interface: u16,
    version: u16,
    /// Request for one more of the server's limited resource.
    greed: fn(&Victim, &mut Random, u64) -> Message,
}

impl Victim {
    /// Finds the server of this name.
    fn find(name: &str) -> Option<Victim> {
        let standing =
            |name, slot, interface, version, greed| Victim { name, server: Cap::new(slot), interface, version, greed };
        Some(match name {
            "mem" => standing("mem", slot::MEM, Mem::<()>::INTERFACE, Mem::<()>::VERSION, blocks),
            "procs" => standing("procs", slot::PROCS, Procs::<()>::INTERFACE, Procs::<()>::VERSION, processes),
            "names" => standing("names", slot::NAMES, Names::<()>::INTERFACE, Names::<()>::VERSION, names),
            "console" => standing("console", slot::CONSOLE, Console::<()>::INTERFACE, Console::<()>::VERSION, texts),
            "clock" => {
                let slot = memory::take_slot().ok()?;
                Names::STANDARD.look_up(Clock::NAME, slot).ok()?;
                standing("clock", slot, Clock::<()>::INTERFACE, Clock::<()>::VERSION, waits)
            }
            "pager" => {
                let (interface, version) = (PagerClient::<()>::INTERFACE, PagerClient::<()>::VERSION);
                standing("pager", slot::EXTRA, interface, version, |_, random, _| pager::request(random))
            }
            "reserve" => {
                let slot = memory::take_slot().ok()?;
                Names::STANDARD.look_up(Reserve::NAME, slot).ok()?;
                let (interface, version) = (Reserve::<()>::INTERFACE, Reserve::<()>::VERSION);
                standing("reserve", slot, interface, version, |_, random, _| shares::request(random))
            }
            "files" => standing("files", slot::FILES, Files::<()>::INTERFACE, Files::<()>::VERSION, pipes),
            _ => return None,
        })
    }

    /// Returns a message to one of the server's methods.
    fn message(&self, method: u16) -> Message {
        Message::new(label(self.interface, self.version, method))
    }

    /// Returns a random message, mostly to an existing method.
    fn nonsense(&self, random: &mut Random) -> Message {
        let mut label = label(self.interface, self.version, 1 + random.below(METHODS) as u16);
        // Requests that end this process or fill the screen are left to other attacks.
        let is_end = self.name == "procs" && matches!(label & 0xffff, 7 | 20) && random.below(2000) != 0;
        if is_end || self.name == "console" && label & 0xffff == 1 {
            label += 1;
        }
        if random.below(16) == 0 {
            label ^= 1 << random.below(48);
        }
        let mut message = Message::new(label);
        match random.below(8) {
            0 => _ = message.push_text(&[b'a'; 300][..random.below(300) as usize]),
            1 => _ = message.push_text(&[0xff, 0xc0, 0x80, 0]),
            shape => {
                for _ in 0..random.below(if shape < 4 { 64 } else { 6 }) {
                    message.push(random.argument());
                }
            }
        }
        for _ in 0..random.below(8).saturating_sub(3).min(4) {
            // A capability of any kind, the server's own, or none at all.
            message.copy_cap(CapAddress(if random.below(8) == 0 {
                1 + random.below(15) as u32
            } else {
                random.object() as u32
            }));
        }
        message
    }

    /// Makes a random attack.
    fn attack(&self, random: &mut Random, step: u64) {
        let is_nonsense = random.below(3) == 0;
        let (server, message) = if is_nonsense || self.name != "files" {
            offer_slots(if random.below(2) == 0 { &[REFUSE] } else { &[] });
            (self.server, if is_nonsense { self.nonsense(random) } else { (self.greed)(self, random, step) })
        } else {
            let (server, message, offered) = streams::request(self.server, random);
            offer_slots(&offered);
            (server, message)
        };
        let end = Wait::until(Instant::now().after(random.below(PATIENCE)));
        // Any result is acceptable.
        let _ = match random.below(12) {
            // No thread waits for the reply.
            0 => server.try_send(&message),
            1 => server.send(&message, end),
            _ => server.call_with(&message, end).map(drop),
        };
    }

    /// Attacks for ever.
    fn go_on(&self, seed: u64) -> ! {
        let mut random = Random::new(seed);
        for step in 0.. {
            self.attack(&mut random, seed << 32 | step);
        }
        unreachable!("the numbers last longer than the machine")
    }
}

/// Requests blocks, mostly of the smallest size. Their capabilities arrive nowhere; the memory belongs to this process
/// nevertheless.
fn blocks(victim: &Victim, random: &mut Random, _: u64) -> Message {
    let mut message = victim.message(1);
    message.extend(&[if random.below(16) == 0 { random.below(50) } else { 12 }, 0, 0, 0]);
    message
}

/// Prepares processes that are never started, gives them arguments, and waits for processes that do not end.
fn processes(victim: &Victim, random: &mut Random, _: u64) -> Message {
    let own = process::id();
    match random.below(4) {
        0 => {
            let mut message = victim.message(9);
            message.push(1 + random.below(own));
            message
        }
        1 => {
            let mut message = victim.message(2);
            message.extend(&[own + random.below(600), random.below(2)]).push_text(&[b'x'; 200]);
            message
        }
        _ => {
            let mut message = victim.message(1);
            message.push_text(b"hello");
            message
        }
    }
}

/// Registers names, and waits for names that never come.
fn names(victim: &Victim, random: &mut Random, step: u64) -> Message {
    let waits = random.below(2) == 0;
    let mut name = [b'/'; 24];
    for (index, byte) in name.iter_mut().enumerate().take(16) {
        *byte = b'a' + (step >> (4 * index) & 15) as u8;
    }
    let mut message = victim.message(if waits { 3 } else { 1 });
    message.push_text(&name);
    if !waits {
        message.copy_cap(ENDPOINT);
    }
    message
}

/// An endpoint of its own.
const ENDPOINT: CapAddress = CapAddress(child::OBJECTS + 61);

/// Makes waits that last for ever.
fn waits(victim: &Victim, random: &mut Random, _: u64) -> Message {
    let mut message = victim.message(2 + random.below(2) as u16);
    message.push(u64::MAX - random.below(1 << 40));
    message
}

/// Reads without end, waits for the line, and sometimes writes a little text.
fn texts(victim: &Victim, random: &mut Random, _: u64) -> Message {
    let mut message = victim.message(match random.below(400) {
        0 => 1,
        1..150 => 8,
        _ => 2,
    });
    match message.label() & 0xffff {
        1 => _ = message.push_text(b"~"),
        2 => _ = message.push(1 + random.below(400)),
        _ => {}
    }
    message
}

/// Makes pipes whose ends no process holds; the other requests to the file server are in [`streams`].
fn pipes(victim: &Victim, _: &mut Random, _: u64) -> Message {
    victim.message(1)
}

/// Runs such a client of the server of this name.
pub fn run(name: &str, seed: u64) -> Option<i32> {
    // Takes these slots away from the library.
    while memory::take_slot().ok()?.0 < streams::LAST_SLOT.0 {}
    let victim = Victim::find(name)?;
    child::furnish();
    memory::make::<Endpoint>(0).ok()?.leak().copy_to(ENDPOINT).ok()?;
    // The slot of an endpoint that does not exist any more.
    let _ = Cap::<Endpoint>::new(ENDPOINT).copy_to(CapAddress(child::OBJECTS + 62)).and_then(Cap::delete);
    let others: [_; THREADS as usize] = core::array::from_fn(|number| {
        let seed = seed ^ (number as u64 + 1) << 20;
        let touches = victim.name == "pager" && number == 0;
        thread::spawn(
            move || if touches { pager::touch(victim.server, seed).unwrap_or(()) } else { victim.go_on(seed) },
        )
    });
    let mut random = Random::new(seed);
    for step in 0.. {
        // A thread that is suspended does not read its reply; one that goes on has its reply, or never gets it.
        if let Some(other) = others[random.below(THREADS) as usize].thread() {
            let _ = if random.below(3) == 0 { other.suspend() } else { other.resume() };
        }
        for _ in 0..8 {
            victim.attack(&mut random, seed << 32 | step);
        }
    }
    Some(0)
}
