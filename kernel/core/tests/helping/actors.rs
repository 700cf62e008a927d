//! Threads that call and reply to each other, and a manager that arranges it all.

use tench_abi::layout::{UNBIND, slot};
use tench_abi::{Error, Kind, Operation, Tag, fault};
use tench_arch_host::machine::at;
use tench_arch_host::{Machine, ResultRegisters};
use tench_kernel::object::Ref;
use tench_kernel::reply::Reply;
use tench_kernel::thread::{Thread, ThreadState};
use tench_kernel::{account, cspace, endpoint, scheduler};

/// A thread, with its capabilities in the CSpace that all share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor {
    pub thread: Ref<Thread>,
    pub capability: u64,
    pub time: u64,
    pub reply: u64,
    /// Endpoint at which the thread receives, if it does.
    pub endpoint: u64,
}

/// A machine whose first thread is the manager: it only arranges, and is suspended otherwise.
pub struct Stage {
    pub machine: Machine,
    /// A thread that never waits.
    pub hog: Ref<Thread>,
    /// Addresses of all actors' scheduling contexts.
    times: Vec<u64>,
}

impl Stage {
    pub fn new() -> Stage {
        let mut machine = Machine::new();
        machine.call(Operation::SchedulingConfigure, &[at(slot::SCHEDULING), 255, 255, 0]).ok();
        machine.call(Operation::ThreadSuspend, &[at(slot::THREAD)]);
        let hog = machine.first;
        Stage { machine, hog, times: Vec::new() }
    }

    /// Runs `work` as the first thread, which is then suspended again.
    pub fn arrange<T>(&mut self, work: impl FnOnce(&mut Machine) -> T) -> T {
        let first = self.machine.first;
        scheduler::make_ready(self.machine.kernel(), first);
        self.machine.run(first);
        let result = work(&mut self.machine);
        self.machine.call(Operation::ThreadSuspend, &[at(slot::THREAD)]);
        self.check();
        result
    }

    #[track_caller]
    pub fn check(&mut self) {
        self.machine.check();
    }

    /// Makes a system call as the first thread.
    pub fn try_to(&mut self, operation: Operation, arguments: &[u64]) -> ResultRegisters {
        self.arrange(|machine| machine.call(operation, arguments))
    }

    /// Makes a system call as the first thread. Panics if it fails.
    #[track_caller]
    pub fn manage(&mut self, operation: Operation, arguments: &[u64]) {
        self.try_to(operation, arguments).ok();
    }

    pub fn make(&mut self, kind: Kind) -> u64 {
        self.arrange(|machine| machine.make(kind, 0))
    }

    /// Makes a ready thread.
    pub fn actor(&mut self, priority: u64) -> Actor {
        let actor = self.arrange(|machine| {
            let capability = machine.free;
            let thread = machine.make_thread(priority);
            Actor { thread, capability, time: capability + 1, reply: capability + 2, endpoint: 0 }
        });
        self.times.push(actor.time);
        actor
    }

    /// Makes one of so many threads that only the threads themselves keep their slots: the bound objects live as long
    /// as the thread.
    pub fn extra(&mut self, priority: u64) -> Actor {
        let actor = self.actor(priority);
        let used = actor.capability + 1..self.machine.free;
        self.machine.free = used.start;
        for address in used {
            self.manage(Operation::Delete, &[0, address]);
        }
        self.times.pop();
        actor
    }

    /// Makes a thread that is ready for ever.
    pub fn hog(&mut self, priority: u64) {
        self.hog = self.actor(priority).thread;
    }

    /// Makes a thread that waits for messages at an endpoint of its own, which it has declared to serve if `served`.
    pub fn server(&mut self, priority: u64, served: bool) -> Actor {
        let endpoint = self.make(Kind::Endpoint);
        let actor = Actor { endpoint, ..self.actor(priority) };
        if served {
            self.serve(actor, endpoint);
        }
        self.machine.call_as(actor.thread, Operation::Receive, &[endpoint, 0]);
        self.check();
        actor
    }

