//! Threads that others trace: where they stop, and how they go on.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tench_linux_calls::Sysno;
use tench_linux_calls::numbers::trace::{event, option};

use super::Instance;
use super::ending::{child_code, end_code};
use super::restarting::{self, AGAIN, Interrupted};
use super::signalling::result_of_wait;
use crate::caller::Outcome;
use crate::process::{Process, Status};
use crate::processes::Processes;
use crate::signals::{Cause, Info, action_flag, number};
use crate::thread::{Registers, Rest, State};
use crate::tracing::{After, Ended, Point, Resume, Stop, Tracing};
use crate::waiting::{Interruption, Key};
use crate::{Machine, System};

impl<M: Machine> Instance<M> {
    /// Attends to threads that their tracers let go on or want to stop.
    pub(super) fn attend_traced(&mut self) {
        while let Some(id) = self.system.tracing.paid.pop() {
            self.pay(id);
        }
        while let Some(id) = self.system.tracing.touched.pop_front() {
            let Some(process) = self.processes.take_thread(id) else { continue };
            let Some(tracing) = &process.thread().tracing else {
                self.processes.put(process);
                continue;
            };
            if let Some(resume) = tracing.resume {
                self.resume(process, resume);
            } else if tracing.stop.is_some() {
                self.stop_anew(process);
            } else {
                self.stop_soon(process);
            }
        }
    }

    /// Lets a thread that listens stop anew if its process goes on, or if its tracer wants so.
    fn stop_anew(&mut self, mut process: Box<Process<M>>) {
        let is_stopped = process.is_stopped;
        let Some(tracing) = &mut process.thread_mut().tracing else { return self.processes.put(process) };
        if !tracing.listens || is_stopped && !tracing.is_interrupted {
            return self.processes.put(process);
        }
        (tracing.listens, tracing.is_interrupted) = (false, false);
        if let Some(stop) = tracing.stop.take() {
            let point = if is_stopped { stop.point } else { Point::Trap };
            return self.trap(process, point, stop.registers, stop.rest);
        }
        self.processes.put(process);
    }

    /// Stops a thread which runs or waits.
    fn stop_soon(&mut self, mut process: Box<Process<M>>) {
        let stopped_by = process.is_stopped.then_some(process.stopped_by);
        if let Some(registers) = process.thread_mut().stopped_at.take() {
            let point = stopped_by.map_or(Point::Trap, Point::Stopped);
            return self.trap(process, point, registers, Rest::Stopped);
        }
        let (registers, rest) = match process.thread().state {
            State::Runs => (self.stop_thread(&mut process), Rest::Stopped),
            State::Waits => match self.break_wait(&mut process) {
                Some(broken) => broken,
                None => return self.processes.put(process),
            },
            State::Ended => return self.processes.put(process),
        };
        match stopped_by {
            Some(signal) => self.trap(process, Point::Stopped(signal), registers, rest),
            None => self.go_on(process, registers, rest),
        }
    }

    /// Ends the wait of a process's present thread for its tracer. Returns its registers, and what keeps it from
    /// running; nothing if its call cannot be interrupted.
    pub(super) fn break_wait(&mut self, process: &mut Process<M>) -> Option<(Registers, Rest)> {
        let never = |interruption| interruption == Interruption::Never;
        if process.thread().waiting.as_ref().is_some_and(|waiting| never(waiting.interruption)) {
            return None;
        }
        let mut result = AGAIN;
        let mut interrupted = None;
        if let Some(waiting) = self.take_wait(process) {
            let known = result_of_wait(&waiting);
            result = known.unwrap_or_else(|| restarting::result(&waiting));
            if waiting.number != Sysno::restart_syscall as u64 {
                interrupted = known.is_none().then(|| Interrupted::new(&waiting));
            } else if let Some(mut call) = process.thread_mut().interrupted.take() {
                call.reopen();
                interrupted = Some(call);
            }
            self.caller(process).end_trace(known);
        }
        let hardware = &mut self.system.memory.hardware;
        let thread = process.thread_mut();
        thread.state = State::Runs;
        if core::mem::take(&mut thread.sends) {
            hardware.answer(&mut thread.machine, Some(result));
            hardware.stop(&mut thread.machine);
            return Some((hardware.registers(&thread.machine), Rest::Stopped));
        }
        let mut registers = hardware.registers(&thread.machine);
        registers.x[0] = result;
        thread.interrupted = interrupted;
        Some((registers, Rest::Waits))
    }

