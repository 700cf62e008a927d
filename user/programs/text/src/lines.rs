//! Programs that process lines.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use tench::io::{Lines, Output, Read, Write};

use crate::copy::{open, sources};
use crate::options::Options;
use crate::{Problem, World, at};

/// Buffered standard output. The buffer is written before the program waits for input.
type Out = Output<Box<dyn Write>>;

fn output(world: &mut dyn World) -> Out {
    Output::new(world.output())
}

/// Calls `each` with the lines of a file, without their ends, until it returns `false`.
fn each_line(
    name: &str,
    world: &mut dyn World,
    out: &mut Out,
    mut each: impl FnMut(&[u8], &mut Out) -> Result<bool, Problem>,
) -> Result<(), Problem> {
    let mut lines = Lines::new(open(name, world)?);
    let mut line = Vec::new();
    loop {
        if !lines.has_line() {
            out.flush()?;
        }
        if !lines.next_line(&mut line).map_err(at(name))? {
            return Ok(());
        }
        if !each(line.strip_suffix(b"\n").unwrap_or(&line), out)? {
            return Ok(());
        }
    }
}

fn write_line(out: &mut Out, line: &[u8]) -> Result<(), Problem> {
    out.write(line)?;
    Ok(out.write(b"\n")?)
}

/// Returns true if a line contains a text.
fn contains(line: &[u8], text: &[u8], ignore_case: bool) -> bool {
    let is_same = |part: &[u8]| if ignore_case { part.eq_ignore_ascii_case(text) } else { part == text };
    text.is_empty() || line.windows(text.len()).any(is_same)
}

/// Writes the lines that contain a text: with `-v` those that do not, with `-n` with their numbers, with `-c` only
/// their number; with `-i` case is ignored. Returns true if there were any.
pub fn grep(options: &Options<'_>, world: &mut dyn World) -> Result<bool, Problem> {
    let (text, names) = (options.arguments[0].as_bytes(), &options.arguments[1..]);
    let mut out = output(world);
    let mut found = false;
    for name in sources(names) {
        let prefix = if names.len() > 1 { format!("{name}:") } else { "".into() };
        let (mut number, mut count) = (0u64, 0u64);
        each_line(name, world, &mut out, |line, out| {
            number += 1;
            if contains(line, text, options.has('i')) == options.has('v') {
                return Ok(true);
            }
            count += 1;
            if !options.has('c') {
                out.write(prefix.as_bytes())?;
                if options.has('n') {
                    out.write(format!("{number}:").as_bytes())?;
                }
                write_line(out, line)?;
            }
            Ok(true)
        })?;
        if options.has('c') {
            out.write(format!("{prefix}{count}\n").as_bytes())?;
        }
        found |= count > 0;
    }
    out.flush()?;
    Ok(found)
}

/// Writes the first lines of files, ten by default, or as many as `-n` says.
pub fn head(options: &Options<'_>, world: &mut dyn World) -> Result<bool, Problem> {
    let count: u64 = match options.value('n') {
        Some(text) => text.parse().map_err(|_| {
            Problem::Said(format!("\"{text}\" is no number of lines; usage: head [-n LINES] [FILE...]"))
        })?,
        None => 10,
    };
    let mut out = output(world);
    for name in sources(&options.arguments) {
        let mut left = count;
        if left > 0 {
            each_line(name, world, &mut out, |line, out| {
                write_line(out, line)?;
                left -= 1;
                Ok(left > 0)
            })?;
        }
    }
    out.flush()?;
    Ok(true)
}

/// Returns the number with which a line begins; 0 if it begins with none.
fn number_of(line: &[u8]) -> i128 {
    let line = line.trim_ascii_start();
    let (sign, digits) = line.strip_prefix(b"-").map_or((1, line), |rest| (-1, rest));
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    sign * digits.fold(0i128, |number, digit| number.saturating_mul(10).saturating_add(i128::from(digit - b'0')))
}

/// Writes the lines of all files in the order of their bytes: with `-n` of the numbers with which they begin, with `-r`
/// in reverse order, with `-u` each line once.
pub fn sort(options: &Options<'_>, world: &mut dyn World) -> Result<bool, Problem> {
    let mut out = output(world);
    let mut lines = Vec::new();
    for name in sources(&options.arguments) {
        each_line(name, world, &mut out, |line, _| {
            lines.push(line.to_vec());
            Ok(true)
        })?;
    }
    // Lines with the same number are ordered by their bytes.
    if options.has('n') {
        lines.sort_by(|one, other| (number_of(one), one).cmp(&(number_of(other), other)));
    } else {
        lines.sort();
    }
    if options.has('u') {
        lines.dedup();
    }
    if options.has('r') {
        lines.reverse();
    }
    for line in &lines {
        write_line(&mut out, line)?;
    }
    out.flush()?;
    Ok(true)
}

/// The counts of `wc`: lines, words, bytes.
type Counts = [u64; 3];

/// Counts lines, words and bytes of files: with `-l`, `-w` and `-c` only those.
pub fn wc(options: &Options<'_>, world: &mut dyn World) -> Result<bool, Problem> {
    let wanted = ['l', 'w', 'c'].map(|flag| options.has(flag));
    let wanted = if wanted.contains(&true) { wanted } else { [true; 3] };
    let mut out = output(world);
    let mut write = |counts: &Counts, name: &str| {
        let chosen = counts.iter().zip(wanted).filter(|(_, wanted)| *wanted);
        let columns: Vec<_> = chosen.map(|(count, _)| format!("{count:>7}")).collect();
        let name = if name == "-" { "".into() } else { format!(" {name}") };
        out.write(format!("{}{name}\n", columns.join(" ")).as_bytes())
    };
    let mut total = [0; 3];
    let names = sources(&options.arguments);
    for name in &names {
        let counts = count(name, &mut *open(name, world)?)?;
        total = core::array::from_fn(|place| total[place] + counts[place]);
        write(&counts, name)?;
    }
    if names.len() > 1 {
        write(&total, "total")?;
    }
    out.flush()?;
    Ok(true)
}

fn count(name: &str, source: &mut dyn Read) -> Result<Counts, Problem> {
    let mut counts = [0; 3];
    let mut in_word = false;
    let mut buffer = [0; tench::stream::protocol::MAX_DATA];
    loop {
        let length = source.read(&mut buffer).map_err(at(name))?;
        if length == 0 {
            return Ok(counts);
        }
        for byte in &buffer[..length] {
            let is_space = byte.is_ascii_whitespace();
            counts[0] += u64::from(*byte == b'\n');
            counts[1] += u64::from(!is_space && !in_word);
            in_word = !is_space;
        }
        counts[2] += length as u64;
    }
}
