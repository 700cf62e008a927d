//! Attacks on the kernel: attempts with a program's own capabilities, memory and threads.

use alloc::format;
use alloc::vec::Vec;

use tench::abi::fault::Registers;
use tench::abi::layout::slot;
use tench::abi::object::ThreadState;
use tench::abi::{Operation, Tag, power};
use tench::mem::protocol::Error as MemError;
use tench::mem::{Mem, Within};
use tench::memory::{self, make};
use tench::procs::Procs;
use tench::procs::protocol::State;
use tench::sys::thread::{Binding, Bindings};
use tench::sys::{
    Cap, CapAddress, CapNode, Endpoint, Error, Frame, Instant, Kernel, Kind, MapFlags, Message, Notification,
    OWN_CSPACE, PageTable, Placement, Reply, Rights, SchedulingContext, Thread, Untyped, Wait,
};
use tench::thread::{self, Builder, current_thread};
use tench::time::{self, Duration, instructions, may_count, sleep};
use tench_protocol::Failure as RequestFailure;

use super::{Attack, empty, held, said, soon, window};
use crate::assembly;
use crate::case::{Failure, Outcome};
use crate::faults::FaultTrigger;
use crate::stage::system_call;

pub const ATTACKS: &[Attack] = &[
    Attack::new("badge", "a badge is not changed, and a right does not grow", badge),
    Attack::new("receive", "nobody receives, or serves, at a server's endpoint", receive),
    Attack::new("priority", "no priority above the own ceiling is given, by any way", priority),
    Attack::new("kernel-operations", "nothing that a program has is a kernel, nor an interrupt", kernel_operations),
    Attack::new("device", "no device, no interrupt and no memory below the RAM is to be had", device),
    Attack::new("addresses", "nobody is told where memory lies without the power", addresses),
    Attack::new("counters", "nobody counts instructions without the power", counters),
    Attack::new("kernel-memory", "the kernel's memory is out of reach", kernel_memory),
    Attack::new("overlap", "no two objects share memory, whatever sizes and offsets are named", overlap),
    Attack::new("left-overs", "memory comes zeroed, whoever had it before", left_overs),
    Attack::new("own-account", "nobody suspends, opens or leaves an account without the right to", own_account),
    Attack::new("evasion", "a child does not settle in its parent's address space", evasion),
    Attack::new("stale-words", "a message whose buffer has gone has no words of others", stale_words),
    Attack::new("dropped-replies", "who drops a reply object harms only who called", dropped_replies),
    Attack::new("lost-context", "a context that goes during a call is nobody's any more", lost_context),
    Attack::new("buffer-shared", "a message buffer that somebody else writes into misleads nobody else", shared_buffer)
        .endless(),
    Attack::new("past", "waits until the past, and until the end of time, end or are given up", past),
    Attack::new("roots", "whoever makes address spaces without end keeps nobody else from having one", roots),
    Attack::new("own-slots", "what a server sends arrives in no slot that is in use", own_slots),
    Attack::new("cycle", "threads that serve each other in a circle keep nobody else waiting", || circle(2)).endless(),
    Attack::new("chain", "a chain of servers that ends nowhere takes its clients' time", || circle(24)).endless(),
    Attack::new("signals", "threads that wake each other without end keep to their turns", signals).endless(),
    Attack::new("senders", "a hundred senders at an endpoint that is deleted are all notified", senders),
    Attack::new("sleepers", "many deadlines at one time hold nobody up", sleepers),
    Attack::new("random-calls", "system calls at random harm nobody", || {
        crate::child::make_random_calls(tench::process::id(), 4000);
        Ok(())
    })
    .endless(),
];

/// Slots in which every process finds servers.
pub const SERVERS: [CapAddress; 5] = [slot::PROCS, slot::MEM, slot::NAMES, slot::CONSOLE, slot::FILES];
/// Stack size in bytes: threads of an attack have small stacks.
const STACK: usize = 16 << 10;

