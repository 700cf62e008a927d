//! Random operations, compared with what the Linux under these tests does with semaphores, queues and segments of its
//! own. A script makes the calls there. `waits.rs` tests waits, and so do programs on Linux (`tests/linux`).

mod linux;

use linux::Linux;
use tench_linux_calls::ipc;
use tench_linux_sysv::{
    By, Change, Done, Errno, Filter, Message, Operation, Owner, Queues, Received, Segments, Semaphores, User, Wanted,
};
use tench_random::Random;

/// Numbers of calls on this machine.
mod call {
    pub const SHMGET: u32 = 29;
    pub const SHMAT: u32 = 30;
    pub const SHMCTL: u32 = 31;
    pub const SEMGET: u32 = 64;
    pub const SEMOP: u32 = 65;
    pub const SEMCTL: u32 = 66;
    pub const SHMDT: u32 = 67;
    pub const MSGGET: u32 = 68;
    pub const MSGSND: u32 = 69;
    pub const MSGRCV: u32 = 70;
    pub const MSGCTL: u32 = 71;
}

const STEPS: usize = 20_000;

/// The process there.
const OWN: u32 = 7;

fn by(process: u32) -> By<'static> {
    By { user: User::SUPER_USER, process, thread: process, now: 1 }
}

fn raw<T: Into<i64>>(result: Result<T, Errno>) -> i64 {
    result.map_or_else(|error| -i64::from(error.into_raw()), Into::into)
}

fn nothing(result: Result<(), Errno>) -> i64 {
    raw(result.map(|()| 0))
}

fn room(_: usize) -> Result<(), Errno> {
    Ok(())
}

/// Objects that are compared: those here, with the identifiers here and there, and what was done.
struct Both<T> {
    here: T,
    there: Linux,
    ids: Vec<(i32, i64)>,
    random: Random,
    log: Vec<String>,
    base: i32,
}

impl<T: Default> Both<T> {
    fn new(kind: i32) -> Both<T> {
        let base = 0x5400_0000 | (std::process::id() as i32 & 0xffff) << 8 | kind << 4;
        let (here, there, random) = (T::default(), Linux::new(), Random::new(kind as u64));
        Both { here, there, ids: Vec::new(), random, log: Vec::new(), base }
    }

    fn compare(&mut self, what: String, here: i64, there: i64) {
        self.log.push(format!("{what}: {here} {there}"));
        let first = self.log.len().saturating_sub(25);
        assert_eq!(here, there, "not as Linux does it:\n{}", self.log[first..].join("\n"));
    }

    /// Returns a key, of which some find nothing.
    fn key(&mut self) -> i32 {
        if self.random.once_in(4) { ipc::PRIVATE } else { self.base + self.random.below(3) as i32 }
    }

    fn flags(&mut self) -> u32 {
        [0, ipc::CREAT, ipc::CREAT, ipc::CREAT | ipc::EXCL][self.random.index(4)] | 0o600
    }

    /// Returns the identifiers of something, which seldom is not there.
    fn id(&mut self) -> (i32, i64) {
        let count = self.ids.len();
        if count == 0 || self.random.once_in(30) { (-1, -1) } else { self.ids[self.random.index(count)] }
    }

    /// Compares what was found or made, and adds it.
    fn add(&mut self, what: String, here: Result<i32, Errno>, there: i64) {
        match here {
            Ok(here) if there >= 0 => match self.ids.iter().find(|(id, _)| *id == here) {
                Some((_, known)) => self.compare(what, *known, there),
                None => {
                    let is_known = self.ids.iter().any(|(_, id)| *id == there);
                    self.compare(what, 0, is_known.into());
                    self.ids.push((here, there));
                }
            },
            here => self.compare(what, raw(here), there),
        }
    }

    fn forget(&mut self, id: i32) {
        self.ids.retain(|(known, _)| *known != id);
    }
}

