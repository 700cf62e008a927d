//! The whole interface as text, compared with `golden.txt`: a change of it shows in the diff of that file.
//!
//! `BLESS=1 cargo test -p tench-abi` writes the file.

use std::fmt::Write;
use std::mem::{align_of, offset_of, size_of};

use tench_abi::fault::{self, Class, Registers, Report};
use tench_abi::layout::{self, address, slot};
use tench_abi::memory::MapFlags;
use tench_abi::message::{self, IpcBuffer};
use tench_abi::object::{self, CorePower, Statistic};
use tench_abi::{Error, Kind, Operation, Powers, Rights, Tag, boot, memory, power, process};

/// Lines `name = value` of constants.
macro_rules! constants {
    ($dump:ident, $($name:expr),* $(,)?) => { $(writeln!($dump, "{} = {:#x}", stringify!($name), $name as u64).unwrap();)* };
}

/// Lines of a structure: size, alignment and where its fields lie.
macro_rules! fields {
    ($dump:ident, $type:ty: $($field:ident),* $(,)?) => {
        writeln!($dump, "{}: {} bytes, aligned to {}", stringify!($type), size_of::<$type>(), align_of::<$type>()).unwrap();
        $(writeln!($dump, "  {:>4} {}", offset_of!($type, $field), stringify!($field)).unwrap();)*
    };
}

fn numbers(dump: &mut String) {
    for operation in Operation::ALL {
        writeln!(dump, "operation {:>3} {operation}", *operation as u64).unwrap();
    }
    for error in Error::ALL {
        writeln!(dump, "error {:>2} {error:?}", *error as u32).unwrap();
    }
    for kind in Kind::ALL {
        let bits = [0, 3, 8, 12, 30].map(|size| kind.object_bits(size));
        writeln!(dump, "kind {:>2} {kind:?}; log2 of bytes at sizes 0, 3, 8, 12, 30: {bits:?}", kind as u8).unwrap();
    }
    for right in Rights::all().iter_names() {
        writeln!(dump, "right {:#x} {}", right.1.bits(), right.0).unwrap();
    }
    for power in Powers::all().iter_names() {
        writeln!(dump, "power {:#x} {}", power.1.bits(), power.0).unwrap();
    }
    for flag in MapFlags::all().iter_names() {
        writeln!(dump, "mapping flag {:#x} {}", flag.1.bits(), flag.0).unwrap();
    }
    for class in Class::ALL {
        writeln!(dump, "fault {} {class:?}", class as u64).unwrap();
    }
    for statistic in Statistic::ALL {
        writeln!(dump, "statistic {} {statistic:?}", statistic as u64).unwrap();
    }
    for power in CorePower::ALL {
        writeln!(dump, "power of a core {} {power:?}", power as u64).unwrap();
    }
    for state in (0..).map_while(object::ThreadState::from_code) {
        writeln!(dump, "thread state {} {state:?}", state as u64).unwrap();
    }
}

