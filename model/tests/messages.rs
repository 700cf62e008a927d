//! Messages, signals, replies, deadlines and donated scheduling contexts: the kernel against the model, step by step.
//!
//! Five threads share a CSpace; which of them runs is the kernel's choice among those that the model allows. A sixth,
//! the manager, has the highest priority; an interrupt wakes it whenever something is to be done to the others.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tench_abi::layout::{UNBIND, slot};
use tench_abi::message::{IpcBuffer, MAX_CAPS, MAX_WORDS, REGISTER_WORDS};
use tench_abi::object::{Rights, line_flags};
use tench_abi::{Kind, Operation, Tag};
use tench_arch_host::Machine;
use tench_arch_host::machine::at;
use tench_kernel::notification::Notification;
use tench_kernel::object::Ref;
use tench_kernel::thread::{Thread as KernelThread, ThreadState};
use tench_model::messages::{Capability, Doing, Line, Object, Reply, Thread, World};
use tench_model::source::{Bytes, Source};

/// The line that wakes the manager.
const LINE: u32 = 40;
/// Doorbell lines of the core: number, the notification that each signals, and whether taking the signal acknowledges
/// it.
const DOORBELL_LINES: [(u32, usize, bool); 5] = [(2, 0, true), (3, 1, true), (4, 2, true), (5, 0, false), (6, 0, true)];
/// Priorities of the threads. The last has no scheduling context of its own, the one before it no IPC buffer.
const PRIORITIES: [u64; 5] = [10, 20, 20, 30, 30];
const WITHOUT_IPC_BUFFER: usize = 3;
const PASSIVE: usize = 4;
/// Granularity in ticks in which time passes, greater than the number of threads.
const SPACING: u64 = 8;
/// Number of servers: the first threads serve the first endpoints.
const SERVERS: usize = 2;

/// Kernel and model.
struct Pair {
    machine: Machine,
    world: World,
    /// The kernel's threads, in the model's order, and the addresses of their capabilities.
    threads: Vec<(Ref<KernelThread>, u64)>,
    /// Addresses of the original capabilities, by the object's number.
    endpoints: Vec<u64>,
    notifications: Vec<u64>,
    replies: Vec<u64>,
    manager: (u64, u64),
    /// Addresses of the capabilities to the doorbell lines.
    lines: Vec<u64>,
    /// Addresses to choose from.
    known: Vec<u64>,
    log: Vec<String>,
}

impl Pair {
    fn new(fast: bool, depths: [u8; SERVERS]) -> Pair {
        let mut machine = Machine::new();
        machine.fast = fast;
        let (notification, line) = (machine.make(Kind::Notification, 0), machine.take_free());
        machine.call(Operation::InterruptGet, &[at(slot::INTERRUPT_CONTROL), LINE.into(), 0, line]).ok();
        machine.call(Operation::InterruptBind, &[line, notification]).ok();
        let mut pair = Pair {
            machine,
            world: World { now: 1, priorities: PRIORITIES.to_vec(), ..World::default() },
            threads: Vec::new(),
            endpoints: Vec::new(),
            notifications: Vec::new(),
            replies: Vec::new(),
            manager: (notification, line),
            lines: Vec::new(),
            known: Vec::new(),
            log: Vec::new(),
        };
        pair.make_objects();
        pair.listen();
        for i in 0..PRIORITIES.len() {
            pair.make_thread(i, depths.get(i).copied());
        }
        pair.mint_capabilities();
        pair.start_passive();
        pair
    }

    /// Makes endpoints, notifications and reply objects that are bound to no thread.
    fn make_objects(&mut self) {
        for i in 0..3 {
            let address = self.machine.make(Kind::Endpoint, 0);
            self.endpoints.push(address);
            self.world.endpoints.push(Vec::new());
            self.learn(address, Object::Endpoint(i), Rights::all(), 0);
        }
        for i in 0..3 {
            let address = self.machine.make(Kind::Notification, 0);
            self.notifications.push(address);
            self.world.notifications.push((0, Vec::new()));
            self.learn(address, Object::Notification(i), Rights::all(), 0);
        }
        for i in 0..2 {
            let address = self.machine.make(Kind::Reply, 0);
            self.replies.push(address);
            self.world.replies.push(Reply::default());
            self.learn(address, Object::Reply(i), Rights::all(), 0);
        }
    }

