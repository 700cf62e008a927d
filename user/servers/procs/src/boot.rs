//! This module reads what `init` has passed to this server: the boot archive, the other servers' endpoints, and, in the
//! arguments, facts that the server cannot find out itself.
//!
//! ```text
//! process PATH PRIORITY CEILING     a process started without this server: init, mem and procs, in this order
//! service NAME                      owner of the next endpoint in the slots behind the archive's frames
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;

use tench_abi::CapAddress;
use tench_abi::layout::slot;
use tench_loader::addresses::Randomness;
use tench_loader::{LoadError, Shown};
use tench_procs::spawn::catalogue::Catalogue;
use tench_sys::{Cap, Endpoint};

/// Boot-time data that does not change while the system runs.
#[derive(Clone, Copy)]
pub struct Boot {
    /// Index of the archive's files.
    pub catalogue: &'static Catalogue<'static>,
    /// Memory of the archive, parts of which are mapped into processes.
    pub shown: &'static Shown,
    /// Endpoints of the servers, by server name.
    services: &'static [(&'static str, Cap<Endpoint>)],
}

/// A process that was started before this server.
pub struct First {
    /// Path of its program in the archive.
    pub path: &'static str,
    /// Priority of its main thread.
    pub priority: u8,
    /// Highest priority that it may assign.
    pub ceiling: u8,
}

impl Boot {
    /// Maps the archive and finds the servers.
    pub fn open(random: &mut Randomness) -> Result<Boot, LoadError> {
        let (shown, archive) = tench_boot::map(slot::EXTRA, random)?;
        let shown = Box::leak(Box::new(shown));
        let catalogue = Box::leak(Box::new(Catalogue::new(&archive)));
        let services = Vec::leak(services());
        Ok(Boot { catalogue, shown, services })
    }

    /// Returns the unbadged endpoint of a server that `init` has passed to this one.
    pub fn service(&self, name: &str) -> Option<Cap<Endpoint>> {
        self.services.iter().find(|(server, _)| *server == name).map(|(_, endpoint)| *endpoint)
    }
}

/// Returns the processes that `init` started without this server, and `init` itself, in the order of their numbers.
pub fn first_processes() -> impl Iterator<Item = First> {
    tench::args().skip(1).filter_map(|argument| {
        let mut words = argument.strip_prefix("process ")?.split(' ');
        let (path, priority, ceiling) = (words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(First { path, priority, ceiling })
    })
}

/// Returns the endpoints that `init` has passed to this server. They are looked up once, because each start and end of
/// a process needs several.
fn services() -> Vec<(&'static str, Cap<Endpoint>)> {
    let first = slot::EXTRA.0 + tench_boot::frames(slot::EXTRA).count() as u32;
    let names = tench::args().skip(1).filter_map(|argument| argument.strip_prefix("service "));
    names.zip(first..).map(|(name, slot)| (name, Cap::new(CapAddress(slot)))).collect()
}
