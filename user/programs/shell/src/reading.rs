//! Reading of lines.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::commands;
use crate::completion::{self, Candidates, Sources};
use crate::editor::Event;
use crate::shell::{PROMPT, Shell};
use crate::system::{Entry, Input, Terminal};

/// Result of reading a line.
enum Line {
    Text(String),
    Interrupted,
    /// Ctrl-D.
    End,
    /// There will be no more input.
    Gone,
}

impl Shell<'_> {
    /// Reads a line and runs it.
    pub(crate) fn read_and_execute(&mut self) {
        match self.read_line() {
            Line::Text(line) => self.execute(&line),
            Line::Interrupted => {}
            Line::End => {
                if let Err(failure) = self.leave() {
                    self.complain(None, &failure);
                }
            }
            Line::Gone => self.is_leaving = true,
        }
    }

    fn read_line(&mut self) -> Line {
        let terminal = self.system.take_terminal();
        self.start_line();
        match terminal {
            Terminal::Ours => self.edit_line(),
            Terminal::Others => {
                self.system.write(PROMPT.as_bytes());
                self.read_finished_line()
            }
            // Nobody sees a prompt.
            Terminal::None => self.read_finished_line(),
        }
    }

    fn edit_line(&mut self) -> Line {
        let mut out = Vec::new();
        self.editor.begin_line(&mut out);
        loop {
            if !out.is_empty() {
                self.system.write(&out);
                out.clear();
            }
            let byte = match self.system.read() {
                Input::Byte(byte) => byte,
                Input::Interrupted => return Line::Interrupted,
                Input::End => return Line::Gone,
            };
            let line = match self.editor.feed(byte, &mut out) {
                Event::Nothing => continue,
                Event::Complete => {
                    let completion = completion::complete(&self.editor.before_cursor(), &mut Words(self));
                    self.editor.complete(&completion, &mut out);
                    continue;
                }
                Event::Line(line) => Line::Text(line),
                Event::Interrupted => Line::Interrupted,
                Event::End => Line::End,
            };
            self.system.write(&out);
            return line;
        }
    }

    /// Reads a line from a terminal of another process, which edits lines itself, or from a file or pipe.
    fn read_finished_line(&mut self) -> Line {
        let mut bytes = Vec::new();
        loop {
            match self.system.read() {
                Input::Byte(b'\n') => return Line::Text(String::from_utf8_lossy(&bytes).into_owned()),
                Input::Byte(byte) => bytes.push(byte),
                Input::Interrupted => return Line::Interrupted,
                // The last line of a file may lack its end.
                Input::End if !bytes.is_empty() => return Line::Text(String::from_utf8_lossy(&bytes).into_owned()),
                Input::End => return Line::Gone,
            }
        }
    }

    /// Returns earlier lines.
    pub fn history(&self) -> Vec<String> {
        self.editor.history().map(String::from).collect()
    }
}

/// Sources of completion.
struct Words<'a, 's>(&'a mut Shell<'s>);

impl Sources for Words<'_, '_> {
    fn arguments(&self, command: &str) -> Option<Candidates> {
        commands::find(command).map(|command| command.arguments)
    }

    fn words(&mut self, kind: Candidates) -> Vec<String> {
        match kind {
            Candidates::Commands => commands::all().map(|command| command.name.into()).collect(),
            Candidates::Programs => self.0.programs(),
            Candidates::Jobs => self.0.jobs.numbers().map(|number| format!("%{number}")).collect(),
            Candidates::Processes => {
                let live = self.0.processes().into_iter().filter(|process| process.end().is_none());
                live.map(|process| process.base_name().into()).collect()
            }
            Candidates::Nothing
            | Candidates::CommandLine
            | Candidates::Files
            | Candidates::Directories
            | Candidates::Powers => Vec::new(),
        }
    }

    fn entries(&mut self, directory: &str) -> Vec<Entry> {
        // A path that does not exist completes to nothing.
        self.0.system.entries(directory).unwrap_or_default()
    }
}
