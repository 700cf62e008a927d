//! Where a server receives: answering the last request and waiting for the next, and slots for what arrives.
//!
//! A message is received into the port and stays there until the next, because it is large: moving it from hand to hand
//! costs more than everything else that is done for a request.
//!
//! ```text
//! loop {                                     plain: port.serve(&mut server, Clock::dispatch)
//!     match port.next(wait) {
//!         Event::Request => port.carry_out(|request, context, answer| …::dispatch(…)),
//!         Event::Signal(bits) | Event::Nothing => …
//!     }
//! }
//! ```

use core::cell::Cell;

use tench_abi::message::MAX_CAPS;
use tench_abi::power::Powers;
use tench_sys::{
    Cap, CapAddress, Endpoint, Error, Message, OWN_SPACE, Received, Wait, first_offered_slot, offer_slots,
};

use crate::replies::{self, Pending, Replies};
use crate::shared::Attachments;
use crate::wire::{Encode, KindOf, own_kind_of};
use crate::{Code, DONE, Rejection};

/// Who asks: the process of the badge of the capability that was used, and its family. The process server gives each
/// process capabilities that say both.
pub use tench_abi::power::Client as Caller;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Flow {
    /// It is answered now.
    Answer,
    /// It is answered later, or never.
    Later,
}

/// What a method can use besides its arguments.
#[derive(Debug)]
pub struct Context<'a> {
    /// Who asks.
    pub caller: Caller,
    /// What the capability permits that was used, besides what everybody's does.
    pub powers: Powers,
    /// Capabilities that the server keeps, a bit for each.
    pub kept: Cell<u8>,
    /// Reply objects.
    pub replies: &'a mut Replies,
    /// What capabilities that come along are for.
    pub kind_of: KindOf,
    /// The memory that the server shares with its callers, if it does.
    pub attachments: Option<&'a mut dyn Attachments>,
}

