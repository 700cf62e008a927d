//! The life cycle of a task's thread: it waits for a task, runs it, cleans up after it, and waits for the next.
//!
//! A thread without a task waits at its endpoint for `Start`. So starting a task costs a message, and the resources of
//! a thread are made only once.
//!
//! A task that calls [`exit`], or that still waits when the session ends, leaves its stack as it is: there is no
//! unwinding. Its thread then waits for the next task *on top* of the task's stack frames, which so stay valid for
//! references to them until the thread is given up: when half of the stack is used up in this way, the thread ends, and
//! the session's caller frees it, when a task needs a thread in its place or when the session is over.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

use tench::abi::layout::slot;
use tench::memory::{self, make};
use tench::sys::ipc::BOUND_REPLY;
use tench::sys::{Cap, Endpoint, Message, Notification, Reply, Rights, SchedulingContext, ThreadBlock, Wait};
use tench::thread::{self, Builder, RawThread};

use super::events;
use super::outside::{self, Request};
use super::session::{Function, SESSION};
use super::{Kept, Label, enter, requeue};
use crate::table::{PRIORITIES, State};
use crate::{Ending, Error, MAX_TASKS, Terminal, Tid};

/// Size of a task's stack in bytes.
const STACK_SIZE: usize = 64 * 1024;
/// Number of free bytes of stack below which a thread is not reused.
const STACK_RESERVE: usize = STACK_SIZE / 2;
/// Minimum size in bytes of the heap when a session begins, so that tasks that allocate little need not wait for the
/// memory server, during which others would run out of order.
const HEAP_RESERVE: usize = 128 * 1024;

/// Lock that allows one session at a time.
static SESSIONS: tench::sync::Mutex<()> = tench::sync::Mutex::new(());

/// Authority for priorities: the main thread's scheduling context.
const AUTHORITY: Cap<SchedulingContext> = Cap::new(slot::SCHEDULING);

/// Returns an empty message.
fn message(label: Label) -> Message {
    Message::new(label.pack())
}

/// Returns the kernel priority of tasks of priority 0 in a session that the calling thread runs, and the highest
/// priority of a task in it; -1 if none. That stays below the ceiling, at which the kernel grants no priority without a
/// time slice.
fn bounds() -> (u32, i32) {
    let own = thread::current_thread().query().kept().priority;
    let ceiling = AUTHORITY.query().kept().ceiling;
    (own as u32 + 1, (ceiling as i32 - own as i32 - 2).clamp(-1, PRIORITIES as i32 - 1))
}

pub fn max_priority() -> i32 {
    if SESSION.table.is_empty() { bounds().1 } else { SESSION.top.load(Relaxed) as i32 }
}

pub fn run(mut terminal: Box<dyn Terminal>, priority: i32, first: Function) -> Result<Ending, Error> {
    let _one_at_a_time = SESSIONS.lock();
    let (base, top) = bounds();
    SESSION.table.reset((top + 1) as u32);
    SESSION.base.store(base, Relaxed);
    SESSION.top.store(top.max(0) as u32, Relaxed);
    drop(Vec::<u8>::with_capacity(HEAP_RESERVE));
    events::reset();
    let tid = SESSION.table.create(None, priority)?;
    if !prepare(tid) {
        SESSION.table.reset(0);
        return Err(Error::OutOfTasks);
    }
    ready(tid, priority, first);
    // Every task has a higher priority than this thread, so it continues when none can run.
    SESSION.endpoint(tid).send(&message(Label::Start), Wait::FOREVER).kept();
    loop {
        match outside::wanted() {
            Some((request, tid)) => {
                grant(request, &mut *terminal);
                outside::grant(tid);
            }
            None if events::idle() => {}
            None => break,
        }
    }
    flush(&mut *terminal);
    let ending = Ending { waiting: SESSION.table.len() };
    retire_all();
    (0..MAX_TASKS as u32).map(Tid).for_each(free_ended);
    SESSION.table.reset(0);
    Ok(ending)
}

