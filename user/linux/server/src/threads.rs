//! The threads of processes, as the kernel has them.

use alloc::vec::Vec;

use tench::abi::fault::{Class, FloatRegisters, Registers, reply};
use tench::abi::layout::slot;
use tench::memory::{Made, free_slot, make, take_slot};
use tench::sys::thread::{Binding, Bindings};
use tench::sys::{
    Cap, CapAddress, CapNode, Endpoint, Error, Frame, Message, OWN_CSPACE, PageTable, Reply, Rights, SchedulingContext,
    Thread as KernelThread,
};
use tench::time::{self, Instant};

use tench_linux::thread::WHOLE_TURN;

/// Log2 of the number of slots of the processes' CSpace, which stay empty.
const SLOTS: u64 = 1;

/// The shortest time slice in ticks of the clock: much longer than it takes to change to another thread.
const LEAST_SLICE: u64 = 1000;

/// A thread that wakes others for one of so many parts of a second, and does not wait itself, gives way to those that
/// it wakes: after a millisecond, about as long as with Linux.
const WAKING_PARTS: u64 = 1000;

/// A thread of a process.
#[derive(Debug)]
pub struct Thread {
    thread: Made<KernelThread>,
    /// The thread's time.
    scheduling: Made<SchedulingContext>,
    /// The endpoint, with the process's number as badge.
    endpoint: Cap<Endpoint>,
    /// The object that holds the thread while it waits and others are served.
    reply: Option<Made<Reply>>,
    /// The thread's own CSpace, if it may send its calls.
    own: Option<Own>,
}

/// A CSpace with the endpoint of its thread, who can change it, and remove the node from it. So the capability by which
/// the node is deleted stays here, and the CSpace has a copy.
#[derive(Debug)]
struct Own {
    root: Made<CapNode>,
    /// Node in the root's first entry.
    _node: Made<CapNode>,
}

/// Address of the endpoint in such a CSpace.
const OWN_ENDPOINT: CapAddress = CapAddress(1);
/// Log2 of the number of slots of such a CSpace's node.
const OWN_SLOTS: u64 = 8;

/// The way in which a thread makes its calls, with what the kernel needs for it.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// By exceptions.
    Exceptions,
    /// By exceptions, or by messages.
    Messages,
    /// By messages from the handler of upcalls.
    Upcalls {
        /// Address of the handler.
        entry: u64,
        /// Frame with the IPC buffer.
        frame: Cap<Frame>,
        /// Offset of the buffer in the frame.
        offset: u64,
    },
}

/// Everything that all threads share.
#[derive(Debug)]
pub struct Threads {
    cspace: Made<CapNode>,
    endpoint: Made<Endpoint>,
    /// The object that holds the thread whose call or fault is being served.
    current: Made<Reply>,
    /// Empty reply objects. With those that hold threads, they are as many as there are threads.
    free: Vec<Made<Reply>>,
    /// The answer to the thread whose call or fault was served last, which is sent with the next receive.
    answer: Option<Answer>,
    /// The endpoint of the thread whose calls have let others go on last, and since when it has done so without
    /// waiting, in ticks.
    waker: (CapAddress, u64),
}

/// An answer that was not sent yet.
#[derive(Debug)]
pub struct Answer {
    /// The endpoint of the thread.
    thread: Cap<Endpoint>,
    result: Option<u64>,
}

/// Nothing that is done to an own thread in the right state is refused.
fn never_refused(result: Result<(), Error>) {
    debug_assert!(result.is_ok(), "{result:?}");
}

impl Answer {
    fn new(thread: &Thread, result: Option<u64>) -> Answer {
        Answer { thread: thread.endpoint, result }
    }

    /// Makes a message carry the answer.
    #[inline(always)]
    pub fn write(&self, message: &mut Message) {
        match self.result {
            Some(result) => {
                message.restart(reply::RESULT);
                message.push(result);
            }
            None => message.restart(reply::RESUME),
        }
    }

    /// Answers the thread that a reply object holds.
    fn send(&self, reply: Cap<Reply>) {
        let mut message = Message::new(0);
        self.write(&mut message);
        // A thread that has sent its call may have stopped waiting.
        let result = reply.reply(&message);
        debug_assert!(matches!(result, Ok(()) | Err(Error::NoCaller)), "{result:?}");
    }
}

impl Threads {
    /// Returns the place where threads will be.
    pub fn new() -> Result<Threads, tench::memory::Error> {
        let (cspace, endpoint, current) = (make(SLOTS)?, make::<Endpoint>(0)?, make(0)?);
        let waker = (endpoint.cap().address(), 0);
        Ok(Threads { cspace, endpoint, current, free: Vec::new(), answer: None, waker })
    }

    /// Returns the endpoint at which calls and faults come.
    pub const fn endpoint(&self) -> Cap<Endpoint> {
        self.endpoint.cap()
    }

    /// Returns the reply object with which to receive.
    pub const fn current(&self) -> Cap<Reply> {
        self.current.cap()
    }

