//! The requests that processes and other servers make.

use alloc::string::String;

use tench_abi::{CapAddress, Powers};
use tench_loader::LoadError;
use tench_loader::fault::OwnReport;
use tench_mem_interface::protocol::NO_QUOTA;
use tench_procs::table::{self, Condition};
use tench_procs_interface::pid;
use tench_procs_interface::protocol::{
    CAPABILITIES_PER_REPLY, Capability, Defect, Error, MAX_APPEND, MAX_FILE, MAX_NAME, MAX_SERVICE, OwnFault,
    ProcsService, State, Status, Strings,
};
use tench_protocol::{Any, Arrived, Bytes, Caller, Given, Later, List, Sent, Text};
use tench_sys::{Endpoint, Instant, Notification};

use crate::spawn::{ProcessBuilder, stack_size};
use crate::supervision::Restarts;

use super::inspect::{describe, list_capabilities, status_of};
use super::kept::{Kept, badge_of, builder_of, terms_of};
use super::waiting;
use super::{Server, reserve};

impl Server {
    /// Charges the quota for a capability that a process in preparation is to find in `slot`. Returns the process
    /// builder.
    fn charge_given(&mut self, caller: Caller, process: u64, slot: CapAddress) -> Result<&mut ProcessBuilder, Error> {
        reserve()?;
        let count = builder_of(&mut self.records, caller.process, process)?.given_with(slot)?;
        self.records.hold_given(process, count)?;
        builder_of(&mut self.records, caller.process, process)
    }

    /// Prepares a process from the program of this path or base name in the boot archive.
    fn prepare(&mut self, caller: Caller, powers: Powers, program: &str) -> Result<u64, Error> {
        reserve()?;
        // Process builders of an ended process would belong to nobody.
        self.records.check_parent(caller.process)?;
        let file = self.catalogue.find_program(program).ok_or(Error::NoSuchProgram)?;
        let builder = ProcessBuilder::new(file, program);
        self.records.prepare(&file.path, caller, powers, Some(Kept::Preparing(builder, None)))
    }

    /// Appends text to a list of strings of a process in preparation.
    fn append_text(&mut self, caller: Caller, process: u64, to: Strings, text: &[u8]) -> Result<(), Error> {
        reserve()?;
        let length = builder_of(&mut self.records, caller.process, process)?.text_after(text.len())?;
        self.records.hold_texts(process, length)?;
        builder_of(&mut self.records, caller.process, process)?.append(to, text)
    }
}

/// Returns the first of the strings, a program's path or name, and the strings after it.
fn program_of(strings: &[u8]) -> Option<(&str, &[u8])> {
    let (program, arguments) = strings.split_at(strings.iter().position(|byte| *byte == 0)?);
    Some((core::str::from_utf8(program).ok()?, arguments.get(1..)?)).filter(|_| strings.ends_with(&[0]))
}

impl ProcsService for Server {
    fn create(&mut self, caller: Caller, powers: Powers, program: Text<'_, MAX_NAME>) -> Result<u64, Error> {
        self.prepare(caller, powers, &program)
    }

    fn create_of(&mut self, caller: Caller, powers: Powers, name: Text<'_, MAX_NAME>, size: u64) -> Result<u64, Error> {
        reserve()?;
        self.records.check_parent(caller.process)?;
        table::check_name(&name)?;
        let room = usize::try_from(size).ok().filter(|room| *room <= MAX_FILE).ok_or(Error::TooLarge)?;
        let process = self.records.prepare(&name, caller, powers, None)?;
        let record = self.records.get_mut(process)?;
        match self.spawner.receive(&name, room, &terms_of(record)) {
            Ok(builder) => {
                record.kernel = Some(Kept::Preparing(builder, None));
                Ok(process)
            }
            Err(error) => {
                self.discard_record(process);
                Err(if error == LoadError::OutOfMemory { Error::OutOfMemory } else { Error::Internal })
            }
        }
    }

    fn write(&mut self, caller: Caller, process: u64, content: Bytes<'_, MAX_APPEND>) -> Result<(), Error> {
        let builder = builder_of(&mut self.records, caller.process, process)?;
        self.spawner.write(builder, &content)
    }

    fn append(&mut self, caller: Caller, process: u64, to: Strings, text: Bytes<'_, MAX_APPEND>) -> Result<(), Error> {
        self.append_text(caller, process, to, &text)
    }

    fn lend(&mut self, caller: Caller, process: u64, slot: CapAddress, cap: Arrived<'_, Any>) -> Result<(), Error> {
        self.charge_given(caller, process, slot)?.give(slot, cap);
        Ok(())
    }

    fn give_away(
        &mut self,
        caller: Caller,
        process: u64,
        slot: CapAddress,
        cap: Arrived<'_, Any, Given>,
    ) -> Result<(), Error> {
        self.charge_given(caller, process, slot)?.give(slot, cap);
        Ok(())
    }

