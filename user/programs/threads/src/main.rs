//! Tries threads and everything by which they wait for each other: `threads [CASE]`. Prints a line for each case, and
//! the number of failures, which is also the exit code.
//!
//! `threads child ROLE` is another process that a case starts.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod local;
mod order;
mod shared;

use alloc::string::String;

use tench::println;

tench::entry!(run);

/// A case: its name, and its function.
type Case = (&'static str, fn() -> Result<(), String>);

const CASES: &[Case] = &[
    ("a lock without contention makes no system call", order::uncontended),
    ("a lock is handed over in the order of asking", order::lock),
    ("a thread that takes a lock again and again starves nobody", order::no_starvation),
    ("a semaphore serves in the order of asking", order::semaphore),
    ("a semaphore's wait ends at its time", order::semaphore_deadline),
    ("a condition wakes in the order of waiting", order::condition),
    ("readers and a writer take turns", order::read_write),
    ("a read-write lock's wait ends at its time", order::read_write_deadline),
    ("a barrier lets all pass together", order::barrier),
    ("each thread has its own data", local::data),
    ("data of a thread go when it ends", local::dropped),
    ("threads have names", local::names),
    ("a hundred threads wait in calls at the same time", local::calls),
    ("two processes share a lock", shared::lock),
    ("two processes share a semaphore and a condition", shared::condition),
    ("a lock passes on when its owner dies", shared::owner_dies),
    ("a member that dies waiting is passed over", shared::waiter_dies),
    ("misuse of a shared lock is refused", shared::misuse),
];

fn run() -> i32 {
    if tench::process::help("usage: threads [CASE]") {
        return 0;
    }
    if tench::args().nth(1) == Some("child") {
        return match shared::child() {
            Ok(()) => 0,
            Err(why) => {
                println!("FAILED  child: {why}");
                1
            }
        };
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

/// Returns an error from the function unless a condition holds.
#[macro_export]
macro_rules! check {
    ($condition:expr) => {
        if !$condition {
            return Err(alloc::format!("{} line {}: {}", file!(), line!(), stringify!($condition)));
        }
    };
}
