//! The table of calls: what their arguments and results mean.

use crate::Sysno;
use crate::names::{self, Choices, Flags};
use crate::signature::Argument::{self, *};
use crate::signature::{Outcome, Signature};

/// Returns a call's name.
pub fn name(number: Sysno) -> &'static str {
    match number {
        // Linux calls it so, and `strace` as well.
        Sysno::fstatat => "newfstatat",
        _ => number.name(),
    }
}

/// Returns what a call's arguments mean. Those of a call that is not in the table are unknown numbers.
pub fn signature(number: Sysno) -> Option<&'static Signature> {
    SIGNATURES.iter().find(|signature| signature.number == number)
}

macro_rules! signatures {
    ($($name:ident($($argument:expr),*) $(-> $outcome:ident)?;)*) => {
        /// The calls whose arguments are known.
        pub static SIGNATURES: &[Signature] = &[$(
            Signature {
                number: Sysno::$name,
                arguments: const { &[$($argument),*] },
                outcome: signatures!(@outcome $($outcome)?),
            },
        )*];
    };
    (@outcome) => { Outcome::Number };
    (@outcome $outcome:ident) => { Outcome::$outcome };
}

/// An argument that is a set of flags.
const fn set(flags: &'static Flags) -> Argument {
    Flags(flags)
}

/// An argument that is one of several values.
const fn one(choices: &'static Choices) -> Argument {
    Choice(choices)
}