fn badge() -> Outcome {
    let slot = empty()?;
    for server in SERVERS {
        let cap = Cap::<Endpoint>::new(server);
        let own = cap.identify()?;
        let (power, family) = (own.badge | 1 << power::SHIFT, own.badge ^ 1 << power::FAMILY_SHIFT);
        for badge in [1, own.badge ^ 1, power, family, u64::MAX << power::SHIFT, u64::MAX] {
            refused!(cap.mint_to(slot, Rights::all(), badge), InvalidArgument);
        }
        let copy = cap.mint_to(slot, Rights::all(), 0)?;
        let found = copy.identify()?;
        equal!((found.badge, found.rights), (own.badge, own.rights));
        copy.delete()?;
    }
    Ok(())
}

fn receive() -> Outcome {
    for server in SERVERS {
        let cap = Cap::<Endpoint>::new(server);
        refused!(cap.try_receive(Wait::FOREVER), MissingRights);
        refused!(cap.receive(Wait::until(soon(10))), MissingRights);
        refused!(current_thread().serve(cap, 0), MissingRights);
    }
    Ok(())
}

fn priority() -> Outcome {
    let own = Cap::<SchedulingContext>::new(slot::SCHEDULING);
    let info = own.query()?;
    let made = make::<SchedulingContext>(0)?;
    let above = info.ceiling + 1;
    for (priority, ceiling) in [(above, info.ceiling), (info.priority, above), (255, 255), (above, 0), (0, 255)] {
        for authority in [None, Some(own), Some(made.cap())] {
            refused!(own.configure(priority, ceiling, 0, authority), PriorityTooHigh);
            refused!(made.cap().configure(priority, ceiling, 0, authority), PriorityTooHigh);
        }
    }
    check!(Builder::new().priority(above as u8).spawn(|| ()).is_err());
    let now = own.query()?;
    equal!((now.priority, now.ceiling), (info.priority, info.ceiling));
    Ok(())
}

/// The slots that a process has from the beginning.
const FIRST_SLOTS: u64 = 52;
/// Operations of the kernel, of interrupts, and of accounts.
const PRIVILEGED: [core::ops::Range<u64>; 3] = [88..89, 96..100, 104..120];

fn kernel_operations() -> Outcome {
    for operation in PRIVILEGED.into_iter().flatten() {
        for cap in 0..FIRST_SLOTS {
            for argument in [0, 1, u64::from(slot::VSPACE.0), u64::MAX] {
                if system_call(operation, &[cap, argument, argument, argument]).is_ok() {
                    return Err(Failure::new(format!("operation {operation} of slot {cap} with {argument:#x}")));
                }
            }
        }
    }
    Ok(())
}

/// Start of RAM; devices lie below.
const RAM: u64 = 0x4000_0000;
/// Entries of a root node.
const ENTRIES: u32 = 64;

fn addresses() -> Outcome {
    let all = (0..ENTRIES << 8).map(CapAddress);
    let mine: Vec<_> =
        all.filter(|slot| OWN_CSPACE.identify_at(*slot).is_ok_and(|found| found.kind != Kind::Null)).collect();
    for slot in &mine {
        equal!(OWN_CSPACE.identify_at(*slot)?.address, 0);
        // None of its capabilities reveals that.
        check!(matches!(OWN_CSPACE.locate_at(Cap::new(*slot), slot::CSPACE), Err(Error::WrongType)));
    }
    // A frame, a mapping and untyped memory of its own; objects that it deletes; and what other capabilities reveal of
    // them.
    let (slot, made, to) = (empty()?, empty()?, empty()?);
    let block = Mem::STANDARD.allocate(13, slot)?;
    let frame = block.untyped.retype::<Frame>(12, made)?;
    let table = make::<PageTable>(3)?;
    let mapping = frame.map(table.cap(), 0, 1, 0, MapFlags::READ, to)?;
    let words = system_call(Operation::MappingQuery as u64, &[u64::from(to.0)])?;
    equal!(words[..4], [0, 1, MapFlags::READ.bits(), u64::MAX]);
    let words = system_call(Operation::UntypedQuery as u64, &[u64::from(slot.0)])?;
    equal!(words[..4], [13, 4096, 0, 0]);
    for cap in [slot, made, to] {
        equal!(OWN_CSPACE.identify_at(cap)?.address, 0);
    }
    let mut from = CapAddress::NULL;
    loop {
        let (next, found) = Procs::STANDARD.capabilities(tench::process::id(), from)?;
        check!(found.iter().all(|found| found.object == 0));
        if next == CapAddress::NULL {
            break;
        }
        from = next;
    }
    mapping.delete()?;
    equal!(OWN_CSPACE.delete_part_at(made, 1), Ok(()));
    let words = system_call(Operation::Delete as u64, &[0, u64::from(slot.0)])?;
    check!(words[1] == 0);
    Mem::STANDARD.free(block.number)?;
    [slot, made, to].into_iter().for_each(memory::free_slot);
    Ok(())
}

