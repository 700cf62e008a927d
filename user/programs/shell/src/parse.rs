//! From a line to words: quotes, backslashes, `&`, comments.
//!
//! | written | means |
//! |---|---|
//! | `'text'` | text as it is |
//! | `"text"` | text in which `\"` and `\\` stand for `"` and `\` |
//! | `\c` | the character c, whatever it is |
//! | `&` at the end | do not wait for the program |
//! | `# text` | nothing: a comment, at the start of a word |

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Characters that mean something, so that a word with them in it has to be quoted.
const SPECIAL: &str = " \t'\"\\&#";

/// A line in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// Command or program, and its arguments. Empty for an empty line.
    pub words: Vec<String>,
    /// Whether it ends with `&`.
    pub background: bool,
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A quotation mark without its partner.
    OpenQuote(char),
    /// A backslash with nothing behind it.
    Backslash,
    /// Something behind `&`.
    AfterAmpersand,
    /// Nothing before `&`.
    BeforeAmpersand,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mistake::OpenQuote(mark) => {
                write!(f, "the closing {mark} is missing; write \\{mark} for the character itself")
            }
            Mistake::Backslash => f.write_str("nothing follows the backslash; write \\\\ for the character itself"),
            Mistake::AfterAmpersand => f.write_str("& ends a line; write \\& or '&' for the character itself"),
            Mistake::BeforeAmpersand => f.write_str("nothing to run before &; write PROGRAM ARGUMENTS &"),
        }
    }
}

/// What is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// Between words.
    Nothing,
    /// A word.
    Word,
    /// A part of a word in quotation marks.
    Quote(char),
}

/// A word and where it begins, in bytes.
struct Word {
    text: String,
    start: usize,
}

/// What a line consists of, also if it is not complete.
struct Scan {
    words: Vec<Word>,
    /// What the end of the line is inside of.
    inside: Inside,
    /// The line ends with a backslash.
    backslash: bool,
    /// Where the first `&` is, and whether something follows it.
    ampersand: Option<bool>,
}

fn scan(line: &str) -> Scan {
    let mut scan = Scan { words: Vec::new(), inside: Inside::Nothing, backslash: false, ampersand: None };
    for (index, character) in line.char_indices() {
        if scan.inside == Inside::Nothing {
            match character {
                '#' => break,
                _ if character.is_whitespace() => continue,
                '&' if scan.ampersand.is_none() => {
                    scan.ampersand = Some(false);
                    continue;
                }
                _ => {}
            }
            if let Some(followed) = &mut scan.ampersand {
                *followed = true;
            }
            scan.words.push(Word { text: String::new(), start: index });
            scan.inside = Inside::Word;
        }
        scan.inside_word(character);
    }
    scan
}

impl Scan {
    /// Takes a character of the last word, or the one behind it.
    fn inside_word(&mut self, character: char) {
        let Some(word) = self.words.last_mut() else { return };
        let is_escaped = core::mem::take(&mut self.backslash);
        match self.inside {
            Inside::Quote('"') if is_escaped => {
                if !matches!(character, '"' | '\\') {
                    word.text.push('\\');
                }
                word.text.push(character);
            }
            Inside::Quote(mark) if character == mark => self.inside = Inside::Word,
            Inside::Quote('"') if character == '\\' => self.backslash = true,
            Inside::Quote(_) => word.text.push(character),
            _ if is_escaped => word.text.push(character),
            _ if character == '\\' => self.backslash = true,
            _ if matches!(character, '\'' | '"') => self.inside = Inside::Quote(character),
            _ if character.is_whitespace() => self.inside = Inside::Nothing,
            _ if character == '&' => {
                self.inside = Inside::Nothing;
                self.ampersand = Some(self.ampersand.is_some());
            }
            _ => word.text.push(character),
        }
    }
}

/// Divides a line into words.
pub fn parse(line: &str) -> Result<CommandLine, Mistake> {
    let scan = scan(line);
    if scan.backslash {
        return Err(Mistake::Backslash);
    }
    if let Inside::Quote(mark) = scan.inside {
        return Err(Mistake::OpenQuote(mark));
    }
    if scan.ampersand == Some(true) {
        return Err(Mistake::AfterAmpersand);
    }
    if scan.ampersand.is_some() && scan.words.is_empty() {
        return Err(Mistake::BeforeAmpersand);
    }
    let words = scan.words.into_iter().map(|word| word.text).collect();
    Ok(CommandLine { words, background: scan.ampersand.is_some() })
}

/// A line that is being typed: whole words, and the one at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// The words before the last.
    pub words: Vec<String>,
    /// The last word without its quotes; empty if the line ends with a space.
    pub word: String,
    /// Where the last word begins, in bytes.
    pub start: usize,
}

/// Divides a line that is being typed into words.
pub fn unfinished(line: &str) -> Unfinished {
    let mut scan = scan(line);
    let last = if scan.inside == Inside::Nothing { None } else { scan.words.pop() };
    let last = last.unwrap_or(Word { text: String::new(), start: line.len() });
    let words = scan.words.into_iter().map(|word| word.text).collect();
    Unfinished { words, word: last.text, start: last.start }
}

/// Writes a word so that [`parse`] reads it as it is.
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
