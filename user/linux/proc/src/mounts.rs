//! Mounted file systems: `/proc/PID/mounts` and `/proc/PID/mountinfo`.

use alloc::vec::Vec;

use crate::text::Text;

/// Characters that separate names in these files.
const ESCAPED: &[u8] = b" \t\n\\#";

/// A mounted file system.
#[derive(Clone, Copy, Debug)]
pub struct Mount<'a> {
    /// Number of the mount.
    pub id: u32,
    /// Number of the one in which it is mounted; its own for the root.
    pub parent: u32,
    /// Minor number of its device, whose major number is 0.
    pub device: u32,
    /// Name and type.
    pub kind: &'a str,
    /// Where it is mounted.
    pub path: &'a str,
    /// Options of the mount.
    pub options: &'a str,
    /// Options of the file system.
    pub own_options: &'a str,
}

/// Returns the text of `/proc/PID/mounts`.
pub fn mounts(mounts: &[Mount<'_>]) -> Vec<u8> {
    let mut text = Text::default();
    for mount in mounts {
        text.add_escaped(mount.kind.as_bytes(), ESCAPED);
        text.add(format_args!(" "));
        text.add_escaped(mount.path.as_bytes(), ESCAPED);
        text.add(format_args!(" {} {} 0 0\n", mount.kind, mount.options));
    }
    text.0
}

/// Returns the text of `/proc/PID/mountinfo`.
pub fn mount_information(mounts: &[Mount<'_>]) -> Vec<u8> {
    let mut text = Text::default();
    for mount in mounts {
        text.add(format_args!("{} {} 0:{} / ", mount.id, mount.parent, mount.device));
        text.add_escaped(mount.path.as_bytes(), ESCAPED);
        text.add(format_args!(" {} - {} ", mount.options, mount.kind));
        text.add_escaped(mount.kind.as_bytes(), ESCAPED);
        text.add(format_args!(" {}\n", mount.own_options));
    }
    text.0
}
