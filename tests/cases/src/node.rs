//! Tests of CSpaces: copying, minting, moving, deleting, revoking, nodes in nodes.

use tench::sys::{Cap, CapAddress, CapNode, Endpoint, Error, Frame, Kind, OWN_CSPACE, Rights, Thread};

use crate::case::{Case, Outcome};
use crate::stage::{EMPTY_INDEX, Stage, identify, is_empty, system_call};

pub const CASES: &[Case] = &[
    Case::new("NOD0001", "a copy has the same rights, badge and object", copy),
    Case::new("NOD0002", "a minted capability has no more rights than its origin", mint_rights),
    Case::new("NOD0003", "a badge is given once, and to endpoints and notifications alone", mint_badges),
    Case::new("NOD0004", "a destination must be empty and exist", destinations),
    Case::new("NOD0005", "a source must exist and hold something", sources),
    Case::new("NOD0006", "a moved capability is the same one", moves),
    Case::new("NOD0007", "the object goes with its last capability", last_one),
    Case::new("NOD0008", "revoking an original deletes all copies", revoke_original),
    Case::new("NOD0009", "revoking a badged original deletes those with its badge", revoke_badge),
    Case::new("NOD0010", "revoking a copy deletes nothing", revoke_copy),
    Case::new("NOD0011", "an empty slot is described as such", identify_empty),
    Case::new("NOD0012", "a node is installed and taken out with what it holds", install),
    Case::new("NOD0013", "a second-level node has 256 slots, and needs WRITE", install_errors),
    Case::new("NOD0014", "what is taken out must be a node", remove_errors),
    Case::new("NOD0015", "operations reach another CSpace through its root", other_cspace),
    Case::new("NOD0016", "deleting a node deletes what it holds", delete_node),
    Case::new("NOD0017", "nodes nested in nodes go without recursion", nested),
    Case::new("NOD0018", "nodes that hold each other go with their memory", cycle),
    Case::new("NOD0019", "deleting a thousand capabilities passes preemption points", many),
    Case::new("NOD0020", "a node's own last capability in itself goes", in_itself),
];

fn copy(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let badged = stage.mint(endpoint, Rights::WRITE | Rights::GRANT, 77)?;
    let copy = stage.copy(badged)?;
    equal!(copy.identify()?, badged.identify()?);
    equal!((copy.identify()?.badge, copy.identify()?.rights), (77, Rights::WRITE | Rights::GRANT));
    Ok(())
}

fn mint_rights(stage: &mut Stage) -> Outcome {
    let frame = stage.make::<Frame>(12)?;
    for bits in 0..16 {
        let mask = Rights::from_bits_truncate(bits);
        let slot = stage.slot();
        let weak = frame.mint_to(slot, mask, 0)?;
        equal!(weak.identify()?.rights, mask.intersection(frame.identify()?.rights));
        let again = stage.slot();
        equal!(weak.mint_to(again, Rights::all(), 0)?.identify()?.rights, weak.identify()?.rights);
    }
    Ok(())
}

fn mint_badges(stage: &mut Stage) -> Outcome {
    let (endpoint, notification, slot) = (stage.endpoint()?, stage.notification()?, stage.slot());
    let badged = stage.mint(endpoint, Rights::all(), 1)?;
    stage.mint(notification, Rights::all(), u64::MAX)?;
    refused!(badged.mint_to(slot, Rights::all(), 2), InvalidArgument);
    refused!(badged.mint_to(slot, Rights::all(), 1), InvalidArgument);
    for (kind, size) in
        [(Kind::Frame, 12), (Kind::CapNode, 4), (Kind::Thread, 0), (Kind::Reply, 0), (Kind::PageTable, 2)]
    {
        let other = Cap::<Endpoint>::new(stage.make_kind(kind, size)?);
        refused!(other.mint_to(slot, Rights::all(), 9), InvalidArgument);
    }
    equal!(badged.mint_to(slot, Rights::all(), 0)?.identify()?.badge, 1);
    Ok(())
}

