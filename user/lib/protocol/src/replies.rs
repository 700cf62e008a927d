//! Reply objects of a server that answers some requests later.
//!
//! A server receives with one reply object, its *current* one. To answer later it keeps that one, with the caller in it,
//! and receives with another. Objects that are done with are used again.

use arrayvec::ArrayVec;
use tench_sys::{Cap, Error, Reply, Wait};

/// The objects of one server, at most `N` of them beside the current one.
pub struct Replies<const N: usize> {
    /// The object that is bound to the thread.
    bound: Cap<Reply>,
    current: Cap<Reply>,
    spare: ArrayVec<Cap<Reply>, N>,
}

impl<const N: usize> Replies<N> {
    /// Begins with the object that is bound to the server's thread, which must be empty.
    pub const fn new(bound: Cap<Reply>) -> Replies<N> {
        Replies { bound, current: bound, spare: ArrayVec::new_const() }
    }

    /// The object to receive with.
    pub const fn current(&self) -> Cap<Reply> {
        self.current
    }

    /// How to receive the next message: with the current object. The bound one is not named, because only messages that
    /// name none take the kernel's fast path.
    pub fn wait(&self, wait: Wait) -> Wait {
        if self.current == self.bound { wait } else { wait.with_reply(self.current) }
    }

    /// Keeps the current object, with the caller in it, to answer later. `make` is asked for a new object if there is
    /// no spare one; if it fails, nothing changes.
    pub fn keep(&mut self, make: impl FnOnce() -> Result<Cap<Reply>, Error>) -> Result<Cap<Reply>, Error> {
        let next = match self.spare.pop() {
            Some(spare) => spare,
            None => make()?,
        };
        Ok(core::mem::replace(&mut self.current, next))
    }

    /// Makes an object that was kept the current one again, so that its caller is answered and the next message received
    /// with one system call. If there are `N` spare ones already, one is given back, for the caller to delete.
    pub fn make_current(&mut self, reply: Cap<Reply>) -> Option<Cap<Reply>> {
        let idle = core::mem::replace(&mut self.current, reply);
        self.release(idle)
    }

    /// Takes back an object whose caller was answered, or is gone. If there are `N` spare ones already it is given
    /// back, for the caller to delete.
    pub fn release(&mut self, reply: Cap<Reply>) -> Option<Cap<Reply>> {
        self.spare.try_push(reply).err().map(|error| error.element())
    }
}

#[cfg(test)]
mod tests {
    use tench_sys::CapAddress;

    use super::*;

    fn object(number: u32) -> Cap<Reply> {
        Cap::new(CapAddress(number))
    }

    #[test]
    fn kept_objects_are_replaced_and_used_again() {
        let mut replies: Replies<1> = Replies::new(object(1));
        assert_eq!(replies.keep(|| Err(Error::OutOfMemory)), Err(Error::OutOfMemory));
        assert_eq!(replies.current(), object(1));
        assert_eq!(replies.keep(|| Ok(object(2))), Ok(object(1)));
        assert_eq!(replies.current(), object(2));
        assert_eq!(replies.wait(Wait::FOREVER), Wait::FOREVER.with_reply(object(2)));
        assert_eq!(replies.release(object(1)), None);
        assert_eq!(replies.release(object(7)), Some(object(7)));
        assert_eq!(replies.keep(|| unreachable!()), Ok(object(2)));
        assert_eq!(replies.wait(Wait::FOREVER), Wait::FOREVER);
        assert_eq!(replies.make_current(object(2)), None);
        assert_eq!(replies.current(), object(2));
        assert_eq!(replies.keep(|| unreachable!()), Ok(object(2)));
        assert_eq!(replies.current(), object(1));
    }
}