fn device() -> Outcome {
    for address in 0..ENTRIES << 8 {
        let Ok(found) = OWN_CSPACE.identify_at(CapAddress(address)) else { continue };
        let is_privileged =
            matches!(found.kind, Kind::Kernel | Kind::InterruptControl | Kind::Interrupt | Kind::Doorbell);
        check!(!is_privileged);
        let is_untyped = found.kind == Kind::Untyped;
        check!(!is_untyped || !Cap::<Untyped>::new(CapAddress(address)).query()?.device);
    }
    for within in [
        Within { base: 0x0900_0000, limit: 0x0900_1000, ..Within::default() },
        Within { base: RAM, ..Within::default() },
        Within { limit: RAM + 0x10_0000, ..Within::default() },
        Within { align_bits: 13, ..Within::default() },
    ] {
        let slot = empty()?;
        let result = Mem::STANDARD.allocate_within(12, within, slot);
        check!(matches!(result, Err(RequestFailure::Refused(MemError::NotAllowed | MemError::BadRange))));
        equal!(OWN_CSPACE.identify_at(slot)?.kind, Kind::Null);
    }
    Ok(())
}

/// Starts a process of this program, and checks that a fault ends it.
fn faults(arguments: &[&str]) -> Outcome {
    let process = Procs::STANDARD.spawn("cases", arguments)?;
    let status = said(Procs::STANDARD.wait_until(process, time::deadline(Duration::from_secs(2))))?;
    equal!(status.state, State::Faulted);
    Ok(())
}

fn counters() -> Outcome {
    check!(!may_count());
    check!(Cap::<Kernel>::new(slot::KERNEL).let_count(true).is_err());
    check!(!may_count());
    faults(&["attack", "count"])
}

/// Runs a part that counts nevertheless.
pub fn count() -> Outcome {
    core::hint::black_box(instructions());
    Ok(())
}

fn kernel_memory() -> Outcome {
    let triggers: Vec<_> = FaultTrigger::ALL.iter().filter(|trigger| trigger.name.starts_with("kernel")).collect();
    check!(triggers.len() >= 2);
    triggers.into_iter().try_for_each(|trigger| faults(&["fault", trigger.name]))
}