/// Tries the three operations that have a destination.
fn attempts(source: Cap<Endpoint>, slot: CapAddress) -> [Result<Cap<Endpoint>, Error>; 3] {
    [source.copy_to(slot), source.mint_to(slot, Rights::all(), 0), source.move_to(slot)]
}

fn destinations(stage: &mut Stage) -> Outcome {
    let (endpoint, other) = (stage.endpoint()?, stage.endpoint()?);
    equal!(attempts(endpoint, other.address()), [Err(Error::SlotOccupied); 3]);
    equal!(attempts(endpoint, endpoint.address()), [Err(Error::SlotOccupied); 3]);
    for slot in [CapAddress::NULL, CapAddress::new(EMPTY_INDEX, 1), CapAddress::new(64, 0), CapAddress(u32::MAX)] {
        equal!(attempts(endpoint, slot), [Err(Error::NoSuchSlot); 3]);
    }
    equal!(endpoint.identify()?.kind, Kind::Endpoint);
    Ok(())
}

fn sources(stage: &mut Stage) -> Outcome {
    let (empty, slot) = (stage.slot(), stage.slot());
    for address in [empty, CapAddress::NULL, CapAddress::new(EMPTY_INDEX, 1), CapAddress(u32::MAX)] {
        equal!(attempts(Cap::new(address), slot), [Err(Error::InvalidCapability); 3]);
        refused!(OWN_CSPACE.delete_at(address), InvalidCapability);
        refused!(OWN_CSPACE.revoke_at(address), InvalidCapability);
    }
    for address in [1 << 32 | 1, 1 << 63 | 1, u64::MAX] {
        refused!(system_call(35, &[0, address]), InvalidCapability);
        refused!(system_call(37, &[0, address]), InvalidCapability);
    }
    Ok(())
}

fn moves(stage: &mut Stage) -> Outcome {
    let (endpoint, slot) = (stage.endpoint()?, stage.slot());
    let copy = stage.copy(endpoint)?;
    let before = endpoint.identify()?;
    let moved = endpoint.move_to(slot)?;
    check!(is_empty(endpoint));
    equal!(moved.identify()?, before);
    equal!(moved.revoke()?, 1);
    check!(is_empty(copy));
    Ok(())
}

fn last_one(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let copies =
        [stage.copy(endpoint)?, stage.mint(endpoint, Rights::READ, 0)?, stage.mint(endpoint, Rights::all(), 4)?];
    equal!(endpoint.delete()?.freed, None);
    equal!(copies[2].delete()?.freed, None);
    equal!(copies[0].delete()?.freed, None);
    check!(copies[1].delete()?.freed.is_some());
    Ok(())
}

fn revoke_original(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let copy = stage.copy(endpoint)?;
    let caps = [copy, stage.copy(copy)?, stage.mint(copy, Rights::READ, 0)?, stage.mint(endpoint, Rights::all(), 4)?];
    equal!(endpoint.revoke()?, 4);
    check!(caps.into_iter().all(is_empty) && !is_empty(endpoint));
    equal!(endpoint.revoke()?, 0);
    Ok(())
}

fn revoke_badge(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let (a, b) = (stage.mint(endpoint, Rights::all(), 4)?, stage.mint(endpoint, Rights::all(), 5)?);
    let (copy_a, copy_b) = (stage.copy(a)?, stage.copy(b)?);
    equal!(a.revoke()?, 1);
    check!(is_empty(copy_a) && !is_empty(a) && !is_empty(b) && !is_empty(copy_b) && !is_empty(endpoint));
    Ok(())
}

fn revoke_copy(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let copy = stage.copy(endpoint)?;
    let second = stage.copy(copy)?;
    equal!(copy.revoke()?, 0);
    check!(!is_empty(endpoint) && !is_empty(second));
    Ok(())
}

