//! Fast path and slow path agree: each entry of random threads is taken both ways from the same state, and everything
//! is equal afterwards ([`twin`]).

mod twin;
mod world;

use proptest::prelude::*;
use tench_abi::fault::{Class, Report};
use tench_abi::layout::UNBIND;
use tench_abi::message::{IpcBuffer, MAX_CAPS, MAX_WORDS};
use tench_abi::{Error, Operation, Tag};
use tench_kernel::thread::ThreadState;
use tench_kernel::{account, endpoint, float, helping};

use twin::Twin;
use world::{RECEIVE, RECEIVE_SLOTS, WORK, WORK_SLOTS, World, Zero};

/// A system call with a message. `pick` numbers choose among addresses.
#[derive(Clone, Debug)]
struct Message {
    operation: Operation,
    pick: usize,
    tag: u64,
    pick_reply: usize,
    /// Ticks from now to the deadline.
    deadline: u64,
    /// Sent capabilities and slots to receive into.
    caps: [u8; 2 * MAX_CAPS],
    words: u64,
}

#[derive(Clone, Debug)]
enum Step {
    Message(Message),
    Signal(usize),
    /// A call that changes capabilities: which, and numbers that choose its arguments.
    Capability(u8, [usize; 6]),
    Yield,
    /// Reads a thread's registers, or writes them (`true`): numbers that choose the arguments, and one for the
    /// registers.
    Control(bool, [usize; 2], u64),
    Fault(Class, u64),
    /// The running thread uses the floating-point unit.
    Compute(u64),
    /// Calls and replies at one endpoint, by threads most of which use the floating-point unit.
    Conversation(usize, Message),
    Pass(u64),
    /// The manager changes something: what, for which thread, how.
    Manage(u8, usize, u64),
}

/// Returns one of `usual`, or in one of five cases any of `all`.
fn pick(number: usize, usual: &[u64], all: &[u64]) -> u64 {
    let list = if number.is_multiple_of(5) || usual.is_empty() { all } else { usual };
    list[number / 5 % list.len()]
}

fn tags() -> impl Strategy<Value = u64> {
    let label = prop_oneof![4 => 0..3u64, 1 => 0..1u64 << 48];
    let length = prop_oneof![5 => 0..2u64, 4 => 2..9u64, 4 => 9..65u64, 1 => 65..256u64];
    let caps = prop_oneof![7 => Just(0), 3 => 1..5u64, 1 => 5..16u64];
    let flags = prop_oneof![
        8 => Just(0),
        5 => Just(Tag::REPLY),
        2 => Just(Tag::DEADLINE),
        1 => Just(Tag::DEADLINE | Tag::ALARM),
        2 => (0..16u64).prop_map(|bits| bits << 12),
    ];
    (label, length, caps, flags).prop_map(|(label, length, caps, flags)| label << 16 | flags | caps << 8 | length)
}

fn messages() -> impl Strategy<Value = Message> {
    let operation = prop_oneof![
        6 => Just(Operation::Call),
        6 => Just(Operation::ReplyReceive),
        4 => Just(Operation::Receive),
        1 => Just(Operation::Send),
        1 => Just(Operation::Reply),
        1 => Just(Operation::TryReceive),
    ];
    (operation, 0..1000usize, tags(), 0..1000usize, 0..200u64, any::<[u8; 2 * MAX_CAPS]>(), any::<u64>()).prop_map(
        |(operation, pick, tag, pick_reply, deadline, caps, words)| Message {
            operation,
            pick,
            tag,
            pick_reply,
            deadline,
            caps,
            words,
        },
    )
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => messages().prop_map(Step::Message),
        2 => (0..1000usize).prop_map(Step::Signal),
        12 => (0..8u8, prop::array::uniform6(0..1000usize)).prop_map(|(what, picks)| Step::Capability(what, picks)),
        1 => Just(Step::Yield),
        8 => (prop::bool::weighted(0.6), prop::array::uniform2(0..1000usize), any::<u64>())
            .prop_map(|(writes, picks, word)| Step::Control(writes, picks, word)),
        2 => (prop::sample::select(&Class::STOPPING[..]), any::<u64>())
            .prop_map(|(class, word)| Step::Fault(class, word)),
        4 => any::<u64>().prop_map(Step::Compute),
        1 => (0..3usize, messages()).prop_map(|(endpoint, message)| Step::Conversation(endpoint, message)),
        1 => (0..120u64).prop_map(Step::Pass),
        4 => (0..18u8, 0..7usize, 0..100u64).prop_map(|(what, whom, how)| Step::Manage(what, whom, how)),
    ]
}

