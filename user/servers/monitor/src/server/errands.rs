//! What processes of this core want to start on others. The highest priority that they may give, this core's process
//! server knows: a worker asks it, and then the other core's monitor is told that with the request. What a process says
//! itself does not count.

use tench_abi::power::identity;
use tench_channel::Request as Number;
use tench_monitor::about::About;
use tench_monitor::exchange::MONITOR;
use tench_monitor::message::{Outcome, answered, decode_result, ended};
use tench_monitor_client::protocol::Error;
use tench_protocol::Caller;
use tench_protocol::{Pending, Port};
use tench_sys::Error as Refusal;

use super::Server;
use crate::capabilities::{Task, Work};
use crate::desk::{Asker, result};
use crate::peer::ToProcesses;

/// What somebody waits for.
pub enum Errand {
    /// That a program is started.
    Spawn(About, Asker),
    /// A core's process server, for a process with this badge.
    Endpoint(u64, u64, Pending<ToProcesses, Error>),
}

impl Errand {
    /// It is not done.
    fn refuse(self, port: &mut Port, why: Error) {
        match self {
            Errand::Spawn(_, asker) => asker.refuse(port, why),
            Errand::Endpoint(.., pending) => port.finish(pending, &Err(why)),
        }
    }

    /// Where.
    const fn core(&self) -> u64 {
        match self {
            Errand::Spawn(about, _) => about.core(),
            Errand::Endpoint(core, ..) => *core,
        }
    }
}

impl Server {
    /// Lets a worker ask how high a priority somebody here may give, who wants to start something on another core.
    pub(super) fn send_off(
        &mut self,
        core: u64,
        asker: Caller,
        keep: impl FnOnce() -> Result<Errand, Refusal>,
    ) -> Result<(), Error> {
        if asker.process == MONITOR {
            return Err(Error::NotAllowed);
        }
        self.reach(core)?;
        if !self.desk.has_room() {
            return Err(Error::Full);
        }
        let errand = keep().map_err(|_| Error::Full)?;
        // There is room, so it starts.
        let _ = self.desk.work(Work::Errand(errand), Task::Vouch(asker.process));
        Ok(())
    }

    /// The process server has said how high a priority somebody may give, or that it does not know him.
    pub(super) fn run(&mut self, errand: Errand, words: &[u64], port: &mut Port) {
        let ceiling = match result::<u8>(words) {
            Ok(ceiling) => ceiling,
            Err(why) => return errand.refuse(port, why),
        };
        let core = errand.core();
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.core == core) else {
            return errand.refuse(port, Error::NotConnected);
        };
        match errand {
            Errand::Spawn(about, asker) => {
                let mut kept = Some(asker);
                let asked = peer.ask(&about.with_ceiling(ceiling), || kept.take().ok_or(Refusal::Aborted));
                kept.into_iter().zip(asked.err()).for_each(|(asker, why)| asker.refuse(port, why));
            }
            Errand::Endpoint(_, badge, pending) => peer.processes(badge, ceiling, pending, port),
        }
    }

    /// The process server here lets a process of another core start something, or does not: that core is answered.
    pub(super) fn admitted(&mut self, core: u64, number: Number, badge: u64, words: &[u64]) {
        let answer = match decode_result(words) {
            Ok((Outcome::Answered, _)) => match self.endpoints.processes(badge, core) {
                Ok(made) => answered(0, &[made], &[]),
                Err(_) => {
                    self.endpoints.put_back(identity(badge));
                    ended(Outcome::Busy, 0)
                }
            },
            _ => words.iter().copied().collect(),
        };
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.core == core) {
            peer.answer(number, &answer);
        }
    }
}
