//! Processes are destroyed at once if they have little to tear down, otherwise in parts, between which the server
//! handles other requests.
//!
//! ```text
//!  killed, or exit, or fault ──▶ stopped ─┬─▶ parts: memory, then process builders ──▶ tell servers, reply to waiters
//!           its start has failed ──────────┘  ▲ the first at once, the others
//!                                             └─ each time the reaper asks
//! ```

use alloc::format;

use tench_abi::Powers;
use tench_abi::fault::Report;
use tench_abi::fault::reply::STOP;
use tench_abi::power::{Client, identity};
use tench_loader::fault::{Fault, OwnReport};
use tench_procs::table::Condition;
use tench_procs_interface::pid::Shown;
use tench_procs_interface::protocol::{Error, FaultKind, State};
use tench_protocol::Caller;
use tench_sys::{Cap, Endpoint, Message, Received};

use crate::supervision::{LISTENERS, say};

use super::Server;
use super::kept::{Kept, ProcessRecord};
use super::reaper::{Next, Work};
use super::waiting::Waiter;

impl Server {
    /// Does one part of the remaining work. Returns what is left.
    pub(super) fn next_part(&mut self) -> Next {
        match self.reaper.next_work() {
            Work::End(process) => {
                let has_ended = self.end_part(process);
                self.reaper.is_done_with(process, has_ended);
                Next::Part
            }
            Work::Forget(process) => {
                self.forget_foreign(process);
                Next::Part
            }
            Work::Tell => match self.supervision.tell_again(&self.records) {
                None => {
                    self.reaper.all_are_told();
                    Next::Nothing
                }
                Some(true) => Next::Part,
                Some(false) => Next::Later,
            },
        }
    }

    /// Kills a process, if `caller` may. Returns whether the caller is to get its reply now.
    pub(super) fn kill_for(
        &mut self,
        client: Caller,
        powers: Powers,
        process: u64,
        keep: &mut dyn FnMut() -> Option<Waiter>,
    ) -> Result<bool, Error> {
        let caller = client.process;
        self.records.check_manage(caller, powers, process)?;
        let how = Condition::plain(State::Killed);
        match self.records.get(process)?.kernel {
            Some(Kept::Preparing(..)) => {
                self.discard_record(process);
                return Ok(true);
            }
            Some(Kept::Ending(..)) => self.hasten(process, caller),
            // A process that kills itself gets its reply at once: its threads are suspended or gone, and another
            // process that it gave its capability to must not wait in the server's reply object.
            _ if process == caller => {
                self.managed(caller, powers, process)?;
                return self.end_process(process, how, caller).map(|()| true);
            }
            _ => {
                self.managed(caller, powers, process)?;
                self.end_process(process, how, caller)?;
            }
        }
        let has_ended = self.records.get(process).is_ok_and(ProcessRecord::has_ended);
        Ok(has_ended || !self.waiting.wait_for_kill(&mut self.records, client, process, keep))
    }

    /// Ends the process of a thread that has faulted; the reply stops the thread.
    pub(super) fn fault_message(&mut self, message: &Received, reply: &mut Message) {
        let report = Report::of_message(message.tag().label(), &core::array::from_fn(|i| message.word(i)));
        // If this server knows no such process, the thread is stopped all the same.
        let _ = self.faulted(identity(message.badge()), report, None);
        reply.restart(STOP);
    }

    /// Reports a fault, and ends the process.
    pub(super) fn faulted(&mut self, process: u64, report: Report, own: Option<OwnReport>) -> Result<(), Error> {
        let Ok(ProcessRecord { kernel: Some(Kept::Running(running)), name, .. }) = self.records.get(process) else {
            return Err(Error::NoSuchProcess);
        };
        let console = self.supervision.console_for(process);
        let kind = report_fault(console, name, process, &Fault { report, layout: &running.layout, own });
        self.end_process(process, Condition { state: State::Faulted, detail: kind as u64 }, process)
    }

    /// Ends a process: stops it, and destroys it now or in parts. `by` is the process that requests this.
    pub(super) fn end_process(&mut self, process: u64, how: Condition, by: u64) -> Result<(), Error> {
        let record = self.records.get_mut(process)?;
        match record.kernel.take() {
            Some(Kept::Running(running)) => record.kernel = Some(Kept::Ending(running.stop(), how)),
            other => {
                record.kernel = other;
                return Err(Error::WrongState);
            }
        }
        self.supervision.stopped(process);
        self.records.mark_ending(process)?;
        self.take_apart(process, by);
        Ok(())
    }

