//! `task_info` by a layer of ports, as R2 found it in its system: the client names a port, not a capability; every item
//! of a message has a type descriptor; the message is copied on each of its four ways between caller, layer and server;
//! and the server looks up object and routine.
//!
//! ```text
//! client stub ─▶ buffer ─ copy ▶ layer: names ▶ rights ─ our call ─▶ layer ─ copy ▶ buffer ─▶ server stub ─▶ routine
//! ```
//! It is written for this experiment, to be no more expensive than necessary: nothing is allocated on the way, names
//! are looked up in a tree of some hundred, and its messages are sent by this system's own calls.

use alloc::collections::BTreeMap;
use core::hint::black_box;

use tench::sync::Mutex;
use tench::sys::{Cap, Endpoint, Error as KernelError, Message, Wait};

use super::calls::{Function, Given, Got};
use super::interface::{TASK, TaskInfo};
use super::servers::STOP;

/// `task_info` by the layer.
pub const TASK_INFO: Function = lab_stubs_task_info_port;

/// Words of a buffer.
const BUFFER: usize = 24;
/// Words before the first item: size and bits, names, identifier.
const HEADER: usize = 3;
/// Name of the server's port.
const SERVER: u32 = 0x1103;
/// Name of the port to which the reply goes.
const REPLY: u32 = 0x1207;
/// Number of the first routine, and of `task_info`.
const ROUTINES: u64 = 3400;
const TASK_INFO_ROUTINE: u64 = ROUTINES + 5;
/// Difference between a reply's identifier and its request's.
const REPLY_OFFSET: u64 = 100;
/// Number of names of a process.
const NAMES: u32 = 256;

/// Descriptor of an item: its type, the bits of an element, and the number of elements.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Descriptor {
    kind: u8,
    bits: u8,
    count: u16,
}

/// A number of 64 bits.
const NUMBER: u8 = 11;
/// A name of a port, which is translated into a right.
const PORT: u8 = 17;

impl Descriptor {
    const fn new(kind: u8, count: u16) -> Descriptor {
        Descriptor { kind, bits: 64, count }
    }

    const fn pack(self) -> u64 {
        (self.kind as u64) << 32 | (self.bits as u64) << 16 | self.count as u64
    }
}

/// A right to a port.
#[derive(Clone, Copy)]
struct Right {
    /// Number of references that the process has.
    references: u32,
    /// Set if the process may send to the port.
    send: bool,
    /// The port behind it.
    object: u64,
}

/// The names of a process.
static RIGHTS: Mutex<BTreeMap<u32, Right>> = Mutex::new(BTreeMap::new());

/// Gives the process its names, those of the server's and the reply's port among them.
pub fn prepare(server: Cap<Endpoint>) {
    let mut rights = RIGHTS.lock();
    for index in 0..NAMES {
        rights.insert(0x103 + index * 0x100, Right { references: 1, send: true, object: 0 });
    }
    rights.insert(SERVER, Right { references: 1, send: true, object: u64::from(server.address().0) });
    rights.insert(REPLY, Right { references: 1, send: false, object: 7 });
    rights.insert(TASK as u32, Right { references: 1, send: true, object: TASK });
}

/// A message in a buffer.
struct Buffer {
    words: [u64; BUFFER],
    length: usize,
}

impl Buffer {
    const fn new(id: u64) -> Buffer {
        let mut words = [0; BUFFER];
        words[1] = (SERVER as u64) << 32 | REPLY as u64;
        words[2] = id;
        Buffer { words, length: HEADER }
    }

    /// Appends an item and its descriptor.
    fn put(&mut self, descriptor: Descriptor, data: &[u64]) {
        self.words[self.length] = descriptor.pack();
        self.words[self.length + 1..][..data.len()].copy_from_slice(data);
        self.length += 1 + data.len();
        self.words[0] = self.length as u64;
    }

    /// Returns the next item, if it is what is expected.
    fn take<const N: usize>(&self, at: &mut usize, kind: u8) -> Option<[u64; N]> {
        let start = *at + 1;
        let expected = Descriptor::new(kind, N as u16).pack();
        *at = start + N;
        if *at > self.length || self.words[start - 1] != expected {
            return None;
        }
        self.words[start..*at].first_chunk().copied()
    }
}

