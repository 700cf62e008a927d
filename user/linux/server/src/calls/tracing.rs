//! The call `ptrace`.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tench_linux_calls::Sysno;
use tench_linux_calls::numbers::capability;
use tench_linux_calls::numbers::trace::{self, option, regset};
use tench_linux_calls::records::{u32_at, u64_at};
use tench_linux_files::Errno;

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::filters::ARCHITECTURE;
use crate::process::Process;
use crate::signals::{Info, SIGNALS, UNBLOCKABLE, number};
use crate::spaces::SpaceId;
use crate::thread::{Registers, Thread};
use crate::tracing::{Point, Resume, Stop, Tracing};
use crate::waiting::Waiting;

/// Registers of the set of general ones: `x0` to `x30`, `sp`, `pc` and the flags.
const GENERAL: usize = 34;
/// Bytes of the set of floating-point registers.
const FLOAT: usize = 528;
/// Bytes of the set of breakpoints by hardware, and of that of watchpoints.
const HARDWARE_POINTS: usize = 264;
/// The flags that programs see: those of the condition.
const CONDITION: u64 = 0xf000_0000;
/// The register in which Linux says whether a call begins or has ended.
const MARK: usize = 7;

impl<M: Machine> Caller<'_, M> {
    /// Traces another thread, or lets itself be traced.
    pub fn ptrace(&mut self, request: u64, id: u64, address: u64, data: u64) -> Result {
        let (request, id) = (request as u32, id as u32);
        match request {
            trace::TRACEME => return self.let_parent_trace(),
            trace::ATTACH => return self.attach(id, false, 0),
            trace::SEIZE if address != 0 => return Err(Errno::EIO),
            trace::SEIZE => return self.attach(id, true, data),
            _ => {}
        }
        let space = self.traced(id)?.1;
        match request {
            trace::KILL => self.kill_traced(id),
            trace::INTERRUPT => self.interrupt_traced(id),
            _ => {
                self.stop_of(id)?;
                self.request(request, id, space, address, data)
            }
        }
    }

    /// Makes a call again that was interrupted, and whose time goes on.
    pub(super) fn restart(&mut self) -> Result {
        let thread = self.process.thread_mut();
        let call = thread.interrupted.ok_or(Errno::EINTR)?;
        let is_sleep = |sleep: Sysno| call.number == sleep as u64;
        if !is_sleep(Sysno::nanosleep) && !is_sleep(Sysno::clock_nanosleep) {
            return Err(Errno::EINTR);
        }
        if thread.waiting.is_none() {
            thread.waiting = Some(Waiting { deadline: call.deadline, ..Waiting::default() });
        }
        match call.arguments {
            [time, left, ..] if is_sleep(Sysno::nanosleep) => self.nanosleep(time, left),
            [clock, flags, time, left, ..] => self.clock_nanosleep(clock, flags, time, left),
        }
    }

    /// Does what is asked about a thread that has stopped.
    fn request(&mut self, request: u32, id: u32, space: SpaceId, address: u64, data: u64) -> Result {
        match request {
            trace::PEEKTEXT | trace::PEEKDATA => {
                self.check_memory(id)?;
                let mut word = [0; 8];
                if self.system.read(space, address, &mut word) < word.len() {
                    return Err(Errno::EIO);
                }
                self.write(data, &word).map(|()| 0)
            }
            trace::POKETEXT | trace::POKEDATA => {
                self.check_memory(id)?;
                self.poke(space, address, data)
            }
            trace::CONT | trace::SYSCALL | trace::SINGLESTEP | trace::DETACH => self.resume_traced(id, data, request),
            trace::LISTEN => self.let_listen(id),
            trace::SETOPTIONS => {
                let options = options(data)?;
                self.tracing(id)?.options = options;
                Ok(0)
            }
            trace::GETEVENTMSG => {
                let message = self.tracing(id)?.message;
                self.write(data, &message.to_le_bytes()).map(|()| 0)
            }
            trace::GETSIGINFO => {
                let record = self.signal_info(id)?;
                self.write(data, &record).map(|()| 0)
            }
            trace::SETSIGINFO => self.set_signal_info(id, data),
            trace::GETREGSET => self.read_registers(id, address, data),
            trace::SETREGSET => self.write_registers(id, address, data),
            trace::GETSIGMASK if address == 8 => {
                let blocked = self.thread_of(id)?.signals.blocked;
                self.write(data, &blocked.to_le_bytes()).map(|()| 0)
            }
            trace::SETSIGMASK if address == 8 => {
                let set = u64::from_le_bytes(self.read_record(data)?);
                self.thread_of(id)?.signals.blocked = set & !UNBLOCKABLE;
                Ok(0)
            }
            trace::GETSIGMASK | trace::SETSIGMASK => Err(Errno::EINVAL),
            trace::GET_SYSCALL_INFO => self.describe_call(id, address, data),
            _ => Err(Errno::EIO),
        }
    }

    /// Lets the parent trace the caller.
    fn let_parent_trace(&mut self) -> Result {
        if self.process.thread().tracing.is_some() {
            return Err(Errno::EPERM);
        }
        let (parent, made_by) = (self.process.parent, self.process.made_by);
        let Some(parent) = self.others.find(parent).filter(|parent| !parent.has_ended()) else { return Ok(0) };
        let permitted = self.identity().capabilities.permitted;
        let identity = parent.identity();
        if permitted & !identity.capabilities.permitted != 0 && !identity.has(capability::SYS_PTRACE) {
            return Err(Errno::EPERM);
        }
        let tracer = if parent.index_of(made_by).is_ok() { made_by } else { parent.id };
        self.system.memory.check_room(size_of::<Tracing>())?;
        let tracing = Tracing::new(tracer, parent.id, false, 0);
        self.process.thread_mut().tracing = Some(Box::new(tracing));
        self.begin_tracing();
        Ok(0)
    }

    /// Begins to trace a thread.
    fn attach(&mut self, id: u32, is_seized: bool, data: u64) -> Result {
        let options = if is_seized { options(data)? } else { 0 };
        if self.process.index_of(id).is_ok() {
            return Err(Errno::EPERM);
        }
        let owner = self.others.owner(id).ok_or(Errno::ESRCH)?;
        let may = |process: &Process<M>| self.identity().may_attach(process.identity(), process.is_dumpable);
        let process = self.others.find(owner).ok_or(Errno::ESRCH)?;
        let thread = process.thread_of(id).ok_or(if process.has_ended() { Errno::EPERM } else { Errno::ESRCH })?;
        if !may(process) || thread.tracing.is_some() {
            return Err(Errno::EPERM);
        }
        self.system.memory.check_room(size_of::<Tracing>())?;
        let tracing = Tracing::new(self.process.thread().id, self.process.id, is_seized, options);
        let process = self.others.get(owner).ok_or(Errno::ESRCH)?;
        let index = process.index_of(id).map_err(|_| Errno::ESRCH)?;
        process.threads[index].tracing = Some(Box::new(tracing));
        let is_stopped = process.is_stopped;
        if !is_seized {
            let stop = Info::from_process(number::STOP, 0, 0);
            self.system.send_to(process, stop, Some(index));
        }
        if is_stopped {
            self.system.touch_traced(id);
        }
        self.begin_tracing();
        Ok(0)
    }

    /// Has all calls looked at from now on.
    fn begin_tracing(&mut self) {
        self.system.tracing.is_used = true;
        self.system.inspects_calls = true;
    }

    /// Returns how a thread is traced that the caller traces, and its memory.
    fn traced(&mut self, id: u32) -> Result<(&mut Tracing, SpaceId)> {
        let own = self.process.thread().id;
        let owner = self.others.owner(id).ok_or(Errno::ESRCH)?;
        let process = self.others.get(owner).ok_or(Errno::ESRCH)?;
        let (index, space) = (process.index_of(id).map_err(|_| Errno::ESRCH)?, process.space);
        let thread = process.threads.get_mut(index).ok_or(Errno::ESRCH)?;
        match &mut thread.tracing {
            Some(tracing) if tracing.tracer == own => Ok((tracing, space)),
            _ => Err(Errno::ESRCH),
        }
    }

    fn tracing(&mut self, id: u32) -> Result<&mut Tracing> {
        self.traced(id).map(|(tracing, _)| tracing)
    }

    /// Returns the stop of a thread that the caller traces, and that does not go on with its process by itself.
    fn stop_of(&mut self, id: u32) -> Result<&mut Stop> {
        let tracing = self.tracing(id)?;
        match &mut tracing.stop {
            Some(stop) if !tracing.listens && tracing.resume.is_none() => Ok(stop),
            _ => Err(Errno::ESRCH),
        }
    }

    /// Returns a thread that the caller traces.
    fn thread_of(&mut self, id: u32) -> Result<&mut Thread<M>> {
        self.tracing(id)?;
        let owner = self.others.owner(id).ok_or(Errno::ESRCH)?;
        let process = self.others.get(owner).ok_or(Errno::ESRCH)?;
        let index = process.index_of(id).map_err(|_| Errno::ESRCH)?;
        Ok(&mut *process.threads[index])
    }

    /// Ends the process of a traced thread that has stopped.
    fn kill_traced(&mut self, id: u32) -> Result {
        if let Some(owner) = self.others.owner(id)
            && let Some(process) = self.others.get(owner)
        {
            self.system.send(process, Info::from_process(number::KILL, 0, 0));
        }
        Ok(0)
    }

    /// Stops a traced thread soon.
    fn interrupt_traced(&mut self, id: u32) -> Result {
        let tracing = self.tracing(id)?;
        if !tracing.is_seized {
            return Err(Errno::EIO);
        }
        tracing.is_interrupted = true;
        self.system.touch_traced(id);
        Ok(0)
    }

    /// Lets a traced thread go on, as the request says.
    fn resume_traced(&mut self, id: u32, signal: u64, request: u32) -> Result {
        if signal > SIGNALS as u64 {
            return Err(Errno::EIO);
        }
        let tracing = self.tracing(id)?;
        tracing.watches_calls = request == trace::SYSCALL;
        tracing.steps = request == trace::SINGLESTEP;
        tracing.has_stepped_over_call &= tracing.steps;
        tracing.resume = Some(Resume { signal: signal as u32, is_detached: request == trace::DETACH });
        self.system.touch_traced(id);
        Ok(0)
    }

    /// Lets a thread that has stopped with its process stop anew when that goes on.
    fn let_listen(&mut self, id: u32) -> Result {
        let tracing = self.tracing(id)?;
        match &tracing.stop {
            Some(stop) if tracing.is_seized && matches!(stop.point, Point::Trap | Point::Stopped(_)) => {
                tracing.listens = true;
                self.system.touch_traced(id);
                Ok(0)
            }
            _ => Err(Errno::EIO),
        }
    }

    /// Checks that the caller may see the memory of a process that it traces, which may have started a program since
    /// then that the caller may not read.
    fn check_memory(&self, id: u32) -> Result<()> {
        let process = self.others.owner(id).and_then(|owner| self.others.find(owner)).ok_or(Errno::ESRCH)?;
        let may = process.is_dumpable || self.identity().has(capability::SYS_PTRACE);
        if may { Ok(()) } else { Err(Errno::EIO) }
    }

    /// Writes a word to the memory of a traced process, also where that may only read.
    fn poke(&mut self, space: SpaceId, address: u64, word: u64) -> Result {
        let bytes = word.to_le_bytes();
        if self.system.write_by_force(space, address, &bytes) < bytes.len() { Err(Errno::EIO) } else { Ok(0) }
    }

    /// Returns the record of the signal at which a thread has stopped, or of its stop.
    fn signal_info(&mut self, id: u32) -> Result<[u8; Info::SIZE]> {
        let user = self.identity().user.real;
        let tracing = self.tracing(id)?;
        let point = tracing.stop.as_ref().map(|stop| stop.point);
        match point {
            Some(Point::Signal(info)) => Ok(info.record()),
            Some(Point::Stopped(_)) if !tracing.is_seized => Err(Errno::EINVAL),
            Some(point) => {
                let mut info = Info::from_process(number::TRAP, id, user);
                info.code = tracing.code(point).cast_signed();
                Ok(info.record())
            }
            None => Err(Errno::EINVAL),
        }
    }

    /// Sets the signal at which a thread has stopped: its code, its sender and its value.
    fn set_signal_info(&mut self, id: u32, data: u64) -> Result {
        let record: [u8; Info::SIZE] = self.read_record(data)?;
        let signal = u32_at(&record, 0);
        let stop = self.stop_of(id)?;
        let Point::Signal(info) = &mut stop.point else { return Err(Errno::EINVAL) };
        if !(1..=SIGNALS as u32).contains(&signal) {
            return Err(Errno::EINVAL);
        }
        let mut new = Info::from_process(signal, u32_at(&record, 16), u32_at(&record, 20));
        new.code = u32_at(&record, 8).cast_signed();
        if let crate::signals::Cause::Process { value, .. } = &mut new.cause {
            *value = u64_at(&record, 24);
        }
        *info = new;
        Ok(0)
    }

    /// Writes a set of registers of a stopped thread, as far as there is room.
    fn read_registers(&mut self, id: u32, set: u64, vector: u64) -> Result {
        let record: [u8; 16] = self.read_record(vector)?;
        let (base, room) = (u64_at(&record, 0), u64_at(&record, 8));
        let stop = self.stop_of(id)?;
        let (point, registers, call) = (stop.point, stop.registers, stop.call);
        let bytes: Vec<u8> = match set as u32 {
            regset::GENERAL => general_words(point, &registers).iter().flat_map(|word| word.to_le_bytes()).collect(),
            regset::FLOAT => self.float_bytes(id)?,
            regset::THREAD_POINTER => registers.thread_pointer.to_le_bytes().to_vec(),
            regset::CALL => call.to_le_bytes().to_vec(),
            regset::BREAKPOINTS | regset::WATCHPOINTS => no_hardware_points(),
            _ => return Err(Errno::EINVAL),
        };
        let unit = if let regset::GENERAL | regset::THREAD_POINTER = set as u32 { 8 } else { 4 };
        if !room.is_multiple_of(unit) {
            return Err(Errno::EINVAL);
        }
        let count = room.min(bytes.len() as u64);
        self.write(base, &bytes[..count as usize])?;
        self.write(vector + 8, &count.to_le_bytes())?;
        Ok(0)
    }

    fn float_bytes(&mut self, id: u32) -> Result<Vec<u8>> {
        let owner = self.others.owner(id).ok_or(Errno::ESRCH)?;
        let process = self.others.find(owner).ok_or(Errno::ESRCH)?;
        let thread = process.thread_of(id).ok_or(Errno::ESRCH)?;
        let float = self.system.memory.hardware.float_registers(&thread.machine);
        let mut bytes: Vec<u8> = float.q.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend((float.status as u32).to_le_bytes());
        bytes.extend((float.control as u32).to_le_bytes());
        bytes.resize(FLOAT, 0);
        Ok(bytes)
    }

    /// Reads a set of registers for a stopped thread, or its beginning.
    fn write_registers(&mut self, id: u32, set: u64, vector: u64) -> Result {
        let record: [u8; 16] = self.read_record(vector)?;
        let (base, length) = (u64_at(&record, 0), u64_at(&record, 8));
        let (size, unit) = match set as u32 {
            regset::GENERAL => (8 * GENERAL, 8),
            regset::FLOAT => (FLOAT, 4),
            regset::THREAD_POINTER => (8, 8),
            regset::CALL => (4, 4),
            regset::BREAKPOINTS | regset::WATCHPOINTS => return Err(Errno::ENOSPC),
            _ => return Err(Errno::EINVAL),
        };
        if !length.is_multiple_of(unit) {
            return Err(Errno::EINVAL);
        }
        let bytes = self.read(base, (length as usize).min(size))?;
        match set as u32 {
            regset::FLOAT => self.set_float(id, &bytes)?,
            regset::GENERAL => {
                set_general(self.stop_of(id)?, &bytes);
                self.tracing(id)?.has_stepped_over_call = false;
            }
            regset::THREAD_POINTER if bytes.len() == size => {
                self.stop_of(id)?.registers.thread_pointer = u64_at(&bytes, 0);
            }
            regset::CALL if bytes.len() == size => self.stop_of(id)?.call = u32_at(&bytes, 0),
            _ => {}
        }
        self.write(vector + 8, &(bytes.len() as u64).to_le_bytes())?;
        Ok(0)
    }

    fn set_float(&mut self, id: u32, bytes: &[u8]) -> Result<()> {
        let mut all = self.float_bytes(id)?;
        all[..bytes.len()].copy_from_slice(bytes);
        let mut float = crate::thread::FloatRegisters::default();
        for (register, bytes) in float.q.iter_mut().zip(all.as_chunks::<16>().0) {
            *register = u128::from_le_bytes(*bytes);
        }
        (float.status, float.control) = (u32_at(&all, 512).into(), u32_at(&all, 516).into());
        let owner = self.others.owner(id).ok_or(Errno::ESRCH)?;
        let process = self.others.get(owner).ok_or(Errno::ESRCH)?;
        let index = process.index_of(id).map_err(|_| Errno::ESRCH)?;
        self.system.memory.hardware.set_float_registers(&mut process.threads[index].machine, &float);
        Ok(())
    }

    /// Writes what a stop says of a call, as far as there is room. Returns how many bytes that would be.
    fn describe_call(&mut self, id: u32, room: u64, data: u64) -> Result {
        let stop = self.stop_of(id)?;
        let registers = &stop.registers;
        let (kind, words, flag): (u8, Vec<u64>, Option<u8>) = match stop.point {
            Point::Entry => {
                let words = core::iter::once(i64::from(stop.call.cast_signed()).cast_unsigned())
                    .chain(registers.x[..6].iter().copied());
                (1, words.collect(), None)
            }
            Point::Exit => {
                let result = registers.x[0];
                let is_error = (-4095..0).contains(&result.cast_signed());
                (2, alloc::vec![result], Some(is_error.into()))
            }
            _ => (0, Vec::new(), None),
        };
        let mut record = alloc::vec![kind, 0, 0, 0];
        record.extend(ARCHITECTURE.to_le_bytes());
        record.extend(registers.pc.to_le_bytes());
        record.extend(registers.sp.to_le_bytes());
        record.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        record.extend(flag);
        let count = room.min(record.len() as u64) as usize;
        self.write(data, &record[..count])?;
        Ok(record.len() as u64)
    }
}

