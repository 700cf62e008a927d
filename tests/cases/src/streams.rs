//! Tests of byte streams: pipes and files, between processes.

mod pipes;

use alloc::format;
use alloc::vec::Vec;

use tench::abi::layout::slot;
use tench::files::Files;
use tench::files::protocol::{Error as FilesError, How, Usage};
use tench::io::{self, Error, Read, Stdout, Write};
use tench::procs::protocol::State;
use tench::procs::{Procs, Spawn};
use tench::stream::Stream;
use tench::stream::protocol::Error as StreamError;
use tench::sys::{Cap, CapAddress, Instant};
use tench::time::{self, Duration};
use tench::{fs, memory, process, thread};
use tench_protocol::{Failure as RequestFailure, Rejection, again};

use crate::case::{Case, Failure, Outcome};
use crate::child::COMPLIED;
use crate::stage::Stage;

pub const CASES: &[Case] = &[
    Case::new("STR0001", "a mebibyte goes through a pipe from process to process as it was", pipes::mebibyte),
    Case::new(
        "STR0002",
        "a reader gets whole messages, and the end when the last writer is killed",
        pipes::writer_killed,
    ),
    Case::new("STR0003", "a writer who waits is told when the last reader is killed", pipes::reader_killed),
    Case::new("STR0004", "many writers get their turns, and none is divided", pipes::many_writers),
    Case::new("STR0005", "files are written, appended, read, cut, renamed and removed", files),
    Case::new("STR0006", "programs print into streams, and end when nobody reads", printing),
    Case::new("STR0007", "whoever takes all that it can get takes nothing from others, and leaves nothing", greedy),
    Case::new("STR0008", "without space nothing is written, and what is removed can be used again", no_space),
    Case::new("STR0009", "nothing of processes with streams stays anywhere", nothing_stays),
    Case::new("STR0010", "what is no request of a stream's or of the file server's is refused", hostile),
    Case::new("STR0012", "programs in C read and write files and streams", stdio),
    Case::new("STR0013", "files and directories know when they were changed last", times),
    Case::new("STR0011", "a file server that is killed is started again, without what it forgot", restarted),
];

const FILES: Files<tench::procs::Standing> = Files::STANDARD;
const MEBIBYTE: usize = 1 << 20;

impl From<Error> for Failure {
    #[track_caller]
    fn from(error: Error) -> Failure {
        Failure::new(format!("a stream or file refused: {error}"))
    }
}

/// Returns the byte at this offset of what is sent through pipes.
const fn byte(position: usize) -> u8 {
    (position ^ position >> 8 ^ position >> 16).wrapping_mul(167) as u8
}

/// Prepares this program as a child that does a task of these cases.
fn prepare(task: &str) -> Outcome<Spawn> {
    let child = Procs::STANDARD.prepare("cases")?;
    child.argument("streams")?;
    child.argument(task)?;
    Ok(child)
}

fn usage() -> Outcome<Usage> {
    again(|| FILES.usage()).map_err(|failure| Failure::new(format!("the file server refused: {failure}")))
}

/// Waits for a child that must end successfully.
fn ends_well(process: u64) -> Outcome {
    let status = Procs::STANDARD.wait(process)?;
    equal!((status.state, status.detail), (State::Exited, 0));
    Ok(())
}

/// Runs the child. Returns its exit code: the step that failed, 0 if none did.
pub fn child(task: &str) -> i32 {
    let done = match task {
        "write" => pipes::write_mebibyte(),
        "check" => pipes::check_mebibyte(),
        "flood" => pipes::flood(),
        "taste" => pipes::taste(),
        "letters" => pipes::letters(),
        "greedy" => take_everything(),
        "print" => print(),
        _ => Err(Error::Nowhere),
    };
    done.map_or(1, |()| 0)
}

fn demand(holds: bool) -> Result<(), Error> {
    if holds { Ok(()) } else { Err(Error::Nowhere) }
}

// ── Files ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Returns whether the file server refused the request for this reason.
fn is_refused<T>(result: Result<T, Error>, reason: FilesError) -> bool {
    matches!(result, Err(Error::Files(RequestFailure::Refused(error))) if error == reason)
}

