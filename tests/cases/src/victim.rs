//! A process that does everything in turn, and can be killed at any moment.
//!
//! The victim replies to nothing and prints nothing: its operations are only there to be interrupted. It ignores what
//! is refused because the machine is small or a server is busy.

use alloc::vec;
use alloc::vec::Vec;

use tench::abi::layout::slot;
use tench::abi::memory::PAGE_SIZE;
use tench::clock::Clock;
use tench::console::Console;
use tench::mem::Mem;
use tench::memory::{self, Made, make};
use tench::names::Names;
use tench::procs::Procs;
use tench::procs::pid;
use tench::sys::{Cap, Endpoint, Notification, Untyped};
use tench::thread;
use tench::time::{self, Duration};

/// Name under which the victim registers an endpoint at which it never receives.
pub const NAME: &str = "cases/victim";
/// Time for which the victim waits for something that does not happen; afterwards no server keeps the wait.
pub const PATIENCE: Duration = Duration::from_millis(2);

/// Does everything.
pub fn live() -> i32 {
    let held = (hold_memory(), register(), names());
    let threads = wait_everywhere();
    let child = start_children();
    drop(touch_memory());
    if let Some(child) = child {
        let _ = Procs::STANDARD.wait_until(child, time::deadline(PATIENCE));
    }
    drop((held, threads));
    0
}

/// Allocates blocks of memory, divides and frees some of them, and makes objects of each kind of them.
fn hold_memory() -> Option<(Cap<Untyped>, Made<Notification>)> {
    let first = memory::take_slot().ok()?;
    let block = Mem::STANDARD.allocate(16, first).ok()?;
    let second = memory::take_slot().ok()?;
    let other = Mem::STANDARD.allocate(14, second).ok()?;
    let _ = Mem::STANDARD.divide(block.number);
    let _ = Mem::STANDARD.free(other.number);
    Some((block.untyped, make::<Notification>(0).ok()?))
}

/// Touches memory on demand, populated in runs and page by page.
fn touch_memory() -> Vec<u8> {
    let mut memory = vec![0; 64 * PAGE_SIZE];
    memory.iter_mut().step_by(PAGE_SIZE / 2).for_each(|byte| *byte = 1);
    memory
}

/// Registers an endpoint under a name.
fn register() -> Option<Made<Endpoint>> {
    let endpoint = make::<Endpoint>(0).ok()?;
    let _ = Names::STANDARD.register(NAME, endpoint.cap());
    Some(endpoint)
}

/// Looks names up, and gives one up.
fn names() -> Option<Clock> {
    let clock = clock();
    let endpoint = make::<Endpoint>(0).ok()?;
    let _ = Names::STANDARD.register("cases/other", endpoint.cap());
    let _ = Names::STANDARD.unregister("cases/other");
    clock
}

/// Looks the clock server up anew.
fn clock() -> Option<Clock> {
    Names::STANDARD.look_up(Clock::NAME, memory::take_slot().ok()?).ok().map(Clock::at)
}

/// Starts threads that wait: for time, for input, for a name, for a process, with a deadline and without.
fn wait_everywhere() -> Option<()> {
    let clock = clock()?;
    let slot = memory::take_slot().ok()?;
    let ticks = PATIENCE.as_micros() as u64 * time::frequency() / 1_000_000;
    thread::spawn(move || clock.delay(ticks).is_ok()).detach();
    thread::spawn(|| Console::STANDARD.read(&mut [0; 16]).is_ok()).detach();
    thread::spawn(move || Names::STANDARD.wait_for("nobody's", slot).is_ok()).detach();
    thread::spawn(|| Procs::STANDARD.wait(pid::INIT).is_ok()).detach();
    thread::spawn(|| Procs::STANDARD.wait_until(pid::MEM, time::deadline(PATIENCE)).is_ok()).detach();
    thread::spawn(|| Cap::<Endpoint>::new(slot::EXTRA).call(&tench::sys::Message::new(0)).is_ok()).detach();
    Some(())
}

/// Prepares a child that is never started, abandons one, and starts one.
fn start_children() -> Option<u64> {
    let half = Procs::STANDARD.prepare("cases").ok()?;
    half.argument("comply").ok()?;
    half.give_in(make::<Endpoint>(0).ok()?.leak(), slot::EXTRA).ok()?;
    let other = Procs::STANDARD.prepare("cases").ok()?;
    other.argument("comply").ok()?;
    other.abandon();
    let child = Procs::STANDARD.prepare("cases").ok()?;
    child.argument("comply").ok()?;
    child.start().ok()
}
