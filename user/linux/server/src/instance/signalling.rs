//! Signals that reach their processes.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use zerocopy::IntoBytes;

use super::ending::child_code;
use super::restarting::{self, AGAIN};
use super::{INSTRUCTION, Instance};
use crate::notices::Due;
use crate::owners::{Owned, Owner, Reason};
use crate::process::{News, Process, Status};
use crate::signals::frame::{self, Kept, Place};
use crate::signals::{Action, Cause, Disposition, Info, action_flag, number, only};
use crate::thread::{Registers, Rest, State};
use crate::tracing::Point;
use crate::waiting::{Interruption, Key, Waiting};
use crate::{Machine, System};

/// `EINTR` as a result.
const INTERRUPTED: u64 = (-4i64).cast_unsigned();

impl<M: Machine> Instance<M> {
    /// Delivers the signals that have come for a process, to each of its threads that runs or waits.
    pub(super) fn attend(&mut self, id: u32) {
        if self.system.tracing.is_used {
            self.attend_traced();
        }
        let Some(process) = self.processes.get(id).filter(|process| !process.has_ended()) else { return };
        if process.is_killed() {
            return self.kill(id);
        }
        if process.is_stopped {
            return self.attend_stopped(id);
        }
        for thread in process.due_threads() {
            self.attend_thread(thread);
        }
    }

    /// Sends the signals of open files to their owners.
    pub(super) fn signal_owners(&mut self) {
        while let Some((file, key)) = self.system.waiters.take_signalling() {
            if let Some(owned @ Owned { owner: Some(owner), by, .. }) = self.system.owners.get(&file) {
                let info = owned.info(Reason::of(key), owned.descriptor);
                self.signal_owner(*owner, *by, info);
            }
        }
        while let Some(Due { owner, by, info }) = self.system.notices.take_due() {
            self.signal_owner(owner, by, info);
        }
    }

    /// Sends an owner a signal, if the user who named the owner may send it.
    fn signal_owner(&mut self, owner: Owner, by: [u32; 2], info: Info) {
        let may_signal = |process: &Process<M>| {
            let user = process.identity().user;
            by[1] == 0 || by.iter().any(|by| *by == user.real || *by == user.saved)
        };
        match owner {
            Owner::Thread(id) => {
                let process = self.processes.owner(id).and_then(|owner| self.processes.get(owner));
                if let Some(process) = process.filter(|process| may_signal(process)) {
                    let index = process.index_of(id).ok();
                    self.system.send_to(process, info, index);
                }
            }
            Owner::Process(id) => {
                if let Some(process) = self.processes.get(id).filter(|process| may_signal(process)) {
                    self.system.send(process, info);
                }
            }
            Owner::Group(id) => {
                let members = self.processes.iter_mut().filter(|process| process.group == id);
                for process in members.filter(|process| may_signal(process)) {
                    self.system.send(process, info);
                }
            }
        }
    }

    /// Ends a process, as its signal does that nobody handles.
    pub(crate) fn kill(&mut self, id: u32) {
        if let Some(process) = self.processes.take(id) {
            self.end(process, Status::Killed(number::KILL));
        }
    }

    /// Delivers the signals that have come for a thread, unless its process has stopped.
    fn attend_thread(&mut self, thread: u32) {
        let Some(mut process) = self.processes.take_thread(thread) else { return };
        match process.thread().state {
            _ if process.thread().is_trapped() => self.processes.put(process),
            State::Runs if process.is_due() && !process.is_stopped => {
                let registers = self.stop_thread(&mut process);
                self.go_on(process, registers, Rest::Stopped);
            }
            State::Waits if !process.is_stopped => self.attend_waiting(process),
            State::Runs | State::Waits | State::Ended => self.processes.put(process),
        }
    }

    /// Lets a stopped process go on, if `SIGCONT` has come.
    fn attend_stopped(&mut self, id: u32) {
        let Some(mut process) = self.processes.take(id) else { return };
        if !core::mem::take(&mut process.is_continued) {
            return self.processes.put(process);
        }
        process.is_stopped = false;
        process.news = Some(News::Continued);
        self.tell_parent(&process, child_code::CONTINUED, number::CONT);
        let threads: Vec<u32> = process.threads.iter().map(|thread| thread.id).collect();
        self.processes.put(process);
        for thread in threads {
            self.let_thread_go_on(thread);
        }
    }

