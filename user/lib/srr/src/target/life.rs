//! The life cycle of a task's thread: it waits for a task, runs it, cleans up after it, and waits for the next.
//!
//! A thread without a task waits for its turn like one with a task, so starting a task is a switch, and the resources
//! of a thread are made only once.
//!
//! A task that calls [`exit`], or that still waits when the session ends, leaves its stack as it is: there is no
//! unwinding. Its thread then waits for the next task *on top* of the task's stack frames, which so stay valid for
//! references to them until the thread is given up: when half of the stack is used up in this way, the thread ends, and
//! whoever needs a thread in its place, or the session's end, frees it.

use alloc::boxed::Box;
use core::sync::atomic::Ordering::Relaxed;

use tench::abi::layout::slot;
use tench::memory::{self, make};
use tench::sync::Mutex;
use tench::sys::thread::{Binding, Bindings};
use tench::sys::{Cap, Endpoint, Reply, SchedulingContext, ThreadBlock};
use tench::thread::{self, Builder, RawThread};

use super::session::{ABORTED, Function, NOBODY, Place, SESSION};
use super::switch::{
    END, enter, leave, let_go_on, let_next_run, own_block, receive_turn, requeue, switch_to_next, wait_for_turn, wake,
};
use super::{Kept, events, terminal};
use crate::table::{PRIORITIES, State};
use crate::{Ending, Error, MAX_TASKS, Terminal, Tid};

/// Size of a task's stack in bytes.
const STACK_SIZE: usize = 64 * 1024;
/// Number of free bytes of stack below which a thread is not reused.
const STACK_RESERVE: usize = STACK_SIZE / 2;
/// Minimum number of kernel priorities that a session needs: one for the running task, and one for a task that sleeps
/// until an event.
const MIN_KERNEL_PRIORITIES: u64 = 2;

/// Lock that allows one session at a time.
static SESSIONS: Mutex<()> = Mutex::new(());

/// Memory of the threads, by their tasks' identifiers.
static MEMORY: [Mutex<Option<RawThread>>; MAX_TASKS] = [const { Mutex::new(None) }; MAX_TASKS];

/// Authority for priorities: the main thread's scheduling context.
const AUTHORITY: Cap<SchedulingContext> = Cap::new(slot::SCHEDULING);

/// Returns the lowest and the highest kernel priority of tasks in a session that the calling thread runs, if there are
/// enough. They are above the caller's, and below the ceiling, at which the kernel grants no priority without a time
/// slice.
fn bounds() -> Option<(u64, u64)> {
    let base = thread::current_thread().query().kept().priority + 1;
    let ceiling = AUTHORITY.query().kept().ceiling;
    (base + MIN_KERNEL_PRIORITIES <= ceiling).then(|| (base, ceiling - 1))
}

pub fn max_priority() -> i32 {
    if SESSION.running().is_some() || bounds().is_some() { PRIORITIES as i32 - 1 } else { -1 }
}

pub fn run(terminal: Box<dyn Terminal>, priority: i32, first: Function) -> Result<Ending, Error> {
    let _one_at_a_time = SESSIONS.lock();
    let (base, top) = bounds().ok_or(Error::InvalidPriority)?;
    let caller = thread::own_notification().ok_or(Error::OutOfTasks)?;
    SESSION.caller.set(caller);
    let moves = SESSION.base.swap(base as u32, Relaxed) != base as u32;
    SESSION.top.store((top - base) as u32, Relaxed);
    if moves {
        (0..MAX_TASKS as u32).map(Tid).filter(|tid| has_thread(*tid)).for_each(|tid| configure(tid, 0));
    }
    SESSION.over.store(false, Relaxed);
    SESSION.pending.store(false, Relaxed);
    SESSION.table.reset(PRIORITIES as u32);
    events::reset();
    let tid = SESSION.table.create(None, priority)?;
    if !prepare(tid, 0) {
        SESSION.table.reset(0);
        return Err(Error::OutOfTasks);
    }
    terminal::open(terminal);
    *SESSION.task(tid).function.lock() = Some(first);
    wake(tid, 0);
    while !SESSION.over.load(Relaxed) {
        // Locks that this thread waited for may have left signals.
        caller.wait().kept();
    }
    terminal::close();
    let ending = Ending { waiting: SESSION.table.len() };
    retire_all();
    (0..MAX_TASKS as u32).map(Tid).for_each(free_ended);
    SESSION.table.reset(0);
    Ok(ending)
}

/// Makes the missing resources of a task with this identifier, whose thread is to have a level. Returns whether it has
/// all of them now.
fn prepare(tid: Tid, level: u32) -> bool {
    SESSION.task(tid).inside.store(true, Relaxed);
    make_objects(tid).is_ok() && make_thread(tid, level).is_ok()
}

/// Makes the kernel objects of an identifier, unless it has them.
fn make_objects(tid: Tid) -> Result<(), memory::Error> {
    let task = SESSION.task(tid);
    if !task.endpoint.is_made() {
        let (endpoint, spare) = (make::<Endpoint>(0)?, make::<Reply>(0)?);
        task.spare.set(spare.leak());
        task.endpoint.set(endpoint.leak());
    }
    if !task.bound.is_made() {
        let bound = match SESSION.take_loose() {
            Some(loose) => loose,
            None => make::<Reply>(0)?.leak(),
        };
        task.bound.set(bound);
    }
    Ok(())
}

