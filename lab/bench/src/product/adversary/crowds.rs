//! Workloads with large numbers: deadlines, members of an account, waiters, interrupt lines.

use tench::abi::layout::slot;
use tench::abi::{Operation, Tag};
use tench::sys::thread::{Binding, Bindings};
use tench::sys::{
    Cap, CapAddress, Endpoint, Error, Instant, Interrupt, InterruptControl, Kind, Notification, OWN_CSPACE, PageTable,
    Placement, Reply, Trigger,
};

use super::messages::Crowd;
use super::{Arena, HIGH, LOW};
use crate::bare_threads::{BareThread, Code, Home};
use crate::support::KERNEL;

/// Number of threads of a crowd.
const CROWD: usize = 1000;
/// Range of interrupt lines that programs can have.
const LINES: core::ops::Range<u64> = 32..320;

/// Lets a thousand threads wait for the same instant, and cancels another thousand deadlines in random order.
pub fn deadlines(arena: &mut Arena) -> Result<(), Error> {
    let mut slots = arena.crowd_slots()?.skip(1);
    let never = arena.make::<Notification>(0)?;
    let at = u64::from(never.address().0);
    let mut threads = Crowd::new(CROWD);
    let instant = Instant::now().after(3_000_000).ticks();
    for i in 0..CROWD {
        let victim = arena.one_of_many(&mut slots, HIGH)?;
        let mut arguments = [0; 13];
        let when = if i % 10 == 0 { instant + arena.random.below(2_000_000) } else { instant };
        (arguments[0], arguments[1], arguments[12]) = (at, Tag::DEADLINE, when);
        victim.call(Operation::Receive, &arguments)?;
        threads.add(victim);
    }
    arena.pause(Instant::from_ticks(instant).since(Instant::now()) + 2_500_000)?;
    let later = Instant::now().after(1 << 40).ticks();
    for victim in threads.all() {
        let mut arguments = [0; 13];
        (arguments[0], arguments[1], arguments[12]) = (at, Tag::DEADLINE, later + arena.random.below(1 << 30));
        victim.call(Operation::Receive, &arguments)?;
    }
    for _ in 0..CROWD / 2 {
        never.signal()?;
    }
    for i in 0..CROWD / 4 {
        threads.take(arena.random.index(CROWD - i)).thread.delete()?;
    }
    never.delete()?;
    Ok(())
}

/// Suspends, resumes and counts a thousand threads of one account; then deletes the table.
pub fn accounts(arena: &mut Arena) -> Result<(), Error> {
    let mut slots = arena.crowd_slots()?.skip(1);
    let (root, endpoint) = (arena.make::<PageTable>(0)?, arena.make::<Endpoint>(0)?);
    root.open_account(KERNEL)?;
    let home = Home { table: root, ..Home::OWN };
    for i in 0..CROWD {
        let mut next = || slots.next().ok_or(Error::NoSuchSlot);
        let (thread, scheduling) = (arena.pool.retype(0, next()?)?, arena.pool.retype(0, next()?)?);
        let victim = BareThread { thread, scheduling }.set_up(LOW - 100 + i as u64 % 80, home)?;
        // They are ready, but fault at once: their address space is empty.
        victim.call(Operation::Call, &[u64::from(endpoint.address().0), 0])?;
    }
    for _ in 0..3 {
        root.suspend_account(true)?;
        root.account()?;
        root.suspend_account(false)?;
    }
    root.suspend_account(true)?;
    Ok(())
}

/// Lets servers wait for each other, and many threads wait for the first: how far a priority propagates.
pub fn chains(arena: &mut Arena) -> Result<(), Error> {
    let mut slots = arena.crowd_slots()?.skip(1);
    let endpoints = arena.slots(12);
    arena.pool.retype_many(Kind::Endpoint, 0, 12, Placement::Watermark, OWN_CSPACE, endpoints)?;
    let at = |i: u32| u64::from(endpoints.0 + i);
    let mut servers = Crowd::new(11);
    for i in 0..11 {
        let server = arena.one_of_many(&mut slots, LOW - 20 + u64::from(i))?;
        server.thread.serve(Cap::new(CapAddress(endpoints.0 + i)), 0)?;
        server.call(Operation::Call, &[at(i + 1), 0])?;
        servers.add(server);
    }
    arena.pause(10_000)?;
    let mut callers = Crowd::new(CROWD);
    for i in 0..200 {
        let caller = arena.one_of_many(&mut slots, LOW + i % 39)?;
        caller.call(Operation::Call, &[at(0), 0])?;
        callers.add(caller);
    }
    arena.pause(100_000)?;
    for i in 0..200 {
        callers.take(arena.random.index(200 - i)).thread.suspend()?;
    }
    for i in 0..11 {
        let server = servers.take(arena.random.index(11 - i));
        server.scheduling.configure(LOW + 5, LOW + 5, 0, None)?;
        server.thread.stop_serving()?;
        server.thread.delete()?;
    }
    Ok(())
}

