//! The system description, a file of the boot archive with settings for programs.

use alloc::vec::Vec;

use tench_shell::system::How;
use tench_system::{ARCHIVE_PATH, System};

use super::streams;

/// Reads the description. If there is no file server, or no such file, programs have no settings.
pub fn read() -> Option<System<'static>> {
    let file = streams::open(ARCHIVE_PATH, How::Read).ok()?;
    let mut bytes = Vec::new();
    while let Ok(part) = streams::read(file, usize::MAX)
        && !part.is_empty()
    {
        bytes.extend_from_slice(&part);
    }
    streams::close(file);
    // The text is needed as long as the shell runs.
    System::parse(Vec::leak(bytes)).ok()
}
