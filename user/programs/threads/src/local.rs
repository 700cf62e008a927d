//! Data of single threads, and many threads at once.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;
use core::sync::atomic::{AtomicUsize, Ordering};

use tench::memory::make;
use tench::runtime::text;
use tench::sys::{Endpoint, Message, Wait};
use tench::thread::{self, Builder, JoinHandle};

use crate::check;

/// A value that counts how many of its kind were dropped.
struct Counted;

static GONE: AtomicUsize = AtomicUsize::new(0);

impl Drop for Counted {
    fn drop(&mut self) {
        // Data that were made earlier are still there.
        GONE.fetch_add(NUMBER.with(Cell::get), Ordering::Relaxed);
    }
}

tench::thread_local! {
    static NUMBER: Cell<usize> = Cell::new(5);
    static COUNTED: Counted = Counted;
}

pub fn data() -> Result<(), String> {
    NUMBER.with(|number| number.set(1));
    let handles: Vec<_> = (0..8)
        .map(|index| {
            thread::spawn(move || {
                let first = NUMBER.with(|number| number.replace(index));
                thread::yield_now();
                (first, NUMBER.with(Cell::get))
            })
        })
        .collect();
    for (index, handle) in handles.into_iter().enumerate() {
        check!(handle.join() == (5, index));
    }
    check!(NUMBER.with(Cell::get) == 1);
    Ok(())
}

pub fn dropped() -> Result<(), String> {
    GONE.store(0, Ordering::Relaxed);
    for _ in 0..10 {
        thread::spawn(|| {
            NUMBER.with(|number| number.set(3));
            COUNTED.with(|_| ());
        })
        .join();
    }
    check!(GONE.load(Ordering::Relaxed) == 30);
    Ok(())
}

pub fn names() -> Result<(), String> {
    let name = |builder: Builder| builder.spawn(thread::current_name).map_err(text).map(JoinHandle::join);
    check!(&*name(Builder::new().name("worker"))? == "worker");
    check!(name(Builder::new())?.is_empty());
    check!(name(Builder::new().name(&"long ".repeat(20)))?.len() == thread::MAX_NAME);
    thread::set_name("first");
    check!(&*thread::current_name() == "first");
    Ok(())
}

/// Checks that a hundred threads of this process can all be in a call at the same time, and get their replies in
/// another order.
pub fn calls() -> Result<(), String> {
    const COUNT: usize = 100;
    let endpoint = make::<Endpoint>(0).map_err(text)?;
    let (cap, called) = (endpoint.cap(), Arc::new(AtomicUsize::new(0)));
    let callers: Vec<_> = (0..COUNT as u64)
        .map(|number| {
            let called = Arc::clone(&called);
            Builder::new().stack_size(16 << 10).spawn(move || {
                called.fetch_add(1, Ordering::Relaxed);
                cap.call(&Message::with_words(1, &[number])).map(|reply| reply.word(0))
            })
        })
        .collect::<Result<_, _>>()
        .map_err(text)?;
    while called.load(Ordering::Relaxed) < COUNT {
        thread::yield_now();
    }
    let replies: Vec<_> = (0..COUNT).map(|_| make(0)).collect::<Result<_, _>>().map_err(text)?;
    let mut waiting = Vec::new();
    for reply in &replies {
        let request = cap.receive(Wait::FOREVER.with_reply(reply.cap())).map_err(text)?;
        waiting.push((reply.cap(), request.word(0)));
    }
    check!(callers.iter().all(|caller| !caller.is_finished()));
    for (reply, number) in waiting.into_iter().rev() {
        reply.reply(&Message::with_words(0, &[number * 2])).map_err(text)?;
    }
    for (number, caller) in callers.into_iter().enumerate() {
        check!(caller.join() == Ok(number as u64 * 2));
    }
    Ok(())
}
