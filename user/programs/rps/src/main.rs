//! Rock-paper-scissors over Send, Receive, Reply. On the host it runs in the simulation of R4's scheduler.

#![forbid(unsafe_code)]

use std::io::{Read, Write, stdin, stdout};
use std::process::ExitCode;

use tench_rps::{options, play};
use tench_srr::{Terminal, max_priority};

/// Standard output and input.
struct Standard;

impl Terminal for Standard {
    fn write(&mut self, text: &str) {
        print!("{text}");
    }

    fn wait_key(&mut self) {
        // Without output or input there is nobody to wait for.
        let _ = stdout().flush();
        let _ = stdin().read(&mut [0; 256]);
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let played = options::parse(arguments.iter().map(String::as_str), max_priority())
        .and_then(|options| play(Standard, options).map_err(|error| format!("rps: {error}")));
    match played {
        Ok(_) => ExitCode::SUCCESS,
        Err(line) => {
            println!("{line}");
            ExitCode::FAILURE
        }
    }
}
