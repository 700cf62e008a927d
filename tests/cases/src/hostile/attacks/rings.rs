//! Attacks by threads that wait for each other in a ring: a waiting thread helps the thread it waits for, so the kernel
//! computes one thread's effective scheduling context from the others', with interrupts off.

use alloc::vec::Vec;

use tench::memory::make;
use tench::sys::thread::{Binding, Bindings};
use tench::sys::{Cap, Endpoint, Message, Notification, OWN_CSPACE, Reply, Thread, Wait};
use tench::thread::{Builder, JoinHandle, current_thread};
use tench::time::{Duration, sleep};

use super::{Attack, said, soon};
use crate::case::{Failure, Outcome};

pub const ATTACKS: &[Attack] = &[
    Attack::new(
        "ring-calm",
        "a ring that is closed by the end of a reply object keeps the kernel from nothing",
        || late(false),
    )
    .endless(),
    Attack::new("ring-short", "nor does one of few threads, one of which has a signal", || long(5)).endless(),
    Attack::new("ring-late", "nor the first, if one of those in it has a signal", || late(true)).endless(),
    Attack::new("ring-long", "nor one of many", || long(12)).endless(),
];

/// Stack size in bytes: threads of an attack have small stacks.
const STACK: usize = 16 << 10;
/// A priority below that of the others.
const LOW: u8 = 50;

fn spawn(priority: u8, body: impl FnOnce() + Send + 'static) -> Outcome<JoinHandle<()>> {
    said(Builder::new().stack_size(STACK).priority(priority).spawn(body))
}

fn thread_of(handle: &JoinHandle<()>) -> Outcome<Cap<Thread>> {
    handle.thread().ok_or_else(|| Failure::new("it has no thread"))
}

/// Lets a thread receive signals of a notification, whatever it does.
fn bind(thread: Cap<Thread>) -> Outcome<Cap<Notification>> {
    let notification = make::<Notification>(0)?.leak();
    thread.bind(Bindings { notification: Binding::To(notification), ..Bindings::KEEP })?;
    Ok(notification)
}

/// Lets a server put its caller aside and call it, and then deletes the reply object with which it did so.
fn late(is_signalled: bool) -> Outcome {
    let (there, back) = (make::<Endpoint>(0)?.leak(), make::<Endpoint>(0)?.leak());
    let deferred = make::<Reply>(0)?.leak();
    let server = spawn(100, move || {
        let _ = there.receive(Wait::FOREVER);
        let _ = there.receive(Wait::until(soon(100)).with_reply(deferred));
        let _ = back.call(&Message::new(1));
    })?;
    let caller = spawn(LOW, move || {
        let _ = current_thread().serve(back, 0);
        let _ = there.call(&Message::new(1));
    })?;
    sleep(Duration::from_millis(5));
    let notification = bind(thread_of(&server)?)?;
    if is_signalled {
        notification.signal()?;
    }
    OWN_CSPACE.delete_at(deferred.address())?;
    server.detach();
    caller.detach();
    Ok(())
}

/// Makes a ring of threads that call each other, the last calling the first.
fn long(length: usize) -> Outcome {
    let ends = (0..length).map(|_| Ok(make::<Endpoint>(0)?.leak())).collect::<Outcome<Vec<_>>>()?;
    let mut threads = Vec::new();
    for number in (0..length).rev() {
        let (own, next) = (ends[number], ends[(number + 1) % length]);
        let body = move || {
            let _ = current_thread().serve(own, 0);
            if number > 0 {
                let _ = own.receive(Wait::FOREVER);
            }
            let _ = next.call(&Message::new(1));
        };
        threads.push(spawn(if number == 0 { LOW } else { 100 }, body)?);
        sleep(Duration::from_micros(200));
    }
    sleep(Duration::from_millis(5));
    bind(thread_of(&threads[0])?)?.signal()?;
    threads.into_iter().for_each(JoinHandle::detach);
    Ok(())
}
