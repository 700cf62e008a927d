//! Mistakes in a system description, as shown to people: file, line, value, and what is allowed.

use std::ops::Range;

use miette::{Diagnostic, LabeledSpan, NamedSource, Report, miette};
use thiserror::Error;

use crate::workspace::Workspace;

/// A mistake.
#[derive(Debug, Error)]
#[error("{file}:{line}: {message}")]
pub struct Mistake {
    file: String,
    line: usize,
    message: String,
    allowed: String,
    span: Range<usize>,
    source_text: NamedSource<String>,
}

impl Mistake {
    /// Makes a mistake at `span` of the text; `allowed` says what may stand there.
    pub fn new(file: &str, text: &str, span: Range<usize>, message: String, allowed: String) -> Mistake {
        let line = text[..span.start.min(text.len())].matches('\n').count() + 1;
        let source_text = NamedSource::new(file, text.to_owned()).with_language("toml");
        Mistake { file: file.to_owned(), line, message, allowed, span, source_text }
    }

    /// Returns its position in the text, for sorting.
    pub fn position(&self) -> usize {
        self.span.start
    }
}

impl Diagnostic for Mistake {
    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        Some(Box::new(format!("allowed: {}", self.allowed)))
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        Some(&self.source_text)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(std::iter::once(LabeledSpan::underline(self.span.clone()))))
    }
}

/// All mistakes of one description.
#[derive(Debug, Error, Diagnostic)]
#[error("{file} has {}, and nothing was built", count(mistakes.len()))]
pub struct Mistakes {
    /// The description's file.
    pub file: String,
    /// Mistakes in the order of the file.
    #[related]
    pub mistakes: Vec<Mistake>,
}

fn count(number: usize) -> String {
    if number == 1 { "a mistake".to_owned() } else { format!("{number} mistakes") }
}

/// Returns the report for a name that no description has.
pub fn no_such_system(workspace: &Workspace, name: &str) -> Report {
    let entries = std::fs::read_dir(workspace.root.join("systems")).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".toml").map(str::to_owned)).collect();
    names.sort();
    miette!(help = format!("allowed: {}", names.join(", ")), "there is no system description systems/{name}.toml")
}