    /// Goes on after the call of a traced thread, of which an event is told first.
    pub(super) fn conclude_traced(&mut self, mut process: Box<Process<M>>, outcome: Outcome) {
        let thread = process.thread_mut();
        let Some(tracing) = &mut thread.tracing else { return self.conclude_otherwise(process, outcome) };
        if let Outcome::Run { .. } | Outcome::Enter(_) = outcome {
            return self.conclude_otherwise(process, outcome);
        }
        let ends = tracing.wants(event::EXIT);
        let after = match outcome {
            Outcome::Wait => After::Wait,
            Outcome::EndThread(code) => After::EndThread(Status::Exited(code)),
            Outcome::Exit(code) => After::EndProcess(Status::Exited(code)),
            _ => After::Return,
        };
        let event = match after {
            After::EndThread(status) | After::EndProcess(status) if ends => {
                tracing.message = status.word().into();
                Some(event::EXIT)
            }
            _ => tracing.event.take(),
        };
        let mut registers = self.system.memory.hardware.registers(&thread.machine);
        match outcome {
            Outcome::Return(result) => registers.x[0] = result,
            Outcome::Yield => registers.x[0] = 0,
            _ => {}
        }
        match event {
            Some(event) => self.trap(process, Point::Event(event, after), registers, Rest::Waits),
            None if after == After::Wait => self.wait(process),
            None => self.go_on_after(process, after, registers, Rest::Waits),
        }
    }

    /// Goes on after an event.
    fn go_on_after(&mut self, mut process: Box<Process<M>>, after: After, registers: Registers, rest: Rest) {
        match after {
            After::Return => self.go_on_after_call(process, registers, rest),
            After::Wait => {
                // What it waits for may have happened meanwhile.
                let Some(waiting) = &process.thread().waiting else { return self.processes.put(process) };
                let (number, arguments) = (waiting.number, waiting.arguments);
                let outcome = self.caller(&mut process).call(number, &arguments);
                self.conclude(process, outcome);
            }
            After::EndThread(status) => self.end_thread(process, status),
            After::EndProcess(status) => self.end(process, status),
        }
    }

    /// Lets a traced thread stop after its call, or go on.
    pub(super) fn go_on_after_call(&mut self, mut process: Box<Process<M>>, registers: Registers, rest: Rest) {
        if let Some(tracing) = &mut process.thread_mut().tracing {
            if tracing.watches_calls {
                return self.trap(process, Point::Exit, registers, rest);
            }
            if core::mem::take(&mut tracing.steps) {
                tracing.has_stepped_over_call = true;
                process.force(Info::from_process(number::TRAP, 0, 0));
            }
        }
        self.go_on(process, registers, rest);
    }

    /// Lets a process's present thread go on in its new program, of which its tracer learns first.
    pub(super) fn begin_traced(&mut self, mut process: Box<Process<M>>, registers: Registers) {
        let id = process.id;
        let thread = process.thread_mut();
        let Some(tracing) = &mut thread.tracing else { return self.go_on(process, registers, Rest::Stopped) };
        thread.interrupted = None;
        if tracing.wants(event::EXEC) {
            tracing.message = id.into();
            return self.trap(process, Point::Event(event::EXEC, After::Return), registers, Rest::Stopped);
        }
        if !tracing.is_seized {
            thread.signals.pending.add(Info::from_process(number::TRAP, id, 0));
        }
        self.go_on_after_call(process, registers, Rest::Stopped);
    }

    /// Lets a traced thread run after all signals, unless its tracer or its process wants it to stop.
    pub(super) fn run_traced(&mut self, mut process: Box<Process<M>>, mut registers: Registers, rest: Rest) {
        let stopped_by = process.is_stopped.then_some(process.stopped_by);
        if let Some(tracing) = &mut process.thread_mut().tracing {
            let is_interrupted = core::mem::take(&mut tracing.is_interrupted);
            if let Some(signal) = stopped_by {
                return self.trap(process, Point::Stopped(signal), registers, rest);
            }
            if is_interrupted {
                return self.trap(process, Point::Trap, registers, rest);
            }
        }
        let is_again = restarting::make_again(process.thread_mut(), &mut registers);
        if let Some(tracing) = &mut process.thread_mut().tracing {
            let is_over = core::mem::take(&mut tracing.has_stepped_over_call) && !is_again;
            if tracing.steps && is_over {
                tracing.steps = false;
                process.force(Info::of_step(registers.pc));
                return self.go_on(process, registers, rest);
            }
            if tracing.steps {
                return self.run_one_instruction(process, &registers, rest);
            }
        }
        self.run(process, &registers, rest);
    }

