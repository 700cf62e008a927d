//! Workloads for each server that check every reply. Each returns the instructions that it took.

use alloc::format;
use alloc::vec::Vec;

use tench::abi::Powers;
use tench::abi::layout::slot;
use tench::abi::power::Client;
use tench::clock::Clock;
use tench::console::protocol::{Console, Error as ConsoleError};
use tench::files::Files;
use tench::files::protocol::{Error as FilesError, How, Kind as FileKind, Usage};
use tench::io::{self, Read, Write};
use tench::mem::Mem;
use tench::names::Names;
use tench::names::protocol::Error as NamesError;
use tench::procs::Procs;
use tench::procs::protocol::{Error as ProcsError, State};
use tench::sys::{Cap, Endpoint, Frame, Instant, Kind, OWN_CSPACE, Placement};
use tench::time::instructions;
use tench::{fs, memory, process};
use tench_protocol::Failure as RequestFailure;

use super::now;
use crate::case::{Failure, Outcome};
use crate::child::COMPLIED;
use crate::stage::PRIORITY;

/// A sum of instructions; the counter has 32 bits.
pub struct Meter(pub u64);

impl Meter {
    /// Adds the instructions of a request.
    pub fn of<T>(&mut self, request: impl FnOnce() -> T) -> T {
        let start = instructions();
        let result = request();
        self.0 += u64::from((instructions() as u32).wrapping_sub(start as u32));
        result
    }
}

/// Returns a function that turns an error into a failure naming the request.
fn because<E: core::fmt::Debug>(what: &'static str) -> impl Fn(E) -> Failure {
    move |failure| Failure::new(format!("{what}: {failure:?}"))
}

/// Allocates blocks of several sizes, makes an object in one, and frees them.
pub fn blocks(number: u64) -> Outcome<u64> {
    let (mem, mut meter) = (Mem::STANDARD, Meter(0));
    let mut held = [None; 6];
    for (index, entry) in (0..).zip(&mut held) {
        let (slot, bits) = (memory::take_slot()?, 12 + (index + number as u32) % 5);
        let block = meter.of(|| mem.allocate(bits, slot))?;
        equal!(block.size_bits, bits);
        *entry = Some(block);
    }
    for block in held.into_iter().flatten() {
        let slot = memory::take_slot()?;
        block.untyped.retype_many(Kind::Frame, 12, 1, Placement::Watermark, OWN_CSPACE, slot)?;
        equal!(Cap::<Frame>::new(slot).identify()?.size_bits, 12);
        equal!(meter.of(|| mem.free(block.number))?, 1 << block.size_bits);
        equal!(OWN_CSPACE.identify_at(slot)?.kind, Kind::Null);
        memory::free_slot(slot);
        memory::free_slot(block.untyped.address());
    }
    Ok(meter.0)
}

/// Starts a process that ends by itself, and abandons one before it starts.
pub fn processes(_: u64) -> Outcome<u64> {
    let (procs, mut meter) = (Procs::STANDARD, Meter(0));
    let process = meter.of(|| {
        let child = procs.prepare("cases")?;
        child.argument("comply")?;
        // With this program's priority: the child is part of the workload.
        child.configure(PRIORITY as u8, PRIORITY as u8, 0, Powers::empty())?;
        child.start()
    })?;
    let status = meter.of(|| procs.wait(process))?;
    equal!((status.process, status.state, status.exit_code()), (process, State::Exited, Some(COMPLIED)));
    let spawn = meter.of(|| procs.prepare("cases"))?;
    equal!(procs.status(spawn.process())?.state, State::Preparing);
    meter.of(|| spawn.abandon());
    equal!(
        procs.status(spawn.process()).map(drop),
        Err::<(), _>(tench::procs::Failure::Refused(ProcsError::NoSuchProcess))
    );
    Ok(meter.0)
}

/// Registers, finds, awaits and gives up names.
pub fn names(number: u64) -> Outcome<u64> {
    let (names, mut meter) = (Names::STANDARD, Meter(0));
    let (endpoint, slot) = (memory::make::<Endpoint>(0)?, memory::take_slot()?);
    for index in 0..4 {
        let name = format!("work/{number}/{index}");
        meter.of(|| names.register(&name, endpoint.cap())).map_err(because("a name is not registered"))?;
        for waits in [false, true] {
            let found = meter.of(|| if waits { names.wait_for(&name, slot) } else { names.look_up(&name, slot) });
            let found = found.map_err(because("a name is not found"))?.identify()?;
            // The name was registered through a capability without a badge, so the badge found says which process this
            // is, and of which family.
            let own = Client::of_badge(OWN_CSPACE.identify_at(slot::PROCS)?.badge);
            equal!(
                (found.kind, found.badge, own.process),
                (Kind::Endpoint, own.badge(Powers::empty()), tench::process::id())
            );
            OWN_CSPACE.delete_at(slot)?;
        }
        meter.of(|| names.unregister(&name)).map_err(because("a name is not given up"))?;
        let gone = meter.of(|| names.look_up(&name, slot));
        check!(matches!(gone, Err(tench::names::Failure::Refused(NamesError::Unknown))));
    }
    memory::free_slot(slot);
    Ok(meter.0)
}