fn overlap() -> Outcome {
    let (slot, other) = (empty()?, empty()?);
    let block = Mem::STANDARD.allocate(16, empty()?)?.untyped;
    let make = |kind, size, count, placement, at| block.retype_many(kind, size, count, placement, OWN_CSPACE, at);
    make(Kind::CapNode, 8, 1, Placement::At(0), slot)?;
    for (kind, size) in [(Kind::Frame, 12), (Kind::Untyped, 14), (Kind::CapNode, 8), (Kind::PageTable, 0)] {
        refused!(make(kind, size, 1, Placement::At(0), other), Overlap);
    }
    refused!(make(Kind::Frame, 12, 1, Placement::At(0x3000), other), Overlap);
    refused!(make(Kind::Frame, 13, 1, Placement::At(0x5000), other), Misaligned);
    refused!(make(Kind::Frame, 12, 1, Placement::At(0x4000), slot), SlotOccupied);
    for size in [0, 11, 17, 48, 63, 64, 65, 1 << 32 | 12, u64::MAX] {
        check!(make(Kind::Frame, size, 1, Placement::Watermark, other).is_err());
        check!(size == 11 || make(Kind::Untyped, size, 1, Placement::At(0x8000), other).is_err());
    }
    for count in [0, 257, 1 << 32 | 1, u64::MAX] {
        check!(make(Kind::Frame, 12, count, Placement::Watermark, other).is_err());
    }
    for offset in [1 << 16, 1 << 48, u64::MAX - 0xfff, 1 << 63] {
        check!(make(Kind::Frame, 12, 1, Placement::At(offset), other).is_err());
    }
    for kind in [Kind::Kernel, Kind::InterruptControl, Kind::Interrupt, Kind::Mapping, Kind::Null] {
        check!(make(kind, 12, 1, Placement::Watermark, other).is_err());
    }
    equal!(OWN_CSPACE.identify_at(other)?.kind, Kind::Null);
    Ok(())
}

fn left_overs() -> Outcome {
    const BITS: u32 = 16;
    for round in 0..8 {
        let (slot, made) = (empty()?, empty()?);
        let block = Mem::STANDARD.allocate(BITS, slot)?;
        let frame = block.untyped.retype::<Frame>(u64::from(BITS), made)?;
        let window = window(frame, BITS)?;
        for offset in (0..window.size()).step_by(8) {
            if window.read64(offset) != 0 {
                return Err(Failure::new(format!("a word of somebody else's at {offset:#x}, round {round}")));
            }
            window.write64(offset, 0x5ec2_e700 + round);
        }
        drop(window);
        Mem::STANDARD.free(block.number)?;
        [slot, made].into_iter().for_each(memory::free_slot);
    }
    Ok(())
}

fn own_account() -> Outcome {
    let root = Cap::<PageTable>::new(slot::VSPACE);
    refused!(root.suspend_account(true), MissingRights);
    refused!(root.suspend_account(false), MissingRights);
    for kernel in 0..FIRST_SLOTS as u32 {
        check!(root.open_account(Cap::new(CapAddress(kernel))).is_err());
    }
    check!(!root.account()?.suspended);
    // A thread in another address space belongs to the account nevertheless, and only that counts.
    let (other, thread) = (make::<PageTable>(0)?, make::<Thread>(0)?);
    let before = root.account()?.threads;
    thread.cap().configure(Cap::new(slot::CSPACE), other.cap(), None)?;
    equal!(root.account()?.threads, before + 1);
    Ok(())
}

fn evasion() -> Outcome {
    let mut child = Procs::STANDARD.prepare("cases")?;
    child.give(slot::VSPACE)?;
    child.argument("attack")?;
    child.argument("settle")?;
    held(Procs::STANDARD, child.start()?)
}

/// Runs a part that wants a thread of its own to live in its parent's address space, so that it runs on when this
/// process is suspended.
pub fn settle() -> Outcome {
    let (parents, thread) = (Cap::<PageTable>::new(slot::EXTRA), make::<Thread>(0)?);
    equal!(parents.identify()?.kind, Kind::PageTable);
    refused!(thread.cap().configure(Cap::new(slot::CSPACE), parents, None), MissingRights);
    refused!(parents.suspend_account(true), MissingRights);
    Ok(())
}

/// Words of a message.
const WORDS: usize = 20;
const SECRET: u64 = 0x5ec2_e700;