fn files(_: &mut Stage) -> Outcome {
    fs::make_directory("/tmp/case")?;
    fs::write("/tmp/case/a", b"one ")?;
    fs::append("tmp/case/a")?.write(b"two")?;
    equal!(fs::read("/tmp/case/a")?, b"one two");
    let mut file = fs::open_as("/tmp/case/a", How::Update)?;
    file.seek(4)?;
    file.write(&[b'x'; 5000])?;
    file.truncate(4098)?;
    file.seek(3)?;
    let mut buffer = [0; 4];
    equal!(file.read(&mut buffer)?, 4);
    equal!(&buffer, b" xxx");
    equal!((file.info()?.size, file.info()?.position), (4098, 7));
    fs::rename("/tmp/case/a", "/tmp/case/b")?;
    let names: Vec<_> = fs::entries("/tmp/case").collect::<Result<_, _>>()?;
    equal!(names.iter().map(|(name, status)| (name.as_str(), status.size)).collect::<Vec<_>>(), [("b", 4098)]);
    check!(is_refused(fs::remove("/tmp/case"), FilesError::NotEmpty));
    fs::remove("/tmp/case/b")?;
    fs::remove("/tmp/case")?;
    file.seek(0)?;
    equal!(file.read(&mut buffer)?, 4);
    drop(file);
    check!(is_refused(fs::read("/tmp/case/b"), FilesError::NoSuchFile));
    check!(is_refused(fs::create("bin/hello"), FilesError::ReadOnly));
    check!(is_refused(fs::remove("/bin"), FilesError::ReadOnly));
    equal!(&fs::read("bin/hello")?[..4], b"\x7fELF");
    equal!((usage()?.bytes, usage()?.nodes), (0, 0));
    Ok(())
}

fn times(_: &mut Stage) -> Outcome {
    let now = || time::uptime().as_nanos() as u64;
    let modified = |path| fs::status(path).map(|status| status.modified);
    equal!(modified("bin/hello")?, 0);
    let before = now();
    fs::write("/tmp/times", b"x")?;
    let after = now();
    let (made, written) = (modified("/tmp")?, modified("/tmp/times")?);
    check!(before <= made && made <= written && written <= after);
    equal!(fs::read("/tmp/times")?, b"x");
    equal!((modified("/tmp")?, modified("/tmp/times")?), (made, written));
    fs::append("/tmp/times")?.write(b"y")?;
    check!(modified("/tmp/times")? >= after);
    equal!(modified("/tmp")?, made);
    fs::remove("/tmp/times")?;
    check!(modified("/tmp")? >= after);
    Ok(())
}

/// Instructions that freeing a block may take: less than the requests that it takes to write one.
const FREEING: u64 = 320;

fn no_space(_: &mut Stage) -> Outcome {
    let mut file = fs::create("/tmp/large")?;
    let mut position = 0;
    let error = loop {
        // One byte of each block suffices.
        file.seek(position)?;
        match file.write(b"x") {
            Ok(()) => position += 4096,
            Err(error) => break error,
        }
    };
    equal!(error, Error::Stream(RequestFailure::Refused(StreamError::NoSpace)));
    equal!(usage()?.bytes, position);
    check!(fs::create("/tmp/other")?.write(b"x").is_err());
    check!(file.info()?.size <= position);
    // Other operations are possible nevertheless.
    let (mut reader, mut writer) = io::pipe()?;
    writer.write(b"still")?;
    equal!(reader.read(&mut [0; 9])?, 5);
    fs::remove("/tmp/large")?;
    // One request frees all blocks, and no other client is served meanwhile.
    let start = time::instructions() as u32;
    drop(file);
    check!(u64::from((time::instructions() as u32).wrapping_sub(start)) <= position / 4096 * FREEING);
    fs::write("/tmp/other", &[7; 10_000])?;
    equal!(fs::read("/tmp/other")?.len(), 10_000);
    fs::remove("/tmp/other")?;
    equal!(usage()?.bytes, 0);
    Ok(())
}

// ── Programs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Prints until the reading end is closed.
fn print() -> Result<(), Error> {
    tench::eprintln!("an error");
    loop {
        tench::println!("a line");
    }
}

fn printing(_: &mut Stage) -> Outcome {
    let (mut reader, writer) = io::pipe()?;
    let hello = Procs::STANDARD.prepare("hello")?;
    writer.give(&hello, slot::STDOUT)?;
    drop(writer);
    equal!(Procs::STANDARD.wait(hello.start()?)?.exit_code(), Some(0));
    let mut text = [0; 100];
    let count = reader.read(&mut text)?;
    equal!(&text[..count], b"hello\n");
    equal!(reader.read(&mut text)?, 0);

    let (mut reader, writer) = io::pipe()?;
    let (mut errors, error_writer) = io::pipe()?;
    let child = prepare("print")?;
    writer.give(&child, slot::STDOUT)?;
    error_writer.give(&child, slot::STDERR)?;
    drop((writer, error_writer));
    let child = child.start()?;
    let count = reader.read(&mut text[..7])?;
    equal!(&text[..count], b"a line\n");
    drop(reader);
    equal!(Procs::STANDARD.wait(child)?.exit_code(), Some(io::BROKEN as u64));
    let count = errors.read(&mut text)?;
    equal!(&text[..count], b"an error\n");
    equal!(errors.read(&mut text)?, 0);
    Ok(())
}

