//! The possible next steps in the small universe: every system call with every argument that makes a difference, a
//! fault of the running thread, and the passing of time.
//!
//! The arguments that make a difference follow from the capabilities in the slots: each operation is tried with every
//! capability of the kind that it takes, and once with one of another kind. Of several empty slots only the first is
//! used.

use tench_abi::fault::Class;
use tench_abi::layout::{UNBIND, WATERMARK};
use tench_abi::object::MIN_BUDGET;
use tench_abi::{Kind, Operation, Rights, Tag};
use tench_kernel::Cap;
use tench_kernel::slot::flag;

use super::universe::slots;

/// The set of calls that are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All calls.
    All,
    /// The calls by which threads wait for each other, get a scheduling context and lose it, and by which objects are
    /// deleted. They are few enough for longer sequences.
    Waiting,
}

/// A possible step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A system call: operation and registers.
    Call(Operation, [u64; 13]),
    /// A fault of the running thread.
    Fault,
    /// The passing of time until the timer fires.
    Wait,
}

/// Returns the possible steps, in an order that depends on nothing but the slots.
pub fn steps(slots: &[(u64, Cap)], scope: Scope) -> Vec<Step> {
    let mut list = List { slots, scope, steps: vec![Step::Fault, Step::Wait] };
    list.call(Operation::Yield, &[]);
    list.call(Operation::Reply, &[0]);
    for (address, cap) in slots.iter().filter(|(_, cap)| cap.kind != Kind::Null) {
        list.capability(*address, cap);
        match cap.kind {
            Kind::Endpoint => list.endpoint(*address),
            Kind::Notification => list.notification(*address),
            Kind::Reply => list.call(Operation::Reply, &[*address]),
            Kind::Thread => list.thread(*address),
            Kind::SchedulingContext => list.context(*address),
            Kind::Untyped => list.untyped(*address),
            Kind::CapNode => list.node(*address, cap),
            Kind::PageTable => list.table(*address, cap),
            Kind::Frame => list.frame(*address),
            Kind::Mapping => list.all(Operation::MappingProtect, &[*address, 1]),
            Kind::Null | Kind::Interrupt | Kind::InterruptControl | Kind::Kernel | Kind::Doorbell => {}
        }
    }
    list.refusals();
    list.steps
}

struct List<'a> {
    slots: &'a [(u64, Cap)],
    scope: Scope,
    steps: Vec<Step>,
}