fn text_of(operations: &[Operation]) -> String {
    let bytes = operations
        .iter()
        .flat_map(|one| [one.number.to_le_bytes(), one.change.to_le_bytes(), one.flags.to_le_bytes()].concat());
    linux::buffer(&bytes.collect::<Vec<u8>>())
}

impl Both<Semaphores> {
    fn get(&mut self) {
        let (key, count, flags) = (self.key(), self.random.below(5), self.flags());
        let count = if self.random.once_in(20) { 32_001 } else { count };
        let there = self.there.call(call::SEMGET, &format!("{key} {count} {flags}")).0;
        let here = self.here.get(&by(OWN), key, count, flags, room);
        self.add(format!("semget {key:x} {count} {flags:o}"), here, there);
    }

    fn operations(&mut self) -> Vec<Operation> {
        let flags = if self.random.once_in(2) { ipc::sem::UNDO } else { 0 };
        let count = 1 + self.random.index(3);
        let random = &mut self.random;
        let operations = (0..count).map(|_| {
            let change = match random.below(12) {
                0 => [32_767, -32_768, 32_766, -32_767][random.index(4)],
                below => below as i16 - 6,
            };
            let number = if random.once_in(40) { 9 } else { random.below(4) as u16 };
            Operation { number, change, flags: (ipc::NOWAIT | flags) as u16 }
        });
        operations.collect()
    }

    fn operate(&mut self) {
        let ((here, there), operations) = (self.id(), self.operations());
        let list = format!("{there} {} {}", text_of(&operations), operations.len());
        let there = self.there.call(call::SEMOP, &list).0;
        let here = self.here.operate(&by(OWN), here, &operations, room).map(|done| assert_eq!(done, Done::Now));
        self.compare(format!("semop {operations:?}"), nothing(here), there);
    }

    /// Lets another process do something, and end.
    fn operate_and_end(&mut self) {
        let all: Vec<_> = (0..2).map(|_| (self.id(), self.operations())).collect();
        let calls = all.iter().map(|((_, there), operations)| {
            format!("{} {there} {} {}", call::SEMOP, text_of(operations), operations.len())
        });
        let (child, results) = self.there.child(&calls.collect::<Vec<_>>());
        for (((here, _), operations), there) in all.iter().zip(results) {
            let done = self.here.operate(&by(child), *here, operations, room);
            let here = done.map(|done| assert_eq!(done, Done::Now));
            self.compare(format!("child's semop {operations:?}"), nothing(here), there.0);
        }
        self.here.end_process(&by(child));
        self.log.push("end of a child".into());
    }

    fn set(&mut self) {
        let ((here, there), number) = (self.id(), self.random.below(5) as i32 - 1);
        let value = if self.random.once_in(6) { [-1, 32_768, 32_767][self.random.index(3)] } else { 5 };
        let there = self.there.call(call::SEMCTL, &format!("{there} {number} {} {value}", ipc::command::SETVAL)).0;
        let here = self.here.set_value(&by(OWN), here, number, value);
        self.compare(format!("SETVAL {number} {value}"), nothing(here), there);
    }

    fn set_all(&mut self) {
        let (here, there) = self.id();
        let mut values = [1u16, 2, 3, 4];
        if self.random.once_in(6) {
            values[0] = 32_768;
        }
        let bytes = values.map(u16::to_le_bytes).concat();
        let list = format!("{there} 0 {} {}", ipc::command::SETALL, linux::buffer(&bytes));
        let there = self.there.call(call::SEMCTL, &list).0;
        let here = self
            .here
            .settable(&by(OWN), here)
            .and_then(|count| self.here.set_values(&by(OWN), here, &bytes[..2 * count]));
        self.compare("SETALL".into(), nothing(here), there);
    }

    fn remove(&mut self) {
        let (id, there) = self.id();
        let there = self.there.call(call::SEMCTL, &format!("{there} 0 {} 0", ipc::command::REMOVE)).0;
        let here = self.here.remove(&by(OWN), id);
        self.compare("remove".into(), nothing(here), there);
        self.forget(id);
    }