fn sizes(dump: &mut String) {
    constants!(dump, Tag::DEADLINE, Tag::REPLY, Tag::KERNEL, Tag::NOTIFICATION, Tag::LABEL_BITS, IpcBuffer::MOVE);
    constants!(dump, message::REGISTER_WORDS, message::MAX_WORDS, message::MAX_CAPS, message::IPC_BUFFER_SIZE);
    constants!(dump, fault::reply::RESUME, fault::reply::RESULT, fault::reply::STOP);
    use object::entry_path;
    constants!(
        dump,
        entry_path::USER_INTERRUPT,
        entry_path::FAULT,
        entry_path::FOREIGN_CALL,
        entry_path::KERNEL_INTERRUPT
    );
    constants!(dump, entry_path::IDLE, entry_path::UNKNOWN, entry_path::TIMER, entry_path::LIMIT, entry_path::RESET);
    constants!(dump, fault::timeout::OWN, fault::timeout::CALLER);
    constants!(
        dump,
        power::SHIFT,
        power::OBJECT,
        power::FAMILY_SHIFT,
        power::FAMILIES,
        power::CORE_SHIFT,
        power::CORES
    );
    constants!(dump, fault::MESSAGE_WORDS, fault::FOREIGN_WORDS);
    constants!(dump, object::NODE_BITS, object::ROOT_MAX_BITS, object::SLOT_SIZE, object::PRIORITIES);
    constants!(dump, memory::PAGE_BITS, memory::USER_END, object::MIN_BUDGET, object::MAX_PERIOD);
    constants!(dump, layout::WATERMARK, layout::UNBIND);
    constants!(dump, slot::CSPACE.0, slot::VSPACE.0, slot::THREAD.0, slot::SCHEDULING.0, slot::REPLY.0);
    constants!(dump, slot::PROCESS_INFO.0, slot::PROCS.0, slot::MEM.0, slot::NAMES.0, slot::CONSOLE.0);
    constants!(dump, slot::IPC_BUFFER.0, slot::KERNEL.0, slot::INTERRUPT_CONTROL.0, slot::SERVICE.0, slot::NODE0.0);
    constants!(
        dump,
        slot::EXTRA.0,
        slot::EXTRA_COUNT,
        slot::KEPT_NODES,
        slot::FILES.0,
        slot::STDIN.0,
        slot::STDOUT.0,
        slot::STDERR.0,
        slot::FIRST_FREE.0,
        slot::BOOT_UNTYPED.0,
        slot::BOOT_OBJECTS.0
    );
    constants!(dump, address::PROCESS_INFO, address::IPC_BUFFERS, address::STACK_TOP, address::STACK_SIZE);
    constants!(dump, address::FIRST_STACK_SIZE, address::BOOT_ARCHIVE, address::DYNAMIC, address::DYNAMIC_END);
    constants!(dump, address::METADATA, address::METADATA_SIZE, address::PROGRAM);
    constants!(dump, boot::MAGIC, boot::VERSION, boot::MAX_SEGMENTS, boot::MAX_UNTYPED);
    constants!(
        dump,
        process::MAGIC,
        process::INFO_PAGES,
        process::MAX_SEGMENTS,
        process::note::KIND,
        process::note::OWN_STACK
    );
}

fn layouts(dump: &mut String) {
    fields!(dump, IpcBuffer: words, send_caps, receive_slots, fault, upcall_running, registers);
    fields!(dump, Report: class, address, instruction, syndrome);
    fields!(dump, Registers: x, sp, pc, flags, thread_pointer);
    fields!(dump, boot::Header: magic, version, entry, segment_count, segments, archive_offset, archive_size,
        line_owners);
    fields!(dump, boot::Segment: address, offset, size, flags);
    fields!(dump, process::Segment: address, size, flags);
    fields!(dump, process::Info: magic, pid, argument_count, arguments_offset, environment_count, environment_offset,
        extra_count, counter_frequency, stack_bottom, stack_top, own_stack, ipc_buffer, dynamic, metadata,
        bias, random, segment_count, segments);
    fields!(dump, boot::UntypedInfo: address, size_bits, kind);
    fields!(dump, boot::BootInfo: magic, version, untyped_count, archive_address, archive_size, device_tree,
        device_tree_size, counter_frequency, core, untyped);
}

#[test]
fn the_interface_is_the_recorded_one() {
    let mut dump = String::new();
    numbers(&mut dump);
    sizes(&mut dump);
    layouts(&mut dump);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &dump).expect("the file can be written");
    }
    let recorded = std::fs::read_to_string(path).expect("the file is there");
    for (number, (now, recorded)) in dump.lines().zip(recorded.lines()).enumerate() {
        assert_eq!(now, recorded, "golden.txt:{}; BLESS=1 accepts it", number + 1);
    }
    assert_eq!(dump.lines().count(), recorded.lines().count(), "lines of golden.txt; BLESS=1 accepts it");
}
