//! The catalogue indexes the files of the boot archive: it is built once and looks files up in O(log n).
//!
//! The archive is a list whose headers must each be checked. Starting a process searched it several times, which took
//! longer than loading the program.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::OnceCell;
use core::cmp::Ordering;

use tench_loader::{Archive, Program};
use tench_procs_interface::protocol::Defect;

/// A file of the boot archive.
#[derive(Clone, Debug)]
pub struct File<'a> {
    /// Path, without a leading `/`.
    pub path: String,
    /// The file's bytes.
    pub contents: &'a [u8],
    /// The parsed program, filled in at first use.
    program: OnceCell<Result<Program<'a>, Defect>>,
}

impl<'a> File<'a> {
    /// Returns the program as it was linked. The first call parses and checks the file.
    pub fn program(&self) -> Result<&Program<'a>, Defect> {
        self.program.get_or_init(|| Program::parse(self.contents)).as_ref().map_err(|defect| *defect)
    }
}

/// All files, sorted by path.
#[derive(Clone, Debug)]
pub struct Catalogue<'a> {
    files: Vec<File<'a>>,
}

impl<'a> Catalogue<'a> {
    /// Reads the archive. Of two files with the same path, the first counts, as everywhere.
    pub fn new(archive: &Archive<'a>) -> Catalogue<'a> {
        let files = archive.files().map(|file| File {
            path: file.path.to_string(),
            contents: file.contents,
            program: OnceCell::new(),
        });
        let mut files: Vec<File<'a>> = files.collect();
        // The sort is stable: equal paths stay in the archive's order.
        files.sort_by(|one, other| one.path.cmp(&other.path));
        files.dedup_by(|later, first| later.path == first.path);
        Catalogue { files }
    }

    fn search(&self, compare: impl Fn(&str) -> Ordering) -> Option<&File<'a>> {
        let index = self.files.binary_search_by(|file| compare(&file.path)).ok()?;
        self.files.get(index)
    }

    /// Returns the file at `path`, which may begin with `/` or `./`.
    pub fn find(&self, path: &str) -> Option<&File<'a>> {
        let path = path.strip_prefix("./").unwrap_or(path).trim_start_matches('/');
        self.search(|candidate| candidate.cmp(path))
    }

    /// Returns the program called `name`: the file at that path, or the file of that name in `bin/`.
    pub fn find_program(&self, name: &str) -> Option<&File<'a>> {
        if name.contains('/') {
            return self.find(name);
        }
        self.search(|candidate| candidate.bytes().cmp("bin/".bytes().chain(name.bytes())))
    }
}
