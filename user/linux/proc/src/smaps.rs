//! The areas of a process with the pages that are there: `/proc/PID/smaps`, and their sums in `smaps_rollup`.

use alloc::vec::Vec;

use crate::maps::Map;
use crate::text::Text;

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Bits behind the point of a [`Residence`]'s proportional sizes, as with Linux, whose sums lose as much.
const FRACTION: u32 = 12;

/// To whom a page belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// To processes.
    Process,
    /// To a file.
    File,
    /// To a file in memory, or to memory that processes share.
    Memory,
}

/// A page that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// To whom it belongs.
    pub owner: Owner,
    /// Set if the page's contents are nowhere else.
    pub is_dirty: bool,
    /// In how many places it is mapped.
    pub places: u32,
}

/// Sums of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Residence {
    /// Bytes that are mapped in several places: those of clean pages, of dirty pages.
    shared: [u64; 2],
    /// Bytes that are mapped in one place: those of clean pages, of dirty pages.
    own: [u64; 2],
    /// Bytes that belong to processes.
    anonymous: u64,
    /// Bytes of each owner, divided by the number of places, with a [`FRACTION`].
    proportional: [u64; 3],
    /// Bytes of dirty pages, divided in the same way.
    proportional_dirty: u64,
}

impl Residence {
    /// Adds a page.
    pub fn add(&mut self, page: Page) {
        let sums = if page.places > 1 { &mut self.shared } else { &mut self.own };
        sums[usize::from(page.is_dirty)] += PAGE;
        let part = (PAGE << FRACTION) / u64::from(page.places.max(1));
        self.proportional[page.owner as usize] += part;
        if page.is_dirty {
            self.proportional_dirty += part;
        }
        if page.owner == Owner::Process {
            self.anonymous += PAGE;
        }
    }

    /// Adds the pages of another area.
    fn join(&mut self, other: &Residence) {
        for index in 0..2 {
            self.shared[index] += other.shared[index];
            self.own[index] += other.own[index];
        }
        for (sum, one) in self.proportional.iter_mut().zip(other.proportional) {
            *sum += one;
        }
        self.anonymous += other.anonymous;
        self.proportional_dirty += other.proportional_dirty;
    }
}

/// An area with the pages that it uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The area.
    pub map: Map,
    /// The process may give itself the right to read it, to write it, to execute it.
    pub allowed: [bool; 3],
    /// The area grows downwards.
    pub grows: bool,
    /// Sums of the area's pages.
    pub pages: Residence,
}

/// Returns the text of areas with their pages.
pub fn smaps(uses: &[Use]) -> Vec<u8> {
    let mut text = Text::default();
    for one in uses {
        text.add_map(&one.map);
        text.add_size("Size:", one.map.range.end - one.map.range.start);
        text.add_size("KernelPageSize:", PAGE);
        text.add_size("MMUPageSize:", PAGE);
        text.add_residence(&one.pages, false);
        text.add(format_args!("THPeligible:    0\nVmFlags: "));
        for (_, name) in flags(one).into_iter().filter(|(set, _)| *set) {
            text.add(format_args!("{name} "));
        }
        text.0.push(b'\n');
    }
    text.0
}

/// Returns the text of the sums of all areas.
pub fn smaps_rollup(uses: &[Use]) -> Vec<u8> {
    let mut pages = Residence::default();
    for one in uses {
        pages.join(&one.pages);
    }
    let first = uses.first().map_or(0, |one| one.map.range.start);
    let last = uses.last().map_or(0, |one| one.map.range.end);
    let map = Map {
        range: first..last,
        rights: [false; 3],
        is_shared: false,
        offset: 0,
        device: (0, 0),
        inode: 0,
        name: b"[rollup]".to_vec(),
    };
    let mut text = Text::default();
    text.add_map(&map);
    text.add_residence(&pages, true);
    text.0
}

/// Returns the names of an area's flags, with whether it has them.
fn flags(one: &Use) -> [(bool, &'static str); 10] {
    let ([read, write, execute], [may_read, may_write, may_execute]) = (one.map.rights, one.allowed);
    let is_shared = one.map.is_shared;
    [
        (read, "rd"),
        (write, "wr"),
        (execute, "ex"),
        // What is shared, but can never be written, is shared in name only.
        (is_shared && may_write, "sh"),
        (may_read, "mr"),
        (may_write, "mw"),
        (may_execute, "me"),
        (is_shared, "ms"),
        (one.grows, "gd"),
        (!is_shared && write, "ac"),
    ]
}

impl Text {
    /// Adds a line with a number of bytes.
    fn add_size(&mut self, name: &str, bytes: u64) {
        // A longer name has less room for the number.
        self.add(format_args!("{name:<15}{:>1$} kB\n", bytes >> 10, 24 - name.len().max(15)));
    }

    /// Adds lines about pages, with a line for each owner in the sums.
    fn add_residence(&mut self, pages: &Residence, is_rollup: bool) {
        let total = |pair: [u64; 2]| pair[0] + pair[1];
        let resident = total(pages.shared) + total(pages.own);
        self.add_size("Rss:", resident);
        self.add_size("Pss:", pages.proportional.iter().sum::<u64>() >> FRACTION);
        self.add_size("Pss_Dirty:", pages.proportional_dirty >> FRACTION);
        if is_rollup {
            for (name, bytes) in ["Pss_Anon:", "Pss_File:", "Pss_Shmem:"].into_iter().zip(pages.proportional) {
                self.add_size(name, bytes >> FRACTION);
            }
        }
        self.add_size("Shared_Clean:", pages.shared[0]);
        self.add_size("Shared_Dirty:", pages.shared[1]);
        self.add_size("Private_Clean:", pages.own[0]);
        self.add_size("Private_Dirty:", pages.own[1]);
        self.add_size("Referenced:", resident);
        self.add_size("Anonymous:", pages.anonymous);
        let never = ["LazyFree:", "AnonHugePages:", "ShmemPmdMapped:", "FilePmdMapped:", "Shared_Hugetlb:"];
        for name in never.into_iter().chain(["Private_Hugetlb:", "Swap:", "SwapPss:", "Locked:"]) {
            self.add_size(name, 0);
        }
    }
}
