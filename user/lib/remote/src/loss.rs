//! Handling of another core's loss.

use crate::copies::Stage;
use crate::error::{Error, FaultKind};
use crate::machine::{Effects, Machine};
use crate::message::Message;
use crate::object::{Core, Cores, Kind, ObjectId};
use crate::requests::Purpose;

impl Machine {
    /// Handles the news that `core` has stopped.
    pub(crate) fn lose(&mut self, core: Core, effects: &mut impl Effects) -> Result<(), FaultKind> {
        if !self.cores.has(core) || core == self.core {
            return Err(FaultKind::UnknownCore);
        }
        if self.losses.has(core) {
            return Ok(());
        }
        self.losses.add(core);
        self.asks.forget(core);
        self.reply_to_lost(core, effects);
        self.forget_holder(core, effects);
        let mut next = self.held_of(core, None);
        while let Some(object) = next {
            self.start_deleting(object, effects);
            next = self.held_of(core, Some(object));
        }
        self.announce(core, effects);
        self.finish_settled(effects);
        Ok(())
    }

    /// Replies to the requests that need a core.
    fn reply_to_lost(&mut self, core: Core, effects: &mut impl Effects) {
        while let Some(token) = self.requests.take(|purpose| matches!(*purpose, Purpose::Send { to, .. } if to == core))
        {
            effects.reply(token, Err(Error::CoreLost));
        }
        let owned = |purpose: &Purpose| matches!(*purpose, Purpose::Send { object, .. } if object.owner == core);
        while let Some(token) = self.requests.take(owned) {
            effects.reply(token, Err(Error::OwnerLost));
        }
    }

    /// Counts the copies of a core as withdrawn. Objects that it made from memory lent to it, and sent on, do not count
    /// as withdrawn.
    fn forget_holder(&mut self, core: Core, effects: &mut impl Effects) {
        let mut start = 0;
        while let Some(object) = self.next_export(start) {
            start = object.number + 1;
            if self.exports.holder(object, core).is_none() {
                continue;
            }
            self.exports.forget(object, core);
            if let Some(export) = self.exports.get_mut(object)
                && export.shape.kind == Kind::Untyped
            {
                export.withdrawing = true;
                export.tainted = export.tainted.with(core);
            }
            self.try_finish(object, effects);
        }
    }

    fn next_export(&self, start: u32) -> Option<ObjectId> {
        self.exports.iter().map(|(object, _)| object).find(|object| object.number >= start)
    }

    /// Returns the first object of `owner` after `last` that is not being withdrawn.
    fn held_of(&self, owner: Core, last: Option<ObjectId>) -> Option<ObjectId> {
        let mut held = self.copies.iter().filter(|copy| copy.object.owner == owner && copy.stage == Stage::Held);
        held.find(|copy| Some(copy.object) > last).map(|copy| copy.object)
    }

    /// Tells all cores that nothing of a lost core is left here, once that is so.
    pub(crate) fn announce(&mut self, core: Core, effects: &mut impl Effects) {
        if !self.losses.has(core) || self.losses.is_clean(core, self.core) || self.copies.has_any_of(core) {
            return;
        }
        self.losses.clean(core, self.core, Cores::NONE);
        let tainted = self.losses.tainted(core);
        for other in self.losses.alive().without(Cores::NONE.with(self.core)).iter() {
            effects.send(other, Message::Gone { core, tainted });
        }
        self.finish_settled(effects);
    }

    /// Handles that message from another core.
    pub(crate) fn gone(
        &mut self,
        from: Core,
        core: Core,
        tainted: Cores,
        effects: &mut impl Effects,
    ) -> Result<(), FaultKind> {
        if !self.cores.has(core) || !self.cores.covers(tainted) {
            return Err(FaultKind::UnknownCore);
        }
        if core == self.core || core == from || self.losses.is_clean(core, from) {
            return Err(FaultKind::OutOfTurn);
        }
        self.losses.clean(core, from, tainted);
        self.finish_settled(effects);
        Ok(())
    }

    /// Continues with objects that waited only for what lost cores may have spread.
    fn finish_settled(&mut self, effects: &mut impl Effects) {
        let mut start = 0;
        while let Some(object) = self.next_export(start) {
            start = object.number + 1;
            if self.exports.get(object).is_ok_and(|export| export.withdrawing) {
                self.try_finish(object, effects);
            }
        }
    }
}