    /// Makes doorbell lines, each with a bit of its own.
    fn listen(&mut self) {
        let m = &mut self.machine;
        for (i, (number, notification, automatic)) in DOORBELL_LINES.into_iter().enumerate() {
            let (line, badged, bits) = (m.take_free(), m.take_free(), 0x1_0000 << i);
            let flags = line_flags::EDGE | if automatic { line_flags::AUTOMATIC } else { 0 };
            m.call(Operation::InterruptGet, &[at(slot::INTERRUPT_CONTROL), number.into(), flags, line]).ok();
            let rights = Rights::WRITE.bits().into();
            m.call(Operation::Mint, &[0, self.notifications[notification], 0, badged, rights, bits]).ok();
            m.call(Operation::InterruptBind, &[line, badged]).ok();
            m.call(Operation::Delete, &[0, badged]).ok();
            self.lines.push(line);
            let signals = Some((notification, bits));
            self.world.lines.push(Line { signals, automatic, is_pending: false, is_let_in: true });
        }
    }

    /// Adds a kernel capability to the model.
    fn learn(&mut self, address: u64, object: Object, rights: Rights, badge: u64) {
        self.world.cspace.insert(address, Capability { object, rights, badge });
        self.known.push(address);
    }

    fn make_thread(&mut self, i: usize, depth: Option<u8>) {
        let m = &mut self.machine;
        let first = m.free;
        let thread = m.make_thread(PRIORITIES[i]);
        let (time, reply) = (first + 1, first + 2);
        if i == WITHOUT_IPC_BUFFER {
            m.call(Operation::ThreadSuspend, &[first]).ok();
            m.call(Operation::ThreadConfigure, &[first, at(slot::CSPACE), at(slot::VSPACE), 0, 0]).ok();
            m.call(Operation::ThreadResume, &[first]).ok();
        }
        let bound_notification = (i == 2).then_some(1);
        if let Some(notification) = bound_notification {
            m.call(Operation::ThreadBind, &[first, 0, 0, self.notifications[notification]]).ok();
        }
        self.threads.push((thread, first));
        let number = self.world.replies.len();
        self.world.replies.push(Reply::default());
        self.replies.push(reply);
        self.learn(reply, Object::Reply(number), Rights::all(), 0);
        self.world.threads.push(Thread {
            doing: Doing::Ready,
            x: [0; 13],
            words: vec![0; MAX_WORDS],
            send_caps: [(0, false); MAX_CAPS],
            receive_slots: [0; MAX_CAPS],
            has_ipc_buffer: i != WITHOUT_IPC_BUFFER,
            own: Some(i),
            cap: None,
            deadline: None,
            alarm: None,
            is_alarmed: false,
            is_helpless: false,
            bound_reply: Some(number),
            other_reply: None,
            is_deferred: false,
            bound_notification,
            serves: depth.map(|_| i),
            depth: depth.unwrap_or(0),
        });
        if let Some(depth) = depth {
            self.machine.call(Operation::ThreadServe, &[first, self.endpoints[i], depth.into()]).ok();
        }
        assert_eq!(self.machine.cap(time).kind, Kind::SchedulingContext);
    }

    /// Makes capabilities with badges and fewer rights, and reserves some empty slots.
    fn mint_capabilities(&mut self) {
        let all = Rights::all();
        let variants = [(all, 7), (all, 9), (Rights::WRITE, 0), (Rights::READ, 0), (Rights::WRITE | Rights::CALL, 11)];
        for i in 0..2 {
            for (rights, badge) in variants {
                for (object, original) in [
                    (Object::Endpoint(i), self.endpoints[i]),
                    (Object::Notification(i), self.notifications[i]),
                    (Object::Reply(i), self.replies[i]),
                ] {
                    let badge = if matches!(object, Object::Reply(_)) { 0 } else { badge };
                    let address = self.machine.take_free();
                    let arguments = [0, original, 0, address, rights.bits().into(), badge];
                    self.machine.call(Operation::Mint, &arguments).ok();
                    self.learn(address, object, rights, badge);
                }
            }
        }
        let end = self.machine.free + 16;
        self.known.extend(self.machine.free..end);
        self.world.slots = self.endpoints[0]..end;
    }