    /// Lets a thread go on whose process has been stopped.
    pub(super) fn let_thread_go_on(&mut self, thread: u32) {
        let Some(mut process) = self.processes.take_thread(thread) else { return };
        if self.has_stopped_for_tracer(&mut process) {
            return self.processes.put(process);
        }
        match process.thread_mut().stopped_at.take() {
            // A signal has stopped the process again.
            registers if process.is_stopped => {
                process.thread_mut().stopped_at = registers;
                self.processes.put(process);
            }
            Some(registers) => self.go_on(process, registers, Rest::Stopped),
            None if process.thread().state == State::Waits => {
                // What the thread has waited for may have come meanwhile, and comes before a signal.
                self.processes.put(process);
                self.make_again(thread);
                self.attend_thread(thread);
            }
            None => self.processes.put(process),
        }
    }

    /// Ends the wait of a process's present thread, if a signal has come for it.
    fn attend_waiting(&mut self, mut process: Box<Process<M>>) {
        if process.thread().waiting.as_ref().is_some_and(|waiting| waiting.interruption == Interruption::Never) {
            return self.processes.put(process);
        }
        if process.thread().tracing.is_some() && process.is_due() {
            return match self.break_wait(&mut process) {
                Some((registers, rest)) => self.go_on_after_call(process, registers, rest),
                None => self.processes.put(process),
            };
        }
        let Some((info, disposition)) = process.take_signal() else { return self.processes.put(process) };
        match disposition {
            Disposition::End => self.end(process, Status::Killed(info.signal)),
            Disposition::Stop if self.is_orphaned(&process, info.signal) => {
                // There may be another signal.
                self.system.signalled.extend(process.is_due().then_some(process.id));
                self.processes.put(process);
            }
            Disposition::Stop => self.stop(process, info.signal),
            Disposition::Handle(action) if process.thread().sends => self.interrupt_message(process, &info, &action),
            Disposition::Handle(action) => {
                let mut registers = self.system.memory.hardware.registers(&process.thread().machine);
                if let Some(waiting) = self.take_wait(&mut process) {
                    let result = interrupt(&waiting, &action, &mut registers);
                    self.caller(&mut process).end_trace(result);
                }
                self.handle_or_fault(&mut process, &info, &action, &mut registers);
                self.go_on(process, registers, Rest::Waits);
            }
        }
    }

    /// Ends the wait of a process's present thread, which has sent its call, to run a signal handler.
    fn interrupt_message(&mut self, mut process: Box<Process<M>>, info: &Info, action: &Action) {
        let mut result = AGAIN;
        if let Some(waiting) = self.take_wait(&mut process) {
            let ended = result_of_interrupted(&waiting, action);
            self.caller(&mut process).end_trace(ended);
            result = ended.unwrap_or(AGAIN);
        }
        let thread = process.thread_mut();
        thread.sends = false;
        self.system.memory.hardware.answer(&mut thread.machine, Some(result));
        let mut registers = self.stop_thread(&mut process);
        self.handle_or_fault(&mut process, info, action, &mut registers);
        self.go_on(process, registers, Rest::Stopped);
    }

    /// Ends the wait of a process's present thread for a handler, and what its call has begun. Returns what there was
    /// to know of it.
    pub(super) fn take_wait(&mut self, process: &mut Process<M>) -> Option<Waiting> {
        let mut waiting = process.thread_mut().waiting.take()?;
        let thread = process.thread().id;
        self.system.waiters.remove(thread, &waiting);
        self.system.cancel(thread, &waiting);
        self.tell_time_left(process, &waiting);
        let mut caller = self.caller(process);
        caller.end_operation(&mut waiting);
        caller.end_message(&mut waiting);
        Some(waiting)
    }

    /// Tells a process how much time of its wait was left, if it wants to know.
    fn tell_time_left(&mut self, process: &Process<M>, waiting: &Waiting) {
        if let (Some(deadline), 1..) = (waiting.deadline, waiting.time_left) {
            let left = match waiting.until_run {
                None => deadline.saturating_sub(self.system.memory.hardware.monotonic()),
                Some((clock, until)) => {
                    let reading = self.system.reading(clock, process, &self.processes);
                    reading.map_or(Duration::ZERO, |reading| until.saturating_sub(reading))
                }
            };
            self.system.write(process.space, waiting.time_left, &crate::calls::time_record(left));
        }
    }

    /// Lets the present thread of a process go on, which is at rest, after the signals that have come for it.
    pub(super) fn go_on(&mut self, process: Box<Process<M>>, registers: Registers, rest: Rest) {
        self.deliver(process, registers, rest, None);
    }

