//! The boot archive: an ordinary tar file, read in place.
//!
//! Only the formats that the host tool and GNU tar write for plain files are supported: POSIX `ustar` headers with a
//! prefix field, and GNU's `L` records for longer names. Other entries (directories, links) are skipped. A damaged
//! header ends the archive, because the data after it cannot be trusted.

/// Size of a block in bytes: headers and file contents begin at multiples of it.
const BLOCK: usize = 512;

/// The archive's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Archive<'a> {
    bytes: &'a [u8],
}

/// A file of the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File<'a> {
    /// Path of the file without a leading `/` or `./`, in the two parts in which tar stores it; see [`Path`].
    pub path: Path<'a>,
    /// Contents of the file.
    pub contents: &'a [u8],
}

/// A path: a prefix (possibly empty) and the rest, with `/` between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path<'a> {
    prefix: &'a str,
    rest: &'a str,
}

impl<'a> Path<'a> {
    fn new(prefix: &'a str, rest: &'a str) -> Path<'a> {
        if prefix.is_empty() {
            Path { prefix, rest: without_root(rest) }
        } else {
            Path { prefix: without_root(prefix), rest }
        }
    }

    /// Returns the parts that, concatenated, make up the path.
    pub fn parts(&self) -> [&'a str; 3] {
        [self.prefix, if self.prefix.is_empty() { "" } else { "/" }, self.rest]
    }

    /// Returns whether this is the path `text`, which may begin with `/`.
    pub fn is(&self, text: &str) -> bool {
        let mut text = without_root(text);
        for part in self.parts() {
            match text.strip_prefix(part) {
                Some(rest) => text = rest,
                None => return false,
            }
        }
        text.is_empty()
    }

    /// Returns whether this is the file `name` in `directory`, which ends with `/`.
    fn is_in(&self, directory: &str, name: &str) -> bool {
        let bytes = self.parts().into_iter().flat_map(str::bytes);
        bytes.eq(directory.bytes().chain(name.bytes()))
    }

    /// Returns the part after the last `/`.
    pub fn base_name(&self) -> &'a str {
        self.rest.rsplit('/').next().unwrap_or(self.rest)
    }
}

impl core::fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.parts().iter().try_for_each(|part| f.write_str(part))
    }
}

/// Returns `path` without a leading `/` or `./`.
fn without_root(path: &str) -> &str {
    let path = path.strip_prefix("./").unwrap_or(path);
    path.trim_start_matches('/')
}

impl<'a> Archive<'a> {
    /// Returns the archive in `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Archive<'a> {
        Archive { bytes }
    }

    /// Returns an iterator over its plain files, in their order in the archive.
    pub fn files(&self) -> Files<'a> {
        Files { rest: self.bytes, long_name: None }
    }

    /// Returns the file at `path`.
    pub fn find(&self, path: &str) -> Option<File<'a>> {
        self.files().find(|file| file.path.is(path))
    }

    /// Returns the program `name`: the file at that path, or the one of that name in `bin/`.
    pub fn find_program(&self, name: &str) -> Option<File<'a>> {
        if name.contains('/') {
            return self.find(name);
        }
        self.files().find(|file| file.path.is_in("bin/", name))
    }
}

/// Iterator over the files of an [`Archive`].
#[derive(Clone, Debug)]
pub struct Files<'a> {
    rest: &'a [u8],
    long_name: Option<&'a str>,
}

impl<'a> Iterator for Files<'a> {
    type Item = File<'a>;

    fn next(&mut self) -> Option<File<'a>> {
        loop {
            let header = Header::parse(self.rest.get(..BLOCK)?)?;
            let body = &self.rest[BLOCK..];
            let contents = body.get(..header.size)?;
            let padded = header.size.checked_next_multiple_of(BLOCK)?;
            self.rest = body.get(padded..).unwrap_or(&[]);
            match header.kind {
                b'0' | 0 => {
                    let path = match self.long_name.take() {
                        Some(name) => Path::new("", name),
                        None => Path::new(header.prefix, header.name),
                    };
                    return Some(File { path, contents });
                }
                b'L' => self.long_name = text_until_zero(contents),
                _ => self.long_name = None,
            }
        }
    }
}

/// A decoded header block.
struct Header<'a> {
    name: &'a str,
    prefix: &'a str,
    size: usize,
    kind: u8,
}

impl<'a> Header<'a> {
    /// Decodes a header block; returns `None` if it is a zero block or damaged.
    fn parse(block: &'a [u8]) -> Option<Header<'a>> {
        let stored = octal(block.get(CHECKSUM)?)?;
        if stored != checksum(block)? {
            return None;
        }
        // GNU tar's own format ("ustar  ") uses the field of POSIX's ("ustar\0") prefix for other data.
        let prefix = if block.get(257..263)? == b"ustar\0" { text_until_zero(block.get(345..500)?)? } else { "" };
        Some(Header {
            name: text_until_zero(block.get(..100)?)?,
            prefix,
            size: usize::try_from(octal(block.get(124..136)?)?).ok()?,
            kind: *block.get(156)?,
        })
    }
}

/// Range of a header's checksum.
const CHECKSUM: core::ops::Range<usize> = 148..156;

/// Returns the checksum of a header: the sum of its bytes, where its own count as spaces.
fn checksum(block: &[u8]) -> Option<u64> {
    let own = sum(block.get(CHECKSUM)?);
    Some(sum(block) - own + CHECKSUM.len() as u64 * u64::from(b' '))
}

/// Returns the sum of at most a block's bytes. Every header between the archive's beginning and a file is summed to
/// find that file, so it adds eight bytes at a time, in four lanes of 16 bits, which a block does not overflow.
fn sum(bytes: &[u8]) -> u64 {
    const LANES: u64 = 0x00ff_00ff_00ff_00ff;
    // SAFETY: any eight bytes are a `u64`.
    let (before, words, after) = unsafe { bytes.align_to::<u64>() };
    let lanes = words.iter().fold(0, |sum, word| sum + (word & LANES) + (word >> 8 & LANES));
    let whole: u64 = [0, 16, 32, 48].iter().map(|shift| lanes >> shift & 0xffff).sum();
    whole + before.iter().chain(after).map(|byte| u64::from(*byte)).sum::<u64>()
}

/// Decodes an octal number, ended by a space, a zero byte or the end of the field.
fn octal(field: &[u8]) -> Option<u64> {
    let digits = field.iter().skip_while(|&&byte| byte == b' ');
    let mut number = 0u64;
    let mut any = false;
    for &byte in digits {
        match byte {
            b'0'..=b'7' => number = number.checked_mul(8)?.checked_add(u64::from(byte - b'0'))?,
            b' ' | 0 => break,
            _ => return None,
        }
        any = true;
    }
    any.then_some(number)
}

/// Returns the text before the first zero byte, or all of it.
fn text_until_zero(field: &[u8]) -> Option<&str> {
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    core::str::from_utf8(&field[..end]).ok()
}
