//! Processes are started, for the first time or again, by the same steps: a record, a builder and an endpoint, and the
//! [spawner's](crate::spawn::Spawner::run) run. The first start has its builder from the process's parent, a restart
//! from supervision.

use alloc::format;

use tench_abi::Powers;
use tench_abi::power::Client;
use tench_loader::LoadError;
use tench_procs::table::Condition;
use tench_procs_interface::pid::Shown;
use tench_procs_interface::protocol::{Defect, Error, State};
use tench_sys::Error as KernelError;

use crate::spawn::{PersistentState, ProcessBuilder, Service, Surroundings, Terms};
use crate::supervision::Plan;

use super::Server;
use super::kept::{Kept, terms_of};

impl Server {
    /// Starts a process in preparation; if this fails, its record is removed. Returns the defect of its file, if that
    /// is the cause.
    pub(super) fn start_prepared(&mut self, process: u64) -> Result<Option<Defect>, Error> {
        let record = self.records.get_mut(process)?;
        let Some(Kept::Preparing(mut builder, restarts)) = record.kernel.take() else { return Err(Error::WrongState) };
        let service = builder.take_service();
        let endpoint = service.as_ref().map(Service::endpoint);
        let kept = match self.supervision.allocate(restarts.as_ref()) {
            Ok(kept) => kept,
            Err(error) => {
                builder.abandon();
                service.into_iter().for_each(Service::close);
                self.discard_record(process);
                return Err(error);
            }
        };
        let name = restarts.as_ref().map_or("", |restarts| &restarts.name);
        match (self.run(process, &mut builder, service, kept.as_ref(), name), restarts) {
            (Ok(terms), Some(restarts)) => {
                self.supervision.add(restarts, Plan { builder, kept, terms, endpoint }).map(|()| None)
            }
            (Ok(_), None) => {
                builder.abandon();
                Ok(None)
            }
            (Err(error), _) => {
                builder.abandon();
                self.give_up(process);
                match error {
                    LoadError::Defect(defect) => Ok(Some(defect)),
                    LoadError::OutOfMemory => Err(Error::OutOfMemory),
                    LoadError::Kernel(error) => {
                        self.supervision.say(&format!("procs: starting process {}: {error}\n", Shown(process)));
                        Err(Error::Internal)
                    }
                }
            }
        }
    }

    /// Restarts the servers whose time has come.
    #[inline]
    pub(super) fn restart_servers(&mut self) {
        while let Some((name, mut plan)) = self.supervision.due() {
            let started = self.restart(name, &mut plan);
            let missed = self.supervision.restarted(name, plan, started);
            missed.into_iter().for_each(|ended| self.tell(name, ended));
        }
    }

    /// Restarts a server, as a new process at a new endpoint.
    fn restart(&mut self, name: &str, plan: &mut Plan) -> Result<(), LoadError> {
        let full = |_| LoadError::OutOfMemory;
        let service = Service::make()?;
        let endpoint = service.endpoint();
        let Terms { parent, badge, quota, priority, ceiling, .. } = plan.terms;
        let process =
            self.records.prepare(plan.builder.path(), Client::alone(parent), Powers::empty(), None).map_err(full)?;
        let record = self.records.get_mut(process).map_err(full)?;
        (record.priority, record.ceiling) = (priority, ceiling);
        (record.powers, record.quota) = (Powers::of_badge(badge), quota);
        match self.run(process, &mut plan.builder, Some(service), plan.kept.as_ref(), name) {
            Ok(_) => {
                (plan.terms.process, plan.endpoint) = (process, Some(endpoint));
                Ok(())
            }
            Err(error) => {
                self.give_up(process);
                Err(error)
            }
        }
    }

    /// Runs a prepared process that has a record; `own` is the name of the server that it is to be. Returns the terms
    /// of its start. If this fails, its remains stay in its record, [to be destroyed](Self::give_up).
    fn run(
        &mut self,
        process: u64,
        builder: &mut ProcessBuilder,
        service: Option<Service>,
        kept: Option<&PersistentState>,
        own: &str,
    ) -> Result<Terms, LoadError> {
        let gone = |_| LoadError::Kernel(KernelError::InvalidArgument);
        self.records.fix_quota(process).map_err(gone)?;
        let record = self.records.get_mut(process).map_err(gone)?;
        let terms = terms_of(record);
        let around = Surroundings { servers: self.supervision.servers_except(own), kept };
        match self.spawner.run(builder, service, &terms, &around) {
            Ok(running) => {
                record.size = running.size;
                record.kernel = Some(Kept::Running(running));
            }
            Err((error, remains)) => {
                record.kernel = Some(Kept::Ending(remains, Condition::plain(State::Killed)));
                return Err(error);
            }
        }
        self.records.set_state(process, State::Running).map_err(gone)?;
        Ok(terms)
    }
}
