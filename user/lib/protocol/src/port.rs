//! Port of a server: replying to the last request, waiting for the next, and slots for received capabilities.
//!
//! A message is received into the port and stays there until the next, because it is large: copying it costs more than
//! everything else that is done for a request.
//!
//! ```text
//! loop {                                     plain: port.serve(&mut server, Clock::dispatch)
//!     match port.next(wait) {
//!         Event::Request => port.carry_out(|request, context, reply| …::dispatch(…)),
//!         Event::Signal(bits) | Event::Nothing => …
//!     }
//! }
//! ```

use core::cell::Cell;

use tench_abi::message::MAX_CAPS;
use tench_abi::power::Powers;
use tench_sys::{
    Cap, CapAddress, Endpoint, Error, Message, OWN_CSPACE, Received, Wait, first_offered_slot, offer_slots,
};

use crate::replies::{self, Pending, Replies, Waiter};
use crate::shared::Attachments;
use crate::wire::{Encode, KindOf, own_kind_of};
use crate::{Code, DONE, Rejection};

/// The client of a request: the process in the badge of the capability that was used, and its family. The process
/// server gives each process capabilities with both in their badges.
pub use tench_abi::power::Client as Caller;

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Flow {
    /// The server replies now.
    Reply,
    /// The server replies later, or never.
    Later,
}

/// Additional arguments of a method.
#[derive(Debug)]
pub struct Context<'a> {
    /// The client of the request.
    pub caller: Caller,
    /// Powers of the capability that was used, beyond what every client may do.
    pub powers: Powers,
    /// Bit set of the received capabilities that the server keeps.
    pub kept: Cell<u8>,
    /// The server's reply objects.
    pub replies: &'a mut Replies,
    /// Function that returns the kinds of received capabilities.
    pub kind_of: KindOf,
    /// The memory that the server shares with its callers, if it does.
    pub attachments: Option<&'a mut dyn Attachments>,
}

impl<'a> Context<'a> {
    /// Returns the context of a request with this badge.
    pub const fn new(badge: u64, replies: &'a mut Replies) -> Context<'a> {
        let (caller, powers) = (Caller::of_badge(badge), Powers::of_badge(badge));
        Context { caller, powers, kept: Cell::new(0), replies, kind_of: own_kind_of, attachments: None }
    }
}

/// Event that a port returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Event {
    /// A request has arrived; the server passes it to [`carry_out`](Port::carry_out).
    Request,
    /// Bits of the bound notification were signalled.
    Signal(u64),
    /// The deadline passed, or the caller has gone.
    Nothing,
}

/// Slots of a server in which capabilities arrive.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    /// Takes an empty slot.
    pub take: fn() -> Option<CapAddress>,
    /// Deletes the capability in a slot, in parts, and frees the slot.
    pub delete: fn(CapAddress),
    /// Deletes a part of the capabilities that could not be deleted at once.
    pub delete_more: fn(),
    /// Maximum number of capabilities in a request.
    pub count: usize,
}

impl Slots {
    /// Slots of a server that receives no capabilities.
    pub const NONE: Slots = Slots { take: || None, delete: |_| {}, delete_more: || {}, count: 0 };
}

/// A server's endpoint with everything needed to receive there.
#[derive(Debug)]
pub struct Port {
    endpoint: Cap<Endpoint>,
    /// The server's reply objects.
    pub replies: Replies,
    slots: Slots,
    incoming: [Option<CapAddress>; MAX_CAPS],
    /// Set if fewer slots are on offer than a request may have capabilities.
    is_short: bool,
    /// The first of the slots offered last.
    offered: CapAddress,
    /// The message received last.
    received: Received,
    /// Set if the message received last is a request that has not been carried out yet.
    is_request: bool,
    reply: Message,
    flow: Flow,
    /// Number of replies sent with another reply object than the bound one although that was free.
    detours: u32,
}

/// Number of preemption points for deleting one capability received with a request, before the rest is left for later.
const PART: u64 = 4;

/// Number of replies with another reply object after which a system call to return to the bound one is worth its cost.
const DETOURS: u32 = 4;

impl Port {
    /// Returns the port of a server that receives at this endpoint.
    pub const fn new(endpoint: Cap<Endpoint>, replies: Replies, slots: Slots) -> Port {
        Port {
            endpoint,
            replies,
            slots,
            incoming: [None; MAX_CAPS],
            is_short: slots.count > 0,
            offered: CapAddress::NULL,
            received: Received::new(),
            is_request: false,
            reply: Message::new(DONE),
            flow: Flow::Later,
            detours: 0,
        }
    }

    /// Replies to the last request, if a reply is due, and waits for the next.
    #[inline(always)]
    pub fn next(&mut self, wait: Wait) -> Event {
        // An offer stands until capabilities arrive.
        if self.slots.count > 0 && (self.is_short || first_offered_slot() != self.offered) {
            self.offer();
        }
        let received = if wait.is_forever() && self.flow == Flow::Reply && self.replies.is_bound_current() {
            self.flow = Flow::Later;
            self.endpoint.reply_receive_into(&self.reply, Wait::FOREVER, &mut self.received)
        } else {
            self.receive(wait)
        };
        let event = match received {
            Ok(()) if self.received.is_notification() => Event::Signal(self.received.badge()),
            Ok(()) => Event::Request,
            Err(_) => Event::Nothing,
        };
        self.is_request = event == Event::Request;
        event
    }

    /// Replies and receives in the less common cases.
    #[inline(never)]
    fn receive(&mut self, wait: Wait) -> Result<(), Error> {
        if self.replies.can_use_bound() {
            self.return_to_bound();
        }
        let wait = self.replies.wait(wait);
        match core::mem::replace(&mut self.flow, Flow::Later) {
            Flow::Reply => self.endpoint.reply_receive_into(&self.reply, wait, &mut self.received),
            Flow::Later => self.endpoint.receive_into(wait, &mut self.received),
        }
    }