struct Play {
    world: World,
    twin: Twin,
}

impl Play {
    fn new(zero: Zero) -> Play {
        let mut world = World::new(zero);
        let twin = Twin::new(&mut world);
        Play { world, twin }
    }

    fn step(&mut self, step: &Step, keep_fast: bool) {
        if self.world.machine.idle() {
            self.wake(step);
            self.world.machine.pass_time(0);
        }
        match step {
            Step::Manage(what, whom, how) => self.manage(*what, *whom, *how),
            Step::Pass(ticks) => self.world.machine.pass_time(*ticks),
            _ if self.world.machine.idle() => {}
            Step::Message(message) => self.message(message, keep_fast),
            Step::Signal(number) => {
                let addresses = &self.world.addresses;
                let address = pick(*number, &addresses.signallable, &addresses.all);
                self.call(Operation::Signal, keep_fast, &[address]);
            }
            Step::Capability(what, picks) => self.capability(*what, *picks, keep_fast),
            Step::Yield => self.call(Operation::Yield, keep_fast, &[]),
            Step::Control(writes, picks, word) => self.control(*writes, *picks, *word, keep_fast),
            Step::Fault(class, word) => self.fault(*class, *word, keep_fast),
            Step::Compute(word) => self.compute(*word),
            Step::Conversation(endpoint, message) => self.converse(*endpoint, message, keep_fast),
        }
        self.world.machine.pass_time(1);
        self.world.machine.check();
    }

    /// Makes a thread run again while all wait.
    fn wake(&mut self, step: &Step) {
        let whom = match step {
            Step::Message(message) => message.pick_reply,
            Step::Manage(_, whom, _) => *whom,
            Step::Control(_, [whom, _], _) => *whom,
            _ => 0,
        };
        for i in 0..2 {
            self.manage(if i == 0 { 4 } else { 1 }, whom % 7, 0);
        }
    }

    /// Makes a system call on both paths. `arguments` are `x0`, `x1` and so on, without `x10`.
    fn call(&mut self, operation: Operation, keep_fast: bool, arguments: &[u64]) {
        let mut x = [0; 13];
        x[..arguments.len()].copy_from_slice(arguments);
        let what = format!("{operation:?} {arguments:x?}");
        self.twin.enter(&mut self.world, keep_fast, &what, |m| {
            m.system_call(operation as u64, &x);
        });
    }

    /// Copies, deletes or maps. What is deleted most often are the slots in which the other calls make capabilities.
    fn capability(&mut self, what: u8, picks: [usize; 6], keep_fast: bool) {
        let addresses = &self.world.addresses;
        let work: Vec<u64> = (WORK..WORK + WORK_SLOTS).collect();
        let [first, second, third, index, count, flags] = picks;
        let cspace = if second.is_multiple_of(9) { pick(third, &[], &addresses.all) } else { 0 };
        let place = pick(first, &work, &addresses.all);
        let (index, count) = (pick(index, &[0, 1, 2, 7, 511], &[512, 65]), pick(count, &[1, 1, 1, 2, 0], &[3, 16]));
        let offset = pick(second, &[0, 0x1000, 0x3000], &[0x4000, 0x800, 0x10_0000]);
        let flags = pick(flags, &[1, 3, 3], &[0, 2, 4, 5, 9, 17, 1 << 40]);
        let (operation, arguments) = match what {
            0 | 1 => {
                let source = [&addresses.frames[..], &addresses.callable, &addresses.replies, &work].concat();
                (Operation::Copy, vec![cspace, pick(third, &source, &addresses.all), 0, place])
            }
            2..=4 => (Operation::Delete, vec![cspace, pick(first, &work, &work), u64::from(third.is_multiple_of(7))]),
            5 | 6 => {
                let (frame, table) = (&addresses.frames, &addresses.tables);
                let (frame, table) = (pick(third, frame, &addresses.all), pick(second, table, &addresses.all));
                (Operation::FrameMap, vec![frame, table, index, count, offset, flags, place])
            }
            _ => {
                let mapping = pick(third, &addresses.scattered, &addresses.all);
                (Operation::MappingSet, vec![mapping, index, count, offset, flags])
            }
        };
        self.call(operation, keep_fast, &arguments);
    }