    /// Takes the answer to what was received last, if there is one already.
    pub const fn take_answer(&mut self) -> Option<Answer> {
        self.answer.take()
    }

    /// Makes a stopped thread.
    pub fn make(&mut self, root: Cap<PageTable>, process: u32) -> Result<Thread, tench::memory::Error> {
        let (thread, scheduling, reply) = (make::<KernelThread>(0)?, make::<SchedulingContext>(0)?, make(0)?);
        let slot = take_slot()?;
        let rights = Rights::WRITE | Rights::CALL;
        let endpoint = match self.endpoint.cap().mint_to(slot, rights, process.into()) {
            Ok(endpoint) => endpoint,
            Err(error) => {
                free_slot(slot);
                return Err(error.into());
            }
        };
        let made = Thread { thread, scheduling, endpoint, reply: None, own: None };
        match self.prepare(&made, root) {
            Ok(()) => {
                self.free.push(reply);
                Ok(made)
            }
            Err(error) => {
                made.end();
                Err(error.into())
            }
        }
    }

    fn prepare(&self, made: &Thread, root: Cap<PageTable>) -> Result<(), Error> {
        let authority = Cap::<SchedulingContext>::new(slot::SCHEDULING);
        let own = authority.query()?;
        // Calls are served before anybody else makes one.
        let priority = own.priority.saturating_sub(1);
        let scheduling = made.scheduling.cap();
        scheduling.configure(priority, priority, own.slice, Some(authority))?;
        let thread = made.thread.cap();
        thread.configure(self.cspace.cap(), root, None)?;
        thread.bind(Bindings { scheduling: Binding::To(scheduling), ..Bindings::KEEP })?;
        for class in Class::STOPPING {
            thread.faults_to(class, Some(made.endpoint))?;
        }
        Ok(())
    }

    /// Ends a thread.
    pub fn end(&mut self, mut thread: Thread) {
        let held = thread.reply.take();
        self.take_answer_to(&thread);
        thread.end();
        drop(held.or_else(|| self.free.pop()));
    }

    /// Answers a call or fault.
    pub fn answer(&mut self, thread: &mut Thread, result: Option<u64>) {
        let answer = Answer::new(thread, result);
        match thread.reply.take() {
            Some(reply) => {
                answer.send(reply.cap());
                self.free.push(reply);
                self.note_wait(thread);
                self.let_woken_run();
            }
            None => self.answer = Some(answer),
        }
    }

    /// Answers a call at once: the thread becomes the last of those that are ready.
    pub fn give_way(&mut self, thread: &mut Thread, result: u64) {
        self.answer(thread, Some(result));
        if let Some(answer) = self.take_answer_to(thread) {
            answer.send(self.current.cap());
        }
    }

    /// Lets a thread that goes on after its wait run before the one whose call has ended the wait, if that has not
    /// waited itself for a while. Otherwise one that calls all the time keeps the processor for its whole turn, and who
    /// is woken finds what it waited for taken again, in turn after turn. The caller may have to give way again at its
    /// next call: a thread that is woken by a condition waits at once for the lock that belongs to it. Whoever is woken
    /// by time while an answer has not been sent counts as woken by that call.
    fn let_woken_run(&mut self) {
        let Some(caller) = self.answer.as_ref().map(|answer| answer.thread.address()) else { return };
        let now = Instant::now().ticks();
        if self.waker.0 != caller {
            self.waker = (caller, now);
        } else if now - self.waker.1 >= time::frequency() / WAKING_PARTS
            && let Some(answer) = self.answer.take()
        {
            answer.send(self.current.cap());
        }
    }

    /// Takes the answer to a thread, if it was not sent yet.
    fn take_answer_to(&mut self, thread: &Thread) -> Option<Answer> {
        self.answer.take_if(|answer| answer.thread.address() == thread.endpoint.address())
    }

    /// Lets the thread that is being served wait.
    pub fn keep(&mut self, thread: &mut Thread) {
        if thread.reply.is_none()
            && let Some(free) = self.free.pop()
        {
            thread.reply = Some(core::mem::replace(&mut self.current, free));
        }
        self.note_wait(thread);
    }

    /// Notes that a thread begins or ends a wait, so that it need not yet give way to those that it wakes.
    fn note_wait(&mut self, thread: &Thread) {
        if self.waker.0 == thread.endpoint.address() {
            self.waker.1 = Instant::now().ticks();
        }
    }

    /// Stops a thread.
    pub fn stop(&mut self, thread: &mut Thread) {
        // Its call is over, and has a result.
        if let Some(answer) = self.take_answer_to(thread) {
            answer.send(self.current.cap());
        }
        never_refused(thread.thread.cap().suspend());
        self.free.extend(thread.reply.take());
    }

    /// Frees the reply object of a thread that does not wait for its reply any more.
    pub fn forget(&mut self, thread: &mut Thread) {
        self.free.extend(thread.reply.take());
    }