fn stale_words() -> Outcome {
    let endpoint = make::<Endpoint>(0)?.leak();
    let first = thread::spawn(move || endpoint.send(&Message::with_words(1, &[SECRET; WORDS]), Wait::FOREVER));
    equal!(endpoint.receive(Wait::until(soon(100_000)))?.words(), &[SECRET; WORDS]);
    equal!(first.join(), Ok(()));
    for _ in 0..20 {
        let (slot, made) = (empty()?, empty()?);
        let block = Mem::STANDARD.allocate(12, slot)?;
        let frame = block.untyped.retype::<Frame>(12, made)?;
        let thread = queued(endpoint, frame)?;
        // The buffer is freed while the message waits.
        Mem::STANDARD.free(block.number)?;
        equal!(endpoint.receive(Wait::until(soon(100_000)))?.words().iter().find(|word| **word != 0), None);
        drop(thread);
        [slot, made].into_iter().for_each(memory::free_slot);
    }
    Ok(())
}

/// Spawns a thread that waits at an endpoint with a message of this many words, in a given IPC buffer.
fn queued(
    endpoint: Cap<Endpoint>,
    frame: Cap<Frame>,
) -> Outcome<(memory::Made<Thread>, memory::Made<SchedulingContext>)> {
    let (thread, context) = (make::<Thread>(0)?, make::<SchedulingContext>(0)?);
    let like = Cap::<SchedulingContext>::new(slot::SCHEDULING).query()?;
    context.cap().configure(like.priority, 0, like.slice, None)?;
    thread.cap().configure(Cap::new(slot::CSPACE), Cap::new(slot::VSPACE), Some((frame, 0)))?;
    thread.cap().bind(Bindings { scheduling: Binding::To(context.cap()), ..Bindings::KEEP })?;
    let mut registers = Registers::ZERO;
    registers.pc = assembly::once as *const () as u64;
    registers.x[0] = u64::from(endpoint.address().0);
    registers.x[1] = Tag::new(1, WORDS).0;
    registers.x[10] = Operation::Send as u64;
    registers.x[19] = u64::from(thread.cap().address().0);
    registers.x[20] = Operation::ThreadSuspend as u64;
    // SAFETY: the thread is new; it makes two system calls, and needs no stack.
    unsafe { thread.cap().write_registers(&registers, true) }?;
    let end = soon(200_000);
    while thread.cap().query()?.state != ThreadState::Sending {
        check!(Instant::now() < end);
        sleep(Duration::from_micros(50));
    }
    Ok((thread, context))
}

fn dropped_replies() -> Outcome {
    for _ in 0..30 {
        let (endpoint, reply) = (make::<Endpoint>(0)?, make::<Reply>(0)?);
        let called = endpoint.cap();
        let caller = thread::spawn(move || called.call(&Message::new(1)).map(drop));
        endpoint.cap().receive(Wait::until(soon(100_000)).with_reply(reply.cap()))?;
        drop(reply);
        equal!(caller.join(), Err(Error::Aborted));
    }
    Ok(())
}

fn lost_context() -> Outcome {
    let clock = clock()?;
    for round in 0..40 {
        let (slot, made) = (empty()?, empty()?);
        let block = Mem::STANDARD.allocate(12, slot)?;
        let context = block.untyped.retype::<SchedulingContext>(0, made)?;
        let like = Cap::<SchedulingContext>::new(slot::SCHEDULING).query()?;
        context.configure(like.priority, 0, like.slice, None)?;
        let caller = said(Builder::new().stack_size(STACK).spawn(move || {
            for _ in 0..10 {
                let _ = clock.delay(500);
                let _ = Procs::STANDARD.load();
            }
        }))?;
        let (Some(thread), Some(own)) = (caller.thread(), caller.scheduling()) else {
            return Err(Failure::new("it has no thread"));
        };
        let bind = |scheduling| thread.bind(Bindings { scheduling, ..Bindings::KEEP });
        bind(Binding::Unbind)?;
        bind(Binding::To(context))?;
        sleep(Duration::from_micros(3 * round));
        Mem::STANDARD.free(block.number)?;
        bind(Binding::To(own))?;
        caller.join();
        [slot, made].into_iter().for_each(memory::free_slot);
    }
    Ok(())
}

/// Returns the clock server.
fn clock() -> Outcome<tench::clock::Clock> {
    Ok(tench::clock::Clock::at(said(tench::names::Names::STANDARD.look_up(tench::clock::Clock::NAME, empty()?))?))
}