    /// Reads or writes registers, often those of the thread on whose call the running thread works. The values written
    /// differ from each other and from the old ones.
    fn control(&mut self, writes: bool, [whom, flags]: [usize; 2], word: u64, keep_fast: bool) {
        let m = &mut self.world.machine;
        let current = m.current();
        if writes && m.thread(current).ipc_buffer != 0 {
            let registers = &mut m.buffer(current).registers;
            registers.x = std::array::from_fn(|i| word.rotate_left(i as u32) ^ i as u64);
            (registers.sp, registers.pc, registers.flags, registers.thread_pointer) =
                (word, !word, word << 3, word ^ 5);
        }
        let caller = helping::caller_of(m.kernel(), current).filter(|_| whom.is_multiple_of(2));
        let place = self.world.actors.iter().position(|actor| Some(actor.thread) == caller);
        let addresses = &self.world.addresses;
        let thread = place.map_or_else(|| pick(whom, &addresses.threads, &addresses.all), |i| addresses.threads[i]);
        let operation = if writes { Operation::ThreadWriteRegisters } else { Operation::ThreadReadRegisters };
        self.call(operation, keep_fast, &[thread, pick(flags, &[1, 1, 0], &[2, 3, 1 << 32])]);
    }

    /// Lets whoever runs reply if a caller waits for that, and else call, several times. Of three uses of the unit one
    /// is left out.
    fn converse(&mut self, endpoint: usize, message: &Message, keep_fast: bool) {
        for round in 0..8 {
            if !(message.pick + round).is_multiple_of(3) && !self.world.machine.idle() {
                self.step(&Step::Compute(message.words), keep_fast);
            }
            let m = &mut self.world.machine;
            let current = m.current();
            let reply = m.thread(current).bound_reply;
            let owes = reply.is_some_and(|reply| m.kernel().get(reply).caller.is_some());
            // Both lists begin with the endpoints' capabilities; `callable` has four for each.
            let (operation, place) =
                if owes { (Operation::ReplyReceive, endpoint) } else { (Operation::Call, 4 * endpoint) };
            let message = Message { operation, pick: 5 * place + 1, ..message.clone() };
            self.step(&Step::Message(message), keep_fast);
        }
    }

    fn message(&mut self, message: &Message, keep_fast: bool) {
        self.fill_buffer(message);
        let addresses = &self.world.addresses;
        let usual = match message.operation {
            Operation::Call | Operation::Send => &addresses.callable,
            Operation::Reply => &addresses.replies,
            _ => &addresses.receivable,
        };
        let address = pick(message.pick, usual, &addresses.all);
        let reply = pick(message.pick_reply, &addresses.replies, &addresses.all);
        let deadline = self.world.machine.host().time + message.deadline;
        let mut x = [0; 13];
        for (i, word) in (0..).zip(&mut x[2..10]) {
            *word = message.words.rotate_left(i * 7);
        }
        (x[0], x[1], x[11], x[12]) = (address, message.tag, reply, deadline);
        self.call(message.operation, keep_fast, &x);
    }

    /// Fills the IPC buffer of the running thread, if it has one. Capabilities are moved only from the slots into which
    /// they are received, so that the others stay.
    fn fill_buffer(&mut self, message: &Message) {
        let m = &mut self.world.machine;
        let current = m.current();
        if m.thread(current).ipc_buffer == 0 {
            return;
        }
        let all = &self.world.addresses.all;
        let buffer = m.buffer(current);
        for (i, word) in (0..).zip(&mut buffer.words[..MAX_WORDS]) {
            *word = message.words.rotate_left(i) ^ u64::from(i);
        }
        for i in 0..MAX_CAPS {
            let (sent, slot) = (u64::from(message.caps[i]), u64::from(message.caps[MAX_CAPS + i]));
            let received = RECEIVE + sent % RECEIVE_SLOTS;
            buffer.send_caps[i] = match sent % 8 {
                0 => received as u32 | IpcBuffer::MOVE,
                1 => received as u32,
                _ => all[sent as usize % all.len()] as u32 & !IpcBuffer::MOVE,
            };
            buffer.receive_slots[i] =
                if slot.is_multiple_of(8) { slot as u32 } else { (RECEIVE + slot % RECEIVE_SLOTS) as u32 };
        }
    }

