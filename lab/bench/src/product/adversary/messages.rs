//! Workloads of the longest messages, and of as many waiting senders as there can be; of faults, which are messages
//! too; and of the floating-point unit.

use tench::abi::fault::{Class, reply};
use tench::abi::message::MAX_WORDS;
use tench::abi::{Operation, Tag};
use tench::sys::{
    Cap, CapAddress, Endpoint, Error, Frame, Instant, Kind, MapFlags, Message, OWN_CSPACE, PageTable, Placement, Reply,
    SchedulingContext, Thread, Untyped, Wait,
};

use super::{Arena, HIGH, LOW};
use crate::bare_threads::{BareThread, Code, Home};

/// The longest message: 64 words and four capabilities.
const LONGEST: u64 = Tag::new(9, MAX_WORDS).with_caps(4).0;
/// Mark in an IPC buffer for a capability that is moved, not copied.
const MOVE: u32 = tench::abi::message::IpcBuffer::MOVE;
/// Number of threads that wait at once.
const CROWD: usize = 1000;

/// Attachments: four capabilities of the most expensive kinds, and four slots to receive them, from which they can be
/// moved back.
struct Attachments {
    send: [u32; 4],
    back: [u32; 4],
}

impl Arena {
    /// Makes capabilities to mappings of whole tables, and slots for them.
    fn attachments(&mut self) -> Result<Attachments, Error> {
        let mut attachments = Attachments { send: [0; 4], back: [0; 4] };
        let frame = self.make::<Frame>(21)?;
        for i in 0..4 {
            let (table, slot) = (self.make::<PageTable>(3)?, self.slot());
            frame.map(table, 0, 512, 0, MapFlags::READ, slot)?;
            attachments.send[i] = slot.0;
            attachments.back[i] = self.slot().0;
        }
        Ok(attachments)
    }
}

/// Returns the four slots, marked to be moved.
fn moved(slots: [u32; 4]) -> [u32; 4] {
    slots.map(|slot| slot | MOVE)
}

/// Makes a server and a caller with IPC buffers, and their endpoint.
fn pair(arena: &mut Arena) -> Result<(BareThread, BareThread, Cap<Endpoint>), Error> {
    let server = arena.correspondent(HIGH + 1, 0)?;
    let caller = arena.correspondent(HIGH, 1)?;
    Ok((server, caller, arena.make::<Endpoint>(0)?))
}

/// Lets a waiting server be called; it replies without receiving.
pub fn waiting(arena: &mut Arena) -> Result<(), Error> {
    let (server, caller, endpoint) = pair(arena)?;
    let Attachments { send, back } = arena.attachments()?;
    let at = u64::from(endpoint.address().0);
    for _ in 0..4 {
        server.call(Operation::Receive, &[at, 0])?;
        arena.write_ipc_buffer(0, [0; 4], back);
        arena.write_ipc_buffer(1, moved(send), [0; 4]);
        caller.call(Operation::Call, &[at, LONGEST])?;
        arena.write_ipc_buffer(0, moved(back), [0; 4]);
        arena.write_ipc_buffer(1, [0; 4], send);
        server.call(Operation::ReplyReceive, &[at, LONGEST])?;
        server.thread.suspend()?;
        server.call(Operation::Receive, &[at, 0])?;
        arena.write_ipc_buffer(0, [0; 4], back);
        arena.write_ipc_buffer(1, moved(send), [0; 4]);
        caller.call(Operation::Send, &[at, LONGEST])?;
        (0..4).try_for_each(|i| Cap::<Frame>::new(CapAddress(back[i])).move_to(CapAddress(send[i])).map(drop))?;
    }
    Ok(())
}

/// Lets the server receive from a waiting caller.
pub fn queued(arena: &mut Arena) -> Result<(), Error> {
    let (server, caller, endpoint) = pair(arena)?;
    let Attachments { send, back } = arena.attachments()?;
    let at = u64::from(endpoint.address().0);
    let soon = Instant::now().after(1 << 40).ticks();
    for deadline in [0, Tag::DEADLINE] {
        let mut arguments = [0; 13];
        (arguments[0], arguments[1], arguments[12]) = (at, LONGEST | deadline, soon);
        caller.call(Operation::Call, &arguments)?;
        arena.write_ipc_buffer(0, [0; 4], back);
        arena.write_ipc_buffer(1, moved(send), [0; 4]);
        server.call(Operation::Receive, &[at, 0])?;
        arena.write_ipc_buffer(0, moved(back), [0; 4]);
        arena.write_ipc_buffer(1, [0; 4], send);
        server.call(Operation::Reply, &[0, LONGEST])?;
    }
    Ok(())
}

