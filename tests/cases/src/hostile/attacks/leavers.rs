//! An attack by processes that end: a program starts one child after another, each of which takes all it can of the
//! files' memory, leaves it and ends.
//!
//! If files of ended processes counted for no process, each child could take half of what is free, and the thirteenth
//! would get the last block of 4,096. They count for the family as long as a process of it lives, so the first child
//! gets half, and the others nothing.

use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use tench::fs;
use tench::io::Write;
use tench::procs::Procs;
use tench::time::sleep;

use super::{Attack, held, said};
use crate::case::Outcome;

pub const ATTACKS: &[Attack] = &[Attack::new(
    "hoard-family-files",
    "children that fill the files one after another, and end, leave others their part",
    hoard_files,
)
.first()];

/// Directory of their files, and the prefix of the files' names.
const DIRECTORY: &str = "/tmp";
const PREFIX: &str = "left-";
/// Number of children that it takes to get the last block.
const CHILDREN: usize = 16;
/// Bytes of a block.
const BLOCK: u64 = 4096;
/// Time for which what they left is held.
const SPAN: Duration = Duration::from_millis(10);

fn hoard_files() -> Outcome {
    for _ in 0..CHILDREN {
        let child = said(Procs::STANDARD.spawn("cases", &["attack", "leave-files"]))?;
        held(Procs::STANDARD, child)?;
    }
    sleep(SPAN);
    Ok(())
}

/// Runs a part of the attack: fills files, and leaves them.
pub fn leave_files() -> Outcome {
    let own = tench::process::id();
    // A block is taken by its first byte, wherever that is in the file.
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
