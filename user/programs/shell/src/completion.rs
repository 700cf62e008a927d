//! Completion of a line by Tab.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tench_abi::Powers;

use crate::commands::{TERMINAL, is_option};
use crate::editor::Completion;
use crate::parse;
use crate::system::Entry;

/// Kind of word that is expected at a place of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidates {
    /// Unknown.
    Nothing,
    /// A command.
    Commands,
    /// A program.
    Programs,
    /// A command or a program; what follows is completed as its arguments.
    CommandLine,
    /// A process that has not ended, by name.
    Processes,
    /// A job, `%1`.
    Jobs,
    /// A file.
    Files,
    /// A directory.
    Directories,
    /// Powers, separated by commas.
    Powers,
}

/// Sources of candidates.
pub trait Sources {
    /// Returns the kind of a command's arguments, if there is such a command.
    fn arguments(&self, command: &str) -> Option<Candidates>;
    /// Returns all words of this kind, which is not a path.
    fn words(&mut self, kind: Candidates) -> Vec<String>;
    /// Returns the entries of a directory; the empty path is the root.
    fn entries(&mut self, directory: &str) -> Vec<Entry>;
}

/// Completes a line up to the cursor.
pub fn complete(before_cursor: &str, sources: &mut dyn Sources) -> Completion {
    let unfinished = parse::unfinished(before_cursor);
    let kind = if unfinished.is_file { Candidates::Files } else { kind_of_next(&unfinished.words, sources) };
    let word = unfinished.word.as_str();
    let mut choices = candidates(word, kind, sources);
    choices.sort();
    choices.dedup();
    let unchanged = String::from(&before_cursor[unfinished.start..]);
    let common = common_prefix(&choices);
    let text = match choices.as_slice() {
        [] => unchanged.clone(),
        [only] if only.ends_with('/') => parse::quoted(only),
        [only] => parse::quoted(only) + " ",
        _ if common.len() > word.len() => parse::quoted(common),
        _ => unchanged.clone(),
    };
    let names = choices.iter().map(|choice| last_part(choice).to_string()).collect();
    Completion { replaces: unchanged.len(), text, choices: names }
}

/// Returns what the word after `words` can be.
fn kind_of_next(words: &[String], sources: &dyn Sources) -> Candidates {
    let Some((first, rest)) = words.split_first() else { return Candidates::CommandLine };
    // `kill` and the like take one argument, but what follows a needless one is not worth a rule. A program's arguments
    // are most often files.
    match sources.arguments(first) {
        None => Candidates::Files,
        Some(Candidates::CommandLine) => kind_of_next(rest, sources),
        Some(Candidates::Programs) => kind_of_program(rest),
        Some(kind) => kind,
    }
}

/// Returns what the word after `run` and `words` can be: options have a value each, except for one, and then comes
/// the program.
fn kind_of_program(words: &[String]) -> Candidates {
    match words {
        [] => Candidates::Programs,
        [option, rest @ ..] if option == TERMINAL => kind_of_program(rest),
        [option] if option == "--with" => Candidates::Powers,
        [option] if is_option(option) => Candidates::Nothing,
        [option, _, rest @ ..] if is_option(option) => kind_of_program(rest),
        _ => Candidates::Files,
    }
}

fn candidates(word: &str, kind: Candidates, sources: &mut dyn Sources) -> Vec<String> {
    let words = match kind {
        Candidates::Nothing => Vec::new(),
        // A program can be in any file.
        Candidates::CommandLine | Candidates::Programs if word.contains('/') => {
            return paths(word, Candidates::Files, sources);
        }
        Candidates::CommandLine => {
            let mut words = sources.words(Candidates::Commands);
            words.extend(sources.words(Candidates::Programs));
            words
        }
        // A path is completed one component after the other.
        Candidates::Files | Candidates::Directories => return paths(word, kind, sources),
        // All but the last are complete.
        Candidates::Powers => {
            let before = &word[..word.rfind(',').map_or(0, |comma| comma + 1)];
            Powers::WORDS.iter().map(|(power, _)| [before, power].concat()).collect()
        }
        _ => sources.words(kind),
    };
    words.into_iter().filter(|candidate| candidate.starts_with(word)).collect()
}

fn paths(word: &str, kind: Candidates, sources: &mut dyn Sources) -> Vec<String> {
    let (directory, name) = word.split_at(word.rfind('/').map_or(0, |slash| slash + 1));
    let entries = sources.entries(directory).into_iter();
    let wanted =
        entries.filter(|entry| entry.name.starts_with(name) && (entry.is_directory || kind == Candidates::Files));
    wanted.map(|entry| [directory, &entry.name, if entry.is_directory { "/" } else { "" }].concat()).collect()
}

/// Returns the longest common prefix.
fn common_prefix(words: &[String]) -> &str {
    let Some((first, others)) = words.split_first() else { return "" };
    let mut length = first.len();
    for other in others {
        let same = first.chars().zip(other.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
        length = length.min(same);
    }
    &first[..length]
}

/// Returns the last component of a path, which a list of choices shows.
fn last_part(path: &str) -> &str {
    let end = path.strip_suffix('/').unwrap_or(path).rfind('/');
    end.map_or(path, |slash| &path[slash + 1..])
}
