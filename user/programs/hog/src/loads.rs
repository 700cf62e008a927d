//! What a thread does again and again.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec;
use core::hint::black_box;

use tench::abi::memory::{PAGE_BITS, PAGE_SIZE};
use tench::memory::{self, Made, Window, make};
use tench::runtime::text;
use tench::sys::{CapAddress, Error, Frame, Instant, Kind, MapFlags, Notification, OWN_SPACE, Place, Untyped};
use tench::time;
use tench_hog::Load;

use crate::ipc::Ipc;

/// Steps of a loop that calculates.
const STEPS: u64 = 1000;
/// Log2 of the memory that is mapped and touched in a round.
const WINDOW_BITS: u32 = 16;
/// Frames that are made of untyped memory in a round, and log2 of that memory.
const FRAMES: u32 = 32;
const POOL_BITS: u64 = 17;
/// Bytes that come on demand in a round: so many that the heap has no place for them, and gives back what it asked for.
const HEAP: usize = 256 * 1024;
/// From asking for a deadline to the deadline, as part of a second: long enough that it lies ahead when the kernel
/// looks.
const LEAD: u64 = 1_000_000;
/// The most of what a deadline has cost that counts, as part of a second: who was kept waiting did not cost that much.
const MOST: u64 = 1000;

/// Does a round after the other.
pub trait Rounds {
    /// Does one.
    fn round(&mut self) -> Result<(), String>;
}

/// Makes what a load needs, in a thread of this priority. `rivals` are the threads with this load, if there is another
/// load that is to get on as well, and otherwise 0.
pub fn make_load(load: Load, priority: u8, rivals: u64) -> Result<Box<dyn Rounds>, String> {
    Ok(match load {
        Load::Cpu => Box::new(Cpu(1)),
        Load::Ipc => Box::new(Ipc::new(priority)?),
        Load::Memory => Box::new(Memory::new()?),
        Load::Interrupts => Box::new(Interrupts::new(rivals)?),
    })
}

/// Calculates.
struct Cpu(u64);

impl Rounds for Cpu {
    fn round(&mut self) -> Result<(), String> {
        for _ in 0..STEPS {
            self.0 = black_box(self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
        }
        Ok(())
    }
}

/// Takes memory and gives it back, in three ways.
struct Memory {
    pool: Made<Untyped>,
    /// As many slots side by side as there are frames.
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

    /// Makes frames of untyped memory, and revokes it: nothing of them is left then.
    fn revoke(&mut self) -> Result<(), String> {
        let pool = self.pool.cap();
        let (kind, bits) = (Kind::Frame, u64::from(PAGE_BITS));
        pool.retype_many(kind, bits, u64::from(FRAMES), Place::Watermark, OWN_SPACE, self.slots).map_err(text)?;
        pool.revoke().map_err(text)?;
        let (left, watermark) = (pool.children().map_err(text)?.objects, pool.query().map_err(text)?.watermark);
        if (left, watermark) == (0, 0) { Ok(()) } else { Err("something outlived its revocation".into()) }
    }

    /// Touches memory that comes on demand.
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
        // What was in them went with the last revocation.
        (0..FRAMES).for_each(|number| memory::free_slot(CapAddress(self.slots.0 + number)));
    }
}

/// Waits for deadlines. It comes before other loads, so it leaves as much time as it takes if there are any.
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
