//! Commands that show memory, names, capabilities and the kernel's state.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tench_abi::layout::slot;
use tench_abi::object::{Statistic, entry_path};
use tench_abi::power::identity;
use tench_abi::{CapAddress, Kind, Powers, Rights};
use tench_mem_interface::Extent;
use tench_procs_interface::Capability;
use tench_procs_interface::pid::Shown;

use super::{Action, Call, Command, Failure, Outcome};
use crate::commands::process::{find, words_of};
use crate::completion::Candidates;
use crate::format::{Bytes, Grouped, Side, Table, Time};
use crate::picture::Picture;
use crate::shell::Shell;

/// The commands of this file.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "mem",
        usage: "[--total|--map]",
        summary: "show how much memory there is, and who has it",
        help: "USED is everything that a process costs, kernel objects included. --total shows the first line alone. --map \
               shows a picture of physical memory: each character stands for the bytes that are named above it.",
        arguments: Candidates::Nothing,
        action: Action::Anywhere(memory),
    },
    Command {
        name: "names",
        usage: "",
        summary: "list the names that servers have registered",
        help: "A program that looks a name up gets a capability to the server behind it.",
        arguments: Candidates::Nothing,
        action: Action::Anywhere(names),
    },
    Command {
        name: "caps",
        usage: "[--count] PID|NAME",
        summary: "list the capabilities of a process",
        help: "RIGHTS: r read, receive or wait; w write, send or signal; g send capabilities along; c call, or for a frame \
               execute. BADGE says of a capability to a server or to the kernel whose it is, and which powers it has: what it \
               permits beyond what everybody's does. OBJECT is the number of an interrupt or, with the power memory, \
               the physical address of memory. --count shows how many \
               there are of each kind.",
        arguments: Candidates::Processes,
        action: Action::Anywhere(capabilities),
    },
    Command {
        name: "kernel",
        usage: "[irq-off]",
        summary: "show what the kernel has counted",
        help: "Preemption points are the places where long operations let interrupts in. irq-off shows for how many instructions \
               interrupts were off, by what the kernel was entered for, and where the longest time began; only the kernels \
               called measuring measure that.",
        arguments: Candidates::Nothing,
        action: Action::Anywhere(kernel),
    },
];

fn memory(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    let ([only_total, with_map], rest) = call.options(["--total", "--map"])?;
    rest.none()?;
    let memory = shell.system.memory()?;
    let (total, free, largest) = (Bytes(memory.total), Bytes(memory.free), Bytes(memory.largest));
    shell.say(format_args!("{total}, of which {free} free, at most {largest} of it in one piece"));
    if with_map {
        let extents = extents(shell)?;
        shell.print(format_args!("{}", Picture::new(&extents)));
    }
    if only_total || with_map {
        return Ok(());
    }
    let columns = [("PID", Side::Right), ("USED", Side::Right), ("QUOTA", Side::Right), ("BLOCKS", Side::Right)];
    let mut table = Table::new(&[&columns[..], &[("NAME", Side::Left)]].concat());
    let mut after = 0;
    while let Some(account) = shell.system.next_account(after) {
        after = account.process;
        let name =
            shell.system.process(account.process).map_or("-".into(), |process| String::from(process.base_name()));
        let quota = if account.quota == u64::MAX { "-".into() } else { Bytes(account.quota).to_string() };
        let used = Bytes(account.used).to_string();
        table.row([account.process.to_string(), used, quota, account.blocks.to_string(), name]);
    }
    shell.print(format_args!("{table}"));
    Ok(())
}

/// Returns all physical memory that the memory server has.
fn extents(shell: &mut Shell<'_>) -> Result<Vec<Extent>, Failure> {
    let mut extents = Vec::new();
    let mut from = 0;
    loop {
        let found = shell.system.extents(from)?;
        let Some(last) = found.last() else { return Ok(extents) };
        from = last.address + last.size;
        extents.extend(found);
    }
}