/// Returns the set of a thread's breakpoints or watchpoints by hardware, of which the processor gives programs none.
fn no_hardware_points() -> Vec<u8> {
    /// Version 8 of the architecture's debug unit, above the number of points.
    const VERSION: u32 = 6 << 8;
    let mut bytes = VERSION.to_le_bytes().to_vec();
    bytes.resize(HARDWARE_POINTS, 0);
    bytes
}

/// Returns options that a tracer sets.
fn options(data: u64) -> Result<u32> {
    let is_known = data & !u64::from(option::ALL) == 0;
    // To have filters not apply takes more than anybody has here.
    const SUSPEND_FILTERS: u64 = 1 << 21;
    if !is_known || data & SUSPEND_FILTERS != 0 { Err(Errno::EINVAL) } else { Ok(data as u32) }
}

/// Returns the general registers as a tracer reads them: at a call, one of them says whether it begins or has ended.
fn general_words(point: Point, registers: &Registers) -> [u64; GENERAL] {
    let mut words = [0; GENERAL];
    words[..31].copy_from_slice(&registers.x);
    words[31..].copy_from_slice(&[registers.sp, registers.pc, registers.flags & CONDITION]);
    match point {
        Point::Entry => words[MARK] = 0,
        Point::Exit => words[MARK] = 1,
        _ => {}
    }
    words
}

/// Sets the first general registers. At a call, that which says what the stop is keeps its value.
fn set_general(stop: &mut Stop, bytes: &[u8]) {
    let kept = stop.registers.x[MARK];
    let mut words = general_words(stop.point, &stop.registers);
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    let registers = &mut stop.registers;
    registers.x.copy_from_slice(&words[..31]);
    [registers.sp, registers.pc, registers.flags] = [words[31], words[32], words[33]];
    if matches!(stop.point, Point::Entry | Point::Exit) {
        registers.x[MARK] = kept;
    }
}
