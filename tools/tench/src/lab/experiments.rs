//! The register of experiments.

use std::collections::BTreeMap;
use std::path::PathBuf;

use miette::Result;

use super::measure::{Figures, Measured};
use super::plot::{BLUE, GREEN, GREY, ORANGE, PURPLE, Panel, Plot, Shape};
use super::reference::{self, Column, Sum};
use super::table::Table;
use super::{adversary, isolation, latency, model, slabs, stubs};
use crate::build::{Build, Kernel};
use crate::elf;
use crate::system::System;
use crate::workspace::{self, Workspace};

/// An experiment: what it boots, and what it is compared with.
pub struct Experiment {
    /// Name of the experiment, and the argument of the measuring program.
    pub name: &'static str,
    /// Title: one sentence.
    pub title: &'static str,
    /// Unit of the figures.
    pub unit: &'static str,
    /// System description that is booted, if there are runs.
    pub system: &'static str,
    /// Runs on the target, each with figures of its own; none if this tool computes everything.
    pub runs: &'static [Run],
    /// Function that computes results without a target.
    pub on_host: fn(&Workspace) -> Result<Measured>,
    /// Function that computes figures from what was built.
    pub from_build: fn(&System, &Build) -> Result<Figures>,
    /// Function that derives figures and curves from the measurements, when all runs are over.
    pub derive: fn(&mut Measured),
    /// Figures of other systems.
    pub columns: &'static [Column],
    /// Targets: the figure's key and the largest acceptable value.
    pub targets: &'static [(&'static str, f64)],
    /// Set if a missed target fails the tests, whatever is recorded.
    pub enforced: bool,
    /// Rows of the table that add figures up.
    pub sums: &'static [Sum],
    /// Set if the experiment can go on for ever, and is told for how long.
    pub endless: bool,
    /// Function that makes the pictures. By default there is `plot.svg`: a curve for each series, or a bar for each
    /// figure.
    pub plots: fn(&Measured) -> Vec<Plot>,
    /// Function that makes the tables, besides that of all figures.
    pub tables: fn(&Measured) -> Vec<Table>,
}

/// One boot of an experiment.
pub struct Run {
    /// Prefix of the keys of its figures.
    pub prefix: &'static str,
    /// Further arguments for the measuring program.
    pub arguments: &'static [&'static str],
    /// Optimisation of the programs.
    pub optimised: bool,
    /// Kernel that is booted.
    pub kernel: Kernel,
    /// Memory of the machine.
    pub memory: &'static str,
    /// Number of cores.
    pub cores: u32,
}

/// The usual boot.
pub const PLAIN: Run =
    Run { prefix: "", arguments: &[], optimised: true, kernel: Kernel::Usual, memory: "1G", cores: 1 };

/// Defaults of an experiment: one boot of the lab's system, and nothing to compare with.
pub const USUAL: Experiment = Experiment {
    name: "",
    title: "",
    unit: "instructions",
    system: "lab",
    runs: &[PLAIN],
    on_host: |_| Ok(Measured::default()),
    from_build: |_, _| Ok(BTreeMap::new()),
    derive: |_| (),
    columns: &[],
    targets: &[],
    enforced: false,
    sums: &[],
    endless: false,
    plots: |_| Vec::new(),
    tables: |_| Vec::new(),
};

