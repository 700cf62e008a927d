//! The holder's side: what a core does for other cores' objects of which it has copies.

use tench_abi::Rights;

use crate::copies::Stage;
use crate::error::{Error, FaultKind};
use crate::machine::{Effects, Machine};
use crate::message::Message;
use crate::object::{Core, Cores, Kind, ObjectId, RequestId, Shape, Token};
use crate::requests::{Purpose, Request};

impl Machine {
    /// Handles a local client's request to send a remote object on, which the owner has to do.
    pub(crate) fn send_remote(
        &mut self,
        token: Token,
        object: ObjectId,
        to: Core,
        rights: Rights,
        effects: &mut impl Effects,
    ) -> Result<(), Error> {
        let copy = self.copies.get(object).ok_or(Error::UnknownObject)?;
        if copy.stage != Stage::Held {
            return Err(Error::BeingRevoked);
        }
        if copy.shape.kind == Kind::Untyped {
            return Err(Error::Borrowed);
        }
        let request = self.requests.add(Request { token, purpose: Purpose::Send { object, to } })?;
        self.send_to(object.owner, Message::Ask { object, to, rights, request }, effects);
        Ok(())
    }

    /// Handles the owner's reply to that request.
    pub(crate) fn handle_reply(
        &mut self,
        from: Core,
        object: ObjectId,
        to: Core,
        request: RequestId,
        result: Result<(), Error>,
        effects: &mut impl Effects,
    ) -> Result<(), FaultKind> {
        if object.owner != from {
            return Err(FaultKind::NotOwner);
        }
        self.finish_send(request, object, to, result, effects)
    }

    /// Handles a grant: a copy has arrived.
    #[expect(clippy::too_many_arguments, reason = "the parts of one message")]
    pub(crate) fn granted(
        &mut self,
        from: Core,
        object: ObjectId,
        shape: &Shape,
        rights: Rights,
        count: u64,
        (requester, request): (Core, RequestId),
        effects: &mut impl Effects,
    ) -> Result<(), FaultKind> {
        if object.owner != from {
            return Err(FaultKind::NotOwner);
        }
        let result = match self.check_granted(object, shape, count, requester) {
            Ok(()) => self.take_in(object, shape, rights, count, (requester, request), effects),
            Err((error, why)) => {
                self.send_to(from, Message::Taken { object, count, requester, request, result: Err(error) }, effects);
                return Err(why);
            }
        };
        self.send_to(from, Message::Taken { object, count, requester, request, result }, effects);
        if self.copies.get(object).is_none() {
            self.send_to(from, Message::Release { object, count }, effects);
        }
        Ok(())
    }

    fn check_granted(
        &self,
        object: ObjectId,
        shape: &Shape,
        count: u64,
        requester: Core,
    ) -> Result<(), (Error, FaultKind)> {
        if !self.cores.has(requester) {
            return Err((Error::UnknownCore, FaultKind::UnknownCore));
        }
        if !shape.is_valid() {
            return Err((Error::Kernel, FaultKind::WrongShape));
        }
        let Some(copy) = self.copies.get(object) else { return Ok(()) };
        if copy.shape != *shape || shape.kind == Kind::Untyped {
            Err((Error::Kernel, FaultKind::WrongShape))
        } else if copy.stage != Stage::Held {
            Err((Error::BeingRevoked, FaultKind::OutOfTurn))
        } else if copy.count.checked_add(1) != Some(count) {
            Err((Error::Kernel, FaultKind::WrongCount))
        } else {
            Ok(())
        }
    }

    fn take_in(
        &mut self,
        object: ObjectId,
        shape: &Shape,
        rights: Rights,
        count: u64,
        requester: (Core, RequestId),
        effects: &mut impl Effects,
    ) -> Result<(), Error> {
        if let Some(copy) = self.copies.get_mut(object) {
            copy.count = count;
            return effects.import(object, shape, rights, requester);
        }
        self.copies.check_capacity()?;
        effects.import(object, shape, rights, requester)?;
        self.copies.add(object, *shape, count);
        Ok(())
    }