    /// Compares values, and who has changed them.
    fn compare_all(&mut self) {
        let own = self.there.own();
        for (here, there) in self.ids.clone() {
            let list = format!("{there} 0 {} {}", ipc::command::GETALL, linux::buffer(&[0; 8]));
            let (_, buffers) = self.there.call(call::SEMCTL, &list);
            let values = self.here.values(&by(OWN), here).unwrap();
            assert_eq!(values, buffers[0][..values.len()], "{}", self.log.last().unwrap());
            for number in 0..values.len() as i32 / 2 {
                let last = self.there.call(call::SEMCTL, &format!("{there} {number} {}", ipc::command::GETPID)).0;
                let here = raw(self.here.last(&by(OWN), here, number).map(|last| last.cast_signed()));
                let here = if here == i64::from(OWN) { own } else { here };
                self.compare(format!("GETPID {number}"), here, last);
            }
        }
        self.here.check().unwrap();
    }
}

#[test]
fn semaphores_do_what_those_of_linux_do() {
    let mut both = Both::<Semaphores>::new(1);
    for step in 0..STEPS {
        match both.random.below(40) {
            0..3 if both.ids.len() < 5 => both.get(),
            3 => both.remove(),
            4..6 => both.set(),
            6 => both.set_all(),
            7 if step % 2 == 0 => both.operate_and_end(),
            _ => both.operate(),
        }
        if step % 8 == 0 {
            both.compare_all();
        }
    }
    while !both.ids.is_empty() {
        both.remove();
    }
    assert_eq!((both.here.count(), both.here.used()), (0, 0));
    both.here.check().unwrap();
}

impl Both<Queues> {
    fn get(&mut self) {
        let (key, flags) = (self.key(), self.flags());
        let there = self.there.call(call::MSGGET, &format!("{key} {flags}")).0;
        let here = self.here.get(&by(OWN), key, flags);
        self.add(format!("msgget {key:x} {flags:o}"), here, there);
    }

    fn send(&mut self) {
        let ((here, there), kind) = (self.id(), 1 + self.random.below(5) as i64);
        let bytes: Vec<u8> = (0..self.random.below(40)).map(|_| self.random.below(256) as u8).collect();
        let message = [&kind.to_le_bytes()[..], &bytes].concat();
        let list = format!("{there} {} {} {}", linux::buffer(&message), bytes.len(), ipc::NOWAIT);
        let there = self.there.call(call::MSGSND, &list).0;
        let what = format!("msgsnd {kind} {}", bytes.len());
        let sent = self.here.send(&by(OWN), here, Message { kind, bytes: bytes.into() }, false);
        let here = nothing(sent.map(|sent| assert_eq!(sent, Received::Sent)));
        self.compare(what, here, there);
    }

    fn receive(&mut self) {
        let ((here, there), kind, bytes) = (self.id(), self.random.below(13) as i64 - 6, self.random.below(50));
        let flags = [0, 0, ipc::msg::EXCEPT, ipc::msg::NOERROR, ipc::msg::COPY, ipc::msg::COPY | ipc::msg::NOERROR];
        let flags = flags[self.random.index(6)] | ipc::NOWAIT;
        let kind = if self.random.once_in(30) { i64::MIN } else { kind };
        let list = format!("{there} {} {bytes} {kind} {flags}", linux::buffer(&[0; 80]));
        let (there, buffers) = self.there.call(call::MSGRCV, &list);
        let what = format!("msgrcv {kind} {bytes} {flags:o}");
        let received = if flags & ipc::msg::COPY != 0 {
            self.here.copy(&by(OWN), here, kind, bytes, flags & ipc::msg::NOERROR != 0).cloned().map(Received::Message)
        } else {
            let filter = Filter::new(kind, flags & ipc::msg::EXCEPT != 0);
            let cuts = flags & ipc::msg::NOERROR != 0;
            self.here.receive(&by(OWN), here, Wanted { filter, bytes, cuts, waits: false })
        };
        let received = match received {
            Ok(Received::Message(message)) => Ok(message),
            Ok(other) => panic!("{what}: {other:?}"),
            Err(error) => Err(error),
        };
        let length = |message: &Message| message.bytes.len().min(bytes as usize);
        let here = raw(received.as_ref().map(|message| length(message) as i64).map_err(|error| *error));
        self.compare(what, here, there);
        if let Ok(message) = received {
            let expected = [&message.kind.to_le_bytes()[..], &message.bytes[..length(&message)]].concat();
            assert_eq!(expected, buffers[0][..expected.len()], "{}", self.log.last().unwrap());
        }
    }