fn identify_empty(stage: &mut Stage) -> Outcome {
    let found = identify(stage.slot())?;
    equal!((found.kind, found.rights, found.size_bits, found.badge), (Kind::Null, Rights::empty(), 0, 0));
    refused!(identify(CapAddress::NULL), InvalidCapability);
    refused!(identify(CapAddress::new(EMPTY_INDEX, 4)), InvalidCapability);
    Ok(())
}

/// Makes a root with a node in entry 1.
fn cspace(stage: &mut Stage) -> Outcome<Cap<CapNode>> {
    let (root, node) = (stage.make::<CapNode>(3)?, stage.make::<CapNode>(8)?);
    root.install_node(1, node)?;
    check!(is_empty(node));
    Ok(root)
}

fn install(stage: &mut Stage) -> Outcome {
    let (root, endpoint, slot) = (cspace(stage)?, stage.endpoint()?, stage.slot());
    let inside = CapAddress::new(1, 200);
    root.copy_from(inside, OWN_CSPACE, endpoint.address())?;
    let node = root.remove_node(1, slot)?;
    equal!(node.identify()?.kind, Kind::CapNode);
    refused!(root.identify_at(inside), InvalidCapability);
    root.install_node(7, node)?;
    equal!(root.identify_at(CapAddress::new(7, 200))?.kind, Kind::Endpoint);
    Ok(())
}

fn install_errors(stage: &mut Stage) -> Outcome {
    let (root, node, small) = (cspace(stage)?, stage.make::<CapNode>(8)?, stage.make::<CapNode>(7)?);
    refused!(root.install_node(0, small), WrongType);
    refused!(root.install_node(0, Cap::new(stage.pool.address())), WrongType);
    refused!(root.install_node(1, node), SlotOccupied);
    refused!(root.install_node(8, node), InvalidArgument);
    refused!(root.install_node(u32::MAX, node), InvalidArgument);
    refused!(root.install_node(0, Cap::new(stage.slot())), InvalidCapability);
    let weak = stage.mint(node, Rights::READ, 0)?;
    refused!(root.install_node(0, weak), MissingRights);
    root.install_node(0, node)?;
    Ok(())
}

fn remove_errors(stage: &mut Stage) -> Outcome {
    let (root, slot) = (cspace(stage)?, stage.slot());
    refused!(root.remove_node(2, slot), NoSuchSlot);
    refused!(root.remove_node(8, slot), InvalidArgument);
    refused!(root.remove_node(1, root.address()), SlotOccupied);
    refused!(root.remove_node(1, CapAddress::new(EMPTY_INDEX, 0)), NoSuchSlot);
    // A node is a root or a second level depending on how it is reached, so it can hold any capability.
    let node = stage.make::<CapNode>(8)?;
    let copy = stage.copy(node)?;
    root.install_node(0, copy)?;
    let endpoint = stage.endpoint()?;
    root.copy_from(CapAddress::new(0, 3), OWN_CSPACE, endpoint.address())?;
    refused!(node.remove_node(3, slot), WrongType);
    Ok(())
}

fn other_cspace(stage: &mut Stage) -> Outcome {
    let (root, endpoint, slot) = (cspace(stage)?, stage.endpoint()?, stage.slot());
    let (a, b) = (CapAddress::new(1, 1), CapAddress::new(1, 2));
    root.copy_from(a, OWN_CSPACE, endpoint.address())?;
    root.mint_from(b, root, a, Rights::WRITE, 6)?;
    equal!(root.identify_at(b)?.badge, 6);
    OWN_CSPACE.move_from(slot, root, b)?;
    equal!((identify(slot)?.badge, root.identify_at(b)?.kind), (6, Kind::Null));
    refused!(root.copy_from(a, OWN_CSPACE, endpoint.address()), SlotOccupied);
    refused!(root.copy_from(CapAddress::new(2, 0), OWN_CSPACE, endpoint.address()), NoSuchSlot);
    equal!(root.revoke_at(a)?, 0);
    equal!(endpoint.revoke()?, 2);
    refused!(root.delete_at(a), InvalidCapability);
    Ok(())
}

