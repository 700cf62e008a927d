//! Threads that take part in a measurement.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::mem::offset_of;

use tench::abi::Operation;
use tench::abi::fault::{Class, Registers};
use tench::abi::layout::slot;
use tench::abi::message::{IpcBuffer, MAX_CAPS};
use tench::abi::{CapAddress, Error as KernelError};
use tench::memory::{Error, Made, Pages, make};
use tench::sys::thread::{Binding, Bindings};
use tench::sys::{Cap, Endpoint, MapFlags, Reply, SchedulingContext, Thread};

use super::address_space::{Other, SPACE, Shown, Side, WRITABLE};
use super::programs::{Arguments, Control, MAX_RECORDS, MAX_UNDO, Program, RawRecord, upcall};

/// Priority of actors, unless one is to wake another. All servers' are higher, but they wait.
pub const PRIORITY: u64 = 140;
/// Priority of an actor that is woken by one of [`PRIORITY`].
pub const HIGHER: u64 = 141;
/// Priority of this thread while it starts actors, so that they begin when it lets them.
const STARTING: u64 = 150;
/// Priority of this thread while actors run.
pub const WAITING: u64 = 120;

/// Returns the arguments of a system call as an actor makes it.
pub fn call(operation: Operation, arguments: &[u64]) -> Arguments {
    let mut x = [0; 13];
    let (before, after) = arguments.split_at(arguments.len().min(10));
    x[..before.len()].copy_from_slice(before);
    x[10] = operation as u64;
    for (register, argument) in x[11..].iter_mut().zip(after) {
        *register = *argument;
    }
    x
}

/// Role of an actor.
#[derive(Clone)]
pub struct Role {
    /// Loop that the actor runs.
    pub program: Program,
    /// Address space of the actor.
    pub side: Side,
    /// Priority of the actor.
    pub priority: u64,
    /// `x0`..`x12` of the measured system call.
    pub measured: Arguments,
    /// System calls that undo a round.
    pub undo: Vec<Arguments>,
    /// Expected `x0` after each round.
    pub code: u64,
    /// Number of rounds.
    pub rounds: usize,
    /// Set if the actor does all its rounds; otherwise it waits in the last one for an event that never comes.
    pub finishes: bool,
}

impl Role {
    /// Makes a role that makes a successful system call in each round, in this address space.
    pub fn new(measured: Arguments) -> Role {
        Role {
            program: Program::Call,
            side: Side::Here,
            priority: PRIORITY,
            measured,
            undo: Vec::new(),
            code: 0,
            rounds: ROUNDS,
            finishes: true,
        }
    }

    /// Makes such a role that waits at the end: it begins one more round than its partner.
    pub fn waiting(measured: Arguments) -> Role {
        Role { rounds: ROUNDS + 1, finishes: false, ..Role::new(measured) }
    }

    /// Moves the role to the other address space.
    pub fn there(self) -> Role {
        Role { side: Side::There, ..self }
    }

    /// Sets the loop.
    pub fn program(self, program: Program) -> Role {
        Role { program, ..self }
    }

    /// Sets the priority.
    pub fn priority(self, priority: u64) -> Role {
        Role { priority, ..self }
    }

    /// Adds system calls that undo each round.
    pub fn undo(self, undo: &[Arguments]) -> Role {
        Role { undo: undo.to_vec(), ..self }
    }
}

/// Number of rounds, warm-up included.
pub const ROUNDS: usize = 24;

/// A participating thread. Dropping it ends it.
pub struct Actor {
    // Dropped in this order: the thread first.
    thread: Made<Thread>,
    _scheduling: Made<SchedulingContext>,
    _reply: Made<Reply>,
    shown: Option<Shown>,
    control: Pages,
    buffer: Pages,
    role: Role,
}

