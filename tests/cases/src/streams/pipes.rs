//! Tests of pipes: bytes and messages from process to process, and what is reported when an end is closed.

use alloc::vec;
use alloc::vec::Vec;

use tench::abi::layout::slot;
use tench::io::{self, Error, Read, Stdin, Stdout, Write};
use tench::procs::{Procs, Spawn};
use tench::stream::protocol::{Error as StreamError, MAX_DATA};
use tench::time::{self, Duration};
use tench::{process, thread};
use tench_protocol::Failure as RequestFailure;

use super::{FILES, MEBIBYTE, byte, demand, ends_well, prepare, usage};
use crate::case::{Failure, Outcome};
use crate::stage::Stage;

pub fn write_mebibyte() -> Result<(), Error> {
    let bytes: Vec<u8> = (0..MEBIBYTE).map(byte).collect();
    // In parts of all sizes.
    let mut rest = &bytes[..];
    for size in (1..1000).cycle() {
        let (part, more) = rest.split_at(size.min(rest.len()));
        Stdout.write(part)?;
        rest = more;
        if rest.is_empty() {
            break;
        }
    }
    Ok(())
}

pub fn check_mebibyte() -> Result<(), Error> {
    let mut position = 0;
    let mut buffer = [0; 700];
    loop {
        let count = Stdin.read(&mut buffer)?;
        if count == 0 {
            return demand(position == MEBIBYTE);
        }
        demand(buffer[..count].iter().zip(position..).all(|(found, position)| *found == byte(position)))?;
        position += count;
    }
}

pub fn mebibyte(_: &mut Stage) -> Outcome {
    let (reader, writer) = io::pipe()?;
    let from = prepare("write")?;
    writer.give(&from, slot::STDOUT)?;
    let to = prepare("check")?;
    reader.give(&to, slot::STDIN)?;
    drop((reader, writer));
    let (from, to) = (from.start()?, to.start()?);
    ends_well(to)?;
    ends_well(from)
}

/// Writes messages of 100 equal bytes until it is killed.
pub fn flood() -> Result<(), Error> {
    for number in (0..=255u8).cycle() {
        Stdout.write(&[number; 100])?;
    }
    Ok(())
}

pub fn writer_killed(_: &mut Stage) -> Outcome {
    let (mut reader, writer) = io::pipe()?;
    let child = prepare("flood")?;
    writer.give(&child, slot::STDOUT)?;
    drop(writer);
    let child = child.start()?;
    // When the writer waits, no more arrives than fits.
    while usage()?.waiting == 0 {
        time::sleep(Duration::from_millis(1));
    }
    Procs::STANDARD.kill(child)?;
    let mut all = Vec::new();
    let mut buffer = [0; MAX_DATA];
    loop {
        let count = reader.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        all.extend_from_slice(&buffer[..count]);
    }
    equal!(all.len(), 4000);
    check!(all.chunks(100).zip(0..).all(|(chunk, number)| chunk == [number; 100]));
    Ok(())
}

/// Reads once, and then nothing more.
pub fn taste() -> Result<(), Error> {
    Stdin.read(&mut [0; 10])?;
    time::sleep(Duration::from_secs(60));
    Ok(())
}

pub fn reader_killed(_: &mut Stage) -> Outcome {
    let (reader, mut writer) = io::pipe()?;
    let child = prepare("taste")?;
    reader.give(&child, slot::STDIN)?;
    drop(reader);
    let child = child.start()?;
    let killer = thread::spawn(move || {
        while !FILES.usage().is_ok_and(|usage| usage.waiting > 0) {
            time::sleep(Duration::from_millis(1));
        }
        Procs::STANDARD.kill(child).is_ok()
    });
    let mut written = 0;
    let error = loop {
        match writer.write(&[1; 100]) {
            Ok(()) => written += 100,
            Err(error) => break error,
        }
    };
    check!(killer.join());
    equal!(error, Error::Stream(RequestFailure::Refused(StreamError::Broken)));
    // As many as fit, plus the ten that were read; the reader may have come first and read from the first message.
    check!((4000..=4200).contains(&written));
    Ok(())
}

/// Writes messages that contain this process's number.
pub fn letters() -> Result<(), Error> {
    (0..200).try_for_each(|_| Stdout.write(&[process::id() as u8; 64]))
}

pub fn many_writers(_: &mut Stage) -> Outcome {
    const WRITERS: usize = 4;
    /// Turns that fill a pipe, and those that are checked.
    const FULL: usize = 64;
    const FAIR: usize = 80 * WRITERS;
    let (mut reader, writer) = io::pipe()?;
    let mut children = Vec::new();
    for _ in 0..WRITERS {
        let child = prepare("letters")?;
        writer.give(&child, slot::STDOUT)?;
        children.push(child);
    }
    drop(writer);
    let children: Vec<u64> = children.into_iter().map(Spawn::start).collect::<Result<_, _>>()?;
    let mut left = vec![200; WRITERS];
    let mut message = Vec::new();
    let mut turns = Vec::new();
    loop {
        // As long as no writer can have written its last message, all wait before the next byte is read.
        while message.is_empty() && turns.len() < FULL + FAIR && usage()?.waiting < WRITERS as u64 {
            time::sleep(Duration::from_millis(1));
        }
        let mut bytes = [0; 64];
        let count = reader.read(&mut bytes[message.len()..])?;
        if count == 0 {
            break;
        }
        message.extend_from_slice(&bytes[message.len()..message.len() + count]);
        if message.len() == 64 {
            let writer = children.iter().position(|child| *child as u8 == message[0]);
            let writer = writer.ok_or_else(|| Failure::new("bytes that nobody has written"))?;
            check!(message.iter().all(|byte| *byte == message[0]));
            left[writer] -= 1;
            turns.push(writer);
            message.clear();
        }
    }
    equal!(left, vec![0; WRITERS]);
    // What was in the pipe before all waited was written in any order; from then on each writer gets its turn.
    for round in turns[FULL..FULL + FAIR].chunks(WRITERS) {
        check!((0..WRITERS).all(|writer| round.contains(&writer)));
    }
    children.into_iter().try_for_each(ends_well)
}
