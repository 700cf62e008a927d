//! The areas of a process: `/proc/PID/maps`.

use alloc::vec::Vec;
use core::ops::Range;

use crate::text::Text;

/// Column at which an area's name begins, behind at least one blank.
const NAME: usize = 73;

/// An area of a process's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// Addresses.
    pub range: Range<u64>,
    /// The process may read it, write it, execute it.
    pub rights: [bool; 3],
    /// Others see what is written.
    pub is_shared: bool,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Major and minor number of the file's device.
    pub device: (u32, u32),
    /// Number of the file; 0 for none.
    pub inode: u64,
    /// Path of the file or what stands for it; empty for none.
    pub name: Vec<u8>,
}

/// Returns the text of areas.
pub fn maps(maps: &[Map]) -> Vec<u8> {
    let mut text = Text::default();
    for map in maps {
        text.add_map(map);
    }
    text.0
}

impl Text {
    /// Adds the line of an area.
    pub(crate) fn add_map(&mut self, map: &Map) {
        let begin = self.0.len();
        let flag = |set: bool, letter: char| if set { letter } else { '-' };
        let [read, write, execute] = map.rights;
        self.add(format_args!(
            "{:08x}-{:08x} {}{}{}{} {:08x} {:02x}:{:02x} {} ",
            map.range.start,
            map.range.end,
            flag(read, 'r'),
            flag(write, 'w'),
            flag(execute, 'x'),
            if map.is_shared { 's' } else { 'p' },
            map.offset,
            map.device.0,
            map.device.1,
            map.inode,
        ));
        if !map.name.is_empty() {
            let end = self.0.len().max(begin + NAME);
            self.0.resize(end, b' ');
            self.add_escaped(&map.name, b"\n");
        }
        self.0.push(b'\n');
    }
}
