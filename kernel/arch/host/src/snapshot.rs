//! Snapshots: a kernel's state as text that is equal for states that no program can tell apart, except by the order of
//! copies in a queue.
//!
//! All addresses are physical, so that machines whose memory lies elsewhere can be compared.

use std::fmt::Write as _;

use tench_abi::Kind;
use tench_kernel::endpoint::Endpoint;
use tench_kernel::mapping::Mapping;
use tench_kernel::mapping::scattered::Scattered;
use tench_kernel::notification::Notification;
use tench_kernel::object::Ref;
use tench_kernel::page_table::PageTable;
use tench_kernel::reply::Reply;
use tench_kernel::scheduling_context::SchedulingContext;
use tench_kernel::slot::Payload;
use tench_kernel::slot::payload::Reservation;
use tench_kernel::thread::{Thread, ThreadState};
use tench_kernel::{Arch, Cap, Kernel, SlotRef};

use crate::check::Inventory;
use crate::host::Host;

/// Largest frame, in bytes, that is compared by content.
const COMPARED: usize = 64 << 10;

/// Returns the state as text. Leaves out the registers of the threads in `ours`: their results are compared separately.
pub fn snapshot(k: &mut Kernel<Host>, ours: &[Ref<Thread>]) -> Result<String, String> {
    let inventory = Inventory::take(k)?;
    let mut text = String::new();
    let base = k.arch().base();
    // Equal capabilities may stand in any order.
    let mut slots: Vec<(SlotRef, Cap)> = inventory.slots.clone();
    let position = |cap: &Cap| (cap.object, u8::MAX - cap.size_bits, cap.kind as u8, cap.badge_if_any());
    slots.sort_by_key(|(slot, cap)| (position(cap), cap.kind != Kind::Untyped, slot.number()));
    for (slot, cap) in &slots {
        capability(&mut text, base, *slot, cap);
    }
    for table in inventory.of::<PageTable>(Kind::PageTable) {
        page_table(&mut text, k, table);
    }
    for thread in &inventory.threads {
        thread_state(&mut text, k, *thread, !ours.contains(thread));
    }
    for object in inventory.of::<Endpoint>(Kind::Endpoint) {
        let head = k.get(object).head;
        let head = if head == 0 { 0 } else { head - base };
        let _ = writeln!(text, "endpoint {:x}: {head:x}", object.address() - base);
    }
    for object in inventory.of::<Notification>(Kind::Notification) {
        let n = k.get(object);
        let (word, head, bound) = (n.word, n.head, n.bound);
        let name = [head, bound].map(|thread| thread.map_or(0, |thread| thread.address() - base));
        let _ = writeln!(text, "notification {:x}: {word:x} {name:x?}", object.address() - base);
    }
    for object in inventory.of::<Reply>(Kind::Reply) {
        let r = k.get(object);
        let name = [r.caller, r.claimed].map(|thread| thread.map_or(0, |thread| thread.address() - base));
        let _ = writeln!(text, "reply {:x}: {name:x?}", object.address() - base);
    }
    for object in inventory.of::<SchedulingContext>(Kind::SchedulingContext) {
        let c = k.get(object);
        let thread = c.owner.map_or(0, |thread| thread.address() - base);
        let _ = writeln!(text, "time {:x}: {} {thread:x}", object.address() - base, c.priority);
    }
    for cap in inventory.objects.values().filter(|cap| cap.kind == Kind::Frame && cap.size() <= COMPARED) {
        let memory = &k.arch().memory;
        if memory.contains(cap.object, cap.size()) {
            let words = (0..cap.size()).step_by(8).map(|offset| memory.read((cap.object - base + offset) as u64));
            let sum = words.fold(0u64, |sum, word| sum.rotate_left(5) ^ word);
            let _ = writeln!(text, "frame {:x}: {sum:x}", cap.object - base);
        }
    }
    Ok(text)
}

fn capability(text: &mut String, base: usize, slot: SlotRef, cap: &Cap) {
    let has_address = !matches!(cap.kind, Kind::Interrupt | Kind::InterruptControl | Kind::Kernel | Kind::Doorbell);
    let object = if has_address { cap.object - base } else { cap.object };
    let payload = match cap.payload() {
        Payload::Mapping(mapping) => {
            Payload::Mapping(Mapping { table: mapping.table - base, memory: mapping.memory - base, ..mapping })
        }
        Payload::Scattered(scattered) => {
            Payload::Scattered(Scattered { table: scattered.table - base, frame: scattered.frame - base, ..scattered })
        }
        Payload::Reservation(reservation) => {
            Payload::Reservation(Reservation { owner: reservation.owner - base, ..reservation })
        }
        other => other,
    };
    let (kind, rights, size_bits, flags) = (cap.kind, cap.rights, cap.size_bits, cap.flags);
    let head = format!("{:x}: {kind:?} {object:x} r{rights:x} s{size_bits} f{flags:x}", slot.number());
    let _ = writeln!(text, "{head} {payload:x?}");
}

fn page_table(text: &mut String, k: &mut Kernel<Host>, table: Ref<PageTable>) {
    let base = k.arch().base();
    let t = k.get(table);
    let parent = if t.parent == 0 { 0 } else { t.parent - base };
    let _ = write!(text, "table {:x}: {} in {parent:x}/{} {}:", table.address() - base, t.level, t.index, t.used);
    for (i, shadow) in t.shadows.iter().enumerate().filter(|(_, shadow)| **shadow != 0) {
        let _ = write!(text, " {i}:{shadow:x}:{:x}", t.entries[i]);
    }
    for (number, slot) in (1..).zip(t.scattered).filter(|(_, slot)| *slot != 0) {
        let _ = write!(text, " scattered {number} in {slot:x}");
    }
    let account = t.account;
    if account.open {
        let _ = write!(text, " account {} {} {}", account.suspended, account.count, account.time);
    }
    text.push('\n');
}

fn thread_state(text: &mut String, k: &mut Kernel<Host>, thread: Ref<Thread>, with_registers: bool) {
    let base = k.arch().base();
    let t = k.get(thread);
    let (state, partner) = match t.state {
        ThreadState::Suspended => ("suspended", base),
        ThreadState::Ready => ("ready", base),
        ThreadState::Sending(endpoint) => ("sends", endpoint.address()),
        ThreadState::Receiving(endpoint) => ("receives", endpoint.address()),
        ThreadState::AwaitingReply(reply) => ("awaits a reply", reply.address()),
        ThreadState::Waiting(notification) => ("waits", notification.address()),
        ThreadState::Faulted => ("faulted", base),
    };
    let account = t.membership.account.map_or(0, |table| table.address() - base);
    let _ = write!(
        text,
        "thread {:x}: {state} {:x} {} {} {account:x} {:x} {:?}",
        thread.address() - base,
        partner - base,
        t.priority,
        t.account_suspended,
        if t.ipc_buffer == 0 { 0 } else { t.ipc_buffer - base },
        t.fault_targets.map(|target| target.entry),
    );
    if with_registers {
        let _ = write!(text, " {:x?}", &t.registers.x[..3]);
    }
    text.push('\n');
}
