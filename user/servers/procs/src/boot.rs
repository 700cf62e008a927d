//! What `init` has left for this server: the boot archive, the other servers' endpoints, and in its arguments what it
//! does not see itself.
//!
//! ```text
//! process PATH PRIORITY CEILING     a process that init has not started by this server: init, mem and this one, in this order
//! service NAME                      whose endpoint is next among those behind the archive's frames
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;

use tench_abi::CapAddress;
use tench_abi::layout::slot;
use tench_loader::addresses::Randomness;
use tench_loader::{LoadError, Shown};
use tench_procs::catalogue::Catalogue;
use tench_sys::{Cap, Endpoint};

/// Everything that does not change while the system runs.
#[derive(Clone, Copy)]
pub struct Boot {
    /// The archive's files, to be found fast.
    pub catalogue: &'static Catalogue<'static>,
    /// The archive's memory, of which processes are shown parts.
    pub shown: &'static Shown,
    /// Servers, by their names.
    services: &'static [(&'static str, Cap<Endpoint>)],
}

/// A process that was there before this server.
pub struct First {
    /// Where its program lies in the archive.
    pub path: &'static str,
    /// Priority of its main thread.
    pub priority: u8,
    /// Highest priority that it may give.
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

    /// The endpoint of a server that `init` has given this one, without a badge.
    pub fn service(&self, name: &str) -> Option<Cap<Endpoint>> {
        self.services.iter().find(|(server, _)| *server == name).map(|(_, endpoint)| *endpoint)
    }
}

/// The processes that `init` has started before it could ask this server, and itself: in the order of their numbers.
pub fn first_processes() -> impl Iterator<Item = First> {
    tench::args().skip(1).filter_map(|argument| {
        let mut words = argument.strip_prefix("process ")?.split(' ');
        let (path, priority, ceiling) = (words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(First { path, priority, ceiling })
    })
}

/// The endpoints that `init` gives this server. They are looked for once: each start and end of a process asks for
/// several.
fn services() -> Vec<(&'static str, Cap<Endpoint>)> {
    let first = slot::EXTRA.0 + tench_boot::frames(slot::EXTRA).count() as u32;
    let names = tench::args().skip(1).filter_map(|argument| argument.strip_prefix("service "));
    names.zip(first..).map(|(name, slot)| (name, Cap::new(CapAddress(slot)))).collect()
}
