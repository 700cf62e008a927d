//! Test cases of the primitives: small programs, each with its expected output.
//!
//! They run wherever the primitives do: on the host `tests/primitives.rs` runs them in the simulation of R4's
//! scheduler, and on the target the test programs run them on the kernel, so that both have to behave alike.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::fmt::Write;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::{
    Error, MAX_MESSAGE, MAX_TASKS, Terminal, Tid, create, exit, max_priority, my_parent_tid, my_tid, names, receive,
    register_as, reply, run, send, wait_key, who_is, yield_now,
};

/// A small program.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Description of the tested behaviour.
    pub name: &'static str,
    /// Priority of its first task.
    pub priority: i32,
    /// Function of the first task.
    pub first: fn(),
    /// Expected output, each line followed by a space.
    pub expected: &'static str,
    /// Number of tasks that still wait at the end.
    pub waiting: usize,
}

/// Prints output of a case: words, each followed by a space.
macro_rules! show {
    ($($argument:tt)*) => { $crate::print(format_args!("{} ", format_args!($($argument)*))) };
}

pub mod time;

/// A terminal that compares a case's output with the expected one as it comes; on a target this needs no stored text.
struct Judge {
    expected: &'static str,
    right: Arc<AtomicBool>,
    done: Arc<AtomicBool>,
}

impl Terminal for Judge {
    fn write(&mut self, text: &str) {
        match self.expected.strip_prefix(text) {
            Some(rest) => self.expected = rest,
            None => self.right.store(false, Ordering::Relaxed),
        }
        self.done.store(self.expected.is_empty(), Ordering::Relaxed);
    }

    fn wait_key(&mut self) {
        self.write("(key) ");
    }
}

impl Case {
    /// Runs the case. The error says what was wrong.
    pub fn check(&self) -> Result<(), String> {
        let right = Arc::new(AtomicBool::new(true));
        let done = Arc::new(AtomicBool::new(self.expected.is_empty()));
        let judge = Judge { expected: self.expected, right: right.clone(), done: done.clone() };
        let ending = run(judge, self.priority, self.first).map_err(|error| error.to_string())?;
        let mut complaint = String::new();
        if !right.load(Ordering::Relaxed) {
            let _ = write!(complaint, "it printed something else than «{}»; ", self.expected);
        } else if !done.load(Ordering::Relaxed) {
            let _ = write!(complaint, "it printed less than «{}»; ", self.expected);
        }
        if ending.waiting != self.waiting {
            let _ = write!(complaint, "{} tasks still waited, not {}; ", ending.waiting, self.waiting);
        }
        if complaint.is_empty() { Ok(()) } else { Err(complaint) }
    }
}