    /// Cleans up after a failed start: destroys what was built, now or in parts, and then removes the record.
    pub(super) fn give_up(&mut self, process: u64) {
        if self.records.mark_ending(process).is_ok() {
            self.take_apart(process, process);
        }
    }

    /// Destroys a process now, or in parts.
    fn take_apart(&mut self, process: u64, by: u64) {
        if self.end_part(process) {
            return;
        }
        if !self.reaper.add(process) {
            // There is no memory to queue the rest, so all parts are done now.
            while !self.end_part(process) {}
            return;
        }
        self.hasten(process, process);
        self.hasten(process, by);
        self.reaper.wake();
    }

    /// Raises the priority of a teardown to that of the process `whose`, which kills, if it is known here.
    fn hasten(&mut self, process: u64, whose: u64) {
        if let Ok(record) = self.records.get(whose) {
            self.reaper.hasten(process, record.priority);
        }
    }

    /// Discards the process builders of a process of another core, now or in parts. Its waits stay: the process may be
    /// running, and monitors wait in its name.
    pub(super) fn forget_foreign(&mut self, process: u64) {
        self.waiting.look_for_gone(&mut self.records);
        if let Some(prepared) = self.records.prepared_by(process) {
            self.discard_record(prepared);
        }
        if self.records.prepared_by(process).is_none() {
            return;
        }
        if !self.reaper.add_foreign(process) {
            while let Some(prepared) = self.records.prepared_by(process) {
                self.discard_record(prepared);
            }
        }
    }

    /// Does one part of destroying a process. Returns whether the process has ended.
    fn end_part(&mut self, process: u64) -> bool {
        let Ok(record) = self.records.get_mut(process) else { return true };
        let Some(Kept::Ending(remains, _)) = &mut record.kernel else { return true };
        if !remains.clear_part() {
            return false;
        }
        // Requests in the name of this process are refused, so it can get no more process builders.
        if let Some(prepared) = self.records.prepared_by(process) {
            self.discard_record(prepared);
            if self.records.prepared_by(process).is_some() {
                return false;
            }
        }
        self.has_ended(process);
        true
    }

    /// Completes the end of a process that has nothing left: tells the other servers, and replies to the waiters. A
    /// process that never ran leaves no record.
    fn has_ended(&mut self, process: u64) {
        let Ok(record) = self.records.get_mut(process) else { return };
        if record.status().state == State::Preparing {
            return self.discard_record(process);
        }
        let Some(Kept::Ending(remains, how)) = record.kernel.take() else { return };
        record.ticks = remains.used();
        let client = record.client();
        let Ok(ended) = self.records.record_end(process, how) else { return };
        self.tell_servers(client);
        let name = self.records.get(process).map_or("", |record| &record.name);
        self.supervision.ended(process, name, how.state);
        self.waiting.ended(process, ended.waiters, ended.abandoned);
        self.waiting.look_for_gone(&mut self.records);
    }

    /// Removes the record of a process that did not start.
    pub(super) fn discard_record(&mut self, process: u64) {
        let Ok(client) = self.records.get(process).map(ProcessRecord::client) else { return };
        let Some(ended) = self.records.discard(process) else { return };
        if let Some(Kept::Preparing(builder, _)) = ended.kernel {
            builder.abandon();
        }
        // The process may have been given streams.
        self.tell_servers(client);
        self.waiting.ended(process, ended.waiters, ended.abandoned);
    }

    /// Tells the servers that a process has ended. A server that does not run is told when it runs again.
    fn tell_servers(&mut self, ended: Client) {
        LISTENERS.into_iter().for_each(|name| self.tell(name, ended));
    }

    /// Tells one server now, or when it runs again.
    pub(super) fn tell(&mut self, name: &str, ended: Client) {
        if self.supervision.tell(name, ended, &self.records) {
            self.reaper.tell_later(self.records.get(ended.process).map_or(0, |record| record.priority));
        }
    }
}

/// Reports a fault of a process and returns its kind.
fn report_fault(console: Option<Cap<Endpoint>>, name: &str, pid: u64, fault: &Fault) -> FaultKind {
    let base = name.rsplit('/').next().unwrap_or(name);
    let instruction = fault.layout.linked(fault.report.instruction);
    say(console, &format!("{base} (pid {}): {fault}\n  at {instruction:#x} in {base}\n", Shown(pid)));
    fault.kind()
}