    /// Receives with the bound reply object again: at once if no reply is due, otherwise as soon as it is clear that
    /// the server replies with the object with which it received.
    #[cold]
    fn return_to_bound(&mut self) {
        if self.flow == Flow::Reply {
            self.detours += 1;
            if self.detours < DETOURS {
                return;
            }
            self.flow = Flow::Later;
            // The caller may have given up.
            let _ = self.replies.current().reply(&self.reply);
        }
        self.detours = 0;
        self.replies.use_bound();
    }

    /// Returns the request that has arrived and was not carried out yet.
    pub fn request(&self) -> Option<&Received> {
        self.is_request.then_some(&self.received)
    }

    /// Carries out the request that has arrived: `dispatch` writes its reply. Received capabilities that are not kept
    /// are deleted. Does nothing if no request has arrived.
    #[inline]
    pub fn carry_out(&mut self, dispatch: impl FnOnce(&Received, &mut Context<'_>, &mut Message) -> Flow) {
        self.carry_out_with(None, dispatch);
    }

    /// As [`carry_out`](Self::carry_out), for a server that shares memory with its callers.
    #[inline]
    pub fn carry_out_sharing(
        &mut self,
        attachments: &mut dyn Attachments,
        dispatch: impl FnOnce(&Received, &mut Context<'_>, &mut Message) -> Flow,
    ) {
        self.carry_out_with(Some(attachments), dispatch);
    }

    #[inline]
    fn carry_out_with(
        &mut self,
        attachments: Option<&mut dyn Attachments>,
        dispatch: impl FnOnce(&Received, &mut Context<'_>, &mut Message) -> Flow,
    ) {
        if !core::mem::take(&mut self.is_request) {
            return;
        }
        let request = &self.received;
        let mut context = Context::new(request.badge(), &mut self.replies);
        if let Some(attachments) = attachments {
            context.attachments = Some(attachments);
        }
        self.flow = dispatch(request, &mut context, &mut self.reply);
        if self.is_short && self.flow == Flow::Reply && Rejection::BadArguments.is(&self.reply) {
            // A capability may be missing because there was no slot for it, which is not the client's fault.
            self.flow = Rejection::Busy.write(&mut self.reply);
        }
        let kept = context.kept.get();
        if request.caps().is_empty() {
            return;
        }
        (self.slots.delete_more)();
        for (index, cap) in request.caps().iter().enumerate() {
            let is_kept = kept >> index & 1 != 0;
            // The capability is there and belongs to the server. It may be the last one to a large object.
            let is_left = !is_kept && OWN_CSPACE.delete_part_at(*cap, PART) == Err(Error::Unfinished);
            if is_kept || is_left {
                self.incoming.iter_mut().filter(|slot| **slot == Some(*cap)).for_each(|slot| *slot = None);
            }
            if is_left {
                (self.slots.delete)(*cap);
            }
        }
    }

    /// Replies to a pending request: together with the next receive, unless another reply is due then. A caller that
    /// has gone gets no reply.
    pub fn finish<T: Encode, E: Code>(&mut self, pending: Pending<T, E>, result: &Result<T, E>) {
        match self.flow {
            Flow::Reply => drop(self.replies.send(pending, result)),
            Flow::Later => {
                self.replies.make_current(pending);
                replies::write(result, &mut self.reply);
                self.flow = Flow::Reply;
            }
        }
    }

    /// Replies to a waiter, as [`finish`](Self::finish) does.
    pub fn finish_waiter<R: ?Sized>(&mut self, waiter: Waiter<R>, outcome: &R) {
        match self.flow {
            Flow::Reply => drop(self.replies.send_to(waiter, outcome)),
            Flow::Later => {
                waiter.write(outcome, &mut self.reply);
                self.replies.make_current(waiter);
                self.flow = Flow::Reply;
            }
        }
    }

    /// Closes the port: replies to the last request, if a reply is due, and returns the slots.
    pub fn close(&mut self) -> impl IntoIterator<Item = CapAddress> + use<> {
        if core::mem::replace(&mut self.flow, Flow::Later) == Flow::Reply {
            // The caller may have given up.
            let _ = self.replies.current().reply(&self.reply);
        }
        offer_slots(&[]);
        core::mem::take(&mut self.incoming).into_iter().flatten()
    }

    /// Serves for ever, for a server none of whose methods reply later.
    pub fn serve<S>(
        &mut self,
        server: &mut S,
        dispatch: fn(&mut S, &Received, &mut Context<'_>, &mut Message) -> Flow,
    ) -> ! {
        loop {
            // Such a server ignores interrupts and deadlines.
            let _ = self.next(Wait::FOREVER);
            self.carry_out(|request, context, reply| dispatch(server, request, context, reply));
        }
    }

    /// Offers slots for capabilities of the next message. With fewer slots, fewer capabilities arrive.
    #[inline(never)]
    fn offer(&mut self) {
        if self.is_short {
            // Perhaps the capabilities that are being deleted occupy the slots.
            (self.slots.delete_more)();
        }
        let mut offered = [CapAddress::NULL; MAX_CAPS];
        let mut count = 0;
        for place in self.incoming.iter_mut().take(self.slots.count) {
            *place = place.or_else(self.slots.take);
            if let Some(slot) = *place {
                offered[count] = slot;
                count += 1;
            }
        }
        self.is_short = count < self.slots.count;
        self.offered = offered[0];
        offer_slots(&offered[..count]);
    }
}