    fn fault(&mut self, class: Class, word: u64, keep_fast: bool) {
        let report = Report { class: class as u64, address: word, instruction: word ^ 4, syndrome: word >> 32 };
        self.twin.enter(&mut self.world, keep_fast, &format!("{class:?}"), |m| twin::fault(m, class, report));
    }

    fn compute(&mut self, word: u64) {
        let m = &mut self.world.machine;
        if m.host().float().is_none() {
            float::trap(m.kernel());
        }
        let unit = m.host().float().expect("the trap switches it on");
        unit.registers[0][1] = word;
    }

    fn manage(&mut self, what: u8, whom: usize, how: u64) {
        let actor = self.world.actors[whom];
        let (thread, capability, time) = (actor.thread, actor.capability, actor.time);
        let (root, endpoints) = (self.world.objects.root, self.world.objects.endpoints);
        self.world.manage(|m| {
            let mut call = |operation, arguments: &[u64]| _ = m.call(operation, arguments);
            match what {
                0 => call(Operation::ThreadSuspend, &[capability]),
                1..=3 => call(Operation::ThreadResume, &[capability]),
                4 | 5 => endpoint::cancel(m.kernel(), thread, Error::Aborted),
                6 => call(Operation::SchedulingConfigure, &[time, how % 70, how % 70, how % 3 * 20]),
                7 => call(Operation::SchedulingReserve, &[time, 64 + how, 200 + how]),
                8 | 9 => call(Operation::SchedulingReserve, &[time, 0, 0]),
                10 => call(Operation::ThreadBind, &[capability, UNBIND]),
                11 | 12 => call(Operation::ThreadBind, &[capability, time]),
                13 | 14 => drop(account::set_suspended(m.kernel(), thread, what == 13)),
                15 => call(
                    Operation::ThreadServe,
                    &[capability, if how.is_multiple_of(2) { 0 } else { endpoints[how as usize % 3] }],
                ),
                _ => (RECEIVE..RECEIVE + RECEIVE_SLOTS).for_each(|slot| call(Operation::Delete, &[root, slot])),
            }
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::default())]
    #[test]
    fn fast_path_and_slow_path_agree(
        zero in prop::sample::select(&[Zero::Nothing, Zero::Endpoint, Zero::Notification, Zero::Reply][..]),
        steps in prop::collection::vec((steps(), any::<bool>()), 1..150),
    ) {
        let mut play = Play::new(zero);
        for (step, keep_fast) in &steps {
            play.step(step, *keep_fast);
        }
    }
}

#[test]
fn a_capability_at_address_0_can_be_used_on_either_path() {
    let cases = [
        (Zero::Endpoint, &[Operation::Call, Operation::Receive, Operation::ReplyReceive][..]),
        (Zero::Notification, &[Operation::Signal, Operation::Receive]),
    ];
    for (zero, operations) in cases {
        for operation in operations {
            let mut play = Play::new(zero);
            play.call(*operation, true, &[0]);
            let m = &mut play.world.machine;
            let highest = play.world.actors[6].thread;
            let is_ready = m.thread(highest).state == ThreadState::Ready;
            assert!(!is_ready || m.results(highest).error() != Some(Error::InvalidCapability), "{operation:?}");
        }
    }
}

#[test]
fn a_caller_continues_in_place_of_its_server_and_before_its_equals() {
    for is_fast in [false, true] {
        let mut m = tench_arch_host::Machine::new();
        let (server, equal, caller) = (m.make_thread(255), m.make_thread(255), m.first);
        let endpoint = m.make(tench_abi::Kind::Endpoint, 0);
        m.run(server);
        m.call(Operation::Receive, &[endpoint, 0]);
        m.run(caller);
        m.fast = is_fast;
        let priorities = [caller, equal].map(|thread| m.thread(thread).priority);
        assert_eq!(priorities, [255, 255]);
        m.call(Operation::Call, &[endpoint, 0]);
        assert_eq!(m.current(), server, "fast: {is_fast}");
        m.call(Operation::ReplyReceive, &[endpoint, 0]);
        assert_eq!(m.current(), caller, "fast: {is_fast}");
        m.check();
    }
}
