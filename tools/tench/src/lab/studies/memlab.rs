//! The command `./tench memlab`, which replays allocation traces on this machine, with the code of the memory server.

use std::path::Path;
use std::str::FromStr;

use miette::{Result, miette};
use serde_json::json;
use tench_slabs::{Error, Options, Outcome, Policy, STANDARD_STATIC_SLABS, Slabs, Trace, TraceSource, replay};

use crate::cli::{MemlabCommand, ReplayOptions};
use crate::lab::studies::slabs::figures;
use crate::lab::support::{format_number, number};
use crate::workspace;

/// Runs a command of the memory lab.
pub fn run(command: &MemlabCommand) -> Result<u8> {
    match command {
        MemlabCommand::Replay(options) => {
            let outcome = replay_file(options)?;
            if options.json { println!("{}", json_line(&outcome)) } else { print!("{}", for_people(&outcome)) }
        }
        MemlabCommand::Policies => {
            for policy in Policy::ALL {
                let standard = if policy == Policy::default() { " (the default)" } else { "" };
                println!("{:19} {}{standard}", policy.name(), summary(policy));
            }
        }
    }
    Ok(0)
}

/// Describes a policy in a line.
const fn summary(policy: Policy) -> &'static str {
    match policy {
        Policy::NextFitGuessing => "from the slab of the last success on, trying: each wrong guess is a failed retype",
        Policy::NextFit => "the same with a ledger, so that nothing is tried in vain",
        Policy::FirstFit => "the first slab with room, the largest first",
        Policy::BestFit => "the slab with the least left above the objects",
        Policy::WorstFit => "the slab with the most left",
        Policy::BestFitAlignment => "the least left, where what is skipped for alignment counts too",
        Policy::Segregated => "objects of a size together, apart from others",
        Policy::Buddy => "the smallest block of a power of two that holds the objects",
    }
}

fn replay_file(options: &ReplayOptions) -> Result<Outcome> {
    let path = options.file.display();
    let trace = Trace::parse(&workspace::read_file(&options.file)?).map_err(|damage| miette!("{path}: {damage}"))?;
    let policy = match &options.policy {
        Some(name) => parse_policy(name)?,
        None => Policy::default(),
    };
    let slabs = match &options.slabs {
        Some(file) => read_slabs(file)?,
        None => Slabs::standard(),
    };
    let options = Options { slabs, lifted: options.lifted, ..Options::new(policy) };
    let replay = replay(&mut TraceSource::new(&trace), &options);
    Ok(replay.map_err(|error| miette!("{path}: the trace cannot be replayed: {}", reason(error)))?.outcome)
}

/// Returns the reason why a trace cannot be replayed.
const fn reason(error: Error) -> &'static str {
    match error {
        Error::BadBundle => "it asks for what no object can be",
        Error::OutOfMemory => "there is no room",
        Error::NoMetadata => "this machine has no memory for the metadata",
        Error::Refused => "the ledger and the model of the kernel disagree",
        Error::NoSuchObject => "it frees what is not there",
        Error::InUse => "the slabs are in use",
        Error::BadSlab => "a slab is not a power of two in size",
    }
}

fn parse_policy(name: &str) -> Result<Policy> {
    let names = || Policy::ALL.map(Policy::name).join(", ");
    Policy::from_str(name).map_err(|()| miette!(help = format!("allowed: {}", names()), "there is no policy {name}"))
}

/// Reads a file of slabs: a size in bytes a line; comments begin with `#`.
fn read_slabs(path: &Path) -> Result<Slabs> {
    let text = workspace::read_text(path)?;
    let mut sizes = parse_slabs(&text).map_err(|error| miette!("{}: {error}", path.display()))?;
    sizes.sort_by_key(|size| std::cmp::Reverse(*size));
    Slabs::with_sizes(&sizes, &STANDARD_STATIC_SLABS)
        .map_err(|error| miette!("{}: these slabs cannot be used: {}", path.display(), reason(error)))
}

const LARGEST_SLAB: u64 = 1 << 40;

/// Returns the sizes, in the order of the file.
fn parse_slabs(text: &str) -> std::result::Result<Vec<u64>, String> {
    let mut sizes = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            continue;
        }
        let allowed = "a line has one size in bytes: a power of two from 16 to 1099511627776";
        match text.parse::<u64>() {
            Ok(size) if size.is_power_of_two() && (tench_slabs::MIN_SIZE..=LARGEST_SLAB).contains(&size) => {
                sizes.push(size);
            }
            Ok(_) => return Err(format!("line {line}: a slab of {text} bytes cannot be; {allowed}")),
            Err(_) => return Err(format!("line {line}: \"{text}\" is not a size; {allowed}")),
        }
    }
    if sizes.is_empty() { Err("there is no slab in it; write one size a line".to_owned()) } else { Ok(sizes) }
}

