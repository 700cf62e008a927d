//! A pager's interface, for requests; faults reach it as the kernel's messages.
//!
//! The client is known by the badge of its capability, as it is in a fault message.

use tench::sys::PageTable;
use tench_protocol::{Arrived, Caller, Words, interface};

/// Pages for regions of its clients.
#[interface(client = PagerClient, version = 1)]
pub trait PagerService {
    /// Attaches the region at an address, a multiple of 2 MiB, which the page table of level 3 shows that comes along.
    /// Errors: `BadRegion`, `TooManyRegions`.
    #[method(1)]
    fn attach(&mut self, caller: Caller, address: u64, table: Arrived<'_, PageTable>) -> Result<(), Error>;

    /// Detaches a region. Its pages are gone, except where another region shows them.
    /// Errors: `NoSuchRegion`.
    #[method(2)]
    fn detach(&mut self, caller: Caller, address: u64) -> Result<(), Error>;

    /// Lets the region at an address, which is attached and empty, show what another client's region at that address
    /// shows now. Returns the number of pages.
    /// Errors: `NoSuchRegion`, `NotEmpty`, `NotAllowed`, `Refused`.
    #[method(3)]
    fn fork(&mut self, caller: Caller, address: u64, from: u64) -> Result<u64, Error>;

    /// Forgets a client that has ended: detaches all its regions.
    #[method(4, authority)]
    fn forget(&mut self, client: u64) -> Result<(), Error>;

    /// Returns the pager's counts so far.
    #[method(5)]
    fn statistics(&mut self) -> Result<Statistics, Error>;

    /// Stops serving, once this has its reply.
    #[method(6, authority)]
    fn stop(&mut self) -> Result<(), Error>;
}

/// Counts of a pager's work: pages, and faults that were refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub struct Statistics {
    /// Zeroed pages.
    pub fresh: u64,
    /// Pages copied, because another client shows them.
    pub copied: u64,
    /// Pages written in place, because nobody else shows them any more.
    pub kept: u64,
    /// Pages that one more client shows.
    pub joined: u64,
    /// Faults that were refused.
    pub refused: u64,
    /// Pages that are free.
    pub free: u64,
}

tench_protocol::codes! {
    /// Why a request or a fault was refused.
    pub enum Error {
        /// The region is not aligned, or attached already.
        BadRegion = 2, "a region begins at a multiple of 2 MiB, and is attached once";
        /// There is no such region.
        NoSuchRegion = 4, "no such region; attach it first";
        /// The region to fill is not empty.
        NotEmpty = 5, "the region has pages already; share into a new one";
        /// The pager does not share that client's pages with this one.
        NotAllowed = 6, "this client may not see that one's pages";
        /// A fault outside of what the pager provides.
        NotMine = 7, "the address lies in no region of this client, or an instruction was fetched there";
        /// The pager has no free page, or none for this client.
        OutOfPages = 8, "the pager has no free page for this client; detach a region";
        /// The kernel refused a mapping.
        Refused = 9, "the kernel refused the mapping; the client's page table is gone or in use";
        /// The pager serves no more regions of this client.
        TooManyRegions = 10, "the pager serves no more regions of this client; detach one";
    }
}