    /// Makes a server that has declared how many other servers deep its calls go.
    pub fn server_of_depth(&mut self, priority: u64, depth: u64) -> Actor {
        let endpoint = self.make(Kind::Endpoint);
        let actor = Actor { endpoint, ..self.actor(priority) };
        self.manage(Operation::ThreadServe, &[actor.capability, endpoint, depth]);
        self.machine.call_as(actor.thread, Operation::Receive, &[endpoint, 0]);
        self.check();
        actor
    }

    #[track_caller]
    pub fn serve(&mut self, actor: Actor, endpoint: u64) {
        self.manage(Operation::ThreadServe, &[actor.capability, endpoint]);
    }

    pub fn call(&mut self, client: Actor, server: Actor) {
        self.machine.call_as(client.thread, Operation::Call, &[server.endpoint, 0]);
        self.check();
    }

    /// Makes a call with a deadline `ticks` from now.
    pub fn call_until(&mut self, client: Actor, server: Actor, ticks: u64) {
        let mut x = [0; 13];
        (x[0], x[1], x[12]) = (server.endpoint, Tag::DEADLINE, self.machine.host().time + ticks);
        self.machine.run(client.thread);
        self.machine.system_call(Operation::Call as u64, &x);
        self.check();
    }

    /// Makes an actor receive at its endpoint, with a reply object that is not the bound one.
    #[track_caller]
    pub fn receive_with(&mut self, actor: Actor, operation: Operation, reply: u64) {
        let mut x = [0; 13];
        (x[0], x[1], x[11]) = (actor.endpoint, Tag::REPLY, reply);
        self.machine.run(actor.thread);
        self.machine.system_call(operation as u64, &x);
        self.check();
    }

    /// Makes a server reply to its caller, and receive the next message.
    pub fn reply_and_receive(&mut self, server: Actor) {
        let tag = Tag::new(fault::reply::RESUME, 0).0;
        self.machine.call_as(server.thread, Operation::ReplyReceive, &[server.endpoint, tag]);
        self.check();
    }

    /// Cancels a thread's wait.
    pub fn cancel(&mut self, actor: Actor) {
        endpoint::cancel(self.machine.kernel(), actor.thread, Error::Aborted);
        self.machine.reschedule();
        self.check();
    }

    /// Suspends a thread or lets it run, as `AccountSuspend` does.
    pub fn set_suspended(&mut self, actor: Actor, suspended: bool) {
        account::set_suspended(self.machine.kernel(), actor.thread, suspended);
        self.machine.reschedule();
        self.check();
    }

    pub fn configure(&mut self, actor: Actor, priority: u64) {
        self.manage(Operation::SchedulingConfigure, &[actor.time, priority, priority, 0]);
    }

    pub fn take_time(&mut self, actor: Actor) {
        self.manage(Operation::ThreadBind, &[actor.capability, UNBIND, 0, 0]);
    }

    pub fn priority(&mut self, actor: Actor) -> i16 {
        self.machine.thread(actor.thread).priority
    }

    /// Returns the priority at which a thread runs, and the address of the capability to its context; 0 if the context
    /// is not an actor's.
    pub fn runs_on(&mut self, actor: Actor) -> (i16, Option<u64>) {
        let t = self.machine.thread(actor.thread);
        let (priority, context) = (t.priority, t.scheduling.map(Ref::address));
        let address = context.map(|context| {
            let first = self.machine.first;
            let k = self.machine.kernel();
            let is_it = |time: &&u64| match cspace::lookup_of(k, first, **time) {
                Ok(slot) => k.slot(slot).cap.object == context,
                Err(_) => false,
            };
            self.times.iter().find(is_it).copied().unwrap_or(0)
        });
        (priority, address)
    }

    pub fn state(&mut self, actor: Actor) -> ThreadState {
        self.machine.thread(actor.thread).state
    }

    /// Returns the reply object that is bound to a thread.
    pub fn reply(&mut self, actor: Actor) -> Ref<Reply> {
        self.machine.thread(actor.thread).bound_reply.expect("it has one")
    }
}