fn names(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    call.none()?;
    let mut table = Table::new(&[("NAME", Side::Left), ("PID", Side::Right), ("PROCESS", Side::Left)]);
    let mut after = String::new();
    while let Some(name) = shell.system.next_name(&after) {
        let process = shell.system.process(name.pid).map_or("-".into(), |process| String::from(process.base_name()));
        after.clone_from(&name.name);
        table.row([name.name, Shown(name.pid).to_string(), process]);
    }
    shell.print(format_args!("{table}"));
    Ok(())
}

fn capabilities(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    let ([count], rest) = call.options(["--count"])?;
    let process = find(shell, rest.one("the process")?)?;
    if process.end().is_some() {
        return Err(Failure::Refused(format!(
            "process {} has ended, and its capabilities with it",
            Shown(process.pid)
        )));
    }
    let capabilities = shell.system.capabilities(process.pid)?;
    let table = if count { counted(&capabilities) } else { listed(&capabilities) };
    shell.print(format_args!("{table}"));
    Ok(())
}

fn counted(capabilities: &[Capability]) -> Table {
    let mut counts = BTreeMap::new();
    for capability in capabilities {
        *counts.entry(capability.kind).or_insert(0) += 1;
    }
    let mut table = Table::new(&[("COUNT", Side::Right), ("KIND", Side::Left)]);
    for (kind, count) in counts {
        table.row([count.to_string(), kind_name(kind).into()]);
    }
    table
}

fn listed(capabilities: &[Capability]) -> Table {
    let mut table = Table::new(&[
        ("SLOT", Side::Right),
        ("KIND", Side::Left),
        ("RIGHTS", Side::Left),
        ("SIZE", Side::Right),
        ("BADGE", Side::Right),
        ("OBJECT", Side::Right),
        ("USE", Side::Left),
    ]);
    let or_dash = |is_there: bool, text: String| if is_there { text } else { "-".into() };
    for capability in capabilities {
        let object = match capability.kind {
            Kind::Interrupt | Kind::Doorbell => capability.object.to_string(),
            _ => or_dash(capability.object != 0, format!("{:#x}", capability.object)),
        };
        table.row([
            capability.address.0.to_string(),
            kind_name(capability.kind).into(),
            rights(capability.rights),
            or_dash(capability.size_bits != 0, Bytes(1 << capability.size_bits.min(63)).to_string()),
            or_dash(capability.badge != 0, badge(capability)),
            object,
            use_of(capability.address).into(),
        ]);
    }
    table
}

/// Returns a badge in words: of a client's capability its process and powers.
fn badge(capability: &Capability) -> String {
    let (process, powers) = (identity(capability.badge), Powers::of_badge(capability.badge));
    let is_clients = matches!(capability.kind, Kind::Endpoint | Kind::Kernel) && Powers::all().contains(powers);
    match is_clients {
        true if powers.is_all() => format!("{process} all powers"),
        true if !powers.is_empty() => format!("{process} {}", words_of(powers)),
        // A badge of a process's own making may be anything.
        true if process != 0 => process.to_string(),
        _ => capability.badge.to_string(),
    }
}

fn rights(rights: Rights) -> String {
    let letters = [(Rights::READ, 'r'), (Rights::WRITE, 'w'), (Rights::GRANT, 'g'), (Rights::CALL, 'c')];
    letters.into_iter().map(|(right, letter)| if rights.contains(right) { letter } else { '-' }).collect()
}

/// Returns a kind in words.
const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Null => "empty",
        Kind::Untyped => "untyped",
        Kind::CapNode => "capability node",
        Kind::Frame => "frame",
        Kind::PageTable => "page table",
        Kind::Mapping => "mapping",
        Kind::Thread => "thread",
        Kind::SchedulingContext => "scheduling context",
        Kind::Endpoint => "endpoint",
        Kind::Reply => "reply",
        Kind::Notification => "notification",
        Kind::Interrupt => "interrupt",
        Kind::InterruptControl => "interrupt control",
        Kind::Doorbell => "doorbell",
        Kind::Kernel => "kernel",
    }
}

