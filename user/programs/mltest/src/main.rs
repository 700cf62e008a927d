//! Runs a neural network: `mltest [--seconds] [SEED]` loads a model of 253 pages, shows it ten drawn digits, frees the
//! model, and prints the outputs, one a line; with `--seconds`, one a second.
//!
//! The purpose of the program is its use of memory: it asks for 253 pages one by one, and frees them while it still
//! runs.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod pages;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use pages::Pages;
use tench::println;
use tench::time::{self, Duration};
use tench_mltest_network::digits::{Random, draw};
use tench_mltest_network::inference::infer;
use tench_mltest_network::{CLASSES, largest};
use tench_profile::Application;

tench::entry!(main);

/// Usage of the program.
const USAGE: &str = "usage: mltest [--seconds] [SEED]";

/// The model that the build script has made.
const MODEL: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/model.bin"));

/// Default seed of the drawings.
const SEED: u64 = 7;

struct Options {
    seconds: bool,
    seed: u64,
}

fn main() -> Result<(), String> {
    if tench::process::help(USAGE) {
        return Ok(());
    }
    let options = options()?;
    tench_profile::start(Application::Mltest).map_err(|failure| failure.to_string())?;
    let pages = Pages::load(MODEL).map_err(|error| format!("no memory for the model: {error}"))?;
    println!("model loaded: {} pages, {} bytes", pages.count(), MODEL.len());
    let outputs = infer_all(&pages, options.seed)?;
    drop(pages);
    println!("model freed");
    for (digit, scores) in outputs.into_iter().enumerate() {
        if options.seconds {
            time::sleep(Duration::from_secs(1));
        }
        println!("drawn {digit}, read {}: {}", largest(&scores), join(&scores));
    }
    Ok(())
}

/// Shows each digit to the model. Returns its scores.
fn infer_all(pages: &Pages, seed: u64) -> Result<Vec<[i32; CLASSES]>, String> {
    let mut random = Random::new(seed);
    let infer = |digit| {
        let picture = draw(digit, &mut random);
        infer(|index, page| pages.read(index, page), &picture).map_err(|damage| damage.to_string())
    };
    (0..CLASSES).map(infer).collect()
}

fn join(scores: &[i32]) -> String {
    scores.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn options() -> Result<Options, String> {
    let mut options = Options { seconds: false, seed: SEED };
    let mut seeded = false;
    for argument in tench::args().skip(1) {
        match argument {
            "--seconds" => options.seconds = true,
            text if !seeded => {
                options.seed = text.parse().map_err(|_| usage(&format!("\"{text}\" is not a number")))?;
                seeded = true;
            }
            _ => return Err(usage("too many arguments")),
        }
    }
    Ok(options)
}

fn usage(problem: &str) -> String {
    format!("{problem}; {USAGE}")
}
