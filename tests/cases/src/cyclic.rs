//! Tests of `cyclic` and `hog` as processes: the kernel must wake threads in time, and a load must leave nothing
//! behind.

use alloc::string::String;
use alloc::vec::Vec;

use tench::abi::Powers;
use tench::abi::layout::slot;
use tench::io::{self, Read};
use tench::mem::Mem;
use tench::procs::protocol::State;
use tench::procs::{Procs, Status};
use tench::sys::Instant;
use tench::time::{self, Duration};

use crate::case::{Case, Failure, Outcome};
use crate::stage::Stage;

pub const CASES: &[Case] = &[
    Case::new("CYC0001", "each thread runs at each of its times, and its histogram has them all", regular),
    Case::new("CYC0002", "times that a thread misses are counted, and not made up for", missed),
    Case::new("CYC0003", "an interrupt ends the measurement, and the numbers are reported", interrupted),
    Case::new("CYC0004", "a thread that is too late ends the measurement with status 1", too_late),
    Case::new("CYC0005", "a picture is written to a file", picture),
    Case::new("CYC0006", "all kinds of load give back what they take, whatever ends them", load),
    Case::new("CYC0007", "a load that is to take a share of the time takes no more and not much less", share),
];

const PROCS: Procs = Procs::STANDARD;

/// Priority and ceiling of the measuring program and of the load beside it, as the shell gives them.
const CYCLIC: (u8, u8) = (110, 180);
const HOG: (u8, u8) = (105, 118);

/// A program that was started, and its output.
struct Session {
    process: u64,
    output: io::End,
}

impl Session {
    fn start(program: &str, line: &str) -> Outcome<Session> {
        let (output, writer) = io::pipe()?;
        let child = PROCS.prepare(program)?;
        let (priority, ceiling) = if program == "cyclic" { CYCLIC } else { HOG };
        child.configure(priority, ceiling, 0, Powers::empty())?;
        line.split_whitespace().try_for_each(|word| child.argument(word))?;
        writer.give(&child, slot::STDOUT)?;
        writer.give(&child, slot::STDERR)?;
        Ok(Session { process: child.start()?, output })
    }

    /// Reads to the end of the output. Returns how the program ended, and its lines.
    fn finish(mut self) -> Outcome<(Status, Vec<String>)> {
        let (mut text, mut part) = (Vec::new(), [0; 256]);
        loop {
            match self.output.read(&mut part)? {
                0 => break,
                count => text.extend_from_slice(&part[..count]),
            }
        }
        let lines = String::from_utf8_lossy(&text).lines().map(String::from).collect();
        Ok((PROCS.wait(self.process)?, lines))
    }
}

/// Runs a program to its end.
fn run(program: &str, line: &str) -> Outcome<(Status, Vec<String>)> {
    Session::start(program, line)?.finish()
}

/// Returns the number behind a name in a thread's line.
fn number(line: &str, name: &str) -> Outcome<u64> {
    let rest = line.split(name).nth(1).unwrap_or("").trim_start();
    let digits = rest.split(|character: char| !character.is_ascii_digit()).next().unwrap_or("");
    digits.parse().map_err(|_| Failure::new(alloc::format!("no {name} in '{line}'")))
}

fn regular(_: &mut Stage) -> Outcome {
    let (status, lines) = run("cyclic", "-N -t 3 -i 500 -d 250 -l 40 -h 1000000 -w 1000")?;
    equal!(status.exit_code(), Some(0));
    for (thread, line) in lines.iter().take(3).enumerate() {
        equal!((number(line, "T:")?, number(line, "P:")?), (thread as u64, 180 - thread as u64));
        equal!((number(line, "I:")?, number(line, "C:")?), (500 + 250 * thread as u64, 40));
        let [least, last, mean, most] = ["Min:", "Act:", "Avg:", "Max:"].map(|name| number(line, name));
        let (least, last, mean, most) = (least?, last?, mean?, most?);
        // A thread that wakes at a time and reads the clock is late by at least the time this takes.
        check!(0 < least && least <= mean && mean <= most && (least..=most).contains(&last));
        equal!(number(line, "Overruns:")?, 0);
    }
    check!(lines.get(3).is_some_and(|line| line.trim() == "# ns        T0        T1        T2"));
    let all: Vec<Vec<&str>> = lines.iter().map(|line| line.split_whitespace().collect()).collect();
    check!(all.iter().any(|line| line[..] == ["#", "all", "40", "40", "40"]));
    check!(all.iter().any(|line| line[..] == ["#", "beyond", "0", "0", "0"]));
    let of_buckets = all.iter().skip(4).filter(|line| line.first() != Some(&"#"));
    let sum: u64 = of_buckets.flat_map(|line| &line[1..]).filter_map(|count| count.parse::<u64>().ok()).sum();
    equal!(sum, 120);
    Ok(())
}

