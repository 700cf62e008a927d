//! Random operations on queues, compared with what the Linux under these tests does with queues of its own. Waits,
//! signals and descriptors programs compare (`tests/linux/queues.c`).

use std::ffi::CString;

use nix::mqueue::{self, MQ_OFlag, MqAttr, MqdT};
use nix::sys::stat::Mode;
use tench_linux_queues::{Errno, Limits, MAX_PRIORITY, Message, Owned, QueueId, Queues, Wanted};
use tench_random::Random;

/// Names of queues, some of which none can have.
const NAMES: [&str; 7] = ["a", "b", "c", "", ".", "..", "x/y"];

struct Both {
    queues: Queues<()>,
    /// Open queues: here, and there.
    open: Vec<(QueueId, MqdT)>,
    random: Random,
    /// Bytes that the names there begin with, so that tests beside this one have others.
    prefix: String,
    log: Vec<String>,
}

fn number<T>(result: nix::Result<T>) -> Result<T, i32> {
    result.map_err(|error| error as i32)
}

fn raw<T>(result: Result<T, Errno>) -> Result<T, i32> {
    result.map_err(|error| error.into_raw())
}

impl Both {
    /// Returns the index of a name, and the name there.
    fn name(&mut self) -> (String, CString) {
        let name = match self.random.below(40) {
            0 => "n".repeat(255),
            1 => "n".repeat(256),
            below => NAMES[if below < 6 { 3 + self.random.index(4) } else { self.random.index(3) }].to_owned(),
        };
        let is_plain = name.len() == 1 && name != ".";
        let name = if is_plain { format!("{}{name}", self.prefix) } else { name };
        let there = CString::new(format!("/{name}")).unwrap();
        (name, there)
    }

    fn limits(&mut self) -> (Limits, MqAttr) {
        let random = &mut self.random;
        if random.once_in(6) {
            // `nix` leaves the last argument open if there are none.
            let Limits { messages, bytes } = Limits::USUAL;
            return (Limits::USUAL, MqAttr::new(0, messages as _, bytes as _, 0));
        }
        let messages = if random.once_in(12) { [0, u64::MAX, 65_537][random.index(3)] } else { 1 + random.below(4) };
        let bytes = if random.once_in(12) { [0, u64::MAX, 1 << 25][random.index(3)] } else { 1 + random.below(60) };
        let attributes = MqAttr::new(0, messages as _, bytes as _, 0);
        (Limits { messages, bytes }, attributes)
    }

    fn open(&mut self) {
        let (name, name_there) = self.name();
        let (creates, is_new) = (!self.random.once_in(3), self.random.once_in(3));
        let (here, there) = self.limits();
        let mut flags = MQ_OFlag::O_RDWR | MQ_OFlag::O_NONBLOCK;
        flags.set(MQ_OFlag::O_CREAT, creates);
        flags.set(MQ_OFlag::O_EXCL, is_new);
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        let made = format!("{here:?}");
        let there = number(mqueue::mq_open(&*name_there, flags, mode, Some(&there)));
        let owned = Owned { permissions: 0o600, user: 0, group: 0 };
        let wanted = Wanted { make: creates.then_some((here, owned)), is_new, is_privileged: true };
        let here = raw(self.queues.open(name.as_bytes(), wanted, |_| Ok(())));
        self.log.push(format!("open {name} {creates} {is_new} {made}: {here:?} {there:?}"));
        match (here, there) {
            (Ok(here), Ok(there)) => self.open.push((here, there)),
            (Err(here), Err(there)) if here == there => {}
            _ => self.fail(),
        }
    }

    fn unlink(&mut self) {
        let (name, there) = self.name();
        let (here, there) = (raw(self.queues.unlink(name.as_bytes(), |_| Ok(()))), number(mqueue::mq_unlink(&*there)));
        self.log.push(format!("unlink {name}: {here:?} {there:?}"));
        if here != there {
            self.fail();
        }
    }

    fn close(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let (here, there) = self.open.swap_remove(self.random.index(self.open.len()));
        self.log.push(format!("close {here:?}"));
        self.queues.close(here);
        mqueue::mq_close(there).unwrap();
    }

    fn send(&mut self, index: usize) {
        let bytes = vec![self.random.below(256) as u8; self.random.index(64)];
        let priority = match self.random.below(12) {
            0 => MAX_PRIORITY,
            1 => MAX_PRIORITY + 1,
            _ => self.random.below(4) as u32,
        };
        let (here, there) = &self.open[index];
        let there = number(mqueue::mq_send(there, &bytes, priority));
        let message = Message { priority, bytes: bytes.clone().into_boxed_slice() };
        let here = raw(self.queues.send(*here, message, false)).map(|notice| assert_eq!(notice, None));
        self.log.push(format!("send {index} {priority} {}: {here:?} {there:?}", bytes.len()));
        if here != there {
            self.fail();
        }
    }

    fn receive(&mut self, index: usize) {
        let (here, there) = &self.open[index];
        let (mut bytes, mut priority) = (vec![0; 8192], 0);
        let there = number(mqueue::mq_receive(there, &mut bytes, &mut priority));
        let there = there.map(|length| Message { priority, bytes: bytes[..length].into() });
        let here = raw(self.queues.receive(*here));
        self.log.push(format!("receive {index}: {here:?} {there:?}"));
        if here != there {
            self.fail();
        }
    }

    fn compare(&mut self) {
        self.queues.check().unwrap();
        for (here, there) in &self.open {
            let attributes = mqueue::mq_getattr(there).unwrap();
            let limits = self.queues.limits(*here);
            let found = [attributes.maxmsg(), attributes.msgsize(), attributes.curmsgs()];
            assert_eq!(found.map(|one| one as u64), [limits.messages, limits.bytes, self.queues.count(*here)]);
        }
    }

    fn fail(&self) -> ! {
        panic!("not as Linux does it:\n{}", self.log[self.log.len().saturating_sub(30)..].join("\n"))
    }
}

#[test]
fn queues_do_what_those_of_linux_do() {
    let prefix = format!("tench-{}-", std::process::id());
    let mut both =
        Both { queues: Queues::default(), open: Vec::new(), random: Random::new(3), prefix, log: Vec::new() };
    for _ in 0..20_000 {
        let open = both.open.len();
        match both.random.below(12) {
            0 if open < 6 => both.open(),
            1 => both.unlink(),
            2 => both.close(),
            3..8 if open > 0 => {
                let index = both.random.index(open);
                both.send(index);
            }
            8..12 if open > 0 => {
                let index = both.random.index(open);
                both.receive(index);
            }
            _ => {}
        }
        both.compare();
    }
    while !both.open.is_empty() {
        both.close();
    }
    for name in ["a", "b", "c"] {
        let name = format!("{}{name}", both.prefix);
        assert_eq!(
            both.queues.unlink(name.as_bytes(), |_| Ok(())).is_ok(),
            mqueue::mq_unlink(&*format!("/{name}")).is_ok()
        );
    }
    let _ = both.queues.unlink(&[b'n'; 255], |_| Ok(()));
    let _ = mqueue::mq_unlink(&*format!("/{}", "n".repeat(255)));
    assert_eq!(both.queues.queues(), 0);
    both.queues.check().unwrap();
}
