//! The machine below the personality: pages are parts of large frames, which are mapped here as a whole, and tables are
//! the kernel's.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use tench::abi::memory::{MAX_SCATTERED, MAX_SET, PAGE_SIZE, TABLE_ENTRIES, entry_bits};
use tench::console::protocol::{Console, Mode};
use tench::memory::{Made, Pages, free_slot, make, reserve_heap, take_slot};
use tench::sys::{Cap, CapAddress, Endpoint, MapFlags, Mapping, PageTable, Reply};
use tench::time::Instant;
use tench::{io, process, time};
use tench_linux::Machine;
use tench_linux::mounts::errand::{self, Errand, Finding};
use tench_linux::thread::{Entrance, FloatRegisters, Registers, Rest};
use tench_linux_files::Errno;
use tench_linux_memory::{Hardware, Page, Place, Rights};
use tench_mem_interface::Mem;

use crate::clock::Clock;
use crate::outside::{Event, Outside};
use crate::threads::{Answer, Thread, Threads, Way};
use crate::timer::{self, Timer};
use crate::worker::{self, Server, Worker};

/// Number of frames of which a table can map pages.
const MAX_BANKS: usize = MAX_SCATTERED;
/// Stands for no bank.
const NO_BANK: u8 = u8::MAX;

/// A frame with pages of the pool.
#[derive(Debug)]
struct Bank {
    /// Number of the first page.
    first: u32,
    /// Number of pages.
    count: u32,
    pages: Pages,
}

/// Pages and page tables of the kernel.
#[derive(Debug)]
pub struct Kernel {
    banks: Vec<Bank>,
    random: ChaCha8Rng,
    threads: Threads,
    outside: Outside,
    /// The time for which it waits.
    pub timer: Timer,
    /// Does errands at file servers.
    worker: Worker,
    clock: Clock,
    /// Time from the beginning of 1970 to the machine's start; zero if nobody knows the date.
    start: Duration,
    /// Bytes that are kept beside those that can be allocated.
    kept: usize,
}

/// The page tables of an address space but those of the lowest level, by level and first address.
#[derive(Debug)]
pub struct Root {
    table: Made<PageTable>,
    upper: BTreeMap<(u32, u64), Made<PageTable>>,
}

impl Root {
    /// Returns the table of level 0.
    pub const fn table(&self) -> Cap<PageTable> {
        self.table.cap()
    }
}

/// A table of 512 pages.
#[derive(Debug)]
pub struct Table {
    table: Made<PageTable>,
    /// For each bank, the mapping of its pages.
    mappings: [Option<Cap<Mapping>>; MAX_BANKS],
    /// For each entry, the bank of its page.
    banks: [u8; TABLE_ENTRIES],
}

/// Returns an entry's index in the table of a level.
const fn entry(address: u64, level: u32) -> u64 {
    address >> entry_bits(level) & (TABLE_ENTRIES as u64 - 1)
}

fn flags(rights: Rights) -> MapFlags {
    let mut flags = MapFlags::empty();
    flags.set(MapFlags::READ, rights.contains(Rights::READ));
    flags.set(MapFlags::WRITE, rights.contains(Rights::WRITE));
    flags.set(MapFlags::EXECUTE, rights.contains(Rights::EXECUTE));
    flags
}

/// All errors of making and mapping mean that there is no memory, or no slot for a capability.
fn no_memory<E>(_: E) -> Errno {
    Errno::ENOMEM
}

/// Returns a new capability's slot, filled by a function.
fn in_slot<T>(fill: impl FnOnce(CapAddress) -> Result<T, tench::sys::Error>) -> Result<T, Errno> {
    let slot = take_slot().map_err(no_memory)?;
    fill(slot).map_err(|_| {
        free_slot(slot);
        Errno::ENOMEM
    })
}

/// Returns the seed of random numbers. Nobody gives programs one, so it comes from what differs between processes: the
/// addresses at which this one was put, which the system has drawn, and the time.
fn seed() -> [u8; 32] {
    let on_stack = 0u8;
    let on_heap = Box::new(0u8);
    let places = [seed as *const () as u64, (&raw const on_stack).addr() as u64, (&raw const *on_heap).addr() as u64];
    let mut seed = [0; 32];
    for (part, word) in seed.chunks_exact_mut(8).zip(places.into_iter().chain([Instant::now().ticks()])) {
        part.copy_from_slice(&word.to_le_bytes());
    }
    seed
}

