//! Names for the values of flags and other constants in a trace.

use crate::numbers::{at, clone, file_type, futex, map, memfd, open, prot, wait, watch};

/// A set of flags: names of single bits, or of several bits that belong together.
#[derive(Debug)]
pub struct Flags {
    /// The bits that are one number, and its names.
    pub choice: Option<(u32, &'static Choices)>,
    /// The names of the other bits. One that contains the bits of another comes first.
    pub names: &'static [(u32, &'static str)],
    /// The name of the empty set.
    pub none: &'static str,
}

/// A number with a few values that have names.
#[derive(Debug)]
pub struct Choices {
    /// The names.
    pub names: &'static [(u32, &'static str)],
}

impl Choices {
    /// Returns the name of a value.
    pub fn name(&self, value: u32) -> Option<&'static str> {
        self.names.iter().find(|(number, _)| *number == value).map(|(_, name)| *name)
    }
}

const fn flags(names: &'static [(u32, &'static str)]) -> Flags {
    Flags { choice: None, names, none: "0" }
}

const fn choices(names: &'static [(u32, &'static str)]) -> Choices {
    Choices { names }
}

/// How a file is opened.
pub static OPEN: Flags = Flags {
    choice: Some((open::ACCESS, &choices(&[(0, "O_RDONLY"), (1, "O_WRONLY"), (2, "O_RDWR"), (3, "O_ACCMODE")]))),
    names: &[
        (open::CREAT, "O_CREAT"),
        (open::EXCL, "O_EXCL"),
        (open::NOCTTY, "O_NOCTTY"),
        (open::TRUNC, "O_TRUNC"),
        (open::APPEND, "O_APPEND"),
        (open::NONBLOCK, "O_NONBLOCK"),
        (open::SYNC, "O_SYNC"),
        (open::DSYNC, "O_DSYNC"),
        (open::ASYNC, "O_ASYNC"),
        (open::DIRECT, "O_DIRECT"),
        (open::LARGEFILE, "O_LARGEFILE"),
        (open::NOFOLLOW, "O_NOFOLLOW"),
        (open::NOATIME, "O_NOATIME"),
        (open::CLOEXEC, "O_CLOEXEC"),
        (open::PATH, "O_PATH"),
        (open::TMPFILE, "O_TMPFILE"),
        (open::DIRECTORY, "O_DIRECTORY"),
    ],
    none: "0",
};

/// Flags of new descriptors, without those of [`OPEN`] that say how a file is accessed.
pub static DESCRIPTOR: Flags =
    flags(&[(open::CLOEXEC, "O_CLOEXEC"), (open::DIRECT, "O_DIRECT"), (open::NONBLOCK, "O_NONBLOCK")]);

/// Flags of calls with a directory's descriptor and a path.
pub static AT: Flags = flags(&[
    (at::SYMLINK_NOFOLLOW, "AT_SYMLINK_NOFOLLOW"),
    (at::REMOVEDIR, "AT_REMOVEDIR"),
    (at::SYMLINK_FOLLOW, "AT_SYMLINK_FOLLOW"),
    (at::NO_AUTOMOUNT, "AT_NO_AUTOMOUNT"),
    (at::EMPTY_PATH, "AT_EMPTY_PATH"),
]);

/// Flags of `faccessat2`.
pub static ACCESS_AT: Flags =
    flags(&[(at::SYMLINK_NOFOLLOW, "AT_SYMLINK_NOFOLLOW"), (0x200, "AT_EACCESS"), (at::EMPTY_PATH, "AT_EMPTY_PATH")]);

/// The questions of `faccessat`.
pub static ACCESS: Flags = Flags { choice: None, names: &[(4, "R_OK"), (2, "W_OK"), (1, "X_OK")], none: "F_OK" };

/// Protection of memory.
pub static PROTECTION: Flags = Flags {
    choice: None,
    names: &[
        (prot::READ, "PROT_READ"),
        (prot::WRITE, "PROT_WRITE"),
        (prot::EXEC, "PROT_EXEC"),
        (prot::GROWSDOWN, "PROT_GROWSDOWN"),
    ],
    none: "PROT_NONE",
};

