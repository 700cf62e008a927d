//! Tests of shared memory between a client and a server of the same process, with a client that breaks the rules.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use tench_hostile::notes_protocol::{Error, Notes, NotesService};
use tench_protocol::shared::Allocator;
use tench_protocol::{
    Attachments, Caller, Context, Factory, Failure, Memory, Rejection, Replies, Shared, SharedMut, Shares, Text,
    Transport,
};
use tench_sys::{Cap, CapAddress, Error as KernelError, Frame, Message, Received};

/// Bytes of a buffer.
const SIZE: usize = 4096;

/// Memory that its other side changes after each read.
#[derive(Debug)]
struct Restless {
    bytes: RefCell<Vec<u8>>,
    /// Number of reads.
    reads: Cell<usize>,
    changes: Cell<bool>,
}

impl Memory for Restless {
    fn size(&self) -> usize {
        self.bytes.borrow().len()
    }

    fn read(&self, offset: usize, to: &mut [u8]) {
        to.copy_from_slice(&self.bytes.borrow()[offset..][..to.len()]);
        self.reads.set(self.reads.get() + 1);
        if self.changes.get() {
            self.bytes.borrow_mut().fill(0xff);
        }
    }

    fn write(&self, offset: usize, from: &[u8]) {
        self.bytes.borrow_mut()[offset..][..from.len()].copy_from_slice(from);
    }
}

/// One shared buffer for each caller below 10.
#[derive(Debug, Default)]
struct Buffers(BTreeMap<Caller, &'static Restless>);

impl Attachments for Buffers {
    fn attach(&mut self, caller: Caller, bytes: u64) -> Result<(Cap<Frame>, u64), KernelError> {
        if caller.process >= 10 || bytes > SIZE as u64 {
            return Err(KernelError::OutOfMemory);
        }
        // Leaked, since tests end soon.
        let memory = Restless { bytes: vec![0; SIZE].into(), reads: Cell::new(0), changes: Cell::new(false) };
        self.0.insert(caller, Box::leak(Box::new(memory)));
        Ok((Cap::new(CapAddress(40 + caller.process as u32)), u64::from(SIZE.ilog2())))
    }

    fn memory(&self, caller: Caller) -> Option<&dyn Memory> {
        self.0.get(&caller).map(|memory| *memory as &dyn Memory)
    }
}

/// Notes of each caller.
#[derive(Default)]
struct Board(BTreeMap<(Caller, String), Vec<u8>>);

impl NotesService for Board {
    fn write(&mut self, caller: Caller, note: Text<'_, 16>, at: u64, text: Shared<'_>) -> Result<u64, Error> {
        let mut copy = vec![0; text.len()];
        assert_eq!(text.read(0, &mut copy), text.len());
        let note = self.0.entry((caller, note.to_string())).or_default();
        note.truncate(at as usize);
        note.extend(copy);
        Ok(note.len() as u64)
    }

    fn read(&mut self, caller: Caller, note: Text<'_, 16>, into: SharedMut<'_>) -> Result<u64, Error> {
        let note = self.0.get(&(caller, note.to_string())).ok_or(Error::NoSuchNote)?;
        Ok(into.write(0, note) as u64)
    }

    fn turn(&mut self, text: Shared<'_>, into: SharedMut<'_>) -> Result<(), Error> {
        let mut copy = vec![0; text.len()];
        text.read(0, &mut copy);
        copy.reverse();
        into.write(0, &copy);
        Ok(())
    }

    fn count(&mut self) -> Result<u64, Error> {
        Ok(self.0.len() as u64)
    }
}

struct Here {
    board: Board,
    buffers: Option<Buffers>,
    replies: Replies,
}

/// The path of one caller.
#[derive(Clone, Copy)]
struct Way<'h>(&'h RefCell<Here>, Caller);