    /// Moves a stopped thread to another address space, where it makes its calls by exceptions.
    pub fn move_thread(&mut self, thread: &mut Thread, root: Cap<PageTable>) {
        never_refused(self.set_way(thread, root, Way::Exceptions).map(drop).map_err(|_| Error::InvalidArgument));
    }

    /// Sets how a stopped thread makes its calls. Returns the address of the endpoint in the thread's CSpace, or 0.
    pub fn set_way(
        &mut self,
        thread: &mut Thread,
        root: Cap<PageTable>,
        way: Way,
    ) -> Result<u64, tench::memory::Error> {
        let kernel = thread.thread.cap();
        if let Way::Exceptions = way {
            kernel.configure(self.cspace.cap(), root, None)?;
            kernel.faults_to(Class::ForeignCall, Some(thread.endpoint))?;
            thread.own = None;
            return Ok(0);
        }
        let own = match &mut thread.own {
            Some(own) => own,
            none => none.insert(Own::new(thread.endpoint)?),
        };
        match way {
            Way::Upcalls { entry, frame, offset } => {
                kernel.configure(own.root.cap(), root, Some((frame, offset)))?;
                // SAFETY: the handler and its stack lie in the address space of the Linux process, not in this one's.
                unsafe { kernel.faults_upcall(Class::ForeignCall, Some(thread.endpoint), entry as usize, 0) }?;
            }
            Way::Messages | Way::Exceptions => {
                kernel.configure(own.root.cap(), root, None)?;
                kernel.faults_to(Class::ForeignCall, Some(thread.endpoint))?;
            }
        }
        Ok(OWN_ENDPOINT.0.into())
    }
}

impl Own {
    /// Returns a CSpace with a copy of an endpoint. Its root has a copy of the capability to its node: the program may
    /// do with the copy what it likes.
    fn new(endpoint: Cap<Endpoint>) -> Result<Own, tench::memory::Error> {
        let (root, node) = (make::<CapNode>(SLOTS)?, make::<CapNode>(OWN_SLOTS)?);
        let slot = take_slot()?;
        let installed = node.cap().copy_to(slot).and_then(|copy| root.cap().install_node(0, copy));
        // The copy has moved, or the object's end deletes it.
        free_slot(slot);
        installed?;
        root.cap().copy_from(OWN_ENDPOINT, OWN_CSPACE, endpoint.address())?;
        Ok(Own { root, _node: node })
    }
}

impl Thread {
    fn end(self) {
        let Thread { thread, endpoint, own, .. } = self;
        drop(thread);
        drop(own);
        never_refused(OWN_CSPACE.delete_at(endpoint.address()).map(drop));
        free_slot(endpoint.address());
    }

    /// Sets how long the thread runs while others wait, in parts of the personality's own time.
    pub fn set_turn(&self, parts: u32) {
        let authority = Cap::<SchedulingContext>::new(slot::SCHEDULING);
        let (Ok(own), Ok(present)) = (authority.query(), self.scheduling.cap().query()) else { return };
        let slice = (own.slice * u64::from(parts) / u64::from(WHOLE_TURN)).max(LEAST_SLICE.min(own.slice));
        let configured = self.scheduling.cap().configure(present.priority, present.ceiling, slice, Some(authority));
        never_refused(configured);
    }

    /// Returns for how many ticks of the clock the thread has run.
    pub fn ticks(&self) -> u64 {
        let info = self.scheduling.cap().query();
        debug_assert!(info.is_ok(), "{:?}", info.err());
        info.map_or(0, |info| info.consumed)
    }

    /// Returns the registers.
    pub fn registers(&self) -> Registers {
        let registers = self.thread.cap().read_registers(false);
        debug_assert!(registers.is_ok(), "{registers:?}");
        registers.unwrap_or(Registers::ZERO)
    }

    /// Returns the floating-point registers.
    pub fn float_registers(&self) -> FloatRegisters {
        let registers = self.thread.cap().read_float();
        debug_assert!(registers.is_ok(), "{:?}", registers.err());
        registers.unwrap_or(FloatRegisters { q: [0; 32], status: 0, control: 0 })
    }

    /// Sets the registers of a thread that waits.
    pub fn set_registers(&self, registers: &Registers) {
        // SAFETY: the thread has an address space of its own.
        never_refused(unsafe { self.thread.cap().write_registers(registers, false) });
    }

    /// Sets the registers of a thread, which executes one instruction when it goes on: at once, if it `runs`.
    pub fn step(&self, registers: &Registers, runs: bool) {
        // SAFETY: the thread has an address space of its own.
        never_refused(unsafe { self.thread.cap().step(registers, runs) });
    }

    /// Sets the floating-point registers.
    pub fn set_float_registers(&self, registers: &FloatRegisters) {
        never_refused(self.thread.cap().write_float(registers));
    }

    /// Lets the thread run.
    pub fn run(&self, registers: &Registers) {
        // SAFETY: the thread has an address space of its own.
        never_refused(unsafe { self.thread.cap().write_registers(registers, true) });
    }
}