impl Kernel {
    /// Returns a machine without pages and threads.
    pub fn new() -> Result<Kernel, tench::memory::Error> {
        let random = ChaCha8Rng::from_seed(seed());
        let start = time::wall_clock_at_start().unwrap_or_default();
        let (threads, outside) = (Threads::new()?, Outside::new()?);
        let (timer, worker) = (Timer::new(outside.arrived()), Worker::new(outside.arrived()));
        Ok(Kernel { banks: Vec::new(), random, threads, outside, timer, worker, clock: Clock::new(), start, kept: 0 })
    }

    /// Returns the endpoint at which calls and faults come.
    pub const fn endpoint(&self) -> Cap<Endpoint> {
        self.threads.endpoint()
    }

    /// Returns the reply object with which to receive.
    pub const fn current(&self) -> Cap<Reply> {
        self.threads.current()
    }

    /// Takes the answer to what was received last, if there is one already.
    pub const fn take_answer(&mut self) -> Option<Answer> {
        self.threads.take_answer()
    }

    /// Takes what has happened outside.
    pub fn take_event(&mut self, bits: u64) -> Event {
        if bits & timer::BIT != 0 {
            self.timer.pass();
        }
        self.outside.take_event(bits)
    }

    /// Takes the findings of errands that have come.
    pub fn take_findings(&mut self, bits: u64) -> Vec<(u64, Result<Finding, Errno>)> {
        if bits & worker::BIT == 0 { Vec::new() } else { self.worker.take_findings() }
    }

    /// Returns the bank of a page.
    fn bank(&self, page: Page) -> usize {
        // The last one usually has the most pages.
        self.banks.iter().rposition(|bank| bank.first <= page.number()).unwrap_or(0)
    }

    /// Returns where a page of a bank lies in its frame, in bytes.
    fn offset(bank: &Bank, page: Page) -> u64 {
        u64::from(page.number() - bank.first) * PAGE_SIZE as u64
    }

    /// Returns where a page lies here.
    fn address(&self, page: Page) -> *mut [u8; PAGE_SIZE] {
        let bank = &self.banks[self.bank(page)];
        assert!(page.number() - bank.first < bank.count, "a page of a bank");
        core::ptr::with_exposed_provenance_mut(bank.pages.address() + Kernel::offset(bank, page) as usize)
    }

    /// Returns a table's mapping of a bank, which is made if there is none.
    fn mapping(&self, table: &mut Table, bank: usize) -> Result<Cap<Mapping>, Errno> {
        let place = table.mappings.get_mut(bank).ok_or(Errno::ENOMEM)?;
        if let Some(mapping) = place {
            return Ok(*mapping);
        }
        let frame = self.banks[bank].pages.frame();
        let mapping = in_slot(|slot| frame.scatter(table.table.cap(), slot))?;
        *place = Some(mapping);
        Ok(mapping)
    }

    /// Returns the table of a level above the lowest in which an address lies, which is made if there is none.
    fn upper(root: &mut Root, level: u32, address: u64) -> Result<Cap<PageTable>, Errno> {
        if level == 0 {
            return Ok(root.table.cap());
        }
        let base = address & !((1 << entry_bits(level - 1)) - 1);
        if let Some(table) = root.upper.get(&(level, base)) {
            return Ok(table.cap());
        }
        let parent = Kernel::upper(root, level - 1, address)?;
        let table = make::<PageTable>(level.into()).map_err(no_memory)?;
        table.cap().install(parent, entry(address, level - 1)).map_err(no_memory)?;
        let cap = table.cap();
        root.upper.insert((level, base), table);
        Ok(cap)
    }
}

/// Returns the length of the run of neighbouring pages at the beginning, of one bank and as many as can be set at once.
fn run(kernel: &Kernel, pages: &[Page]) -> usize {
    let first = pages[0];
    let bank = kernel.bank(first);
    let neighbours = pages
        .iter()
        .enumerate()
        .take_while(|(index, page)| page.number() == first.number() + *index as u32 && kernel.bank(**page) == bank);
    neighbours.take(MAX_SET as usize).count()
}

impl Hardware for Kernel {
    type Root = Root;
    type Table = Table;

    fn can_allocate(&mut self, bytes: usize) -> bool {
        reserve_heap(bytes.saturating_add(self.kept)).is_ok()
    }