fn delete_node(stage: &mut Stage) -> Outcome {
    let (root, node) = (stage.make::<CapNode>(1)?, stage.make::<CapNode>(8)?);
    let copy = stage.copy(node)?;
    root.install_node(0, copy)?;
    let (endpoint, notification) = (stage.endpoint()?, stage.notification()?);
    root.move_from(CapAddress::new(0, 5), OWN_CSPACE, endpoint.address())?;
    root.copy_from(CapAddress::new(0, 6), OWN_CSPACE, notification.address())?;
    let watcher = stage.spawn(move || notification.wait())?;
    equal!(node.delete()?.freed, None);
    equal!(root.identify_at(CapAddress::new(0, 5))?.kind, Kind::Endpoint);
    check!(root.delete()?.freed.is_some());
    // The notification has another capability, so deletion disturbed no user.
    notification.signal()?;
    equal!(watcher.join()?, Ok(1));
    check!(notification.delete()?.freed.is_some());
    Ok(())
}

fn nested(stage: &mut Stage) -> Outcome {
    // Each node lies in the one before, so the last capability to each node is in a node.
    let outer = stage.make::<CapNode>(1)?;
    let mut inner = outer;
    for _ in 0..60 {
        let node = stage.make::<CapNode>(8)?;
        let copy = stage.copy(node)?;
        inner.install_node(0, node)?;
        if inner != outer {
            inner.delete()?;
        }
        inner = copy;
    }
    let thread = stage.make::<Thread>(0)?;
    let root = stage.make::<CapNode>(1)?;
    root.install_node(0, inner)?;
    root.move_from(CapAddress::new(0, 1), OWN_CSPACE, thread.address())?;
    check!(outer.delete()?.freed.is_some());
    check!(root.delete()?.freed.is_some());
    equal!(stage.pool.revoke()?, 0);
    Ok(())
}

fn cycle(stage: &mut Stage) -> Outcome {
    let (a, b) = (stage.make::<CapNode>(8)?, stage.make::<CapNode>(8)?);
    let (copy_a, copy_b) = (stage.copy(a)?, stage.copy(b)?);
    a.install_node(3, copy_b)?;
    b.install_node(5, copy_a)?;
    equal!(a.delete()?.freed, None);
    equal!(b.delete()?.freed, None);
    // The nodes cannot be named any more, but their memory can be taken back.
    equal!(stage.pool.revoke()?, 2);
    equal!(stage.pool.query()?.watermark, 0);
    Ok(())
}

fn many(stage: &mut Stage) -> Outcome {
    let root = stage.make::<CapNode>(3)?;
    let notification = stage.notification()?;
    for index in 0..4 {
        let node = stage.make::<CapNode>(8)?;
        root.install_node(index, node)?;
        for number in u32::from(index == 0)..256 {
            root.copy_from(CapAddress::new(index, number), OWN_CSPACE, notification.address())?;
        }
    }
    equal!(notification.revoke()?, 1023);
    for index in 0..4 {
        for number in u32::from(index == 0)..256 {
            root.copy_from(CapAddress::new(index, number), OWN_CSPACE, notification.address())?;
        }
    }
    check!(root.delete()?.freed.is_some());
    check!(notification.delete()?.freed.is_some());
    Ok(())
}

fn in_itself(stage: &mut Stage) -> Outcome {
    let node = stage.make::<CapNode>(8)?;
    // The node is its own root and its own second-level node.
    let copy = stage.copy(node)?;
    node.install_node(0, copy)?;
    node.move_from(CapAddress(7), OWN_CSPACE, node.address())?;
    equal!(stage.pool.revoke()?, 2);
    Ok(())
}
