//! Making processes, their groups and sessions, and waiting for their ends.

use alloc::boxed::Box;

use tench_linux_calls::Sysno;
use tench_linux_calls::numbers::{clone, wait};
use tench_linux_calls::records::siginfo;
use tench_linux_files::Errno;
use tench_linux_memory::Space;

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::descriptors::Descriptors;
use crate::instance::{child_code, end_code, give_back};
use crate::process::{News, Process, State};
use crate::signals::{Cause, Info, SIGNALS, number};
use crate::thread::Registers;
use crate::waiting::{Interruption, Key};

/// Flags of `clone` that ask for threads.
const THREAD: u64 = clone::THREAD | clone::SIGHAND | clone::FILES | clone::FS;
/// Flags of `clone` that are understood. Some change nothing here.
const KNOWN: u64 = clone::VM
    | clone::VFORK
    | clone::SETTLS
    | clone::PARENT_SETTID
    | clone::CHILD_SETTID
    | clone::CHILD_CLEARTID
    | clone::DETACHED
    | clone::SYSVSEM
    | clone::UNTRACED
    | clone::PTRACE
    | 0xff;

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
    /// The code of `SIGCHLD`.
    code: i32,
    /// The exit code or a signal.
    value: i32,
    /// The word of `wait4`.
    word: u32,
}

