//! The shell as a program.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod live;

use live::Live;
use tench_shell::shell::Shell;

tench::entry!(main);

/// Runs the shell until its last line.
fn main() {
    if tench::process::help("usage: shell") {
        return;
    }
    Shell::new(&mut Live::new()).run();
}