fn shared_buffer() -> Outcome {
    use core::sync::atomic::{AtomicUsize, Ordering};
    static BUFFER: AtomicUsize = AtomicUsize::new(0);
    /// Bytes of an IPC buffer.
    const SIZE: usize = 1024;
    let requester = said(Builder::new().stack_size(STACK).spawn(|| {
        BUFFER.store(tench::sys::block::ipc_buffer() as usize, Ordering::SeqCst);
        for round in 0..300 {
            let name = format!("attack/{round}/{}", "x".repeat(150));
            // Any request in the end gets a reply, with an error or not.
            let _ = tench::names::Names::STANDARD.look_up(&name, CapAddress(16_000));
            let _ = tench::files::Files::STANDARD.status(&name);
            let _ = Procs::STANDARD.find(&name, 0);
        }
    }))?;
    let mut word = 1_u64;
    while !requester.is_finished() {
        let buffer = BUFFER.load(Ordering::SeqCst);
        word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17);
        if buffer != 0 {
            let pointer = core::ptr::with_exposed_provenance_mut::<u64>(buffer + ((word as usize % SIZE) & !7));
            // SAFETY: the buffer stays mapped until the thread is joined; any effect of the words on this process's own
            // code harms this process alone.
            unsafe { pointer.write_volatile(word) };
        }
        if word & 63 == 0 {
            thread::yield_now();
        }
    }
    Ok(())
}

fn past() -> Outcome {
    let (clock, own) = (clock()?, tench::process::id());
    for round in 0..100 {
        let past = Instant::from_ticks(round);
        check!(said(clock.delay_until(past))? >= past);
        check!(Procs::STANDARD.wait_until(own, past).is_err());
        for server in SERVERS {
            let end = [Wait::until(past), Wait::until(Instant::now())][round as usize % 2];
            refused_or_not(Cap::<Endpoint>::new(server).call_with(&Message::new(round), end));
        }
    }
    // No thread waits until the end of time for them.
    let waits = said(Builder::new().stack_size(STACK).spawn(move || clock.delay(u64::MAX).is_ok()))?;
    sleep(Duration::from_millis(1));
    waits.detach();
    Ok(())
}

/// Accepts success and refusal, since both are right.
fn refused_or_not<T>(_: Result<T, Error>) {}

fn roots() -> Outcome {
    let slot = empty()?;
    let block = Mem::STANDARD.allocate(22, slot)?.untyped;
    let (mut made, spare) = (0, empty()?);
    // Each is an address space with a thread that is ready to live there.
    while block.retype::<PageTable>(0, spare).is_ok() {
        let root = Cap::<PageTable>::new(spare);
        let thread = make::<Thread>(0)?;
        thread.cap().configure(Cap::new(slot::CSPACE), root, None)?;
        thread.leak();
        root.delete()?;
        made += 1;
        if made == 400 {
            break;
        }
    }
    check!(made >= 100);
    let child = Procs::STANDARD.spawn("cases", &["comply"])?;
    equal!(Procs::STANDARD.wait(child)?.exit_code(), Some(crate::child::COMPLIED));
    Ok(())
}

fn own_slots() -> Outcome {
    let before = OWN_CSPACE.identify_at(slot::VSPACE)?;
    for slot in [slot::VSPACE, slot::CSPACE, slot::THREAD, slot::MEM, CapAddress(u32::MAX), CapAddress(63 << 8)] {
        // The block is this process's, wherever its capability went.
        let _ = Mem::STANDARD.allocate(12, slot);
        let _ = tench::names::Names::STANDARD.look_up(tench::clock::Clock::NAME, slot);
    }
    equal!(OWN_CSPACE.identify_at(slot::VSPACE)?, before);
    equal!(OWN_CSPACE.identify_at(slot::CSPACE)?.kind, Kind::CapNode);
    equal!(OWN_CSPACE.identify_at(slot::MEM)?.kind, Kind::Endpoint);
    Ok(())
}

