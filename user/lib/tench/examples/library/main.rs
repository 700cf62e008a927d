//! Tests the user library on the target: `library [CASE]`. Prints a line for each case, and the number of failures.
//!
//! Build it for the target, and boot it with `./tench run --with FILE:bin/library`. `library panic`, `library overflow`
//! and `library null` end with a report.

#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod faults;
mod memory;
mod messages;
mod threads;

use alloc::string::String;

use tench::println;

tench::entry!(run);

/// A case: its name and its function.
type Case = (&'static str, fn() -> Result<(), String>);

const CASES: &[Case] = &[
    ("heap", memory::heap),
    ("small allocations", memory::small_allocations),
    ("threads", threads::threads),
    ("condition variable", threads::condition_variable),
    ("timeouts", threads::timeouts),
    ("sleep", threads::sleep),
    ("once", threads::once),
    ("thread memory returns", threads::thread_memory_returns),
    ("detached threads", threads::detached_threads),
    ("priorities", threads::priorities),
    ("short messages", messages::short_messages),
    ("long messages", messages::long_messages),
    ("capabilities in messages", messages::capabilities_in_messages),
    ("slots", memory::slots),
    ("windows", memory::windows),
    ("guard page", faults::guard_page),
    ("upcalls", faults::upcalls),
    ("self-paging", faults::self_paging),
];

fn run() -> i32 {
    match tench::args().nth(1) {
        Some("panic") => faults::descend(3),
        Some("overflow") => println!("{}", faults::recurse(1)),
        Some("null") => faults::null(),
        _ => {}
    }
    let wanted = tench::args().nth(1).unwrap_or("");
    let mut failures = 0;
    for (name, case) in CASES.iter().filter(|(name, _)| name.contains(wanted)) {
        match case() {
            Ok(()) => println!("ok      {name}"),
            Err(why) => {
                println!("FAILED  {name}: {why}");
                failures += 1;
            }
        }
    }
    println!("{failures} failures");
    failures
}

/// Returns an error unless a condition holds.
#[macro_export]
macro_rules! check {
    ($condition:expr) => {
        if !$condition {
            return Err(alloc::format!("{} line {}: {}", file!(), line!(), stringify!($condition)));
        }
    };
}
