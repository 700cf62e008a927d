//! What `init` has left for this server: the boot archive and the other servers' endpoints.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tench_abi::CapAddress;
use tench_abi::layout::slot;
use tench_loader::addresses::Randomness;
use tench_loader::{LoadError, Shown};
use tench_procs::catalogue::Catalogue;
use tench_sys::{Cap, Endpoint};
use tench_system::{ARCHIVE_PATH, Capability, System};

/// This server's name in the system description.
const NAME: &str = "procs";

/// Everything that does not change while the system runs.
#[derive(Clone, Copy)]
pub struct Boot {
    /// The system description in it.
    pub system: System<'static>,
    /// What is in both, to be found fast.
    pub catalogue: &'static Catalogue<'static>,
    /// The archive's memory, of which processes are shown parts.
    pub shown: &'static Shown,
    /// Servers, by their names.
    services: &'static [(&'static str, Cap<Endpoint>)],
}

impl Boot {
    /// Maps the archive and reads the system description.
    pub fn open(random: &mut Randomness) -> Result<Boot, LoadError> {
        let (shown, archive) = tench_boot::map(slot::EXTRA, random)?;
        let shown = Box::leak(Box::new(shown));
        let invalid = LoadError::Kernel(tench_sys::Error::InvalidArgument);
        let description = archive.find(ARCHIVE_PATH).ok_or(invalid)?;
        let system = System::parse(description.contents).map_err(|_| invalid)?;
        let catalogue = Box::leak(Box::new(Catalogue::new(&archive, &system)));
        let services = Vec::leak(services(&system));
        Ok(Boot { system, catalogue, shown, services })
    }

    /// The endpoint of a server that the description gives this one, without a badge.
    pub fn service(&self, name: &str) -> Option<Cap<Endpoint>> {
        self.services.iter().find(|(server, _)| *server == name).map(|(_, endpoint)| *endpoint)
    }
}

/// The endpoints that the description gives this server. They are looked for once: that takes long, and each start and end of a
/// process asks for several.
fn services(system: &System<'static>) -> Vec<(&'static str, Cap<Endpoint>)> {
    let mut next = slot::EXTRA.0;
    let mut services = Vec::new();
    for capability in system.find(NAME).iter().flat_map(|program| program.capabilities.iter()) {
        match capability {
            Capability::Kernel | Capability::InterruptControl | Capability::Untyped => {}
            // Those are the monitor's.
            Capability::Channel | Capability::AbsentServices => {}
            Capability::Archive => next += tench_boot::frames(slot::EXTRA).count() as u32,
            Capability::Device(_) | Capability::Interrupt(_) => next += 1,
            Capability::Service(server) => {
                services.push((server, Cap::new(CapAddress(next))));
                next += 1;
            }
        }
    }
    services
}
