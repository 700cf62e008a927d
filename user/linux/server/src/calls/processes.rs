//! Groups and sessions of processes, and waiting for their ends.

use core::time::Duration;

use tench_linux_calls::numbers::{open, wait};
use tench_linux_calls::records::siginfo;
use tench_linux_files::Errno;

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::calls::usage::usage_record;
use crate::instance::{child_code, end_code};
use crate::process::{News, Process};
use crate::signals::{Cause, Info, number};
use crate::waiting::{Interruption, Key};

/// The children for which a call waits.
#[derive(Clone, Copy)]
enum Children {
    Any,
    One(u32),
    Group(u32),
}

/// A child that has news for its parent.
struct Child {
    id: u32,
    user: u32,
    /// The code of `SIGCHLD`.
    code: i32,
    /// The exit code or a signal.
    value: i32,
    /// The word of `wait4`.
    word: u32,
    /// How long it and its children have run.
    used: Duration,
}

impl<M: Machine> Caller<'_, M> {
    /// Waits for a child's end. Returns its number.
    pub fn wait4(&mut self, which: u64, status: u64, options: u64, usage: u64) -> Result {
        const KNOWN: u32 = wait::NOHANG | wait::UNTRACED | wait::CONTINUED | wait::NOTHREAD | wait::ALL | wait::CLONE;
        let options = options as u32;
        if options & !KNOWN != 0 {
            return Err(Errno::EINVAL);
        }
        let children = match (which as u32).cast_signed() {
            -1 => Children::Any,
            0 => Children::Group(self.process.group),
            i32::MIN => return Err(Errno::ESRCH),
            group @ ..-1 => Children::Group(group.unsigned_abs()),
            one => Children::One(one.unsigned_abs()),
        };
        let Some(child) = self.wait_for(children, options | wait::EXITED, true)? else { return Ok(0) };
        self.write_if_wanted(status, &child.word.to_le_bytes())?;
        self.write_if_wanted(usage, &usage_record(child.used))?;
        Ok(child.id.into())
    }

    /// Waits for a child's end or other news.
    pub fn waitid(&mut self, kind: u64, which: u64, into: u64, options: u64, usage: u64) -> Result {
        const KNOWN: u32 = wait::NOHANG | wait::UNTRACED | wait::EXITED | wait::CONTINUED | wait::KEEP;
        let options = options as u32;
        let asks = wait::EXITED | wait::UNTRACED | wait::CONTINUED;
        let ignored = wait::NOTHREAD | wait::ALL | wait::CLONE;
        if options & !(KNOWN | ignored) != 0 || options & asks == 0 {
            return Err(Errno::EINVAL);
        }
        let which = (which as u32).cast_signed();
        let mut is_patient = true;
        let children = match kind as u32 {
            0 => Children::Any,
            1 if which > 0 => Children::One(which.unsigned_abs()),
            3 if which >= 0 => {
                let descriptor = u64::from(which.unsigned_abs());
                let name = self.process_handle(descriptor)?;
                self.has_named_ended(name).ok_or(Errno::ECHILD)?;
                let description = self.descriptor(descriptor)?;
                is_patient = self.system.descriptions.get(description).flags & open::NONBLOCK == 0;
                Children::One(name.id)
            }
            2 if which == 0 => Children::Group(self.process.group),
            2 if which > 0 => Children::Group(which.unsigned_abs()),
            _ => return Err(Errno::EINVAL),
        };
        let hurry = if is_patient { 0 } else { wait::NOHANG };
        let found = self.wait_for(children, options | hurry, options & wait::KEEP == 0)?;
        if found.is_none() && options & wait::NOHANG == 0 {
            return Err(Errno::EAGAIN);
        }
        let record = match &found {
            Some(child) => {
                let cause = Cause::Child { id: child.id, user: child.user, status: child.value };
                Info { signal: number::CHLD, code: child.code, cause }.record()
            }
            None => [0; Info::SIZE],
        };
        self.write_if_wanted(into, &record[..siginfo::USED])?;
        let used = found.map_or(Duration::ZERO, |child| child.used);
        self.write_if_wanted(usage, &usage_record(used))?;
        Ok(0)
    }

    /// Returns the next child with news that are asked for, and takes them. Without any, waits, or returns none if that
    /// is not wanted.
    fn wait_for(&mut self, children: Children, options: u32, takes: bool) -> Result<Option<Child>> {
        let own = self.process.id;
        let is_one = |process: &Process<M>| {
            let is_named = match children {
                Children::Any => true,
                Children::One(id) => process.id == id,
                Children::Group(group) => process.group == group,
            };
            process.parent == own && is_named
        };
        let (mut is_there, mut found) = (false, None);
        if self.system.tracing.is_used {
            (is_there, found) = self.traced_news(children, options, takes);
        }
        for child in self.others.iter_mut().filter(|process| is_one(process)) {
            is_there = true;
            if found.is_some() {
                break;
            }
            found = news(child, options, takes);
        }
        if let (Some(child), true) = (&found, takes)
            && self.others.get(child.id).is_some_and(|process| process.has_ended() && process.owed_to.is_none())
        {
            self.others.remove(child.id);
            self.process.children_used = self.process.children_used.saturating_add(child.used);
        }
        match found {
            Some(child) => Ok(Some(child)),
            None if !is_there => Err(Errno::ECHILD),
            None if options & wait::NOHANG != 0 => Ok(None),
            None => Err(self.wait(&[Key::Children(own)], None, Interruption::Restartable)),
        }
    }

    /// Returns whether there are traced threads for whose news a call waits, and the next news of one.
    fn traced_news(&mut self, children: Children, options: u32, takes: bool) -> (bool, Option<Child>) {
        let own = self.process.id;
        let is_named = |id: u32, group: u32| match children {
            Children::Any => true,
            Children::One(one) => id == one,
            Children::Group(other) => group == other,
        };
        let mut is_there = false;
        for process in self.others.iter_mut() {
            let (group, user) = (process.group, process.identity().user.real);
            for thread in &mut process.threads {
                let id = thread.id;
                let Some(tracing) = thread.tracing.as_mut().filter(|tracing| tracing.tracer_process == own) else {
                    continue;
                };
                if !is_named(id, group) {
                    continue;
                }
                is_there = true;
                let Some(point) = tracing.stop.as_ref().filter(|stop| stop.is_news).map(|stop| stop.point) else {
                    continue;
                };
                let code = tracing.code(point);
                if let (Some(stop), true) = (&mut tracing.stop, takes) {
                    stop.is_news = false;
                }
                let (value, word) = (code.cast_signed(), code << 8 | 0x7f);
                return (true, Some(Child { id, user, code: child_code::TRAPPED, value, word, used: Duration::ZERO }));
            }
            if process.owed_to == Some(own) && is_named(process.id, group) {
                is_there = true;
                if let Some(child) = ended(process, options) {
                    if takes {
                        self.system.tracing.paid.push(child.id);
                        self.system.signalled.push_back(child.id);
                    }
                    return (true, Some(child));
                }
            }
        }
        let ended = &mut self.system.tracing.ended;
        let mut all = ended.iter().filter(|(id, end)| end.tracer == own && is_named(**id, end.group));
        let Some((id, end)) = all.next().map(|(id, end)| (*id, *end)) else { return (is_there, None) };
        if options & wait::EXITED == 0 {
            return (true, None);
        }
        if takes {
            ended.remove(&id);
        }
        let (code, value) = end_code(end.status);
        let (user, word) = (end.user, end.status.word());
        (true, Some(Child { id, user, code, value, word, used: Duration::ZERO }))
    }

    /// Returns what a process says of a property, or `ESRCH`. Without a number, that is the own process.
    fn of_process(&mut self, id: u64, property: impl Fn(&Process<M>) -> u32) -> Result {
        let id = id as u32;
        if id == 0 || id == self.process.id {
            return Ok(property(self.process).into());
        }
        self.others.get(id).map(|process| property(process).into()).ok_or(Errno::ESRCH)
    }

    /// Returns the number of a process's group.
    pub fn getpgid(&mut self, id: u64) -> Result {
        self.of_process(id, |process| process.group)
    }

    /// Returns the number of a process's session.
    pub fn getsid(&mut self, id: u64) -> Result {
        self.of_process(id, |process| process.session)
    }

    /// Moves the process or a child to a group.
    pub fn setpgid(&mut self, id: u64, group: u64) -> Result {
        let own = (self.process.id, self.process.session);
        let id = if id as u32 == 0 { own.0 } else { id as u32 };
        let group = if group as u32 == 0 { id } else { group as u32 };
        if group.cast_signed() < 0 {
            return Err(Errno::EINVAL);
        }
        let is_group = self
            .others
            .iter()
            .chain([&*self.process])
            .any(|process| process.group == group && process.session == own.1);
        let process = if id == own.0 {
            &mut *self.process
        } else {
            let child = self.others.get(id).filter(|process| process.parent == own.0);
            let child = child.ok_or(Errno::ESRCH)?;
            if child.session != own.1 {
                return Err(Errno::EPERM);
            }
            if child.programs != 0 {
                return Err(Errno::EACCES);
            }
            child
        };
        if process.session == id || group != id && !is_group {
            return Err(Errno::EPERM);
        }
        process.group = group;
        Ok(0)
    }

    /// Begins a session. Returns its number.
    pub fn setsid(&mut self) -> Result {
        let id = self.process.id;
        let is_group = self.others.iter().chain([&*self.process]).any(|process| process.group == id);
        if is_group {
            return Err(Errno::EPERM);
        }
        (self.process.group, self.process.session) = (id, id);
        (self.process.terminal, self.process.abandoned_group) = (None, None);
        Ok(id.into())
    }
}

