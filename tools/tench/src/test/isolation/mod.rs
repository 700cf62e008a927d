//! A test that kernels share nothing that one of them writes.
//!
//! Two cores are booted, the machine is stopped while both run, and its physical memory is read through the emulator.
//! Each kernel is an image with its writable data; no word of one's data is an address in the other's, and all memory
//! that the second's data name is its own or read-only. The kernel's file shows that the image has all writable data
//! there is, so that a copy of it shares none. Of each image, those pages are in the first process's untyped memory
//! that only the bootstrap needed, and no other.
//!
//! Not checked are the page tables with which each kernel maps all memory (they name blocks of it, not objects), and
//! objects that a kernel has made in untyped memory, which it reaches through its data.

mod kernels;

use std::path::Path;
use std::time::Duration;

use miette::{Result, miette};

use super::Target;
use super::report::Report;
use crate::console::{self, Console};
use crate::qemu::{Machine, Serial};
use crate::script::{self, End, Patience, Step};
use crate::workspace;
use kernels::{Kernel, Linked, Memory};

/// System description that is booted.
pub const SYSTEM: &str = "default";
const PATIENCE: Patience = Patience { silence: Duration::from_secs(60), total: Duration::from_secs(120) };
/// Command typed when the cores run; the machine is stopped during it.
const COMMAND: &str = "cores ping 1 20";
const RUNNING: &str = "core 1 replied 20 times";
/// RAM of the machine: physical address, and bytes.
const RAM: (u64, u64) = (0x4000_0000, 256 << 20);

/// Runs the test.
pub fn run(target: &Target, report: &Report) -> Result<()> {
    let (system, build) = target.get(SYSTEM)?;
    let linked = Linked::read(build.kernel(&system)?)?;
    match linked.outside() {
        None => report.passed("isolation/image"),
        Some(section) => {
            report.failed("isolation/image", &format!("{section} can be written, but lies outside of the image"))
        }
    }
    let files = target.prepare(build, &system, &[])?;
    let machine = Machine { icount: true, cores: 2, memory: format!("{}M", RAM.1 >> 20), ..Machine::default() };
    let mut command = machine.command(&files, Serial::Pipe);
    let (socket, saved) = (console::socket(), files.image.with_file_name("memory"));
    console::listen(&mut command, &socket);
    let mut read = None;
    let outcome = script::run(&mut command, &[Step::Line(COMMAND.to_owned())], PATIENCE, |line| {
        if line.starts_with(RUNNING) {
            read = Some(read_memory(&socket, &saved));
        }
        Vec::new()
    })?;
    // It is already gone if the emulator has ended by itself.
    let _ = std::fs::remove_file(&socket);
    let memory = read.unwrap_or_else(|| Err(miette!("the second core did not reply:\n{}", outcome.last_screen())))?;
    let problem = match outcome.end {
        End::Exited(0) => judge(&linked, &memory),
        end => Some(format!("the guest did not go on after it was stopped: {end:?}")),
    };
    match problem {
        None => report.passed("isolation/data"),
        Some(problem) => report.failed("isolation/data", &problem),
    }
    match freed(&linked, &memory) {
        None => report.passed("isolation/bootstrap"),
        Some(problem) => report.failed("isolation/bootstrap", &problem),
    }
    Ok(())
}

/// Returns the memory of a machine, which is stopped meanwhile.
fn read_memory(socket: &Path, file: &Path) -> Result<Memory> {
    let mut console = Console::connect(socket)?;
    console.stop()?;
    console.save(RAM.0, RAM.1, file)?;
    let bytes = workspace::read_file(file)?;
    console.go_on()?;
    // The file is large; failing to remove it does not fail the test.
    let _ = std::fs::remove_file(file);
    Ok(Memory::new(RAM.0, bytes))
}

/// Returns what is wrong with the memory of the bootstraps, if anything: exactly their pages of the images are untyped.
fn freed(linked: &Linked, memory: &Memory) -> Option<String> {
    let kernels = linked.find(memory);
    let [first, second] = match both(&kernels, memory) {
        Ok(both) => both,
        Err(problem) => return Some(problem),
    };
    first.wrong_page(memory, 0).or_else(|| second.wrong_page(memory, 1))
}

/// Returns the first core's kernel and the second's.
fn both<'k, 'l>(found: &'k [Kernel<'l>], memory: &Memory) -> std::result::Result<[&'k Kernel<'l>; 2], String> {
    let [one, other] = found else { return Err(format!("{} kernels run, not 2", found.len())) };
    // Either may lie below the other. Only the one started by the other has a boot page.
    Ok(if other.given(memory).is_some() { [one, other] } else { [other, one] })
}

