//! Symbols: names for the addresses of a crash report: functions, files and lines.
//!
//! Kernel and programs print addresses alone, one on a line:
//!
//! ```text
//!   at 0xffffff8000081234             in the kernel
//!   at 0x201234 in shell              in a program
//! ```
//! The executables with their debugging information are on the host, so the names are added here.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use addr2line::Loader;

/// Prefix of a line with an address.
const PREFIX: &str = "  at 0x";
/// Bytes of an instruction. All but the first address of a report are return addresses, one past the call.
const INSTRUCTION: u64 = 4;

/// The executables of a system, read when they are first needed.
pub struct Symbols {
    root: PathBuf,
    kernel: Lazy,
    programs: BTreeMap<String, Lazy>,
    /// A program that the tool needs.
    in_report: bool,
}

struct Lazy {
    path: PathBuf,
    loader: OnceCell<Option<Loader>>,
}

impl Lazy {
    fn new(path: &Path) -> Lazy {
        Lazy { path: path.to_owned(), loader: OnceCell::new() }
    }

    fn get(&self) -> Option<&Loader> {
        self.loader.get_or_init(|| Loader::new(&self.path).ok()).as_ref()
    }
}

impl Symbols {
    /// Makes names for the kernel's addresses; source files are shown relative to `root`.
    pub fn new(root: &Path, kernel: &Path) -> Symbols {
        Symbols { root: root.to_owned(), kernel: Lazy::new(kernel), programs: BTreeMap::new(), in_report: false }
    }

    /// Adds names for the addresses of a program.
    pub fn add(&mut self, name: &str, executable: &Path) {
        self.programs.insert(name.to_owned(), Lazy::new(executable));
    }

    /// Returns the lines to show after this line of the guest's output: the names for its address.
    ///
    /// Lines must be given in the order in which they were printed.
    pub fn explain(&mut self, line: &str) -> Vec<String> {
        let Some((address, program)) = parse(line) else {
            self.in_report = false;
            return Vec::new();
        };
        let address = if self.in_report { address.saturating_sub(INSTRUCTION) } else { address };
        self.in_report = true;
        let executable = match program {
            None => Some(&self.kernel),
            Some(name) => self.programs.get(name),
        };
        executable.and_then(Lazy::get).map(|loader| self.frames(loader, address)).unwrap_or_default()
    }

    /// Returns the function at the address, and those that it was inlined into.
    fn frames(&self, loader: &Loader, address: u64) -> Vec<String> {
        let mut shown = Vec::new();
        let Ok(mut frames) = loader.find_frames(address) else { return shown };
        while let Ok(Some(frame)) = frames.next() {
            let name =
                frame.function.as_ref().and_then(|function| function.demangle().ok().map(|name| name.into_owned()));
            let place = frame.location.as_ref().and_then(|location| Some((location.file?, location.line.unwrap_or(0))));
            shown.push(match (name, place) {
                (Some(name), Some((file, line))) => format!("{} ({}:{line})", without_hash(&name), self.shorten(file)),
                (Some(name), None) => without_hash(&name).to_owned(),
                (None, Some((file, line))) => format!("{}:{line}", self.shorten(file)),
                (None, None) => break,
            });
        }
        if shown.is_empty() {
            shown.extend(
                loader
                    .find_symbol(address)
                    .map(|name| without_hash(&addr2line::demangle_auto(name.into(), None)).to_owned()),
            );
        }
        let inlined_into =
            |(index, line): (usize, String)| if index == 0 { line } else { format!("  inlined into {line}") };
        shown.into_iter().enumerate().map(inlined_into).map(|line| format!("       {line}")).collect()
    }

    fn shorten<'f>(&self, file: &'f str) -> &'f str {
        let below_root = self.root.to_str().and_then(|root| file.strip_prefix(root));
        below_root.map_or(file, |rest| rest.trim_start_matches('/'))
    }
}

