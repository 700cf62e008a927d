//! Named cases for every kernel object and operation.
//!
//! The program runs in the place of the shell (`systems/tests.toml`), prints a line for each case, and powers the
//! machine off; `./tench test cases` reads the lines. With the arguments `only PREFIX...` it runs the cases whose names
//! begin so, with `linux` those about Linux programs ([`linux`]), with `attacks` it runs the attacks whose lines
//! `./tench test hostile` reads ([`hostile::attacks`]).
//! Started with other arguments, it is one of the programs that cases observe from outside: [`child`].
//!
//! ```text
//! case       type of a case, and how it reports a failure
//! stage      memory, slots and objects for one case; takes everything back afterwards, and checks that all came back
//! worker     threads of this process for a case
//! space      page tables for a case, in a part of the address space that nothing else uses
//! assembly   code whose every instruction and register matters
//! the rest   the cases, by kind of object
//! ```
//! A case gets an empty node of slots and objects that nobody else has. What it leaves behind goes with the memory of
//! which it was made, so no case can disturb the next.

#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

#[macro_use]
mod case;

mod accounts;
mod assembly;
mod stage;
mod worker;

mod blocks;
mod budget;
mod bytes;
mod child;
mod cores;
mod cyclic;
mod division;
mod driver;
mod endpoint;
mod exhaustion;
mod faults;
mod handlers;
mod helping;
mod hostile;
mod identifiers;
mod kernel;
mod killing;
mod latency_tracer;
mod layout;
mod linux;
mod memory;
mod nesting;
mod node;
mod notification;
mod operations;
mod paging;
mod processes;
mod programs;
mod random;
mod registers;
mod remote;
mod reply;
mod reserve;
mod scattered;
mod scheduling;
mod sessions;
mod shared;
mod slabs;
mod space;
mod srr;
mod streams;
mod thread;
mod time;
mod transfer;
mod untyped;
mod upcall;
mod victim;

use case::Case;
use stage::Stage;
use tench::abi::layout::slot;
use tench::println;
use tench::sys::{Cap, Kernel};

tench::entry!(play);

/// All cases but those about Linux programs, in the order in which they run.
const CASES: &[&[Case]] = &[
    operations::CASES,
    untyped::CASES,
    division::CASES,
    endpoint::CASES,
    reply::CASES,
    transfer::CASES,
    node::CASES,
    memory::CASES,
    scattered::CASES,
    thread::CASES,
    scheduling::CASES,
    accounts::CASES,
    budget::CASES,
    helping::CASES,
    helping::attacks::CASES,
    notification::CASES,
    registers::CASES,
    faults::CASES,
    upcall::CASES,
    handlers::CASES,
    random::CASES,
    kernel::CASES,
    driver::CASES,
    identifiers::CASES,
    cores::CASES,
    remote::CASES,
    nesting::CASES,
    bytes::CASES,
    blocks::CASES,
    paging::CASES,
    layout::CASES,
    slabs::CASES,
    shared::CASES,
    sessions::CASES,
    processes::CASES,
    programs::CASES,
    // Before the next, which leaves servers with all the memory that they may ever need.
    exhaustion::CASES,
    killing::CASES,
    streams::CASES,
    time::CASES,
    cyclic::CASES,
    hostile::CASES,
    hostile::authority::CASES,
    hostile::powers::CASES,
    latency_tracer::CASES,
    reserve::CASES,
    srr::CASES,
];

/// Returns the cases: with the argument `linux` those about Linux programs, which need these in the archive.
fn cases() -> &'static [&'static [Case]] {
    if tench::args().nth(1) == Some("linux") { &[linux::CASES] } else { CASES }
}

/// Returns whether a case is to run: with the arguments `only PREFIX...` those whose names begin so, otherwise all.
fn is_wanted(case: &Case) -> bool {
    let mut arguments = tench::args().skip(1);
    arguments.next() != Some("only") || arguments.any(|prefix| case.id.starts_with(prefix))
}

fn play() -> i32 {
    if let Some(code) = child::run() {
        return code;
    }
    if tench::args().nth(1) == Some("attacks") {
        return hostile::attacks::play();
    }
    let mut stage = match Stage::new() {
        Ok(stage) => stage,
        Err(failure) => {
            println!("cases: cannot begin: {failure}");
            return 1;
        }
    };
    // Some cases measure.
    let _ = Cap::<Kernel>::new(slot::KERNEL).let_count(true);
    let (mut passed, mut failed) = (0, 0);
    for case in cases().iter().copied().flatten().filter(|case| is_wanted(case)) {
        match stage.play(case) {
            Ok(()) => {
                passed += 1;
                println!("case: {} {} ... ok", case.id, case.name);
            }
            Err(failure) => {
                failed += 1;
                println!("case: {} {} ... FAILED {failure}", case.id, case.name);
            }
        }
    }
    println!("cases: {passed} passed, {failed} failed");
    let _ = Cap::<Kernel>::new(slot::KERNEL).power_off(u8::from(failed > 0));
    1
}
