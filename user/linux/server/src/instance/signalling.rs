//! Signals that reach their processes.

use alloc::boxed::Box;
use core::time::Duration;

use super::Instance;
use super::ending::child_code;
use crate::Machine;
use crate::process::{News, Process, State, Status, Timer};
use crate::signals::frame::{self, Interrupted};
use crate::signals::{Action, Cause, Disposition, Info, action_flag, number};
use crate::thread::Registers;
use crate::waiting::{Interruption, Key, Waiting};

/// `EINTR` as a result.
const INTERRUPTED: u64 = (-4i64).cast_unsigned();
/// The shortest time between two signals of a timer: the process has to get on meanwhile.
const SHORTEST: Duration = Duration::from_millis(1);
/// Size of an instruction.
const INSTRUCTION: u64 = 4;

impl<M: Machine> Instance<M> {
    /// Delivers the signals that have come for a process, if it runs or waits.
    pub(super) fn attend(&mut self, id: u32) {
        let Some(mut process) = self.processes.take(id) else { return };
        if process.signals.is_killed() && !process.has_ended() {
            return self.end(process, Status::Killed(number::KILL));
        }
        if process.is_stopped {
            return self.attend_stopped(process);
        }
        match process.state {
            State::Runs if process.signals.is_due() => {
                let registers = self.stop_thread(&mut process);
                self.go_on(process, registers);
            }
            State::Waits => self.attend_waiting(process),
            State::Runs | State::Ended(_) => self.processes.put(process),
        }
    }

    /// Lets a stopped process go on, if `SIGCONT` has come.
    fn attend_stopped(&mut self, mut process: Box<Process<M>>) {
        if !core::mem::take(&mut process.is_continued) {
            return self.processes.put(process);
        }
        process.is_stopped = false;
        process.news = Some(News::Continued);
        self.tell_parent(&process, child_code::CONTINUED, number::CONT);
        match process.stopped_at.take() {
            Some(registers) => self.go_on(process, registers),
            None => {
                self.system.waiters.make_ready(process.id);
                self.attend_waiting(process);
            }
        }
    }

    /// Ends a process's wait, if a signal has come for it.
    fn attend_waiting(&mut self, mut process: Box<Process<M>>) {
        if process.waiting.as_ref().is_some_and(|waiting| waiting.interruption == Interruption::Never) {
            return self.processes.put(process);
        }
        let Some((info, disposition)) = process.signals.take() else { return self.processes.put(process) };
        match disposition {
            Disposition::End => self.end(process, Status::Killed(info.signal)),
            Disposition::Stop if self.is_orphaned(&process, info.signal) => {
                // There may be another signal.
                self.system.signalled.extend(process.signals.is_due().then_some(process.id));
                self.processes.put(process);
            }
            Disposition::Stop => self.stop(process, info.signal),
            Disposition::Handle(action) => {
                let mut registers = self.stop_thread(&mut process);
                if let Some(waiting) = process.waiting.take() {
                    self.system.waiters.remove(process.id, &waiting);
                    self.system.cancel(process.id, &waiting);
                    self.tell_time_left(&mut process, &waiting);
                    let result = interrupt(&waiting, &action, &mut registers);
                    self.caller(&mut process).end_trace(result);
                }
                self.handle_or_fault(&mut process, &info, &action, &mut registers);
                self.go_on(process, registers);
            }
        }
    }

    /// Tells a process how much time of its wait was left, if it wants to know.
    fn tell_time_left(&mut self, process: &mut Process<M>, waiting: &Waiting) {
        if let (Some(deadline), 1..) = (waiting.deadline, waiting.time_left) {
            let left = deadline.saturating_sub(self.system.memory.hardware.monotonic());
            process.space().write(&mut self.system.memory, waiting.time_left, &crate::calls::time_record(left));
        }
    }

    /// Lets a process go on whose thread is stopped, after the signals that have come for it.
    pub(super) fn go_on(&mut self, mut process: Box<Process<M>>, mut registers: Registers) {
        while let Some((info, disposition)) = process.signals.take() {
            match disposition {
                Disposition::End => {
                    return self.end(process, Status::Killed(info.signal));
                }
                Disposition::Stop if self.is_orphaned(&process, info.signal) => {}
                Disposition::Stop => {
                    process.stopped_at = Some(registers);
                    return self.stop(process, info.signal);
                }
                Disposition::Handle(action) => {
                    self.handle_or_fault(&mut process, &info, &action, &mut registers);
                }
            }
        }
        self.run(process, &registers);
    }