impl Actor {
    /// Makes a thread for a role. It does not run yet.
    pub fn new(other: &Other, role: Role) -> Result<Actor, Error> {
        let thread = make::<Thread>(0)?;
        let scheduling = make::<SchedulingContext>(0)?;
        let reply = make::<Reply>(0)?;
        let (control, buffer) = (Pages::new(size_of::<Control>())?, Pages::new(size_of::<IpcBuffer>())?);
        let shown = match role.side {
            Side::Here => None,
            Side::There => Some(other.show(control.frame(), WRITABLE)?),
        };
        let actor = Actor { thread, _scheduling: scheduling, _reply: reply, shown, control, buffer, role };
        actor.set_up(other)?;
        Ok(actor)
    }

    fn set_up(&self, other: &Other) -> Result<(), Error> {
        let role = &self.role;
        let authority = Cap::<SchedulingContext>::new(slot::SCHEDULING);
        self._scheduling.cap().configure(role.priority, role.priority, 0, Some(authority))?;
        let thread = self.thread.cap();
        thread.configure(SPACE, other.root(role.side), Some((self.buffer.frame(), 0)))?;
        thread.bind(Bindings {
            scheduling: Binding::To(self._scheduling.cap()),
            reply: Binding::To(self._reply.cap()),
            notification: Binding::Keep,
        })?;
        self.write(offset_of!(Control, rounds), role.rounds as u64);
        self.write(offset_of!(Control, thread), u64::from(thread.address().0));
        self.write(offset_of!(Control, buffer), self.buffer.address() as u64);
        self.write(offset_of!(Control, undo_count), role.undo.len().min(MAX_UNDO) as u64);
        self.write_all(offset_of!(Control, measured), &role.measured);
        for (index, arguments) in role.undo.iter().take(MAX_UNDO).enumerate() {
            self.write_all(offset_of!(Control, undo) + index * size_of::<Arguments>(), arguments);
        }
        Ok(self.begin(other)?)
    }

    /// Sets the registers with which the thread begins its loop.
    fn begin(&self, other: &Other) -> Result<(), KernelError> {
        let mut registers = Registers::ZERO;
        registers.pc = other.program(self.role.program, self.role.side);
        registers.x[19] = match &self.shown {
            Some(shown) => shown.address(),
            None => self.control.address() as u64,
        };
        // SAFETY: the programs use no stack, and no memory but the control page, which is this actor's.
        unsafe { self.thread.cap().write_registers(&registers, false) }
    }

    /// Names what a suspended actor does from now on, from the beginning.
    pub fn begin_again(&self, other: &Other, measured: &Arguments, rounds: usize) -> Result<(), KernelError> {
        self.write(offset_of!(Control, rounds), rounds as u64);
        self.write_all(offset_of!(Control, measured), measured);
        self.begin(other)
    }

    /// Copies another actor's registers to this one's IPC buffer, where `ThreadReadRegisters` would write them.
    /// Suspends the other.
    pub fn take_registers_of(&self, other: &Actor) -> Result<(), KernelError> {
        let registers = other.thread.cap().read_registers(true)?;
        let place = self.buffer.address() + offset_of!(IpcBuffer, registers);
        let pointer = core::ptr::with_exposed_provenance_mut::<Registers>(place);
        // SAFETY: the page is mapped as long as `self` lives, and holds an IPC buffer; there are no references.
        unsafe { pointer.write_volatile(registers) };
        Ok(())
    }

    /// Returns the address of the thread's capability as system calls take it.
    pub fn raw(&self) -> u64 {
        u64::from(self.thread.cap().address().0)
    }

    /// Writes a word of the control page.
    fn write(&self, offset: usize, value: u64) {
        assert!(offset.is_multiple_of(8) && offset + 8 <= size_of::<Control>(), "not in the control page");
        let pointer = core::ptr::with_exposed_provenance_mut::<u64>(self.control.address() + offset);
        // SAFETY: the page is mapped as long as `self` lives, the offset is inside (above), and there are no
        // references.
        unsafe { pointer.write_volatile(value) };
    }

    fn write_all(&self, offset: usize, values: &[u64]) {
        for (index, value) in values.iter().enumerate() {
            self.write(offset + index * 8, *value);
        }
    }