/// All cases except those about time ([`time::CASES`]).
pub const CASES: &[Case] = &[
    Case {
        name: "identifiers and parents",
        priority: 1,
        first: identifiers,
        expected: "0:None 1:Some(Tid(0)) 1:Some(Tid(0)) ",
        waiting: 0,
    },
    Case {
        name: "creating puts the creator behind its equals",
        priority: 3,
        first: creating,
        expected: "equal high first low ",
        waiting: 0,
    },
    Case {
        name: "a higher task that is created runs first, and then who was ready before its creator",
        priority: 6,
        first: creating_higher,
        expected: "high e1 a e2 ",
        waiting: 1,
    },
    Case {
        name: "yielding lets equals run in turn",
        priority: 2,
        first: yielding,
        expected: "a0 a1 b0 made a2 b1 b2 low ",
        waiting: 0,
    },
    Case { name: "every primitive is a kernel entry", priority: 9, first: entries, expected: ENTRIES, waiting: 0 },
    Case {
        name: "receiver first",
        priority: 3,
        first: receiver_first,
        expected: "got-question-from-0 reply-Ok(6) answer-answer ",
        waiting: 0,
    },
    Case {
        name: "senders first, received in order",
        priority: 5,
        first: senders_first,
        expected: "3:1:1 done-1 5:3:1 done-3 4:2:1 done-2 2:0:1 done-0 ",
        waiting: 0,
    },
    Case {
        name: "a receiver of equal priority waits its turn",
        priority: 5,
        first: equal_receiver,
        expected: "sender equal receiver ",
        waiting: 1,
    },
    Case {
        name: "a replier goes behind its equals",
        priority: 5,
        first: replying,
        expected: "high e1 server e2 high e1 server e2 ",
        waiting: 0,
    },
    Case {
        name: "messages are cut to the buffer",
        priority: 3,
        first: cutting,
        expected: "4:abcd Ok(2) Ok(2) uv. 2:ab.. Ok(2) Ok(2) uv. ",
        waiting: 0,
    },
    Case { name: "messages of every length", priority: 3, first: lengths, expected: "right ", waiting: 1 },
    Case {
        name: "a message that is too long is refused",
        priority: 3,
        first: too_long,
        expected: "Err(-2) 512 Err(-2) Ok(512) Ok(512) ",
        waiting: 0,
    },
    Case {
        name: "who does not exist is -1",
        priority: 3,
        first: nobody,
        expected: "Err(-1) Err(-1) Err(-1) Err(-1) Err(-1) Err(-1) ",
        waiting: 0,
    },
    Case {
        name: "who does not wait for a reply is -2",
        priority: 3,
        first: not_waiting,
        expected: "Err(-2) Err(-2) queued-Err(-2) Ok(0) Err(-1) ",
        waiting: 1,
    },
    Case {
        name: "a receiver that ends gives -2 to its queue",
        priority: 5,
        first: receiver_ends,
        expected: "received-4 2-Err(-2) 5-Err(-2) 3-Err(-2) ",
        waiting: 1,
    },
    Case {
        name: "who waits in the queue of an ending task runs by priority",
        priority: 9,
        first: ending_wakes_all,
        expected: "0-Err(-2) 4-Err(-2) 2-Err(-2) ",
        waiting: 0,
    },
    Case { name: "any task may reply, in any order", priority: 5, first: any_order, expected: "b2 a1 c3 ", waiting: 0 },
    Case {
        name: "priorities have bounds",
        priority: 3,
        first: bounds,
        expected: "Err(-1) Err(-1) Err(-1) Err(-1) highest true ",
        waiting: 0,
    },
    Case { name: "identifiers run out", priority: 3, first: run_out, expected: "64 Err(-2) ", waiting: MAX_TASKS - 1 },
    Case { name: "identifiers come back", priority: 3, first: come_back, expected: "again ", waiting: 0 },
    Case {
        name: "an identifier that is used again is another task",
        priority: 3,
        first: reused,
        expected: "Err(-2) Ok(0) ",
        waiting: 1,
    },
    Case { name: "a session ends when all wait", priority: 3, first: all_wait, expected: "", waiting: 2 },
    Case {
        name: "nobody runs while one waits for a key",
        priority: 1,
        first: key,
        expected: "(key) first equal low ",
        waiting: 0,
    },
    Case {
        name: "names",
        priority: 5,
        first: name_server,
        expected: "Err(-1) Ok(()) Ok(Tid(2)) Err(-2) Err(-2) Err(BadName) Ok(()) Err(-1) ",
        waiting: 0,
    },
    Case {
        name: "a full name server replies",
        priority: 5,
        first: full_name_server,
        expected: "2 Err(NamesFull) Ok(Tid(2)) ",
        waiting: 1,
    },
];

fn identifiers() {
    show!("{}:{:?}", my_tid(), my_parent_tid());
    for _ in 0..2 {
        create(2, || show!("{}:{:?}", my_tid(), my_parent_tid())).unwrap();
    }
}

fn creating() {
    create(1, || show!("low")).unwrap();
    create(3, || show!("equal")).unwrap();
    create(5, || show!("high")).unwrap();
    show!("first");
}

/// `a` creates a task of higher priority while `e1` is ready; that task makes `e2` ready. R4's order of the three is
/// `e1`, `a`, `e2`: `a` is queued behind its equals when it enters the kernel, not when it leaves it.
fn creating_higher() {
    let e2 = create(2, || {
        receive(&mut []);
        show!("e2");
    })
    .unwrap();
    create(2, move || {
        create(4, move || {
            show!("high");
            let _ = send(e2, b"", &mut []);
        })
        .unwrap();
        show!("a");
    })
    .unwrap();
    create(2, || show!("e1")).unwrap();
}

fn yielding() {
    create(1, || show!("low")).unwrap();
    for name in ["a", "b"] {
        create(2, move || {
            for i in 0..3 {
                show!("{name}{i}");
                yield_now();
            }
        })
        .unwrap();
    }
    show!("made");
}

const ENTRIES: &str = "a equal b a equal b a equal b a equal b a equal b ";

fn entries() {
    let entries: [fn(); 5] = [
        || _ = my_tid(),
        || _ = my_parent_tid(),
        || _ = send(Tid(60), b"", &mut []),
        || _ = reply(Tid(60), b""),
        || _ = create(-1, || ()),
    ];
    for (n, entry) in (0..).zip(entries) {
        create(8 - n, move || {
            show!("a");
            entry();
            show!("b");
        })
        .unwrap();
        create(8 - n, || show!("equal")).unwrap();
    }
}