    /// Makes the passive thread receive once on a context of its own, which is then unbound.
    fn start_passive(&mut self) {
        let (thread, address) = self.threads[PASSIVE];
        let notification = self.manager.0;
        self.machine.call_as(thread, Operation::Receive, &[self.endpoints[0]]);
        let first = self.machine.first;
        self.machine.run(first);
        self.machine.call(Operation::ThreadBind, &[address, UNBIND, 0, 0]).ok();
        self.machine.call(Operation::Receive, &[notification]);
        self.world.threads[PASSIVE].x[0] = self.endpoints[0];
        self.world.call(PASSIVE, Operation::Receive);
        self.world.threads[PASSIVE].own = None;
        self.world.pass_time(0);
    }

    /// Returns the number of the running thread.
    fn current(&mut self) -> Option<usize> {
        let current = self.machine.current();
        self.threads.iter().position(|(thread, _)| *thread == current)
    }

    /// Makes one step in both worlds.
    fn step(&mut self, source: &mut Bytes<'_>) {
        match source.below(16) {
            0 => self.pass_time(source.below(60) * SPACING),
            1 => self.manage(source),
            2 | 3 => self.notify(source),
            _ => match self.current() {
                Some(me) => self.call(me, source),
                None if source.one_in(2) => self.pass_time(source.below(200) * SPACING),
                None => self.manage(source),
            },
        }
        // A deadline that was due already when its wait began is noticed with the next interrupt, which is due at once.
        self.machine.pass_time(0);
        self.world.pass_time(0);
        self.world.interrupt();
    }

    fn pass_time(&mut self, ticks: u64) {
        self.log.push(format!("{ticks} ticks pass"));
        self.machine.pass_time(ticks);
        self.world.pass_time(ticks);
    }

    /// Notifies a doorbell line of the core.
    fn notify(&mut self, source: &mut Bytes<'_>) {
        let line = source.below(DOORBELL_LINES.len() as u64) as usize;
        self.log.push(format!("line {} is notified", DOORBELL_LINES[line].0));
        self.machine.raise(DOORBELL_LINES[line].0);
        self.world.notify(line);
    }

    /// Wakes the manager, which does something to the others, and waits again.
    fn manage(&mut self, source: &mut Bytes<'_>) {
        let (notification, line) = self.manager;
        self.machine.raise(LINE);
        assert!(self.machine.current() == self.machine.first, "the manager was not woken");
        let thread = source.below(PRIORITIES.len() as u64) as usize;
        let address = self.threads[thread].1;
        match source.below(16) {
            0..3 => {
                self.log.push(format!("thread {thread} is suspended"));
                self.machine.call(Operation::ThreadSuspend, &[address]).ok();
                self.world.suspend(thread);
            }
            3..11 => {
                self.log.push(format!("thread {thread} is resumed"));
                self.machine.call(Operation::ThreadResume, &[address]).ok();
                self.world.resume(thread);
            }
            11 => self.destroy(source),
            _ => {
                let line = source.below(DOORBELL_LINES.len() as u64) as usize;
                self.log.push(format!("line {} is acknowledged", DOORBELL_LINES[line].0));
                self.machine.call(Operation::InterruptAcknowledge, &[self.lines[line]]).ok();
                self.world.acknowledge(line);
            }
        }
        self.machine.call(Operation::InterruptAcknowledge, &[line]).ok();
        self.machine.call(Operation::Receive, &[notification]);
    }

    /// Makes the manager delete an object.
    fn destroy(&mut self, source: &mut Bytes<'_>) {
        let (object, address) = match source.below(3) {
            0 => (Object::Endpoint(2), self.endpoints[2]),
            1 => (Object::Notification(2), self.notifications[2]),
            _ => {
                let reply = 1 + source.below(2) as usize;
                (Object::Reply(reply), self.replies[reply])
            }
        };
        // The original capability may have been moved in a message; then it stays where it is.
        if self.world.cspace.get(&address).is_none_or(|capability| capability.object != object) {
            return;
        }
        self.log.push(format!("{object:?} is deleted"));
        self.machine.call(Operation::Revoke, &[0, address]).ok();
        self.machine.call(Operation::Delete, &[0, address]).ok();
        self.world.destroy(object);
    }