/// Returns the number of names.
pub fn count_names() -> usize {
    let mut count = 0;
    let mut last = tench_protocol::ArrayString::<255>::new();
    while let Ok((next, _)) = Names::STANDARD.next(&last) {
        last = next;
        count += 1;
    }
    count
}

/// Waits for delays of several lengths, none of which may be too short.
pub fn delays(number: u64) -> Outcome<u64> {
    let mut meter = Meter(0);
    let slot = memory::take_slot()?;
    let found = Names::STANDARD.look_up(Clock::NAME, slot).map_err(because("there is no clock"))?;
    let clock = Clock::at(found);
    for index in 0..4 {
        let ticks = 50 + 100 * ((number + index) % 4);
        let start = now();
        // Other threads run meanwhile.
        let end = clock.delay(ticks).map_err(because("a delay"))?;
        check!(end.ticks() >= start + ticks && end <= Instant::now());
        let passed = meter.of(|| clock.delay_until(Instant::from_ticks(start))).map_err(because("what is past"))?;
        check!(passed >= end);
        let (time, ..) = meter.of(|| clock.time()).map_err(because("the time"))?;
        check!(time >= passed);
    }
    found.delete()?;
    memory::free_slot(slot);
    Ok(meter.0)
}

/// Writes a little text, and queries the console.
pub fn texts(_: u64) -> Outcome<u64> {
    let (console, mut meter) = (Console::at(Cap::<Endpoint>::new(slot::CONSOLE)), Meter(0));
    for _ in 0..3 {
        meter.of(|| console.put(b".")).map_err(because::<tench_protocol::Failure<ConsoleError>>("a text"))?;
        // Other threads run meanwhile.
        console.drain().map_err(because("the line"))?;
        let nothing = meter.of(|| console.get(0)).map_err(because("a read of nothing"))?;
        equal!(nothing.len(), 0);
        let (_, _, is_mid_line) = meter.of(|| console.state()).map_err(because("the state"))?;
        check!(is_mid_line);
    }
    console.put(b"\n").map_err(because("the end of a line"))?;
    Ok(meter.0)
}

/// Bytes of a file: more than two blocks.
const FILE: usize = 9_000;

/// Sends bytes through a pipe, and writes, reads, changes and removes a file.
pub fn streams(number: u64) -> Outcome<u64> {
    let mut meter = Meter(0);
    let (mut reader, mut writer) = meter.of(io::pipe)?;
    let text: Vec<u8> = (0..480).map(|index| (index ^ number) as u8).collect();
    for part in [480, 1, 77] {
        meter.of(|| writer.write(&text[..part]))?;
        let mut found = [0; 480];
        equal!(meter.of(|| reader.read(&mut found))?, part);
        check!(found[..part] == text[..part]);
    }
    let other = meter.of(|| writer.share(process::id()))?;
    drop((writer, other));
    equal!(meter.of(|| reader.read(&mut [0; 8]))?, 0);
    let path = format!("/own/file {number}");
    meter.of(|| fs::make_directory("/own"))?;
    let bytes: Vec<u8> = text.iter().copied().cycle().take(FILE).collect();
    meter.of(|| fs::write(&path, &bytes))?;
    check!(meter.of(|| fs::read(&path))? == bytes);
    let file = meter.of(|| fs::open_as(&path, How::Update))?;
    meter.of(|| file.truncate(5_000))?;
    check!(meter.of(|| fs::read(&path))? == bytes[..5_000]);
    drop(file);
    meter.of(|| fs::remove(&path))?;
    meter.of(|| fs::remove("/own"))?;
    check!(fs::status(&path).is_err());
    Ok(meter.0)
}

/// Returns the file server's usage.
pub fn file_usage() -> Outcome<Usage> {
    tench::again(|| Files::STANDARD.usage()).map_err(because("the file server's usage"))
}

/// Removes everything in the root and in `/tmp` that does not belong to the boot archive. Contents of a directory are
/// moved to `/tmp` first, because their paths can be too long.
pub fn remove_files() -> Outcome {
    let (mut moved, mut before) = (0, 0);
    loop {
        for directory in ["", "/tmp/"] {
            for (name, status) in
                fs::entries(if directory.is_empty() { "/" } else { directory }).collect::<Result<Vec<_>, _>>()?
            {
                let path = format!("{directory}{name}");
                match status.kind {
                    FileKind::ArchiveFile => {}
                    FileKind::File => fs::remove(&path)?,
                    FileKind::Directory => match fs::remove(&path) {
                        // A directory on the path of a file of the archive stays.
                        Ok(()) | Err(io::Error::Files(RequestFailure::Refused(FilesError::ReadOnly))) => {}
                        Err(io::Error::Files(RequestFailure::Refused(FilesError::NotEmpty))) => {
                            for (name, _) in fs::entries(&path).collect::<Result<Vec<_>, _>>()? {
                                moved += 1;
                                fs::rename(&format!("{path}/{name}"), &format!("/tmp/moved{moved}"))?;
                            }
                        }
                        Err(error) => return Err(error.into()),
                    },
                }
            }
        }
        if moved == before {
            return Ok(());
        }
        before = moved;
    }
}