/// How memory is mapped.
pub static MAP: Flags = Flags {
    choice: Some((map::TYPE, &choices(&[(1, "MAP_SHARED"), (2, "MAP_PRIVATE"), (3, "MAP_SHARED_VALIDATE")]))),
    names: &[
        (map::FIXED, "MAP_FIXED"),
        (map::ANONYMOUS, "MAP_ANONYMOUS"),
        (map::GROWSDOWN, "MAP_GROWSDOWN"),
        (map::DENYWRITE, "MAP_DENYWRITE"),
        (map::EXECUTABLE, "MAP_EXECUTABLE"),
        (map::LOCKED, "MAP_LOCKED"),
        (map::NORESERVE, "MAP_NORESERVE"),
        (map::POPULATE, "MAP_POPULATE"),
        (map::NONBLOCK, "MAP_NONBLOCK"),
        (map::STACK, "MAP_STACK"),
        (map::HUGETLB, "MAP_HUGETLB"),
        (map::FIXED_NOREPLACE, "MAP_FIXED_NOREPLACE"),
    ],
    none: "0",
};

/// Flags of `mremap`.
pub static REMAP: Flags = flags(&[(1, "MREMAP_MAYMOVE"), (2, "MREMAP_FIXED"), (4, "MREMAP_DONTUNMAP")]);

/// Advice about memory.
pub static ADVICE: Choices = choices(&[
    (0, "MADV_NORMAL"),
    (1, "MADV_RANDOM"),
    (2, "MADV_SEQUENTIAL"),
    (3, "MADV_WILLNEED"),
    (4, "MADV_DONTNEED"),
    (8, "MADV_FREE"),
    (9, "MADV_REMOVE"),
    (10, "MADV_DONTFORK"),
    (11, "MADV_DOFORK"),
    (14, "MADV_HUGEPAGE"),
    (15, "MADV_NOHUGEPAGE"),
    (16, "MADV_DONTDUMP"),
    (17, "MADV_DODUMP"),
    (18, "MADV_WIPEONFORK"),
    (19, "MADV_KEEPONFORK"),
    (20, "MADV_COLD"),
    (21, "MADV_PAGEOUT"),
    (22, "MADV_POPULATE_READ"),
    (23, "MADV_POPULATE_WRITE"),
]);

/// Flags of `msync`.
pub static SYNCHRONISE: Flags = flags(&[(1, "MS_ASYNC"), (2, "MS_INVALIDATE"), (4, "MS_SYNC")]);

/// From where an offset counts.
pub static WHENCE: Choices =
    choices(&[(0, "SEEK_SET"), (1, "SEEK_CUR"), (2, "SEEK_END"), (3, "SEEK_DATA"), (4, "SEEK_HOLE")]);

/// Commands of `fcntl`.
pub static CONTROL: Choices = choices(&[
    (0, "F_DUPFD"),
    (1, "F_GETFD"),
    (2, "F_SETFD"),
    (3, "F_GETFL"),
    (4, "F_SETFL"),
    (5, "F_GETLK"),
    (6, "F_SETLK"),
    (7, "F_SETLKW"),
    (8, "F_SETOWN"),
    (9, "F_GETOWN"),
    (10, "F_SETSIG"),
    (11, "F_GETSIG"),
    (15, "F_SETOWN_EX"),
    (16, "F_GETOWN_EX"),
    (36, "F_OFD_GETLK"),
    (37, "F_OFD_SETLK"),
    (38, "F_OFD_SETLKW"),
    (1026, "F_NOTIFY"),
    (1030, "F_DUPFD_CLOEXEC"),
    (1031, "F_SETPIPE_SZ"),
    (1032, "F_GETPIPE_SZ"),
    (1033, "F_ADD_SEALS"),
    (1034, "F_GET_SEALS"),
]);

/// Commands of `ioctl` for terminals and files.
pub static DEVICE: Choices = choices(&[
    (0x5401, "TCGETS"),
    (0x5402, "TCSETS"),
    (0x5403, "TCSETSW"),
    (0x5404, "TCSETSF"),
    (0x5409, "TCSBRK"),
    (0x540a, "TCXONC"),
    (0x540b, "TCFLSH"),
    (0x540e, "TIOCSCTTY"),
    (0x540f, "TIOCGPGRP"),
    (0x5410, "TIOCSPGRP"),
    (0x5413, "TIOCGWINSZ"),
    (0x5414, "TIOCSWINSZ"),
    (0x541b, "FIONREAD"),
    (0x5421, "FIONBIO"),
    (0x5422, "TIOCNOTTY"),
    (0x5429, "TIOCGSID"),
    (0x5450, "FIONCLEX"),
    (0x5451, "FIOCLEX"),
    (0x5452, "FIOASYNC"),
    (0x8004_5430, "TIOCGPTN"),
    (0x4004_5431, "TIOCSPTLCK"),
]);