    /// Lets a traced thread run until it has executed one instruction.
    fn run_one_instruction(&mut self, mut process: Box<Process<M>>, registers: &Registers, rest: Rest) {
        let thread = process.thread_mut();
        thread.state = State::Runs;
        thread.signals.restore_blocked();
        let hardware = &mut self.system.memory.hardware;
        hardware.step(&mut thread.machine, registers, rest);
        if rest == Rest::Waits {
            hardware.answer(&mut thread.machine, None);
        }
        self.processes.put(process);
    }

    /// Returns whether the present thread of a process was to execute one instruction, which it has done.
    pub(super) fn has_made_step(process: &mut Process<M>) -> bool {
        let Some(tracing) = &mut process.thread_mut().tracing else { return false };
        core::mem::take(&mut tracing.steps)
    }

    /// Stops a process's present thread at a point, and tells its tracer.
    pub(super) fn trap(&mut self, mut process: Box<Process<M>>, point: Point, registers: Registers, rest: Rest) {
        self.trap_present(&mut process, point, registers, rest);
        self.processes.put(process);
    }

    /// As [`trap`](Self::trap), with a process that is kept.
    pub(super) fn trap_present(
        &mut self,
        process: &mut Process<M>,
        point: Point,
        mut registers: Registers,
        rest: Rest,
    ) {
        let user = process.identity().user.real;
        let thread = process.thread_mut();
        if !matches!(point, Point::Entry | Point::Exit | Point::Event(..)) {
            restarting::put_back(thread, &mut registers);
        }
        let Some(tracing) = &mut thread.tracing else { return };
        let hardware = &mut self.system.memory.hardware;
        if rest == Rest::Waits {
            hardware.set_registers(&mut thread.machine, &registers);
            hardware.keep(&mut thread.machine);
        }
        let code = tracing.code(point);
        let number = registers.x[8] as u32;
        let call = match point {
            Point::Entry => *tracing.call.insert(number),
            Point::Event(..) => tracing.call.unwrap_or(number),
            Point::Exit => tracing.call.take().unwrap_or(number),
            Point::Signal(_) | Point::Handler | Point::Trap | Point::Stopped(_) => u32::MAX,
        };
        match point {
            Point::Event(..) => {}
            Point::Entry => tracing.message = 1,
            Point::Exit => tracing.message = 2,
            Point::Signal(_) | Point::Handler | Point::Trap | Point::Stopped(_) => tracing.message = 0,
        }
        tracing.stop = Some(Stop { point, registers, rest, call, is_news: true });
        let (id, tracer) = (thread.id, tracing.tracer_process);
        self.tell_tracer(tracer, id, user, child_code::TRAPPED, code.cast_signed());
    }

    /// Sends a tracer `SIGCHLD` about a thread.
    pub(super) fn tell_tracer(&mut self, tracer: u32, id: u32, user: u32, code: i32, status: i32) {
        let Some(process) = self.processes.get(tracer) else { return };
        let is_end = matches!(code, child_code::EXITED | child_code::KILLED);
        if is_end || process.signals.action(number::CHLD).flags() & action_flag::NOCLDSTOP == 0 {
            let cause = Cause::Child { id, user, status };
            self.system.send(process, Info { signal: number::CHLD, code, cause });
        }
        self.system.waiters.wake(Key::Children(tracer));
    }

    /// Lets a stopped thread go on.
    fn resume(&mut self, mut process: Box<Process<M>>, resume: Resume) {
        let is_process_stopped = process.is_stopped;
        let thread = process.thread_mut();
        let Some(tracing) = &mut thread.tracing else { return self.processes.put(process) };
        (tracing.resume, tracing.listens) = (None, false);
        let Some(stop) = tracing.stop.take() else { return self.processes.put(process) };
        let Stop { point, registers, rest, call, .. } = stop;
        if resume.is_detached {
            thread.tracing = None;
        }
        let id = thread.id;
        let keeps_stopped = is_process_stopped && resume.is_detached;
        match point {
            Point::Stopped(_) | Point::Trap if keeps_stopped => {
                let thread = process.thread_mut();
                thread.stopped_at = Some(self.system.stop_at(&mut thread.machine, &registers, rest));
                self.processes.put(process);
            }
            Point::Stopped(_) if is_process_stopped => self.let_process_go_on(process, registers, rest),
            Point::Entry => self.make_traced_call(process, call, &registers),
            Point::Event(_, after) => {
                if rest == Rest::Waits {
                    self.system.memory.hardware.set_registers(&mut process.thread_mut().machine, &registers);
                }
                self.go_on_after(process, after, registers, rest);
            }
            Point::Signal(info) => {
                let chosen = injected(&process, info, resume.signal);
                self.deliver(process, registers, rest, chosen);
            }
            Point::Exit | Point::Handler | Point::Trap | Point::Stopped(_) => {
                if point == Point::Exit && resume.signal != 0 {
                    let (index, info) = (process.present, Info::from_process(resume.signal, 0, 0));
                    process.send(info, Some(index));
                }
                self.go_on(process, registers, rest);
            }
        }
        if keeps_stopped {
            self.stop_with_process(id);
        }
    }