fn stdio(_: &mut Stage) -> Outcome {
    let (input, mut lines) = io::pipe()?;
    let (mut output, output_writer) = io::pipe()?;
    let (mut errors, errors_writer) = io::pipe()?;
    let child = Procs::STANDARD.prepare("stdio")?;
    input.give(&child, slot::STDIN)?;
    output_writer.give(&child, slot::STDOUT)?;
    errors_writer.give(&child, slot::STDERR)?;
    drop((input, output_writer, errors_writer));
    lines.write(b"the first line is longer than what is read at a time\nthe second\nwithout an end")?;
    drop(lines);
    let child = child.start()?;
    let expected = b"the FIRST!line is longer than what is read at a time\nthe second\nwithout an endnumber 42\n";
    let mut text = Vec::new();
    let mut buffer = [0; 100];
    loop {
        match output.read(&mut buffer)? {
            0 => break,
            count => text.extend_from_slice(&buffer[..count]),
        }
    }
    let count = errors.read(&mut buffer)?;
    equal!(&buffer[..count], b"ends with 0\n");
    equal!(text, expected);
    ends_well(child)
}

// ── Those who mean harm, or mean nothing ─────────────────────────────────────────────────────────────────────────────

/// Takes all ends, waits and names that it can get, and reports that through its output.
fn take_everything() -> Result<(), Error> {
    let mut ends = Vec::new();
    while let Ok(pipe) = io::pipe() {
        ends.push(pipe);
    }
    demand(ends.len() > 50)?;
    // Makes room for a few more ends, which are shared with processes that never existed.
    ends.truncate(ends.len() - 5);
    for (number, (reader, _)) in ends.iter().take(10).enumerate() {
        core::mem::forget(reader.share(1 << 40 | number as u64)?);
    }
    for number in 0..100 {
        fs::make_directory(&format!("/tmp/greedy{number}"))?;
    }
    let reader = ends[0].0.cap();
    for _ in 0..80 {
        // Each waits for ever, or is refused.
        core::mem::forget(thread::spawn(move || Stream::at(reader).read(1).is_ok()));
    }
    Stdout.write(b"!")?;
    time::sleep(Duration::from_secs(60));
    Ok(())
}

fn greedy(_: &mut Stage) -> Outcome {
    let before = usage()?;
    let (mut reader, writer) = io::pipe()?;
    let mut children = Vec::new();
    for _ in 0..3 {
        let child = prepare("greedy")?;
        writer.give(&child, slot::STDOUT)?;
        children.push(child.start()?);
        equal!(reader.read(&mut [0])?, 1);
        (0..100).try_for_each(|number| fs::remove(&format!("/tmp/greedy{number}")))?;
        // All other clients are served.
        ends_well_through_a_pipe()?;
    }
    check!(usage()?.ends > 300);
    children.into_iter().try_for_each(|child| Procs::STANDARD.kill(child))?;
    drop((reader, writer));
    equal!(usage()?, before);
    Ok(())
}

/// Sends bytes through a pipe.
fn ends_well_through_a_pipe() -> Outcome {
    let (mut reader, mut writer) = io::pipe()?;
    writer.write(b"well")?;
    equal!(reader.read(&mut [0; 9])?, 4);
    drop(writer);
    equal!(reader.read(&mut [0; 9])?, 0);
    Ok(())
}

/// Returns the number of the file server's capabilities.
fn capabilities() -> Outcome<usize> {
    let process = Procs::STANDARD.find("files", 0)?;
    let (mut from, mut count) = (CapAddress::NULL, 0);
    loop {
        let (next, found) = Procs::STANDARD.capabilities(process, from)?;
        count += found.len();
        if next == CapAddress::NULL {
            return Ok(count);
        }
        from = next;
    }
}