    /// As [`go_on`](Self::go_on), after a signal that the thread's tracer has chosen.
    pub(super) fn deliver(
        &mut self,
        mut process: Box<Process<M>>,
        mut registers: Registers,
        rest: Rest,
        mut chosen: Option<Info>,
    ) {
        restarting::put_back(process.thread_mut(), &mut registers);
        loop {
            let (info, disposition) = match next_signal(&mut process, &mut chosen) {
                Next::None => break,
                Next::Ask(info) => return self.trap(process, Point::Signal(info), registers, rest),
                Next::Take(info, disposition) => (info, disposition),
            };
            match disposition {
                Disposition::End => return self.end_by_signal(process, info.signal, registers, rest),
                Disposition::Stop if self.is_orphaned(&process, info.signal) => {}
                Disposition::Stop => {
                    let thread = process.thread_mut();
                    thread.stopped_at = Some(self.system.stop_at(&mut thread.machine, &registers, rest));
                    return self.stop(process, info.signal);
                }
                Disposition::Handle(action) => {
                    let restarts = action.flags() & action_flag::RESTART != 0;
                    restarting::interrupt(process.thread_mut(), restarts, &mut registers);
                    let is_handled = self.handle_or_fault(&mut process, &info, &action, &mut registers);
                    if is_handled
                        && let Some(tracing) = &mut process.thread_mut().tracing
                        && tracing.steps
                    {
                        tracing.has_stepped_over_call = false;
                        return self.trap(process, Point::Handler, registers, rest);
                    }
                }
            }
        }
        if process.thread().tracing.is_some() {
            return self.run_traced(process, registers, rest);
        }
        restarting::make_again(process.thread_mut(), &mut registers);
        self.run(process, &registers, rest);
    }

    /// Makes a handler the next that a process runs. If there is no room on its stack, that is a fault, which ends the
    /// process if it was one already. Returns whether there was room.
    fn handle_or_fault(
        &mut self,
        process: &mut Process<M>,
        info: &Info,
        action: &Action,
        registers: &mut Registers,
    ) -> bool {
        let is_handled = self.handle(process, info, action, registers);
        if !is_handled {
            if info.signal == number::SEGV {
                process.set_action(number::SEGV, Action::DEFAULT);
            }
            process.force(Info::from_system(number::SEGV));
        }
        is_handled
    }

    /// Makes a handler the next that a process runs. Returns false if there is no room on its stack, and keeps the
    /// registers.
    fn handle(&mut self, process: &mut Process<M>, info: &Info, action: &Action, registers: &mut Registers) -> bool {
        let thread = process.thread_mut();
        let float = self.system.memory.hardware.float_registers(&thread.machine);
        let signals = &mut thread.signals;
        let (blocked, stack) = (signals.saved.take().unwrap_or(signals.blocked), signals.stack);
        signals.blocked = frame::blocked_meanwhile(info, action, signals.blocked);
        let place = Place::new(action, registers.sp, &stack);
        let kept = Kept::new(info, registers, &float, blocked, &stack);
        let mut write = |address, bytes: &[u8]| self.system.write(process.space, address, bytes) == bytes.len();
        let is_written = write(place.link, registers.x[29..].as_bytes()) && write(place.frame, kept.as_bytes());
        if is_written {
            place.enter(info, action, crate::exec::TRAMPOLINE, registers);
        }
        is_written
    }

    /// Returns whether a process does not stop at a signal because nobody would let it go on: no member of its group
    /// has a parent in another group of the session. `SIGSTOP` stops it all the same.
    fn is_orphaned(&self, process: &Process<M>, signal: u32) -> bool {
        signal != number::STOP && !self.processes.have_guardian(process)
    }

    /// Stops a process, whose present thread waits or is stopped already.
    fn stop(&mut self, mut process: Box<Process<M>>, signal: u32) {
        let hardware = &mut self.system.memory.hardware;
        let running = process.threads.iter_mut().filter(|thread| thread.state == State::Runs && !thread.is_trapped());
        for thread in running.filter(|thread| thread.stopped_at.is_none()) {
            hardware.stop(&mut thread.machine);
            thread.stopped_at = Some(hardware.registers(&thread.machine));
        }
        self.stop_senders(&mut process);
        for thread in &process.threads {
            if let Some(waiting) = &thread.waiting {
                self.system.let_others_read(thread.id, &waiting.keys);
            }
        }
        process.is_stopped = true;
        process.stopped_by = signal;
        process.is_continued = false;
        if self.system.tracing.is_used {
            self.trap_all(&mut process, signal);
        }
        process.news = Some(News::Stopped(signal));
        self.tell_parent(&process, child_code::STOPPED, signal);
        self.processes.put(process);
    }

