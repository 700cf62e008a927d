//! A measured server in a process of its own: this program again, with another argument.

use alloc::format;
use alloc::string::String;

use tench::abi::Powers;
use tench::abi::Rights;
use tench::abi::layout::slot;
use tench::memory::{self, Made, make};
use tench::procs::Procs;
use tench::sys::{Cap, Endpoint, OWN_CSPACE};

/// A process that receives at one of the measuring process's endpoints.
pub struct Child {
    process: u64,
    endpoint: Made<Endpoint>,
}

impl Child {
    /// Starts the process with this argument and priority.
    pub fn start(argument: &str, priority: u8) -> Result<Child, String> {
        let problem = |error: &dyn core::fmt::Display| format!("{argument}: starting it: {error}");
        let endpoint = make::<Endpoint>(0).map_err(|error| problem(&error))?;
        let slot = memory::take_slot().map_err(|error| problem(&error))?;
        let receive = endpoint.cap().mint_to(slot, Rights::READ, 0).map_err(|error| problem(&error))?;
        let starting = || {
            let spawn = Procs::STANDARD.prepare("bench")?;
            spawn.give_in(receive, slot::SERVICE)?;
            spawn.argument(argument)?;
            spawn.configure(priority, priority, 0, Powers::empty())?;
            spawn.start()
        };
        let process = starting().map_err(|error| problem(&error))?;
        OWN_CSPACE.delete_at(slot).map_err(|error| problem(&error))?;
        memory::free_slot(slot);
        Ok(Child { process, endpoint })
    }

    /// Returns the endpoint at which the process receives.
    pub const fn endpoint(&self) -> Cap<Endpoint> {
        self.endpoint.cap()
    }

    /// Kills the process.
    pub fn stop(self) -> Result<(), String> {
        Procs::STANDARD.kill(self.process).map_err(|error| format!("stopping a server: {error}"))
    }
}
