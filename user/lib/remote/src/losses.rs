//! Table of the cores that have stopped, and of the cores that have nothing left of theirs.

use alloc::vec::Vec;

use crate::object::{Core, Cores};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Loss {
    /// Cores that have announced that they have nothing of this core's objects; they never will again.
    clean: Cores,
    /// Lost cores to which parts of this core's objects were lent.
    tainted: Cores,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Losses {
    lost: Cores,
    all: Cores,
    losses: Vec<Loss>,
}

impl Losses {
    pub fn new(cores: u8) -> Losses {
        Losses { lost: Cores::NONE, all: Cores::first(cores), losses: (0..cores).map(|_| Loss::default()).collect() }
    }

    pub fn has(&self, core: Core) -> bool {
        self.lost.has(core)
    }

    pub fn add(&mut self, core: Core) {
        self.lost = self.lost.with(core);
    }

    /// Returns the existing cores that have not stopped, as far as this core knows.
    pub fn alive(&self) -> Cores {
        self.all.without(self.lost)
    }

    /// Notes that `holder` has nothing left of `core`; parts of that had been lent to the lost cores `tainted`.
    pub fn clean(&mut self, core: Core, holder: Core, tainted: Cores) {
        if let Some(loss) = self.losses.get_mut(core.index()) {
            loss.clean = loss.clean.with(holder);
            loss.tainted = loss.tainted.and(tainted);
        }
    }

    pub fn is_clean(&self, core: Core, holder: Core) -> bool {
        self.losses.get(core.index()).is_some_and(|loss| loss.clean.has(holder))
    }

    pub fn taint(&mut self, core: Core, tainted: Cores) {
        if let Some(loss) = self.losses.get_mut(core.index()) {
            loss.tainted = loss.tainted.and(tainted);
        }
    }

    pub fn tainted(&self, core: Core) -> Cores {
        self.losses.get(core.index()).map_or(Cores::NONE, |loss| loss.tainted)
    }

    /// Returns whether nothing is left of what the lost cores `tainted` may have spread: no live core has any object of
    /// theirs, nor of cores to which parts of those were lent, and so on.
    pub fn is_settled(&self, tainted: Cores) -> bool {
        self.unsettled(tainted) == Cores::NONE
    }

    /// Returns the cores that have not announced that yet.
    pub fn unsettled(&self, tainted: Cores) -> Cores {
        let mut all = tainted;
        loop {
            let more = all.iter().fold(all, |sum, core| sum.and(self.tainted(core)));
            if more == all {
                break;
            }
            all = more;
        }
        all.iter().fold(Cores::NONE, |sum, core| {
            let clean = self.losses.get(core.index()).map_or(Cores::NONE, |loss| loss.clean);
            sum.and(self.alive().without(Cores::NONE.with(core)).without(clean))
        })
    }
}