/// Every experiment.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "ipc",
        title: "What the kernel's paths cost, beside seL4's",
        columns: &[Column { title: "seL4", values: reference::SEL4 }],
        targets: reference::IPC_TARGETS,
        sums: reference::IPC_SUMS,
        ..USUAL
    },
    Experiment {
        name: "srr",
        title: "Send-Receive-Reply by message size (r: the receiver waits first, s: the sender does), beside choochoos",
        runs: &[PLAIN, Run { prefix: "unoptimised_", optimised: false, ..PLAIN }],
        columns: &[
            Column { title: "choochoos", values: reference::CHOOCHOOS },
            Column { title: "its µs", values: reference::CHOOCHOOS_MICROSECONDS },
        ],
        ..USUAL
    },
    Experiment {
        name: "mm",
        title: "Allocating and freeing physical memory, by the number of free extents",
        targets: reference::MM_TARGETS,
        plots: mm,
        ..USUAL
    },
    Experiment {
        name: "slabs-latency",
        title: "What a bundle of objects and its return cost, by policy and chance to free",
        plots: slabs::latency_plots,
        ..USUAL
    },
    Experiment {
        name: "delete-siblings",
        title: "Deleting one of many objects made of one untyped, and one of many copies, beside Barrelfish",
        columns: &[Column { title: "Barrelfish", values: reference::BARRELFISH_SIBLINGS }],
        plots: siblings,
        ..USUAL
    },
    Experiment {
        name: "fault",
        title: "Pages that come when they are touched: by upcall, from an external pager, and copied on write",
        targets: reference::FAULT_TARGETS,
        ..USUAL
    },
    Experiment {
        name: "slabs-random",
        title: "R1's random workloads under every policy: its tables 4.3 and 4.4",
        unit: "bytes",
        runs: &[],
        on_host: slabs::random::measure,
        columns: &[Column { title: "R1", values: slabs::reference::RANDOM }],
        plots: slabs::random::plots,
        tables: slabs::random::tables,
        ..USUAL
    },
    Experiment {
        name: "slabs-apps",
        title: "R1's applications, alone and together, under every policy: its table 4.5",
        unit: "bytes",
        runs: &[],
        on_host: slabs::apps::measure,
        columns: &[Column { title: "R1", values: slabs::reference::APPS }],
        plots: slabs::apps::plots,
        tables: slabs::apps::tables,
        ..USUAL
    },
    Experiment {
        name: "slabs-policies",
        title: "Every policy on every workload, with the watermark rule and without",
        unit: "bytes",
        runs: &[],
        on_host: slabs::policies::measure,
        plots: slabs::policies::plots,
        tables: slabs::policies::tables,
        ..USUAL
    },
    Experiment {
        name: "paging",
        title: "Address spaces: reserving, mapping, unmapping, and how that grows with the number of regions",
        targets: reference::PAGING_TARGETS,
        plots: paging,
        ..USUAL
    },
    Experiment {
        name: "heap",
        title: "What the heap asks of the system, and what an allocation costs",
        unit: "requests, instructions, KiB",
        columns: &[Column { title: "R0", values: reference::HEAP_R0 }],
        targets: reference::HEAP_TARGETS,
        plots: heap,
        ..USUAL
    },
    Experiment {
        name: "soak",
        title: "Random clients that come, take, give back and are killed: whether all memory comes back",
        unit: "rounds, bytes",
        endless: true,
        ..USUAL
    },
    Experiment {
        name: "spawn-kill",
        title: "Processes that are started and ended in every way and at every moment: whether anything is left of them",
        unit: "cycles, bytes",
        endless: true,
        ..USUAL
    },
    adversary::ADVERSARY,
    stubs::STUBS,
    Experiment {
        name: "cores",
        title: "Several cores: channels that poll and sleep, programs on another core, independent work, memory that is taken back",
        unit: "instructions, percent",
        runs: &[
            PLAIN,
            Run { arguments: &["remote"], cores: 2, ..PLAIN },
            Run { arguments: &["work"], cores: 8, ..PLAIN },
            Run { arguments: &["share"], cores: 8, ..PLAIN },
        ],
        targets: reference::CORES_TARGETS,
        plots: cores,
        ..USUAL
    },
    Experiment {
        name: "threads",
        title: "A shared counter with turn-taking, by number of threads: locks of the process, of a server, of two processes",
        columns: &[Column { title: "R2, cycles", values: reference::THREADS_R2 }],
        targets: reference::THREADS_TARGETS,
        plots: threads,
        ..USUAL
    },
    Experiment {
        name: "rpc",
        title: "Requests to another process: strings, and memory beside one's own, beside R0's figures 15 and 16",
        columns: &[Column { title: "R0, µs", values: reference::RPC_R0 }],
        targets: reference::RPC_TARGETS,
        plots: rpc,
        ..USUAL
    },
    Experiment {
        name: "contention",
        title: "Many threads of a process over one connection: calls with replies at once, in turn, and out of order",
        unit: "instructions, calls",
        targets: reference::CONTENTION_TARGETS,
        plots: contention,
        ..USUAL
    },
    Experiment {
        name: "isolation",
        title: "Deadlines beside a thread of the highest priority that overruns, with budgets and without",
        unit: "deadlines, percent",
        targets: reference::ISOLATION_TARGETS,
        enforced: true,
        plots: isolation::plots,
        tables: isolation::tables,
        ..USUAL
    },
    Experiment {
        name: "spawn",
        title: "What a process costs, by the number of processes: by the process server, and by the caller itself",
        columns: &[Column { title: "Barrelfish", values: reference::SPAWN_BARRELFISH }],
        targets: reference::SPAWN_TARGETS,
        plots: spawn,
        ..USUAL
    },
    Experiment {
        name: "boot",
        title: "Instructions until the system is up, and the sizes of what is booted in bytes",
        unit: "instructions, bytes",
        from_build: sizes,
        columns: &[Column { title: "seL4", values: reference::SEL4_BOOT }],
        targets: reference::BOOT_TARGETS,
        ..USUAL
    },
    latency::LATENCY,
    model::LATENCY_MODEL,
];

