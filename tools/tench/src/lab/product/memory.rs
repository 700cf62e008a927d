//! Costs of memory: physical, address spaces, heaps, page faults.

use crate::lab::reference;
use crate::lab::support::plot::{BLUE, GREEN, ORANGE, PURPLE, Panel, Plot, Shape};
use crate::lab::support::{Column, Experiment, Measured, USUAL};

/// The manager of physical memory.
pub const MM: Experiment = Experiment {
    name: "mm",
    title: "Allocating and freeing physical memory, by the number of free extents",
    targets: reference::MM_TARGETS,
    plots: mm,
    ..USUAL
};

/// Memory on demand.
pub const FAULT: Experiment = Experiment {
    name: "fault",
    title: "Pages that come when they are touched: by upcall, from an external pager, and copied on write",
    targets: reference::FAULT_TARGETS,
    ..USUAL
};

/// Address spaces.
pub const PAGING: Experiment = Experiment {
    name: "paging",
    title: "Address spaces: reserving, mapping, unmapping, and how that grows with the number of regions",
    targets: reference::PAGING_TARGETS,
    plots: paging,
    ..USUAL
};

/// The heap.
pub const HEAP: Experiment = Experiment {
    name: "heap",
    title: "What the heap asks of the system, and what an allocation costs",
    unit: "requests, instructions, KiB",
    columns: &[Column { title: "R0", values: reference::HEAP_R0 }],
    targets: reference::HEAP_TARGETS,
    plots: heap,
    ..USUAL
};

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