/// Returns the purpose of a well-known slot.
fn use_of(address: CapAddress) -> &'static str {
    if (slot::EXTRA.0..slot::EXTRA.0 + slot::EXTRA_COUNT).contains(&address.0) {
        return "given by the parent";
    }
    match address {
        slot::CSPACE => "own CSpace",
        slot::VSPACE => "own address space",
        slot::THREAD => "main thread",
        slot::SCHEDULING => "main thread's priority",
        slot::REPLY => "main thread's caller",
        slot::PROCESS_INFO => "process information",
        slot::PROCS => "process server",
        slot::MEM => "memory server",
        slot::NAMES => "name server",
        slot::CONSOLE => "console",
        slot::IPC_BUFFER => "IPC buffer",
        slot::KERNEL => "kernel",
        slot::INTERRUPT_CONTROL => "interrupt control",
        slot::SERVICE => "own service",
        slot::NODE0 => "first slots",
        slot::KEPT_MEMORY => "memory that stays",
        slot::FILES => "file server",
        slot::STDIN => "standard input",
        slot::STDOUT => "standard output",
        slot::STDERR => "standard error output",
        _ => "",
    }
}

fn kernel(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    match call.at_most_one()? {
        None => counters(shell),
        Some("irq-off") => irq_off(shell),
        Some(other) => Err(Failure::Usage(format!("it knows irq-off, but not {other}"))),
    }
}

/// Prints the interrupts-off intervals, by path. The host tool shows the names of the addresses.
fn irq_off(shell: &mut Shell<'_>) -> Outcome {
    shell.say(format_args!("{:>10} {:>13} {:>6}  PATH", "LONGEST", "COUNT", "MEAN"));
    for path in 0..entry_path::LIMIT {
        let Some(name) = entry_path::name(path) else { continue };
        let s = shell.system.irq_off_intervals(path)?;
        if s.count > 0 {
            let (longest, count, mean) = (Grouped(s.longest), Grouped(s.count), Grouped(s.sum / s.count));
            let [longest, count, mean] = [longest, count, mean].map(|number| number.to_string());
            shell.say(format_args!("{longest:>10} {count:>13} {mean:>6}  {name}"));
            shell.say(format_args!("  at {:#x}", s.address));
        }
    }
    Ok(())
}

fn counters(shell: &mut Shell<'_>) -> Outcome {
    let mut table = Vec::new();
    let per_second = shell.system.ticks_per_second();
    for which in Statistic::ALL {
        let value = shell.system.statistic(which)?;
        let (name, text) = match which {
            Statistic::DeepestStack => ("deepest use of a kernel stack", format!("{} bytes", Grouped(value))),
            Statistic::PreemptionPoints => ("preemption points", Grouped(value).to_string()),
            Statistic::Preemptions => ("switches at preemption points", Grouped(value).to_string()),
            Statistic::Interrupts => ("interrupts", Grouped(value).to_string()),
            Statistic::Switches => ("thread switches", Grouped(value).to_string()),
            Statistic::Preemptible => {
                ("long operations let interrupts in", if value == 1 { "yes" } else { "no" }.into())
            }
            Statistic::BootInstructions => ("instructions to the first program", Grouped(value).to_string()),
            Statistic::IdleTicks => ("idle", Time { ticks: value, per_second }.to_string()),
            Statistic::DeepestNesting => ("most interrupts under way at once", Grouped(value).to_string()),
            Statistic::NestedInterrupts => ("interrupts during others", Grouped(value).to_string()),
            Statistic::Instructions => ("instructions", Grouped(value).to_string()),
        };
        table.push((name, text));
    }
    let width = table.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, text) in table {
        shell.say(format_args!("{name:width$}  {text}"));
    }
    Ok(())
}