/// Executes a task's request to the session's caller.
fn grant(request: Request, terminal: &mut dyn Terminal) {
    match request {
        Request::Flush => flush(terminal),
        Request::Key => {
            flush(terminal);
            terminal.wait_key();
        }
        // The requester checks whether there is a thread now.
        Request::Prepare(new) => _ = prepare(new),
    }
}

/// Prints the buffered text.
fn flush(terminal: &mut dyn Terminal) {
    let mut said = outside::SAID.lock();
    if !said.is_empty() {
        terminal.write(&said);
        said.clear();
    }
}

/// Makes the missing resources of a task with this identifier. Returns whether it has all of them now.
fn prepare(tid: Tid) -> bool {
    let task = SESSION.task(tid);
    let objects = || {
        if !task.endpoint.is_made() {
            let (endpoint, notification, reply) = (make::<Endpoint>(0)?, make::<Notification>(0)?, make::<Reply>(0)?);
            task.notification.set(notification.leak());
            task.endpoint.set(endpoint.leak());
            // Without `CALL`: tasks do not help each other, or the order of events would not be R4's.
            let slot = memory::take_slot()?;
            reply.leak().mint_to(slot, Rights::WRITE, 0).kept();
            SESSION.add_reply(tid, Cap::new(slot));
        }
        Ok::<(), memory::Error>(())
    };
    if objects().is_err() {
        return false;
    }
    free_ended(tid);
    // A new thread runs at once, and this one continues when that waits for its first task. It gives up if its number
    // collides with another's; the next has another number.
    for _ in 0..MAX_TASKS {
        if task.scheduling.is_made() {
            return true;
        }
        let top = SESSION.base.load(Relaxed) + SESSION.top.load(Relaxed);
        let builder = Builder::new().stack_size(STACK_SIZE).priority(top as u8);
        let Ok(thread) = spawn(builder, tid) else { return false };
        if let (Some(scheduling), Some(own)) = (thread.scheduling(), thread.thread())
            && !thread.is_finished()
        {
            task.scheduling.set(scheduling);
            task.thread.set(own);
            *task.memory.lock() = Some(thread);
        }
    }
    task.scheduling.is_made()
}

/// Starts a thread for the tasks with an identifier. Nothing of it lies in the heap, as it may end without returning.
fn spawn(builder: Builder, tid: Tid) -> Result<RawThread, memory::Error> {
    let tid = core::ptr::without_provenance_mut(tid.0 as usize);
    // SAFETY: the function takes the number in any thread.
    unsafe { builder.spawn_raw(run_thread, tid) }
}

/// Frees the thread of an identifier if it has ended. Only the session's caller does this: when it runs, a thread that
/// is about to end has ended, because that has a higher priority.
fn free_ended(tid: Tid) {
    let task = SESSION.task(tid);
    if !task.scheduling.is_made()
        && let Some(thread) = task.memory.lock().take()
    {
        // Whoever asks whether a task is in a primitive must not ask about another thread with this address.
        task.thread.clear();
        thread.join();
    }
}

/// Runs a new thread for the tasks with this identifier.
extern "C" fn run_thread(tid: *mut ()) {
    let tid = Tid(tid.addr() as u32);
    if SESSION.own(tid) {
        live(tid);
    }
}

/// Runs one task after another.
fn live(tid: Tid) -> ! {
    loop {
        let received = SESSION.endpoint(tid).receive(Wait::FOREVER).kept();
        if Label::unpack(received.label()) == Label::StartAndReply {
            BOUND_REPLY.reply(&message(Label::Start)).kept();
        }
        outside::leave_primitive(tid);
        let function = SESSION.task(tid).function.lock().take();
        if let Some(function) = function {
            function();
        }
        enter();
        finish(tid);
    }
}

/// Continues a thread whose task does not continue, but has left its stack frames.
pub fn retire(tid: Tid) -> ! {
    let here = 0_u8;
    let bottom = ThreadBlock::current().map_or(0, |block| block.stack_bottom.get());
    if core::ptr::from_ref(&here).addr() - bottom >= STACK_RESERVE {
        live(tid);
    }
    SESSION.disown();
    SESSION.task(tid).scheduling.clear();
    // SAFETY: the stack has frames of ended tasks, whose values are never dropped. A task's function has no borrowed
    // values, so it can share only what does not lie there; and whoever waits in the library's locks, whose queues name
    // waiters on stacks, is in no primitive.
    unsafe { thread::end() }
}

