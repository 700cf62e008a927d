//! Controls the slabs of the memory server: sets them up, changes the policy, records and replays traces. For its
//! purpose see docs/manual/policies.md.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod replay;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tench::mem::Error as MemError;
use tench::mem::Failure;
use tench::mem::protocol::Error;
use tench::mem::slabs::{Slabs, TRACE_BYTES};
use tench::{print, println};
use tench_memctl::command::{Command, USAGE};
use tench_slabs::Policy;

tench::entry!(run);

/// The memory server's slabs.
const SLABS: Slabs = Slabs::STANDARD;

fn run() -> Result<(), String> {
    let words: Vec<&str> = tench::args().skip(1).collect();
    match Command::parse(&words)? {
        Command::Help => println!("{USAGE}"),
        Command::Status => status()?,
        Command::SetUp(dynamic, statics) => {
            let count = SLABS.set_up(&dynamic, &statics).map_err(text)?;
            println!("{count} slabs");
        }
        Command::TakeDown => SLABS.take_down().map_err(text)?,
        Command::ShowPolicy => {
            let (code, lifted) = SLABS.policy().map_err(text)?;
            for policy in Policy::ALL {
                let mark = if policy.code() == code { "*" } else { " " };
                println!("{mark} {policy}");
            }
            println!("watermark rule {}", if lifted { "lifted" } else { "kept" });
        }
        Command::SetPolicy(policy, lifted) => SLABS.set_policy(policy.code(), lifted).map_err(text)?,
        Command::Record(on) => {
            let bytes = SLABS.record(on).map_err(text)?;
            if !on {
                println!("{bytes} bytes recorded; memctl dump prints them");
            }
        }
        Command::Dump => dump()?,
        Command::Replay(path, conditions) => replay::file(&path, &conditions)?,
        Command::Random(settings, conditions) => replay::random(settings, &conditions)?,
        Command::Check => check()?,
    }
    Ok(())
}

/// Returns an error as text.
fn text(failure: Failure) -> String {
    failure.to_string()
}

/// Prints the slabs, the policy and the losses.
fn status() -> Result<(), String> {
    let (code, lifted) = SLABS.policy().map_err(text)?;
    let policy = Policy::from_code(code).map_or("?", Policy::name);
    println!("policy {policy}, watermark rule {}", if lifted { "lifted" } else { "kept" });
    println!("SLAB      SIZE  WATERMARK      LIVE  OBJECTS  ALIGNMENT  WATERMARKED  RESETS");
    let mut number = 0;
    loop {
        let ledger = match SLABS.ledger(number) {
            Ok(ledger) => ledger,
            Err(Failure::Refused(Error::NoSuchSlab)) => break,
            Err(failure) => return Err(text(failure)),
        };
        println!(
            "{number:4}  {:8}  {:9}  {:8}  {:7}  {:9}  {:11}  {:6}",
            1_u64 << ledger.size_bits,
            ledger.watermark,
            ledger.live,
            ledger.objects,
            ledger.align_loss,
            ledger.watermark_loss,
            ledger.resets
        );
        number += 1;
    }
    let figures = SLABS.figures().map_err(text)?;
    println!(
        "{} bytes in {} objects; lost: {} to alignment, {} to the watermark rule",
        figures.live, figures.objects, figures.align_loss, figures.watermark_loss
    );
    println!(
        "since the policy was set: {} bytes requested, {} resets, {} times no room, {} retypes failed",
        figures.requested, figures.resets, figures.out_of_memory, figures.failed_retypes
    );
    Ok(())
}

/// Prints the trace.
fn dump() -> Result<(), String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; TRACE_BYTES];
    loop {
        match SLABS.read_trace(bytes.len() as u64, &mut buffer).map_err(text)? {
            0 => break,
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
    print!("{}", str::from_utf8(&bytes).map_err(|_| "what was recorded is not text")?);
    Ok(())
}

/// Compares the table of each slab with the kernel's account of its untyped.
fn check() -> Result<(), String> {
    let (_, lifted) = SLABS.policy().map_err(text)?;
    let mut number = 0;
    loop {
        let ledger = match SLABS.ledger(number) {
            Ok(ledger) => ledger,
            Err(Failure::Refused(MemError::NoSuchSlab)) => break,
            Err(failure) => return Err(text(failure)),
        };
        let kernel = SLABS.kernel(number).map_err(text)?;
        // Objects placed by offset do not change the kernel's watermark.
        let watermark = if lifted { kernel.watermark } else { ledger.watermark };
        if (watermark, ledger.objects, ledger.live) != (kernel.watermark, kernel.objects, kernel.live) {
            return Err(format!(
                "slab {number}: ledger: watermark {}, {} objects, {} bytes; kernel: watermark {}, {} objects, {} bytes",
                ledger.watermark, ledger.objects, ledger.live, kernel.watermark, kernel.objects, kernel.live
            ));
        }
        number += 1;
    }
    println!("{number} slabs: ledger and kernel agree");
    Ok(())
}
