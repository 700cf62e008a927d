//! Tests of the division of memory, and of the devices of QEMU's `virt` machine (its device tree is beside this file).

use proptest::prelude::*;
use tench_init::device_tree::{DeviceResources, DeviceTree};
use tench_init::memory::{Part, above};
use tench_system::Device;

const TREE: &[u8] = include_bytes!("virt.dtb");

fn tree() -> DeviceTree<'static> {
    DeviceTree::new(TREE)
}

#[test]
fn the_serial_port_is_found() {
    let resources = DeviceResources { address: 0x900_0000, size: 0x1000, interrupt: 33, edge: false };
    assert_eq!(tree().find(Device::Uart), Some(resources));
}

#[test]
fn the_real_time_clock_is_found() {
    let resources = DeviceResources { address: 0x901_0000, size: 0x1000, interrupt: 34, edge: false };
    assert_eq!(tree().find(Device::Clock), Some(resources));
}

#[test]
fn the_general_purpose_pins_are_found() {
    let resources = DeviceResources { address: 0x903_0000, size: 0x1000, interrupt: 39, edge: false };
    assert_eq!(tree().find(Device::Pins), Some(resources));
}

#[test]
fn virtio_transports_are_counted_by_address() {
    for number in 0..32 {
        let address = 0xa00_0000 + u64::from(number) * 0x200;
        let resources = DeviceResources { address, size: 0x200, interrupt: 48 + u64::from(number), edge: true };
        assert_eq!(tree().find(Device::Virtio(number)), Some(resources));
    }
}

#[test]
fn a_damaged_tree_has_no_devices_or_the_right_ones() {
    for length in 0..TREE.len() {
        assert_eq!(DeviceTree::new(&TREE[..length]).find(Device::Uart), None, "{length} bytes");
    }
}

#[test]
fn the_seed_is_what_the_machine_has_put_there() {
    let found = tree().seed();
    assert!(TREE.windows(32).any(|bytes| bytes == found), "the tree has these bytes");
    assert_ne!(found, [0; 32]);
    // Without a tree, or without a seed in it, all systems are alike.
    assert_eq!([&[], &TREE[..100]].map(|bytes| DeviceTree::new(bytes).seed()), [[0; 32]; 2]);
}

#[test]
fn an_unused_block_is_given_whole() {
    assert_eq!(above(0, 20).collect::<Vec<_>>(), [Part { offset: 0, size_bits: 20 }]);
}

#[test]
fn a_full_block_gives_nothing() {
    assert_eq!(above(1 << 20, 20).count(), 0);
    assert_eq!(above((1 << 20) - 1, 20).count(), 0);
}

#[test]
fn the_rest_is_divided_by_alignment() {
    let parts: Vec<_> = above(0x4_1001, 20).map(|part| (part.offset, part.size_bits)).collect();
    assert_eq!(parts, [(0x4_2000, 13), (0x4_4000, 14), (0x4_8000, 15), (0x5_0000, 16), (0x6_0000, 17), (0x8_0000, 19)]);
}

proptest! {
    #[test]
    fn the_parts_cover_the_rest_without_overlap(size_bits in 12..40u32, watermark in any::<prop::sample::Index>()) {
        let size = 1u64 << size_bits;
        let watermark = watermark.index(size as usize + 1) as u64;
        let mut end = watermark.next_multiple_of(4096);
        for part in above(watermark, size_bits) {
            prop_assert_eq!(part.offset, end);
            prop_assert!(part.size_bits >= 12 && part.offset.is_multiple_of(1 << part.size_bits));
            end += 1 << part.size_bits;
        }
        prop_assert_eq!(end, size.max(end));
        prop_assert!(above(watermark, size_bits).count() < 40);
    }
}