impl Transport for Way<'_> {
    fn call(self, request: &Message, _: &[CapAddress], received: &mut Received) -> Result<(), KernelError> {
        let Here { board, buffers, replies } = &mut *self.0.borrow_mut();
        let mut reply = Message::new(0);
        let mut context = Context::new(self.1.process, replies);
        if let Some(buffers) = buffers {
            context.attachments = Some(buffers);
        }
        let _ = Notes::dispatch(board, &Received::from_message(request, self.1.process), &mut context, &mut reply);
        *received = Received::from_message(&reply, 0);
        Ok(())
    }
}

impl Shares for Way<'_> {
    fn share<T>(self, with: impl FnOnce(&dyn Memory) -> T) -> T {
        let here = self.0.borrow();
        let memory = here.buffers.as_ref().and_then(|buffers| buffers.0.get(&self.1).copied());
        drop(here);
        match memory {
            Some(memory) => with(memory),
            // A client that claims to share memory that it does not share.
            None => with(&Restless { bytes: vec![0; SIZE].into(), reads: Cell::new(0), changes: Cell::new(false) }),
        }
    }
}

fn here(buffers: Option<Buffers>) -> RefCell<Here> {
    let replies = Replies::new(Cap::new(CapAddress(1)), Factory::NONE);
    RefCell::new(Here { board: Board::default(), buffers, replies })
}

const SLOT: CapAddress = CapAddress(30);

#[test]
fn bytes_go_there_and_come_back() {
    let here = here(Some(Buffers::default()));
    let notes = Notes::at(Way(&here, Caller::alone(1)));
    let (frame, bits) = notes.attach_buffer(3000, SLOT).unwrap();
    assert_eq!((frame.address(), bits), (CapAddress(41), 12));
    let text: Vec<u8> = (0..3000).map(|index| index as u8).collect();
    assert_eq!(notes.write("a", 0, &text), Ok(3000));
    assert_eq!(notes.write("a", 2990, b"end"), Ok(2993));
    let mut read = [7; SIZE];
    assert_eq!(notes.read("a", &mut read), Ok(2993));
    assert_eq!((&read[..2990], &read[2990..2993]), (&text[..2990], &b"end"[..]));
    let mut turned = [0; 3];
    assert_eq!(notes.turn(b"abc", &mut turned), Ok(()));
    assert_eq!(&turned, b"cba");
    assert_eq!(notes.read("b", &mut read), Err(Failure::Refused(Error::NoSuchNote)));
}

#[test]
fn memory_is_shared_only_with_attached_clients() {
    let here = here(Some(Buffers::default()));
    let [one, other] = [1, 2].map(|caller| Notes::at(Way(&here, Caller::alone(caller))));
    assert_eq!(one.write("a", 0, b"secret"), Err(Failure::Rejected(Rejection::NotAttached)));
    one.attach_buffer(1, SLOT).unwrap();
    assert_eq!(one.write("a", 0, b"secret"), Ok(6));
    assert_eq!(other.write("a", 0, b"other"), Err(Failure::Rejected(Rejection::NotAttached)));
    assert_eq!(other.count(), Ok(1), "what needs no memory needs none");
    other.attach_buffer(1, SLOT).unwrap();
    let mut read = [0; 6];
    assert_eq!(other.turn(b"", &mut read), Ok(()));
    assert_eq!(read, [0; 6], "the other's memory is another");
}

#[test]
fn buffers_that_are_not_to_be_had_are_refused() {
    let here = here(Some(Buffers::default()));
    let refused = |caller, bytes| Notes::at(Way(&here, Caller::alone(caller))).attach_buffer(bytes, SLOT).unwrap_err();
    assert_eq!(refused(1, SIZE as u64 + 1), Failure::Rejected(Rejection::NoBuffer));
    assert_eq!(refused(1, u64::MAX), Failure::Rejected(Rejection::NoBuffer));
    assert_eq!(refused(10, 1), Failure::Rejected(Rejection::NoBuffer));
    let without = self::here(None);
    let reply = Notes::at(Way(&without, Caller::alone(1))).attach_buffer(1, SLOT).unwrap_err();
    assert_eq!(reply, Failure::Rejected(Rejection::NoBuffer), "a server that shares nothing");
}