/// Lets the server reply to one caller and receive the message of the next: both as long as can be, in one call.
pub fn replies(arena: &mut Arena) -> Result<(), Error> {
    let (server, caller, endpoint) = pair(arena)?;
    let (first, second) = (arena.attachments()?, arena.attachments()?);
    let other = arena.correspondent(HIGH, 2)?;
    let at = u64::from(endpoint.address().0);
    server.call(Operation::Receive, &[at, 0])?;
    caller.call(Operation::Call, &[at, 0])?;
    let later = Instant::now().after(1 << 40).ticks();
    for round in 0..8 {
        let (asks, replied, buffer) = if round % 2 == 0 { (other, caller, 1) } else { (caller, other, 2) };
        let asks_buffer = 3 - buffer;
        let mut arguments = [0; 13];
        (arguments[0], arguments[1], arguments[12]) = (at, LONGEST | Tag::DEADLINE, later);
        asks.call(Operation::Call, &arguments)?;
        arena.write_ipc_buffer(buffer, [0; 4], first.back);
        arena.write_ipc_buffer(asks_buffer, moved(second.send), [0; 4]);
        // The slots for what arrives are those of what was sent: they are empty by then.
        arena.write_ipc_buffer(0, moved(first.send), second.back);
        server.call(Operation::ReplyReceive, &[at, LONGEST])?;
        let _ = replied.thread.query()?;
        for i in 0..4 {
            for (from, to) in [(first.back[i], first.send[i]), (second.back[i], second.send[i])] {
                Cap::<Frame>::new(CapAddress(from)).move_to(CapAddress(to))?;
            }
        }
    }
    Ok(())
}

/// Takes pages out of the middle of runs, among a hundred thousand objects: by messages that move four of them, both
/// ways at once, and by deleting, moving and copying single ones.
pub fn runs(arena: &mut Arena) -> Result<(), Error> {
    const PAGES: u32 = 64;
    let cspaces = arena.cspaces()?;
    arena.fill(cspaces, Kind::Notification, 0)?;
    let (server, caller, endpoint) = pair(arena)?;
    let memory = arena.make::<Untyped>(20)?;
    let (first, back) = (arena.slots(PAGES), [(); 4].map(|()| arena.slot().0));
    let at = u64::from(endpoint.address().0);
    let page = |i: u32| first.0 + i;
    server.call(Operation::Receive, &[at, 0])?;
    for round in 0..8 {
        memory.retype_many(Kind::Frame, 12, u64::from(PAGES), Placement::Watermark, OWN_CSPACE, first)?;
        let from = |i: u32| [2, 5, 7, 11].map(|next| page(16 * i + next));
        arena.write_ipc_buffer(0, [0; 4], back);
        arena.write_ipc_buffer(1, moved(from(round % 2)), [0; 4]);
        caller.call(Operation::Call, &[at, LONGEST])?;
        // The reply moves four others out of the middle.
        arena.write_ipc_buffer(0, moved(from(2)), [0; 4]);
        arena.write_ipc_buffer(1, [0; 4], from(round % 2));
        server.call(Operation::ReplyReceive, &[at, LONGEST])?;
        for i in (3 * 16..PAGES).step_by(3) {
            let frame = Cap::<Frame>::new(CapAddress(page(i)));
            match (i / 3 + round) % 3 {
                0 => drop(frame.delete()?),
                1 => drop(frame.move_to(CapAddress(page(16 * 2 + 2)))?.move_to(CapAddress(page(i)))?),
                _ => {
                    frame.copy_to(CapAddress(page(16 * 2 + 5)))?;
                    frame.delete()?;
                    Cap::<Frame>::new(CapAddress(page(16 * 2 + 5))).delete()?;
                }
            }
        }
        memory.revoke()?;
    }
    Ok(())
}

