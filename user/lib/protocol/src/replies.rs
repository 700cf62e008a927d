//! Reply objects of a server that replies to some requests later.
//!
//! A server receives with one reply object, its *current* one. To reply later it keeps that object, which holds the
//! caller, and receives with another. Released objects are reused.

use core::marker::PhantomData;

use arrayvec::ArrayVec;
use tench_sys::{Cap, Error, Message, Reply, Wait};

use crate::wire::Encode;
use crate::{Code, DONE};

/// Maximum number of spare objects.
const MAX_SPARE: usize = 64;

/// Functions that make and delete reply objects.
#[derive(Clone, Copy, Debug)]
pub struct Factory {
    /// Makes an empty reply object.
    pub make: fn() -> Result<Cap<Reply>, Error>,
    /// Deletes a released reply object.
    pub delete: fn(Cap<Reply>),
    /// Refuses the caller held in a reply object, if any.
    pub refuse: fn(Cap<Reply>),
}

impl Factory {
    /// Factory of a server that replies to everything at once.
    pub const NONE: Factory = Factory { make: || Err(Error::NoReplyObject), delete: |_| {}, refuse: |_| {} };
}

/// The reply objects of one server.
#[derive(Debug)]
pub struct Replies {
    /// The reply object bound to the thread.
    bound: Cap<Reply>,
    /// Set if the bound object is empty and not current. It is then a spare object, though not in `spare`.
    is_bound_spare: bool,
    current: Cap<Reply>,
    spare: ArrayVec<Cap<Reply>, MAX_SPARE>,
    factory: Factory,
}

/// A pending request: the right to reply to it later. Dropping it leaves the caller waiting until the server ends; a
/// server keeps it, [replies](Replies::send), or [forgets](Replies::forget) it when the caller has gone.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "somebody waits for a reply"]
pub struct Pending<T, E> {
    reply: Cap<Reply>,
    result: PhantomData<fn() -> (T, E)>,
}

impl<T, E> Pending<T, E> {
    /// Returns the pending request of the caller held in this reply object. (Tests make such requests out of nothing.)
    pub const fn new(reply: Cap<Reply>) -> Pending<T, E> {
        Pending { reply, result: PhantomData }
    }

    /// Returns the caller as a waiter, whose reply `write` makes from an `R`.
    pub const fn waiter<R: ?Sized>(self, write: fn(&R, &mut Message)) -> Waiter<R> {
        Waiter { reply: self.reply, write }
    }
}

/// A caller whose reply is made from an `R`, whatever the reply's own type. So a server can keep threads that await the
/// same event, but expect replies of different types, in one list.
#[derive(Debug)]
#[must_use = "somebody waits for a reply"]
pub struct Waiter<R: ?Sized> {
    reply: Cap<Reply>,
    write: fn(&R, &mut Message),
}

impl<R: ?Sized> Waiter<R> {
    /// Replaces the message by the reply that is made from `outcome`.
    pub(crate) fn write(&self, outcome: &R, message: &mut Message) {
        (self.write)(outcome, message);
    }
}

/// A caller that is held in a reply object.
pub trait Held {
    /// Returns the reply object.
    fn reply(&self) -> Cap<Reply>;
}

impl<T, E> Held for Pending<T, E> {
    fn reply(&self) -> Cap<Reply> {
        self.reply
    }
}

impl<R: ?Sized> Held for Waiter<R> {
    fn reply(&self) -> Cap<Reply> {
        self.reply
    }
}

/// Replaces the message by a reply.
#[inline]
pub fn write<T: Encode, E: Code>(result: &Result<T, E>, message: &mut Message) {
    match result {
        Ok(value) => {
            message.restart(DONE);
            value.encode(message);
        }
        Err(error) => message.restart(error.code()),
    }
}

impl Replies {
    /// Returns the reply objects of a server to whose thread `bound` is bound; it must be empty.
    pub const fn new(bound: Cap<Reply>, factory: Factory) -> Replies {
        Replies { bound, is_bound_spare: false, current: bound, spare: ArrayVec::new_const(), factory }
    }

    /// Returns the object with which to receive.
    pub const fn current(&self) -> Cap<Reply> {
        self.current
    }

    /// Returns the options for receiving the next message with the current object. The bound object is not named,
    /// because only messages that name none take the kernel's fast path.
    #[inline]
    pub fn wait(&self, wait: Wait) -> Wait {
        if self.current == self.bound { wait } else { wait.with_reply(self.current) }
    }

    /// Keeps the current object, with its caller, for a later reply. Changes nothing if there is no spare object and
    /// none can be made.
    pub fn keep<T, E>(&mut self) -> Result<Pending<T, E>, Error> {
        let next = if core::mem::take(&mut self.is_bound_spare) {
            self.bound
        } else if let Some(spare) = self.spare.pop() {
            spare
        } else {
            (self.factory.make)()?
        };
        Ok(Pending::new(core::mem::replace(&mut self.current, next)))
    }