fn missed(_: &mut Stage) -> Outcome {
    // Its threads have lower priorities than this one, which holds the processor for 5 ms.
    let session = Session::start("cyclic", "-N -p 90 -i 100 -D 20ms")?;
    time::sleep(Duration::from_millis(10));
    let begin = Instant::now();
    while time::elapsed(begin) < Duration::from_millis(5) {}
    let (status, lines) = session.finish()?;
    equal!(status.exit_code(), Some(0));
    let line = lines.first().map_or("", String::as_str);
    let (cycles, overruns, most) = (number(line, "C:")?, number(line, "Overruns:")?, number(line, "Max:")?);
    check!(overruns >= 48 && most >= 4_900_000);
    // Each time is either a cycle or an overrun; their number in 20 ms is known.
    check!((199..=200).contains(&(cycles + overruns)));
    Ok(())
}

fn interrupted(_: &mut Stage) -> Outcome {
    let session = Session::start("cyclic", "-t 2")?;
    time::sleep(Duration::from_millis(30));
    equal!(PROCS.interrupt(session.process)?, false);
    let (status, lines) = session.finish()?;
    equal!((status.state, status.exit_code()), (State::Exited, Some(0)));
    equal!(lines.len(), 2);
    // The program takes a while to start.
    check!((10..=30).contains(&number(&lines[0], "C:")?) && (5..=20).contains(&number(&lines[1], "C:")?));
    Ok(())
}

fn too_late(_: &mut Stage) -> Outcome {
    let (status, lines) = run("cyclic", "-N -b 1 -l 1000")?;
    equal!(status.exit_code(), Some(1));
    equal!(number(&lines[0], "C:")?, 1);
    check!(
        lines.get(1).is_some_and(|line| line.starts_with("cyclic: thread 0 ran ") && line.ends_with("1 were allowed"))
    );
    Ok(())
}

fn picture(_: &mut Stage) -> Outcome {
    let (status, _) = run("cyclic", "-l 20 -h 100 --svg /tmp/late.svg")?;
    equal!(status.exit_code(), Some(0));
    let text = String::from_utf8_lossy(&tench::fs::read("/tmp/late.svg")?).into_owned();
    check!(text.starts_with("<svg ") && text.ends_with("</svg>\n") && text.contains("T0, priority 180, every 1000 µs"));
    tench::fs::remove("/tmp/late.svg")?;
    // The histogram on standard output, and nothing else.
    let (status, lines) = run("cyclic", "-l 20 -h 100 --svg -")?;
    equal!(status.exit_code(), Some(0));
    check!(lines.first().is_some_and(|line| line.starts_with("<svg ")));
    equal!(lines.last().map(String::as_str), Some("</svg>"));
    Ok(())
}

fn load(_: &mut Stage) -> Outcome {
    // A first run lets the file server allocate what it keeps.
    run("hog", "all -D 1ms")?;
    let before = Mem::STANDARD.totals()?;
    for load in ["cpu", "ipc", "memory", "interrupts", "all -t 2", "all -s 20"] {
        let (status, lines) = run("hog", &alloc::format!("{load} -D 30ms"))?;
        if status.exit_code() != Some(0) {
            return Err(Failure::new(alloc::format!("hog {load}: {lines:?}")));
        }
        let kinds = if load.starts_with("all") { 4 } else { 1 };
        equal!(lines.len(), kinds + 2);
        for line in &lines[..kinds] {
            let rounds = line.split_whitespace().nth(3).and_then(|word| word.parse::<u64>().ok());
            check!(rounds.is_some_and(|rounds| rounds > 0));
        }
        check!(lines[kinds + 1].starts_with("memory as before: "));
        equal!(Mem::STANDARD.totals()?, before);
    }
    let ends: [fn(u64) -> Outcome; 2] =
        [|process| Ok(PROCS.interrupt(process).map(drop)?), |process| Ok(PROCS.kill(process)?)];
    for (end, expected) in ends.into_iter().zip([State::Exited, State::Killed]) {
        let session = Session::start("hog", "all")?;
        time::sleep(Duration::from_millis(40));
        end(session.process)?;
        equal!(session.finish()?.0.state, expected);
        equal!(Mem::STANDARD.totals()?, before);
    }
    Ok(())
}

fn share(_: &mut Stage) -> Outcome {
    for line in ["cpu -s 30 -D 200ms", "cpu memory -t 2 -s 30 -D 200ms"] {
        let (status, lines) = run("hog", line)?;
        equal!(status.exit_code(), Some(0));
        let share = lines.iter().find(|line| line.contains("of the processor")).map_or("", String::as_str);
        let permille =
            share.split(" s, ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or("").replace('.', "");
        let permille = permille.parse::<u64>().map_err(|_| Failure::new(alloc::format!("no share in {lines:?}")))?;
        // A round that has begun is finished, and waking takes a moment.
        if !(270..=330).contains(&permille) {
            return Err(Failure::new(alloc::format!("{line}: {permille} of a thousand")));
        }
    }
    Ok(())
}
