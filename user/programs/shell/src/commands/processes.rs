//! `ps`: the processes as a tree.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tench_procs_interface::pid::{Shown, split_pid};
use tench_procs_interface::protocol::State;

use super::process::find;
use super::{Action, Call, Command, Outcome};
use crate::completion::Candidates;
use crate::format::{Bytes, Side, Table, Time};
use crate::shell::Shell;
use crate::system::Process;

/// The command of this file.
pub const COMMANDS: &[Command] = &[Command {
    name: "ps",
    usage: "[-a] [--here] [--flat] [--short] [PID|NAME]",
    summary: "show the processes as a tree",
    help: "Who was started by a process stands below it, further to the right; who was started by one that is not shown \
           stands at the left. With -a also those that have ended. On a machine with several cores those of all, with --here \
           those of the shell's own core. With PID or NAME only that process and what comes \
           from it. TIME is processor time, MEMORY all that the process costs. --flat shows numbers of parents instead \
           of a tree, --short names and states alone, without a tree.",
    arguments: Candidates::Processes,
    action: Action::Anywhere(list),
}];

fn list(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    let ([all, is_here, is_flat, is_short], rest) = call.options(["-a", "--here", "--flat", "--short"])?;
    let root = match rest.at_most_one()? {
        None => None,
        Some(argument) => Some(find(shell, argument)?.pid),
    };
    let own = split_pid(shell.system.own_pid()).0;
    let is_shown = |process: &Process| {
        (!is_here || split_pid(process.pid).0 == own) && (all || process.end().is_none() || Some(process.pid) == root)
    };
    let processes: Vec<Process> = shell.processes().into_iter().filter(is_shown).collect();
    let tree = tree(&processes, root);
    let order = if is_flat || is_short { flat(tree) } else { tree };
    let table = if is_short { short(&processes, &order) } else { long(shell, &processes, &order, is_flat) };
    shell.print(format_args!("{table}"));
    Ok(())
}

/// Indices of processes, and their depth in the tree.
type Order = Vec<(usize, usize)>;

/// Sorts processes in tree order: below each one its children. With `root`, only what descends from it.
///
/// One pass from the last to the first finds all children; the time is that of sorting by number, which the processes
/// already are. A process has a higher number than its parent on the same core, so there is no cycle; if a monitor
/// falsely reported one over several cores, each of its processes would still be shown at most once.
pub fn tree(processes: &[Process], root: Option<u64>) -> Order {
    let indices: BTreeMap<u64, usize> =
        processes.iter().enumerate().map(|(index, process)| (process.pid, index)).collect();
    let mut children: Vec<Vec<usize>> = processes.iter().map(|_| Vec::new()).collect();
    // From the last to the first, since they go onto a stack.
    let mut open: Order = Vec::new();
    for (index, process) in processes.iter().enumerate().rev() {
        let may_be = process.parent < process.pid || split_pid(process.parent).0 != split_pid(process.pid).0;
        let parent = indices.get(&process.parent).filter(|_| may_be);
        if let Some(&parent) = parent {
            children[parent].push(index);
        }
        if root.map_or(parent.is_none(), |root| root == process.pid) {
            open.push((index, 0));
        }
    }
    let mut order = Order::new();
    let mut is_shown: Vec<bool> = processes.iter().map(|_| false).collect();
    while let Some((index, depth)) = open.pop() {
        if core::mem::replace(&mut is_shown[index], true) {
            continue;
        }
        order.push((index, depth));
        open.extend(children[index].iter().map(|&child| (child, depth + 1)));
    }
    order
}

/// Returns the processes without depths, in the order of numbers.
fn flat(mut tree: Order) -> Order {
    tree.sort_unstable();
    tree.into_iter().map(|(index, _)| (index, 0)).collect()
}

fn short(processes: &[Process], order: &Order) -> Table {
    let mut table = Table::new(&[("STATE", Side::Left), ("NAME", Side::Left)]);
    for &(index, depth) in order {
        table.row([state(&processes[index]), indented(&processes[index], depth)]);
    }
    table
}

fn long(shell: &mut Shell<'_>, processes: &[Process], order: &Order, with_parents: bool) -> Table {
    let per_second = shell.system.ticks_per_second();
    let right = |heading| (heading, Side::Right);
    let parent: &[_] = if with_parents { &[right("PARENT")] } else { &[] };
    let columns = [&[right("PID")], parent, &[("STATE", Side::Left)], &["PRIORITY", "MEMORY", "TIME"].map(right)];
    let mut table = Table::new(&[&columns.concat()[..], &[("NAME", Side::Left)]].concat());
    for &(index, depth) in order {
        let process = &processes[index];
        let mut row = Vec::from([Shown(process.pid).to_string()]);
        if with_parents {
            row.push(Shown(process.parent).to_string());
        }
        row.push(state(process));
        row.push(process.priority.to_string());
        row.push(memory(shell, process));
        row.push(Time { ticks: process.ticks, per_second }.to_string());
        row.push(indented(process, depth));
        table.add(row);
    }
    table
}

fn indented(process: &Process, depth: usize) -> String {
    format!("{:1$}{2}", "", 2 * depth, process.base_name())
}

/// Returns the memory of a process, for people.
pub fn memory(shell: &mut Shell<'_>, process: &Process) -> String {
    shell.system.memory_of(process.pid).map_or("-".into(), |used| Bytes(used).to_string())
}

/// Returns a process's state in words.
pub fn state(process: &Process) -> String {
    match (process.end(), process.state) {
        (Some(end), _) => end.to_string(),
        (None, State::Preparing) => "preparing".into(),
        (None, State::Suspended) => "suspended".into(),
        (None, _) => "running".into(),
    }
}