impl<'a> Context<'a> {
    /// Of a request with this badge.
    pub const fn new(badge: u64, replies: &'a mut Replies) -> Context<'a> {
        let (caller, powers) = (Caller::of_badge(badge), Powers::of_badge(badge));
        Context { caller, powers, kept: Cell::new(0), replies, kind_of: own_kind_of, attachments: None }
    }
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Event {
    /// A request has arrived: the port [carries it out](Port::carry_out).
    Request,
    /// Bits of the bound notification.
    Signal(u64),
    /// The time is up, or who asked has gone.
    Nothing,
}

/// Slots of a server in which capabilities arrive.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    /// Takes an empty slot.
    pub take: fn() -> Option<CapAddress>,
    /// Deletes what lies in a slot, in parts, and gives the slot back.
    pub delete: fn(CapAddress),
    /// Deletes a part of what could not be deleted at once.
    pub delete_more: fn(),
    /// How many capabilities a request may carry.
    pub count: usize,
}

impl Slots {
    /// Of a server that receives none.
    pub const NONE: Slots = Slots { take: || None, delete: |_| {}, delete_more: || {}, count: 0 };
}

/// Where a server receives.
#[derive(Debug)]
pub struct Port {
    endpoint: Cap<Endpoint>,
    /// Reply objects.
    pub replies: Replies,
    slots: Slots,
    incoming: [Option<CapAddress>; MAX_CAPS],
    /// Fewer slots are on offer than capabilities may come along.
    is_short: bool,
    /// The first of the slots that were offered last.
    offered: CapAddress,
    /// What was received last.
    received: Received,
    /// It is a request, and was not carried out yet.
    is_request: bool,
    answer: Message,
    flow: Flow,
    /// Answers that went with another reply object than the bound one, though that was free.
    detours: u32,
}

/// Windows that the kernel passes to delete one capability that came along with a request, before the rest is left for
/// later.
const PART: u64 = 4;

/// So many answers are sent with another reply object before it is worth a system call to return to the bound one.
const DETOURS: u32 = 4;

impl Port {
    /// A server that receives here.
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
            answer: Message::new(DONE),
            flow: Flow::Later,
            detours: 0,
        }
    }

    /// Answers the last request, if it is to be answered now, and waits for the next.
    #[inline(always)]
    pub fn next(&mut self, wait: Wait) -> Event {
        // An offer stands until capabilities arrive.
        if self.slots.count > 0 && (self.is_short || first_offered_slot() != self.offered) {
            self.offer();
        }
        let received = if wait.is_forever() && self.flow == Flow::Answer && self.replies.is_bound_current() {
            self.flow = Flow::Later;
            self.endpoint.reply_receive_into(&self.answer, Wait::FOREVER, &mut self.received)
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

    /// Answers and receives where anything is other than usual.
    #[inline(never)]
    fn receive(&mut self, wait: Wait) -> Result<(), Error> {
        if self.replies.can_use_bound() {
            self.return_to_bound();
        }
        let wait = self.replies.wait(wait);
        match core::mem::replace(&mut self.flow, Flow::Later) {
            Flow::Answer => self.endpoint.reply_receive_into(&self.answer, wait, &mut self.received),
            Flow::Later => self.endpoint.receive_into(wait, &mut self.received),
        }
    }

    /// Receives with the bound reply object again: at once if nothing is to be answered, otherwise when it has turned
    /// out that requests are answered in the object in which they arrive.
    #[cold]
    fn return_to_bound(&mut self) {
        if self.flow == Flow::Answer {
            self.detours += 1;
            if self.detours < DETOURS {
                return;
            }
            self.flow = Flow::Later;
            // Who asked may have given up.
            let _ = self.replies.current().reply(&self.answer);
        }
        self.detours = 0;
        self.replies.use_bound();
    }

    /// The request that has arrived and was not carried out yet.
    pub fn request(&self) -> Option<&Received> {
        self.is_request.then_some(&self.received)
    }

    /// Carries out the request that has arrived: `dispatch` writes its answer. What came along and is not kept is
    /// deleted. Where no request has arrived, nothing happens.
    #[inline]
    pub fn carry_out(&mut self, dispatch: impl FnOnce(&Received, &mut Context<'_>, &mut Message) -> Flow) {
        self.carry_out_with(None, dispatch);
    }

    /// The same for a server that shares memory with its callers.
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
        self.flow = dispatch(request, &mut context, &mut self.answer);
        if self.is_short && self.flow == Flow::Answer && Rejection::BadArguments.is(&self.answer) {
            // Perhaps something was missing for which there was no slot: that is no fault of the caller's.
            self.flow = Rejection::Busy.write(&mut self.answer);
        }
        let kept = context.kept.get();
        if request.caps().is_empty() {
            return;
        }
        (self.slots.delete_more)();
        for (index, cap) in request.caps().iter().enumerate() {
            let is_kept = kept >> index & 1 != 0;
            // It is there, and the server's own. It may be the last to something large.
            let is_left = !is_kept && OWN_SPACE.delete_part_at(*cap, PART) == Err(Error::Unfinished);
            if is_kept || is_left {
                self.incoming.iter_mut().filter(|slot| **slot == Some(*cap)).for_each(|slot| *slot = None);
            }
            if is_left {
                (self.slots.delete)(*cap);
            }
        }
    }

    /// Answers a request that was kept: together with the next receive, unless another answer is to go then. Whoever
    /// has gone is answered nothing.
    pub fn finish<T: Encode, E: Code>(&mut self, pending: Pending<T, E>, answer: &Result<T, E>) {
        match self.flow {
            Flow::Answer => drop(self.replies.answer(pending, answer)),
            Flow::Later => {
                self.replies.make_current(pending);
                replies::write(answer, &mut self.answer);
                self.flow = Flow::Answer;
            }
        }
    }

    /// Receives no more: answers the last request, if it is to be answered, and gives the slots back.
    pub fn close(&mut self) -> impl IntoIterator<Item = CapAddress> + use<> {
        if core::mem::replace(&mut self.flow, Flow::Later) == Flow::Answer {
            // Who asked may have given up.
            let _ = self.replies.current().reply(&self.answer);
        }
        offer_slots(&[]);
        core::mem::take(&mut self.incoming).into_iter().flatten()
    }

    /// Serves for ever, where no method answers later.
    pub fn serve<S>(
        &mut self,
        server: &mut S,
        dispatch: fn(&mut S, &Received, &mut Context<'_>, &mut Message) -> Flow,
    ) -> ! {
        loop {
            // An interrupt or a deadline is none of such a server's.
            let _ = self.next(Wait::FOREVER);
            self.carry_out(|request, context, answer| dispatch(server, request, context, answer));
        }
    }

    /// Offers slots for what may come along. With fewer slots, fewer capabilities arrive.
    #[inline(never)]
    fn offer(&mut self) {
        if self.is_short {
            // Perhaps what is being deleted has the slots.
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