    fn set_up(
        &mut self,
        Caller { process: caller, .. }: Caller,
        powers: Powers,
        process: u64,
        priority: u8,
        ceiling: u8,
        stack: u64,
        given: u64,
    ) -> Result<(), Error> {
        let stack = stack_size(stack)?;
        if priority > ceiling || ceiling > self.records.ceiling(caller) {
            return Err(Error::PriorityTooHigh);
        }
        // Nobody holds an unknown power.
        let given = u16::try_from(given).ok().and_then(Powers::from_bits).ok_or(Error::NotAllowed)?;
        if !powers.contains(given) {
            return Err(Error::NotAllowed);
        }
        builder_of(&mut self.records, caller, process)?.set_stack_size(stack);
        let record = self.records.get_mut(process)?;
        record.priority = priority;
        record.ceiling = ceiling;
        record.powers = given;
        Ok(())
    }

    fn set_slots(&mut self, caller: Caller, process: u64, slots: u64) -> Result<(), Error> {
        builder_of(&mut self.records, caller.process, process)?.set_slots(slots)
    }

    fn supervise(
        &mut self,
        process: u64,
        name: Text<'_, MAX_SERVICE>,
        attempts: u32,
        delay: u32,
        keep: u64,
        nodes: u32,
    ) -> Result<(), Error> {
        reserve()?;
        self.supervision.check_new(&name)?;
        let Some(Kept::Preparing(builder, restarts)) = &mut self.records.get_mut(process)?.kernel else {
            return Err(Error::WrongState);
        };
        builder.check_lasting()?;
        *restarts = Some(Restarts { name: String::from(&*name), attempts, delay, keep, nodes });
        Ok(())
    }

    fn set_link(&mut self, process: u64) -> Result<(), Error> {
        if self.records.get(process)?.has_ended() {
            return Err(Error::WrongState);
        }
        self.supervision.set_link(process);
        Ok(())
    }

    fn start(&mut self, caller: Caller, process: u64) -> Result<Option<Defect>, Error> {
        reserve()?;
        builder_of(&mut self.records, caller.process, process)?;
        self.start_prepared(process)
    }

    fn run(&mut self, caller: Caller, powers: Powers, strings: Bytes<'_, MAX_APPEND>) -> Result<u64, Error> {
        let (program, arguments) = program_of(&strings).ok_or(Error::BadStrings)?;
        let process = self.prepare(caller, powers, program)?;
        if let Err(error) = self.append_text(caller, process, Strings::Arguments, arguments) {
            self.discard_record(process);
            return Err(error);
        }
        match self.start_prepared(process)? {
            None => Ok(process),
            Some(_) => Err(Error::BadProgram),
        }
    }

    fn exit(&mut self, caller: Caller, code: u64) -> Result<(), Error> {
        self.end_process(caller.process, Condition { state: State::Exited, detail: code }, caller.process)
    }

    fn kill(
        &mut self,
        caller: Caller,
        powers: Powers,
        later: Later<'_, (), Error>,
        process: u64,
    ) -> Result<Option<()>, Error> {
        let mut later = Some(later);
        let mut keep = || later.take()?.keep().ok().map(waiting::kill);
        Ok(self.kill_for(caller, powers, process, &mut keep)?.then_some(()))
    }

    fn on_interrupt(&mut self, caller: Caller, signal: Arrived<'_, Notification>) -> Result<(), Error> {
        match &mut self.records.get_mut(caller.process)?.kernel {
            Some(Kept::Running(running)) => running.on_interrupt(signal.keep()),
            _ => return Err(Error::WrongState),
        }
        Ok(())
    }

    fn interrupt(
        &mut self,
        caller: Caller,
        powers: Powers,
        later: Later<'_, bool, Error>,
        process: u64,
    ) -> Result<Option<bool>, Error> {
        self.records.check_manage(caller.process, powers, process)?;
        if let Some(Kept::Running(running)) = &mut self.records.get_mut(process)?.kernel
            && running.interrupt()
        {
            return Ok(Some(false));
        }
        let mut later = Some(later);
        let mut keep = || later.take()?.keep().ok().map(waiting::interrupt);
        Ok(self.kill_for(caller, powers, process, &mut keep)?.then_some(true))
    }

    fn wait(&mut self, caller: Caller, later: Later<'_, Status, Error>, process: u64) -> Result<Option<Status>, Error> {
        self.waiting.wait_for(&mut self.records, caller, later, process, None)
    }

    fn wait_limited(
        &mut self,
        caller: Caller,
        later: Later<'_, Status, Error>,
        process: u64,
        deadline: Instant,
    ) -> Result<Option<Status>, Error> {
        self.waiting.wait_for(&mut self.records, caller, later, process, Some(deadline))
    }

    fn status(&mut self, process: u64) -> Result<Status, Error> {
        describe(&self.records, process)
    }

    fn next(&mut self, after: u64) -> Result<Status, Error> {
        self.records.next(after).map(|(process, record)| status_of(process, record)).ok_or(Error::NoSuchProcess)
    }