/// Makes the thread of an identifier, unless it has one.
fn make_thread(tid: Tid, level: u32) -> Result<(), memory::Error> {
    free_ended(tid);
    if has_thread(tid) {
        return Ok(());
    }
    let task = SESSION.task(tid);
    task.set_place(Place::Endpoint);
    let priority = SESSION.base.load(Relaxed) + level;
    let thread = spawn(Builder::new().stack_size(STACK_SIZE).priority(priority as u8), tid)?;
    if let Some(scheduling) = thread.scheduling() {
        task.scheduling.set(scheduling);
        configure(tid, level);
    }
    *memory(tid).lock() = Some(thread);
    Ok(())
}

/// Returns the memory of the thread for tasks with an identifier.
fn memory(tid: Tid) -> &'static Mutex<Option<RawThread>> {
    &MEMORY[tid.0 as usize % MAX_TASKS]
}

/// Returns whether an identifier has a thread that is not about to end.
fn has_thread(tid: Tid) -> bool {
    SESSION.task(tid).scheduling.is_made()
}

/// Starts a thread for the tasks with an identifier. Nothing of it lies in the heap, as it may end without returning.
fn spawn(builder: Builder, tid: Tid) -> Result<RawThread, memory::Error> {
    let tid = core::ptr::without_provenance_mut(tid.0 as usize);
    // SAFETY: the function takes the number in any thread.
    unsafe { builder.spawn_raw(run_thread, tid) }
}

/// Frees the thread of an identifier if it has ended or is about to.
fn free_ended(tid: Tid) {
    if !has_thread(tid)
        && let Some(thread) = memory(tid).lock().take()
    {
        thread.join();
    }
}

/// Runs a new thread for the tasks with this identifier.
extern "C" fn run_thread(tid: *mut ()) {
    let tid = Tid(tid.addr() as u32);
    let task = SESSION.task(tid);
    task.block.store(own_block(), Relaxed);
    let reply = |reply| Bindings { reply, scheduling: Binding::Keep, notification: Binding::Keep };
    // Others have to name it.
    thread::current_thread().bind(reply(Binding::Unbind)).kept();
    thread::current_thread().bind(reply(Binding::To(task.bound.get()))).kept();
    // Recorded by the creator: somebody may have called already, and then waits for the bound reply object.
    receive_turn(tid, Place::Endpoint);
    live(tid);
}

/// Runs one task after another. It is the first one's turn.
fn live(tid: Tid) -> ! {
    loop {
        leave(tid);
        let function = SESSION.task(tid).function.lock().take();
        if let Some(function) = function {
            function();
        }
        end_task(enter());
        switch_to_next(tid);
    }
}

/// Returns whether a thread has enough stack left for another task.
fn is_reusable() -> bool {
    let here = 0_u8;
    let bottom = ThreadBlock::current().map_or(0, |block| block.stack_bottom.get());
    core::ptr::from_ref(&here).addr() - bottom >= STACK_RESERVE
}

/// Continues a thread whose task does not continue, but has left its stack frames. It is nobody's turn: the session is
/// over.
pub fn retire(tid: Tid) -> ! {
    if is_reusable() {
        wait_for_turn(tid);
        live(tid);
    }
    give_up(tid);
    end_thread()
}

/// Removes the records of a thread that is about to end. If a thread waits in its bound reply object, the next gets
/// another.
fn give_up(tid: Tid) {
    let task = SESSION.task(tid);
    task.block.store(0, Relaxed);
    task.set_place(Place::Endpoint);
    task.scheduling.clear();
    if task.guest().is_some() {
        task.set_guest(None);
        task.bound.clear();
    }
}

/// Ends the calling thread.
fn end_thread() -> ! {
    // SAFETY: the stack has frames of ended tasks, whose values are never dropped. A task's function has no borrowed
    // values, so it can share only what does not lie there; and whoever waits in the library's locks, whose queues name
    // waiters on stacks, is in no primitive.
    unsafe { thread::end() }
}

pub fn exit() -> ! {
    let me = enter();
    end_task(me);
    if is_reusable() {
        switch_to_next(me);
        live(me);
    }
    // The next task's thread has no higher priority, so this one ends first, or is waited for.
    give_up(me);
    let_next_run(me, SESSION.task(me).level.load(Relaxed));
    end_thread()
}

/// Ends a task: aborts the sends of the tasks in its queue.
fn end_task(me: Tid) {
    SESSION.table.exit(me, |sender| SESSION.task(sender).length.store(ABORTED, Relaxed));
}

/// Sets the level of a task's thread. It has no time slice.
pub fn configure(tid: Tid, level: u32) {
    let task = SESSION.task(tid);
    task.level.store(level, Relaxed);
    let (base, top) = (SESSION.base.load(Relaxed), SESSION.top.load(Relaxed));
    let (priority, ceiling) = (u64::from(base + level), u64::from(base + top));
    task.scheduling().configure(priority, ceiling, 0, Some(AUTHORITY)).kept();
}

pub fn create(priority: i32, function: Function) -> Result<Tid, Error> {
    let me = enter();
    let tid = match SESSION.table.create(Some(me), priority) {
        Ok(tid) => tid,
        Err(error) => return super::refuse(me, error),
    };
    if !prepare(tid, SESSION.task(me).level.load(Relaxed)) {
        SESSION.table.exit(tid, |_| ());
        return super::refuse(me, Error::OutOfTasks);
    }
    *SESSION.task(tid).function.lock() = Some(function);
    SESSION.table.queue(tid);
    requeue(me);
    Ok(tid)
}

/// Ends the session: tells every task that waits, so that its thread is free for the next session.
fn retire_all() {
    SESSION.running.store(NOBODY, Relaxed);
    for tid in (0..MAX_TASKS as u32).map(Tid).filter(|tid| SESSION.table.state(*tid) != State::Free) {
        // The thread has a higher priority, so it goes on at once. No ready task is left.
        let task = SESSION.task(tid);
        let_go_on(task, task.place(), END);
    }
}