fn receiver_first() {
    let server = create(5, || {
        let mut buffer = [0; 16];
        let (tid, length) = receive(&mut buffer);
        show!("got-{}-from-{tid}", String::from_utf8_lossy(&buffer[..length]));
        show!("reply-{:?}", reply(tid, b"answer"));
    })
    .unwrap();
    let mut response = [0; 16];
    let length = send(server, b"question", &mut response).unwrap();
    show!("answer-{}", String::from_utf8_lossy(&response[..length]));
}

fn senders_first() {
    let server = create(1, || {
        for _ in 0..4 {
            let mut buffer = [0; 1];
            let (tid, length) = receive(&mut buffer);
            show!("{tid}:{}:{length}", buffer[0]);
            reply(tid, b"").unwrap();
        }
    })
    .unwrap();
    for (n, priority) in [2, 4, 3, 4].into_iter().enumerate() {
        create(priority, move || {
            assert_eq!(send(server, &[n as u8], &mut []), Ok(0));
            show!("done-{n}");
        })
        .unwrap();
    }
}

/// The message goes to a waiting receiver of the sender's priority, and the task that was ready before still runs
/// first.
fn equal_receiver() {
    let receiver = create(3, || {
        receive(&mut []);
        show!("receiver");
    })
    .unwrap();
    create(3, move || {
        show!("sender");
        let _ = send(receiver, b"", &mut []);
    })
    .unwrap();
    create(3, || show!("equal")).unwrap();
}

/// The server replies to a task of higher priority, which makes `e2` ready, while `e1` is ready: the server is queued
/// between the two. In the first round it replies to a task that waits, in the second to one in its queue.
fn replying() {
    let e2 = create(2, || {
        for _ in 0..2 {
            let (tid, _) = receive(&mut []);
            show!("e2");
            reply(tid, b"").unwrap();
        }
    })
    .unwrap();
    let server = create(2, || {
        for _ in 0..2 {
            let (tid, _) = receive(&mut []);
            create(2, || {
                yield_now();
                show!("e1");
            })
            .unwrap();
            reply(tid, b"").unwrap();
            show!("server");
        }
    })
    .unwrap();
    create(4, move || {
        for _ in 0..2 {
            send(server, b"", &mut []).unwrap();
            show!("high");
            send(e2, b"", &mut []).unwrap();
        }
    })
    .unwrap();
}

fn cutting() {
    let server = create(5, || {
        for _ in 0..2 {
            let mut buffer = [b'.'; 4];
            let (tid, length) = receive(&mut buffer);
            show!("{length}:{}", String::from_utf8_lossy(&buffer));
            show!("{:?}", reply(tid, b"uvwxyz"));
        }
    })
    .unwrap();
    for message in [&b"abcdef"[..], b"ab"] {
        let mut response = [b'.'; 3];
        show!("{:?}", send(server, message, &mut response[..2]));
        show!("{}", String::from_utf8_lossy(&response));
    }
}

/// Tests every length, and so every boundary between bytes, words, registers and IPC buffer.
fn lengths() {
    let server = create(5, || {
        let mut buffer = [0; MAX_MESSAGE];
        loop {
            let (tid, length) = receive(&mut buffer);
            buffer[..length].reverse();
            assert_eq!(reply(tid, &buffer[..length]), Ok(length));
        }
    })
    .unwrap();
    for length in 0..=MAX_MESSAGE {
        let byte = |i: usize| (i * 7 + length) as u8;
        let message: [u8; MAX_MESSAGE] = core::array::from_fn(byte);
        let mut response = [0xee; MAX_MESSAGE];
        assert_eq!(send(server, &message[..length], &mut response), Ok(length));
        let right = response
            .iter()
            .enumerate()
            .all(|(i, value)| *value == if i < length { byte(length - 1 - i) } else { 0xee });
        assert!(right, "{length} bytes");
    }
    show!("right");
}

fn too_long() {
    let server = create(5, || {
        let mut buffer = [0; MAX_MESSAGE];
        let (tid, length) = receive(&mut buffer);
        show!("{length}");
        show!("{:?}", reply(tid, &[1; MAX_MESSAGE + 1]).map_err(Error::code));
        show!("{:?}", reply(tid, &buffer));
    })
    .unwrap();
    let mut response = [0; MAX_MESSAGE];
    show!("{:?}", send(server, &[7; MAX_MESSAGE + 1], &mut response).map_err(Error::code));
    show!("{:?}", send(server, &[7; MAX_MESSAGE], &mut response));
    assert_eq!(response, [7; MAX_MESSAGE]);
}

fn nobody() {
    let gone = create(5, || ()).unwrap();
    for tid in [gone, Tid(MAX_TASKS as u32), Tid(u32::MAX)] {
        show!("{:?}", send(tid, b"", &mut []).map_err(Error::code));
        show!("{:?}", reply(tid, b"").map_err(Error::code));
    }
}