/// Flags of `clone`. They have no more than 32 bits.
pub static CLONE: Flags = flags(&[
    (clone::VM as u32, "CLONE_VM"),
    (clone::FS as u32, "CLONE_FS"),
    (clone::FILES as u32, "CLONE_FILES"),
    (clone::SIGHAND as u32, "CLONE_SIGHAND"),
    (clone::PIDFD as u32, "CLONE_PIDFD"),
    (clone::PTRACE as u32, "CLONE_PTRACE"),
    (clone::VFORK as u32, "CLONE_VFORK"),
    (clone::PARENT as u32, "CLONE_PARENT"),
    (clone::THREAD as u32, "CLONE_THREAD"),
    (clone::NEWNS as u32, "CLONE_NEWNS"),
    (clone::SYSVSEM as u32, "CLONE_SYSVSEM"),
    (clone::SETTLS as u32, "CLONE_SETTLS"),
    (clone::PARENT_SETTID as u32, "CLONE_PARENT_SETTID"),
    (clone::CHILD_CLEARTID as u32, "CLONE_CHILD_CLEARTID"),
    (clone::DETACHED as u32, "CLONE_DETACHED"),
    (clone::UNTRACED as u32, "CLONE_UNTRACED"),
    (clone::CHILD_SETTID as u32, "CLONE_CHILD_SETTID"),
]);

/// Options of `wait4`.
pub static WAIT: Flags = flags(&[
    (wait::NOHANG, "WNOHANG"),
    (wait::UNTRACED, "WSTOPPED"),
    (wait::CONTINUED, "WCONTINUED"),
    (wait::NOTHREAD, "__WNOTHREAD"),
    (wait::ALL, "__WALL"),
    (wait::CLONE, "__WCLONE"),
]);

/// Types of files.
pub static FILE_TYPE: Choices = choices(&[
    (file_type::SOCKET, "S_IFSOCK"),
    (file_type::LINK, "S_IFLNK"),
    (file_type::REGULAR, "S_IFREG"),
    (file_type::BLOCK, "S_IFBLK"),
    (file_type::DIRECTORY, "S_IFDIR"),
    (file_type::CHARACTER, "S_IFCHR"),
    (file_type::FIFO, "S_IFIFO"),
]);

/// Clocks.
pub static CLOCK: Choices = choices(&[
    (0, "CLOCK_REALTIME"),
    (1, "CLOCK_MONOTONIC"),
    (2, "CLOCK_PROCESS_CPUTIME_ID"),
    (3, "CLOCK_THREAD_CPUTIME_ID"),
    (4, "CLOCK_MONOTONIC_RAW"),
    (5, "CLOCK_REALTIME_COARSE"),
    (6, "CLOCK_MONOTONIC_COARSE"),
    (7, "CLOCK_BOOTTIME"),
    (8, "CLOCK_REALTIME_ALARM"),
    (9, "CLOCK_BOOTTIME_ALARM"),
    (11, "CLOCK_TAI"),
]);

/// Flags of timers.
pub static TIMER: Flags = flags(&[(1, "TIMER_ABSTIME")]);

/// Interval timers.
pub static INTERVAL: Choices = choices(&[(0, "ITIMER_REAL"), (1, "ITIMER_VIRTUAL"), (2, "ITIMER_PROF")]);

/// Operations of `futex`.
pub static FUTEX: Choices = choices(&[
    (futex::WAIT, "FUTEX_WAIT"),
    (futex::WAKE, "FUTEX_WAKE"),
    (futex::REQUEUE, "FUTEX_REQUEUE"),
    (futex::CMP_REQUEUE, "FUTEX_CMP_REQUEUE"),
    (futex::WAKE_OP, "FUTEX_WAKE_OP"),
    (futex::LOCK_PI, "FUTEX_LOCK_PI"),
    (futex::UNLOCK_PI, "FUTEX_UNLOCK_PI"),
    (futex::TRYLOCK_PI, "FUTEX_TRYLOCK_PI"),
    (futex::WAIT_BITSET, "FUTEX_WAIT_BITSET"),
    (futex::WAKE_BITSET, "FUTEX_WAKE_BITSET"),
    (futex::WAIT_REQUEUE_PI, "FUTEX_WAIT_REQUEUE_PI"),
    (futex::CMP_REQUEUE_PI, "FUTEX_CMP_REQUEUE_PI"),
]);