impl Experiment {
    /// Returns the system description that it boots.
    pub fn boots(&self) -> Option<&'static str> {
        (!self.runs.is_empty()).then_some(self.system)
    }

    /// Returns the path of the figures that are recorded with an installed compiler; those are what the pages quote.
    pub fn baseline(&self, workspace: &Workspace) -> PathBuf {
        workspace.root.join("lab/baseline").join(self.name).with_extension("json")
    }

    /// Returns whether figures have been recorded.
    pub fn has_baseline(&self, workspace: &Workspace) -> bool {
        self.baseline(workspace).is_file()
    }
}

/// Draws the mean and the most expensive deletion over the number of siblings.
fn siblings(_: &Measured) -> Vec<Plot> {
    let panel = |title: &str, prefix: &str| {
        let kinds = [
            ("delete_first", "notifications, oldest first", BLUE),
            ("delete_last", "notifications, newest first", ORANGE),
            ("delete_untyped_first", "untyped, oldest first", GREEN),
            ("delete_untyped_last", "untyped, newest first", PURPLE),
            ("delete_copy", "copies, newest first", GREY),
        ];
        let empty = Panel::new("siblings", title).log_x();
        kinds.into_iter().fold(empty, |panel, (series, label, colour)| {
            let series = format!("{prefix}{series}");
            panel.line(&series, label, colour).marks(&series, "", colour, Shape::Dot)
        })
    };
    let plot = Plot::new("plot", "Deleting one of many siblings");
    vec![plot.with(panel("instructions, mean", "")).with(panel("instructions, dearest", "worst_"))]
}

/// Draws the manager's cost by the number of free extents, and R0's two sequences.
fn mm(_: &Measured) -> Vec<Plot> {
    let kinds = [("alloc", "allocate", BLUE), ("free", "free", ORANGE), ("alloc_range", "allocate in a range", GREEN)];
    let by_extents = |title: &str, suffix: &str| {
        kinds.into_iter().fold(Panel::new("free extents", title).log_x(), |panel, (series, label, colour)| {
            let series = format!("{series}{suffix}");
            panel.line(&series, label, colour).marks(&series, "", colour, Shape::Dot)
        })
    };
    let in_order = |size: &str| {
        Panel::new("operation", format!("instructions, {size}"))
            .line(format!("alloc_{size}"), "allocate", BLUE)
            .dashed(format!("alloc_{size}_worst"), "the dearest of a few", BLUE)
            .line(format!("free_{size}"), "free", ORANGE)
            .dashed(format!("free_{size}_worst"), "the dearest of a few", ORANGE)
    };
    let plot = Plot::new("plot", "The memory manager among free extents");
    let sequences = Plot::new("sequences", "Blocks of one size, allocated and freed in order");
    vec![
        plot.with(by_extents("instructions, mean", "")).with(by_extents("instructions, dearest", "_worst")),
        sequences.with(in_order("4k")).with(in_order("4m")),
    ]
}

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

