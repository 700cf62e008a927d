//! Tests of interrupts at every place: R3's table of stacks, saving areas, switches and restoring areas, cell by cell.
//!
//! | column | where the interrupt arrives | here |
//! |---|---|---|
//! | 1, 2 | user mode, enabled and disabled (an upcall runs) | [`user`] |
//! | 3, 4 | a preemption point of a system call, of an exception | [`kernel`] |
//! | 5, 6 | a preemption point of another interrupt's handler, an idle kernel | [`interrupt`] |
//!
//! Case `TABccrr` is column `cc`, row `rr`: kernel stack, saving area, context switch, restoring area.
//!
//! What is interrupted runs at low priority in a [`Drill`]; what interrupts it is the deadline of the main thread,
//! which is moved tick by tick (16 instructions) over what the drill does, while that begins up to 15 instructions
//! later. A kernel without preemption points lets nothing in where the table says "kernel mode": the cases say what
//! they expect there.

mod interrupt;
mod kernel;
mod user;

use tench::abi::layout::slot;
use tench::abi::object::{Statistic, ThreadState};
use tench::sys::{Cap, Error, Instant, Notification, Thread};

use crate::assembly;
use crate::case::{Case, Outcome};
use crate::registers::{Found, Given};
use crate::stage::{KERNEL, LOW, Stage};
use crate::worker::{Equipment, Shared, Worker, patience};

pub const CASES: &[Case] = &[
    Case::new("TAB0101", "user mode: an interrupt runs on the kernel stack of the thread it meets", user::stack),
    Case::new("TAB0102", "user mode: all registers go to the thread", user::saved),
    Case::new("TAB0103", "user mode: another thread runs at once", user::switched),
    Case::new("TAB0104", "user mode: all registers come back, wherever the interrupt came", user::restored),
    Case::new(
        "TAB0201",
        "disabled: an interrupt runs on the kernel stack of the thread it meets",
        user::stack_disabled,
    ),
    Case::new("TAB0202", "disabled: what the upcall interrupted stays in the IPC buffer", user::saved_disabled),
    Case::new("TAB0203", "disabled: another thread runs at once", user::switched_disabled),
    Case::new("TAB0204", "disabled: the upcall goes on, and returns to where it came from", user::restored_disabled),
    Case::new(
        "TAB0301",
        "system call: each stays on the stack of its thread, and all go on in any order",
        kernel::stacks,
    ),
    Case::new("TAB0302", "system call: user registers lie in the thread meanwhile", kernel::saved),
    Case::new("TAB0303", "system call: another thread runs in the middle of it", kernel::switched),
    Case::new("TAB0304", "system call: it ends rightly, wherever the interrupt came", kernel::restored),
    Case::new("TAB0401", "exception: an interrupt runs on the stack of the thread that failed", kernel::fault_stack),
    Case::new("TAB0402", "exception: all registers lie in the thread meanwhile", kernel::fault_saved),
    Case::new("TAB0403", "exception: another thread runs before the fault is sent", kernel::fault_switched),
    Case::new(
        "TAB0404",
        "exception: it is sent and gets its reply, wherever the interrupt came",
        kernel::fault_restored,
    ),
    Case::new("TAB0405", "exception: with other registers it is forgotten", kernel::fault_forgotten),
    Case::new("TAB0501", "interrupt: a second runs on the same stack, which has room for it", interrupt::stack),
    Case::new("TAB0502", "interrupt: the interrupted thread's registers lie where they lay", interrupt::saved),
    Case::new("TAB0503", "interrupt: nobody runs before the outermost is left", interrupt::switched),
    Case::new("TAB0504", "interrupt: all registers come back from two", interrupt::restored),
    Case::new("TAB0601", "idle: an interrupt uses no thread's stack", interrupt::idle_stack),
    Case::new("TAB0602", "idle: no thread's registers move", interrupt::idle_saved),
    Case::new("TAB0603", "idle: who is woken runs at once", interrupt::idle_switched),
    Case::new(
        "TAB0604",
        "idle: no deadline is missed, at whatever instruction of becoming idle it passes",
        interrupt::idle_goes_on,
    ),
];

/// Returns whether preemption points let interrupts in.
fn preemptible() -> Result<bool, Error> {
    Ok(KERNEL.query(Statistic::Preemptible)? == 1)
}

/// Returns whether a system call that clears its result registers preserved the others, from `x11` on.
fn preserved(given: &Given, found: &Found) -> bool {
    found[11..19] == [0; 8] && found[19..32] == given[19..32] && found[33] == 0
}

/// Returns how deep a thread's kernel stack was used so far.
fn depth(thread: Cap<Thread>) -> Result<u64, Error> {
    Ok(thread.query()?.kernel_stack)
}

/// The main thread.
const MAIN: Cap<Thread> = Cap::new(slot::THREAD);

/// A worker that runs the same body each time it is told to.
#[derive(Clone, Copy)]
struct Drill {
    worker: Worker<()>,
    go: Cap<Notification>,
    done: Cap<Notification>,
    never: Cap<Notification>,
    late: Shared,
}

impl Drill {
    /// Makes a drill of low priority that has begun to wait, with the body run once. Uses word 7.
    fn new<F: Fn() + Copy + 'static>(stage: &mut Stage, body: F) -> Outcome<Drill> {
        let drill = Drill::stopped(stage, Equipment::at(LOW), body)?;
        drill.worker.thread.resume()?;
        drill.warm_up()?;
        Ok(drill)
    }

    /// Makes a drill that does not run yet.
    fn stopped<F: Fn() + Copy + 'static>(stage: &mut Stage, equipment: Equipment, body: F) -> Outcome<Drill> {
        let (go, done, never) = (stage.notification()?, stage.notification()?, stage.notification()?);
        let late = stage.word(7)?;
        let worker = stage.spawn_with(Equipment { start: false, ..equipment }, move || {
            while go.wait().is_ok() {
                // SAFETY: the number is below 16.
                unsafe { assembly::delay(late.get() & 15) };
                body();
                let _ = done.signal();
            }
        })?;
        Ok(Drill { worker, go, done, never, late })
    }

    /// Runs the body once, undisturbed.
    fn warm_up(&self) -> Outcome {
        self.go.signal()?;
        self.end()
    }

    /// Starts the body `late` instructions later than otherwise; the main thread sleeps for `ticks` meanwhile.
    fn interrupt(&self, late: u64, ticks: u64) -> Outcome<Met> {
        self.late.set(late);
        let before = KERNEL.query(Statistic::Preemptions)?;
        self.go.signal()?;
        let deadline = Instant::now().after(ticks);
        refused!(self.never.wait_until(deadline), TimedOut);
        let latency = Instant::now().since(deadline);
        let preempted = KERNEL.query(Statistic::Preemptions)? > before;
        Ok(Met { latency, preempted, state: self.worker.state()? })
    }

    /// Waits until the body is done.
    fn end(&self) -> Outcome {
        self.done.wait_until(patience())?;
        Ok(())
    }
}

/// Observations of the main thread when its deadline interrupted the drill.
#[derive(Clone, Copy)]
struct Met {
    /// Ticks from the deadline to the main thread's next instructions.
    latency: u64,
    /// Set if the drill was at a preemption point.
    preempted: bool,
    /// Thread state of the drill.
    state: ThreadState,
}
