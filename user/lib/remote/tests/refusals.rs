//! Each error and each fault by its name, at one monitor: core 0 of three.

use tench_abi::Rights;
use tench_remote::{
    Core, Cores, Effects, Error, Fault, FaultKind, Input, Kind, Limits, Machine, Message, ObjectId, RequestId, Send,
    Sent, Shape, Token,
};

const LIMITS: Limits = Limits { exports: 2, holders: 3, copies: 2, requests: 3 };
const FRAME: Shape = Shape { kind: Kind::Frame, base: 0x1000, bytes: 0x1000 };
const MEMORY: Shape = Shape { kind: Kind::Untyped, base: 0x10_0000, bytes: 0x10_0000 };
const READ: Rights = Rights::READ;

fn core(number: u8) -> Core {
    Core::new(number).unwrap()
}

/// The monitor's kernel, clients and channels.
struct Seen {
    /// Result that the kernel returns.
    kernel: Result<(), Error>,
    /// Messages sent in the last step.
    sent: Vec<(u8, Message)>,
    /// Replies to clients in the last step.
    replies: Vec<Result<(), Error>>,
    unexported: Vec<ObjectId>,
    deleted: Vec<ObjectId>,
    imported: usize,
}

impl Effects for Seen {
    fn send(&mut self, to: Core, message: Message) {
        self.sent.push((to.index() as u8, message));
    }

    fn reply(&mut self, _: Token, result: Result<(), Error>) {
        self.replies.push(result);
    }

    fn export(&mut self, _: ObjectId, _: &Shape, _: Token) -> Result<(), Error> {
        self.kernel
    }

    fn unexport(&mut self, object: ObjectId) {
        self.unexported.push(object);
    }

    fn import(&mut self, _: ObjectId, _: &Shape, _: Rights, _: (Core, RequestId)) -> Result<(), Error> {
        self.imported += 1;
        self.kernel
    }

    fn hand_over(&mut self, _: ObjectId, _: Rights, _: (Core, RequestId)) -> Result<(), Error> {
        self.kernel
    }

    fn delete(&mut self, object: ObjectId) {
        self.deleted.push(object);
    }

    fn close(&mut self, _: ObjectId) -> Result<(), Error> {
        self.kernel
    }

    fn give_back(&mut self, _: ObjectId) -> Result<(), Error> {
        self.kernel
    }
}

struct Monitor {
    machine: Machine,
    seen: Seen,
}

impl Monitor {
    fn new() -> Monitor {
        Monitor {
            machine: Machine::new(core(0), 3, &LIMITS).unwrap(),
            seen: Seen {
                kernel: Ok(()),
                sent: Vec::new(),
                replies: Vec::new(),
                unexported: Vec::new(),
                deleted: Vec::new(),
                imported: 0,
            },
        }
    }

    fn step(&mut self, input: Input) -> Result<(), FaultKind> {
        self.seen.sent.clear();
        self.seen.replies.clear();
        self.machine.step(input, &mut self.seen).map_err(|Fault { why, .. }| why)
    }

    /// Returns the reply to a client's request, if it came at once.
    fn asks(&mut self, input: Input) -> Option<Result<(), Error>> {
        self.step(input).unwrap();
        assert!(self.seen.replies.len() <= 1);
        self.seen.replies.first().copied()
    }

    fn sends(&mut self, what: Sent, to: u8) -> Option<Result<(), Error>> {
        self.asks(Input::Send { token: Token(0), send: Send { what, to: core(to), rights: READ } })
    }

    fn hears(&mut self, from: u8, message: Message) -> Result<(), FaultKind> {
        self.step(Input::Message { from: core(from), message })
    }

    fn lends(&mut self, from: u8, number: u32, shape: Shape) -> ObjectId {
        let object = ObjectId { owner: core(from), number, generation: 0 };
        assert_eq!(self.hears(from, grant(object, shape, 1)), Ok(()));
        object
    }
}

fn grant(object: ObjectId, shape: Shape, count: u64) -> Message {
    Message::Grant { object, shape, rights: READ, count, requester: object.owner, request: RequestId(0) }
}

fn refused(error: Error) -> Option<Result<(), Error>> {
    Some(Err(error))
}

/// Name of the first object that core 0 sends.
const FIRST: ObjectId = ObjectId { owner: Core::new(0).unwrap(), number: 0, generation: 0 };

#[test]
fn there_are_at_most_as_many_cores_as_numbers() {
    assert!(Machine::new(core(3), 3, &LIMITS).is_none());
    assert!(Machine::new(core(0), 65, &LIMITS).is_none());
    assert!(Machine::new(core(63), 64, &LIMITS).is_some());
    assert_eq!(Core::new(64), None);
}