/// Returns the figures as one line of JSON: bytes, and counts.
fn json_line(outcome: &Outcome) -> String {
    let fields: serde_json::Map<_, _> =
        figures(outcome).into_iter().map(|(name, value)| (name.to_owned(), number(value))).collect();
    json!(fields).to_string()
}

/// Returns the figures as a table.
fn for_people(outcome: &Outcome) -> String {
    let mean = |hundredths: u64| hundredths as f64 / 100.0;
    let (peaks, means, counts) = (&outcome.peaks, &outcome.means, &outcome.figures);
    let rows = [
        ("lost to the watermark", peaks.watermark, means.watermark),
        ("lost to alignment", peaks.alignment, means.alignment),
        ("lost in all", peaks.total, means.total),
        ("free below the highest objects", peaks.gaps, means.gaps),
        ("in use", peaks.live, means.live),
    ];
    let mut text = format!("{:30} {:>12} {:>14}\n", "bytes", "at most", "on average");
    for (name, peak, average) in rows {
        text += &format!("{name:30} {:>12} {:>14}\n", format_number(peak as f64), format_number(mean(average)));
    }
    for (name, count) in [
        ("requests", outcome.requests),
        ("slab resets", counts.resets),
        ("out of memory", counts.out_of_memory),
        ("failed retypes", counts.failed_retypes),
    ] {
        text += &format!("{name:30} {:>12}\n", format_number(count as f64));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replayed(trace: &str, policy: Policy) -> Outcome {
        let trace = Trace::parse(trace.as_bytes()).unwrap();
        replay(&mut TraceSource::new(&trace), &Options::new(policy)).unwrap().outcome
    }

    #[test]
    fn json_has_exactly_these_keys() {
        let outcome = replayed("alloc 1 4096\nalloc 1 64\nalloc 1 512\nalloc 1 256\n", Policy::BestFit);
        let json: serde_json::Value = serde_json::from_str(&json_line(&outcome)).unwrap();
        let expected = json!({
            "peak_watermark": 0, "peak_align": 192, "peak_total": 192,
            "avg_watermark": 0, "avg_align": 48, "avg_total": 48,
            "resets": 0, "oom": 0, "failed_retypes": 0,
        });
        assert_eq!(json, expected);
        assert!(for_people(&outcome).contains("lost to alignment                       192             48\n"));
    }

    #[test]
    fn an_unknown_policy_names_those_that_there_are() {
        let error = parse_policy("fastest").unwrap_err();
        assert_eq!(error.to_string(), "there is no policy fastest");
        let help = error.help().unwrap().to_string();
        assert!(Policy::ALL.into_iter().all(|policy| help.contains(policy.name())), "{help}");
        for policy in Policy::ALL {
            assert_eq!(parse_policy(policy.name()).unwrap(), policy);
        }
    }

    #[test]
    fn files_of_slabs_are_read() {
        assert_eq!(parse_slabs("# two\n4096\n\n 16 # small\n").unwrap(), [4096, 16]);
        let bad = [
            ("4096\n100\n", "line 2: a slab of 100 bytes"),
            ("4096 16\n", "line 1: \"4096 16\" is not a size"),
            ("8\n", "line 1: a slab of 8 bytes"),
            ("1K\n", "line 1: \"1K\" is not a size"),
            ("# nothing\n", "there is no slab"),
        ];
        for (text, beginning) in bad {
            let error = parse_slabs(text).unwrap_err();
            assert!(error.starts_with(beginning), "{error}");
        }
    }

    #[test]
    fn files_that_are_missing_or_damaged_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("bad.trace"), "alloc 1 16\nalloc 1 17\n").unwrap();
        std::fs::write(path("good.trace"), "alloc 1 16\nfree 0\n").unwrap();
        let options =
            |file: &str| ReplayOptions { file: path(file), policy: None, slabs: None, lifted: false, json: true };
        let error = replay_file(&options("bad.trace")).unwrap_err().to_string();
        assert!(error.contains("bad.trace: line 2: ") && error.contains("powers of two"), "{error}");
        assert!(replay_file(&options("none.trace")).unwrap_err().to_string().contains("none.trace"));
        let slabs = ReplayOptions { slabs: Some(path("bad.trace")), ..options("good.trace") };
        assert!(replay_file(&slabs).unwrap_err().to_string().contains("bad.trace: line 1: "));
        assert_eq!(replay_file(&options("good.trace")).unwrap().figures.resets, 1);
    }
}