impl List<'_> {
    /// Adds a call to both scopes.
    fn call(&mut self, operation: Operation, arguments: &[u64]) {
        let mut registers = [0; 13];
        registers[..arguments.len()].copy_from_slice(arguments);
        self.steps.push(Step::Call(operation, registers));
    }

    /// Adds a call to the larger scope alone.
    fn all(&mut self, operation: Operation, arguments: &[u64]) {
        if self.scope == Scope::All {
            self.call(operation, arguments);
        }
    }

    /// Adds a message with a tag, a reply object and a deadline.
    fn message(&mut self, operation: Operation, address: u64, tag: u64, reply: u64, deadline: u64) {
        let mut registers = [0; 13];
        (registers[0], registers[1], registers[11], registers[12]) = (address, tag, reply, deadline);
        self.steps.push(Step::Call(operation, registers));
    }

    /// Returns the addresses of the capabilities of a kind. Of equal capabilities one is enough.
    fn of(&self, kind: Kind) -> Vec<u64> {
        let mut found: Vec<(u64, Cap)> = Vec::new();
        for (address, cap) in self.slots.iter().filter(|(_, cap)| cap.kind == kind) {
            if !found.iter().any(|(_, other)| other == cap) {
                found.push((*address, *cap));
            }
        }
        found.into_iter().map(|(address, _)| address).collect()
    }

    /// Returns the first empty slot, if there is one besides the slot for received capabilities.
    fn empty(&self) -> u64 {
        let is_free = |(address, cap): &&(u64, Cap)| cap.kind == Kind::Null && *address != slots::RECEIVED;
        self.slots.iter().find(is_free).map_or(slots::NODE, |(address, _)| *address)
    }

    fn capability(&mut self, address: u64, cap: &Cap) {
        let to = self.empty();
        self.call(Operation::Delete, &[0, address]);
        self.call(Operation::Revoke, &[0, address]);
        self.all(Operation::DeletePart, &[0, address, 0]);
        self.all(Operation::RevokePart, &[0, address, 0]);
        self.all(Operation::Copy, &[0, address, 0, to]);
        self.all(Operation::Move, &[0, address, 0, to]);
        self.all(Operation::Identify, &[0, address]);
        self.all(Operation::Mint, &[0, address, 0, to, u64::from(Rights::READ.bits()), 0]);
        if matches!(cap.kind, Kind::Endpoint | Kind::Notification) {
            self.all(Operation::Mint, &[0, address, 0, to, u64::from(Rights::all().bits()), 2]);
        }
    }

    fn endpoint(&mut self, address: u64) {
        use Operation::{Call, Receive, ReplyReceive, Send, TryReceive, TrySend};
        for operation in [Call, Send] {
            self.message(operation, address, 0, 0, 0);
        }
        for operation in [Receive, ReplyReceive] {
            self.message(operation, address, 0, 0, 0);
            for reply in self.of(Kind::Reply) {
                self.message(operation, address, Tag::REPLY, reply, 0);
            }
        }
        if self.scope == Scope::All {
            for operation in [TrySend, TryReceive] {
                self.message(operation, address, 0, 0, 0);
            }
            self.message(Call, address, Tag(0).with_caps(1).0, 0, 0);
            self.message(Call, address, Tag::DEADLINE, 0, DEADLINE);
            self.message(Receive, address, Tag::DEADLINE, 0, DEADLINE);
            self.message(Receive, address, Tag::DEADLINE | Tag::ALARM, 0, DEADLINE);
        }
    }

    fn notification(&mut self, address: u64) {
        self.call(Operation::Signal, &[address]);
        self.call(Operation::Receive, &[address]);
        self.all(Operation::TryReceive, &[address]);
    }

    fn thread(&mut self, address: u64) {
        for context in self.of(Kind::SchedulingContext) {
            self.call(Operation::ThreadBind, &[address, context]);
        }
        for reply in self.of(Kind::Reply) {
            self.call(Operation::ThreadBind, &[address, 0, reply]);
        }
        for notification in self.of(Kind::Notification) {
            self.call(Operation::ThreadBind, &[address, 0, 0, notification]);
        }
        for endpoint in self.of(Kind::Endpoint).into_iter().chain([0]) {
            self.call(Operation::ThreadServe, &[address, endpoint]);
            self.all(Operation::ThreadFaults, &[address, Class::PageFault as u64, endpoint]);
            self.all(Operation::ThreadFaults, &[address, Class::Timeout as u64, endpoint]);
        }
        self.call(Operation::ThreadBind, &[address, UNBIND]);
        self.call(Operation::ThreadBind, &[address, 0, UNBIND]);
        self.call(Operation::ThreadBind, &[address, 0, 0, UNBIND]);
        self.call(Operation::ThreadSuspend, &[address]);
        self.call(Operation::ThreadResume, &[address]);
        self.all(Operation::ThreadFaults, &[address, Class::PageFault as u64, 0, UPCALL]);
        self.all(Operation::ThreadReadRegisters, &[address, 1]);
        self.all(Operation::ThreadQuery, &[address]);
        for (node, space) in self.of(Kind::CapNode).into_iter().zip(self.of(Kind::PageTable)) {
            self.all(Operation::ThreadConfigure, &[address, node, space, 0]);
        }
        for space in self.of(Kind::PageTable) {
            self.all(Operation::ThreadConfigure, &[address, slots::ROOT, space, slots::FRAME, 0]);
        }
    }

    fn context(&mut self, address: u64) {
        for priority in [50, 150] {
            self.call(Operation::SchedulingConfigure, &[address, priority, 200]);
        }
        self.all(Operation::SchedulingConfigure, &[address, 100, 10, 20]);
        self.call(Operation::SchedulingReserve, &[address, MIN_BUDGET, 2 * MIN_BUDGET]);
        self.all(Operation::SchedulingReserve, &[address, 0, 0]);
        self.all(Operation::SchedulingQuery, &[address]);
    }

    fn untyped(&mut self, address: u64) {
        let to = self.empty();
        for (kind, size) in [
            (Kind::Thread, 0),
            (Kind::SchedulingContext, 0),
            (Kind::Endpoint, 0),
            (Kind::Reply, 0),
            (Kind::Notification, 0),
            (Kind::Untyped, 13),
            (Kind::CapNode, 1),
            (Kind::Frame, 12),
            (Kind::PageTable, 0),
            (Kind::PageTable, 1),
            (Kind::PageTable, 3),
        ] {
            self.all(Operation::UntypedRetype, &[address, kind as u64, size, 1, WATERMARK, 0, to]);
        }
        self.all(Operation::UntypedSplit, &[address, 0, to]);
        self.all(Operation::UntypedChildren, &[address]);
        self.all(Operation::UntypedQuery, &[address]);
    }

    fn node(&mut self, address: u64, cap: &Cap) {
        let to = self.empty();
        if cap.slots() == 2 {
            for node in self.of(Kind::CapNode) {
                self.all(Operation::NodeInstall, &[address, 1, node]);
            }
            for index in [0, 1] {
                self.all(Operation::NodeRemove, &[address, index, to]);
            }
        }
    }

    fn table(&mut self, address: u64, cap: &Cap) {
        if cap.level() != 0 {
            for parent in self.of(Kind::PageTable) {
                self.all(Operation::PageTableMap, &[address, parent, 0]);
            }
            self.all(Operation::PageTableUnmap, &[address]);
        } else {
            for suspend in [1, 0] {
                self.call(Operation::AccountSuspend, &[address, suspend]);
            }
            self.all(Operation::AccountQuery, &[address]);
        }
    }

    fn frame(&mut self, address: u64) {
        let to = self.empty();
        for table in self.of(Kind::PageTable) {
            self.all(Operation::FrameMap, &[address, table, 0, 1, 0, 3, to]);
        }
    }

    /// Adds every operation with no capability, and with one of the wrong kind or one that is being deleted.
    fn refusals(&mut self) {
        let zombie = self.slots.iter().find(|(_, cap)| cap.flags & flag::ZOMBIE != 0).map(|(address, _)| *address);
        for operation in Operation::ALL {
            for wrong in [Some(slots::RECEIVED), Some(slots::FRAME), zombie].into_iter().flatten() {
                self.all(*operation, &[wrong]);
            }
        }
    }
}

/// Time at which waits end that do not last for ever.
const DEADLINE: u64 = 1_000_000;
/// Address to which upcalls go.
const UPCALL: u64 = 0x20_0000;
