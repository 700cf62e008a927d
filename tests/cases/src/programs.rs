//! Tests of programs that are in no boot archive: their parent reads the file and hands it over. The file is checked
//! like every other program, is charged to the process that runs it, and gives that process no authority.

use alloc::vec::Vec;

use tench::abi::layout::slot;
use tench::abi::power::identity;
use tench::abi::{Powers, Rights};
use tench::files::Failure as FilesFailure;
use tench::files::protocol::Error as FilesError;
use tench::io::Error as IoError;
use tench::mem::Mem;
use tench::procs::protocol::{Defect, Error as ProcsError, FaultKind, MAX_FILE, MAX_LOADED, State, Status, Strings};
use tench::procs::{Failure as ProcsFailure, Procs, Spawn};
use tench::sys::{CapAddress, Kind};
use tench::{fs, process};

use crate::case::{Case, Outcome};
use crate::child::COMPLIED;
use crate::layout::in_use;
use crate::stage::Stage;

pub const CASES: &[Case] = &[
    Case::new("PRG0001", "a program from a file runs, and has what one of the archive has", runs),
    Case::new("PRG0002", "a file that is no program is refused as one of the archive is, and nothing is lost", broken),
    Case::new("PRG0003", "what is handed over too late, or is too much, is not in the program", incomplete),
    Case::new("PRG0004", "what is handed over is on the account of the process whose program it is", accounts),
    Case::new(
        "PRG0005",
        "a file is read by who starts the program, and one that he cannot read starts nothing",
        unreadable,
    ),
    Case::new("PRG0006", "a program that uses no memory manager has a whole stack, with its arguments", whole_stack),
];

const PROCS: Procs = Procs::STANDARD;
/// Priority below this program's, so that a child does not run before it has been inspected.
const BELOW: u8 = 50;
/// Path of this program.
const OWN_FILE: &str = "/bin/cases";
/// A file of the archive that is not a program.
const NO_PROGRAM: &str = "etc/system";
/// A file that this program writes.
const OTHER_FILE: &str = "/tmp/handed-over";
/// Offset of the code in the file of the valid program.
const CODE: usize = 0x2000;
/// Bytes of memory that a child may have.
const QUOTA: u64 = 1 << 20;

/// Prepares a process of a program that is handed over.
pub fn handed_over(name: &str, file: &[u8]) -> Result<Spawn, ProcsFailure> {
    let child = PROCS.prepare_of(name, file.len() as u64)?;
    match child.write(file) {
        Ok(()) => Ok(child),
        Err(failure) => {
            child.abandon();
            Err(failure)
        }
    }
}

/// Returns the process server's refusal.
fn refused<T>(error: ProcsError) -> Result<T, ProcsFailure> {
    Err(ProcsFailure::Refused(error))
}

/// Does something twice, and checks that the second time takes no memory: the first time, the process server may get
/// memory that it keeps.
fn without_loss(mut action: impl FnMut() -> Outcome) -> Outcome {
    action()?;
    let before = in_use()?;
    action()?;
    equal!(in_use()?, before);
    Ok(())
}

/// Returns the valid program with fixed addresses.
fn good() -> Vec<u8> {
    let [(_, file), ..] = tench_corpus::good();
    file
}

/// A capability of a process: address, kind, rights, log2 of the size, and whether its badge has the process's own
/// number.
type Held = (CapAddress, Kind, Rights, u32, bool);

fn held_by(process: u64) -> Outcome<Vec<Held>> {
    let (mut held, mut from) = (Vec::new(), CapAddress::NULL);
    loop {
        let (next, found) = PROCS.capabilities(process, from)?;
        held.extend(
            found.iter().map(|one| (one.address, one.kind, one.rights, one.size_bits, identity(one.badge) == process)),
        );
        if next == CapAddress::NULL {
            return Ok(held);
        }
        from = next;
    }
}