    /// Sets how many bytes messages may have.
    fn set(&mut self) {
        let ((here, there), limit) = (self.id(), self.random.below(200));
        let (user, mode) = (if self.random.once_in(8) { u32::MAX } else { 0 }, 0o600u32);
        let mut record = [0; 120];
        record[4..8].copy_from_slice(&user.to_le_bytes());
        record[20..24].copy_from_slice(&mode.to_le_bytes());
        record[88..96].copy_from_slice(&limit.to_le_bytes());
        let list = format!("{there} {} {}", ipc::command::SET, linux::buffer(&record));
        let there = self.there.call(call::MSGCTL, &list).0;
        let here = self.here.give(&by(OWN), here, &Owner { user, group: 0, mode }, limit);
        self.compare(format!("set {user} {limit}"), nothing(here), there);
    }

    fn remove(&mut self) {
        let (id, there) = self.id();
        let there = self.there.call(call::MSGCTL, &format!("{there} {} 0", ipc::command::REMOVE)).0;
        let here = self.here.remove(&by(OWN), id);
        self.compare("remove".into(), nothing(here), there);
        self.forget(id);
    }

    fn compare_all(&mut self) {
        for (here, there) in self.ids.clone() {
            let list = format!("{there} {} {}", ipc::command::STAT, linux::buffer(&[0; 120]));
            let (_, buffers) = self.there.call(call::MSGCTL, &list);
            let queue = &self.here.look(&by(OWN), here, tench_linux_sysv::Found::ById).unwrap().0.value;
            let word = |offset| ipc_word(&buffers[0], offset);
            let here = [queue.bytes, queue.count(), queue.limit];
            assert_eq!(here, [72, 80, 88].map(word), "{}", self.log.last().unwrap());
        }
        self.here.check().unwrap();
    }
}

fn ipc_word(record: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(record[offset..offset + 8].try_into().unwrap())
}

#[test]
fn queues_do_what_those_of_linux_do() {
    let mut both = Both::<Queues>::new(2);
    for step in 0..STEPS {
        match both.random.below(40) {
            0..3 if both.ids.len() < 4 => both.get(),
            3 => both.remove(),
            4..6 => both.set(),
            6..23 => both.send(),
            _ => both.receive(),
        }
        if step % 8 == 0 {
            both.compare_all();
        }
    }
    while !both.ids.is_empty() {
        both.remove();
    }
    assert_eq!(both.here.count(), 0);
    both.here.check().unwrap();
}

/// Segments here, with their attachments there, by the number of their contents.
#[derive(Default)]
struct Attached {
    segments: Segments<usize>,
    made: usize,
    attached: Vec<(usize, i64)>,
}

impl Both<Attached> {
    fn get(&mut self) {
        let (key, flags) = (self.key(), self.flags());
        let size = [0, 1, 4096, 4097, 10_000, u64::MAX, 1 << 63][self.random.index(7)];
        let there = self.there.call(call::SHMGET, &format!("{key} {} {flags}", size.cast_signed())).0;
        let Attached { segments, made, .. } = &mut self.here;
        let here = segments.get(&by(OWN), key, size, flags, || {
            *made += 1;
            Ok(*made)
        });
        self.add(format!("shmget {key:x} {size} {flags:o}"), here, there);
    }

