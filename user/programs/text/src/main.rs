//! Runs `cat`, `cp`, `grep`, `head`, `sort`, `tee`, `wc` or `yes`, as the program's name says. See the library.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::boxed::Box;
use alloc::vec::Vec;

use tench::files::protocol::Kind;
use tench::io::{self, Error, Read, Stdin, Stdout, Write};
use tench::{eprintln, fs, process};
use tench_text::{Problem, World};

tench::entry!(start);

/// The real system.
struct System;

impl World for System {
    fn open(&mut self, path: &str) -> Result<Box<dyn Read>, Error> {
        Ok(Box::new(fs::open(path)?))
    }

    fn create(&mut self, path: &str, append: bool) -> Result<Box<dyn Write>, Error> {
        Ok(Box::new(if append { fs::append(path) } else { fs::create(path) }?))
    }

    fn is_directory(&mut self, path: &str) -> bool {
        fs::status(path).is_ok_and(|status| status.kind == Kind::Directory)
    }

    fn input(&mut self) -> Box<dyn Read> {
        Box::new(Stdin)
    }

    fn output(&mut self) -> Box<dyn Write> {
        Box::new(Stdout)
    }
}

/// Runs the program. Returns the exit code: 0, or 1 if nothing was found, or 2 after an error.
fn start() -> i32 {
    let arguments: Vec<&str> = process::args().skip(1).collect();
    match tench_text::run(process::name(), &arguments, &mut System) {
        Ok(found) => i32::from(!found),
        Err(Problem::Broken) => io::BROKEN,
        Err(Problem::Said(text)) => {
            eprintln!("{}: {text}", process::name());
            2
        }
    }
}
