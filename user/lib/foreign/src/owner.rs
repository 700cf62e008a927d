//! What a core does for the objects that it owns: hands out copies, counts them, takes them back.

use tench_abi::Rights;

use crate::copies::Stage;
use crate::error::{Error, Why};
use crate::exports::Missing;
use crate::machine::{Effects, Machine};
use crate::message::Message;
use crate::object::{Core, Cores, Kind, ObjectId, RequestId, Shape, Token};
use crate::requests::{Purpose, Request};

impl Machine {
    /// A local client sends an object of this core.
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
        // Two capabilities to untyped memory of the same extent can differ in what was made of what, so the kernel
        // tells them apart.
        let known = if shape.kind == Kind::Untyped { None } else { self.exports.find(&shape) };
        let object = match known {
            Some(object) => object,
            None => self.exports.free()?,
        };
        self.check_grant(object, to)?;
        self.requests.has_room()?;
        if known.is_none() {
            effects.export(object, &shape, token)?;
            self.exports.add(object, shape, within);
        }
        let request = self.requests.add(Request { token, purpose: Purpose::Send { object, to } })?;
        self.grant(object, to, rights, (self.core, request), effects);
        Ok(())
    }

    /// Whether a copy of `object` (or of a new object with this name) can be sent to `to`.
    fn check_grant(&self, object: ObjectId, to: Core) -> Result<(), Error> {
        if let Ok(export) = self.exports.get(object) {
            if export.withdrawing {
                return Err(Error::BeingRevoked);
            }
            // It is in the table because it is lent.
            if export.shape.kind == Kind::Untyped {
                return Err(Error::Lent);
            }
        }
        self.exports.has_room(object, to)
    }

    fn grant(
        &mut self,
        object: ObjectId,
        to: Core,
        rights: Rights,
        (asker, request): (Core, RequestId),
        effects: &mut impl Effects,
    ) {
        if let Ok(&export) = self.exports.get(object) {
            let count = self.exports.count(object, to, rights);
            let grant = Message::Grant { object, shape: export.shape, rights, count, asker, request };
            self.tell(to, grant, effects);
        }
    }

    /// A holder wants its copy to be sent on.
    pub(crate) fn asked(
        &mut self,
        from: Core,
        object: ObjectId,
        to: Core,
        rights: Rights,
        request: RequestId,
        effects: &mut impl Effects,
    ) -> Result<(), Why> {
        let (refusal, why) = match self.check_ask(from, object, to, rights) {
            Ok(()) if to == self.core => {
                let result = effects.hand_over(object, rights, (from, request));
                self.tell(from, Message::Answer { object, to, request, result }, effects);
                return Ok(());
            }
            Ok(()) => {
                self.asks.add(from, to);
                self.grant(object, to, rights, (from, request), effects);
                return Ok(());
            }
            Err(refused) => refused,
        };
        self.tell(from, Message::Answer { object, to, request, result: Err(refusal) }, effects);
        why.map_or(Ok(()), Err)
    }

    /// Why a holder's wish is refused, and what is wrong with it, if something is.
    fn check_ask(&self, from: Core, object: ObjectId, to: Core, rights: Rights) -> Result<(), (Error, Option<Why>)> {
        if object.owner != self.core {
            return Err((Error::NotOwner, Some(Why::NotOwner)));
        }
        let export = self.exports.get(object).map_err(|_| (Error::UnknownObject, Some(Why::UnknownObject)))?;
        let Some(holder) = self.exports.holder(object, from) else {
            return Err((Error::NotHolder, Some(Why::NotHolder)));
        };
        if export.shape.kind == Kind::Untyped {
            return Err((Error::Borrowed, Some(Why::OutOfTurn)));
        }
        if !holder.rights.contains(rights) {
            return Err((Error::TooManyRights, Some(Why::TooManyRights)));
        }
        if to == from {
            return Err((Error::ToSelf, Some(Why::OutOfTurn)));
        }
        if !self.cores.has(to) {
            return Err((Error::UnknownCore, Some(Why::UnknownCore)));
        }
        self.check_receiver(to).map_err(|error| (error, None))?;
        if to == self.core {
            return if export.withdrawing { Err((Error::BeingRevoked, None)) } else { Ok(()) };
        }
        self.check_grant(object, to).and_then(|()| self.asks.has_room(from)).map_err(|error| (error, None))
    }

    /// A copy arrived, or was refused there.
    pub(crate) fn taken(
        &mut self,
        from: Core,
        object: ObjectId,
        count: u64,
        (asker, request): (Core, RequestId),
        result: Result<(), Error>,
        effects: &mut impl Effects,
    ) -> Result<(), Why> {
        self.check_holder(from, object)?;
        let holder = self.exports.holder_mut(object, from).ok_or(Why::NotHolder)?;
        if count > holder.sent || count != holder.taken + 1 {
            return Err(Why::WrongCount);
        }
        holder.taken = count;
        if asker != self.core {
            // What a lost core had asked for is forgotten.
            if !self.losses.has(asker) && !self.asks.remove(asker, from) {
                return Err(Why::UnknownRequest);
            }
            self.tell(asker, Message::Answer { object, to: from, request, result }, effects);
            return Ok(());
        }
        self.finish_send(request, object, from, result, effects)
    }

    /// Answers a client's request to send `object` to `to`.
    pub(crate) fn finish_send(
        &mut self,
        request: RequestId,
        object: ObjectId,
        to: Core,
        result: Result<(), Error>,
        effects: &mut impl Effects,
    ) -> Result<(), Why> {
        match self.requests.get(request).map_err(|()| Why::UnknownRequest)? {
            Some(Request { token, purpose }) if purpose == (Purpose::Send { object, to }) => {
                self.requests.finish(request);
                effects.answer(token, result);
                Ok(())
            }
            Some(_) => Err(Why::UnknownRequest),
            // It was answered when a core that it needed was lost.
            None => Ok(()),
        }
    }

    /// That `from` has copies of `object`, as far as the books say.
    fn check_holder(&self, from: Core, object: ObjectId) -> Result<(), Why> {
        if object.owner != self.core {
            return Err(Why::NotOwner);
        }
        self.exports.get(object).map_err(|_| Why::UnknownObject)?;
        self.exports.holder(object, from).map(|_| ()).ok_or(Why::NotHolder)
    }

    /// A holder has nothing left.
    pub(crate) fn released(
        &mut self,
        from: Core,
        object: ObjectId,
        count: u64,
        effects: &mut impl Effects,
    ) -> Result<(), Why> {
        self.check_holder(from, object)?;
        let holder = self.exports.holder(object, from).ok_or(Why::NotHolder)?;
        if count == 0 || count > holder.taken {
            return Err(Why::WrongCount);
        }
        // A copy that was sent since then is there, or will be. And whoever is being asked to withdraw answers that.
        let is_all = count == holder.sent;
        if is_all && !self.exports.get(object).is_ok_and(|export| export.withdrawing) {
            self.exports.forget(object, from);
            self.try_finish(object, effects);
        }
        Ok(())
    }

    /// A client revokes an object of this core.
    pub(crate) fn revoke(&mut self, token: Token, object: ObjectId, effects: &mut impl Effects) {
        let refused = if object.owner != self.core {
            Err(Error::NotOwner)
        } else {
            match self.exports.get(object) {
                Err(Missing::Never) => Err(Error::UnknownObject),
                // The last copy went before the request came.
                Err(Missing::Over) => Ok(()),
                Ok(_) => match self.requests.add(Request { token, purpose: Purpose::Revoke { object } }) {
                    Ok(_) => return self.start_withdrawing(object, effects),
                    Err(error) => Err(error),
                },
            }
        };
        effects.answer(token, refused);
    }

    /// Tells all holders to withdraw, unless they were told.
    pub(crate) fn start_withdrawing(&mut self, object: ObjectId, effects: &mut impl Effects) {
        if let Some(export) = self.exports.get_mut(object)
            && !core::mem::replace(&mut export.withdrawing, true)
        {
            for holder in self.exports.holders(object) {
                self.tell(holder.core, Message::Withdraw { object, count: holder.sent }, effects);
            }
        }
        self.try_finish(object, effects);
    }

    /// A holder has withdrawn.
    pub(crate) fn withdrawn(
        &mut self,
        from: Core,
        object: ObjectId,
        count: u64,
        tainted: Cores,
        effects: &mut impl Effects,
    ) -> Result<(), Why> {
        self.check_holder(from, object)?;
        let sent = self.exports.holder(object, from).map(|holder| holder.sent);
        let export = self.exports.get_mut(object).ok_or(Why::UnknownObject)?;
        if !export.withdrawing {
            return Err(Why::OutOfTurn);
        }
        if sent != Some(count) {
            return Err(Why::WrongCount);
        }
        if !self.cores.covers(tainted) {
            return Err(Why::UnknownCore);
        }
        export.tainted = export.tainted.and(tainted);
        self.exports.forget(object, from);
        self.try_finish(object, effects);
        Ok(())
    }

    /// Takes an object out of the books if no core has copies of it any more.
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
            self.answer_revokes(object, Ok(()), effects);
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

    /// Waits no longer for what a lost core may have spread: the memory around the object is being withdrawn too, and
    /// whoever reuses that waits for the same. To wait here as well could be for ever: others would wait for this core,
    /// which waits for them.
    fn give_up(&mut self, object: ObjectId, around: ObjectId) {
        if let Some(export) = self.exports.get_mut(object) {
            export.given_up = true;
            if let Some(copy) = self.copies.get_mut(around) {
                copy.tainted = copy.tainted.and(export.tainted);
            }
        }
    }
}