pub fn exit() -> ! {
    let me = enter();
    finish(me);
    retire(me)
}

/// Ends a task: aborts the sends of the tasks in its queue.
fn finish(me: Tid) {
    if SESSION.table.has_senders(me) {
        // No task that is woken has a higher priority than this, so all are ready before one of them runs.
        configure(me, SESSION.top.load(Relaxed));
        let number = SESSION.take_reply();
        let reply = SESSION.reply(number);
        while SESSION.endpoint(me).try_receive(Wait::FOREVER.with_reply(reply)).is_ok() {
            reply.reply(&message(Label::Aborted)).kept();
        }
        SESSION.give_reply(number);
    }
    // The task is inside a primitive until its thread waits or is given up: before that no task with this identifier
    // may begin.
    SESSION.table.exit(me);
}

/// Sets the priority of a task's thread. It has no time slice.
fn configure(tid: Tid, priority: u32) {
    let base = SESSION.base.load(Relaxed);
    let (priority, top) = (base + priority, base + SESSION.top.load(Relaxed));
    SESSION.scheduling(tid).configure(u64::from(priority), u64::from(top), 0, Some(AUTHORITY)).kept();
}

/// Prepares everything for starting a task except the message.
fn ready(tid: Tid, priority: i32, function: Function) {
    configure(tid, priority as u32);
    *SESSION.task(tid).function.lock() = Some(function);
}

pub fn create(priority: i32, function: Function) -> Result<Tid, Error> {
    let me = enter();
    let tid = loop {
        let tid = match SESSION.table.create(Some(me), priority) {
            Ok(tid) => tid,
            Err(error) => return super::refuse(me, error),
        };
        if SESSION.task(tid).scheduling.is_made() {
            break tid;
        }
        // The task must not be found before it has a thread: an event may come meanwhile.
        SESSION.table.exit(tid);
        outside::ask(me, Request::Prepare(tid));
        enter();
        if !SESSION.task(tid).scheduling.is_made() {
            return super::refuse(me, Error::OutOfTasks);
        }
    };
    ready(tid, priority, function);
    let endpoint = SESSION.endpoint(tid);
    if SESSION.table.priority(tid) > SESSION.table.priority(me) {
        // The new task runs at once, so it makes this one ready before any other task can become ready.
        endpoint.call(&message(Label::StartAndReply)).kept();
        outside::leave_primitive(me);
    } else {
        endpoint.send(&message(Label::Start), Wait::FOREVER).kept();
        requeue(me);
    }
    Ok(tid)
}

/// Ends the session: tells every task that waits, so that its thread is free for the next session.
///
/// All queues are emptied first, so that no thread that waits for its next task finds a message of this session.
fn retire_all() {
    let existing = || (0..MAX_TASKS as u32).map(Tid).filter(|tid| SESSION.table.state(*tid) != State::Free);
    for tid in existing() {
        while SESSION.table.has_senders(tid) {
            let number = SESSION.take_reply();
            let wait = Wait::FOREVER.with_reply(SESSION.reply(number));
            let received = SESSION.endpoint(tid).try_receive(wait).kept();
            if let Label::Message { from, .. } = Label::unpack(received.label()) {
                SESSION.table.take(tid, from);
                SESSION.hold(from, number);
            }
        }
    }
    for tid in existing() {
        match SESSION.table.state(tid) {
            State::ReplyWait => {
                let (number, _) = SESSION.held(tid);
                SESSION.give_reply(number);
                SESSION.reply(number).reply(&message(Label::End)).kept();
            }
            State::ReceiveWait => SESSION.endpoint(tid).send(&message(Label::End), Wait::FOREVER).kept(),
            // No task is ready or in a queue any more, and while a task waits for an event the session continues.
            State::Free | State::EventWait | State::Ready | State::SendWait(_) => {}
        }
    }
}
