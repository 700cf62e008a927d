//! The lab's measuring program. `./tench lab NAME` boots this program in the shell's place with `NAME` as its argument,
//! and reads from the serial port lines of the form
//!
//! ```text
//! figure: KEY VALUE            one number
//! sample: SERIES X Y           a point of a curve
//! values: SERIES X Y Y Y …     points of a curve at X, X + 1, X + 2, …
//! text: SERIES X TEXT          words at X, for a table
//! note: TEXT                   what a reader of the log should know
//! ```
//! | name | module | what it measures |
//! |---|---|---|
//! | `ipc` | [`ipc`] | the kernel's paths, between two address spaces |
//! | `srr` | [`srr`] | Send-Receive-Reply of the library of the same name |
//! | `mm` | [`mm`] | the memory manager's library |
//! | `slabs-latency` | [`slabs`] | bundles of objects, by policy |
//! | `delete-siblings` | [`siblings`] | deleting one of many objects made of one untyped |
//! | `fault` | [`fault`] | page faults of memory on demand |
//! | `paging` | [`paging`] | address spaces: regions, mappings, how costs grow |
//! | `heap` | [`heap`] | requests of the heap to the system |
//! | `stubs` | [`stubs`] | generated stubs, bare calls and the message builder |
//! | `threads` | [`threads`] | a shared counter with turn-taking, by locks |
//! | `rpc` | [`rpc`] | strings and memory from another process |
//! | `contention` | [`contention`] | many threads over one connection |
//! | `isolation` | [`isolation`] | deadlines beside a thread that overruns |
//! | `spawn` | [`spawn`] | what a process costs, by the number of processes |
//! | `latency` | [`latency`] | lateness of a thread that waits for the timer, beside three loads |
//! | `latency-model` | [`latency_model`] | interrupts-off intervals, and how late the kernel takes interrupts |
//! | `cores` | [`cores`] | channels, programs and work on several cores |
//! | `scale` | [`scale`] | operations beside 10⁶ capabilities and 10⁵ threads |
//! | `syscall` | [`linux`] | calls, faults and signals of Linux programs |
//! | `pthreads` | [`linux`] | POSIX threads of Linux programs |
//! | `lmbench` | [`linux`] | Debian's lmbench |
//! | `boot` | [`boot`] | instructions until here |
//! | `adversary` | [`adversary`] | interrupts-off intervals, whatever a program does |
//! | `spawn-kill` | [`spawn_kill`] | no figures: processes that are started and ended, and whether anything is left |
//! | `soak` | [`soak`] | no figures: random clients, and whether all memory comes back |
//!
//! [`support`] and [`bare_threads`] know no experiment, `product` has those about what the system needs, and `studies`
//! those that repeat the references.
//!
//! docs/manual/lab.md explains the figures. When it is done, the program powers off, with status 0 only if everything
//! was measured.

#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

// On the host the program is only type-checked, and the parts that decide are tested.
#[cfg_attr(not(target_os = "none"), allow(dead_code))]
mod bare_threads;
#[cfg_attr(not(target_os = "none"), allow(dead_code))]
mod product;
#[cfg_attr(not(target_os = "none"), allow(dead_code))]
mod studies;
#[cfg_attr(not(target_os = "none"), allow(dead_code))]
mod support;

use alloc::format;
use alloc::string::String;

use product::{
    adversary, boot, contention, cores, fault, heap, ipc, isolation, latency, linux, mm, paging, rpc, scale, siblings,
    soak, spawn, spawn_kill, stubs, threads,
};
use studies::{latency_model, slabs, srr};
use support::KERNEL;
use tench::console::Console;
use tench::println;

#[cfg(target_os = "none")]
tench::entry!(run);

/// Measures what the first argument names.
fn measure() -> Result<(), String> {
    match tench::args().nth(1) {
        Some("ipc") => ipc::run(),
        Some("srr") => srr::run(),
        Some("delete-siblings") => siblings::run(),
        Some("fault") => fault::run(),
        Some("paging") => paging::run(),
        Some("heap") => heap::run(),
        Some("mm") => mm::run(),
        Some("slabs-latency") => slabs::run(),
        Some("stubs") => stubs::run(),
        Some("threads") => threads::run(),
        Some("rpc") => rpc::run(),
        Some("contention") => contention::run(),
        Some("isolation") => isolation::run(),
        Some("spawn") => spawn::run(),
        Some("latency") => latency::run(),
        Some("latency-model") => latency_model::run(),
        Some("scale") => scale::run(),
        Some("syscall" | "pthreads" | "lmbench") => linux::run(),
        Some("boot") => boot::run(),
        Some("cores") => cores::run(),
        Some("adversary") => adversary::run(),
        Some("soak") => soak::run(),
        Some("spawn-kill") => spawn_kill::run(),
        Some(name) => Err(format!("no experiment is called {name}; docs/manual/lab.md lists them")),
        None => Err("an argument must name the experiment; docs/manual/lab.md lists them".into()),
    }
}

/// Runs the program as a client of an experiment that measures from several processes; returns `None` if it is none.
fn client() -> Option<Result<(), String>> {
    match tench::args().nth(1)? {
        "fault-parent" => Some(fault::parent()),
        "fault-child" => Some(fault::child()),
        "threads-server" => Some(threads::serve()),
        "threads-child" => Some(threads::child()),
        "rpc-server" => Some(rpc::serve()),
        "contention-server" => Some(contention::serve()),
        latency::PEER => Some(latency::peer()),
        "soak-client" => Some(soak::client()),
        "cores-child" => Some(cores::child()),
        "cores-partner" => Some(cores::partner()),
        "cores-holder" => Some(cores::holder()),
        "spawn-kill-child" => Some(spawn_kill::child()),
        _ => None,
    }
}

/// Measures, and powers the machine off.
fn run() {
    if let Some(result) = client() {
        let code = result.map_or_else(
            |problem| {
                println!("bench: {}: {problem}", tench::args().nth(1).unwrap_or_default());
                1
            },
            |()| 0,
        );
        tench::exit(code);
    }
    // The measurements below read the counters directly.
    if let Err(error) = KERNEL.let_count(true) {
        println!("bench: cannot count: {error}");
    }
    let status = match measure() {
        Ok(()) => 0,
        Err(problem) => {
            println!("bench: {}: {problem}", tench::args().nth(1).unwrap_or_default());
            1
        }
    };
    // If the output cannot be shown, the machine need not stay on for it.
    let _ = Console::STANDARD.drain();
    let error = KERNEL.power_off(status);
    println!("bench: cannot power off: {error}");
}

#[cfg(not(target_os = "none"))]
fn main() {
    run();
}
