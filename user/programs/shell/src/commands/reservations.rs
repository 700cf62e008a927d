//! `reservations`: reserved shares of the processor.

use alloc::format;
use alloc::string::{String, ToString};

use tench_procs_interface::pid::Shown;

use super::{Action, Call, Command, Outcome};
use crate::completion::Candidates;
use crate::format::{Side, Table, Time};
use crate::shell::Shell;

/// The command of this file.
pub const COMMANDS: &[Command] = &[Command {
    name: "reservations",
    usage: "",
    summary: "list the reserved shares of the processor",
    help: "Of the core on which the shell runs; each has its own. A job may begin once in every PERIOD, and has its BUDGET within DEADLINE, with all the others that there are even within \
           RESPONSE. SHARE is what could be used: the budget in what the deadline leaves of the period. USED is all processor time \
           that the thread with the reservation has used.",
    arguments: Candidates::Nothing,
    action: Action::Anywhere(reservations),
}];

fn reservations(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    call.none()?;
    let right = ["ID", "PID", "SHARE", "BUDGET", "PERIOD", "DEADLINE", "RESPONSE", "PRIORITY", "USED"]
        .map(|name| (name, Side::Right));
    let columns = [&right[..], &[("PROCESS", Side::Left)]].concat();
    let mut table = Table::new(&columns);
    let (mut after, mut total) = (0, 0);
    while let Some(found) = shell.system.next_reservation(after)? {
        (after, total) = (found.id, total + found.share);
        let process =
            shell.system.process(found.process).map_or("-".into(), |process| String::from(process.base_name()));
        let time = |nanoseconds| Time { ticks: nanoseconds, per_second: 1_000_000_000 }.to_string();
        table.row([
            found.id.to_string(),
            Shown(found.process).to_string(),
            percent(found.share),
            time(found.budget),
            time(found.period),
            time(found.deadline),
            time(found.response),
            found.priority.to_string(),
            time(found.used),
            process,
        ]);
    }
    if after > 0 {
        shell.print(format_args!("{table}"));
    }
    shell.print(format_args!("{} of the processor reserved\n", percent(total)));
    Ok(())
}

/// Returns millionths in percent.
fn percent(share: u64) -> String {
    format!("{}.{} %", share / 10_000, share / 1000 % 10)
}
