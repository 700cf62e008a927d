//! Traces: requests in order, as text that people can read and edit. The format: `docs/manual/traces.md`.

use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::ops::Range;
use core::str::SplitAsciiWhitespace;

use crate::bundle::{Descriptor, Lifetime};
use crate::replay::{Source, Step};

/// One line of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A bundle that was granted when the trace was recorded. [`Trace::bundle`] has its descriptors.
    Alloc {
        /// Range of its descriptors.
        bundle: Range<u32>,
        /// Lifetime of its objects.
        lifetime: Lifetime,
    },
    /// A request to free all objects of earlier requests together. [`Trace::numbers`] has the requests' numbers.
    Free {
        /// Range of the numbers.
        numbers: Range<u32>,
    },
    /// A bundle that found no room when the trace was recorded, with its descriptors where they are known. A replay
    /// counts it as a request and does not repeat it, since no later line would free it.
    Failed {
        /// Range of its descriptors.
        bundle: Range<u32>,
        /// Lifetime that its objects would have had.
        lifetime: Lifetime,
    },
}

/// Requests in order. They are numbered from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    requests: Vec<Request>,
    descriptors: Vec<Descriptor>,
    /// Numbers of the freed requests, of all `Free` one after another.
    freed: Vec<u32>,
}

/// A defect of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Line, from 1.
    pub line: usize,
    /// The mistake in that line.
    pub mistake: Mistake,
}

/// Kind of mistake in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// The line is not text.
    NotText,
    /// The first word is unknown.
    UnknownWord,
    /// `alloc` without a count and a size.
    NothingAsked,
    /// A count without a size.
    CountWithoutSize,
    /// A word is not a number, although one is needed.
    NotANumber,
    /// A count is 0 or too large.
    BadCount,
    /// A size is impossible for an object.
    BadSize,
    /// `free` without a number.
    NothingFreed,
    /// A range of numbers ends before its beginning.
    BackwardRange,
    /// `free` of a later request.
    NotYet,
    /// `free` of a request that was no `alloc`.
    NotAlloc,
    /// `free` of a request that was freed before.
    FreedBefore,
    /// A word after `static`.
    AfterStatic,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mistake::NotText => "this is not text; a trace is written in UTF-8",
            Mistake::UnknownWord => "unknown request; there are alloc, free and failed, and comments begin with #",
            Mistake::NothingAsked => "nothing is asked for; write alloc COUNT SIZE [COUNT SIZE ...] [static]",
            Mistake::CountWithoutSize => "a count without a size; they come in pairs, COUNT SIZE",
            Mistake::NotANumber => "not a number; counts, sizes and request numbers are written in decimal digits",
            Mistake::BadCount => "bad count; 1 to 1048576 objects are allowed",
            Mistake::BadSize => "bad size; powers of two from 16 to 1099511627776 bytes are allowed",
            Mistake::NothingFreed => "nothing is freed; write free NUMBER, several of them, or ranges FIRST-LAST",
            Mistake::BackwardRange => "this range ends before it begins; write FIRST-LAST",
            Mistake::NotYet => "that request has not come yet; only earlier ones can be freed, the first is number 0",
            Mistake::NotAlloc => "that request was not an alloc; only what was granted can be freed",
            Mistake::FreedBefore => "that request was freed before; each can be freed once",
            Mistake::AfterStatic => "static is the last word of a line",
        })
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.mistake)
    }
}

impl core::error::Error for Damage {}

impl Trace {
    /// Returns a trace without requests.
    pub const fn new() -> Trace {
        Trace { requests: Vec::new(), descriptors: Vec::new(), freed: Vec::new() }
    }

