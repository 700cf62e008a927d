//! Costs of communication between cores, and of cores to each other.
//!
//! ```text
//!   bench cores              the channel alone: both of its sides played by one thread, and by two that sleep
//!   bench cores remote       on two cores: a channel that both poll; pings and programs by the monitors of both
//!   bench cores work         on eight cores: work independent of the other cores
//!   bench cores share        on eight cores: a frame that others have copies of
//! ```
//! | key | what |
//! |---|---|
//! | `poll_W` | a request of `W` words and its reply, of as many, over a channel whose sides poll: the work of one side, half of both |
//! | `poll_W_between` | the same between processes on two cores, both of which run |
//! | `poll_W_of_N` | this for each of `N` requests in flight together |
//! | `doorbell_W`, `doorbell_W_of_N` | these over a channel whose sides are two threads of one core that sleep: both sides and the kernel, with doorbells, interrupts and switches |
//! | `doorbell` | two such threads that notify each other in turn, without a channel |
//! | `sleep_1` | a ping from a program by the monitors of two cores, which sleep: both kernels, both interrupts and both monitors |
//! | `sleep_1_of_N` | this for each of `N` threads that ping at the same time |
//! | `spawn_local`, `spawn_remote` | `hello`, started and awaited on this core, and through the monitor on another |
//! | `spawn_percent` | `spawn_remote` in percent of `spawn_local` |
//! | `server_local`, `server_remote` | a request to the process server of this core and of another, by a capability to its endpoint |
//! | `work_N` | a unit of independent work on each of `N` cores of eight |
//! | `work_percent` | `work_8` in percent of `work_1` |
//! | `copy_N` | a frame is sent to a process of each of `N` other cores, one after another |
//! | `revoke_N` | the frame is taken back from all of them |
//!
//! Instructions are those of all cores together: the counter of the emulated processor counts what the whole machine
//! executes. The cost of reading the counter is subtracted where it matters.

mod between;
mod channel;
mod doorbell;
mod remote;
mod share;
mod work;

use alloc::format;
use alloc::string::{String, ToString};

use tench::memory;
use tench::procs::Procs;
use tench_monitor_interface::Monitor;
use tench_monitor_interface::protocol::State;
use tench_names_interface::Names;

use crate::support::{figure, problem};

pub use between::partner;
pub use share::holder;
pub use work::child;

/// Numbers of requests in flight.
const TOGETHER: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Numbers that have figures; the others are in the curves.
const FIGURES: [u64; 2] = [8, 64];

/// Runs the experiment.
pub fn run() -> Result<(), String> {
    match tench::args().nth(2) {
        Some("remote") => remote::run(),
        Some("work") => work::run(),
        Some("share") => share::run(),
        _ => {
            channel::run()?;
            doorbell::run()
        }
    }
}

/// Returns the monitor of this core, when `others` other cores run.
fn monitor(others: u64) -> Result<Monitor, String> {
    let slot = memory::take_slot().map_err(|_| "no slot")?;
    let monitor = Monitor::at(Names::STANDARD.look_up(Monitor::NAME, slot).map_err(|failure| failure.to_string())?);
    for core in 1..=others {
        while monitor.core(core).map_err(problem("looking at a core"))?.state != State::Running {
            tench::time::sleep(tench::time::Duration::from_millis(1));
        }
    }
    Ok(monitor)
}

/// Returns the process server of a core.
fn procs(monitor: Monitor, core: u64) -> Result<Procs, String> {
    let slot = memory::take_slot().map_err(|_| "no slot")?;
    let found = monitor.processes(core, slot).inspect_err(|_| memory::free_slot(slot));
    Ok(Procs::at(found.map_err(problem("the process server"))?))
}

/// Prints a point of the curve over the number of requests in flight, and a figure at some of them.
fn by_number(key: &str, together: u64, value: u64) {
    tench::println!("sample: {key} {together} {value}");
    if FIGURES.contains(&together) {
        figure(&format!("{key}_of_{together}"), value);
    }
}