#[test]
fn sending_to_impossible_receivers_is_refused() {
    let mut monitor = Monitor::new();
    assert_eq!(monitor.sends(Sent::Own(FRAME), 0), refused(Error::ToSelf));
    assert_eq!(monitor.sends(Sent::Own(FRAME), 3), refused(Error::UnknownCore));
    assert_eq!(monitor.sends(Sent::Own(Shape { bytes: 0, ..FRAME }), 1), refused(Error::UnknownObject));
    assert_eq!(monitor.sends(Sent::Own(Shape { base: u64::MAX, ..FRAME }), 1), refused(Error::UnknownObject));
    assert_eq!(monitor.sends(Sent::Remote(FIRST), 1), refused(Error::UnknownObject));
    let memory = monitor.lends(1, 0, MEMORY);
    assert_eq!(monitor.sends(Sent::Remote(memory), 2), refused(Error::Borrowed));
    monitor.seen.kernel = Err(Error::InUse);
    assert_eq!(monitor.sends(Sent::Own(MEMORY), 1), refused(Error::InUse));
    assert_eq!(monitor.machine.exports().count(), 0);
}

#[test]
fn full_tables() {
    let mut monitor = Monitor::new();
    assert_eq!(monitor.sends(Sent::Own(FRAME), 1), None);
    assert_eq!(monitor.sends(Sent::Own(FRAME), 1), None);
    assert_eq!(monitor.sends(Sent::Own(FRAME), 2), None);
    assert_eq!(monitor.sends(Sent::Own(FRAME), 2), refused(Error::TooManyRequests));
    assert_eq!(monitor.asks(Input::Revoke { token: Token(0), object: FIRST }), refused(Error::TooManyRequests));
    for (from, count, request) in [(1, 1, 0), (1, 2, 1), (2, 1, 2)] {
        let (request, requester) = (RequestId(request), core(0));
        assert_eq!(
            monitor.hears(from, Message::Taken { object: FIRST, count, requester, request, result: Ok(()) }),
            Ok(())
        );
        assert_eq!(monitor.seen.replies, [Ok(())]);
    }
    let other = |index: u8| Sent::Own(Shape { base: 0x2000 * u64::from(index), ..FRAME });
    assert_eq!(monitor.sends(other(1), 1), None);
    assert_eq!(monitor.sends(other(2), 1), refused(Error::TooManyExports));
    assert_eq!(monitor.sends(other(1), 2), refused(Error::TooManyHolders));
    monitor.lends(1, 0, MEMORY);
    monitor.lends(1, 1, Shape { base: 0x3000, ..FRAME });
    let third = ObjectId { owner: core(2), ..FIRST };
    assert_eq!(monitor.hears(2, grant(third, Shape { base: 0, ..FRAME }, 1)), Ok(()));
    let [(2, Message::Taken { result, .. }), (2, Message::Release { count: 1, .. })] = monitor.seen.sent[..] else {
        panic!("{:?}", monitor.seen.sent);
    };
    assert_eq!((result, monitor.seen.imported), (Err(Error::TooManyCopies), 2));
}

#[test]
fn an_object_under_revocation_is_refused() {
    let mut monitor = Monitor::new();
    assert_eq!(monitor.sends(Sent::Own(FRAME), 1), None);
    let revoke = Input::Revoke { token: Token(1), object: FIRST };
    assert_eq!(monitor.asks(revoke), None);
    assert_eq!(monitor.seen.sent, [(1, Message::Withdraw { object: FIRST, count: 1 })]);
    assert_eq!(monitor.asks(revoke), None);
    assert_eq!(monitor.seen.sent, [], "it was told already");
    assert_eq!(monitor.sends(Sent::Own(FRAME), 2), refused(Error::BeingRevoked));
    let request = RequestId(0);
    let taken = Message::Taken { object: FIRST, count: 1, requester: core(0), request, result: Ok(()) };
    assert_eq!(monitor.hears(1, taken), Ok(()));
    let ask = Message::Ask { object: FIRST, to: core(2), rights: READ, request };
    assert_eq!(monitor.hears(1, ask), Ok(()));
    let reply = Message::Reply { object: FIRST, to: core(2), request, result: Err(Error::BeingRevoked) };
    assert_eq!(monitor.seen.sent, [(1, reply)]);
    assert_eq!(monitor.hears(1, Message::Release { object: FIRST, count: 1 }), Ok(()));
    assert_eq!(monitor.seen.unexported, [], "the release crossed the withdrawal, which will get a reply");
    assert_eq!(monitor.hears(1, Message::Withdrawn { object: FIRST, count: 1, tainted: Cores::NONE }), Ok(()));
    assert_eq!((&monitor.seen.replies[..], &monitor.seen.unexported[..]), (&[Ok(()), Ok(())][..], &[FIRST][..]));
    assert_eq!(monitor.asks(revoke), Some(Ok(())), "nothing is left to do");
    let later = ObjectId { generation: 1, ..FIRST };
    assert_eq!(monitor.asks(Input::Revoke { token: Token(1), object: later }), refused(Error::UnknownObject));
    let remote = ObjectId { owner: core(1), ..FIRST };
    assert_eq!(monitor.asks(Input::Revoke { token: Token(1), object: remote }), refused(Error::NotOwner));
}