/// Entry of the layer: sends the message in `buffer`, and puts the reply there.
#[inline(never)]
fn message(buffer: &mut Buffer) -> Option<()> {
    if !(HEADER..=BUFFER).contains(&buffer.length) || buffer.words[0] != buffer.length as u64 {
        return None;
    }
    let (remote, local) = ((buffer.words[1] >> 32) as u32, buffer.words[1] as u32);
    let server = {
        let rights = RIGHTS.lock();
        let server = *rights.get(&remote).filter(|right| right.send && right.references > 0)?;
        rights.get(&local).filter(|right| right.references > 0)?;
        server
    };
    // Copied into the layer, names of ports becoming rights.
    let mut copy = Buffer { words: [0; BUFFER], length: buffer.length };
    copy.words[..buffer.length].copy_from_slice(&buffer.words[..buffer.length]);
    translate(&mut copy)?;
    let request = Message::with_words(copy.words[2], &copy.words[..copy.length]);
    let endpoint = Cap::<Endpoint>::new(tench::sys::CapAddress(server.object as u32));
    let reply = endpoint.call(&request).ok()?;
    // Copied out of the layer.
    buffer.length = reply.words().len().min(BUFFER);
    buffer.words[..buffer.length].copy_from_slice(&reply.words()[..buffer.length]);
    (buffer.length >= HEADER && buffer.words[0] == buffer.length as u64).then_some(())
}

/// Translates the names of ports among the items into the ports' objects.
fn translate(buffer: &mut Buffer) -> Option<()> {
    let mut at = HEADER;
    while at < buffer.length {
        let descriptor = buffer.words[at];
        let count = (descriptor & 0xffff) as usize;
        if (descriptor >> 32) as u8 == PORT {
            let rights = RIGHTS.lock();
            for word in buffer.words.get_mut(at + 1..at + 1 + count)? {
                *word = rights.get(&(*word as u32)).filter(|right| right.references > 0)?.object;
            }
        }
        at += 1 + count;
    }
    (at == buffer.length).then_some(())
}

/// Client's stub of `task_info`.
#[inline(never)]
#[unsafe(no_mangle)]
fn lab_stubs_task_info_port(_given: &Given, got: &mut Got) -> bool {
    let mut buffer = Buffer::new(TASK_INFO_ROUTINE);
    buffer.put(Descriptor::new(PORT, 1), &[TASK]);
    // The kind of information, and the number of words there is room for.
    buffer.put(Descriptor::new(NUMBER, 1), &[5]);
    buffer.put(Descriptor::new(NUMBER, 1), &[10]);
    if message(&mut buffer).is_none() || buffer.words[2] != TASK_INFO_ROUTINE + REPLY_OFFSET {
        return false;
    }
    let mut at = HEADER;
    let Some([0]) = buffer.take(&mut at, NUMBER) else { return false };
    let Some(words) = buffer.take(&mut at, NUMBER) else { return false };
    got.info = TaskInfo::of(words);
    at == buffer.length
}

/// A routine of the server, behind its stub.
type Routine = fn(&Buffer) -> Option<Buffer>;

/// Routines by number.
const TABLE: [Option<Routine>; 8] = [None, None, None, None, None, Some(task_info), None, None];

/// The server's stub of `task_info`.
fn task_info(request: &Buffer) -> Option<Buffer> {
    let mut at = HEADER;
    let [task] = request.take(&mut at, PORT)?;
    let [_flavour] = request.take(&mut at, NUMBER)?;
    let [room] = request.take(&mut at, NUMBER)?;
    if at != request.length || task != TASK || room < 10 {
        return None;
    }
    let mut reply = Buffer::new(request.words[2] + REPLY_OFFSET);
    reply.put(Descriptor::new(NUMBER, 1), &[0]);
    reply.put(Descriptor::new(NUMBER, 10), &black_box(TaskInfo::SAMPLE).words());
    Some(reply)
}

/// Runs the server: receives into a buffer, finds the routine, and sends its reply.
pub fn server(endpoint: Cap<Endpoint>) -> Result<(), KernelError> {
    let mut received = endpoint.receive(Wait::FOREVER)?;
    while received.label() != STOP {
        let mut buffer = Buffer { words: [0; BUFFER], length: received.words().len().min(BUFFER) };
        buffer.words[..buffer.length].copy_from_slice(&received.words()[..buffer.length]);
        let routine = buffer.words[2].checked_sub(ROUTINES).and_then(|index| *TABLE.get(index as usize)?);
        let reply = routine.and_then(|routine| black_box(routine)(&buffer));
        let mut message = Message::new(0);
        if let Some(reply) = reply {
            // Copied out of the server's buffer into the layer's, and sent.
            let mut copy = Buffer { words: [0; BUFFER], length: reply.length };
            copy.words[..reply.length].copy_from_slice(&reply.words[..reply.length]);
            if translate(&mut copy).is_some() {
                message.extend(&copy.words[..copy.length]);
            }
        }
        received = endpoint.reply_receive(&message, Wait::FOREVER)?;
    }
    let _ = endpoint.reply_receive(&Message::new(0), Wait::until(tench::sys::Instant::from_ticks(0)));
    Ok(())
}
