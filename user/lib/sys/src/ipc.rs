//! Endpoints, reply objects and notifications.

use tench_abi::message::REGISTER_WORDS;
use tench_abi::{Error, Operation, Tag};

use crate::cap::{Cap, objects};
use crate::message::{Carried, Message, Received, Words, stage_caps};
use crate::raw::{self, ResultRegisters};
use crate::time::Instant;

objects! {
    /// A rendezvous point for messages.
    Endpoint;
    /// The object that holds a caller to whom a server has to reply.
    Reply;
    /// A word of bits that can be set without waiting, and for which threads can wait.
    Notification;
}

/// Options of a wait, as the system calls take them: a deadline and a reply object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// Flags of the tag that say which of the following fields are used.
    flags: u64,
    reply: u64,
    deadline: u64,
}

impl Wait {
    /// Waits for ever, with the bound reply object.
    pub const FOREVER: Wait = Wait { flags: 0, reply: 0, deadline: 0 };

    /// Waits until a time; then the wait ends with `TimedOut`.
    pub const fn until(deadline: Instant) -> Wait {
        Wait { flags: Tag::DEADLINE, reply: 0, deadline: deadline.ticks() }
    }

    /// Waits until a time at which a server has something urgent to do. If a request comes earlier and the deadline
    /// passes while the server carries it out, the server's own priority counts until it receives again.
    pub const fn alarm(deadline: Instant) -> Wait {
        Wait { flags: Tag::DEADLINE | Tag::ALARM, reply: 0, deadline: deadline.ticks() }
    }

    /// Returns this wait with `reply` in place of the bound reply object.
    pub const fn with_reply(self, reply: Cap<Reply>) -> Wait {
        Wait { flags: self.flags | Tag::REPLY, reply: reply.raw(), deadline: self.deadline }
    }

    /// Returns whether the wait is for ever, with the bound reply object.
    #[inline(always)]
    pub const fn is_forever(self) -> bool {
        self.flags == 0
    }
}

/// Makes a system call that sends a message and waits for ever, with the bound reply object.
#[inline(always)]
fn send_plain(operation: Operation, cap: u64, message: &Message) -> ResultRegisters {
    message.stage();
    let [a, b, c, d, e, f, g, h] = *message.registers();
    // SAFETY: a message changes only IPC buffers and offered slots.
    unsafe { raw::call8(operation, cap, message.tag().0, a, b, c, d, e, f, g, h) }
}

/// As [`send_plain`], but receives into `received`. After an error its first words may have changed.
#[inline(always)]
fn exchange(operation: Operation, cap: u64, message: &Message, received: &mut Received) -> Result<(), Error> {
    message.stage();
    // SAFETY: a message changes only IPC buffers and offered slots, and the received words go to `received`.
    let (code, tag, badge) =
        unsafe { raw::exchange(operation, cap, message.tag().0, message.registers(), received.registers_mut()) };
    if code != 0 {
        return Err(raw::error(code));
    }
    received.complete(Tag(tag), badge);
    Ok(())
}

/// Makes a system call that sends a message.
#[inline(always)]
fn send(operation: Operation, cap: u64, message: &Message, wait: Wait) -> ResultRegisters {
    if wait.is_forever() { send_plain(operation, cap, message) } else { send_with(operation, cap, message, wait) }
}

/// Makes a system call that sends a message and has wait options.
#[inline]
fn send_with(
    operation: Operation,
    cap: u64,
    message: &Message,
    Wait { flags, reply, deadline }: Wait,
) -> ResultRegisters {
    message.stage();
    let tag = message.tag().with(flags).0;
    let [a, b, c, d, e, f, g, h] = *message.registers();
    // SAFETY: a message changes only IPC buffers and offered slots.
    unsafe { raw::call8_with(operation, cap, tag, a, b, c, d, e, f, g, h, reply, deadline) }
}

/// Makes a system call that only receives.
#[inline]
fn receive(operation: Operation, cap: u64, wait: Wait) -> ResultRegisters {
    let Wait { flags, reply, deadline } = wait;
    if wait.is_forever() {
        // SAFETY: a message changes only IPC buffers and offered slots.
        unsafe { raw::call0(operation, cap, 0) }
    } else {
        // SAFETY: as above.
        unsafe { raw::call0_with(operation, cap, flags, reply, deadline) }
    }
}

