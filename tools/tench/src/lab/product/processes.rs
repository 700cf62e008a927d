//! Costs of processes and of requests between them, and what must not be left of them.

use crate::lab::reference;
use crate::lab::support::plot::{BLUE, GREEN, ORANGE, PURPLE, Panel, Plot, Shape};
use crate::lab::support::{Column, Experiment, Measured, USUAL};

/// Random clients.
pub const SOAK: Experiment = Experiment {
    name: "soak",
    title: "Random clients that come, take, give back and are killed: whether all memory comes back",
    unit: "rounds, bytes",
    endless: true,
    ..USUAL
};

/// Processes that are started and ended.
pub const SPAWN_KILL: Experiment = Experiment {
    name: "spawn-kill",
    title: "Processes that are started and ended in every way and at every moment: whether anything is left of them",
    unit: "cycles, bytes",
    endless: true,
    ..USUAL
};

/// Locks.
pub const THREADS: Experiment = Experiment {
    name: "threads",
    title: "A shared counter with turn-taking, by number of threads: locks of the process, of a server, of two processes",
    columns: &[Column { title: "R2, cycles", values: reference::THREADS_R2 }],
    targets: reference::THREADS_TARGETS,
    plots: threads,
    ..USUAL
};

/// Strings and memory from a server.
pub const RPC: Experiment = Experiment {
    name: "rpc",
    title: "Requests to another process: strings, and memory beside one's own, beside R0's figures 15 and 16",
    columns: &[Column { title: "R0, µs", values: reference::RPC_R0 }],
    targets: reference::RPC_TARGETS,
    plots: rpc,
    ..USUAL
};

/// One connection for many threads.
pub const CONTENTION: Experiment = Experiment {
    name: "contention",
    title: "Many threads of a process over one connection: calls with replies at once, in turn, and out of order",
    unit: "instructions, calls",
    targets: reference::CONTENTION_TARGETS,
    plots: contention,
    ..USUAL
};

/// The cost of a process.
pub const SPAWN: Experiment = Experiment {
    name: "spawn",
    title: "What a process costs, by the number of processes: by the process server, and by the caller itself",
    columns: &[Column { title: "Barrelfish", values: reference::SPAWN_BARRELFISH }],
    targets: reference::SPAWN_TARGETS,
    plots: spawn,
    ..USUAL
};

/// Draws instructions for each increment by the number of threads.
fn threads(_: &Measured) -> Vec<Plot> {
    let kinds = [
        ("local", "in the address space", BLUE),
        ("shared", "shared by two processes", GREEN),
        ("server", "through a server", ORANGE),
    ];
    let empty = Panel::new("threads", "instructions for each increment").log_x();
    let panel = kinds.into_iter().fold(empty, |panel, (series, label, colour)| {
        panel.line(series, label, colour).marks(series, "", colour, Shape::Dot)
    });
    vec![Plot::new("plot", "A shared counter with turn-taking").with(panel)]
}

/// Draws R0's figures 15 and 16.
fn rpc(_: &Measured) -> Vec<Plot> {
    let kinds =
        [("16", "16 B", BLUE), ("128", "128 B", GREEN), ("1024", "1,024 B", ORANGE), ("65536", "64 KiB", PURPLE)];
    let empty = Panel::new("instructions", "percent of the requests that cost at most so much").log_x();
    let strings = kinds.into_iter().fold(empty, |panel, (size, label, colour)| {
        let panel = panel.steps(format!("string_{size}"), label, colour, false);
        panel.steps(format!("echo_{size}"), format!("{label}, there and back"), colour, true)
    });
    let memory = Panel::new("capability", "instructions, mean of 50").line("ram_local", "in the process", BLUE).line(
        "ram_remote",
        "from the memory server",
        ORANGE,
    );
    vec![
        Plot::new("figure-15", "A string to another process").with(strings),
        Plot::new("figure-16", "4 KiB of memory, 7,000 times").with(memory),
    ]
}

/// Draws instructions of a call, and the threads' difference, by the number of threads.
fn contention(_: &Measured) -> Vec<Plot> {
    let kinds = [("at_once", "at once", BLUE), ("turns", "in turn", GREEN), ("together", "last first", ORANGE)];
    let calls = kinds.into_iter().fold(Panel::new("threads", "instructions for each call").log_x(), |panel, kind| {
        let (series, label, colour) = kind;
        panel.line(series, label, colour).marks(series, "", colour, Shape::Dot)
    });
    let spread = Panel::new("threads", "calls from the slowest to the fastest").log_x();
    let spread = spread.line("spread", "in turn", GREEN).marks("spread", "", GREEN, Shape::Dot);
    vec![Plot::new("plot", "Many threads over one connection").with(calls).with(spread)]
}

/// Draws R0's figures 13 and 17, on to 1,000 processes, and the ends of processes.
fn spawn(_: &Measured) -> Vec<Plot> {
    let panel = |title: &str, kinds: [(&str, &str); 2]| {
        let colours = [BLUE, ORANGE];
        let empty = Panel::new("processes", title).log_x();
        kinds.into_iter().zip(colours).fold(empty, |panel, ((series, label), colour)| panel.line(series, label, colour))
    };
    let plot = Plot::new("plot", "Processes by the number of processes that there are");
    let (server, own) = ("by the process server", "by the caller itself");
    vec![
        plot.with(panel("instructions to spawn one", [("rpc", server), ("local", own)]))
            .with(panel("instructions to end one", [("kill", server), ("local_end", own)])),
    ]
}