    /// Stops the threads of a process that have sent the calls which wait: they need not wait for the replies, and
    /// would go on. Each reply is the result so far, or that the call is to be sent again.
    fn stop_senders(&mut self, process: &mut Process<M>) {
        let present = process.present;
        for index in 0..process.threads.len() {
            process.present = index;
            let thread = process.thread();
            if !thread.sends || thread.state != State::Waits {
                continue;
            }
            let result = self.take_wait(process).and_then(|waiting| result_of_wait(&waiting));
            self.caller(process).end_trace(result);
            let thread = process.thread_mut();
            (thread.sends, thread.state) = (false, State::Runs);
            let hardware = &mut self.system.memory.hardware;
            hardware.answer(&mut thread.machine, Some(result.unwrap_or(AGAIN)));
            hardware.stop(&mut thread.machine);
            thread.stopped_at = Some(hardware.registers(&thread.machine));
        }
        process.present = present;
    }

    /// Tells a process's parent that it has stopped or goes on, unless that traces it, and learns more.
    fn tell_parent(&mut self, process: &Process<M>, code: i32, signal: u32) {
        let tracing = process.threads.first().and_then(|thread| thread.tracing.as_ref());
        if tracing.is_some_and(|tracing| tracing.tracer_process == process.parent) {
            return;
        }
        let Some(parent) = self.processes.get(process.parent) else { return };
        if parent.signals.action(number::CHLD).flags() & action_flag::NOCLDSTOP == 0 {
            let cause =
                Cause::Child { id: process.id, user: process.identity().user.real, status: signal.cast_signed() };
            self.system.send(parent, Info { signal: number::CHLD, code, cause });
        }
        self.system.waiters.wake(Key::Children(process.parent));
    }

    /// Sends a process the signal for which its timer is set.
    pub(super) fn sound(&mut self, id: u32, now: Duration) {
        let Some(process) = self.processes.get(id) else { return };
        let Some(timer) = process.timer else { return };
        process.timer = timer.after(now);
        let next = process.timer.map(|timer| timer.deadline);
        self.system.send(process, Info::from_system(number::ALRM));
        self.system.waiters.set_signal(id, None, next);
    }
}

impl<M: Machine> System<M> {
    /// Stops a thread that is at rest, so that it will go on with these registers. Returns the registers with which it
    /// has stopped. One that is being served is answered first: if it disappeared, it would take the personality's
    /// priority along.
    pub(super) fn stop_at(&mut self, thread: &mut M::Thread, registers: &Registers, rest: Rest) -> Registers {
        let hardware = &mut self.memory.hardware;
        if rest == Rest::Stopped {
            return *registers;
        }
        hardware.set_registers(thread, registers);
        hardware.answer(thread, None);
        hardware.stop(thread);
        hardware.registers(thread)
    }
}

/// Ends a wait because of a handler. Returns the call's result: what has been done, or `EINTR`; `None` if the call is
/// made again after the handler.
fn interrupt(waiting: &Waiting, action: &Action, registers: &mut Registers) -> Option<u64> {
    let result = result_of_interrupted(waiting, action);
    match result {
        Some(result) => registers.x[0] = result,
        None => registers.pc = registers.pc.wrapping_sub(INSTRUCTION),
    }
    result
}

/// Returns the result of a call that a handler interrupts; `None` if the call is made again.
fn result_of_interrupted(waiting: &Waiting, action: &Action) -> Option<u64> {
    let restarts = action.flags() & action_flag::RESTART != 0 && waiting.interruption == Interruption::Restartable;
    result_of_wait(waiting).or((!restarts).then_some(INTERRUPTED))
}

/// Returns the result of a call that has done something before it is interrupted.
pub(super) fn result_of_wait(waiting: &Waiting) -> Option<u64> {
    let done = if waiting.messages > 0 { waiting.messages } else { waiting.done };
    (done > 0).then_some(done)
}

/// The next step of a thread that is about to run.
enum Next {
    /// No signal has come.
    None,
    /// A signal has come, of which the thread's tracer decides.
    Ask(Info),
    /// A signal is taken.
    Take(Info, Disposition),
}

/// Takes the next signal of a process's present thread: first that which its tracer has chosen.
fn next_signal<M: Machine>(process: &mut Process<M>, chosen: &mut Option<Info>) -> Next {
    let is_traced = process.thread().tracing.is_some();
    if let Some(info) = chosen.take() {
        if process.thread().signals.blocked & only(info.signal) != 0 {
            process.thread_mut().signals.pending.add(info);
        } else if let Some(disposition) = process.signals.dispose(info.signal) {
            return Next::Take(info, disposition);
        }
    }
    if is_traced && !process.is_killed() {
        let blocked = process.thread().signals.blocked;
        return process.take_signal_of(!blocked).map_or(Next::None, Next::Ask);
    }
    process.take_signal().map_or(Next::None, |(info, disposition)| Next::Take(info, disposition))
}