#[test]
fn returned_memory_is_checked() {
    let mut monitor = Monitor::new();
    let memory = monitor.lends(1, 0, MEMORY);
    let frame = monitor.lends(1, 1, FRAME);
    let give_back = |object| Input::GiveBack { token: Token(0), object };
    assert_eq!(monitor.asks(give_back(FIRST)), refused(Error::UnknownObject));
    assert_eq!(monitor.asks(give_back(frame)), refused(Error::NotBorrowed));
    monitor.seen.kernel = Err(Error::InUse);
    assert_eq!(monitor.asks(give_back(memory)), refused(Error::InUse));
    monitor.seen.kernel = Ok(());
    let part = Shape { kind: Kind::Frame, bytes: 0x1000, ..MEMORY };
    assert_eq!(monitor.sends(Sent::Own(part), 1), None);
    assert_eq!(monitor.asks(give_back(memory)), refused(Error::InUse), "a part of it is on another core");
    assert_eq!(monitor.hears(1, Message::Withdraw { object: memory, count: 1 }), Ok(()));
    assert_eq!(monitor.seen.sent, [(1, Message::Withdraw { object: FIRST, count: 1 })], "first what was made of it");
    assert_eq!(monitor.asks(give_back(memory)), refused(Error::BeingRevoked));
    assert_eq!(monitor.sends(Sent::Own(Shape { bytes: 0x2000, ..part }), 1), refused(Error::BeingRevoked));
    // The kernel reports a root as unused after its withdrawal has begun.
    assert_eq!(monitor.step(Input::Unused { object: memory }), Ok(()));
    assert_eq!((monitor.seen.sent.len(), monitor.machine.copies().count()), (0, 2));
    assert_eq!(monitor.step(Input::Deleted { object: memory }), Err(FaultKind::OutOfTurn));
    assert_eq!(monitor.step(Input::Unused { object: FIRST }), Err(FaultKind::UnknownObject));
    assert_eq!(monitor.machine.faults(), 2);
}

#[test]
fn requests_that_need_a_lost_core_are_refused() {
    let mut monitor = Monitor::new();
    let frame = monitor.lends(1, 1, FRAME);
    assert_eq!(monitor.sends(Sent::Remote(frame), 2), None);
    assert_eq!(monitor.asks(Input::Lost { core: core(1) }), refused(Error::OwnerLost));
    assert_eq!(monitor.seen.deleted, [frame]);
    assert_eq!(monitor.seen.sent, [], "something of its objects is here");
    // The kernel may report the root as unused while it deletes it.
    assert_eq!(monitor.step(Input::Unused { object: frame }), Ok(()));
    assert_eq!((monitor.seen.sent.len(), monitor.machine.copies().count()), (0, 1));
    assert_eq!(monitor.sends(Sent::Remote(frame), 2), refused(Error::BeingRevoked));
    assert_eq!(monitor.sends(Sent::Own(MEMORY), 1), refused(Error::CoreLost));
    assert_eq!(monitor.step(Input::Deleted { object: frame }), Ok(()));
    assert_eq!(monitor.seen.sent, [(2, Message::Gone { core: core(1), tainted: Cores::NONE })]);
    assert_eq!(monitor.hears(1, grant(frame, FRAME, 2)), Ok(()));
    assert_eq!(monitor.seen.imported, 1, "a lost core's message is not read");
    assert_eq!(monitor.sends(Sent::Own(MEMORY), 2), None);
    assert_eq!(monitor.asks(Input::Lost { core: core(2) }), refused(Error::CoreLost));
    assert_eq!(monitor.seen.unexported, [FIRST], "nobody is left who could have something of it");
    assert_eq!(monitor.step(Input::Lost { core: core(0) }), Err(FaultKind::UnknownCore));
}

