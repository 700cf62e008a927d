//! The entries of a process's directory.

use tench_linux_files::Class;

/// An entry of a process's or thread's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Threads,
    Descriptors,
    DescriptorFacts,
    Environment,
    Auxiliary,
    Status,
    Limits,
    Name,
    Arguments,
    Stat,
    Sizes,
    Maps,
    Uses,
    UseOfAll,
    Directory,
    Root,
    Program,
    Mounts,
    MountInformation,
    ControlGroup,
    Score,
    ScoreAdjustment,
    Login,
    Pages,
    Memory,
}

impl Entry {
    pub const fn class(self) -> Class {
        match self {
            Entry::Threads | Entry::Descriptors | Entry::DescriptorFacts => Class::Directory,
            Entry::Directory | Entry::Root | Entry::Program => Class::Link,
            _ => Class::File,
        }
    }

    /// Returns whether the file shows the process's memory or files, so that only those who may inspect the process can
    /// read it, whatever its permissions say.
    pub const fn is_private(self) -> bool {
        matches!(
            self,
            Entry::Environment
                | Entry::Auxiliary
                | Entry::Maps
                | Entry::Uses
                | Entry::UseOfAll
                | Entry::DescriptorFacts
                | Entry::Pages
        )
    }

    /// Returns whether directories of threads have it, too.
    pub fn is_of_threads(self) -> bool {
        self.class() != Class::Directory
    }
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub name: &'static str,
    pub permissions: u32,
    pub entry: Entry,
}

const fn line(name: &'static str, permissions: u32, entry: Entry) -> Line {
    Line { name, permissions, entry }
}

/// All of them, in the order of Linux.
pub(crate) static ENTRIES: [Line; 25] = [
    line("task", 0o555, Entry::Threads),
    line("fd", 0o500, Entry::Descriptors),
    line("fdinfo", 0o555, Entry::DescriptorFacts),
    line("environ", 0o400, Entry::Environment),
    line("auxv", 0o400, Entry::Auxiliary),
    line("status", 0o444, Entry::Status),
    line("limits", 0o444, Entry::Limits),
    line("comm", 0o644, Entry::Name),
    line("cmdline", 0o444, Entry::Arguments),
    line("stat", 0o444, Entry::Stat),
    line("statm", 0o444, Entry::Sizes),
    line("maps", 0o444, Entry::Maps),
    line("mem", 0o600, Entry::Memory),
    line("cwd", 0o777, Entry::Directory),
    line("root", 0o777, Entry::Root),
    line("exe", 0o777, Entry::Program),
    line("mounts", 0o444, Entry::Mounts),
    line("mountinfo", 0o444, Entry::MountInformation),
    line("smaps", 0o444, Entry::Uses),
    line("smaps_rollup", 0o444, Entry::UseOfAll),
    line("pagemap", 0o400, Entry::Pages),
    line("cgroup", 0o444, Entry::ControlGroup),
    line("oom_score", 0o444, Entry::Score),
    line("oom_score_adj", 0o644, Entry::ScoreAdjustment),
    line("loginuid", 0o644, Entry::Login),
];

/// Returns the index of an entry's line.
pub(crate) fn index_of(entry: Entry) -> usize {
    ENTRIES.iter().position(|line| line.entry == entry).unwrap_or(0)
}