    /// Makes a random message operation of the running thread.
    fn call(&mut self, me: usize, source: &mut Bytes<'_>) {
        use Operation as Op;
        let operation = source.pick(&[
            Op::Call,
            Op::Call,
            Op::Call,
            Op::ReplyReceive,
            Op::ReplyReceive,
            Op::ReplyReceive,
            Op::Receive,
            Op::Receive,
            Op::Send,
            Op::TrySend,
            Op::TryReceive,
            Op::Reply,
            Op::Signal,
            Op::Yield,
        ]);
        let mut x: [u64; 13] = std::array::from_fn(|i| 1000 * me as u64 + i as u64 + 16 * self.log.len() as u64);
        x[0] = self.target(operation, source);
        x[1] = tag(source);
        x[11] = if source.one_in(4) { source.pick(&self.known) } else { source.pick(&self.replies) };
        // No two threads' waits end at the same time: which ends first can make a difference to what others inherit.
        x[12] = self.world.now + source.below(40) * SPACING + me as u64;
        self.fill_ipc_buffer(me, source);
        self.log.push(format!("thread {me}: {operation} {x:?}"));
        let t = &mut self.world.threads[me];
        t.x = x;
        self.world.call(me, operation);
        self.machine.system_call(operation as u64, &x);
    }

    /// Returns the target of an operation: mostly one of the two endpoints that are not deleted, so that partners meet.
    fn target(&self, operation: Operation, source: &mut Bytes<'_>) -> u64 {
        match operation {
            Operation::Reply if source.one_in(2) => 0,
            Operation::Signal => {
                let signals = |address: &&u64| matches!(self.world.cspace.get(address), Some(c) if matches!(c.object, Object::Notification(_)));
                let able: Vec<u64> = self.known.iter().filter(signals).copied().collect();
                if able.is_empty() { 0 } else { source.pick(&able) }
            }
            _ if source.one_in(3) => source.pick(&self.known),
            _ => self.endpoints[source.below(2) as usize],
        }
    }

    /// Fills the IPC buffer of a thread in both worlds.
    fn fill_ipc_buffer(&mut self, me: usize, source: &mut Bytes<'_>) {
        let t = &mut self.world.threads[me];
        if !t.has_ipc_buffer {
            return;
        }
        let salt = source.below(256) << 8 | (me as u64) << 16;
        for (i, word) in t.words.iter_mut().enumerate() {
            *word = salt + i as u64;
        }
        for i in 0..MAX_CAPS {
            t.send_caps[i] = (source.pick(&self.known), source.one_in(3));
            t.receive_slots[i] = if source.one_in(8) { 0 } else { source.pick(&self.known[self.known.len() - 20..]) };
        }
        let buffer = self.machine.buffer(self.threads[me].0);
        buffer.words.copy_from_slice(&t.words);
        for i in 0..MAX_CAPS {
            let (address, moved) = t.send_caps[i];
            buffer.send_caps[i] = address as u32 | if moved { IpcBuffer::MOVE } else { 0 };
            buffer.receive_slots[i] = t.receive_slots[i] as u32;
        }
    }

    /// Compares all visible state.
    fn compare(&mut self) {
        let candidates = self.world.candidates();
        match self.current() {
            Some(current) => assert!(candidates.contains(&current), "{current} runs instead of {candidates:?}"),
            None => assert!(self.machine.idle() && candidates.is_empty(), "nobody runs instead of {candidates:?}"),
        }
        for i in 0..self.threads.len() {
            self.compare_thread(i);
        }
        for (i, address) in self.notifications.clone().into_iter().enumerate() {
            let known = self.world.cspace.get(&address).is_some_and(|c| c.object == Object::Notification(i));
            if known {
                let object = self.machine.cap(address).object;
                // SAFETY: a notification capability names a live notification.
                let notification = unsafe { Ref::<Notification>::at(object) }.expect("not null");
                let word = self.machine.kernel().get(notification).word;
                assert_eq!(word, self.world.notifications[i].0, "signals of notification {i}");
            }
        }
        for (expected, (number, ..)) in self.world.lines.iter().zip(DOORBELL_LINES) {
            let host = self.machine.host();
            let (is_let_in, is_pending) = (host.enabled.contains(&number), host.pending.contains(&number));
            assert_eq!(is_let_in, expected.is_let_in, "whether line {number} is let in");
            assert_eq!(is_pending, expected.is_pending, "whether line {number} was notified and is waiting");
        }
        self.compare_cspace();
        self.machine.check();
    }