/// Defines the calls whose messages travel in registers alone.
macro_rules! short {
    ($($call:ident $reply_receive:ident $length:literal ($($word:ident),*);)*) => {
        /// Calls whose messages travel in registers alone. The tag is made at compile time if the label is constant.
        impl Cap<Endpoint> {
            $(
                #[doc = concat!("Calls with ", stringify!($length), " words, and waits for the reply.")]
                /// Rights and errors as for [`call`](Self::call).
                #[inline(always)]
                #[allow(clippy::too_many_arguments)]
                pub fn $call(self, label: u64, $($word: u64),*) -> Result<Words, Error> {
                    let tag = Tag::new(label, $length).0;
                    // SAFETY: a message changes only IPC buffers and offered slots.
                    Ok(unsafe { raw::$call(Operation::Call, self.raw(), tag, $($word),*) }.check()?.into())
                }

                #[doc = concat!("Replies to the caller with ", stringify!($length), " words, and receives the next message.")]
                /// Rights and errors as for [`reply_receive`](Self::reply_receive).
                #[inline(always)]
                #[allow(clippy::too_many_arguments)]
                pub fn $reply_receive(self, label: u64, $($word: u64),*) -> Result<Words, Error> {
                    let tag = Tag::new(label, $length).0;
                    // SAFETY: a message changes only IPC buffers and offered slots.
                    Ok(unsafe { raw::$call(Operation::ReplyReceive, self.raw(), tag, $($word),*) }.check()?.into())
                }
            )*
        }
    };
}

short! {
    call0 reply_receive0 0 ();
    call1 reply_receive1 1 (a);
    call2 reply_receive2 2 (a, b);
    call3 reply_receive3 3 (a, b, c);
    call4 reply_receive4 4 (a, b, c, d);
    call5 reply_receive5 5 (a, b, c, d, e);
    call6 reply_receive6 6 (a, b, c, d, e, f);
    call7 reply_receive7 7 (a, b, c, d, e, f, g);
    call8 reply_receive8 8 (a, b, c, d, e, f, g, h);
}

impl Cap<Endpoint> {
    /// Calls with the first `length` (at most eight) words and with capabilities, for lengths and counts known only at
    /// run time.
    /// Rights and errors as for [`call`](Self::call).
    #[inline(always)]
    pub fn call_short(
        self,
        label: u64,
        length: usize,
        words: &[u64; REGISTER_WORDS],
        caps: &[Carried],
    ) -> Result<Words, Error> {
        if !caps.is_empty() {
            stage_caps(caps);
        }
        let tag = Tag::new(label, length.min(REGISTER_WORDS)).with_caps(caps.len()).0;
        let [a, b, c, d, e, f, g, h] = *words;
        // SAFETY: a message changes only IPC buffers and offered slots.
        Ok(unsafe { raw::call8(Operation::Call, self.raw(), tag, a, b, c, d, e, f, g, h) }.check()?.into())
    }

    /// Sends a message and waits for the reply.
    /// Rights: `WRITE` and `CALL`; `GRANT` to send capabilities. Errors: `MessageTooLong`, `NoIpcBuffer`, `Aborted`
    /// (the endpoint, the reply object or the server was deleted).
    #[inline]
    pub fn call(self, message: &Message) -> Result<Received, Error> {
        let result = send_plain(Operation::Call, self.raw(), message).check()?;
        Ok(Received::take(&result))
    }

    /// As [`call`](Self::call), with wait options. Fails with `TimedOut` if the deadline passes.
    #[inline]
    pub fn call_with(self, message: &Message, wait: Wait) -> Result<Received, Error> {
        let result = send(Operation::Call, self.raw(), message, wait).check()?;
        Ok(Received::take(&result))
    }

    /// As [`call`](Self::call), into an existing `received`. After an error, its words are undefined.
    #[inline]
    pub fn call_into(self, message: &Message, received: &mut Received) -> Result<(), Error> {
        exchange(Operation::Call, self.raw(), message, received)
    }

    /// As [`call_with`](Self::call_with), into an existing `received`, which an error leaves unchanged.
    #[inline(never)]
    pub fn call_into_with(self, message: &Message, wait: Wait, received: &mut Received) -> Result<(), Error> {
        received.fill(&send(Operation::Call, self.raw(), message, wait).check()?);
        Ok(())
    }

    /// Sends a message and waits until it is received. There is no reply.
    /// Rights: `WRITE`; `GRANT` to send capabilities. Errors: `CallsOnly`, `MessageTooLong`, `NoIpcBuffer`,
    /// `TimedOut`, `Aborted`.
    #[inline]
    pub fn send(self, message: &Message, wait: Wait) -> Result<(), Error> {
        send(Operation::Send, self.raw(), message, wait).done()
    }