    /// Tells segments of a change, and forgets the identifier of one that has ended.
    fn settle(&mut self, of: usize, was_attached: bool) {
        let attachments = self.here.attached.iter().filter(|(content, _)| *content == of).count() as u64;
        let change = Change { attachments, was_attached, was_detached: !was_attached };
        let ended = self.here.segments.settle(&by(OWN), |content| (*content == of).then_some(change));
        self.log.push(format!("ended: {ended:?}"));
        let segments = &self.here.segments;
        self.ids.retain(|(id, _)| segments.iter().any(|entry| entry.id == *id));
    }

    fn attach(&mut self) {
        let (here, there) = self.id();
        let there = self.there.call(call::SHMAT, &format!("{there} 0 0")).0;
        let here = self.here.segments.attach(&by(OWN), here, 0o666).map(|segment| segment.content);
        let there_result = there.min(0);
        self.compare("shmat".into(), nothing(here.map(|_| ())), there_result);
        if let Ok(content) = here {
            self.here.attached.push((content, there));
            self.settle(content, true);
        }
    }

    fn detach(&mut self) {
        if self.here.attached.is_empty() {
            return;
        }
        let index = self.random.index(self.here.attached.len());
        let (content, address) = self.here.attached.swap_remove(index);
        let there = self.there.call(call::SHMDT, &format!("{address}")).0;
        self.compare("shmdt".into(), 0, there);
        self.settle(content, false);
    }

    fn remove(&mut self) {
        let (id, there) = self.id();
        let there = self.there.call(call::SHMCTL, &format!("{there} {} 0", ipc::command::REMOVE)).0;
        let here = self.here.segments.remove(&by(OWN), id);
        self.compare("remove".into(), nothing(here.map(drop)), there);
        if here.is_ok_and(|ended| ended.is_some()) {
            self.forget(id);
        }
    }

    fn lock(&mut self) {
        let ((here, there), locks) = (self.id(), self.random.once_in(2));
        let command = if locks { ipc::command::SHM_LOCK } else { ipc::command::SHM_UNLOCK };
        let there = self.there.call(call::SHMCTL, &format!("{there} {command} 0")).0;
        let here = self.here.segments.lock(&by(OWN), here, locks);
        self.compare(format!("lock {locks}"), nothing(here), there);
    }

    fn compare_all(&mut self) {
        for (here, there) in self.ids.clone() {
            let list = format!("{there} {} {}", ipc::command::STAT, linux::buffer(&[0; 112]));
            let (_, buffers) = self.there.call(call::SHMCTL, &list);
            let entry = self.here.segments.look(&by(OWN), here, tench_linux_sysv::Found::ById).unwrap().0;
            let half = |offset| ipc_word(&buffers[0], offset) & 0xffff_ffff;
            let (key, mode) = (entry.permissions.key, entry.permissions.mode);
            let found = [ipc_word(&buffers[0], 48), ipc_word(&buffers[0], 88), half(0), half(20)];
            let expected = [entry.value.size, entry.value.attachments, key.cast_unsigned().into(), u64::from(mode)];
            assert_eq!(expected, found, "{}", self.log.last().unwrap());
        }
        self.here.segments.check().unwrap();
    }
}

#[test]
fn segments_do_what_those_of_linux_do() {
    let mut both = Both::<Attached>::new(3);
    for step in 0..STEPS {
        match both.random.below(20) {
            0..4 if both.ids.len() < 5 => both.get(),
            4..6 => both.remove(),
            6..12 if both.here.attached.len() < 10 => both.attach(),
            12..17 => both.detach(),
            17 => both.lock(),
            _ => {}
        }
        if step % 4 == 0 {
            both.compare_all();
        }
    }
    while !both.here.attached.is_empty() {
        both.detach();
    }
    while !both.ids.is_empty() {
        both.remove();
    }
    assert_eq!((both.here.segments.count(), both.here.segments.pages()), (0, 0));
}