/// Starts threads that serve an endpoint each and call the next; the last calls the first. None of them ever gets a
/// reply.
fn circle(length: usize) -> Outcome {
    let mut ends = Vec::new();
    for _ in 0..length {
        ends.push(make::<Endpoint>(0)?.leak());
    }
    for number in 0..length {
        let (own, next) = (ends[number], ends[(number + 1) % length]);
        let serve = move || {
            let _ = current_thread().serve(own, 0);
            loop {
                // Even-numbered threads wait to be called first, the others call first.
                if number % 2 == 0 {
                    let _ = own.receive(Wait::until(soon(500)));
                }
                let _ = next.call_with(&Message::new(1), Wait::until(soon(1500)));
            }
        };
        said(Builder::new().stack_size(STACK).spawn(serve))?.detach();
    }
    loop {
        let _ = ends[0].call_with(&Message::new(1), Wait::until(soon(700)));
    }
}

fn signals() -> Outcome {
    let events = [make::<Notification>(0)?.leak(), make::<Notification>(0)?.leak()];
    let bounce = move |from: usize| {
        loop {
            let _ = events[from].signal();
            let _ = events[1 - from].wait_until(soon(100));
        }
    };
    said(Builder::new().stack_size(STACK).spawn(move || bounce(0)))?.detach();
    bounce(1)
}

fn senders() -> Outcome {
    const SENDERS: usize = 100;
    let endpoint = make::<Endpoint>(0)?;
    let called = endpoint.cap();
    let mut threads = Vec::new();
    for number in 0..SENDERS as u64 {
        let send = move || called.send(&Message::with_words(number, &[number; WORDS]), Wait::FOREVER);
        threads.push(said(Builder::new().stack_size(STACK).spawn(send))?);
    }
    sleep(Duration::from_millis(2));
    drop(endpoint);
    for thread in threads {
        // Threads that came too late found no endpoint.
        check!(matches!(thread.join(), Err(Error::Aborted | Error::InvalidCapability)));
    }
    Ok(())
}

fn sleepers() -> Outcome {
    const SLEEPERS: usize = 150;
    let end = time::deadline(Duration::from_millis(300));
    let mut threads = Vec::new();
    for _ in 0..SLEEPERS {
        let wait = move || time::sleep_until(end);
        threads.push(said(Builder::new().stack_size(STACK).spawn(wait))?);
    }
    // The attack depends on all of them waiting by then.
    check!(Instant::now() < end);
    threads.into_iter().for_each(|thread| thread.join());
    Ok(())
}

/// Makes a CSpace with nodes full of copies of one endpoint to which there is no other capability; returns it with its
/// memory.
pub fn tree(nodes: u32) -> Outcome<(tench::mem::Block, Cap<CapNode>)> {
    let endpoint = make::<Endpoint>(0)?.leak().address();
    let tree = tree_of(endpoint, nodes)?;
    // The endpoint is deleted with the last of them.
    OWN_CSPACE.delete_at(endpoint)?;
    memory::free_slot(endpoint);
    Ok(tree)
}

/// Makes a CSpace with nodes full of copies of the given capability.
pub fn tree_of(source: CapAddress, nodes: u32) -> Outcome<(tench::mem::Block, Cap<CapNode>)> {
    /// Log2 of the bytes of a node.
    const NODE: u32 = 14;
    let block = Mem::STANDARD.allocate(NODE + (nodes + 2).next_power_of_two().ilog2(), empty()?)?;
    let (root, node) = (empty()?, empty()?);
    let root = block.untyped.retype::<CapNode>(8, root)?;
    for index in 0..nodes {
        let node = block.untyped.retype::<CapNode>(8, node)?;
        root.install_node(index, node)?;
        // Address 0 names no slot.
        for number in 1..256 {
            root.copy_from(CapAddress::new(index, number), OWN_CSPACE, source)?;
        }
    }
    memory::free_slot(node);
    Ok((block, root))
}