#[test]
fn messages_that_cannot_be() {
    let mut monitor = Monitor::new();
    assert_eq!(monitor.sends(Sent::Own(FRAME), 1), None);
    let (request, requester) = (RequestId(0), core(0));
    let taken = |object, count| Message::Taken { object, count, requester, request, result: Ok(()) };
    let ask = |object, to, rights| Message::Ask { object, to: core(to), rights, request };
    let remote = ObjectId { owner: core(1), ..FIRST };
    let over = ObjectId { generation: 1, ..FIRST };
    let withdrawn = Message::Withdrawn { object: FIRST, count: 1, tainted: Cores::NONE };
    let faults = [
        (0, withdrawn, FaultKind::UnknownCore),
        (3, withdrawn, FaultKind::UnknownCore),
        (1, withdrawn, FaultKind::OutOfTurn),
        (2, withdrawn, FaultKind::NotHolder),
        (1, taken(FIRST, 0), FaultKind::WrongCount),
        (1, taken(FIRST, 2), FaultKind::WrongCount),
        (2, taken(FIRST, 1), FaultKind::NotHolder),
        (1, taken(over, 1), FaultKind::UnknownObject),
        (1, Message::Release { object: FIRST, count: 1 }, FaultKind::WrongCount),
        (1, Message::Release { object: FIRST, count: 0 }, FaultKind::WrongCount),
        (1, ask(remote, 2, READ), FaultKind::NotOwner),
        (1, ask(over, 2, READ), FaultKind::UnknownObject),
        (2, ask(FIRST, 2, READ), FaultKind::NotHolder),
        (1, ask(FIRST, 2, Rights::WRITE), FaultKind::TooManyRights),
        (1, ask(FIRST, 1, READ), FaultKind::OutOfTurn),
        (1, ask(FIRST, 3, READ), FaultKind::UnknownCore),
        (1, grant(FIRST, FRAME, 1), FaultKind::NotOwner),
        (1, grant(remote, Shape { bytes: 0, ..FRAME }, 1), FaultKind::WrongShape),
        (2, Message::Withdraw { object: remote, count: 1 }, FaultKind::NotOwner),
        (1, Message::Reply { object: remote, to: core(2), request, result: Ok(()) }, FaultKind::UnknownRequest),
        (1, Message::Gone { core: core(1), tainted: Cores::NONE }, FaultKind::OutOfTurn),
        (1, Message::Gone { core: core(9), tainted: Cores::NONE }, FaultKind::UnknownCore),
        (1, Message::Gone { core: core(2), tainted: Cores(8) }, FaultKind::UnknownCore),
    ];
    let before = monitor.machine.exports().map(|(object, export)| (object, *export)).collect::<Vec<_>>();
    for (from, message, why) in faults {
        assert_eq!(monitor.hears(from, message), Err(why), "{message:?} from {from}");
        assert_eq!(monitor.seen.replies, []);
    }
    assert_eq!(monitor.machine.faults(), faults.len() as u64);
    assert!(monitor.machine.exports().map(|(object, export)| (object, *export)).eq(before));
    assert_eq!(monitor.machine.copies().count(), 0);
    assert_eq!(monitor.hears(1, taken(FIRST, 1)), Ok(()));
    assert_eq!(monitor.seen.replies, [Ok(())]);
    assert_eq!(monitor.hears(1, taken(FIRST, 1)), Err(FaultKind::WrongCount), "again");
}

/// Checks that one core's requests cannot fill the channels of others.
#[test]
fn a_holder_that_asks_too_much() {
    let mut monitor = Monitor::new();
    assert_eq!(monitor.sends(Sent::Own(FRAME), 1), None);
    let ask = Message::Ask { object: FIRST, to: core(2), rights: READ, request: RequestId(0) };
    for _ in 0..LIMITS.requests {
        assert_eq!(monitor.hears(1, ask), Ok(()));
        assert!(matches!(monitor.seen.sent[..], [(2, Message::Grant { .. })]));
    }
    assert_eq!(monitor.hears(1, ask), Ok(()));
    let [(1, Message::Reply { result, .. })] = monitor.seen.sent[..] else { panic!("{:?}", monitor.seen.sent) };
    assert_eq!(result, Err(Error::TooManyRequests));
    let taken =
        |count| Message::Taken { object: FIRST, count, requester: core(1), request: RequestId(0), result: Ok(()) };
    assert_eq!(monitor.hears(2, taken(1)), Ok(()));
    assert_eq!(monitor.hears(1, ask), Ok(()));
    assert!(matches!(monitor.seen.sent[..], [(2, Message::Grant { count: 4, .. })]));
}