impl<M: Machine> Caller<'_, M> {
    /// Makes a process. Returns its number.
    ///
    /// With `CLONE_VM` and `CLONE_VFORK`, it gets the memory itself, which comes back when it runs another program or
    /// ends; until then the parent waits.
    pub fn clone(&mut self, flags: u64, stack: u64, parent_id: u64, thread_pointer: u64, child_id: u64) -> Result {
        if let Some(waiting) = &self.process.waiting {
            // It has been made. Whoever has the memory now, perhaps a child of the child, has to let go of it first.
            let (child, own) = (waiting.done, self.process.id);
            let holder = self.others.iter().find(|other| other.lender == Some(own)).map(|other| other.id);
            return holder
                .map_or(Ok(child), |holder| Err(self.wait(&[Key::Program(holder)], None, Interruption::Never)));
        }
        let waits = flags & clone::VFORK != 0;
        let lends = flags & clone::VM != 0;
        let has_handlers = flags & clone::SIGHAND != 0;
        if has_handlers && !lends || flags & clone::THREAD != 0 && !has_handlers {
            return Err(Errno::EINVAL);
        }
        if flags & THREAD != 0 || lends && !waits {
            self.report_once(Sysno::clone, "there are no threads yet");
            return Err(Errno::EAGAIN);
        }
        if flags & !KNOWN != 0 || flags & 0xff > SIGNALS as u64 {
            return Err(Errno::EINVAL);
        }
        let descriptors = self.process.descriptors.copied().ok_or(Errno::ENOMEM)?;
        let id = self.others.next_id(self.process).ok_or(Errno::EAGAIN)?;
        let record = id.to_le_bytes();
        if flags & clone::PARENT_SETTID != 0 {
            // As Linux, which does not look whether it can be written.
            self.process.space().write(&mut self.system.memory, parent_id, &record);
        }
        let mut space = self.space_for_child(lends)?;
        if flags & clone::CHILD_SETTID != 0 {
            // As Linux, which does not look whether it can be written.
            space.write(&mut self.system.memory, child_id, &record);
        }
        let hardware = &mut self.system.memory.hardware;
        let parent = self.process.thread.as_ref().ok_or(Errno::EAGAIN)?;
        let mut registers = hardware.registers(parent);
        let float = hardware.float_registers(parent);
        let mut thread = match hardware.make_thread(space.root(), id) {
            Ok(thread) => thread,
            Err(_) => {
                self.take_back(space, lends);
                return Err(Errno::EAGAIN);
            }
        };
        hardware.set_float_registers(&mut thread, &float);
        set_child_registers(&mut registers, flags, stack, thread_pointer);
        hardware.run(&mut thread, &registers);
        let mut child = self.child(id, thread, space, descriptors);
        child.end_signal = (flags & 0xff) as u32;
        child.lender = lends.then_some(self.process.id);
        child.clear_at_end = if flags & clone::CHILD_CLEARTID != 0 { child_id } else { 0 };
        self.others.put(Box::new(child));
        if !waits {
            return Ok(id.into());
        }
        let error = self.wait(&[Key::Program(id)], None, Interruption::Never);
        if let Some(waiting) = &mut self.process.waiting {
            waiting.done = id.into();
        }
        Err(error)
    }

    /// Returns the memory for a child: the own, or a copy.
    fn space_for_child(&mut self, lends: bool) -> Result<Space<M>> {
        if lends {
            return self.process.space.take().ok_or(Errno::ENOMEM);
        }
        self.process.space().fork(&mut self.system.memory)
    }

    /// Undoes that.
    fn take_back(&mut self, space: Space<M>, lends: bool) {
        if lends {
            self.process.space = Some(space);
        } else {
            space.end(&mut self.system.memory);
        }
    }

    /// Returns a child of the process, which inherits all that a child does.
    fn child(&mut self, id: u32, thread: M::Thread, space: Space<M>, descriptors: Descriptors) -> Process<M> {
        let own = &*self.process;
        self.system.tree.share(own.directory);
        for (_, descriptor) in own.descriptors.all() {
            self.system.descriptions.share(descriptor.description);
        }
        Process {
            parent: own.id,
            group: own.group,
            session: own.session,
            has_executed: false,
            directory: own.directory,
            mask: own.mask,
            heap: own.heap,
            heap_end: own.heap_end,
            signals: own.signals.inherited(),
            name: own.name,
            program: own.program.clone(),
            ..Process::new(id, thread, space, descriptors)
        }
    }

    /// Gives the process the memory of a new program, and lets go of what it has had.
    pub(crate) fn replace_space(&mut self, space: Space<M>) {
        if let Some(old) = self.process.space.replace(space) {
            give_back(self.system, self.others, self.process.lender.take(), old, self.process.heap_end);
        }
        self.process.has_executed = true;
        self.system.waiters.wake(Key::Program(self.process.id));
    }

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
        self.write_if_wanted(usage, &[0; 144])?;
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
        let children = match kind as u32 {
            0 => Children::Any,
            1 if which > 0 => Children::One(which.unsigned_abs()),
            2 if which == 0 => Children::Group(self.process.group),
            2 if which > 0 => Children::Group(which.unsigned_abs()),
            _ => return Err(Errno::EINVAL),
        };
        let found = self.wait_for(children, options, options & wait::KEEP == 0)?;
        let record = match &found {
            Some(child) => {
                let cause = Cause::Child { id: child.id, status: child.value };
                Info { signal: number::CHLD, code: child.code, cause }.record()
            }
            None => [0; Info::SIZE],
        };
        self.write_if_wanted(into, &record[..siginfo::USED])?;
        self.write_if_wanted(usage, &[0; 144])?;
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
        let mut is_there = false;
        let mut found = None;
        for child in self.others.iter_mut().filter(|process| is_one(process)) {
            is_there = true;
            found = news(child, options, takes);
            if found.is_some() {
                break;
            }
        }
        if let (Some(child), true) = (&found, takes)
            && self.others.get(child.id).is_some_and(|process| process.has_ended())
        {
            self.others.remove(child.id);
        }
        match found {
            Some(child) => Ok(Some(child)),
            None if !is_there => Err(Errno::ECHILD),
            None if options & wait::NOHANG != 0 => Ok(None),
            None => Err(self.wait(&[Key::Children(own)], None, Interruption::Restartable)),
        }
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
            if child.has_executed {
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
        Ok(id.into())
    }
}

/// Changes registers to those with which a child begins.
fn set_child_registers(registers: &mut Registers, flags: u64, stack: u64, thread_pointer: u64) {
    registers.x[0] = 0;
    if stack != 0 {
        registers.sp = stack;
    }
    if flags & clone::SETTLS != 0 {
        registers.thread_pointer = thread_pointer;
    }
}

/// Returns news of a child, if it has any that are asked for.
fn news<M: Machine>(child: &mut Process<M>, options: u32, takes: bool) -> Option<Child> {
    let id = child.id;
    if let State::Ended(status) = child.state {
        let (code, value) = end_code(status);
        return (options & wait::EXITED != 0).then(|| Child { id, code, value, word: status.word() });
    }
    let news = match child.news? {
        News::Stopped(signal) if options & wait::UNTRACED != 0 => {
            Child { id, code: child_code::STOPPED, value: signal.cast_signed(), word: signal << 8 | 0x7f }
        }
        News::Continued if options & wait::CONTINUED != 0 => {
            Child { id, code: child_code::CONTINUED, value: number::CONT.cast_signed(), word: 0xffff }
        }
        News::Stopped(_) | News::Continued => return None,
    };
    if takes {
        child.news = None;
    }
    Some(news)
}