    /// Handles the kernel's notice that a root has no copies.
    pub(crate) fn unused(&mut self, object: ObjectId, effects: &mut impl Effects) -> Result<(), FaultKind> {
        let copy = self.copies.get(object).ok_or(FaultKind::UnknownObject)?;
        // If it is in use again or being withdrawn, the notice is late, which is no mistake.
        if copy.stage == Stage::Held && !self.has_sent_on(object) && effects.close(object).is_ok() {
            self.release(object, effects);
        }
        Ok(())
    }

    /// Gives memory back for a client.
    pub(crate) fn give_back(&mut self, object: ObjectId, effects: &mut impl Effects) -> Result<(), Error> {
        let copy = self.copies.get(object).ok_or(Error::UnknownObject)?;
        if copy.shape.kind != Kind::Untyped {
            return Err(Error::NotBorrowed);
        }
        if copy.stage != Stage::Held {
            return Err(Error::BeingRevoked);
        }
        if self.has_sent_on(object) {
            return Err(Error::InUse);
        }
        effects.give_back(object)?;
        self.release(object, effects);
        Ok(())
    }

    /// Returns whether an object made from this one is on other cores.
    fn has_sent_on(&self, object: ObjectId) -> bool {
        self.exports.iter().any(|(_, export)| export.within == Some(object) && !export.given_up)
    }

    fn release(&mut self, object: ObjectId, effects: &mut impl Effects) {
        if let Some(copy) = self.copies.remove(object) {
            self.send_to(object.owner, Message::Release { object, count: copy.count }, effects);
        }
    }

    /// Handles the owner's withdrawal of the object.
    pub(crate) fn withdraw(
        &mut self,
        from: Core,
        object: ObjectId,
        count: u64,
        effects: &mut impl Effects,
    ) -> Result<(), FaultKind> {
        if object.owner != from {
            return Err(FaultKind::NotOwner);
        }
        let Some(copy) = self.copies.get(object) else {
            // A release is on its way to the owner.
            let tainted = Cores::NONE;
            self.send_to(from, Message::Withdrawn { object, count, tainted }, effects);
            return Ok(());
        };
        if copy.stage != Stage::Held {
            return Err(FaultKind::OutOfTurn);
        }
        if copy.count != count {
            return Err(FaultKind::WrongCount);
        }
        self.start_deleting(object, effects);
        Ok(())
    }

    /// Withdraws objects that were made from a remote object and sent on; the object itself follows.
    pub(crate) fn start_deleting(&mut self, object: ObjectId, effects: &mut impl Effects) {
        if let Some(copy) = self.copies.get_mut(object) {
            copy.stage = Stage::Withdrawing;
        }
        let mut start = 0;
        while let Some((export, number)) = self.next_sent_on(object, start) {
            self.start_withdrawing(export, effects);
            start = number + 1;
        }
        self.try_delete(object, effects);
    }

    /// Returns the first object, from this index of the table on, that was made from `object`.
    fn next_sent_on(&self, object: ObjectId, start: u32) -> Option<(ObjectId, u32)> {
        let mut made = self.exports.iter().filter(|(_, export)| export.within == Some(object));
        made.find(|(export, _)| export.number >= start).map(|(export, _)| (export, export.number))
    }

    /// Tells the kernel to delete a remote object, once no object made from it is on other cores.
    pub(crate) fn try_delete(&mut self, object: ObjectId, effects: &mut impl Effects) {
        if self.has_sent_on(object) {
            return;
        }
        if let Some(copy) = self.copies.get_mut(object)
            && copy.stage == Stage::Withdrawing
        {
            copy.stage = Stage::Deleting;
            effects.delete(object);
        }
    }

    /// Handles the kernel's notice that the deletion is done.
    pub(crate) fn deleted(&mut self, object: ObjectId, effects: &mut impl Effects) -> Result<(), FaultKind> {
        let copy = self.copies.get(object).ok_or(FaultKind::UnknownObject)?;
        if copy.stage != Stage::Deleting {
            return Err(FaultKind::OutOfTurn);
        }
        while let Some((export, _)) = self.next_sent_on(object, 0) {
            self.exports.remove(export);
            self.reply_to_revokes(export, Err(Error::MemoryWithdrawn), effects);
        }
        if let Some(copy) = self.copies.remove(object) {
            let tainted = copy.tainted;
            self.send_to(object.owner, Message::Withdrawn { object, count: copy.count, tainted }, effects);
            self.losses.taint(object.owner, tainted);
            self.announce(object.owner, effects);
        }
        Ok(())
    }
}