    /// Parses a trace. A defective one is refused as a whole.
    pub fn parse(text: &[u8]) -> Result<Trace, Damage> {
        let mut trace = Trace::new();
        let mut freed = Vec::new();
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let damage = |mistake| Damage { line: index + 1, mistake };
            let line = str::from_utf8(line).map_err(|_| damage(Mistake::NotText))?;
            let line = line.split('#').next().unwrap_or_default();
            trace.parse_line(line, &mut freed).map_err(damage)?;
        }
        Ok(trace)
    }

    /// Reads one line without its comment. `freed` says for each request whether it was freed.
    fn parse_line(&mut self, line: &str, freed: &mut Vec<bool>) -> Result<(), Mistake> {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            None => return Ok(()),
            Some("alloc") => {
                let (bundle, lifetime) = self.parse_bundle(words)?;
                if bundle.is_empty() {
                    return Err(Mistake::NothingAsked);
                }
                self.requests.push(Request::Alloc { bundle, lifetime });
            }
            Some("failed") => {
                let (bundle, lifetime) = self.parse_bundle(words)?;
                self.requests.push(Request::Failed { bundle, lifetime });
            }
            Some("free") => {
                let first = self.freed.len() as u32;
                words.try_for_each(|word| self.parse_numbers(word, freed))?;
                let numbers = first..self.freed.len() as u32;
                if numbers.is_empty() {
                    return Err(Mistake::NothingFreed);
                }
                self.requests.push(Request::Free { numbers });
            }
            Some(_) => return Err(Mistake::UnknownWord),
        }
        freed.push(false);
        Ok(())
    }

    /// Parses a number or a range of requests that are freed.
    fn parse_numbers(&mut self, word: &str, freed: &mut [bool]) -> Result<(), Mistake> {
        let number = |text: &str| text.parse::<u32>().map_err(|_| Mistake::NotANumber);
        let (first, last) = match word.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(word)?, number(word)?),
        };
        if first > last {
            return Err(Mistake::BackwardRange);
        }
        for number in first..=last {
            match self.requests.get(number as usize) {
                None => return Err(Mistake::NotYet),
                Some(Request::Alloc { .. }) => {}
                Some(_) => return Err(Mistake::NotAlloc),
            }
            if core::mem::replace(&mut freed[number as usize], true) {
                return Err(Mistake::FreedBefore);
            }
            self.freed.push(number);
        }
        Ok(())
    }

    /// Parses pairs of count and size, and perhaps `static`.
    fn parse_bundle(&mut self, mut words: SplitAsciiWhitespace<'_>) -> Result<(Range<u32>, Lifetime), Mistake> {
        let first = self.descriptors.len() as u32;
        let mut lifetime = Lifetime::Dynamic;
        while let Some(word) = words.next() {
            if word == "static" {
                if words.next().is_some() {
                    return Err(Mistake::AfterStatic);
                }
                lifetime = Lifetime::Static;
                break;
            }
            let count: u64 = word.parse().map_err(|_| Mistake::NotANumber)?;
            let size = words.next().filter(|word| *word != "static").ok_or(Mistake::CountWithoutSize)?;
            let size = size.parse().map_err(|_| Mistake::NotANumber)?;
            let count = u32::try_from(count).map_err(|_| Mistake::BadCount)?;
            if !(1..=crate::MAX_COUNT).contains(&count) {
                return Err(Mistake::BadCount);
            }
            let descriptor = Descriptor::new(size, count);
            if !descriptor.is_valid() {
                return Err(Mistake::BadSize);
            }
            self.descriptors.push(descriptor);
        }
        Ok((first..self.descriptors.len() as u32, lifetime))
    }

    /// Returns the requests in order; the index is the number.
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// Returns the descriptors of a bundle of this trace.
    pub fn bundle(&self, bundle: &Range<u32>) -> &[Descriptor] {
        self.descriptors.get(bundle.start as usize..bundle.end as usize).unwrap_or_default()
    }

    /// Returns the requests that a `Free` of this trace names.
    pub fn numbers(&self, numbers: &Range<u32>) -> &[u32] {
        self.freed.get(numbers.start as usize..numbers.end as usize).unwrap_or_default()
    }

    /// Adds a granted bundle, and returns its number.
    pub fn push_alloc(&mut self, bundle: &[Descriptor], lifetime: Lifetime) -> u32 {
        let bundle = self.push_bundle(bundle);
        self.requests.push(Request::Alloc { bundle, lifetime });
        self.requests.len() as u32 - 1
    }

    /// Adds a bundle that found no room.
    pub fn push_failed(&mut self, bundle: &[Descriptor], lifetime: Lifetime) {
        let bundle = self.push_bundle(bundle);
        self.requests.push(Request::Failed { bundle, lifetime });
    }

    /// Adds a request to free the objects of earlier requests together.
    pub fn push_free(&mut self, numbers: &[u32]) {
        let first = self.freed.len() as u32;
        self.freed.extend_from_slice(numbers);
        self.requests.push(Request::Free { numbers: first..self.freed.len() as u32 });
    }

    fn push_bundle(&mut self, bundle: &[Descriptor]) -> Range<u32> {
        let first = self.descriptors.len() as u32;
        self.descriptors.extend_from_slice(bundle);
        first..self.descriptors.len() as u32
    }

    /// Returns the number of requests before the final freeing of all live objects.
    pub fn active(&self) -> usize {
        let last = self.requests.iter().rposition(|request| !matches!(request, Request::Free { .. }));
        last.map_or(0, |last| last + 1)
    }

    /// Returns the size in bytes of the granted requests' objects, and their number.
    pub fn requested(&self) -> (u64, u64) {
        let granted = self.requests.iter().filter_map(|request| match request {
            Request::Alloc { bundle, .. } => Some(self.bundle(bundle)),
            _ => None,
        });
        granted.flatten().fold((0, 0), |(bytes, objects), descriptor| {
            (bytes + descriptor.bytes(), objects + u64::from(descriptor.count))
        })
    }
}