    /// Returns whether the bound object is the current one.
    #[inline(always)]
    pub(crate) fn is_bound_current(&self) -> bool {
        self.current == self.bound
    }

    /// Returns whether the bound object could be the current one, and is not.
    #[inline]
    pub(crate) const fn can_use_bound(&self) -> bool {
        self.is_bound_spare
    }

    /// Makes the bound object current in place of an empty one, if it is empty itself, because requests are cheaper
    /// with it.
    pub(crate) fn use_bound(&mut self) {
        if core::mem::take(&mut self.is_bound_spare) {
            let idle = core::mem::replace(&mut self.current, self.bound);
            self.release(idle);
        }
    }

    /// Replies to a pending request. Fails with `NoCaller` if the caller has gone.
    pub fn send<T: Encode, E: Code>(&mut self, pending: Pending<T, E>, result: &Result<T, E>) -> Result<(), Error> {
        let mut message = Message::new(DONE);
        write(result, &mut message);
        self.deliver(pending.reply, &message)
    }

    /// Replies to a waiter. Fails with `NoCaller` if the waiter has gone.
    pub fn send_to<R: ?Sized>(&mut self, waiter: Waiter<R>, outcome: &R) -> Result<(), Error> {
        let mut message = Message::new(DONE);
        waiter.write(outcome, &mut message);
        self.deliver(waiter.reply, &message)
    }

    fn deliver(&mut self, reply: Cap<Reply>, message: &Message) -> Result<(), Error> {
        let delivered = reply.reply(message);
        self.release(reply);
        delivered
    }

    /// Gives up the reply to a pending request whose caller has gone, or whose process has ended. A thread of another
    /// process may have made the request with that process's capability and still wait: it is refused. Otherwise the
    /// object would not be empty, and a server that receives with it would receive nothing.
    pub fn forget(&mut self, pending: impl Held) {
        (self.factory.refuse)(pending.reply());
        self.release(pending.reply());
    }

    /// Makes a pending request current again: its reply goes with the next reply and receive, without another system
    /// call.
    pub fn make_current(&mut self, pending: impl Held) {
        let idle = core::mem::replace(&mut self.current, pending.reply());
        self.release(idle);
    }

    /// Takes back an empty object.
    fn release(&mut self, reply: Cap<Reply>) {
        if reply == self.bound {
            self.is_bound_spare = true;
        } else if let Err(surplus) = self.spare.try_push(reply) {
            (self.factory.delete)(surplus.element());
        }
    }
}

/// Argument of a method that may reply later.
#[derive(Debug)]
pub struct Later<'a, T, E> {
    replies: &'a mut Replies,
    result: PhantomData<fn() -> (T, E)>,
}

impl<'a, T, E> Later<'a, T, E> {
    /// Returns the argument for the request at hand.
    #[inline(always)]
    pub const fn new(replies: &'a mut Replies) -> Later<'a, T, E> {
        Later { replies, result: PhantomData }
    }

    /// Keeps the request for a later reply. Changes nothing if there is not enough memory for that.
    pub fn keep(self) -> Result<Pending<T, E>, Error> {
        self.replies.keep()
    }

    /// Returns the server's reply objects.
    pub fn replies(self) -> &'a mut Replies {
        self.replies
    }

    /// Returns the server's reply objects, to reply to or forget other requests.
    pub const fn others(&mut self) -> &mut Replies {
        self.replies
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicU32, Ordering};

    use tench_random::Random;
    use tench_sys::{CapAddress, Received};

    use super::*;

    fn object(number: u32) -> Cap<Reply> {
        Cap::new(CapAddress(number))
    }

    #[test]
    fn kept_objects_are_replaced_and_used_again() {
        static MADE: AtomicU32 = AtomicU32::new(1);
        let make = || match MADE.fetch_add(1, Ordering::Relaxed) {
            1 => Err(Error::OutOfMemory),
            number => Ok(object(number)),
        };
        let mut replies = Replies::new(object(1), Factory { make, delete: |_| unreachable!(), refuse: |_| {} });
        assert_eq!(replies.keep::<(), Never>(), Err(Error::OutOfMemory));
        assert_eq!(replies.current(), object(1));
        let first = replies.keep::<(), Never>().unwrap();
        assert_eq!((&first, replies.current()), (&Pending::new(object(1)), object(2)));
        assert_eq!(replies.wait(Wait::FOREVER), Wait::FOREVER.with_reply(object(2)));
        replies.forget(first);
        let second = replies.keep::<(), Never>().unwrap();
        assert_eq!((&second, replies.current()), (&Pending::new(object(2)), object(1)));
        assert_eq!(replies.wait(Wait::FOREVER), Wait::FOREVER);
        replies.make_current(second);
        assert_eq!(replies.current(), object(2));
    }

