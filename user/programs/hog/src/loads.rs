//! The loads: what a thread repeats in rounds.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec;
use core::hint::black_box;

use tench::abi::memory::{PAGE_BITS, PAGE_SIZE};
use tench::memory::{self, Made, Window, make};
use tench::runtime::text;
use tench::sys::{CapAddress, Error, Frame, Instant, Kind, MapFlags, Notification, OWN_CSPACE, Placement, Untyped};
use tench::time;
use tench_hog::Load;

use crate::ipc::Ipc;

/// Number of steps of the computing loop in a round.
const STEPS: u64 = 1000;
/// Log2 of the size of the memory that is mapped and touched in a round.
const WINDOW_BITS: u32 = 16;
/// Number of frames that are made of untyped memory in a round, and log2 of that memory's size.
const FRAMES: u32 = 32;
const POOL_BITS: u64 = 17;
/// Number of bytes that are touched on demand in a round: so many that the heap has no room for them, and gives the
/// memory back afterwards.
const HEAP: usize = 256 * 1024;
/// Time from asking for a deadline to the deadline, as a fraction of a second: long enough that it is in the future
/// when the kernel looks.
const LEAD: u64 = 1_000_000;
/// Maximum cost of a deadline that counts, as a fraction of a second: a thread that was kept waiting did not cost more.
const MOST: u64 = 1000;

/// A load that is done in rounds.
pub trait Rounds {
    /// Does one round.
    fn round(&mut self) -> Result<(), String>;
}

/// Makes a load, in a thread of this priority. `rivals` is the number of threads with this load if another load has to
/// make progress as well, and otherwise 0.
pub fn make_load(load: Load, priority: u8, rivals: u64) -> Result<Box<dyn Rounds>, String> {
    Ok(match load {
        Load::Cpu => Box::new(Cpu(1)),
        Load::Ipc => Box::new(Ipc::new(priority)?),
        Load::Memory => Box::new(Memory::new()?),
        Load::Interrupts => Box::new(Interrupts::new(rivals)?),
    })
}

/// Load by computation.
struct Cpu(u64);

impl Rounds for Cpu {
    fn round(&mut self) -> Result<(), String> {
        for _ in 0..STEPS {
            self.0 = black_box(self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
        }
        Ok(())
    }
}

/// Load by taking memory and giving it back, in three ways.
struct Memory {
    pool: Made<Untyped>,
    /// First of as many adjacent slots as there are frames.
    slots: CapAddress,
    count: u64,
}

impl Memory {
    fn new() -> Result<Memory, String> {
        let pool = make::<Untyped>(POOL_BITS).map_err(text)?;
        let slots = memory::take_slots(FRAMES as usize).map_err(text)?;
        Ok(Memory { pool, slots, count: 0 })
    }

    /// Maps a frame, writes to each of its pages, reads them again, and unmaps it.
    fn map(&mut self) -> Result<(), String> {
        let frame = make::<Frame>(u64::from(WINDOW_BITS)).map_err(text)?;
        let window = Window::new(frame.cap(), WINDOW_BITS, MapFlags::READ | MapFlags::WRITE).map_err(text)?;
        let pages = || (0..1_usize << WINDOW_BITS).step_by(PAGE_SIZE);
        pages().for_each(|offset| window.write64(offset, self.count ^ offset as u64));
        let is_there = pages().all(|offset| window.read64(offset) == self.count ^ offset as u64);
        if is_there { Ok(()) } else { Err("memory holds something else than was written".into()) }
    }

    /// Makes frames of untyped memory, and revokes it, which deletes the frames.
    fn revoke(&mut self) -> Result<(), String> {
        let pool = self.pool.cap();
        let (kind, bits) = (Kind::Frame, u64::from(PAGE_BITS));
        pool.retype_many(kind, bits, u64::from(FRAMES), Placement::Watermark, OWN_CSPACE, self.slots).map_err(text)?;
        pool.revoke().map_err(text)?;
        let (left, watermark) = (pool.children().map_err(text)?.objects, pool.query().map_err(text)?.watermark);
        if (left, watermark) == (0, 0) { Ok(()) } else { Err("something outlived its revocation".into()) }
    }

    /// Touches memory that is populated on demand.
    fn demand(&mut self) {
        let bytes = vec![self.count as u8 | 1; HEAP];
        black_box(&bytes);
    }
}

impl Rounds for Memory {
    fn round(&mut self) -> Result<(), String> {
        self.count += 1;
        self.map()?;
        self.revoke()?;
        self.demand();
        Ok(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // The last revocation deleted the slots' capabilities.
        (0..FRAMES).for_each(|number| memory::free_slot(CapAddress(self.slots.0 + number)));
    }
}

/// Load by waiting for deadlines. It has a higher priority than other loads, so it leaves them as much time as it
/// takes.
struct Interrupts {
    own: Made<Notification>,
    lead: u64,
    most: u64,
    rivals: u64,
    last: Instant,
}

impl Interrupts {
    fn new(rivals: u64) -> Result<Interrupts, String> {
        let own = make::<Notification>(0).map_err(text)?;
        let frequency = time::frequency();
        let (lead, most) = ((frequency / LEAD).max(1), frequency / MOST);
        Ok(Interrupts { own, lead, most, rivals, last: Instant::now() })
    }
}

impl Rounds for Interrupts {
    fn round(&mut self) -> Result<(), String> {
        let own = self.own.cap();
        own.signal().map_err(text)?;
        own.poll().map_err(text)?;
        let now = Instant::now();
        let cost = now.since(self.last).min(self.most);
        self.last = now.after(self.lead + cost * self.rivals);
        match own.wait_until(self.last) {
            Err(Error::TimedOut) => Ok(()),
            Err(error) => Err(error.to_string()),
            Ok(_) => Err("a signal came twice".into()),
        }
    }
}
