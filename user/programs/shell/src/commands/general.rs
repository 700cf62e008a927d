//! Commands about the shell itself, and the last one of a session.

use alloc::format;
use alloc::string::String;

use super::{Action, Call, Command, Failure, Outcome};
use crate::completion::Candidates;
use crate::shell::Shell;
use crate::suggest;

/// The commands of this file.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "help",
        usage: "[COMMAND]",
        summary: "list the commands, or explain one",
        help: "Lines are words between spaces. 'text', \"text\" and \\c keep spaces and special characters in a word; # \
               begins a comment. A | B: B reads what A writes. < FILE reads, > FILE writes a file, >> FILE writes at its \
               end, 2> FILE writes errors, 2>&1 sends errors where output goes. A & does not wait for A; A ; B runs B after \
               A. Keys: Up and Down for earlier lines, Tab to complete, Ctrl-A and Ctrl-E for the line's \
               ends, Ctrl-K, Ctrl-U and Ctrl-W to delete, Ctrl-L to clear the screen, Ctrl-C to give the line up or kill what \
               runs, Ctrl-Z to suspend it.",
        arguments: Candidates::Commands,
        action: Action::Anywhere(help),
    },
    Command {
        name: "echo",
        usage: "[WORD...]",
        summary: "print words",
        help: "Prints its arguments with a space between them.",
        arguments: Candidates::Files,
        action: Action::Anywhere(echo),
    },
    Command {
        name: "history",
        usage: "",
        summary: "list the lines typed so far",
        help: "The last 256 lines are kept; blank ones and repetitions are not.",
        arguments: Candidates::Nothing,
        action: Action::Anywhere(history),
    },
    Command {
        name: "clear",
        usage: "",
        summary: "clear the screen",
        help: "Ctrl-L does the same and keeps the line.",
        arguments: Candidates::Nothing,
        action: Action::Anywhere(clear),
    },
    Command {
        name: "exit",
        usage: "",
        summary: "leave the shell",
        help: "The first shell cannot be left; others can, also with Ctrl-D on an empty line.",
        arguments: Candidates::Nothing,
        action: Action::Alone(exit),
    },
    Command {
        name: "poweroff",
        usage: "[STATUS]",
        summary: "switch the machine off",
        help: "STATUS, a number from 0 to 255, becomes the exit status of the host tool; without it, 0.",
        arguments: Candidates::Nothing,
        action: Action::Alone(power_off),
    },
];

fn help(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    let Some(name) = call.at_most_one()? else {
        list(shell);
        return Ok(());
    };
    let Some(command) = super::find(name) else {
        if shell.programs().iter().any(|program| program == name) {
            return Err(Failure::Refused(format!("{name} is a program, not a command; {name} runs it")));
        }
        let near = suggest::nearest(name, super::all().map(|command| command.name));
        let hint = near.map_or("help lists them".into(), |near| format!("did you mean {near}?"));
        return Err(Failure::Refused(format!("no command {name}; {hint}")));
    };
    shell.say(format_args!("usage: {}", command.usage_line()));
    shell.say(format_args!("{}: {}.", command.name, command.summary));
    print_wrapped(shell, command.help);
    Ok(())
}

/// Columns for a command's usage. Longer ones have a line of their own.
const USAGE_WIDTH: usize = 30;

fn list(shell: &mut Shell<'_>) {
    for command in super::all() {
        list_one(shell, &command.usage_line(), command.summary);
    }
    list_one(shell, "PROGRAM [ARGUMENT...] [&]", "the same as run; ls bin lists the programs");
    list_one(shell, "COMMAND | PROGRAM [> FILE]", "help help explains |, <, >, & and ;");
}

fn list_one(shell: &mut Shell<'_>, usage: &str, summary: &str) {
    if usage.len() > USAGE_WIDTH {
        shell.say(format_args!("{usage}"));
        shell.say(format_args!("{:USAGE_WIDTH$}  {summary}", ""));
    } else {
        shell.say(format_args!("{usage:USAGE_WIDTH$}  {summary}"));
    }
}

/// Prints a text in lines of at most 78 columns.
fn print_wrapped(shell: &mut Shell<'_>, text: &str) {
    let mut line = String::new();
    for word in text.split(' ') {
        if line.len() + 1 + word.len() > 78 {
            shell.say(format_args!("{line}"));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    shell.say(format_args!("{line}"));
}

fn echo(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    shell.say(format_args!("{}", call.arguments.join(" ")));
    Ok(())
}

fn history(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    call.none()?;
    for (index, line) in shell.history().iter().enumerate() {
        shell.say(format_args!("{:4}  {line}", index + 1));
    }
    Ok(())
}

fn clear(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    call.none()?;
    shell.print(format_args!("\x1b[H\x1b[2J"));
    Ok(())
}

fn exit(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    call.none()?;
    shell.leave()
}

fn power_off(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    let status = match call.at_most_one()? {
        None => 0,
        Some(text) => match text.parse::<u8>() {
            Ok(status) => status,
            Err(_) => return Err(Failure::Usage(format!("STATUS is a number from 0 to 255, not {text}"))),
        },
    };
    shell.flush();
    Err(shell.system.power_off(status).into())
}
