//! The owner's side: granting copies of objects, counting them, and taking them back.

use tench_abi::Rights;

use crate::copies::Stage;
use crate::error::{Error, FaultKind};
use crate::exports::Missing;
use crate::machine::{Effects, Machine};
use crate::message::Message;
use crate::object::{Core, Cores, Kind, ObjectId, RequestId, Shape, Token};
use crate::requests::{Purpose, Request};

impl Machine {
    /// Handles a local client's request to send an object of this core.
    pub(crate) fn send_own(
        &mut self,
        token: Token,
        shape: Shape,
        to: Core,
        rights: Rights,
        effects: &mut impl Effects,
    ) -> Result<(), Error> {
        if !shape.is_valid() {
            return Err(Error::UnknownObject);
        }
        let around = self.copies.innermost(&shape);
        if around.is_some_and(|copy| copy.stage != Stage::Held) {
            return Err(Error::BeingRevoked);
        }
        let within = around.map(|copy| copy.object);
        // Two capabilities to untyped memory of the same extent can differ in their derivation, so the kernel
        // distinguishes them.
        let known = if shape.kind == Kind::Untyped { None } else { self.exports.find(&shape) };
        let object = match known {
            Some(object) => object,
            None => self.exports.free()?,
        };
        self.check_grant(object, to)?;
        self.requests.check_capacity()?;
        if known.is_none() {
            effects.export(object, &shape, token)?;
            self.exports.add(object, shape, within);
        }
        let request = self.requests.add(Request { token, purpose: Purpose::Send { object, to } })?;
        self.grant(object, to, rights, (self.core, request), effects);
        Ok(())
    }

    /// Fails unless a copy of `object` (or of a new object with this name) can be sent to `to`.
    fn check_grant(&self, object: ObjectId, to: Core) -> Result<(), Error> {
        if let Ok(export) = self.exports.get(object) {
            if export.withdrawing {
                return Err(Error::BeingRevoked);
            }
            // The memory is in the table because it is lent.
            if export.shape.kind == Kind::Untyped {
                return Err(Error::Lent);
            }
        }
        self.exports.check_capacity(object, to)
    }

    fn grant(
        &mut self,
        object: ObjectId,
        to: Core,
        rights: Rights,
        (requester, request): (Core, RequestId),
        effects: &mut impl Effects,
    ) {
        if let Ok(&export) = self.exports.get(object) {
            let count = self.exports.count(object, to, rights);
            let grant = Message::Grant { object, shape: export.shape, rights, count, requester, request };
            self.send_to(to, grant, effects);
        }
    }

    /// Handles a holder's request to send its copy on.
    pub(crate) fn asked(
        &mut self,
        from: Core,
        object: ObjectId,
        to: Core,
        rights: Rights,
        request: RequestId,
        effects: &mut impl Effects,
    ) -> Result<(), FaultKind> {
        let (error, why) = match self.check_ask(from, object, to, rights) {
            Ok(()) if to == self.core => {
                let result = effects.hand_over(object, rights, (from, request));
                self.send_to(from, Message::Reply { object, to, request, result }, effects);
                return Ok(());
            }
            Ok(()) => {
                self.asks.add(from, to);
                self.grant(object, to, rights, (from, request), effects);
                return Ok(());
            }
            Err(refused) => refused,
        };
        self.send_to(from, Message::Reply { object, to, request, result: Err(error) }, effects);
        why.map_or(Ok(()), Err)
    }

    /// Fails if a holder's request is to be refused, also with the fault of the request, if it has one.
    fn check_ask(
        &self,
        from: Core,
        object: ObjectId,
        to: Core,
        rights: Rights,
    ) -> Result<(), (Error, Option<FaultKind>)> {
        if object.owner != self.core {
            return Err((Error::NotOwner, Some(FaultKind::NotOwner)));
        }
        let export = self.exports.get(object).map_err(|_| (Error::UnknownObject, Some(FaultKind::UnknownObject)))?;
        let Some(holder) = self.exports.holder(object, from) else {
            return Err((Error::NotHolder, Some(FaultKind::NotHolder)));
        };
        if export.shape.kind == Kind::Untyped {
            return Err((Error::Borrowed, Some(FaultKind::OutOfTurn)));
        }
        if !holder.rights.contains(rights) {
            return Err((Error::TooManyRights, Some(FaultKind::TooManyRights)));
        }
        if to == from {
            return Err((Error::ToSelf, Some(FaultKind::OutOfTurn)));
        }
        if !self.cores.has(to) {
            return Err((Error::UnknownCore, Some(FaultKind::UnknownCore)));
        }
        self.check_receiver(to).map_err(|error| (error, None))?;
        if to == self.core {
            return if export.withdrawing { Err((Error::BeingRevoked, None)) } else { Ok(()) };
        }
        self.check_grant(object, to).and_then(|()| self.asks.check_capacity(from)).map_err(|error| (error, None))
    }

    /// Handles the receiver's confirmation or rejection of a copy.
    pub(crate) fn taken(
        &mut self,
        from: Core,
        object: ObjectId,
        count: u64,
        (requester, request): (Core, RequestId),
        result: Result<(), Error>,
        effects: &mut impl Effects,
    ) -> Result<(), FaultKind> {
        self.check_holder(from, object)?;
        let holder = self.exports.holder_mut(object, from).ok_or(FaultKind::NotHolder)?;
        if count > holder.sent || count != holder.taken + 1 {
            return Err(FaultKind::WrongCount);
        }
        holder.taken = count;
        if requester != self.core {
            // Requests of a lost core are forgotten.
            if !self.losses.has(requester) && !self.asks.remove(requester, from) {
                return Err(FaultKind::UnknownRequest);
            }
            self.send_to(requester, Message::Reply { object, to: from, request, result }, effects);
            return Ok(());
        }
        self.finish_send(request, object, from, result, effects)
    }