/// Flags of futexes.
pub static FUTEX_FLAGS: Flags =
    flags(&[(futex::PRIVATE, "FUTEX_PRIVATE_FLAG"), (futex::CLOCK_REALTIME, "FUTEX_CLOCK_REALTIME")]);

/// Ways in which `rt_sigprocmask` changes a set.
pub static MASKING: Choices = choices(&[(0, "SIG_BLOCK"), (1, "SIG_UNBLOCK"), (2, "SIG_SETMASK")]);

/// Flags of a signal's action.
pub static ACTION: Flags = flags(&[
    (0x0400_0000, "SA_RESTORER"),
    (0x0800_0000, "SA_ONSTACK"),
    (0x1000_0000, "SA_RESTART"),
    (1, "SA_NOCLDSTOP"),
    (2, "SA_NOCLDWAIT"),
    (4, "SA_SIGINFO"),
    (0x4000_0000, "SA_NODEFER"),
    (0x8000_0000, "SA_RESETHAND"),
]);

/// Limited resources.
pub static RESOURCE: Choices = choices(&[
    (0, "RLIMIT_CPU"),
    (1, "RLIMIT_FSIZE"),
    (2, "RLIMIT_DATA"),
    (3, "RLIMIT_STACK"),
    (4, "RLIMIT_CORE"),
    (5, "RLIMIT_RSS"),
    (6, "RLIMIT_NPROC"),
    (7, "RLIMIT_NOFILE"),
    (8, "RLIMIT_MEMLOCK"),
    (9, "RLIMIT_AS"),
    (10, "RLIMIT_LOCKS"),
    (11, "RLIMIT_SIGPENDING"),
    (12, "RLIMIT_MSGQUEUE"),
    (13, "RLIMIT_NICE"),
    (14, "RLIMIT_RTPRIO"),
    (15, "RLIMIT_RTTIME"),
]);

/// Processes whose use of resources is asked for.
pub static USAGE: Choices = choices(&[(0, "RUSAGE_SELF"), (1, "RUSAGE_THREAD"), (u32::MAX, "RUSAGE_CHILDREN")]);

/// Flags of `getrandom`.
pub static RANDOM: Flags = flags(&[(1, "GRND_NONBLOCK"), (2, "GRND_RANDOM"), (4, "GRND_INSECURE")]);

/// Operations of `prctl`.
pub static PROCESS_CONTROL: Choices = choices(&[
    (1, "PR_SET_PDEATHSIG"),
    (2, "PR_GET_PDEATHSIG"),
    (3, "PR_GET_DUMPABLE"),
    (4, "PR_SET_DUMPABLE"),
    (15, "PR_SET_NAME"),
    (16, "PR_GET_NAME"),
    (22, "PR_SET_SECCOMP"),
    (23, "PR_CAPBSET_READ"),
    (24, "PR_CAPBSET_DROP"),
    (29, "PR_SET_TIMERSLACK"),
    (30, "PR_GET_TIMERSLACK"),
    (36, "PR_SET_CHILD_SUBREAPER"),
    (37, "PR_GET_CHILD_SUBREAPER"),
    (38, "PR_SET_NO_NEW_PRIVS"),
    (39, "PR_GET_NO_NEW_PRIVS"),
    (41, "PR_SET_THP_DISABLE"),
    (0x5356_4d41, "PR_SET_VMA"),
]);

/// Events of `poll`.
pub static POLL: Flags = flags(&[
    (1, "POLLIN"),
    (2, "POLLPRI"),
    (4, "POLLOUT"),
    (8, "POLLERR"),
    (0x10, "POLLHUP"),
    (0x20, "POLLNVAL"),
    (0x40, "POLLRDNORM"),
    (0x80, "POLLRDBAND"),
    (0x100, "POLLWRNORM"),
    (0x200, "POLLWRBAND"),
    (0x2000, "POLLRDHUP"),
]);

/// Operations of `epoll_ctl`.
pub static EPOLL: Choices = choices(&[(1, "EPOLL_CTL_ADD"), (2, "EPOLL_CTL_DEL"), (3, "EPOLL_CTL_MOD")]);

/// Families of sockets.
pub static FAMILY: Choices = choices(&[
    (0, "AF_UNSPEC"),
    (1, "AF_UNIX"),
    (2, "AF_INET"),
    (10, "AF_INET6"),
    (16, "AF_NETLINK"),
    (17, "AF_PACKET"),
]);

/// Types of sockets.
pub static SOCKET: Choices = choices(&[(1, "SOCK_STREAM"), (2, "SOCK_DGRAM"), (3, "SOCK_RAW"), (5, "SOCK_SEQPACKET")]);