    fn grow(&mut self, pages: u32) -> bool {
        if self.banks.len() == MAX_BANKS {
            return false;
        }
        let first = self.banks.last().map_or(0, |bank| bank.first + bank.count);
        match Pages::new(pages as usize * PAGE_SIZE) {
            Ok(memory) => {
                self.banks.push(Bank { first, count: pages, pages: memory });
                true
            }
            Err(_) => false,
        }
    }

    fn bytes(&mut self, page: Page) -> &mut [u8; PAGE_SIZE] {
        // SAFETY: the page lies in memory that is mapped as long as `self` lives. It is borrowed for as long as `self`,
        // and processes, which may change it meanwhile, do not run while the personality works.
        unsafe { &mut *self.address(page) }
    }

    fn copy(&mut self, from: Place, to: Place, length: usize) {
        assert!(from.offset.max(to.offset) + length <= PAGE_SIZE, "a part of each page");
        let (source, target) = (self.address(from.page).cast::<u8>(), self.address(to.page).cast::<u8>());
        let (source, target) = (source.wrapping_add(from.offset), target.wrapping_add(to.offset));
        // SAFETY: both pages are mapped, the bytes lie within them, and nobody has a reference into either.
        unsafe { source.copy_to(target, length) };
    }

    fn make_root(&mut self) -> Result<Root, Errno> {
        Ok(Root { table: make(0).map_err(no_memory)?, upper: BTreeMap::new() })
    }

    fn make_table(&mut self, root: &mut Root, address: u64) -> Result<Table, Errno> {
        let parent = Kernel::upper(root, 2, address)?;
        let table = make::<PageTable>(3).map_err(no_memory)?;
        table.cap().install(parent, entry(address, 2)).map_err(no_memory)?;
        Ok(Table { table, mappings: [None; MAX_BANKS], banks: [NO_BANK; TABLE_ENTRIES] })
    }

    fn map(&mut self, table: &mut Table, first: usize, pages: &[Page], rights: Rights) -> Result<(), Errno> {
        let mut done = 0;
        while done < pages.len() {
            let count = run(self, &pages[done..]);
            let (bank, start) = (self.bank(pages[done]), first + done);
            // Entries of another bank's mapping have to be freed first.
            let old = table.banks[start..start + count].iter().any(|old| *old != NO_BANK && *old as usize != bank);
            if old {
                self.unmap(table, start, count);
            }
            let mapping = self.mapping(table, bank)?;
            let offset = Kernel::offset(&self.banks[bank], pages[done]);
            // SAFETY: a process uses the addresses, not this program.
            unsafe { mapping.set(start as u64, count as u64, offset, flags(rights)) }.map_err(no_memory)?;
            table.banks[start..start + count].fill(bank as u8);
            done += count;
        }
        Ok(())
    }

    fn unmap(&mut self, table: &mut Table, first: usize, count: usize) {
        let mut start = first;
        while start < first + count {
            let bank = table.banks[start];
            let same = table.banks[start..first + count].iter().take_while(|other| **other == bank);
            let count = same.take(MAX_SET as usize).count();
            if let Some(Some(mapping)) = table.mappings.get(bank as usize) {
                // SAFETY: a process uses the addresses, not this program.
                let freed = unsafe { mapping.set(start as u64, count as u64, 0, MapFlags::empty()) };
                debug_assert!(freed.is_ok(), "entries of a mapping can always be freed");
            }
            table.banks[start..start + count].fill(NO_BANK);
            start += count;
        }
    }

    fn share(&mut self, from: &mut Table, to: &mut Table, used: Range<usize>) -> Result<(), Errno> {
        for bank in 0..MAX_BANKS {
            let Some(source) = from.mappings[bank] else { continue };
            let target = self.mapping(to, bank)?;
            let kept = MapFlags::READ | MapFlags::EXECUTE;
            source.clone_to(target, used.start as u64, used.len() as u64, kept, true).map_err(no_memory)?;
        }
        to.banks = from.banks;
        Ok(())
    }

    fn drop_table(&mut self, _: &mut Root, table: Table) {
        for mapping in table.mappings.into_iter().flatten() {
            let deleted = mapping.delete();
            debug_assert!(deleted.is_ok(), "a mapping can always be deleted");
            free_slot(mapping.address());
        }
    }

    fn drop_root(&mut self, root: Root) {
        drop(root);
    }
}