/// Number of servers in a chain of callers.
const RELAYS: usize = 6;

/// Lets servers call each other to any depth, called by threads that wait for each other: beyond a limit, threads stop
/// helping.
pub fn callers(arena: &mut Arena) -> Result<(), Error> {
    let mut slots = arena.crowd_slots()?.skip(1);
    for _ in 0..60 {
        let mut ends = [0; RELAYS + 1];
        for end in &mut ends {
            let slot = slots.next().ok_or(Error::NoSuchSlot)?;
            *end = arena.pool.retype::<Endpoint>(0, slot)?.address().0;
        }
        let at = |i: usize| u64::from(ends[i]);
        let mut relays = Crowd::new(RELAYS);
        for (i, end) in ends.into_iter().enumerate().take(RELAYS) {
            let relay = arena.one_of_many(&mut slots, LOW + 20)?;
            let slot = slots.next().ok_or(Error::NoSuchSlot)?;
            let reply: Cap<Reply> = arena.pool.retype(0, slot)?;
            relay.thread.bind(Bindings { reply: Binding::To(reply), ..Bindings::KEEP })?;
            relay.thread.serve(Cap::new(CapAddress(end)), arena.random.below(3))?;
            relay.start(Code::Relay, &[], [0, at(i), at(i + 1)])?;
            relays.add(relay);
        }
        arena.pause(2_000)?;
        // One of them is busy when it is called, and another thread waits for one of them.
        let firsts = [RELAYS - 1 - arena.random.index(2), 0, arena.random.index(3)];
        let mut clients = Crowd::new(firsts.len());
        for first in firsts {
            let priority = LOW + arena.random.below(40);
            let client = arena.one_of_many(&mut slots, priority)?;
            client.call(Operation::Call, &[at(first), 0])?;
            clients.add(client);
            arena.pause(3_000)?;
        }
        for mut crowd in [clients, relays] {
            for left in (1..=crowd.all().len()).rev() {
                crowd.take(arena.random.index(left)).thread.delete()?;
            }
        }
    }
    Ok(())
}

/// Deletes half of a thousand receivers and waiters, and then the objects that they wait for.
pub fn receivers(arena: &mut Arena) -> Result<(), Error> {
    let mut slots = arena.crowd_slots()?.skip(1);
    let (endpoint, notification) = (arena.make::<Endpoint>(0)?, arena.make::<Notification>(0)?);
    let mut replies = Crowd::new(CROWD);
    for i in 0..CROWD {
        let victim = arena.one_of_many(&mut slots, HIGH)?;
        let slot = slots.next().ok_or(Error::NoSuchSlot)?;
        let reply: Cap<Reply> = arena.pool.retype(0, slot)?;
        let mut arguments = [0; 13];
        let at = if i % 2 == 0 { endpoint.address() } else { notification.address() };
        (arguments[0], arguments[1], arguments[11]) = (u64::from(at.0), Tag::REPLY, u64::from(reply.address().0));
        victim.call(Operation::Receive, &arguments)?;
        replies.add(victim);
    }
    for i in 0..CROWD / 2 {
        replies.take(arena.random.index(CROWD - i)).thread.suspend()?;
    }
    endpoint.delete()?;
    notification.delete()?;
    Ok(())
}

/// Binds all interrupt lines to one notification, and unbinds them in every order.
pub fn interrupts(arena: &mut Arena) -> Result<(), Error> {
    let control = Cap::<InterruptControl>::new(slot::INTERRUPT_CONTROL);
    let mut slots = arena.crowd_slots()?.skip(1);
    let mut lines = alloc::vec::Vec::new();
    let notification = arena.make::<Notification>(0)?;
    for number in LINES {
        let slot: CapAddress = slots.next().ok_or(Error::NoSuchSlot)?;
        match control.get(number, Trigger::Edge, slot) {
            Ok(line) => lines.push(line),
            // Another driver has the line, or the machine does not have it.
            Err(Error::Busy | Error::InvalidInterrupt) => {}
            Err(error) => return Err(error),
        }
    }
    for round in 0..3 {
        lines.iter().try_for_each(|line: &Cap<Interrupt>| line.bind(Some(notification)))?;
        match round {
            0 => lines.iter().try_for_each(|line| line.bind(None))?,
            1 => lines.iter().rev().try_for_each(|line| line.bind(None))?,
            _ => drop(notification.delete()?),
        }
    }
    lines.iter().try_for_each(|line| line.delete().map(drop))
}