signatures! {
    // Files and directories.
    openat(Directory, String, set(&names::OPEN), Mode);
    close(Descriptor);
    close_range(Unsigned, Unsigned, Number);
    read(Descriptor, Result, Unsigned);
    write(Descriptor, Bytes(2), Unsigned);
    readv(Descriptor, ResultVectors(2), Unsigned);
    writev(Descriptor, Vectors(2), Unsigned);
    pread64(Descriptor, Result, Unsigned, Signed);
    pwrite64(Descriptor, Bytes(2), Unsigned, Signed);
    preadv(Descriptor, ResultVectors(2), Unsigned, Signed);
    pwritev(Descriptor, Vectors(2), Unsigned, Signed);
    preadv2(Descriptor, ResultVectors(2), Unsigned, Signed, Number, set(&names::READ_WRITE));
    pwritev2(Descriptor, Vectors(2), Unsigned, Signed, Number, set(&names::READ_WRITE));
    sendfile(Descriptor, Descriptor, Address, Unsigned);
    copy_file_range(Descriptor, Address, Descriptor, Address, Unsigned, Number);
    lseek(Descriptor, Signed, one(&names::WHENCE));
    fstat(Descriptor, Status);
    fstatat(Directory, String, Status, set(&names::AT));
    statx(Directory, String, Number, Number, Address);
    statfs(String, Address);
    fstatfs(Descriptor, Address);
    faccessat(Directory, String, set(&names::ACCESS));
    faccessat2(Directory, String, set(&names::ACCESS), set(&names::ACCESS_AT));
    readlinkat(Directory, String, Result, Unsigned);
    getdents64(Descriptor, Address, Unsigned);
    mkdirat(Directory, String, Mode);
    mknodat(Directory, String, Mode, Number);
    unlinkat(Directory, String, set(&names::AT));
    symlinkat(String, Directory, String);
    linkat(Directory, String, Directory, String, set(&names::AT));
    renameat(Directory, String, Directory, String);
    renameat2(Directory, String, Directory, String, set(&names::RENAME));
    fchmod(Descriptor, Mode);
    fchmodat(Directory, String, Mode);
    fchown(Descriptor, Signed, Signed);
    fchownat(Directory, String, Signed, Signed, set(&names::AT));
    utimensat(Directory, String, Times, set(&names::AT));
    truncate(String, Unsigned);
    ftruncate(Descriptor, Unsigned);
    fallocate(Descriptor, Number, Unsigned, Unsigned);
    fsync(Descriptor);
    fdatasync(Descriptor);
    sync();
    syncfs(Descriptor);
    fadvise64(Descriptor, Unsigned, Unsigned, one(&names::FILE_ADVICE));
    flock(Descriptor, set(&names::LOCK));
    getcwd(ResultString, Unsigned);
    chdir(String);
    fchdir(Descriptor);
    chroot(String);
    umask(Mode) -> Octal;
    listxattr(String, Address, Unsigned);
    llistxattr(String, Address, Unsigned);
    getxattr(String, String, Address, Unsigned);
    lgetxattr(String, String, Address, Unsigned);
    setxattr(String, String, Address, Unsigned, Number);
    lsetxattr(String, String, Address, Unsigned, Number);
    removexattr(String, String);
    lremovexattr(String, String);
    memfd_create(String, set(&names::MEMORY_FILE));

    // Descriptors.
    dup(Descriptor);
    dup3(Descriptor, Descriptor, set(&names::DESCRIPTOR));
    fcntl(Descriptor, one(&names::CONTROL), Number);
    ioctl(Descriptor, one(&names::DEVICE), Address);
    pipe2(Descriptors, set(&names::DESCRIPTOR));
    eventfd2(Unsigned, set(&names::EVENT));
    ppoll(Polled(1), Unsigned, Time, Signals, Unsigned);
    pselect6(Signed, Address, Address, Address, Time, Address);
    epoll_create1(set(&names::DESCRIPTOR));
    epoll_ctl(Descriptor, one(&names::EPOLL), Descriptor, Address);
    epoll_pwait(Descriptor, Address, Signed, Signed, Signals, Unsigned);

    io_setup(Unsigned, Address);
    io_destroy(Address);
    io_submit(Address, Signed, Address);
    io_cancel(Address, Address, Address);
    io_getevents(Address, Signed, Signed, Address, Time);
    io_pgetevents(Address, Signed, Signed, Address, Time, Address);
    inotify_init1(set(&names::DESCRIPTOR));
    inotify_add_watch(Descriptor, String, set(&names::WATCH));
    inotify_rm_watch(Descriptor, Signed);

    // Memory.
    brk(Address) -> Address;
    mmap(Address, Unsigned, set(&names::PROTECTION), set(&names::MAP), Descriptor, Number) -> Address;
    munmap(Address, Unsigned);
    mremap(Address, Unsigned, Unsigned, set(&names::REMAP), Address) -> Address;
    mprotect(Address, Unsigned, set(&names::PROTECTION));
    madvise(Address, Unsigned, one(&names::ADVICE));
    msync(Address, Unsigned, set(&names::SYNCHRONISE));
    mincore(Address, Unsigned, Address);
    mlock(Address, Unsigned);
    munlock(Address, Unsigned);

    // Processes and threads.
    clone(CloneFlags, Address, Address, Number, Address);
    execve(String, Strings, Address);
    execveat(Directory, String, Strings, Address, set(&names::AT));
    exit(Signed) -> Never;
    exit_group(Signed) -> Never;
    wait4(Signed, WaitStatus, set(&names::WAIT), Address);
    waitid(Unsigned, Signed, Address, set(&names::WAIT), Address);
    getpid();
    getppid();
    gettid();
    getpgid(Signed);
    setpgid(Signed, Signed);
    getsid(Signed);
    setsid();
    getuid();
    geteuid();
    getgid();
    getegid();
    setuid(Unsigned);
    setgid(Unsigned);
    setresuid(Signed, Signed, Signed);
    setresgid(Signed, Signed, Signed);
    getgroups(Signed, Address);
    setgroups(Unsigned, Address);
    capget(Address, Address);
    capset(Address, Address);
    getpriority(Unsigned, Unsigned);
    setpriority(Unsigned, Unsigned, Signed);
    ioprio_set(Unsigned, Unsigned, Number);
    ioprio_get(Unsigned, Unsigned);
    prlimit64(Signed, one(&names::RESOURCE), Limit, ResultLimit);
    getrlimit(one(&names::RESOURCE), ResultLimit);
    setrlimit(one(&names::RESOURCE), Limit);
    getrusage(one(&names::USAGE), Address);
    prctl(one(&names::PROCESS_CONTROL), Number, Number, Number, Number);
    personality(Number);
    set_tid_address(Address);
    set_robust_list(Address, Unsigned);
    futex(Address, ChoiceWithFlags(&names::FUTEX, &names::FUTEX_FLAGS), Unsigned, Address, Address, Number);
    membarrier(one(&names::BARRIER), Number, Signed);
    rseq(Address, Number, Number, Number);
    sched_yield();
    sched_getaffinity(Signed, Unsigned, Address);
    sched_setaffinity(Signed, Unsigned, Address);
    sched_getscheduler(Signed);
    sched_getparam(Signed, Address);

    // Signals.
    kill(Signed, Signal);
    tkill(Signed, Signal);
    tgkill(Signed, Signed, Signal);
    rt_sigaction(Signal, Action, ResultAction, Unsigned);
    rt_sigprocmask(one(&names::MASKING), Signals, ResultSignals, Unsigned);
    rt_sigpending(ResultSignals, Unsigned);
    rt_sigsuspend(Signals, Unsigned);
    rt_sigtimedwait(Signals, Address, Time, Unsigned);
    rt_sigreturn();
    sigaltstack(Address, Address);

    // Time.
    clock_gettime(one(&names::CLOCK), ResultTime);
    clock_adjtime(one(&names::CLOCK), Address);
    adjtimex(Address);
    sync_file_range(Descriptor, Signed, Signed, Number);
    reboot(Number, Number, Number, Address);
    syslog(Signed, Address, Signed);
    clock_settime(one(&names::CLOCK), Time);
    clock_getres(one(&names::CLOCK), ResultTime);
    clock_nanosleep(one(&names::CLOCK), set(&names::TIMER), Time, Address);
    nanosleep(Time, Address);
    gettimeofday(Address, Address);
    setitimer(one(&names::INTERVAL), Address, Address);
    getitimer(one(&names::INTERVAL), Address);
    times(Address);

    // Sockets.
    socket(one(&names::FAMILY), ChoiceWithFlags(&names::SOCKET, &names::SOCKET_FLAGS), Unsigned);
    socketpair(one(&names::FAMILY), ChoiceWithFlags(&names::SOCKET, &names::SOCKET_FLAGS), Unsigned, Descriptors);
    bind(Descriptor, SocketAddress, Unsigned);
    connect(Descriptor, SocketAddress, Unsigned);
    listen(Descriptor, Signed);
    accept(Descriptor, Address, Address);
    accept4(Descriptor, Address, Address, set(&names::SOCKET_FLAGS));
    shutdown(Descriptor, one(&names::DIRECTION));
    sendto(Descriptor, Bytes(2), Unsigned, Number, SocketAddress, Unsigned);
    recvfrom(Descriptor, Result, Unsigned, Number, Address, Address);
    sendmsg(Descriptor, Address, Number);
    recvmsg(Descriptor, Address, Number);
    getsockname(Descriptor, Address, Address);
    getpeername(Descriptor, Address, Address);
    setsockopt(Descriptor, Unsigned, Unsigned, Address, Unsigned);
    getsockopt(Descriptor, Unsigned, Unsigned, Address, Address);

    // Message queues.
    mq_open(String, set(&names::OPEN), Mode, Address);
    mq_unlink(String);
    mq_timedsend(Descriptor, Bytes(2), Unsigned, Unsigned, Time);
    mq_timedreceive(Descriptor, Result, Unsigned, Address, Time);
    mq_notify(Descriptor, Address);
    mq_getsetattr(Descriptor, Address, Address);

    // System V.
    shmget(Number, Unsigned, Number);
    shmat(Signed, Address, Number) -> Address;
    shmdt(Address);
    shmctl(Signed, Unsigned, Address);
    semget(Number, Signed, Number);
    semop(Signed, Address, Unsigned);
    semtimedop(Signed, Address, Unsigned, Time);
    semctl(Signed, Signed, Unsigned, Number);
    msgget(Number, Number);
    msgsnd(Signed, Address, Unsigned, Number);
    msgrcv(Signed, Address, Unsigned, Signed, Number);
    msgctl(Signed, Unsigned, Address);

    // The system.
    uname(Address);
    sysinfo(Address);
    getrandom(Result, Unsigned, set(&names::RANDOM));
    sethostname(String, Unsigned);
    setdomainname(String, Unsigned);
}
