//! An attack by those who end: a program starts one child after another, each of which takes what it can get of the
//! files' memory, leaves it and ends.
//!
//! If what a process leaves counted for nobody, each child could take half of what is free, and the thirteenth would
//! have the last block of 4,096. It counts for the family as long as any of that lives, so the first child gets half,
//! and the others nothing.

use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use tench::fs;
use tench::io::Write;
use tench::procs::Procs;
use tench::time::sleep;

use super::{Attack, held, said};
use crate::case::Outcome;

/// The attacks.
pub const ATTACKS: &[Attack] = &[Attack::new(
    "hoard-family-files",
    "children that fill the files one after another, and end, leave others their part",
    hoard_files,
)
.first()];

/// Where they make files, and how the names of these begin.
const DIRECTORY: &str = "/tmp";
const PREFIX: &str = "left-";
/// As many children as it takes to have the last block.
const CHILDREN: usize = 16;
/// Bytes of a block.
const BLOCK: u64 = 4096;
/// How long it is held what they left.
const SPAN: Duration = Duration::from_millis(10);

fn hoard_files() -> Outcome {
    for _ in 0..CHILDREN {
        let child = said(Procs::STANDARD.spawn("cases", &["attack", "leave-files"]))?;
        held(Procs::STANDARD, child)?;
    }
    sleep(SPAN);
    Ok(())
}

/// A part: fills the files, and leaves that.
pub fn leave_files() -> Outcome {
    let own = tench::process::id();
    // A block is taken by its first byte, wherever in the file that is.
    let mut file = said(fs::create(&format!("{DIRECTORY}/{PREFIX}{own}")))?;
    let _ = (0u64..).find(|number| file.seek(number * BLOCK).is_err() || file.write(b"x").is_err());
    Ok(())
}

/// Removes what they have left, which takes the power `files`.
pub fn clear() -> Outcome {
    let left: Vec<_> = fs::entries(DIRECTORY).collect::<Result<_, _>>()?;
    for (name, _) in left.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
        said(fs::remove(&format!("{DIRECTORY}/{name}")))?;
    }
    Ok(())
}