    #[test]
    fn a_waiter_gets_the_reply_that_it_expects() {
        let number = Pending::<u64, Never>::new(object(1))
            .waiter(|words: &[u64], message| _ = message.extend(&[words.iter().sum()]));
        let nothing = Pending::<(), Never>::new(object(2)).waiter(|_: &[u64], _| {});
        for (waiter, held, expected) in [(number, object(1), &[7][..]), (nothing, object(2), &[])] {
            let mut message = Message::new(DONE);
            waiter.write(&[3, 4], &mut message);
            let received = Received::from_message(&message, 0);
            assert_eq!((waiter.reply(), received.words()), (held, expected));
        }
    }

    #[test]
    fn the_bound_object_is_used_again_as_soon_as_it_is_empty() {
        static MADE: AtomicU32 = AtomicU32::new(2);
        let make = || Ok(object(MADE.fetch_add(1, Ordering::Relaxed)));
        let mut replies = Replies::new(object(1), Factory { make, delete: |_| unreachable!(), refuse: |_| {} });
        let (first, second) = (replies.keep::<(), Never>().unwrap(), replies.keep::<(), Never>().unwrap());
        assert_eq!((replies.current(), replies.can_use_bound()), (object(3), false));
        replies.use_bound();
        assert_eq!(replies.current(), object(3), "somebody waits in the bound one");
        replies.forget(first);
        assert!(replies.can_use_bound());
        replies.use_bound();
        assert_eq!((replies.current(), replies.can_use_bound()), (object(1), false));
        replies.make_current(second);
        assert_eq!((replies.current(), replies.can_use_bound()), (object(2), true));
        let third = replies.keep::<(), Never>().unwrap();
        assert_eq!((replies.current(), &third), (object(1), &Pending::new(object(2))));
        replies.forget(third);
        assert_eq!(replies.keep::<(), Never>(), Ok(Pending::new(object(1))));
        assert_eq!((replies.current(), MADE.load(Ordering::Relaxed)), (object(2), 4), "spare ones are used");
    }

    #[test]
    fn a_forgotten_caller_is_refused() {
        static REFUSED: AtomicU32 = AtomicU32::new(0);
        let refuse = |reply: Cap<Reply>| REFUSED.store(reply.address().0, Ordering::Relaxed);
        let mut replies =
            Replies::new(object(1), Factory { make: || Ok(object(2)), delete: |_| unreachable!(), refuse });
        let pending = replies.keep::<(), Never>().unwrap();
        assert_eq!(REFUSED.load(Ordering::Relaxed), 0);
        replies.forget(pending);
        assert_eq!(REFUSED.load(Ordering::Relaxed), 1);
    }

    /// Checks that each object is either current, or spare, or holds a caller, and only one of these.
    fn check_invariants(replies: &Replies, pending: &[Pending<(), Never>], made: u32) {
        let bound = replies.is_bound_spare.then_some(replies.bound);
        let waiting = pending.iter().map(|pending| pending.reply);
        let all: ArrayVec<_, 64> =
            waiting.chain(replies.spare.iter().copied()).chain(bound).chain([replies.current]).collect();
        assert!(!replies.spare.contains(&replies.bound));
        assert_eq!(all.len() as u32, made);
        for number in 1..=made {
            assert!(all.contains(&object(number)), "{number} of {made} is lost");
        }
    }

    #[test]
    fn no_object_is_lost_or_used_twice() {
        static MADE: AtomicU32 = AtomicU32::new(1);
        let make = || Ok(object(MADE.fetch_add(1, Ordering::Relaxed) + 1));
        let mut replies = Replies::new(object(1), Factory { make, delete: |_| unreachable!(), refuse: |_| {} });
        let mut pending = ArrayVec::<Pending<(), Never>, 40>::new();
        let mut random = Random::new(1);
        for _ in 0..20_000 {
            match random.below(16) {
                0..=6 if !pending.is_full() => pending.push(replies.keep().unwrap()),
                7..=10 if !pending.is_empty() => {
                    let one = pending.swap_remove(random.index(pending.len()));
                    replies.forget(one);
                }
                11..=13 if !pending.is_empty() => {
                    let one = pending.swap_remove(random.index(pending.len()));
                    replies.make_current(one);
                }
                _ => replies.use_bound(),
            }
            check_invariants(&replies, &pending, MADE.load(Ordering::Relaxed));
            let is_bound_free = pending.iter().all(|pending| pending.reply != object(1));
            assert_eq!(is_bound_free, replies.current() == object(1) || replies.can_use_bound());
        }
        assert!(MADE.load(Ordering::Relaxed) > 20, "many waited at a time");
    }

    /// An error that cannot happen.
    type Never = ();
}
