//! The files and directories that do not belong to a process.

use tench_linux_files::Class;

use super::ipc::IpcFile;

/// How a fixed node is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// A directory.
    Directory,
    /// A link to a path.
    Link(&'static str),
    /// A link to the directory of the process that looks.
    Own,
    /// A link to the directory of the thread that looks.
    OwnThread,
    /// A file with a text that stays.
    Text(&'static str),
    /// A file.
    File(File),
}

impl Made {
    pub const fn class(self) -> Class {
        match self {
            Made::Directory => Class::Directory,
            Made::Link(_) | Made::Own | Made::OwnThread => Class::Link,
            Made::Text(_) | Made::File(_) => Class::File,
        }
    }
}

/// A file whose text changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum File {
    Processors,
    Memory,
    Stat,
    Uptime,
    Load,
    Version,
    MountTypes,
    Devices,
    Swaps,
    Release,
    Type,
    Host,
    MostProcesses,
    Identifier,
    StartIdentifier,
    PipeSize,
    OpenFiles,
    Operations,
    Ipc(IpcFile),
}

/// A node that does not belong to a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fixed {
    /// Index of the directory; its own for the two that lie in the root.
    pub parent: usize,
    /// Name.
    pub name: &'static str,
    /// How it is made.
    pub made: Made,
}

const fn line(parent: usize, name: &'static str, made: Made) -> Fixed {
    Fixed { parent, name, made }
}

/// Index of `/proc`.
pub(crate) const PROC: usize = 0;
/// Index of `/sys`.
pub(crate) const SYS: usize = 1;
/// Index of `/proc/sys`.
pub(crate) const SETTINGS: usize = 2;
const KERNEL: usize = 3;
const RANDOM: usize = 4;
const MEMORY: usize = 5;
const FILES: usize = 6;
const NETWORK: usize = 7;
const CORE: usize = 8;
const DEVICES: usize = 9;
const SYSTEM: usize = 10;
const CPU: usize = 11;
const SYS_KERNEL: usize = 12;
const SYS_MEMORY: usize = 13;
const HUGE_PAGES: usize = 14;
const SYSTEM_V: usize = 15;

/// All of them. Each comes behind its directory.
pub(crate) static FIXED: [Fixed; 68] = [
    line(PROC, "proc", Made::Directory),
    line(SYS, "sys", Made::Directory),
    line(PROC, "sys", Made::Directory),
    line(SETTINGS, "kernel", Made::Directory),
    line(KERNEL, "random", Made::Directory),
    line(SETTINGS, "vm", Made::Directory),
    line(SETTINGS, "fs", Made::Directory),
    line(SETTINGS, "net", Made::Directory),
    line(NETWORK, "core", Made::Directory),
    line(SYS, "devices", Made::Directory),
    line(DEVICES, "system", Made::Directory),
    line(SYSTEM, "cpu", Made::Directory),
    line(SYS, "kernel", Made::Directory),
    line(SYS_KERNEL, "mm", Made::Directory),
    line(SYS_MEMORY, "transparent_hugepage", Made::Directory),
    line(PROC, "sysvipc", Made::Directory),
    line(PROC, "self", Made::Own),
    line(PROC, "thread-self", Made::OwnThread),
    line(PROC, "mounts", Made::Link("self/mounts")),
    line(PROC, "cmdline", Made::Text("\n")),
    line(PROC, "cpuinfo", Made::File(File::Processors)),
    line(PROC, "devices", Made::File(File::Devices)),
    line(PROC, "filesystems", Made::File(File::MountTypes)),
    line(PROC, "loadavg", Made::File(File::Load)),
    line(PROC, "meminfo", Made::File(File::Memory)),
    line(PROC, "stat", Made::File(File::Stat)),
    line(PROC, "swaps", Made::File(File::Swaps)),
    line(PROC, "uptime", Made::File(File::Uptime)),
    line(PROC, "version", Made::File(File::Version)),
    line(KERNEL, "osrelease", Made::File(File::Release)),
    line(KERNEL, "ostype", Made::File(File::Type)),
    line(KERNEL, "hostname", Made::File(File::Host)),
    line(KERNEL, "pid_max", Made::Text("32768\n")),
    line(KERNEL, "threads-max", Made::File(File::MostProcesses)),
    line(KERNEL, "ngroups_max", Made::Text("65536\n")),
    line(KERNEL, "cap_last_cap", Made::Text("40\n")),
    line(KERNEL, "overflowuid", Made::Text("65534\n")),
    line(KERNEL, "overflowgid", Made::Text("65534\n")),
    line(KERNEL, "shmmax", Made::File(File::Ipc(IpcFile::SegmentLimit))),
    line(KERNEL, "shmall", Made::File(File::Ipc(IpcFile::SegmentLimit))),
    line(KERNEL, "shmmni", Made::File(File::Ipc(IpcFile::MostSegments))),
    line(KERNEL, "sem", Made::File(File::Ipc(IpcFile::SemaphoreLimits))),
    line(KERNEL, "msgmax", Made::File(File::Ipc(IpcFile::LongestMessage))),
    line(KERNEL, "msgmnb", Made::File(File::Ipc(IpcFile::QueueLimit))),
    line(KERNEL, "msgmni", Made::File(File::Ipc(IpcFile::MostQueues))),
    line(SYSTEM_V, "shm", Made::File(File::Ipc(IpcFile::Segments))),
    line(SYSTEM_V, "sem", Made::File(File::Ipc(IpcFile::Semaphores))),
    line(SYSTEM_V, "msg", Made::File(File::Ipc(IpcFile::Queues))),
    line(RANDOM, "uuid", Made::File(File::Identifier)),
    line(RANDOM, "boot_id", Made::File(File::StartIdentifier)),
    line(RANDOM, "entropy_avail", Made::Text("256\n")),
    // Nobody is refused memory before there is none.
    line(MEMORY, "overcommit_memory", Made::Text("1\n")),
    // As on Linux.
    line(MEMORY, "max_map_count", Made::Text("65530\n")),
    line(MEMORY, "mmap_min_addr", Made::Text("65536\n")),
    line(FILES, "file-max", Made::Text("9223372036854775807\n")),
    line(FILES, "file-nr", Made::File(File::OpenFiles)),
    line(FILES, "aio-max-nr", Made::Text("65536\n")),
    line(FILES, "aio-nr", Made::File(File::Operations)),
    line(FILES, "dir-notify-enable", Made::Text("1\n")),
    line(FILES, "nr_open", Made::Text("1048576\n")),
    line(FILES, "pipe-max-size", Made::File(File::PipeSize)),
    line(CORE, "somaxconn", Made::Text("4096\n")),
    line(CPU, "cpu0", Made::Directory),
    line(CPU, "online", Made::Text("0\n")),
    line(CPU, "possible", Made::Text("0\n")),
    line(CPU, "present", Made::Text("0\n")),
    line(SYS, "fs", Made::Directory),
    line(HUGE_PAGES, "enabled", Made::Text("always madvise [never]\n")),
];

/// Returns the fixed nodes of a directory, with their indices.
pub(crate) fn children(directory: usize) -> impl Iterator<Item = (usize, &'static Fixed)> {
    FIXED.iter().enumerate().filter(move |(index, fixed)| fixed.parent == directory && *index != directory)
}

/// Returns whether a node is a directory or lies below it.
pub(crate) fn is_below(index: usize, directory: usize) -> bool {
    index == directory || FIXED[index].parent != index && is_below(FIXED[index].parent, directory)
}