/// Returns a demangled name without the hash at its end.
pub fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((front, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => front,
        _ => name,
    }
}

/// Returns the address of a line of a crash report, and the program's name unless it is the kernel's.
fn parse(line: &str) -> Option<(u64, Option<&str>)> {
    let rest = line.strip_prefix(PREFIX)?;
    let (digits, rest) = rest.split_at(rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len()));
    let address = u64::from_str_radix(digits, 16).ok()?;
    let program = rest.strip_prefix(" in ").and_then(|rest| rest.split_whitespace().next());
    Some((address, program))
}

/// Filter that passes a guest's output on byte by byte, and explains addresses after the lines that have them.
///
/// Only a line that could still become such a line is held back until its end.
pub struct Explainer {
    symbols: Symbols,
    line: Vec<u8>,
    /// Set while the line so far could become a line with an address.
    hopeful: bool,
}

impl Explainer {
    pub fn new(symbols: Symbols) -> Explainer {
        Explainer { symbols, line: Vec::new(), hopeful: true }
    }

    /// Returns what to show for these bytes.
    pub fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut shown = Vec::new();
        for &byte in bytes {
            shown.push(byte);
            if byte == b'\n' {
                if self.hopeful {
                    let line = String::from_utf8_lossy(&self.line).trim_end().to_owned();
                    for explanation in self.symbols.explain(&line) {
                        shown.extend(explanation.bytes());
                        shown.extend(b"\r\n");
                    }
                }
                self.line.clear();
                self.hopeful = true;
            } else if self.hopeful {
                let expected = PREFIX.as_bytes().get(self.line.len());
                self.hopeful = expected.is_none_or(|&expected| expected == byte);
                self.line.push(byte);
                if !self.hopeful {
                    self.symbols.in_report = false;
                }
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_addresses_are_recognised() {
        assert_eq!(parse("  at 0x20f in shell"), Some((0x20f, Some("shell"))));
        assert_eq!(parse("  at 0xffffff8000081234"), Some((0xffff_ff80_0008_1234, None)));
        assert_eq!(parse("  at 0x10 (in a comment)"), Some((0x10, None)));
        for line in ["at 0x10", "  at 0x", "  at 10", "", "  at 0x11112222333344445"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    /// The test's own executable has symbols, and any function's address will do.
    #[test]
    fn an_address_gets_its_function_and_line() {
        let path = std::env::current_exe().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        use object::{Object, ObjectSymbol};
        let file = object::File::parse(&*bytes).unwrap();
        let is_this = |name: &str| name.contains("tests") && name.contains("marker_for_symbols");
        let marker = file.symbols().find(|symbol| symbol.name().is_ok_and(is_this)).unwrap();
        assert_eq!(marker_for_symbols(1), 2);

        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        let mut symbols = Symbols::new(&root, &path);
        symbols.add("me", &path);
        for line in [format!("  at {:#x}", marker.address()), format!("  at {:#x} in me", marker.address())] {
            symbols.explain("something else");
            let explained = symbols.explain(&line).join("\n");
            assert!(explained.contains("marker_for_symbols ("), "{explained}");
            assert!(explained.contains("src/symbols.rs:"), "{explained}");
        }
        assert!(symbols.explain("  at 0x10 in nobody").is_empty());
    }

    #[inline(never)]
    fn marker_for_symbols(number: u32) -> u32 {
        std::hint::black_box(number) + 1
    }

    #[test]
    fn other_output_passes_at_once_and_unchanged() {
        let mut explainer = Explainer::new(Symbols::new(Path::new("/"), Path::new("/nonexistent")));
        let output = b"tench> \x1b[Kecho\r\n  at home\r\n  at 0x12 in nobody\r\n\xff";
        let passed: Vec<u8> = output.iter().flat_map(|&byte| explainer.pass(&[byte])).collect();
        assert_eq!(passed, output);
        assert_eq!(explainer.pass(b"tench> "), b"tench> ");
    }
}
