//! The tasks of this program when a case starts it as a process of its own.

use tench::abi::Operation;
use tench::mem::protocol::Error as MemError;
use tench::mem::{Failure, Mem};
use tench::procs::protocol::Error as ProcsError;
use tench::procs::{Failure as ProcsFailure, Procs};
use tench::sys::{CapAddress, Instant, Kind, OWN_CSPACE, Placement, Tag, raw};
use tench::{args, memory, process};
use tench_random::Random;

use crate::faults::FaultTrigger;
use crate::{
    driver, exhaustion, handlers, hostile, layout, paging, processes, programs, reserve, shared, slabs, srr, streams,
    victim,
};

/// Exit code of a child that only follows its instructions.
pub const COMPLIED: u64 = 7;
/// First slot of the random child's objects.
pub const OBJECTS: u32 = 64;

/// Carries out the task named by the arguments, if they name one.
pub fn run() -> Option<i32> {
    let mut arguments = args().skip(1);
    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok());
    match arguments.next()? {
        "driver" => Some(driver::serve().unwrap_or(1)),
        "lines" => Some(driver::attack().unwrap_or(1)),
        "comply" => Some(COMPLIED as i32),
        "bundle" => Some(slabs::leave_a_bundle()),
        "streams" => Some(streams::child(arguments.next()?)),
        "shared" => Some(shared::child()),
        "handed-over" => Some(programs::child()),
        "lengths" => Some(processes::lengths_of(arguments)),
        "hold" => Some(processes::hold_copies(number(arguments.next())?).unwrap_or(1)),
        "spin" => Some(processes::spin()),
        "burn" => Some(processes::burn_shares()),
        "named" => Some(processes::stay_named()),
        "interrupts" => Some(processes::wait_for_interrupts()),
        "deaf" => Some(processes::ask_in_vain()),
        "victim" => Some(victim::live()),
        "library" => Some(exhaustion::use_library().unwrap_or(1)),
        "hog" => Some(hog().unwrap_or(0)),
        "paging" => Some(paging::child(arguments.next()?).unwrap_or(1)),
        "layout" => layout::child(arguments.next()?),
        "fault" => Some(fault(arguments.next()?)),
        "handler" => Some(handlers::child(arguments.next()?).unwrap_or(1)),
        "reserve" => Some(reserve::child(number(arguments.next())?).unwrap_or(1)),
        "reserved" => Some(reserve::stay().unwrap_or(1)),
        "hostile" => Some(hostile::client(arguments.next()?, number(arguments.next())?).unwrap_or(1)),
        "authority" => Some(hostile::authority::child(arguments.next()?, number(arguments.next())?).unwrap_or(1)),
        "powerless" => Some(hostile::powers::child(arguments.next()?).unwrap_or(1)),
        "attack" => hostile::attacks::child(arguments.next()?),
        "beat" => Some(hostile::attacks::beat().unwrap_or(1)),
        "session" => Some(srr::child(number(arguments.next())? as usize).unwrap_or(1)),
        "served" => Some(hostile::attacks::client().unwrap_or(1)),
        "random" => {
            make_random_calls(number(arguments.next())?, number(arguments.next())?);
            Some(0)
        }
        _ => None,
    }
}

/// Tries to get more memory than its parent allows. Returns the number of KiB it got, or none if it could raise the
/// limit.
fn hog() -> Option<i32> {
    let not_allowed = |result| matches!(result, Err(ProcsFailure::Refused(ProcsError::NotAllowed)));
    let procs = Procs::STANDARD;
    let child = procs.prepare("hello").ok()?;
    if !not_allowed(procs.limit(process::id(), 8 << 20)) || !not_allowed(child.limit(8 << 20)) {
        return None;
    }
    child.abandon();
    let refusal = loop {
        let slot = memory::take_slot().ok()?;
        if let Err(refusal) = Mem::STANDARD.allocate(14, slot) {
            break refusal;
        }
    };
    if refusal != Failure::Refused(MemError::QuotaExceeded) {
        return None;
    }
    let account = Mem::STANDARD.next_account(process::id() - 1).ok()?;
    i32::try_from(account.used >> 10).ok()
}