    /// Stops a thread that has just gone on although its process is stopped: its tracer, which has kept it until now,
    /// does not want it any more.
    fn stop_with_process(&mut self, id: u32) {
        let Some(mut process) = self.processes.take_thread(id) else { return };
        let thread = process.thread();
        let runs = thread.state == State::Runs && thread.stopped_at.is_none() && !thread.is_trapped();
        if runs && process.is_stopped {
            let registers = self.stop_thread(&mut process);
            process.thread_mut().stopped_at = Some(registers);
        }
        self.processes.put(process);
    }

    /// Lets a process go on that a signal has stopped, since the tracer of its present thread wants so.
    fn let_process_go_on(&mut self, mut process: Box<Process<M>>, registers: Registers, rest: Rest) {
        process.is_stopped = false;
        let own = process.thread().id;
        let others: Vec<u32> = process.threads.iter().map(|thread| thread.id).filter(|id| *id != own).collect();
        self.go_on(process, registers, rest);
        for thread in others {
            self.let_thread_go_on(thread);
        }
    }

    /// Makes the call before which a thread has stopped, with what its registers are now.
    fn make_traced_call(&mut self, mut process: Box<Process<M>>, number: u32, registers: &Registers) {
        self.system.memory.hardware.set_registers(&mut process.thread_mut().machine, registers);
        if number == u32::MAX {
            return self.go_on_after_call(process, *registers, Rest::Waits);
        }
        let [a, b, c, d, e, f, ..] = registers.x;
        let outcome = self.caller(&mut process).call_after_stop(number.into(), &[a, b, c, d, e, f]);
        self.conclude(process, outcome);
    }

    /// Returns whether a thread whose process goes on has stopped for its tracer. If it listens, or its tracer tells
    /// stops apart, it stops anew.
    pub(super) fn has_stopped_for_tracer(&mut self, process: &mut Process<M>) -> bool {
        let thread = process.thread_mut();
        let Some(tracing) = &mut thread.tracing else { return false };
        if tracing.stop.is_none() {
            return false;
        }
        tracing.is_interrupted |= tracing.is_seized;
        if tracing.listens {
            self.system.touch_traced(thread.id);
        }
        true
    }

    /// Ends a process by a signal, of which a tracer may want to learn first.
    pub(super) fn end_by_signal(
        &mut self,
        mut process: Box<Process<M>>,
        signal: u32,
        registers: Registers,
        rest: Rest,
    ) {
        let status = Status::Killed(signal);
        match &mut process.thread_mut().tracing {
            Some(tracing) if signal != number::KILL && tracing.wants(event::EXIT) => {
                tracing.message = status.word().into();
                self.trap(process, Point::Event(event::EXIT, After::EndProcess(status)), registers, rest);
            }
            _ => self.end(process, status),
        }
    }

    /// Stops the traced threads of a process with it.
    pub(super) fn trap_all(&mut self, process: &mut Process<M>, signal: u32) {
        let present = process.present;
        for index in 0..process.threads.len() {
            process.present = index;
            let thread = process.thread_mut();
            let is_meant = thread.tracing.as_ref().is_some_and(|tracing| tracing.stop.is_none());
            if !is_meant || thread.state == State::Ended {
                continue;
            }
            let stopped = match thread.stopped_at.take() {
                Some(registers) => Some((registers, Rest::Stopped)),
                None => self.break_wait(process),
            };
            if let Some((registers, rest)) = stopped {
                self.trap_present(process, Point::Stopped(signal), registers, rest);
            }
        }
        process.present = present;
    }

    /// Ends all tracing by a thread, or by all of a process.
    pub(super) fn end_tracing(&mut self, tracer: u32, is_process: bool) {
        if !self.system.tracing.is_used {
            return;
        }
        let is_its = |tracing: &Tracing| tracing.tracer == tracer || is_process && tracing.tracer_process == tracer;
        self.system.let_go_of_traced(&mut self.processes, is_its);
        if !is_process {
            return;
        }
        self.system.tracing.ended.retain(|_, ended| ended.tracer != tracer);
        let owed: Vec<u32> =
            self.processes.iter().filter(|process| process.owed_to == Some(tracer)).map(|process| process.id).collect();
        for id in owed {
            self.pay(id);
        }
    }