fn not_waiting() {
    show!("{:?}", reply(my_tid(), b"").map_err(Error::code));
    let receiver = create(5, || _ = receive(&mut [])).unwrap();
    show!("{:?}", reply(receiver, b"").map_err(Error::code));
    let server = create(1, || {
        let (tid, _) = receive(&mut []);
        show!("{:?}", reply(tid, b""));
        show!("{:?}", reply(tid, b"").map_err(Error::code));
    })
    .unwrap();
    let sender = create(2, move || _ = send(server, b"", &mut [])).unwrap();
    create(2, move || {
        yield_now();
        show!("queued-{:?}", reply(sender, b"").map_err(Error::code));
    })
    .unwrap();
}

fn receiver_ends() {
    let server = create(1, || {
        let (tid, _) = receive(&mut []);
        show!("received-{tid}");
        exit();
    })
    .unwrap();
    for priority in [3, 2, 4, 3] {
        create(priority, move || {
            let result = send(server, b"", &mut []).map_err(Error::code);
            show!("{}-{result:?}", my_tid());
        })
        .unwrap();
    }
}

/// The queue has tasks of priorities 5, 7, 6. The task woken first must not run before one of higher priority is woken
/// too.
fn ending_wakes_all() {
    let server = create(1, || ()).unwrap();
    let sender = move || {
        let result = send(server, b"", &mut []).map_err(Error::code);
        show!("{}-{result:?}", my_tid());
    };
    create(5, sender).unwrap();
    create(3, move || {
        create(7, sender).unwrap();
        create(6, sender).unwrap();
    })
    .unwrap();
}

fn any_order() {
    let server = create(4, || {
        let [(a, _), (b, _), (c, _)] = core::array::from_fn(|_| receive(&mut []));
        reply(b, b"2").unwrap();
        create(4, move || _ = reply(a, b"1")).unwrap();
        reply(c, b"3").unwrap();
    })
    .unwrap();
    for name in ["a", "b", "c"] {
        create(3, move || {
            let mut response = [0];
            send(server, b"", &mut response).unwrap();
            show!("{name}{}", response[0] as char);
        })
        .unwrap();
    }
}

fn bounds() {
    for priority in [-1, i32::MIN, max_priority() + 1, i32::MAX] {
        show!("{:?}", create(priority, || ()).map_err(Error::code));
    }
    show!("{:?}", create(max_priority(), || show!("highest")).is_ok());
}

fn run_out() {
    let mut made = 1;
    while create(1, || _ = receive(&mut [])).is_ok() {
        made += 1;
    }
    show!("{made} {:?}", create(1, || ()).map_err(Error::code).map(|tid| tid.0));
}

fn come_back() {
    for _ in 0..3 * MAX_TASKS {
        assert_eq!(create(4, || ()), Ok(Tid(1)));
    }
    show!("again");
}

/// A task that reuses an identifier inherits neither the queue nor the state of the previous one.
fn reused() {
    let first = create(2, || ()).unwrap();
    create(4, move || show!("{:?}", send(first, b"", &mut []).map_err(Error::code))).unwrap();
    create(1, move || {
        let second = create(2, || {
            let (tid, _) = receive(&mut []);
            reply(tid, b"").unwrap();
        });
        assert_eq!(second, Ok(first));
        show!("{:?}", send(first, b"", &mut []));
    })
    .unwrap();
    receive(&mut []);
}

fn all_wait() {
    create(4, || _ = receive(&mut [])).unwrap();
    send(my_tid(), b"to myself", &mut []).unwrap();
}

fn key() {
    create(0, || show!("low")).unwrap();
    create(1, || {
        yield_now();
        show!("equal");
    })
    .unwrap();
    wait_key();
    show!("first");
}

fn name_server() {
    show!("{:?}", who_is("a").map_err(Error::code));
    names::start().unwrap();
    create(1, || {
        show!("{:?}", register_as("a"));
        show!("{:?}", who_is("a"));
        show!("{:?}", who_is("b").map_err(Error::code));
        show!("{:?}", register_as("").map_err(Error::code));
        show!("{:?}", register_as(&"x".repeat(names::MAX_NAME + 1)));
        show!("{:?}", register_as(&"x".repeat(names::MAX_NAME)));
        names::shutdown().unwrap();
        show!("{:?}", who_is("a").map_err(Error::code));
    })
    .unwrap();
}

fn full_name_server() {
    names::start().unwrap();
    create(1, || {
        let refused = (0..names::MAX_NAMES + 2).filter(|n| register_as(&format!("name {n}")).is_err()).count();
        show!("{refused} {:?} {:?}", register_as("more"), who_is("name 17"));
    })
    .unwrap();
}
