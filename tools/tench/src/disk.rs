//! Room on the disk for what is built.

use std::path::Path;
use std::process::Command;

use crate::workspace::Workspace;

/// Bytes that a whole test takes in a fresh tree: 6.0 GiB were measured.
const WHOLE: u64 = 7 << 30;
/// Bytes that it takes when the tests on the host are built already.
const AGAIN: u64 = 2 << 30;

/// Returns what to do if there may be too little room for a whole test.
pub fn warning(workspace: &Workspace) -> Option<String> {
    let is_built = workspace.target.join("debug/deps").is_dir();
    let needed = if is_built { AGAIN } else { WHOLE };
    let place = if workspace.target.is_dir() { &workspace.target } else { &workspace.root };
    let free = free(place).filter(|free| *free < needed)?;
    let place = place.display();
    Some(format!(
        "{} of disk are free at {place}, and a whole ./tench test may need {}; delete something there, or set \
         CARGO_TARGET_DIR to a directory on another disk",
        gibibytes(free),
        gibibytes(needed)
    ))
}

fn gibibytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

/// Returns how many bytes are free on the disk of a directory, if `df` says so.
fn free(directory: &Path) -> Option<u64> {
    let output = Command::new("df").arg("-Pk").arg(directory).output().ok()?;
    parse(&String::from_utf8_lossy(&output.stdout))
}

/// Returns the free bytes of what `df -Pk` prints about one directory: a line with titles, and one with numbers.
fn parse(text: &str) -> Option<u64> {
    let kibibytes: u64 = text.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_free_bytes_are_the_fourth_column() {
        let text = "Filesystem     1024-blocks     Used Available Capacity Mounted on\n\
            /dev/vda         263174212 40321380  55572832      43% /\n";
        assert_eq!(parse(text), Some(55_572_832 * 1024));
        assert_eq!((parse(""), parse("df: nowhere\n")), (None, None));
    }

    #[test]
    fn too_little_room_is_named_with_a_remedy() {
        let directory = std::env::temp_dir();
        assert!(free(&directory).is_some_and(|free| free > 0));
        let text = format!("{} of {}", gibibytes(3 << 29), gibibytes(WHOLE));
        assert_eq!(text, "1.5 GiB of 7.0 GiB");
    }
}