/// Ends the process by a fault.
fn fault(name: &str) -> i32 {
    if name == "stack" {
        return descend(0) as i32;
    }
    if let Some(trigger) = FaultTrigger::ALL.iter().find(|trigger| trigger.name == name) {
        // SAFETY: the instruction faults, which ends this process.
        unsafe { (trigger.function)(trigger.address()) };
    }
    1
}

/// Overflows the stack.
#[inline(never)]
fn descend(depth: u64) -> u64 {
    let block = core::hint::black_box([depth; 64]);
    if block[0] == u64::MAX { 0 } else { descend(depth + 1) + block[7] }
}

/// Random arguments of system calls.
pub trait Arguments {
    /// Returns an argument that may or may not be valid.
    fn argument(&mut self) -> u64;

    /// Returns, mostly, one of the objects that the child uses.
    fn object(&mut self) -> u64;
}

impl Arguments for Random {
    fn argument(&mut self) -> u64 {
        match self.below(16) {
            0..=4 => u64::from(OBJECTS) + self.below(64),
            5 => self.below(64),
            6..=8 => self.below(6),
            9 => self.below(600),
            10 => self.below(16) << 12,
            11 => 1 << self.below(64),
            12 => u64::MAX,
            13 => u64::MAX << self.below(64),
            14 => 12 + self.below(10),
            _ => self.next(),
        }
    }

    fn object(&mut self) -> u64 {
        if self.below(24) == 0 { self.argument() } else { u64::from(OBJECTS) + self.below(64) }
    }
}

/// Returns an operation and its arguments. Calls that would end the process at once are rare.
fn call(random: &mut Random) -> (u64, [u64; 13]) {
    let mut operation = match random.below(64) {
        0 => random.argument(),
        _ => Operation::ALL[random.below(Operation::ALL.len() as u64) as usize] as u64,
    };
    if operation == Operation::UpcallReturn as u64 && random.below(1024) != 0 {
        operation = Operation::UntypedRetype as u64;
    }
    let mut x: [u64; 13] = core::array::from_fn(|_| random.argument());
    x[0] = random.object();
    if (Operation::Copy as u64..=Operation::NodeRemove as u64).contains(&operation) {
        x[0] = if random.below(4) == 0 { x[0] } else { 0 };
        x[1] = random.object();
        x[2] = if random.below(4) == 0 { x[2] } else { 0 };
    }
    if operation <= Operation::TryReceive as u64 {
        // Most waits must end.
        x[1] = x[1] & !Tag::DEADLINE | if random.below(256) == 0 { 0 } else { Tag::DEADLINE };
        x[12] = Instant::now().ticks() + random.below(2000);
    }
    (operation, x)
}
/// Makes `count` system calls with random numbers and arguments. Any effect on this process is acceptable.
pub fn make_random_calls(seed: u64, count: u64) {
    let mut random = Random::new(seed);
    furnish();
    for _ in 0..count {
        let (operation, x) = call(&mut random);
        // This process does nothing else, so it may lose all that it can reach. SAFETY: as said; the case detects any
        // other damage.
        let _ = unsafe { raw::anything(operation, &x) };
    }
    // Lets the kernel's statistics note how deep this thread's kernel stack was.
    let _ = tench::thread::current_thread().query();
}

/// Gives the random child objects to use.
pub fn furnish() {
    let pool = CapAddress(OBJECTS);
    let Ok(block) = Mem::STANDARD.allocate(18, pool) else { return };
    let kinds = [
        (Kind::Untyped, 13),
        (Kind::CapNode, 8),
        (Kind::CapNode, 3),
        (Kind::Frame, 12),
        (Kind::Frame, 14),
        (Kind::PageTable, 0),
        (Kind::PageTable, 1),
        (Kind::PageTable, 2),
        (Kind::PageTable, 3),
        (Kind::Thread, 0),
        (Kind::SchedulingContext, 0),
        (Kind::Endpoint, 0),
        (Kind::Reply, 0),
        (Kind::Notification, 0),
    ];
    for (index, (kind, size)) in (0..).zip(kinds.into_iter().cycle().take(28)) {
        let slot = CapAddress(OBJECTS + 1 + index);
        // The child can do without some of them.
        let _ = block.untyped.retype_many(kind, size, 1, Placement::Watermark, OWN_CSPACE, slot);
    }
}