/// Returns what is wrong with the kernels' data, if anything.
fn judge(linked: &Linked, memory: &Memory) -> Option<String> {
    let kernels = linked.find(memory);
    let [first, second] = match both(&kernels, memory) {
        Ok(both) => both,
        Err(problem) => return Some(problem),
    };
    let (one, other) = (first.writable(), second.writable());
    if one.start < other.end && other.start < one.end {
        return Some(format!("both kernels write {one:x?} and {other:x?}"));
    }
    for (kernel, of) in [(first, second), (second, first)] {
        if kernel.names(memory, |address| kernel.writable().contains(&address)).next().is_none() {
            return Some(
                "the data of a kernel do not even name themselves: they are not what they were taken for".into(),
            );
        }
        if let Some((address, word)) = kernel.names(memory, |address| of.writable().contains(&address)).next() {
            return Some(format!(
                "the word at {address:#x} of one kernel's data is {word:#x}, an address in the other's"
            ));
        }
        if !kernel.has_its_code(memory) {
            return Some(format!("the code of the kernel at {:#x} is not as it was linked", kernel.start));
        }
    }
    foreign(second, memory)
}

/// Returns a word of the second kernel's data that names memory which is neither its own nor constant.
fn foreign(kernel: &Kernel<'_>, memory: &Memory) -> Option<String> {
    let Some(own) = kernel.given(memory) else {
        return Some("no boot page lies before either kernel".to_owned());
    };
    // The end address of a chunk may be named by the chunk's owner.
    let is_own = |address: u64| own.iter().any(|block| block.contains(&address) || block.end == address);
    let is_foreign = |address: u64| memory.contains(address) && !is_own(address);
    let (address, word) = kernel.pointers(memory, is_foreign).next()?;
    Some(format!("the word at {address:#x} of the second kernel's data is {word:#x}, in memory that it was not given"))
}

#[cfg(test)]
mod tests {
    use super::kernels::tests::{linked, memory, overlapping, put};
    use super::*;

    const BASE: u64 = 0xffff_fff0_0000_0000;
    const RAM: u64 = 0x4000_0000;
    const PAGE: u64 = 0x1000;

    /// Returns two kernels, at pages 1 and 5; the second was given its block, and nothing is wrong.
    fn two() -> Memory {
        let mut memory = memory(&[1, 5]);
        put(&mut memory, RAM + 4 * PAGE, tench_abi::boot::CORE_MAGIC);
        memory
    }

    #[test]
    fn kernels_apart_are_good() {
        assert_eq!(judge(&linked(), &two()), None);
    }

    #[test]
    fn the_second_kernel_may_lie_below_the_first() {
        let mut memory = memory(&[1, 5]);
        put(&mut memory, RAM, tench_abi::boot::CORE_MAGIC);
        assert_eq!(judge(&linked(), &memory), None);
        put(&mut memory, RAM + 2 * PAGE + 8, BASE + RAM + 9 * PAGE);
        assert!(judge(&linked(), &memory).is_some_and(|problem| problem.contains("was not given")));
    }

    #[test]
    fn a_word_that_names_the_others_data_is_found() {
        for (at, word) in [
            (2 * PAGE + 8, BASE + RAM + 6 * PAGE),
            (2 * PAGE + 16, RAM + 6 * PAGE + 0xfff),
            (6 * PAGE + 8, BASE + RAM + 2 * PAGE + 1),
        ] {
            let mut memory = two();
            put(&mut memory, RAM + at, word);
            let problem = judge(&linked(), &memory).unwrap();
            assert!(problem.contains("an address in the other's"), "{problem}");
        }
        // Page tables name what they map.
        let mut memory = two();
        put(&mut memory, RAM + 2 * PAGE + 0x800, RAM + 6 * PAGE);
        assert_eq!(judge(&linked(), &memory), None);
    }

    #[test]
    fn a_word_that_names_what_was_not_given_is_found() {
        for (page, is_given) in [(4, true), (7, true), (8, true), (3, false), (9, false)] {
            let mut memory = two();
            put(&mut memory, RAM + 6 * PAGE + 8, BASE + RAM + page * PAGE);
            assert_eq!(judge(&linked(), &memory).is_none(), is_given, "page {page}");
        }
    }

    #[test]
    fn kernels_that_are_missing_overlap_or_have_no_boot_page_are_found() {
        let problem = judge(&linked(), &memory(&[1])).unwrap();
        assert!(problem.contains("1 kernels run"), "{problem}");
        let problem = judge(&linked(), &memory(&[1, 5])).unwrap();
        assert!(problem.contains("no boot page"), "{problem}");
        let (linked, memory) = overlapping();
        let problem = judge(&linked, &memory).unwrap();
        assert!(problem.contains("both kernels write"), "{problem}");
    }
}
