//! Commands about time.

use alloc::format;

use tench_abi::object::Statistic;
use time::OffsetDateTime;

use super::{Action, Call, Command, Outcome};
use crate::completion::Candidates;
use crate::format::{Grouped, Time};
use crate::parse::Pipeline;
use crate::shell::Shell;
use crate::system::SystemError;

/// The commands of this file.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "date",
        usage: "",
        summary: "say the date and the time",
        help: "The time is UTC. It may be off by up to a second, as the machine's clock counts seconds.",
        arguments: Candidates::Nothing,
        action: Action::Anywhere(date),
    },
    Command {
        name: "time",
        usage: "COMMAND [ARGUMENT...] [| PROGRAM...]",
        summary: "say how long a command or program takes",
        help: "Counts all instructions of this processor meanwhile, those of servers and kernel included, if the \
               machine counts any: QEMU does when it is started by `./tench run --icount`. On processors with a \
               counter of 32 bits the count is modulo 2^32.",
        arguments: Candidates::CommandLine,
        action: Action::Pipeline(time),
    },
    Command {
        name: "uptime",
        usage: "",
        summary: "say how long the machine has been running",
        help: "Idle is the time in which no thread had anything to do.",
        arguments: Candidates::Nothing,
        action: Action::Anywhere(uptime),
    },
];

/// Number of values of a 32-bit instruction counter.
const NARROW_COUNTER: u64 = 1 << 32;

fn time(shell: &mut Shell<'_>, pipeline: &Pipeline) {
    shell.flush();
    let (ticks, instructions) = (shell.system.ticks(), shell.system.instructions());
    shell.carry_out(pipeline);
    shell.flush();
    let (instructions_after, ticks_after) = (shell.system.instructions(), shell.system.ticks());
    let instructions = instructions_after
        .checked_sub(instructions)
        .unwrap_or_else(|| instructions_after.wrapping_add(NARROW_COUNTER).wrapping_sub(instructions));
    let time = Time { ticks: ticks_after.saturating_sub(ticks), per_second: shell.system.ticks_per_second() };
    if instructions_after == 0 {
        shell.say(format_args!("{time} (instructions are counted under ./tench run --icount)"));
    } else {
        shell.say(format_args!("{} instructions, {time}", Grouped(instructions)));
    }
}

fn date(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    call.none()?;
    let seconds = shell.system.wall_clock()?.as_secs();
    // The type ends with the year 9999, which no clock of a machine reaches.
    let now = i64::try_from(seconds).ok().and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    let now = now.ok_or_else(|| SystemError(format!("{seconds} seconds since 1970 are no date")))?;
    let ((year, month, day), (hour, minute, second)) = (now.to_calendar_date(), now.to_hms());
    let month = u8::from(month);
    shell.say(format_args!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"));
    Ok(())
}

fn uptime(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    call.none()?;
    let (ticks, per_second) = (shell.system.ticks(), shell.system.ticks_per_second());
    let up = Time { ticks, per_second };
    // A shell without the kernel's capability does not know.
    let idle = shell.system.statistic(Statistic::IdleTicks).ok();
    let idle = idle.map(|idle| idle.saturating_mul(1000) / ticks.max(1));
    let idle = idle.map_or_else(Default::default, |idle| format!(", {}.{} % idle", idle / 10, idle % 10));
    shell.say(format_args!("up {up}{idle}"));
    Ok(())
}