    /// Reads a word of the control page.
    fn read(&self, offset: usize) -> u64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= size_of::<Control>(), "not in the control page");
        let pointer = core::ptr::with_exposed_provenance::<u64>(self.control.address() + offset);
        // SAFETY: as in `write`.
        unsafe { pointer.read_volatile() }
    }

    /// Names a device register that is set to 0 after each round.
    pub fn quiet(&self, register: u64) {
        self.write(offset_of!(Control, quiet), register);
    }

    /// Sets capabilities to send, or slots to receive into.
    fn write_caps(&self, offset: usize, caps: [u32; MAX_CAPS]) {
        for (index, cap) in caps.into_iter().enumerate() {
            let pointer = core::ptr::with_exposed_provenance_mut::<u32>(self.buffer.address() + offset + index * 4);
            // SAFETY: the page is mapped as long as `self` lives, and holds an IPC buffer; there are no references.
            unsafe { pointer.write_volatile(cap) };
        }
    }

    /// Attaches this capability to each message.
    pub fn send_cap(&self, cap: CapAddress) {
        self.write_caps(offset_of!(IpcBuffer, send_caps), [cap.0, 0, 0, 0]);
    }

    /// Receives a capability into this slot.
    pub fn receive_cap(&self, slot: CapAddress) {
        self.write_caps(offset_of!(IpcBuffer, receive_slots), [slot.0, 0, 0, 0]);
    }

    /// Sends faults of a class to an endpoint.
    pub fn faults_to(&self, class: Class, endpoint: Cap<Endpoint>) -> Result<(), KernelError> {
        self.thread.cap().faults_to(class, Some(endpoint))
    }

    /// Makes faults of a class upcalls, after which the program counter advances by `skip` bytes. The actor must be in
    /// this address space, where its IPC buffer is.
    pub fn faults_upcall(&self, class: Class, skip: u64) -> Result<(), KernelError> {
        self.write(offset_of!(Control, skip), skip);
        // SAFETY: the handler is made for the programs and uses no stack.
        unsafe { self.thread.cap().faults_upcall(class, None, upcall(), 0) }
    }

    /// Returns the records, once the actor has run.
    pub fn records(&self) -> Result<Vec<RawRecord>, String> {
        let written = self.read(offset_of!(Control, written)) as usize;
        let errors = self.read(offset_of!(Control, undo_errors));
        if errors != 0 {
            return Err(format!("a system call between rounds failed; all codes or-ed: {errors}"));
        }
        let count = if self.role.finishes { written } else { self.role.rounds - 1 };
        if count < self.role.rounds - usize::from(!self.role.finishes) || count > MAX_RECORDS {
            return Err(format!("{count} records for {} rounds", self.role.rounds));
        }
        let records: Vec<RawRecord> = (0..count).map(|index| self.record(index)).collect();
        match records.iter().find(|record| record.code != self.role.code) {
            Some(record) => Err(format!("a round returned {}, not {}", record.code, self.role.code)),
            None => Ok(records),
        }
    }

    fn record(&self, index: usize) -> RawRecord {
        let offset = offset_of!(Control, records) + index * size_of::<RawRecord>();
        let word = |field| self.read(offset + field);
        RawRecord {
            before: word(offset_of!(RawRecord, before)),
            after: word(offset_of!(RawRecord, after)),
            code: word(offset_of!(RawRecord, code)),
            badge: word(offset_of!(RawRecord, badge)),
        }
    }
}

/// Lets actors run, in this order at equal priority, until all wait or are done.
pub fn perform(actors: &[&Actor]) -> Result<(), KernelError> {
    let own = Cap::<SchedulingContext>::new(slot::SCHEDULING);
    let info = own.query()?;
    own.configure(STARTING, info.ceiling, info.slice, None)?;
    let started = actors.iter().try_for_each(|actor| actor.thread.cap().resume());
    own.configure(WAITING, info.ceiling, info.slice, None)?;
    started
}

/// Flags with which device registers are mapped.
pub const DEVICE: MapFlags = WRITABLE.union(MapFlags::DEVICE);