/// Deletes the endpoint of a thousand senders, with deadlines and without; then deletes another thousand senders.
pub fn senders(arena: &mut Arena) -> Result<(), Error> {
    for operation in [Operation::Call, Operation::Send] {
        let mut slots = arena.crowd_slots()?.skip(1);
        let endpoint = arena.make::<Endpoint>(0)?;
        let at = u64::from(endpoint.address().0);
        let later = Instant::now().after(1 << 40).ticks();
        let mut threads = Crowd::new(CROWD);
        for i in 0..CROWD {
            let victim = arena.one_of_many(&mut slots, HIGH)?;
            let mut arguments = [0; 13];
            let flags = if i % 3 == 0 { 0 } else { Tag::DEADLINE };
            // Deadlines in random order.
            (arguments[0], arguments[1], arguments[12]) =
                (at, Tag::new(1, 8).0 | flags, later + arena.random.below(1 << 30));
            victim.call(operation, &arguments)?;
            threads.add(victim);
        }
        for i in 0..CROWD / 2 {
            let victim = threads.take(arena.random.index(CROWD - i));
            if i % 2 == 0 { victim.thread.suspend()? } else { victim.thread.delete().map(|_| ())? }
        }
        endpoint.delete()?;
        arena.pool.revoke()?;
        arena.next_slot = 1;
    }
    Ok(())
}

/// Threads of a crowd, by number.
pub struct Crowd(alloc::vec::Vec<BareThread>);

impl Crowd {
    /// Makes a crowd with room for `count` threads.
    pub fn new(count: usize) -> Crowd {
        Crowd(alloc::vec::Vec::with_capacity(count))
    }

    /// Adds a thread.
    pub fn add(&mut self, victim: BareThread) {
        self.0.push(victim);
    }

    /// Removes a thread.
    pub fn take(&mut self, index: usize) -> BareThread {
        self.0.swap_remove(index)
    }

    /// Returns the remaining threads.
    pub fn all(&self) -> &[BareThread] {
        &self.0
    }
}

impl Arena {
    /// Makes a thread with its capabilities in the next slots of a crowd.
    pub fn one_of_many(
        &mut self,
        slots: &mut impl Iterator<Item = CapAddress>,
        priority: u64,
    ) -> Result<BareThread, Error> {
        let mut next = || slots.next().ok_or(Error::NoSuchSlot);
        let thread: Cap<Thread> = self.pool.retype(0, next()?)?;
        let scheduling: Cap<SchedulingContext> = self.pool.retype(0, next()?)?;
        BareThread { thread, scheduling }.set_up(priority, Home::OWN)
    }
}

/// Raises faults and makes foreign system calls, with a waiting handler, with one that comes later, and with none.
pub fn faults(arena: &mut Arena) -> Result<(), Error> {
    let endpoint = arena.make::<Endpoint>(0)?;
    let reply = arena.make::<Reply>(0)?;
    for (code, class) in [(Code::Touch, Class::PageFault), (Code::Foreign, Class::ForeignCall)] {
        let victim = arena.correspondent(HIGH, 0)?;
        victim.thread.faults_to(class, Some(endpoint))?;
        victim.start(code, &[], [0, 8, 0])?;
        for _ in 0..20 {
            let received = endpoint.receive(Wait::FOREVER.with_reply(reply))?;
            let _ = received.label();
            reply.reply(&Message::new(reply::RESUME))?;
        }
        victim.thread.suspend()?;
        victim.thread.faults_to(class, None)?;
        victim.start(code, &[], [0, 8, 0])?;
    }
    // The handler waits.
    let server = arena.correspondent(HIGH + 2, 1)?;
    let victim = arena.victim(HIGH, Home::OWN)?;
    victim.thread.faults_to(Class::PageFault, Some(endpoint))?;
    let at = u64::from(endpoint.address().0);
    server.call(Operation::Receive, &[at, 0])?;
    victim.start(Code::Touch, &[], [0, 8, 0])?;
    for _ in 0..10 {
        server.call(Operation::ReplyReceive, &[at, Tag::new(reply::RESUME, 0).0])?;
    }
    OWN_CSPACE.delete_at(endpoint.address())?;
    Ok(())
}

/// Runs threads that take the floating-point unit from each other.
pub fn float(arena: &mut Arena) -> Result<(), Error> {
    let victims = [arena.victim(LOW, Home::OWN)?, arena.victim(LOW, Home::OWN)?, arena.victim(LOW, Home::OWN)?];
    for victim in victims {
        victim.start(Code::Float, &[], [0, 50, 0])?;
    }
    arena.pause(20_000)
}

impl Arena {
    /// Lets threads of lower priority run for some ticks.
    pub fn pause(&mut self, ticks: u64) -> Result<(), Error> {
        let never = self.make::<tench::sys::Notification>(0)?;
        match never.wait_until(Instant::now().after(ticks)) {
            Err(Error::TimedOut) | Ok(_) => {}
            Err(error) => return Err(error),
        }
        never.delete()?;
        self.next_slot -= 1;
        Ok(())
    }
}
