//! The kinds of pictures that several experiments draw.

use crate::lab::support::plot::{BLUE, GREEN, ORANGE, PURPLE, Panel, Plot, RED, Shape};
use tench_slabs::STANDARD_SLABS;

/// A run in a picture: the prefix of its series, and its name.
pub type Run<'a> = (&'a str, &'a str);

/// Draws two runs of a workload over the bytes requested: memory in use with marks where there was none left, both
/// kinds of loss, and slabs that became empty.
pub fn profile(file: &str, title: &str, (first, first_name): Run, (second, second_name): Run) -> Plot {
    let panel = |y: &str| Panel::new("", format!("{y}, KiB")).units(1024.0, 1024.0).height(180);
    let lines = |y: &str, name: &str| {
        panel(y).line(format!("{first}_{name}"), first_name, BLUE).dashed(
            format!("{second}_{name}"),
            second_name,
            ORANGE,
        )
    };
    let used = panel("in use")
        .area(format!("{first}_live"), "", BLUE)
        .line(format!("{first}_live"), first_name, BLUE)
        .dashed(format!("{second}_live"), second_name, ORANGE)
        .marks(format!("{first}_oom"), format!("out of memory, {first_name}"), RED, Shape::Cross)
        .marks(format!("{second}_oom"), format!("out of memory, {second_name}"), ORANGE, Shape::Plus);
    let resets = Panel::new("requested in all, KiB", "slab resets so far")
        .units(1024.0, 1.0)
        .height(200)
        .steps(format!("{first}_resets"), first_name, BLUE, false)
        .steps(format!("{second}_resets"), second_name, ORANGE, true);
    let lost_to_watermark = lines("lost to the watermark", "watermark");
    Plot::new(file, title).with(used).with(lost_to_watermark).with(lines("lost to alignment", "align")).with(resets)
}

/// Draws the costs of requests and returns over the bytes requested: memory in use, instructions of each request with
/// marks where there was no room and where retypes failed (larger for more failures), instructions of each return.
pub fn latency(figure: &str, chance: &str, (first, first_name): Run, (second, second_name): Run) -> Plot {
    let both = |panel: Panel, what: &str| {
        panel.line(format!("{what}_{first}_{chance}"), first_name, BLUE).dashed(
            format!("{what}_{second}_{chance}"),
            second_name,
            ORANGE,
        )
    };
    let used = both(Panel::new("", "in use, KiB").units(1024.0, 1024.0).height(200), "live");
    let requests = both(Panel::new("", "instructions per request").units(1024.0, 1.0).log_y().height(330), "alloc")
        .marks(format!("full_{first}_{chance}"), format!("no room, {first_name}"), RED, Shape::Cross)
        .marks(format!("full_{second}_{chance}"), format!("no room, {second_name}"), PURPLE, Shape::Plus)
        .counted_marks(
            format!("failed_{second}_{chance}"),
            format!("failures_{second}_{chance}"),
            "failed retypes",
            ORANGE,
            Shape::Ring,
        );
    let returns = Panel::new("requested in all, KiB", "instructions per return").units(1024.0, 1.0).log_y().height(260);
    let title = format!("Figure {figure}: latency of requests and returns, {chance} % chance to free");
    Plot::new(format!("figure-{figure}"), title).with(used).with(requests).with(both(returns, "free"))
}

/// Draws the slabs at four moments, as bars: the first run's filled, the second's hatched.
pub fn snapshots(file: &str, title: &str, (first, first_name): Run, (second, second_name): Run) -> Plot {
    let mut plot = Plot::new(file, title);
    for percent in [25, 50, 75, 100] {
        let names = STANDARD_SLABS.iter().map(|bytes| match bytes {
            bytes if *bytes >= 1024 => format!("{}K", bytes / 1024),
            bytes => bytes.to_string(),
        });
        let mut panel = Panel::of_categories(names, format!("% of the slab, after {percent} %")).height(190);
        // Later parts cover earlier ones, so that each colour is the part it adds.
        let parts = [
            ("watermark", "lost to the watermark", RED),
            ("align", "lost to alignment", ORANGE),
            ("live", "in use", GREEN),
        ];
        for (part, label, colour) in parts {
            let runs = [(first, first_name, 0), (second, second_name, 1)];
            for (run, name, place) in runs {
                let series = format!("{run}_{percent}_{part}");
                panel = panel.bars(series, format!("{label}, {name}"), colour, place == 1, (place, 2));
            }
        }
        plot = plot.with(panel);
    }
    plot
}

/// Draws distributions over seeds: a panel for each workload, a box for each run.
pub fn distributions(
    file: &str,
    title: &str,
    figure: &str,
    unit: (&str, f64),
    workloads: &[u32],
    runs: &[Run],
) -> Plot {
    let mut plot = Plot::new(file, title);
    for workload in workloads {
        let names = runs.iter().map(|(_, name)| *name);
        let mut panel = Panel::of_categories(names, format!("{}, {workload} %", unit.0)).units(1.0, unit.1).height(230);
        for (place, (run, _)) in runs.iter().enumerate() {
            let series = format!("{run}_seeds_{figure}_{workload}");
            let colour = match *run {
                "best" => BLUE,
                "next" => ORANGE,
                _ => GREEN,
            };
            panel = panel.distribution(series, "", colour, *run == "next", (place, 0.0));
        }
        plot = plot.with(panel);
    }
    plot
}