/// Writes the descriptors and lifetime of a bundle, each word after a space.
pub(crate) fn write_bundle(out: &mut dyn Write, bundle: &[Descriptor], lifetime: Lifetime) -> fmt::Result {
    for descriptor in bundle {
        write!(out, " {} {}", descriptor.count, descriptor.size)?;
    }
    out.write_str(if lifetime == Lifetime::Static { " static" } else { "" })
}

/// Writes numbers, each after a space, and consecutive ones as a range.
fn write_numbers(out: &mut dyn Write, numbers: &[u32]) -> fmt::Result {
    for run in numbers.chunk_by(|&number, &next| number.checked_add(1) == Some(next)) {
        match run {
            [first, .., last] => write!(out, " {first}-{last}")?,
            _ => write!(out, " {}", run[0])?,
        }
    }
    Ok(())
}

/// The text of a trace, as [`Trace::parse`] reads it.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for request in &self.requests {
            match request {
                Request::Alloc { bundle, lifetime } => {
                    f.write_str("alloc")?;
                    write_bundle(f, self.bundle(bundle), *lifetime)?;
                }
                Request::Free { numbers } => {
                    f.write_str("free")?;
                    write_numbers(f, self.numbers(numbers))?;
                }
                Request::Failed { bundle, lifetime } => {
                    f.write_str("failed")?;
                    write_bundle(f, self.bundle(bundle), *lifetime)?;
                }
            }
            f.write_char('\n')?;
        }
        Ok(())
    }
}

/// Source of a trace's requests.
#[derive(Clone, Debug)]
pub struct TraceSource<'a> {
    trace: &'a Trace,
    next: usize,
}

impl<'a> TraceSource<'a> {
    /// Returns the source at the beginning of the trace.
    pub const fn new(trace: &'a Trace) -> TraceSource<'a> {
        TraceSource { trace, next: 0 }
    }
}

impl Source for TraceSource<'_> {
    fn next(&mut self, step: &mut Step) -> bool {
        let Some(request) = self.trace.requests.get(self.next) else { return false };
        self.next += 1;
        match request {
            Request::Alloc { bundle, lifetime } => step.alloc(self.trace.bundle(bundle), *lifetime),
            Request::Failed { bundle, lifetime } => step.failed(self.trace.bundle(bundle), *lifetime),
            Request::Free { numbers } => step.free(self.trace.numbers(numbers)),
        }
        true
    }

    fn note_outcome(&mut self, _granted: bool) {}

    fn active(&self) -> usize {
        self.trace.active()
    }
}