    /// Sends a message if a receiver waits. Errors: as [`send`](Self::send), and `WouldBlock`.
    #[inline]
    pub fn try_send(self, message: &Message) -> Result<(), Error> {
        send(Operation::TrySend, self.raw(), message, Wait::FOREVER).done()
    }

    /// Waits for a message, or for a signal of the thread's bound notification.
    /// Rights: `READ`. Errors: `NoReplyObject`, `ReplyInUse`, `TimedOut`, `Aborted`.
    #[inline]
    pub fn receive(self, wait: Wait) -> Result<Received, Error> {
        let result = receive(Operation::Receive, self.raw(), wait).check()?;
        Ok(Received::take(&result))
    }

    /// As [`receive`](Self::receive), into an existing `received`, which an error leaves unchanged.
    #[inline(never)]
    pub fn receive_into(self, wait: Wait, received: &mut Received) -> Result<(), Error> {
        received.fill(&receive(Operation::Receive, self.raw(), wait).check()?);
        Ok(())
    }

    /// Receives a message or signal if there is one. Errors: as [`receive`](Self::receive), and `WouldBlock`.
    #[inline]
    pub fn try_receive(self, wait: Wait) -> Result<Received, Error> {
        let result = receive(Operation::TryReceive, self.raw(), wait).check()?;
        Ok(Received::take(&result))
    }

    /// As [`receive`](Self::receive), for messages of at most eight words and without capabilities.
    #[inline(always)]
    pub fn receive_words(self) -> Result<Words, Error> {
        Ok(receive(Operation::Receive, self.raw(), Wait::FOREVER).check()?.into())
    }

    /// Replies to the caller that the reply object holds, if any, and waits for the next message.
    /// Rights: `READ`. Errors: those of [`receive`](Self::receive), `MessageTooLong`, `NoIpcBuffer`.
    #[inline(always)]
    pub fn reply_receive(self, message: &Message, wait: Wait) -> Result<Received, Error> {
        let result = send(Operation::ReplyReceive, self.raw(), message, wait).check()?;
        Ok(Received::take(&result))
    }

    /// As [`reply_receive`](Self::reply_receive), into an existing `received`. After an error, its words are undefined.
    #[inline(always)]
    pub fn reply_receive_into(self, message: &Message, wait: Wait, received: &mut Received) -> Result<(), Error> {
        if !wait.is_forever() {
            return self.reply_receive_with(message, wait, received);
        }
        exchange(Operation::ReplyReceive, self.raw(), message, received)
    }

    /// Out of line, so that the rarer case is not repeated in every server loop.
    #[inline(never)]
    fn reply_receive_with(self, message: &Message, wait: Wait, received: &mut Received) -> Result<(), Error> {
        received.fill(&send(Operation::ReplyReceive, self.raw(), message, wait).check()?);
        Ok(())
    }
}

/// The reply object bound to the thread, wherever the kernel takes one.
pub const BOUND_REPLY: Cap<Reply> = Cap::new(tench_abi::CapAddress::NULL);

impl Cap<Reply> {
    /// Replies to the caller that this reply object holds ([`BOUND_REPLY`]: the thread's own).
    /// Rights: `WRITE`. Errors: `NoCaller`, `NoReplyObject`, `MessageTooLong`, `NoIpcBuffer`.
    #[inline]
    pub fn reply(self, message: &Message) -> Result<(), Error> {
        send(Operation::Reply, self.raw(), message, Wait::FOREVER).done()
    }
}

impl Cap<Notification> {
    /// Sets the bits of this capability's badge (bit 0 if the badge is 0), and wakes a thread that waits for them.
    /// Never waits.
    /// Rights: `WRITE`.
    #[inline]
    pub fn signal(self) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call0(Operation::Signal, self.raw(), 0) }.done()
    }

    /// Waits until a bit is set, and returns all bits, which become 0. Rights: `READ`. Errors: `Aborted`.
    #[inline]
    pub fn wait(self) -> Result<u64, Error> {
        Ok(receive(Operation::Receive, self.raw(), Wait::FOREVER).check()?.badge)
    }

    /// As [`wait`](Self::wait), with a deadline. Fails with `TimedOut` if it passes.
    #[inline]
    pub fn wait_until(self, deadline: Instant) -> Result<u64, Error> {
        Ok(receive(Operation::Receive, self.raw(), Wait::until(deadline)).check()?.badge)
    }

    /// Returns all bits, which become 0, if one is set. Errors: `WouldBlock`.
    #[inline]
    pub fn poll(self) -> Result<u64, Error> {
        Ok(receive(Operation::TryReceive, self.raw(), Wait::FOREVER).check()?.badge)
    }
}