/// Draws round trips between cores by the number of requests in flight.
fn cores(_: &Measured) -> Vec<Plot> {
    let panel = |title: &str, kinds: Vec<(&str, &str, _)>| {
        let empty = Panel::new("requests in flight", title).log_x().log_y();
        kinds.into_iter().fold(empty, |panel, (series, label, colour)| {
            panel.line(series, label, colour).marks(series, "", colour, Shape::Dot)
        })
    };
    let polling = vec![("poll_7", "a line", BLUE), ("poll_64", "64 words", GREEN), ("poll_512", "4 KiB", ORANGE)];
    let sleeping =
        vec![("doorbell_7", "threads of a core, a line", BLUE), ("sleep_1", "by the monitors of two", ORANGE)];
    let plot = Plot::new("plot", "Round trips between cores");
    vec![
        plot.with(panel("instructions of each side, polling", polling))
            .with(panel("instructions of the machine, sleeping", sleeping)),
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

/// Draws R0's figures 7 to 10, and the costs by the number of regions.
fn paging(_: &Measured) -> Vec<Plot> {
    let sequence = |file: &str, title: &str, size: &str, first: (&str, &str), second: (&str, &str)| {
        let panel = |empty: Panel, suffix: &str| {
            [(first, BLUE), (second, ORANGE)].into_iter().fold(empty, |panel, ((series, label), colour)| {
                panel.line(format!("{series}_{size}{suffix}"), label, colour)
            })
        };
        let mean = panel(Panel::new("operation", "instructions, mean of a few"), "");
        let dearest = panel(Panel::new("operation", "instructions, dearest of them").log_y(), "_worst");
        Plot::new(file, title).with(mean).with(dearest)
    };
    let by_regions = |title: &str, suffix: &str| {
        let kinds = [("alloc", "reserve a page", BLUE), ("free", "free it", ORANGE), ("find", "find a region", GREEN)];
        kinds.into_iter().fold(Panel::new("regions", title).log_x(), |panel, (series, label, colour)| {
            let series = format!("{series}{suffix}");
            panel.line(&series, label, colour).marks(&series, "", colour, Shape::Dot)
        })
    };
    let (reserve, free) = (("alloc", "reserve"), ("free", "free"));
    let (map, unmap) = (("map", "reserve and map"), ("unmap", "unmap and free"));
    let growth = Plot::new("plot", "Address spaces by the number of regions");
    vec![
        growth.with(by_regions("instructions, mean", "")).with(by_regions("instructions, dearest", "_worst")),
        sequence("figure-7", "4 KiB reserved 8,000 times, and freed in order", "4k", reserve, free),
        sequence("figure-8", "4 KiB mapped 8,000 times, and unmapped in order", "4k", map, unmap),
        sequence("figure-9", "4 MiB reserved 400 times, and freed in order", "4m", reserve, free),
        sequence("figure-10", "4 MiB mapped 400 times, and unmapped in order", "4m", map, unmap),
    ]
}

/// Draws the costs of heap allocations, and the number of requests to the system meanwhile.
fn heap(_: &Measured) -> Vec<Plot> {
    let costs = Panel::new("allocation of 64 bytes", "instructions, mean of 256")
        .line("many", "allocate and touch", BLUE)
        .line("free_many", "free", ORANGE);
    let dearest = Panel::new("allocation of 64 bytes", "instructions, dearest of 256")
        .log_y()
        .line("many_worst", "allocate and touch", BLUE)
        .line("free_many_worst", "free", ORANGE);
    let asked = Panel::new("allocation of 64 bytes", "requests until then")
        .steps("requests", "for addresses", GREEN, false)
        .steps("blocks", "for memory", PURPLE, true);
    vec![Plot::new("plot", "32,768 allocations").with(costs).with(dearest).with(asked)]
}

/// Returns the size of the kernel's machine code, and whole sizes of init and the programs as they lie in the boot
/// archive.
fn sizes(system: &System, build: &Build) -> Result<Figures> {
    let laid_out = |path| -> Result<f64> { Ok(elf::lay_out(&workspace::read_file(path)?)?.len() as f64) };
    let mut figures = BTreeMap::new();
    figures.insert("kernel_text_bytes".to_owned(), elf::text_size(build.kernel(system)?)? as f64);
    figures.insert("init_bytes".to_owned(), laid_out(build.init(system)?)?);
    for program in &system.programs {
        figures.insert(format!("{}_bytes", program.name), laid_out(build.program(&program.origin)?)?);
    }
    Ok(figures)
}