    fn compare_thread(&mut self, i: usize) {
        let thread = self.threads[i].0;
        let state = self.machine.thread(thread).state;
        let expected = &self.world.threads[i];
        let agree = match expected.doing {
            Doing::Ready => state == ThreadState::Ready,
            Doing::Suspended => state == ThreadState::Suspended,
            Doing::Sending { .. } => matches!(state, ThreadState::Sending(_)),
            Doing::Receiving { .. } => matches!(state, ThreadState::Receiving(_)),
            Doing::AwaitingReply { .. } => matches!(state, ThreadState::AwaitingReply(_)),
            Doing::Waiting { .. } => matches!(state, ThreadState::Waiting(_)),
        };
        assert!(agree, "thread {i} is {state:?} instead of {:?}", expected.doing);
        let priority = self.machine.thread(thread).priority;
        let expected = self.world.priority(i).map_or(-1, |priority| priority as i16);
        assert_eq!(priority, expected, "priority of thread {i}");
        let expected = &self.world.threads[i];
        if matches!(expected.doing, Doing::Ready | Doing::Suspended) {
            let result = self.machine.results(thread);
            assert_eq!(result.x, self.world.threads[i].x[..11], "registers of thread {i}");
        }
        if self.world.threads[i].has_ipc_buffer {
            let words = &self.machine.buffer(thread).words[REGISTER_WORDS..];
            assert_eq!(words, &self.world.threads[i].words[REGISTER_WORDS..], "IPC buffer of thread {i}");
        }
    }

    fn compare_cspace(&mut self) {
        for address in self.world.slots.clone() {
            let expected = self.world.cspace.get(&address);
            let k = self.machine.kernel();
            let found = tench_kernel::cspace::lookup_of(k, self.threads[0].0, address).ok();
            let found = found.map(|slot| k.slot(slot).cap);
            let found = found.filter(|c| matches!(c.kind, Kind::Endpoint | Kind::Notification | Kind::Reply));
            let found = found.map(|cap| (cap.kind, cap.rights, cap.badge_if_any()));
            let expected = expected.map(|capability| {
                let kind = match capability.object {
                    Object::Endpoint(_) => Kind::Endpoint,
                    Object::Notification(_) => Kind::Notification,
                    Object::Reply(_) => Kind::Reply,
                };
                (kind, capability.rights.bits(), capability.badge)
            });
            assert_eq!(found, expected, "capability at {address}");
        }
    }
}

/// Returns a tag: mostly a short message without capabilities, at times with a deadline or a named reply object.
fn tag(source: &mut Bytes<'_>) -> u64 {
    let length = match source.below(8) {
        0 => source.below(70),
        1 => 9 + source.below(10),
        _ => source.below(9),
    };
    let caps = if source.one_in(4) { source.below(6) } else { 0 };
    let mut flags = 0;
    for (flag, n) in [(Tag::DEADLINE, 3), (Tag::REPLY, 4), (Tag::ALARM, 2), (Tag::NOTIFICATION, 30)] {
        if source.one_in(n) {
            flags |= flag;
        }
    }
    Tag::new(source.below(200), length as usize).with_caps(caps as usize).with(flags).0
}

/// The choices of one step. The log shows the step that they lead to, so a failure does not print them.
#[derive(Clone)]
struct Step([u8; 40]);

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("step")
    }
}

/// Plays steps on both sides, and compares after each.
fn play(fast: bool, depths: [u8; SERVERS], steps: &[Step]) {
    let mut pair = Pair::new(fast, depths);
    pair.compare();
    for step in steps {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pair.step(&mut Bytes(&step.0));
            pair.compare();
        }));
        if let Err(payload) = result {
            eprintln!("fast: {fast}; the steps:\n  {}", pair.log.join("\n  "));
            std::mem::forget(pair);
            std::panic::resume_unwind(payload);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_kernel_does_what_the_model_says(
        fast: bool,
        depths in [0..3u8, 0..3u8],
        steps in prop::collection::vec(any::<[u8; 40]>().prop_map(Step), 1..120),
    ) {
        play(fast, depths, &steps);
    }
}

/// Plays many sequences. Cases that need three threads, one of which loses what it works with, turn up once in some ten
/// thousand sequences.
#[test]
#[ignore = "takes long: ./tench test --long"]
fn kernel_and_model_agree_over_long_sequences() {
    let config = ProptestConfig { cases: 300_000, failure_persistence: None, ..ProptestConfig::default() };
    let steps = prop::collection::vec(any::<[u8; 40]>().prop_map(Step), 1..120);
    let played = TestRunner::new(config).run(&(any::<bool>(), [0..3u8, 0..3u8], steps), |(fast, depths, steps)| {
        play(fast, depths, &steps);
        Ok(())
    });
    played.unwrap_or_else(|found| panic!("{found}"));
}
