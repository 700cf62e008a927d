//! Programs that copy bytes as they come.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tench::io::Read;
use tench::stream::protocol::MAX_DATA;

use crate::options::Options;
use crate::{Problem, World, at};

/// Returns the named sources, or `-` if none is named. `-` means standard input.
pub fn sources<'a>(names: &[&'a str]) -> Vec<&'a str> {
    if names.is_empty() { Vec::from(["-"]) } else { names.to_vec() }
}

/// Opens a source.
pub fn open(name: &str, world: &mut dyn World) -> Result<Box<dyn Read>, Problem> {
    if name == "-" { Ok(world.input()) } else { world.open(name).map_err(at(name)) }
}

/// Passes on all bytes of a source.
fn pass_on(name: &str, from: &mut dyn Read, mut to: impl FnMut(&[u8]) -> Result<(), Problem>) -> Result<(), Problem> {
    let mut buffer = [0; MAX_DATA];
    loop {
        match from.read(&mut buffer).map_err(at(name))? {
            0 => return Ok(()),
            count => to(&buffer[..count])?,
        }
    }
}

/// Writes files to standard output, one after another.
pub fn cat(options: &Options<'_>, world: &mut dyn World) -> Result<bool, Problem> {
    let mut output = world.output();
    for name in sources(&options.arguments) {
        let mut from = open(name, world)?;
        pass_on(name, &mut *from, |bytes| Ok(output.write(bytes)?))?;
    }
    Ok(true)
}

/// Copies a file to another path, or into a directory.
pub fn cp(options: &Options<'_>, world: &mut dyn World) -> Result<bool, Problem> {
    let [from, to] = options.arguments[..] else {
        return Err(Problem::Said("copies one file; usage: cp FROM TO".into()));
    };
    let to = if world.is_directory(to) {
        format!("{}/{}", to.trim_end_matches('/'), from.rsplit('/').next().unwrap_or(from))
    } else {
        to.to_string()
    };
    if from.trim_start_matches('/') == to.trim_start_matches('/') {
        return Err(Problem::Said(format!("{from} and {to} are the same file")));
    }
    let mut source = world.open(from).map_err(at(from))?;
    let mut target = world.create(&to, false).map_err(at(&to))?;
    pass_on(from, &mut *source, |bytes| target.write(bytes).map_err(at(&to)))?;
    Ok(true)
}

/// Copies standard input to standard output and to files.
pub fn tee(options: &Options<'_>, world: &mut dyn World) -> Result<bool, Problem> {
    let mut files = Vec::new();
    for name in &options.arguments {
        files.push((*name, world.create(name, options.has('a')).map_err(at(name))?));
    }
    let mut output = world.output();
    pass_on("standard input", &mut *world.input(), |bytes| {
        for (name, file) in &mut files {
            file.write(bytes).map_err(at(name))?;
        }
        Ok(output.write(bytes)?)
    })?;
    Ok(true)
}

/// Writes a line again and again, until nobody reads it any more.
pub fn yes(options: &Options<'_>, world: &mut dyn World) -> Result<bool, Problem> {
    let mut line: String = if options.arguments.is_empty() { "y".into() } else { options.arguments.join(" ") };
    line.push('\n');
    // As many lines as fit into one write.
    let lines = line.repeat((MAX_DATA / line.len()).max(1));
    let mut output = world.output();
    loop {
        output.write(lines.as_bytes())?;
    }
}
