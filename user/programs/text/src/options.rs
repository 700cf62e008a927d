//! Options and arguments.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The options and arguments of a call.
#[derive(Debug, Default)]
pub struct Options<'a> {
    flags: Vec<char>,
    values: Vec<(char, &'a str)>,
    /// The words that are not options.
    pub arguments: Vec<&'a str>,
}

impl<'a> Options<'a> {
    /// Parses options: letters after a `-`, those of `values` each with a value, in the same word or the next. They end
    /// with the first argument, or with `--`. A `-` alone is an argument.
    pub fn parse(words: &[&'a str], flags: &str, values: &str) -> Result<Options<'a>, String> {
        let mut options = Options::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.strip_prefix('-') {
                Some("-") => break,
                Some(letters) if !letters.is_empty() => {
                    for (place, letter) in letters.char_indices() {
                        if flags.contains(letter) {
                            options.flags.push(letter);
                        } else if values.contains(letter) {
                            let rest = &letters[place + letter.len_utf8()..];
                            let value = if rest.is_empty() { words.next().copied() } else { Some(rest) };
                            options.values.push((letter, value.ok_or_else(|| format!("-{letter} needs a value"))?));
                            break;
                        } else {
                            return Err(format!("there is no option -{letter}"));
                        }
                    }
                }
                _ => {
                    options.arguments.push(word);
                    break;
                }
            }
        }
        options.arguments.extend(words);
        Ok(options)
    }

    /// Returns true if an option was given.
    pub fn has(&self, flag: char) -> bool {
        self.flags.contains(&flag)
    }

    /// Returns the last value of an option.
    pub fn value(&self, letter: char) -> Option<&'a str> {
        self.values.iter().rev().find(|value| value.0 == letter).map(|value| value.1)
    }
}
