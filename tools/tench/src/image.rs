//! The two files with which the machine is started.
//!
//! The **kernel image** is an arm64 `Image` in Linux's sense: the kernel's segments laid out by physical address, the
//! header first. The kernel's ELF file contains that header as its first bytes; here it is only checked, and the size
//! in it is the kernel's own business. The **RAM disk** is as `tench_abi::boot` says: a header page, `init` laid out
//! page by page so that the kernel can map it where it lies, and the boot archive.

use std::collections::BTreeMap;

use miette::{Result, miette};
use tench_abi::boot::{self, Header, MAX_SEGMENTS};
use tench_abi::layout::address;
use tench_abi::memory::{MapFlags, PAGE_SIZE};
use tench_abi::object::LINES;

use crate::elf::{Executable, Segment};

/// Offset and value of an arm64 `Image`'s magic number.
const IMAGE_MAGIC: (usize, &[u8]) = (56, b"ARM\x64");
/// Maximum size of a kernel image; more means that the linker script scattered it.
const MAX_KERNEL: u64 = 64 << 20;
const PAGE: u64 = PAGE_SIZE as u64;

/// Returns the kernel as the boot loader wants it.
pub fn kernel(kernel: &Executable) -> Result<Vec<u8>> {
    let with_content = || kernel.segments.iter().filter(|segment| !segment.content.is_empty());
    let start = with_content().map(|segment| segment.physical_address).min().unwrap_or(0);
    let end = with_content().map(|segment| segment.physical_address + segment.content.len() as u64).max().unwrap_or(0);
    if end - start > MAX_KERNEL {
        return Err(miette!("the kernel's segments lie {} bytes apart; look at its linker script", end - start));
    }
    let mut image = vec![0; (end - start) as usize];
    for segment in with_content() {
        let offset = (segment.physical_address - start) as usize;
        image[offset..offset + segment.content.len()].copy_from_slice(&segment.content);
    }
    let (offset, magic) = IMAGE_MAGIC;
    if image.get(offset..offset + magic.len()) != Some(magic) {
        return Err(miette!("the kernel does not begin with the header of an arm64 Image; look at its linker script"));
    }
    Ok(image)
}

/// Returns the RAM disk with `init` and the boot archive. Without an archive, it is the file from which `init` is made
/// on further cores.
///
/// `lines` has the core of each interrupt line that does not belong to the first.
pub fn ram_disk(init: &Executable, archive: &[u8], lines: &BTreeMap<u32, u8>) -> Result<Vec<u8>> {
    if init.segments.len() > MAX_SEGMENTS {
        return Err(miette!("init has {} segments; the kernel takes at most {MAX_SEGMENTS}", init.segments.len()));
    }
    let mut header = Header {
        magic: boot::MAGIC,
        version: boot::VERSION,
        entry: init.entry,
        segment_count: init.segments.len() as u64,
        segments: Default::default(),
        archive_offset: 0,
        archive_size: archive.len() as u64,
        line_owners: [0; LINES],
    };
    for (line, core) in lines {
        header.line_owners[*line as usize] = *core;
    }
    let mut disk = vec![0; PAGE_SIZE];
    let mut last_end = 0;
    let mut segments: Vec<&Segment> = init.segments.iter().collect();
    segments.sort_by_key(|segment| segment.virtual_address);
    for (segment, slot) in std::iter::zip(segments, &mut header.segments) {
        *slot = append(segment, last_end, &mut disk)?;
        last_end = slot.address + slot.size;
    }
    header.archive_offset = disk.len() as u64;
    disk.extend(archive);
    disk.resize(disk.len().next_multiple_of(PAGE_SIZE), 0);
    let bytes = encode(&header);
    disk[..bytes.len()].copy_from_slice(&bytes);
    Ok(disk)
}

/// Appends one of init's segments as whole pages.
fn append(segment: &Segment, last_end: u64, disk: &mut Vec<u8>) -> Result<boot::Segment> {
    let first = segment.virtual_address / PAGE * PAGE;
    let end = (segment.virtual_address + segment.memory_size).next_multiple_of(PAGE);
    if first < last_end {
        return Err(miette!("two segments of init share the page at {first:#x}; its linker script must align them"));
    }
    if first < PAGE || end > address::DYNAMIC {
        return Err(miette!("init's segment at {first:#x} lies outside the addresses for programs"));
    }
    let flags = match (segment.writable, segment.executable) {
        (true, true) => return Err(miette!("init's segment at {first:#x} is both writable and executable")),
        (true, false) => MapFlags::READ | MapFlags::WRITE,
        (false, true) => MapFlags::READ | MapFlags::EXECUTE,
        (false, false) => MapFlags::READ,
    };
    let offset = disk.len();
    disk.resize(offset + (end - first) as usize, 0);
    let start = offset + (segment.virtual_address - first) as usize;
    disk[start..start + segment.content.len()].copy_from_slice(&segment.content);
    Ok(boot::Segment { address: first, offset: offset as u64, size: end - first, flags: flags.bits() })
}

