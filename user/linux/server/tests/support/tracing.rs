//! Threads that others trace.

use tench_linux::processes::Processes;
use tench_linux::thread::{Rest, State, Thread};

use super::{Console, Doing};

/// Returns whether a thread has stopped for its tracer, and checks that it has one, and is where its stop says.
pub fn is_trapped(processes: &Processes<Console>, thread: &Thread<Console>) -> bool {
    let Some(tracing) = &thread.tracing else { return false };
    let tracer = processes.find(tracing.tracer_process).expect("a tracer's process is there");
    assert!(tracer.index_of(tracing.tracer).is_ok(), "thread {} has a tracer", thread.id);
    assert_eq!(tracing.resume, None, "thread {} has gone on", thread.id);
    let Some(stop) = &tracing.stop else { return false };
    let doing = if stop.rest == Rest::Waits { Doing::Waits } else { Doing::Stopped };
    assert_eq!((thread.machine.doing, thread.state), (doing, State::Runs), "thread {}", thread.id);
    true
}