    /// Lets the parent learn of a process's end of which the tracer has learnt, or cannot learn any more.
    pub(crate) fn pay(&mut self, id: u32) {
        let Some(process) = self.processes.get(id) else { return };
        process.owed_to = None;
        let (parent, end_signal, user) = (process.parent, process.end_signal, process.identity().user.real);
        let Some(status) = process.ended else { return };
        let (code, value) = end_code(status);
        if !self.wants_children(parent) && end_signal == number::CHLD {
            self.processes.remove(id);
        }
        let info = Info { signal: end_signal, code, cause: Cause::Child { id, user, status: value } };
        if end_signal != 0
            && let Some(parent) = self.processes.get(parent)
        {
            self.system.send(parent, info);
        }
        self.system.waiters.wake(Key::Children(parent));
    }

    /// Tells the tracers of a process's further threads that these end with it. Returns the tracer of its first thread,
    /// if that is to learn of the end before the parent does.
    pub(super) fn tell_end_of_threads(&mut self, process: &Process<M>, status: Status) -> Option<u32> {
        for index in 1..process.threads.len() {
            self.tell_end_of_thread(process, index, status);
        }
        let tracer = process.threads.first()?.tracing.as_ref()?.tracer_process;
        let is_there = self.processes.find(tracer).is_some_and(|tracer| !tracer.has_ended());
        (is_there && tracer != process.parent).then_some(tracer)
    }

    /// Tells the tracer of a thread that ends while its process goes on.
    pub(super) fn tell_end_of_thread(&mut self, process: &Process<M>, index: usize, status: Status) {
        if let Some(tracer) = self.system.note_end_of_thread(process, index, status) {
            let (code, value) = end_code(status);
            self.tell_tracer(tracer, process.threads[index].id, process.identity().user.real, code, value);
        }
    }
}

impl<M: Machine> System<M> {
    /// Ends the tracing of some threads, as the end of their tracer does: they go on, or are killed if that was wanted.
    fn let_go_of_traced(&mut self, others: &mut Processes<M>, is_meant: impl Fn(&Tracing) -> bool) {
        for process in others.iter_mut() {
            let mut is_killed = false;
            for thread in &mut process.threads {
                let Some(tracing) = thread.tracing.as_mut().filter(|tracing| is_meant(tracing)) else { continue };
                is_killed |= tracing.options & option::KILL_AT_END != 0;
                if tracing.stop.is_some() {
                    tracing.resume = Some(Resume { signal: 0, is_detached: true });
                    self.tracing.touched.push_back(thread.id);
                    self.signalled.push_back(thread.id);
                } else {
                    thread.tracing = None;
                }
            }
            if is_killed {
                self.send(process, Info::from_process(number::KILL, 0, 0));
            }
        }
    }

    /// Ends the tracing by all threads of a process but the present one, which becomes the first.
    pub(super) fn keep_traced_of_present(&mut self, process: &Process<M>, others: &mut Processes<M>) {
        let (own, present) = (process.id, process.thread().id);
        self.let_go_of_traced(others, |tracing| tracing.tracer_process == own && tracing.tracer != present);
        let threads = others.iter_mut().flat_map(|process| &mut process.threads);
        for tracing in threads.filter_map(|thread| thread.tracing.as_mut()) {
            if tracing.tracer == present {
                tracing.tracer = own;
            }
        }
    }

    /// Notes that a thread ends while its process goes on, if it is traced. Returns the tracer's process.
    pub(super) fn note_end_of_thread(&mut self, process: &Process<M>, index: usize, status: Status) -> Option<u32> {
        let thread = &process.threads[index];
        let tracer = thread.tracing.as_ref()?.tracer_process;
        let (group, user) = (process.group, process.identity().user.real);
        self.tracing.ended.insert(thread.id, Ended { tracer, group, user, status });
        self.waiters.wake(Key::Children(tracer));
        Some(tracer)
    }
}

/// Returns the signal that a thread gets in place of one, as its tracer says.
fn injected<M: Machine>(process: &Process<M>, info: Info, signal: u32) -> Option<Info> {
    match signal {
        0 => None,
        signal if signal == info.signal => Some(info),
        signal => {
            let tracer = process.thread().tracing.as_ref().map_or(0, |tracing| tracing.tracer_process);
            Some(Info::from_process(signal, tracer, 0))
        }
    }
}