    /// Replies to a client's request to send `object` to `to`.
    pub(crate) fn finish_send(
        &mut self,
        request: RequestId,
        object: ObjectId,
        to: Core,
        result: Result<(), Error>,
        effects: &mut impl Effects,
    ) -> Result<(), FaultKind> {
        match self.requests.get(request).map_err(|()| FaultKind::UnknownRequest)? {
            Some(Request { token, purpose }) if purpose == (Purpose::Send { object, to }) => {
                self.requests.finish(request);
                effects.reply(token, result);
                Ok(())
            }
            Some(_) => Err(FaultKind::UnknownRequest),
            // The request got its reply when a core that it needed was lost.
            None => Ok(()),
        }
    }

    /// Fails unless `from` has copies of `object` according to the table.
    fn check_holder(&self, from: Core, object: ObjectId) -> Result<(), FaultKind> {
        if object.owner != self.core {
            return Err(FaultKind::NotOwner);
        }
        self.exports.get(object).map_err(|_| FaultKind::UnknownObject)?;
        self.exports.holder(object, from).map(|_| ()).ok_or(FaultKind::NotHolder)
    }

    /// Handles a holder's message that it has nothing left.
    pub(crate) fn released(
        &mut self,
        from: Core,
        object: ObjectId,
        count: u64,
        effects: &mut impl Effects,
    ) -> Result<(), FaultKind> {
        self.check_holder(from, object)?;
        let holder = self.exports.holder(object, from).ok_or(FaultKind::NotHolder)?;
        if count == 0 || count > holder.taken {
            return Err(FaultKind::WrongCount);
        }
        // A copy sent since then is there, or will be. A holder that is asked to withdraw replies to that instead.
        let is_all = count == holder.sent;
        if is_all && !self.exports.get(object).is_ok_and(|export| export.withdrawing) {
            self.exports.forget(object, from);
            self.try_finish(object, effects);
        }
        Ok(())
    }

    /// Handles a client's revocation of an object of this core.
    pub(crate) fn revoke(&mut self, token: Token, object: ObjectId, effects: &mut impl Effects) {
        let refused = if object.owner != self.core {
            Err(Error::NotOwner)
        } else {
            match self.exports.get(object) {
                Err(Missing::Never) => Err(Error::UnknownObject),
                // The last copy was released before the request came.
                Err(Missing::Over) => Ok(()),
                Ok(_) => match self.requests.add(Request { token, purpose: Purpose::Revoke { object } }) {
                    Ok(_) => return self.start_withdrawing(object, effects),
                    Err(error) => Err(error),
                },
            }
        };
        effects.reply(token, refused);
    }

    /// Tells all holders to withdraw, unless they were told before.
    pub(crate) fn start_withdrawing(&mut self, object: ObjectId, effects: &mut impl Effects) {
        if let Some(export) = self.exports.get_mut(object)
            && !core::mem::replace(&mut export.withdrawing, true)
        {
            for holder in self.exports.holders(object) {
                self.send_to(holder.core, Message::Withdraw { object, count: holder.sent }, effects);
            }
        }
        self.try_finish(object, effects);
    }

    /// Handles a holder's message that it has withdrawn.
    pub(crate) fn withdrawn(
        &mut self,
        from: Core,
        object: ObjectId,
        count: u64,
        tainted: Cores,
        effects: &mut impl Effects,
    ) -> Result<(), FaultKind> {
        self.check_holder(from, object)?;
        let sent = self.exports.holder(object, from).map(|holder| holder.sent);
        let export = self.exports.get_mut(object).ok_or(FaultKind::UnknownObject)?;
        if !export.withdrawing {
            return Err(FaultKind::OutOfTurn);
        }
        if sent != Some(count) {
            return Err(FaultKind::WrongCount);
        }
        if !self.cores.covers(tainted) {
            return Err(FaultKind::UnknownCore);
        }
        export.tainted = export.tainted.and(tainted);
        self.exports.forget(object, from);
        self.try_finish(object, effects);
        Ok(())
    }

    /// Removes an object from the table if no core has copies of it any more.
    pub(crate) fn try_finish(&mut self, object: ObjectId, effects: &mut impl Effects) {
        let Ok(&export) = self.exports.get(object) else { return };
        if export.given_up || !self.exports.holders(object).is_empty() {
            return;
        }
        let is_leaving = |&within: &ObjectId| self.copies.get(within).is_some_and(|copy| copy.stage != Stage::Held);
        let around = export.within.filter(is_leaving);
        if self.losses.is_settled(export.tainted) {
            self.exports.remove(object);
            effects.unexport(object);
            self.reply_to_revokes(object, Ok(()), effects);
        } else if let Some(around) = around {
            self.give_up(object, around);
        } else {
            // Memory that a lost core may have spread is not reused until it is known that nothing is left.
            return;
        }
        if let Some(around) = around {
            self.try_delete(around, effects);
        }
    }

    /// Stops waiting for objects that a lost core may have spread: the memory around the object is being withdrawn too,
    /// and the core that reuses that memory waits for the same. Waiting here as well could deadlock: others would wait
    /// for this core, which waits for them.
    fn give_up(&mut self, object: ObjectId, around: ObjectId) {
        if let Some(export) = self.exports.get_mut(object) {
            export.given_up = true;
            if let Some(copy) = self.copies.get_mut(around) {
                copy.tainted = copy.tainted.and(export.tainted);
            }
        }
    }
}
