//! Sessions and their controlling terminals: who uses a terminal, who has to stop because others do, and what happens
//! when the leader or the terminal is gone.

use tench_linux_calls::numbers::capability;
use tench_linux_files::Errno;

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::instance::Instance;
use crate::signals::{Info, number};
use crate::terminals::{End, HangUp, TerminalId};
use crate::waiting::{Interruption, Key};

impl<M: Machine> Caller<'_, M> {
    /// Returns the group that uses a terminal.
    fn foreground(&self, id: TerminalId) -> Option<u32> {
        self.system.terminals.get(id).and_then(|terminal| terminal.discipline.foreground())
    }

    /// Sends a signal to the processes that use a terminal.
    pub(super) fn signal_foreground(&mut self, id: TerminalId, signal: u32) {
        if let Some(group) = self.foreground(id) {
            self.signal_group(group, signal);
        }
    }

    /// Sends a signal to the processes of a group, unless they have ended.
    fn signal_group(&mut self, group: u32, signal: u32) {
        let Caller { system, process, others } = self;
        for process in others.iter_mut().chain([&mut **process]).filter(|process| process.group == group) {
            system.send(process, Info::from_system(signal));
        }
    }

    /// Checks that the process may do to a terminal what its session lets only the foreground do. In the background
    /// its group gets a signal, which stops it; if that is blocked or ignored, reading fails, and the rest is allowed.
    ///
    /// # Errors
    /// `EIO` if the process would not stop, or if nobody would let it go on. Otherwise the call waits.
    pub(super) fn check_foreground(&mut self, id: TerminalId, signal: u32) -> Result<()> {
        let is_own = self.process.terminal == Some(id);
        if !is_own || self.foreground(id).is_none_or(|group| group == self.process.group) {
            return Ok(());
        }
        if self.process.signals.is_ignored(signal) || self.process.thread().signals.blocks(signal) {
            return if signal == number::TTIN { Err(Errno::EIO) } else { Ok(()) };
        }
        if !self.others.have_guardian(self.process) {
            return Err(Errno::EIO);
        }
        self.signal_group(self.process.group, signal);
        self.system.let_others_read(self.process.thread().id, &[Key::Terminal(id)]);
        Err(self.wait(&[Key::Terminal(id)], None, Interruption::Restartable))
    }

    /// Makes a terminal that of the session, if the process leads one without a terminal, and no session has it.
    pub(super) fn take_free_terminal(&mut self, id: TerminalId) {
        let is_free = self.system.terminals.get(id).is_some_and(|terminal| terminal.discipline.session().is_none());
        if is_free && self.process.session == self.process.id && self.process.terminal.is_none() {
            self.take_terminal(id);
        }
    }

    fn take_terminal(&mut self, id: TerminalId) {
        let Ok(terminal) = self.system.terminals.terminal(id) else { return };
        terminal.discipline.set_session(Some(self.process.session));
        terminal.discipline.set_foreground(Some(self.process.group));
        (self.process.terminal, self.process.abandoned_group) = (Some(id), None);
    }

    /// Takes a terminal from all processes of a session.
    fn take_from_session(&mut self, session: u32, id: TerminalId) {
        for process in self.others.iter_mut().chain([&mut *self.process]) {
            process.terminal.take_if(|own| process.session == session && *own == id);
        }
    }

    /// Makes a terminal that of the session, if the process leads it: `TIOCSCTTY`. With the argument 1 it is taken from
    /// another session.
    pub(super) fn set_terminal(&mut self, id: TerminalId, argument: u64) -> Result {
        let owner = self.system.terminals.terminal(id)?.discipline.session();
        let leads = self.process.session == self.process.id;
        if leads && owner == Some(self.process.session) {
            return Ok(0);
        }
        if !leads || self.process.terminal.is_some() {
            return Err(Errno::EPERM);
        }
        match owner {
            Some(_) if argument != 1 || !self.identity().has(capability::SYS_ADMIN) => return Err(Errno::EPERM),
            Some(session) => self.take_from_session(session, id),
            None => {}
        }
        self.take_terminal(id);
        Ok(0)
    }

    /// Gives up the process's terminal, and with a leader that of its session: `TIOCNOTTY`.
    pub(super) fn leave_terminal(&mut self, id: TerminalId) -> Result {
        if self.process.terminal != Some(id) {
            return Err(Errno::ENOTTY);
        }
        if self.process.session == self.process.id {
            if let Some(group) = self.foreground(id) {
                self.signal_group(group, number::HUP);
                self.signal_group(group, number::CONT);
            }
            self.free_terminal(id);
        }
        self.process.terminal = None;
        Ok(0)
    }

    /// Takes a terminal from the process's session, which the process leads.
    fn free_terminal(&mut self, id: TerminalId) {
        if let Ok(terminal) = self.system.terminals.terminal(id) {
            terminal.discipline.set_session(None);
            terminal.discipline.set_foreground(None);
        }
        self.take_from_session(self.process.session, id);
        // Nobody is in the background any more.
        self.system.waiters.wake(Key::Terminal(id));
    }

    /// Tells which session has a terminal: `TIOCGSID`.
    pub(super) fn terminal_session(&mut self, end: End, id: TerminalId, argument: u64) -> Result {
        self.check_own(end)?;
        let session = self.system.terminals.terminal(id)?.discipline.session().ok_or(Errno::ENOTTY)?;
        self.write(argument, &session.to_le_bytes()).map(|()| 0)
    }

    /// Tells which group uses a terminal: `TIOCGPGRP`.
    pub(super) fn terminal_group(&mut self, end: End, id: TerminalId, argument: u64) -> Result {
        self.check_own(end)?;
        let group = self.foreground(id).unwrap_or(0);
        self.write(argument, &group.to_le_bytes()).map(|()| 0)
    }

    /// Checks that an open file is the process's terminal, or the master of any.
    fn check_own(&self, end: End) -> Result<()> {
        match end {
            End::Terminal(id) if self.process.terminal != Some(id) => Err(Errno::ENOTTY),
            End::Terminal(_) | End::Master(_) => Ok(()),
        }
    }

    /// Lets a group of the session use its terminal: `TIOCSPGRP`.
    pub(super) fn set_terminal_group(&mut self, id: TerminalId, argument: u64) -> Result {
        let check = self.check_foreground(id, number::TTOU);
        check.map_err(|error| if error == Errno::EIO { Errno::ENOTTY } else { error })?;
        let group = u32::from_le_bytes(self.read_record(argument)?);
        if group.cast_signed() < 0 {
            return Err(Errno::EINVAL);
        }
        let session = self.process.session;
        let owner = self.system.terminals.terminal(id)?.discipline.session();
        if self.process.terminal != Some(id) || owner != Some(session) {
            return Err(Errno::ENOTTY);
        }
        let mut members = self.others.iter().chain([&*self.process]).filter(|process| process.group == group);
        match members.next() {
            None => return Err(Errno::ESRCH),
            Some(member) if member.session != session => return Err(Errno::EPERM),
            Some(_) => {}
        }
        self.system.terminals.terminal(id)?.discipline.set_foreground(Some(group));
        // Some may be in the background no more.
        self.system.waiters.wake(Key::Terminal(id));
        Ok(0)
    }

    /// Takes the terminal from the session of a leader that ends. Who uses it learns of that.
    pub(crate) fn end_session(&mut self) {
        let own = self.process.terminal.take();
        let hung_up = self.system.terminals.hang_ups.iter().find(|hang_up| Some(hang_up.terminal) == own);
        let abandoned = match hung_up {
            Some(hang_up) => hang_up.foreground,
            None => self.process.abandoned_group,
        };
        let is_there = own.is_some() && hung_up.is_none();
        let group = if is_there { own.and_then(|id| self.foreground(id)) } else { abandoned };
        let id = self.process.id;
        for process in self.others.iter_mut().filter(|process| Some(process.group) == group && process.id != id) {
            self.system.send(process, Info::from_system(number::HUP));
            if !is_there {
                self.system.send(process, Info::from_system(number::CONT));
            }
        }
        if let Some(id) = own.filter(|_| is_there) {
            self.free_terminal(id);
        }
    }
}

impl<M: Machine> Instance<M> {
    /// Tells the sessions whose terminals have hung up: their leaders get `SIGHUP` and `SIGCONT`.
    pub(crate) fn hang_up(&mut self) {
        for HangUp { terminal, session, foreground } in core::mem::take(&mut self.system.terminals.hang_ups) {
            for process in self.processes.iter_mut().filter(|process| Some(process.session) == session) {
                process.terminal.take_if(|own| *own == terminal);
                if process.id == process.session {
                    process.abandoned_group = foreground;
                    self.system.send(process, Info::from_system(number::HUP));
                    self.system.send(process, Info::from_system(number::CONT));
                }
            }
        }
    }
}
