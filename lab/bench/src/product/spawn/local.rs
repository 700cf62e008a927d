//! Spawning without the process server: the loader library runs in the caller, with the caller's memory and
//! capabilities.
//!
//! The process server does not know the process: it has no number there, nobody can wait for it, its faults go to its
//! maker, its memory is on its maker's account, and it ends when its maker takes that back. Its only server is the
//! memory server, as its maker's own client.

use alloc::string::String;
use alloc::vec::Vec;

use tench::abi::CapAddress;
use tench::abi::layout::slot;
use tench::abi::object::ThreadState;
use tench::mem::{Failure, Mem};
use tench::memory::{self, Made, make};
use tench::sys::{Cap, Endpoint, Error, Untyped, Wait};
use tench::time::{frequency, sleep};
use tench_boot::OwnSpace;
use tench_loader::addresses::{self, Addresses, Randomness};
use tench_loader::information::Description;
use tench_loader::objects::cspace_range;
use tench_loader::{
    Archive, LoadError, Machine, Objects, Process, Program, ROOT_BITS, Resources, Schedule, Shown, Source, StackSize,
    Window,
};

use crate::support::figure;

use super::{MEAN, SETTLED, SIZES, Series, WAITING, cost, last, percent, problem};

/// Slot of the archive's first frame: behind the clock's registers and its interrupt.
const ARCHIVE: CapAddress = CapAddress(slot::EXTRA.0 + 2);
/// Priority of the processes: below their maker's, as when the process server starts them.
const PRIORITY: u8 = 100;
/// Number of time slices in a second.
const SLICES_PER_SECOND: u64 = 100;
/// Process number of a process without one.
const NO_PROCESS: u64 = 0;

/// Memory of one process, on this program's account.
#[derive(Default)]
struct Blocks {
    /// Block numbers by address.
    blocks: Vec<u16>,
}

impl Source for Blocks {
    fn slot(&mut self) -> Result<CapAddress, LoadError> {
        OwnSpace.slot()
    }

    fn free_slot(&mut self, slot: CapAddress) {
        memory::free_slot(slot);
    }

    fn block(&mut self, size_bits: u32, slot: CapAddress) -> Result<Cap<Untyped>, LoadError> {
        match Mem::STANDARD.allocate(size_bits, slot) {
            Ok(block) => {
                self.blocks.push(block.number);
                Ok(block.untyped)
            }
            Err(Failure::Lost(error)) => Err(LoadError::Kernel(error)),
            Err(_) => Err(LoadError::OutOfMemory),
        }
    }

    fn take_back(&mut self) -> bool {
        for block in self.blocks.drain(..) {
            // The block was just given; if it were not taken back, the totals at the end would show it.
            let _ = Mem::STANDARD.free(block);
        }
        true
    }
}

/// State that all processes share.
struct Maker {
    shown: Shown,
    archive: Archive<'static>,
    window: Window,
    random: Randomness,
    cspace_range: u32,
    faults: Made<Endpoint>,
}

/// A process made by this program itself.
struct Child {
    process: Process,
    objects: Objects<Blocks>,
}

impl Maker {
    fn new() -> Result<Maker, String> {
        let mut random = Randomness::from_words(tench::process::info().map_or([0; 4], |info| info.random));
        let window = addresses::window(&mut random.sequence());
        let (shown, archive) = tench_boot::map(ARCHIVE, &mut random).map_err(problem("mapping the archive"))?;
        Ok(Maker {
            shown,
            archive,
            window: Window::new(&mut OwnSpace, window).map_err(problem("a window"))?,
            random,
            cspace_range: cspace_range().map_err(problem("the loader's CSpace range"))?,
            faults: make(0).map_err(problem("an endpoint"))?,
        })
    }

    /// Returns the program file of this name.
    fn file(&self, name: &str) -> Result<&'static [u8], String> {
        let file = self.archive.find_program(name);
        file.map(|file| file.contents).ok_or_else(|| String::from("the archive lacks a program"))
    }

    /// Starts a process of a program.
    fn spawn(&mut self, program: &Program<'_>, name: &str) -> Result<Child, LoadError> {
        let mut program = program.clone();
        let addresses = Addresses::choose(&program, StackSize::of(&program, 0), &mut self.random.sequence());
        program.move_by(addresses.bias);
        let description = Description {
            pid: NO_PROCESS,
            name,
            arguments: &[],
            environment: &[],
            extra_count: 0,
            counter_frequency: frequency(),
            addresses,
        };
        let mut objects = Objects::new(Blocks::default(), self.cspace_range);
        let mut machine = Machine::new(&mut objects, self.window, &self.shown);
        let started = Process::new(&mut machine, &program, &description, ROOT_BITS).and_then(|process| {
            process.give(slot::MEM, slot::MEM)?;
            // Its messages to its process server go to its maker.
            process.give_client(slot::PROCS, self.faults.cap(), NO_PROCESS)?;
            let schedule = Schedule { priority: PRIORITY, ceiling: PRIORITY, slice: frequency() / SLICES_PER_SECOND };
            process.make_ready(schedule, self.faults.cap())?;
            objects.put_away()?;
            process.start()?;
            Ok(process)
        });
        match started {
            Ok(process) => Ok(Child { process, objects }),
            Err(error) => {
                objects.close();
                Err(error)
            }
        }
    }
}

impl Child {
    /// Ends the process.
    fn end(self) -> Result<(), Error> {
        let stopped = self.process.thread.suspend();
        self.objects.close();
        stopped
    }
}

/// Fails unless all processes wait, and none has faulted or is about to end.
fn check(maker: &Maker, children: &[Child]) -> Result<(), String> {
    for child in children {
        let state = child.process.thread.query().map_err(problem("looking"))?.state;
        if state != ThreadState::Waiting {
            return Err(alloc::format!("a process of one's own does not wait, it is {state:?}"));
        }
    }
    match maker.faults.cap().try_receive(Wait::FOREVER) {
        Err(Error::WouldBlock) => Ok(()),
        _ => Err(String::from("a process of one's own has faulted, or would end")),
    }
}

/// Ends all processes, the newest first.
fn end_all(mut children: Vec<Child>) -> Result<[u64; SIZES.len()], String> {
    let mut series = Series::new("local_end");
    let mut means = [0; SIZES.len()];
    while let Some(child) = children.pop() {
        let number = children.len() + 1;
        let ((), cost) = cost("ending", || child.end())?;
        series.add(number, cost);
        if let Some(place) = SIZES.iter().position(|size| number == (*size).saturating_sub(MEAN) + 1) {
            means[place] = last(&series.costs);
            figure(&alloc::format!("local_end_{}", SIZES[place]), means[place]);
        }
    }
    Ok(means)
}

/// Runs all measurements.
pub fn run() -> Result<(), String> {
    let mut maker = Maker::new()?;
    let program = Program::parse(maker.file(WAITING)?).map_err(problem("reading the program"))?;
    let mut series = Series::new("local");
    let mut children = Vec::new();
    let mut means = Vec::new();
    for number in 1..=SIZES[SIZES.len() - 1] {
        let (child, cost) = cost("starting", || maker.spawn(&program, WAITING))?;
        series.add(number, cost);
        children.push(child);
        sleep(SETTLED);
        if SIZES.contains(&number) {
            series.figure(number);
            means.push(last(&series.costs));
        }
    }
    check(&maker, &children)?;
    let [few, many] = means[..] else { return Err(String::from("no figures")) };
    let [few_ends, many_ends] = end_all(children)?;
    percent("local", few, many);
    percent("local_end", few_ends, many_ends);
    Ok(())
}
