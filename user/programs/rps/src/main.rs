//! Rock-paper-scissors over Send, Receive, Reply. On the host it runs in the simulation of R4's scheduler.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tench_rps::{options, play};
use tench_srr::{Terminal, max_priority};

/// Plays as the arguments say. The error is a line for the user.
fn run<'a>(arguments: impl IntoIterator<Item = &'a str>, mut terminal: impl Terminal + 'static) -> Result<(), String> {
    let arguments: Vec<&str> = arguments.into_iter().collect();
    if arguments.contains(&"--help") {
        terminal.write(&format!("{}\n", options::USAGE));
        return Ok(());
    }
    let options = options::parse(arguments, max_priority())?;
    play(terminal, options).map_err(|error| format!("rps: {error}"))?;
    Ok(())
}

#[cfg(target_os = "none")]
mod target {
    use tench_srr::Terminal;

    use super::run;

    tench::entry!(main);

    /// The console.
    struct Console;

    impl Terminal for Console {
        fn write(&mut self, text: &str) {
            tench::io::put(text.as_bytes());
        }

        fn wait_key(&mut self) {
            // Without input there is no key to wait for.
            let _ = tench::io::read(&mut [0; 64]);
        }
    }

    fn main() -> i32 {
        match run(tench::args().skip(1), Console) {
            Ok(()) => 0,
            Err(line) => {
                tench::println!("{line}");
                1
            }
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() -> std::process::ExitCode {
    use std::io::{Read, Write, stdin, stdout};
    use std::process::ExitCode;

    /// Standard output and input.
    struct Standard;

    impl Terminal for Standard {
        fn write(&mut self, text: &str) {
            print!("{text}");
        }

        fn wait_key(&mut self) {
            // Without output or input there is no key to wait for.
            let _ = stdout().flush();
            let _ = stdin().read(&mut [0; 256]);
        }
    }

    let arguments: alloc::vec::Vec<String> = std::env::args().skip(1).collect();
    match run(arguments.iter().map(String::as_str), Standard) {
        Ok(()) => ExitCode::SUCCESS,
        Err(line) => {
            println!("{line}");
            ExitCode::FAILURE
        }
    }
}