/// Starts processes with streams: one reads and ends, one is killed, one is never started, one gets a capability to a
/// closed stream.
fn some_processes() -> Outcome {
    let (reader, mut writer) = io::pipe()?;
    let child = prepare("check")?;
    reader.give(&child, slot::STDIN)?;
    let lazy = prepare("taste")?;
    reader.give(&lazy, slot::STDIN)?;
    let never = prepare("write")?;
    writer.give(&never, slot::STDOUT)?;
    let late = Procs::STANDARD.prepare("cases")?;
    late.argument("comply")?;
    let closed = writer.share(late.process())?;
    closed.stream().close().map_err(|_| Failure::new("an end is not closed"))?;
    late.give_in(closed.cap(), slot::STDOUT)?;
    drop(closed);
    let (child, lazy, late) = (child.start()?, lazy.start()?, late.start()?);
    Procs::STANDARD.kill(lazy)?;
    never.abandon();
    writer.write(b"not what it expects")?;
    equal!(Procs::STANDARD.wait(child)?.exit_code(), Some(1));
    equal!(Procs::STANDARD.wait(late)?.exit_code(), Some(COMPLIED));
    Ok(())
}

fn nothing_stays(_: &mut Stage) -> Outcome {
    // The servers keep what they need for as many processes at a time.
    (0..4).try_for_each(|_| some_processes())?;
    let before = (usage()?, capabilities()?, memory::take_slot()?);
    memory::free_slot(before.2);
    (0..20).try_for_each(|_| some_processes())?;
    let after = (usage()?, capabilities()?, memory::take_slot()?);
    memory::free_slot(after.2);
    equal!(after, before);
    Ok(())
}

fn hostile(_: &mut Stage) -> Outcome {
    let before = usage()?;
    let (reader, writer) = io::pipe()?;
    // The capability's kind keeps the interfaces apart.
    let as_files = Files::at(reader.cap()).usage();
    check!(matches!(as_files, Err(RequestFailure::Rejected(Rejection::OtherInterface(_)))));
    let as_stream = Stream::at(Cap::new(slot::FILES)).read(1);
    check!(matches!(as_stream, Err(RequestFailure::Rejected(Rejection::OtherInterface(_)))));
    check!(matches!(FILES.process_ended(1, 0), Err(RequestFailure::Rejected(Rejection::NotAllowed))));
    check!(matches!(FILES.process_lives(1, 1), Err(RequestFailure::Rejected(Rejection::NotAllowed))));
    equal!(reader.stream().write(b"x"), Err(RequestFailure::Refused(StreamError::NotForWriting)));
    equal!(writer.stream().read(1), Err(RequestFailure::Refused(StreamError::NotForReading)));
    equal!(reader.stream().seek(1), Err(RequestFailure::Refused(StreamError::NotAFile)));
    equal!(writer.stream().truncate(1), Err(RequestFailure::Refused(StreamError::NotAFile)));
    // Without a slot the capability does not arrive; the end goes with the process or is closed in time.
    check!(Stream::at(reader.cap()).share(process::id(), CapAddress::NULL).is_err());
    // A copy of a closed end's capability is useless, also when there are other ends.
    let copy = memory::take_slot()?;
    reader.cap().copy_to(copy)?;
    drop(reader);
    let other = io::pipe()?;
    equal!(Stream::at(Cap::new(copy)).read(1), Err(RequestFailure::Refused(StreamError::Closed)));
    equal!(Stream::at(Cap::new(copy)).close(), Err(RequestFailure::Refused(StreamError::Closed)));
    tench::sys::OWN_CSPACE.delete_at(copy)?;
    memory::free_slot(copy);
    drop((other, writer));
    for path in ["", "a\u{7}b", &"x".repeat(241)] {
        check!(fs::status(path).is_err());
    }
    check!(usage()?.ends <= before.ends + 1);
    Ok(())
}

fn restarted(_: &mut Stage) -> Outcome {
    fs::write("/tmp/lost", b"x")?;
    let (reader, writer) = io::pipe()?;
    let waits = thread::spawn({
        let reader = reader.cap();
        move || Stream::at(reader).read(1)
    });
    while usage()?.waiting == 0 {
        time::sleep(Duration::from_millis(1));
    }
    let start = Instant::now();
    Procs::STANDARD.kill(Procs::STANDARD.find("files", 0)?)?;
    check!(matches!(waits.join(), Err(RequestFailure::Lost(_))));
    equal!(FILES.usage(), Err(RequestFailure::Restarted));
    check!(matches!(writer.stream().write(b"x"), Err(RequestFailure::Lost(_))));
    drop((reader, writer));
    check!(time::elapsed(start) < Duration::from_secs(10));
    check!(is_refused(fs::read("/tmp/lost"), FilesError::NoSuchFile));
    equal!(&fs::read("bin/hello")?[..4], b"\x7fELF");
    equal!((usage()?.ends, usage()?.nodes), (0, 0));
    ends_well_through_a_pipe()?;
    Ok(())
}
