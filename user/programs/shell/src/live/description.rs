//! The system description, which is a file of the boot archive: what it says of programs.

use alloc::vec::Vec;

use tench_shell::system::How;
use tench_system::{ARCHIVE_PATH, System};

use super::streams;

/// Reads it. Where there is no file server, or no such file, nothing is said of any program.
pub fn read() -> Option<System<'static>> {
    let file = streams::open(ARCHIVE_PATH, How::Read).ok()?;
    let mut bytes = Vec::new();
    while let Ok(part) = streams::read(file, usize::MAX)
        && !part.is_empty()
    {
        bytes.extend_from_slice(&part);
    }
    streams::close(file);
    // It is needed as long as the shell.
    System::parse(Vec::leak(bytes)).ok()
}
