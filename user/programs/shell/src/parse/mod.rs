//! Parser from a line to pipelines: words, quotes, redirection, `&` and `;`.
//!
//! | written | means |
//! |---|---|
//! | `'text'` | text as it is |
//! | `"text"` | text in which `\"` and `\\` stand for `"` and `\` |
//! | `\c` | the character c, whatever it is |
//! | `A \| B` | B reads the output of A |
//! | `< FILE` | read the file instead of the terminal |
//! | `> FILE`, `>> FILE` | write to the file instead of the terminal: from its beginning, at its end |
//! | `2> FILE`, `2>> FILE` | write errors to the file: from its beginning, at its end |
//! | `2>&1` | errors go where output goes |
//! | `A &` | do not wait for it |
//! | `A ; B` | B after A |
//! | `# text` | nothing: a comment, at the start of a word |

mod mistake;
mod scan;

use alloc::string::String;
use alloc::vec::Vec;

pub use mistake::Mistake;
use scan::{Inside, Part, Scan, Token, scan};

/// Characters with a meaning; a word that contains one has to be quoted.
const SPECIAL: &str = " \t'\"\\&#|;<>";

/// A line: pipelines to be run one after the other.
pub type Line = Vec<Pipeline>;

/// Programs and commands, each of which reads the output of the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pipeline {
    /// At least one stage.
    pub stages: Vec<Stage>,
    /// Set if it ends with `&`.
    pub background: bool,
    /// The text as it was written, without `&`.
    pub text: String,
}

/// A program or a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// Name and arguments of the program or command.
    pub words: Vec<String>,
    /// File from which it reads.
    pub input: Option<String>,
    /// File to which it writes.
    pub output: Option<Target>,
    /// Target of its errors.
    pub errors: Option<Errors>,
}

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Path of the file.
    pub path: String,
    /// Set if its old contents stay.
    pub append: bool,
}

/// Target of errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Errors {
    /// A file.
    To(Target),
    /// The target of the output.
    ToOutput,
}

/// A standard stream of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    /// Standard input.
    Input,
    /// Standard output.
    Output,
    /// Standard error.
    Errors,
}

/// Parses a line.
pub fn parse(line: &str) -> Result<Line, Mistake> {
    let Scan { tokens, inside } = scan(line);
    match inside {
        Inside::Backslash => return Err(Mistake::Backslash),
        Inside::Quote(mark) => return Err(Mistake::OpenQuote(mark)),
        Inside::Word | Inside::Nothing => {}
    }
    let mut parsed = Line::new();
    let mut rest = tokens.as_slice();
    while let Some(first) = rest.first() {
        let is_end = |token: &Token| matches!(token.part, Part::Semicolon | Part::Ampersand);
        let length = rest.iter().position(is_end).unwrap_or(rest.len());
        let (these, others) = rest.split_at(length);
        let mut pipeline = pipeline(these)?;
        if let Some((end, others)) = others.split_first() {
            let background = end.part == Part::Ampersand;
            if these.is_empty() {
                return Err(if background { Mistake::BeforeAmpersand } else { Mistake::BeforeSemicolon });
            }
            pipeline.background = background;
            rest = others;
        } else {
            rest = others;
        }
        let end = these.last().map_or(first.end, |last| last.end);
        pipeline.text = line[first.start..end].into();
        parsed.push(pipeline);
    }
    Ok(parsed)
}

/// Parses the part between `;` and `&`.
fn pipeline(tokens: &[Token]) -> Result<Pipeline, Mistake> {
    let parts: Vec<&[Token]> = tokens.split(|token| token.part == Part::Pipe).collect();
    let mut stages = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        if part.is_empty() && parts.len() > 1 {
            return Err(if index == 0 { Mistake::BeforePipe } else { Mistake::AfterPipe });
        }
        let stage = stage(part)?;
        if index > 0 && stage.input.is_some() {
            return Err(Mistake::PipeAndFile(Standard::Input));
        }
        if index + 1 < parts.len() && stage.output.is_some() {
            return Err(Mistake::PipeAndFile(Standard::Output));
        }
        stages.push(stage);
    }
    Ok(Pipeline { stages, background: false, text: String::new() })
}

fn stage(tokens: &[Token]) -> Result<Stage, Mistake> {
    let mut stage = Stage::default();
    let mut tokens = tokens.iter();
    let mut redirected = None;
    while let Some(token) = tokens.next() {
        match &token.part {
            Part::Word(word) => stage.words.push(word.clone()),
            Part::Redirect(stream, append) => {
                let Some(Token { part: Part::Word(path), .. }) = tokens.next() else {
                    return Err(Mistake::NoFile(*stream));
                };
                stage.redirect(*stream, Target { path: path.clone(), append: *append })?;
                redirected = Some(*stream);
            }
            Part::ErrorsToOutput => {
                stage.set_errors(Errors::ToOutput)?;
                redirected = Some(Standard::Errors);
            }
            Part::Wrong(mistake) => return Err(*mistake),
            // The line was divided at these before.
            Part::Pipe | Part::Semicolon | Part::Ampersand => {}
        }
    }
    match redirected {
        Some(stream) if stage.words.is_empty() => Err(Mistake::NothingToRedirect(stream)),
        _ => Ok(stage),
    }
}

impl Stage {
    fn redirect(&mut self, stream: Standard, target: Target) -> Result<(), Mistake> {
        match stream {
            Standard::Input if self.input.is_none() => self.input = Some(target.path),
            Standard::Output if self.output.is_none() => self.output = Some(target),
            Standard::Errors => return self.set_errors(Errors::To(target)),
            _ => return Err(Mistake::Twice(stream)),
        }
        Ok(())
    }

    fn set_errors(&mut self, errors: Errors) -> Result<(), Mistake> {
        match self.errors.replace(errors) {
            None => Ok(()),
            Some(_) => Err(Mistake::Twice(Standard::Errors)),
        }
    }
}

/// A line that is being typed: complete words, and the one at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// The words before the last, of the program or command at the end of the line.
    pub words: Vec<String>,
    /// The last word without its quotes; empty if the line ends with a space.
    pub word: String,
    /// Start of the last word, in bytes.
    pub start: usize,
    /// Set if the last word is the file of a redirection.
    pub is_file: bool,
}

/// Splits a line that is being typed into words.
pub fn unfinished(line: &str) -> Unfinished {
    let Scan { mut tokens, inside } = scan(line);
    let last = if inside == Inside::Nothing { None } else { tokens.pop() };
    let (word, start) = match last {
        Some(Token { part: Part::Word(word), start, .. }) => (word, start),
        _ => (String::new(), line.len()),
    };
    let mut unfinished = Unfinished { words: Vec::new(), word, start, is_file: false };
    for token in tokens {
        match token.part {
            Part::Redirect(..) => unfinished.is_file = true,
            Part::Word(_) if unfinished.is_file => unfinished.is_file = false,
            Part::Word(word) => unfinished.words.push(word),
            Part::ErrorsToOutput => {}
            Part::Pipe | Part::Semicolon | Part::Ampersand | Part::Wrong(_) => {
                unfinished.words.clear();
                unfinished.is_file = false;
            }
        }
    }
    unfinished
}

/// Quotes a word so that [`parse`] returns it unchanged.
pub fn quoted(word: &str) -> String {
    let mut text = String::new();
    for character in word.chars() {
        if SPECIAL.contains(character) {
            text.push('\\');
        }
        text.push(character);
    }
    text
}