    /// Makes a handler the next that a process runs. If there is no room on its stack, that is a fault, which ends the
    /// process if it was one already.
    fn handle_or_fault(&mut self, process: &mut Process<M>, info: &Info, action: &Action, registers: &mut Registers) {
        let before = *registers;
        if self.handle(process, info, action, registers) {
            return;
        }
        *registers = before;
        if info.signal == number::SEGV {
            process.signals.set_action(number::SEGV, Action::DEFAULT);
        }
        process.signals.force(Info::from_system(number::SEGV));
    }

    /// Makes a handler the next that a process runs. Returns false if there is no room on its stack.
    fn handle(&mut self, process: &mut Process<M>, info: &Info, action: &Action, registers: &mut Registers) -> bool {
        let hardware = &mut self.system.memory.hardware;
        let Some(float) = process.thread.as_ref().map(|thread| hardware.float_registers(thread)) else { return false };
        let signals = &mut process.signals;
        let (blocked, stack) = (signals.saved.take().unwrap_or(signals.blocked), signals.stack);
        signals.blocked = frame::blocked_meanwhile(info, action, signals.blocked);
        let interrupted = Interrupted { registers: *registers, float, blocked, stack };
        let frame = frame::build(info, action, &interrupted, crate::exec::TRAMPOLINE);
        let (memory, space) = (&mut self.system.memory, process.space());
        let written = space.write(memory, frame.link, &frame.linked) + space.write(memory, frame.address, &frame.bytes);
        *registers = frame.registers;
        written == frame.bytes.len() + frame.linked.len()
    }

    /// Returns whether a process does not stop at a signal because nobody would let it go on: no member of its group
    /// has a parent in another group of the session. `SIGSTOP` stops it all the same.
    fn is_orphaned(&self, process: &Process<M>, signal: u32) -> bool {
        signal != number::STOP && !self.has_guardian(process)
    }

    /// Returns whether somebody in the session, but in another group, is the parent of a member of a process's group.
    pub(super) fn has_guardian(&self, process: &Process<M>) -> bool {
        let mut members = self.processes.iter().filter(|member| member.group == process.group).chain([process]);
        members.any(|member| {
            let parent = self.processes.find(member.parent).filter(|parent| !parent.has_ended());
            parent.is_some_and(|parent| parent.group != process.group && parent.session == process.session)
        })
    }

    /// Stops a process.
    fn stop(&mut self, mut process: Box<Process<M>>, signal: u32) {
        process.is_stopped = true;
        process.is_continued = false;
        process.news = Some(News::Stopped(signal));
        self.tell_parent(&process, child_code::STOPPED, signal);
        self.processes.put(process);
    }

    /// Tells a process's parent that it has stopped or goes on.
    fn tell_parent(&mut self, process: &Process<M>, code: i32, signal: u32) {
        let Some(parent) = self.processes.get(process.parent) else { return };
        if parent.signals.action(number::CHLD).flags() & action_flag::NOCLDSTOP == 0 {
            let cause = Cause::Child { id: process.id, status: signal.cast_signed() };
            self.system.send(parent, Info { signal: number::CHLD, code, cause });
        }
        self.system.waiters.wake(Key::Children(process.parent));
    }

    /// Sends a process the signal for which its timer is set.
    pub(super) fn sound(&mut self, id: u32, now: Duration) {
        let Some(process) = self.processes.get(id) else { return };
        let Some(timer) = process.timer else { return };
        process.timer = (!timer.interval.is_zero()).then(|| {
            // Times that have passed meanwhile do not come later.
            let missed = (now.saturating_sub(timer.deadline).as_nanos() / timer.interval.as_nanos()) as u32;
            let next = timer.deadline + timer.interval * missed.saturating_add(1);
            Timer { deadline: next.max(now + SHORTEST), ..timer }
        });
        let next = process.timer.map(|timer| timer.deadline);
        self.system.send(process, Info::from_system(number::ALRM));
        self.system.waiters.set_signal(id, None, next);
    }
}

/// Ends a wait because of a handler. Returns the call's result: what has been done, or `EINTR`; `None` if the call is
/// made again after the handler.
fn interrupt(waiting: &Waiting, action: &Action, registers: &mut Registers) -> Option<u64> {
    let restarts = action.flags() & action_flag::RESTART != 0;
    if waiting.done == 0 && waiting.interruption == Interruption::Restartable && restarts {
        registers.pc = registers.pc.wrapping_sub(INSTRUCTION);
        return None;
    }
    registers.x[0] = if waiting.done > 0 { waiting.done } else { INTERRUPTED };
    Some(registers.x[0])
}