/// Returns the header as it lies in memory: the fields in the order of their declaration, as 64-bit little-endian
/// words, and the owners of lines, at the end, as bytes.
fn encode(header: &Header) -> Vec<u8> {
    let segments = header.segments.iter().flat_map(|one| [one.address, one.offset, one.size, one.flags]);
    [header.magic, header.version, header.entry, header.segment_count]
        .into_iter()
        .chain(segments)
        .chain([header.archive_offset, header.archive_size])
        .flat_map(u64::to_le_bytes)
        .chain(header.line_owners)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(virtual_address: u64, content: &[u8], memory_size: u64) -> Segment {
        Segment {
            virtual_address,
            physical_address: virtual_address & 0xffff_ffff,
            content: content.to_vec(),
            memory_size,
            writable: false,
            executable: true,
        }
    }

    fn word(disk: &[u8], index: usize) -> u64 {
        u64::from_le_bytes(disk[index * 8..index * 8 + 8].try_into().unwrap())
    }

    #[test]
    fn the_kernel_is_laid_out_by_physical_address() {
        let mut first = vec![1; 64];
        first[56..60].copy_from_slice(b"ARM\x64");
        let high = 0xffff_ff80_4008_0000;
        let executable = Executable {
            entry: high,
            segments: vec![
                segment(high + 0x1000, b"data", 4),
                segment(high, &first, 64),
                segment(high + 0x2000, b"", 4096),
            ],
        };
        let image = kernel(&executable).unwrap();
        assert_eq!(image.len(), 0x1004);
        assert_eq!(&image[..64], &first[..]);
        assert!(image[64..0x1000].iter().all(|&byte| byte == 0));
        assert_eq!(&image[0x1000..], b"data");
    }

    #[test]
    fn a_kernel_without_its_header_is_refused() {
        assert!(kernel(&Executable { entry: 0, segments: vec![segment(0, &[0; 100], 100)] }).is_err());
        assert!(kernel(&Executable { entry: 0, segments: vec![] }).is_err());
    }

    #[test]
    fn the_ram_disk_is_as_the_interface_says() {
        let mut data = segment(0x20_2008, b"data", 0x1800);
        (data.writable, data.executable) = (true, false);
        let init = Executable { entry: 0x20_0010, segments: vec![data, segment(0x20_0000, b"code", 4)] };
        let lines = BTreeMap::from([(34, 1), (LINES as u32 - 1, 63)]);
        let disk = ram_disk(&init, b"the archive", &lines).unwrap();

        assert_eq!(encode(&blank()).len(), size_of::<Header>());
        assert_eq!(word(&disk, 0), boot::MAGIC);
        assert_eq!(word(&disk, 2), 0x20_0010);
        assert_eq!(word(&disk, 3), 2);
        let read_execute = (MapFlags::READ | MapFlags::EXECUTE).bits();
        let read_write = (MapFlags::READ | MapFlags::WRITE).bits();
        assert_eq!([4, 5, 6, 7].map(|index| word(&disk, index)), [0x20_0000, 0x1000, 0x1000, read_execute]);
        assert_eq!([8, 9, 10, 11].map(|index| word(&disk, index)), [0x20_2000, 0x2000, 0x2000, read_write]);
        assert_eq!(&disk[0x1000..0x1004], b"code");
        assert_eq!(&disk[0x2008..0x200c], b"data");
        assert_eq!([36, 37].map(|index| word(&disk, index)), [0x4000, 11]);
        assert_eq!(&disk[0x4000..0x400b], b"the archive");
        let owners = &disk[38 * 8..][..LINES];
        assert_eq!((owners[33], owners[34], owners[35], owners[LINES - 1]), (0, 1, 0, 63));
        assert_eq!(disk.len(), 0x5000);
    }

    fn blank() -> Header {
        let segments = Default::default();
        let line_owners = [0; LINES];
        Header {
            magic: 0,
            version: 0,
            entry: 0,
            segment_count: 0,
            segments,
            archive_offset: 0,
            archive_size: 0,
            line_owners,
        }
    }

    #[test]
    fn segments_that_cannot_be_mapped_are_refused() {
        let mut both = segment(0x20_0000, b"x", 1);
        both.writable = true;
        let shared = vec![segment(0x20_0000, b"x", 1), segment(0x20_0800, b"x", 1)];
        for segments in [vec![both], shared, vec![segment(0, b"x", 1)], vec![segment(address::DYNAMIC, b"x", 1)]] {
            assert!(ram_disk(&Executable { entry: 0, segments }, b"", &BTreeMap::new()).is_err());
        }
    }
}