/// Returns the capabilities that a child without any grants has before its first instruction, and then how it ends. The
/// child's priority is lower than this program's, so that it runs when this thread waits.
fn look_at(child: Spawn) -> Outcome<Vec<Held>> {
    child.argument("comply")?;
    let child = child.start()?;
    let held = held_by(child)?;
    equal!(PROCS.powers(child)?, 0);
    let status = PROCS.wait(child)?;
    equal!((status.state, status.exit_code()), (State::Exited, Some(COMPLIED)));
    Ok(held)
}

fn runs(_: &mut Stage) -> Outcome {
    let usual = look_at(PROCS.prepare("cases")?)?;
    check!(usual.iter().any(|(address, .., is_own)| *address == slot::MEM && *is_own));
    let child = fs::prepare(PROCS, OWN_FILE)?;
    let status = PROCS.status(child.process())?;
    equal!((status.name.as_str(), status.parent, status.priority), (OWN_FILE, process::id(), 100));
    equal!(look_at(child)?, usual);
    let file = fs::read(OWN_FILE)?;
    for name in ["shell", "init", "bin/procs", "/bin/console"] {
        let child = handed_over(name, &file)?;
        equal!(PROCS.find(name, child.process() - 1), Ok(child.process()));
        equal!((name, look_at(child)?), (name, usual.clone()));
    }
    Ok(())
}

fn broken(_: &mut Stage) -> Outcome {
    without_loss(|| {
        for mistake in tench_corpus::mistakes() {
            let refused = handed_over(mistake.name, &mistake.file())?.start_or_defect();
            equal!((mistake.name, refused.err().and_then(|(_, defect)| defect)), (mistake.name, Some(mistake.defect)));
        }
        Ok(())
    })
}

/// Starts a child at once and returns how it ends.
fn fault_of(child: Spawn) -> Outcome<Option<FaultKind>> {
    Ok(PROCS.wait(child.start()?)?.fault())
}

fn incomplete(_: &mut Stage) -> Outcome {
    let good = good();
    let size = good.len() as u64;
    without_loss(|| {
        let (almost, last) = good.split_at(good.len() - 1);
        let child = PROCS.prepare_of("late", size)?;
        child.write(almost)?;
        equal!(child.start_or_defect().err().and_then(|(_, defect)| defect), Some(Defect::SegmentOutsideFile));
        equal!(child.write(last), refused(ProcsError::NoSuchProcess));
        equal!(
            PROCS.prepare_of("nothing", 0)?.start_or_defect().err().and_then(|(_, defect)| defect),
            Some(Defect::NotElf)
        );

        let child = PROCS.prepare_of("more", size - 1)?;
        child.write(almost)?;
        equal!(child.write(last), refused(ProcsError::TooLarge));
        child.abandon();
        for too_large in [MAX_FILE as u64 + 1, 1 << 40, u64::MAX] {
            equal!(PROCS.prepare_of("large", too_large).map(drop), refused(ProcsError::TooLarge));
        }
        for name in ["", "\n", "two\nlines", "\x1b[2J", "bell\x07"] {
            equal!(PROCS.prepare_of(name, size).map(drop), refused(ProcsError::BadName));
        }

        let mut large = tench_corpus::good::fixed();
        large.headers[2].memory_size = MAX_LOADED;
        let child = handed_over("large", &large.write())?;
        equal!(child.start_or_defect().err().and_then(|(_, defect)| defect), Some(Defect::TooLarge));

        // Neither the archive's files nor a running program's can be changed.
        let archived = PROCS.prepare("cases")?;
        equal!(archived.write(&good), refused(ProcsError::WrongState));
        archived.abandon();
        let child = handed_over("started", &good)?;
        child.configure(BELOW, BELOW, 0, Powers::empty())?;
        let pid = child.start()?;
        equal!(child.write(b"x"), refused(ProcsError::WrongState));
        equal!(PROCS.wait(pid)?.fault(), Some(FaultKind::Breakpoint));

        // A file that changes while it is read is treated like any other: here its code is missing.
        let read = CODE.min(good.len());
        let child = PROCS.prepare_of("changed", size)?;
        child.write(&good[..read])?;
        child.write(&Vec::from_iter(good[read..].iter().map(|_| 0)))?;
        equal!(fault_of(child)?, Some(FaultKind::UndefinedInstruction));
        equal!(fault_of(handed_over("good", &good)?)?, Some(FaultKind::Breakpoint));
        Ok(())
    })
}

