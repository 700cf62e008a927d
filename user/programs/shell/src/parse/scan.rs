//! Scanner from characters to words and operators.

use alloc::string::String;
use alloc::vec::Vec;
use core::iter::Peekable;
use core::str::CharIndices;

use super::{Mistake, Standard};

/// Characters that separate words without a space.
const OPERATORS: &str = "|&;<>";

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A word without its quotes.
    Word(String),
    /// `|`
    Pipe,
    /// `;`
    Semicolon,
    /// `&`
    Ampersand,
    /// `<`, `>`, `2>`, and `>>`, `2>>`, which append.
    Redirect(Standard, bool),
    /// `2>&1`
    ErrorsToOutput,
    /// An invalid operator.
    Wrong(Mistake),
}

/// A part and its position, in bytes.
pub(super) struct Token {
    pub part: Part,
    pub start: usize,
    pub end: usize,
}

/// State at the end of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside {
    /// The last token is complete.
    Nothing,
    /// A word.
    Word,
    /// A part of a word in quotation marks.
    Quote(char),
    /// A word that ends with a backslash.
    Backslash,
}

/// The tokens of a line, also of an incomplete one.
pub(super) struct Scan {
    pub tokens: Vec<Token>,
    pub inside: Inside,
}

/// Scans a line.
pub(super) fn scan(line: &str) -> Scan {
    let mut scanner = Scanner { line, rest: line.char_indices().peekable(), inside: Inside::Nothing };
    let mut tokens = Vec::new();
    while let Some(token) = scanner.token() {
        tokens.push(token);
    }
    Scan { tokens, inside: scanner.inside }
}

struct Scanner<'a> {
    line: &'a str,
    rest: Peekable<CharIndices<'a>>,
    inside: Inside,
}

impl Scanner<'_> {
    /// Returns the position of the next character.
    fn position(&mut self) -> usize {
        self.rest.peek().map_or(self.line.len(), |&(index, _)| index)
    }

    /// Consumes this character if it is the next one.
    fn take(&mut self, wanted: char) -> bool {
        self.rest.next_if(|&(_, character)| character == wanted).is_some()
    }

    fn token(&mut self) -> Option<Token> {
        while self.rest.next_if(|(_, character)| character.is_whitespace()).is_some() {}
        let &(start, first) = self.rest.peek()?;
        let part = match first {
            '#' => return None,
            _ if OPERATORS.contains(first) => self.operator(),
            _ => self.word(start),
        };
        Some(Token { part, start, end: self.position() })
    }

    fn operator(&mut self) -> Part {
        match self.rest.next().map(|(_, character)| character) {
            Some('|') if self.take('|') => Part::Wrong(Mistake::DoublePipe),
            Some('|') => Part::Pipe,
            Some('&') if self.take('&') => Part::Wrong(Mistake::DoubleAmpersand),
            Some('&') => Part::Ampersand,
            Some('<') => self.input(),
            Some('>') => self.output(Standard::Output),
            _ => Part::Semicolon,
        }
    }

    /// Scans what follows `<`.
    fn input(&mut self) -> Part {
        if self.take('<') { Part::Wrong(Mistake::DoubleLess) } else { Part::Redirect(Standard::Input, false) }
    }

    /// Scans what follows `>`.
    fn output(&mut self, stream: Standard) -> Part {
        if self.take('>') {
            return Part::Redirect(stream, true);
        }
        if !self.take('&') {
            return Part::Redirect(stream, false);
        }
        let is_known = stream == Standard::Errors && self.take('1');
        let ends = self.rest.peek().is_none_or(|&(_, next)| next.is_whitespace() || OPERATORS.contains(next));
        if is_known && ends { Part::ErrorsToOutput } else { Part::Wrong(Mistake::Copy) }
    }

    /// Scans a word, or the number of a stream and the operator behind it.
    fn word(&mut self, start: usize) -> Part {
        let mut text = String::new();
        self.inside = Inside::Word;
        while let Some(&(index, character)) = self.rest.peek() {
            let is_unquoted = self.inside == Inside::Word;
            if is_unquoted && (character.is_whitespace() || OPERATORS.contains(character)) {
                self.inside = Inside::Nothing;
                let is_number = self.line[start..index].bytes().all(|byte| byte.is_ascii_digit());
                if is_number && matches!(character, '<' | '>') {
                    self.rest.next();
                    return self.numbered(&text, character);
                }
                break;
            }
            self.rest.next();
            self.inside_word(character, &mut text);
        }
        Part::Word(text)
    }

    /// Scans an operator that follows a number without a space.
    fn numbered(&mut self, number: &str, operator: char) -> Part {
        match (number, operator) {
            ("0", '<') => self.input(),
            ("1", '>') => self.output(Standard::Output),
            ("2", '>') => self.output(Standard::Errors),
            _ => Part::Wrong(Mistake::Number(operator)),
        }
    }

    /// Scans a character of a word.
    fn inside_word(&mut self, character: char, text: &mut String) {
        match self.inside {
            Inside::Quote(mark) if character == mark => self.inside = Inside::Word,
            Inside::Quote('"') if character == '\\' => {
                // Only special characters are escaped.
                match self.rest.next_if(|&(_, next)| matches!(next, '"' | '\\')) {
                    Some((_, escaped)) => text.push(escaped),
                    None if self.rest.peek().is_none() => self.inside = Inside::Backslash,
                    None => text.push('\\'),
                }
            }
            Inside::Quote(_) => text.push(character),
            _ if character == '\\' => match self.rest.next() {
                Some((_, escaped)) => text.push(escaped),
                None => self.inside = Inside::Backslash,
            },
            _ if matches!(character, '\'' | '"') => self.inside = Inside::Quote(character),
            _ => text.push(character),
        }
    }
}