#[test]
fn regions_outside_the_memory_are_refused() {
    let here = here(Some(Buffers::default()));
    let way = Way(&here, Caller::alone(1));
    Notes::at(way).attach_buffer(1, SLOT).unwrap();
    let size = SIZE as u64;
    let asked = |offset: u64, length: u64| {
        let mut message = Message::new(Notes::TURN);
        message.extend(&[offset, length, 0, 0]);
        let mut reply = Received::new();
        way.call(&message, &[], &mut reply).unwrap();
        Rejection::from_code(reply.label(), reply.word(0))
    };
    for (offset, length) in
        [(0, size + 1), (size, 1), (size + 1, 0), (1, size), (u64::MAX, 1), (1, u64::MAX), (u64::MAX, u64::MAX)]
    {
        assert_eq!(asked(offset, length), Some(Rejection::BadArguments), "{offset} {length}");
    }
    for (offset, length) in [(0, size), (size, 0), (size - 1, 1)] {
        assert_eq!(asked(offset, length), None, "{offset} {length}");
    }
}

#[test]
fn clients_put_in_no_more_than_fits() {
    let here = here(Some(Buffers::default()));
    let notes = Notes::at(Way(&here, Caller::alone(1)));
    notes.attach_buffer(1, SLOT).unwrap();
    assert_eq!(notes.write("a", 0, &[0; SIZE + 1]), Err(Failure::TooLong));
    assert_eq!(notes.turn(&[0; 2048], &mut [0; 2049]), Err(Failure::TooLong));
    assert_eq!(notes.turn(&[0; 2048], &mut [0; 2048]), Ok(()));
    let memory = Restless { bytes: vec![0; 8].into(), reads: Cell::new(0), changes: Cell::new(false) };
    let mut allocator = Allocator::new(&memory);
    assert!(
        allocator.reserve(usize::MAX).is_none() && allocator.reserve(8).is_some() && allocator.reserve(1).is_none()
    );
}

#[test]
fn memory_that_changes_meanwhile_is_copied_once() {
    let here = here(Some(Buffers::default()));
    let way = Way(&here, Caller::alone(1));
    let notes = Notes::at(way);
    notes.attach_buffer(1, SLOT).unwrap();
    let memory = here.borrow().buffers.as_ref().unwrap().0[&Caller::alone(1)];
    memory.changes.set(true);
    assert_eq!(notes.write("a", 0, b"before"), Ok(6));
    assert_eq!(memory.reads.get(), 1);
    let board = &here.borrow().board;
    assert_eq!(board.0[&(Caller::alone(1), "a".to_string())], b"before", "the copy is what counts");
}

#[test]
fn parts_end_where_the_region_ends() {
    let memory =
        Restless { bytes: (0..16).collect::<Vec<u8>>().into(), reads: Cell::new(0), changes: Cell::new(false) };
    let words = [4, 8];
    let kept = Cell::new(0);
    let source = || tench_protocol::wire::Source::new(&words, &[], &kept);
    let shared = Shared::decode(&mut source(), &memory).unwrap();
    let mut bytes = [99; 5];
    assert_eq!((shared.read(0, &mut bytes), bytes), (5, [4, 5, 6, 7, 8]));
    assert_eq!((shared.read(6, &mut bytes), bytes), (2, [10, 11, 6, 7, 8]));
    assert_eq!((shared.read(8, &mut bytes), shared.read(usize::MAX, &mut bytes)), (0, 0));
    let shared = SharedMut::decode(&mut source(), &memory).unwrap();
    assert_eq!((shared.write(7, &[1, 2, 3]), shared.write(9, &[1])), (1, 0));
    assert_eq!(memory.bytes.borrow()[10..13], [10, 1, 12]);
}