/// Flags beside the types of sockets.
pub static SOCKET_FLAGS: Flags = flags(&[(open::CLOEXEC, "SOCK_CLOEXEC"), (open::NONBLOCK, "SOCK_NONBLOCK")]);

/// Directions that `shutdown` ends.
pub static DIRECTION: Choices = choices(&[(0, "SHUT_RD"), (1, "SHUT_WR"), (2, "SHUT_RDWR")]);

/// Locks of whole files.
pub static LOCK: Flags = flags(&[(1, "LOCK_SH"), (2, "LOCK_EX"), (4, "LOCK_NB"), (8, "LOCK_UN")]);

/// Advice about files.
pub static FILE_ADVICE: Choices = choices(&[
    (0, "POSIX_FADV_NORMAL"),
    (1, "POSIX_FADV_RANDOM"),
    (2, "POSIX_FADV_SEQUENTIAL"),
    (3, "POSIX_FADV_WILLNEED"),
    (4, "POSIX_FADV_DONTNEED"),
    (5, "POSIX_FADV_NOREUSE"),
]);

/// Commands of `membarrier`.
pub static BARRIER: Choices = choices(&[
    (0, "MEMBARRIER_CMD_QUERY"),
    (1, "MEMBARRIER_CMD_GLOBAL"),
    (2, "MEMBARRIER_CMD_GLOBAL_EXPEDITED"),
    (4, "MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED"),
    (8, "MEMBARRIER_CMD_PRIVATE_EXPEDITED"),
    (16, "MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED"),
    (32, "MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE"),
    (64, "MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE"),
]);

/// Flags of `eventfd2`.
pub static EVENT: Flags =
    flags(&[(1, "EFD_SEMAPHORE"), (open::CLOEXEC, "EFD_CLOEXEC"), (open::NONBLOCK, "EFD_NONBLOCK")]);

/// Flags of `memfd_create`.
pub static MEMORY_FILE: Flags =
    flags(&[(memfd::CLOEXEC, "MFD_CLOEXEC"), (memfd::ALLOW_SEALING, "MFD_ALLOW_SEALING"), (4, "MFD_HUGETLB")]);

/// Events of watched files, and flags of a watch.
pub static WATCH: Flags = flags(&[
    (watch::ALL, "IN_ALL_EVENTS"),
    (watch::ACCESS, "IN_ACCESS"),
    (watch::MODIFY, "IN_MODIFY"),
    (watch::ATTRIB, "IN_ATTRIB"),
    (watch::CLOSE_WRITE, "IN_CLOSE_WRITE"),
    (watch::CLOSE_NOWRITE, "IN_CLOSE_NOWRITE"),
    (watch::OPEN, "IN_OPEN"),
    (watch::MOVED_FROM, "IN_MOVED_FROM"),
    (watch::MOVED_TO, "IN_MOVED_TO"),
    (watch::CREATE, "IN_CREATE"),
    (watch::DELETE, "IN_DELETE"),
    (watch::DELETE_SELF, "IN_DELETE_SELF"),
    (watch::MOVE_SELF, "IN_MOVE_SELF"),
    (watch::ONLYDIR, "IN_ONLYDIR"),
    (watch::DONT_FOLLOW, "IN_DONT_FOLLOW"),
    (watch::EXCL_UNLINK, "IN_EXCL_UNLINK"),
    (watch::MASK_CREATE, "IN_MASK_CREATE"),
    (watch::MASK_ADD, "IN_MASK_ADD"),
    (watch::ISDIR, "IN_ISDIR"),
    (watch::ONESHOT, "IN_ONESHOT"),
]);

/// Flags of `preadv2` and `pwritev2`.
pub static READ_WRITE: Flags =
    flags(&[(1, "RWF_HIPRI"), (2, "RWF_DSYNC"), (4, "RWF_SYNC"), (8, "RWF_NOWAIT"), (16, "RWF_APPEND")]);

/// Flags of `renameat2`.
pub static RENAME: Flags = flags(&[(1, "RENAME_NOREPLACE"), (2, "RENAME_EXCHANGE"), (4, "RENAME_WHITEOUT")]);

/// Names of the signals 1 to 31, without `SIG`.
const SIGNALS: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
    "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO",
    "PWR", "SYS",
];

/// Returns the name of a signal without `SIG`; real-time signals have numbers only.
pub fn signal(number: u32) -> Option<&'static str> {
    SIGNALS.get(number.checked_sub(1)? as usize).copied()
}