/// Runs the child whose quota is [`QUOTA`]: it gets no more memory by handing programs over, starts a file that is not
/// a program, and leaves a program that it never starts.
pub fn child() -> i32 {
    let is_no_program = |child: Result<Spawn, ProcsFailure>| {
        child.is_ok_and(|child| matches!(child.start_or_defect(), Err((_, Some(_)))))
    };
    if !is_no_program(PROCS.prepare(NO_PROGRAM)) || !is_no_program(handed_over("text", b"text")) {
        return 2;
    }
    let is_refused = PROCS.prepare_of("large", QUOTA).map(drop) == refused(ProcsError::OutOfMemory);
    let is_left = handed_over("left", &good()).is_ok();
    if is_refused && is_left { COMPLIED as i32 } else { 1 }
}

fn accounts(_: &mut Stage) -> Outcome {
    without_loss(|| {
        let before = in_use()?;
        let child = PROCS.prepare_of("large", 1 << 20)?;
        let account = Mem::STANDARD.next_account(child.process() - 1)?;
        equal!((account.process, account.used, account.blocks), (child.process(), 1 << 20, 1));
        child.write(&[1; 1000])?;
        equal!(in_use()?.0, before.0);
        child.abandon();
        equal!(in_use()?, before);

        let child = PROCS.prepare("cases")?;
        child.argument("handed-over")?;
        child.limit(QUOTA)?;
        equal!(PROCS.wait(child.start()?)?.exit_code(), Some(COMPLIED));
        // A process that is killed before it runs.
        let child = handed_over("killed", &good())?;
        PROCS.kill(child.process())?;
        // A limit that is too low for what was already handed over.
        let child = handed_over("limited", &good())?;
        child.limit(4096)?;
        equal!(child.start().map(drop), refused(ProcsError::OutOfMemory));
        Ok(())
    })
}

fn unreadable(_: &mut Stage) -> Outcome {
    let files = |error| Some(IoError::Files(FilesFailure::Refused(error)));
    let before = in_use()?;
    for (path, error) in
        [("/tmp/none", FilesError::NoSuchFile), ("/tmp", FilesError::IsDirectory), ("", FilesError::BadPath)]
    {
        equal!((path, fs::prepare(PROCS, path).err()), (path, files(error)));
    }
    equal!(in_use()?, before);
    fs::write(OTHER_FILE, &good())?;
    equal!(fault_of(fs::prepare(PROCS, OTHER_FILE)?)?, Some(FaultKind::Breakpoint));
    // The file is read to its end, whatever then becomes of the process.
    let child = fs::prepare(PROCS, OTHER_FILE)?;
    fs::write(OTHER_FILE, b"no program any more")?;
    equal!(fault_of(child)?, Some(FaultKind::Breakpoint));
    let refused = fs::prepare(PROCS, OTHER_FILE)?.start_or_defect();
    equal!(refused.err().and_then(|(_, defect)| defect), Some(Defect::NotElf));
    fs::remove(OTHER_FILE)?;
    Ok(())
}

fn whole_stack(_: &mut Stage) -> Outcome {
    let run = |kib: &str, arguments: usize| -> Outcome<Status> {
        let child = PROCS.prepare("stack")?;
        child.argument(kib)?;
        child.strings(Strings::Arguments, &b"x\0".repeat(arguments))?;
        Ok(PROCS.wait(child.start()?)?)
    };
    // The stack has 64 KiB. One on demand would have 1 MiB.
    for (kib, arguments) in [("0", 0), ("50", 0), ("0", 1000), ("40", 1000)] {
        equal!((kib, arguments, run(kib, arguments)?.exit_code()), (kib, arguments, Some(0)));
    }
    equal!(run("70", 0)?.fault(), Some(FaultKind::GuardPage));
    // Each argument takes ten bytes of it.
    equal!(run("50", 2000)?.fault(), Some(FaultKind::GuardPage));
    equal!(run("0", 7000)?.fault(), Some(FaultKind::GuardPage));
    Ok(())
}