/// Returns the news of the end of a process, if that is asked for.
fn ended<M: Machine>(process: &Process<M>, options: u32) -> Option<Child> {
    let (id, user, used) =
        (process.id, process.identity().user.real, process.used.saturating_add(process.children_used));
    let status = process.ended?;
    let (code, value) = end_code(status);
    (options & wait::EXITED != 0).then(|| Child { id, user, code, value, word: status.word(), used })
}

/// Returns news of a child, if it has any that are asked for.
fn news<M: Machine>(child: &mut Process<M>, options: u32, takes: bool) -> Option<Child> {
    if child.has_ended() {
        return if child.owed_to.is_none() { ended(child, options) } else { None };
    }
    let (id, user, used) = (child.id, child.identity().user.real, child.used.saturating_add(child.children_used));
    let tracing = child.threads.first().and_then(|thread| thread.tracing.as_ref());
    if tracing.is_some_and(|tracing| tracing.tracer_process == child.parent) {
        return None;
    }
    let (code, value, word) = match child.news? {
        News::Stopped(signal) if options & wait::UNTRACED != 0 => {
            (child_code::STOPPED, signal.cast_signed(), signal << 8 | 0x7f)
        }
        News::Continued if options & wait::CONTINUED != 0 => {
            (child_code::CONTINUED, number::CONT.cast_signed(), 0xffff)
        }
        News::Stopped(_) | News::Continued => return None,
    };
    if takes {
        child.news = None;
    }
    Some(Child { id, user, code, value, word, used })
}