impl tench_linux::Threads for Kernel {
    type Thread = Thread;

    fn make_thread(&mut self, root: &Root, process: u32) -> Result<Thread, Errno> {
        self.threads.make(root.table(), process).map_err(no_memory)
    }

    fn end_thread(&mut self, thread: Thread) {
        self.threads.end(thread);
    }

    fn answer(&mut self, thread: &mut Thread, result: Option<u64>) {
        self.threads.answer(thread, result);
    }

    fn give_way(&mut self, thread: &mut Thread, result: u64) {
        self.threads.give_way(thread, result);
    }

    fn keep(&mut self, thread: &mut Thread) {
        self.threads.keep(thread);
    }

    fn forget(&mut self, thread: &mut Thread) {
        self.threads.forget(thread);
    }

    fn stop(&mut self, thread: &mut Thread) {
        self.threads.stop(thread);
    }

    fn registers(&mut self, thread: &Thread) -> Registers {
        thread.registers()
    }

    fn float_registers(&mut self, thread: &Thread) -> FloatRegisters {
        thread.float_registers()
    }

    fn set_registers(&mut self, thread: &mut Thread, registers: &Registers) {
        thread.set_registers(registers);
    }

    fn step(&mut self, thread: &mut Thread, registers: &Registers, rest: Rest) {
        thread.step(registers, rest == Rest::Stopped);
    }

    fn set_float_registers(&mut self, thread: &mut Thread, registers: &FloatRegisters) {
        thread.set_float_registers(registers);
    }

    fn set_entrance(&mut self, thread: &mut Thread, root: &Root, entrance: Entrance) -> Result<u64, Errno> {
        let way = match entrance {
            Entrance::Exceptions => Way::Exceptions,
            Entrance::Messages => Way::Messages,
            Entrance::Upcalls { entry, buffer } => {
                let bank = &self.banks[self.bank(buffer)];
                Way::Upcalls { entry, frame: bank.pages.frame(), offset: Kernel::offset(bank, buffer) }
            }
        };
        self.threads.set_way(thread, root.table(), way).map_err(no_memory)
    }

    fn move_thread(&mut self, thread: &mut Thread, root: &Root) {
        self.threads.move_thread(thread, root.table());
    }

    fn set_turn(&mut self, thread: &mut Thread, parts: u32) {
        thread.set_turn(parts);
    }

    fn used(&mut self, thread: &Thread) -> Duration {
        self.clock.duration(thread.ticks())
    }

    fn run(&mut self, thread: &mut Thread, registers: &Registers) {
        thread.run(registers);
    }
}

impl Machine for Kernel {
    fn further_pages(&self) -> u64 {
        let server = Mem::STANDARD;
        let (Ok(account), Ok(totals)) = (server.next_account(process::id() - 1), server.totals()) else { return 0 };
        account.quota.saturating_sub(account.used).min(totals.free) / PAGE_SIZE as u64
    }

    fn monotonic(&self) -> Duration {
        self.clock.uptime()
    }

    fn frequency(&self) -> u64 {
        time::frequency()
    }

    fn start(&self) -> Duration {
        self.start
    }

    fn are_console(&self) -> [bool; 3] {
        io::are_console()
    }

    fn write_outside(&mut self, stream: u32, bytes: &[u8]) -> Result<usize, Errno> {
        let write = if stream == 2 { io::write_error } else { io::write };
        write(bytes).map(|()| bytes.len()).map_err(|error| if error.is_broken() { Errno::EPIPE } else { Errno::EIO })
    }

    fn borrow_terminal(&mut self) -> bool {
        Console::STANDARD.set_mode(Mode::Raw).is_ok()
    }

    fn await_input(&mut self) {
        self.outside.await_input();
    }

    fn keep_room(&mut self, bytes: usize) {
        self.kept = bytes;
    }

    fn begin_errands(&mut self) -> Result<(), Errno> {
        self.worker.start().map_err(no_memory)
    }

    fn send_errand(&mut self, number: u64, errand: Errand) {
        self.worker.send(number, errand);
    }

    fn run_errand(&mut self, errand: Errand) -> Result<Finding, Errno> {
        errand::run(&mut Server, errand)
    }

    fn random(&mut self, into: &mut [u8]) {
        self.random.fill_bytes(into);
    }

    fn report(&mut self, line: &str) {
        tench::eprintln!("{line}");
    }
}
