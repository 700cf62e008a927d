//! Requests made in the running system, with the figures that a replay on the host has.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tench::mem::Failure;
use tench::mem::protocol::Error;
use tench::mem::slabs::{self, Descriptor as Wanted, Figures as ServerFigures};
use tench::{fs, println};
use tench_abi::Kind;
use tench_memctl::command::Conditions;
use tench_slabs::{
    Descriptor, Figures, Lifetime, Meter, Outcome, Policy, Random, RandomSettings, Source, Step, StepKind, Trace,
    TraceSource,
};

use crate::{SLABS, text};

/// Size in bytes of the largest trace that is read.
const MAX_FILE: u64 = 1 << 20;

/// Replays a file.
pub fn file(path: &str, conditions: &Conditions) -> Result<(), String> {
    let trace = Trace::parse(&read(path)?).map_err(|damage| format!("{path}, {damage}"))?;
    play(&mut TraceSource::new(&trace), conditions)
}

/// Makes random requests.
pub fn random(settings: RandomSettings, conditions: &Conditions) -> Result<(), String> {
    play(&mut Random::new(settings), conditions)
}

/// Reads a whole file.
fn read(path: &str) -> Result<Vec<u8>, String> {
    let said = |error: tench::io::Error| format!("{path}: {error}");
    if fs::status(path).map_err(said)?.size > MAX_FILE {
        return Err(format!("{path} is larger than {MAX_FILE} bytes"));
    }
    fs::read(path).map_err(said)
}

/// Makes the requests of a source, and prints the losses.
fn play(source: &mut dyn Source, conditions: &Conditions) -> Result<(), String> {
    let (code, was_lifted) = SLABS.policy().map_err(text)?;
    if SLABS.figures().map_err(text)?.objects > 0 {
        return Err(
            "objects live in the slabs; end the programs that have some, so that figures can be compared".into()
        );
    }
    let policy = conditions.policy.map_or(code, Policy::code);
    SLABS.set_policy(policy, conditions.lifted).map_err(text)?;
    let played = requests(source);
    // Restores the policy, also after an error.
    SLABS.set_policy(code, was_lifted).map_err(text)?;
    show(&played?, conditions.json);
    Ok(())
}

/// Makes the requests.
fn requests(source: &mut dyn Source) -> Result<Outcome, String> {
    let mut meter = Meter::default();
    let mut step = Step::default();
    let mut bundles = BTreeMap::new();
    let mut number = 0_u32;
    let mut figures = SLABS.figures().map_err(text)?;
    while source.next(&mut step) {
        match step.kind {
            StepKind::Alloc => {
                let wanted = step.bundle.iter().map(untyped).collect::<Vec<_>>();
                let lifetime = match step.lifetime {
                    Lifetime::Dynamic => slabs::Lifetime::Dynamic,
                    Lifetime::Static => slabs::Lifetime::Static,
                };
                match SLABS.ask(lifetime, &wanted, None) {
                    Ok(granted) => {
                        bundles.insert(number, granted.number);
                        figures = granted.figures;
                        source.note_outcome(true);
                    }
                    Err(Failure::Refused(Error::OutOfMemory)) => {
                        figures = SLABS.figures().map_err(text)?;
                        source.note_outcome(false);
                    }
                    Err(failure) => return Err(text(failure)),
                }
            }
            StepKind::Free => {
                for number in &step.numbers {
                    if let Some(bundle) = bundles.remove(number) {
                        figures = SLABS.free(bundle).map_err(text)?;
                    }
                }
            }
            StepKind::Failed => {}
        }
        number += 1;
        meter.note(of(figures), figures.gaps);
    }
    for bundle in bundles.into_values() {
        SLABS.free(bundle).map_err(text)?;
    }
    Ok(meter.outcome())
}

/// Returns a request for objects of a size, as untyped memory.
fn untyped(descriptor: &Descriptor) -> Wanted {
    Wanted { kind: Kind::Untyped, size: descriptor.size.ilog2(), count: descriptor.count }
}

/// Returns the server's figures in the library's type.
const fn of(figures: ServerFigures) -> Figures {
    Figures {
        live: figures.live,
        objects: figures.objects,
        watermark_loss: figures.watermark_loss,
        alignment_loss: figures.align_loss,
        resets: figures.resets,
        failed_retypes: figures.failed_retypes,
        out_of_memory: figures.out_of_memory,
        requested: figures.requested,
    }
}

/// Prints a result.
fn show(outcome: &Outcome, json: bool) {
    if json {
        println!("{}", outcome.json());
        return;
    }
    let Outcome { requests, peaks, means, figures } = outcome;
    println!("{requests} requests, {} bytes requested", figures.requested);
    println!("             most bytes  mean bytes");
    for (name, most, mean) in [
        ("in use", peaks.live, means.live),
        ("watermark", peaks.watermark, means.watermark),
        ("alignment", peaks.alignment, means.alignment),
        ("both lost", peaks.total, means.total),
    ] {
        println!("{name:11}  {most:10}  {:7}.{:02}", mean / 100, mean % 100);
    }
    println!(
        "{} resets, {} times no room, {} failed retypes",
        figures.resets, figures.out_of_memory, figures.failed_retypes
    );
}
