//! A program that ends what a core cannot go on without, so that scenarios can show what the other cores do then
//! (`systems/peers.toml`).
//!
//! One program under several names. `init` starts the `saboteur` on each core and gives it the kernel, so that it may
//! do anything. It does nothing on the first core; on another it waits until a program is started there whose name says
//! what to end:
//!
//! | name | what ends |
//! |---|---|
//! | `end-monitor` | the core's monitor is killed |
//! | `empty-monitor` | all memory is taken from the core's monitor, its threads too, without a notification |
//! | `end-slowly` | as `empty-monitor`, and 15 seconds later the core stops |
//! | `end-kernel` | the core stops, in the middle of whatever it does |
//! | `end-shell` | the first core's shell is killed: the terminal has no owner then |
//! | `break-channel` | the core's side of its channel to the first is overwritten, and 5 seconds later the core stops |
//!
//! `divide-memory` acts itself, where `./tench test crash` has broken the method that it calls: it asks the memory
//! server to divide a block, which no other program does.
//!
//! Such a program itself only waits. So a process that starts it from another core and waits for its end waits for a
//! reply that never comes.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::{String, ToString};

use tench::abi::layout::slot;
use tench::mem::Mem;
use tench::memory::{self, Window};
use tench::names::Names;
use tench::println;
use tench::procs::Procs;
use tench::sys::{Cap, CapAddress, Kernel, MapFlags, OWN_CSPACE};
use tench::time::{self, Duration};
use tench_monitor_interface::Monitor;

tench::entry!(main);

/// This core's kernel object, which the system description gives to the saboteur.
const KERNEL: Cap<Kernel> = Cap::new(slot::KERNEL);
/// Name of the saboteur.
const SABOTEUR: &str = "saboteur";
/// Name of the program that divides memory.
const DIVIDER: &str = "divide-memory";
/// Name of the monitor, which is ended.
const MONITOR: &str = "monitor";
/// Log2 of the bytes that are divided.
const BLOCK_BITS: u32 = 16;
/// Time for which a core goes on without its monitor: longer than others wait for it.
const SILENCE: Duration = Duration::from_secs(15);
/// Time for which a core goes on whose channel is broken.
const REST: Duration = Duration::from_secs(5);
/// Slot of the saboteur's frame of the channel, behind the memory server's authority.
const CHANNEL: CapAddress = CapAddress(slot::EXTRA.0 + 1);
/// Bytes of a line.
const LINE: usize = 64;
/// Interval at which the saboteur looks for programs.
const PERIOD: Duration = Duration::from_millis(20);

/// A workload of the saboteur.
type Action = fn() -> Result<(), String>;

/// Workloads by the name of the program that requests them.
const ACTIONS: [(&str, Action); 6] = [
    ("end-monitor", end_monitor),
    ("empty-monitor", empty_monitor),
    ("end-slowly", end_slowly),
    ("end-kernel", end_kernel),
    ("end-shell", end_shell),
    ("break-channel", break_channel),
];

fn main() -> Result<(), String> {
    let is_called = |name| tench::args().next().is_some_and(|path| path.ends_with(name));
    if is_called(SABOTEUR) {
        return lie_in_wait();
    }
    if is_called(DIVIDER) {
        return divide_memory();
    }
    // Until the core is gone.
    time::sleep(Duration::from_secs(3600));
    println!("nobody has ended this core");
    Ok(())
}

fn lie_in_wait() -> Result<(), String> {
    if KERNEL.machine().map_err(|error| error.to_string())?.core == 0 {
        return Ok(());
    }
    loop {
        for (name, action) in ACTIONS {
            if Procs::STANDARD.find(name, 0).is_ok() {
                action()?;
            }
        }
        time::sleep(PERIOD);
    }
}

/// Returns the process number of this core's monitor.
fn monitor() -> Result<u64, String> {
    Procs::STANDARD.find(MONITOR, 0).map_err(|failure| failure.to_string())
}

fn end_monitor() -> Result<(), String> {
    Procs::STANDARD.kill(monitor()?).map_err(|failure| failure.to_string())
}

fn empty_monitor() -> Result<(), String> {
    let authority = Mem::at(Cap::new(slot::EXTRA));
    authority.close_account(monitor()?).map(drop).map_err(|failure| failure.to_string())
}

fn end_slowly() -> Result<(), String> {
    empty_monitor()?;
    time::sleep(SILENCE);
    end_kernel()
}

/// Ends the shell. The requesting program ends as well, so that this happens once.
fn end_shell() -> Result<(), String> {
    let slot = memory::take_slot().map_err(|error| error.to_string())?;
    let found = Names::STANDARD.look_up(Monitor::NAME, slot).map_err(|failure| failure.to_string())?;
    let monitor = Monitor::at(found);
    let killed = monitor.find("shell", 0).and_then(|process| monitor.kill(process));
    killed.map_err(|failure| failure.to_string())?;
    found.delete().map_err(|error| error.to_string())?;
    memory::free_slot(slot);
    println!("the first core's shell has ended");
    let asked = Procs::STANDARD.find("end-shell", 0);
    asked.and_then(|asked| Procs::STANDARD.kill(asked)).map_err(|failure| failure.to_string())
}

/// Breaks the channel. The monitor goes on, and so do all other processes here.
fn break_channel() -> Result<(), String> {
    let bits = OWN_CSPACE.identify_at(CHANNEL).map_err(|error| error.to_string())?.size_bits;
    let flags = MapFlags::READ | MapFlags::WRITE;
    let channel = Window::new(Cap::new(CHANNEL), bits, flags).map_err(|error| error.to_string())?;
    // The second half is this core's, and its first line says what this core has received.
    let half = channel.size() / 2;
    (half + LINE..channel.size()).step_by(size_of::<u64>()).for_each(|offset| channel.write64(offset, u64::MAX));
    time::sleep(REST);
    end_kernel()
}

/// Divides a block. The halves belong to this process, and go with it.
fn divide_memory() -> Result<(), String> {
    let [slot, half] = [memory::take_slot(), memory::take_slot()].map(|slot| slot.map_err(|error| error.to_string()));
    let block = Mem::STANDARD.allocate(BLOCK_BITS, slot?).map_err(|failure| failure.to_string())?;
    block.untyped.split(half?).map_err(|error| error.to_string())?;
    let half = Mem::STANDARD.divide(block.number).map_err(|failure| failure.to_string())?;
    println!("a block of {} bytes was divided into two of {}", 1u64 << BLOCK_BITS, 1u64 << half.size_bits);
    Ok(())
}

fn end_kernel() -> Result<(), String> {
    Err(KERNEL.power_off(1).to_string())
}