    fn child(&mut self, parent: u64, after: u64) -> Result<u64, Error> {
        self.records.child(parent, after).ok_or(Error::NoSuchProcess)
    }

    fn find(&mut self, name: Text<'_, MAX_NAME>, after: u64) -> Result<u64, Error> {
        self.records.find(&name, after).ok_or(Error::NoSuchProcess)
    }

    fn suspend(&mut self, caller: Caller, powers: Powers, process: u64) -> Result<(), Error> {
        let space = self.managed(caller.process, powers, process)?.process.address_space();
        self.records.set_state(process, State::Suspended)?;
        space.suspend_account(true).map_err(|_| Error::Internal)
    }

    fn resume(&mut self, caller: Caller, powers: Powers, process: u64) -> Result<(), Error> {
        let space = self.managed(caller.process, powers, process)?.process.address_space();
        if self.records.get(process)?.status().state != State::Suspended {
            return Err(Error::WrongState);
        }
        self.records.set_state(process, State::Running)?;
        space.suspend_account(false).map_err(|_| Error::Internal)
    }

    fn capabilities(
        &mut self,
        caller: Caller,
        powers: Powers,
        process: u64,
        from: CapAddress,
    ) -> Result<(CapAddress, List<Capability, CAPABILITIES_PER_REPLY>), Error> {
        list_capabilities(&self.records, caller.process, powers, process, from)
    }

    fn abandon(&mut self, caller: Caller, process: u64) -> Result<(), Error> {
        builder_of(&mut self.records, caller.process, process)?;
        self.discard_record(process);
        Ok(())
    }

    fn limit(
        &mut self,
        Caller { process: caller, .. }: Caller,
        powers: Powers,
        process: u64,
        bytes: u64,
    ) -> Result<(), Error> {
        self.records.check_manage(caller, powers, process)?;
        if self.records.get(caller).is_ok_and(|record| bytes > record.quota) {
            return Err(Error::NotAllowed);
        }
        let record = self.records.get_mut(process)?;
        // The account of a process that is being destroyed may be closed already, and once reopened would never be
        // closed again.
        if record.has_ended() || record.is_ending {
            return Err(Error::WrongState);
        }
        record.quota = bytes;
        // A process that is not loaded yet gets this quota when it is loaded.
        if record.status().state != State::Preparing {
            self.spawner.set_quota(process, bytes)?;
        }
        Ok(())
    }

    fn reconnect(
        &mut self,
        caller: Caller,
        later: Later<'_, Sent<Endpoint, Given>, Error>,
        slot: CapAddress,
    ) -> Result<Option<Sent<Endpoint, Given>>, Error> {
        reserve()?;
        let record = self.records.get(caller.process)?;
        let Some(Kept::Running(running)) = &record.kernel else { return Err(Error::WrongState) };
        let (_, name) = *running.connected.iter().find(|(to, _)| *to == slot).ok_or(Error::BadSlot)?;
        self.supervision.reconnect(caller, badge_of(record), later, name)
    }

    fn server(&mut self, name: Text<'_, MAX_NAME>) -> Result<Sent<Endpoint, Given>, Error> {
        self.supervision.endpoint(&name).ok_or(Error::NotRunning)?;
        self.supervision.mint(&name, 0)
    }

    fn powers(&mut self, process: u64) -> Result<u64, Error> {
        self.records.check_live(process)?;
        Ok(u64::from(self.records.get(process)?.powers.bits()))
    }

    fn forget(&mut self, process: u64) -> Result<(), Error> {
        if self.records.get(process).is_ok() {
            // The process is of this core, so this server knows when it ends.
            return Ok(());
        }
        if self.records.visitors.leave(process) {
            self.forget_foreign(process);
        }
        Ok(())
    }

    fn vouch(&mut self, process: u64) -> Result<(u64, u8, bool), Error> {
        self.records.check_live(process)?;
        let record = self.records.get(process)?;
        Ok((record.client().family, record.ceiling, record.quota != NO_QUOTA))
    }

    fn admit(&mut self, client: u64, ceiling: u8) -> Result<(), Error> {
        reserve()?;
        let client = Caller::of_badge(client);
        if pid::split_pid(client.process).0 == self.core {
            return Err(Error::NotAllowed);
        }
        self.records.visitors.admit(client, ceiling)
    }

    fn memory(&mut self, process: u64) -> Result<Option<u64>, Error> {
        self.records.get(process)?;
        self.spawner.memory(process)
    }

    fn load(&mut self) -> Result<u64, Error> {
        Ok(self.records.load() as u64)
    }

    fn fault(&mut self, caller: Caller, fault: OwnFault) -> Result<(), Error> {
        let region = fault.region.map(|region| (region.kind, region.start, region.size));
        self.faulted(caller.process, fault.report(), Some(OwnReport { kind: fault.kind, region }))
    }
}
