//! Lines of a trace, compared with what `strace` 6.1 prints for the same calls, but for the errors' descriptions.

use std::collections::BTreeMap;

use tench_linux_calls::{Memory, Sysno, Trace};

/// Memory with some readable places.
#[derive(Default)]
struct Places(BTreeMap<u64, Vec<u8>>);

impl Places {
    fn with(mut self, address: u64, bytes: impl Into<Vec<u8>>) -> Places {
        self.0.insert(address, bytes.into());
        self
    }

    fn with_words(self, address: u64, words: &[u64]) -> Places {
        self.with(address, words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
    }
}

impl Memory for Places {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let Some((start, bytes)) = self.0.range(..=address).next_back() else { return 0 };
        let rest = bytes.get((address - start) as usize..).unwrap_or(&[]);
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        length
    }
}

/// Returns the line of a call.
fn line(call: Sysno, arguments: &[u64], result: i64, memory: &Places) -> String {
    let mut registers = [0x5eed; 6];
    registers[..arguments.len()].copy_from_slice(arguments);
    Trace::begin(call as u64, registers, memory).end(result.cast_unsigned(), memory)
}

const CWD: u64 = -100i64 as u64;
const A: u64 = 0x10000;
const B: u64 = 0x20000;
const C: u64 = 0x30000;

#[test]
fn files() {
    let memory = Places::default().with(A, "/etc/passwd\0").with(B, "root:x:0:0:root:/root:/bin/bash\nmore");
    assert_eq!(line(Sysno::openat, &[CWD, A, 0], 5, &memory), "openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY) = 5");
    assert_eq!(
        line(Sysno::openat, &[0xffff_ff9c, A, 0o1302 | 0x4000_0000, 0o644], 6, &memory),
        "openat(AT_FDCWD, \"/etc/passwd\", O_RDWR|O_CREAT|O_EXCL|O_TRUNC|0x40000000, 0644) = 6"
    );
    assert_eq!(
        line(Sysno::read, &[5, B, 100], 36, &memory),
        "read(5, \"root:x:0:0:root:/root:/bin/bash\\n\"..., 100) = 36"
    );
    assert_eq!(line(Sysno::read, &[5, B, 100], -9, &memory), "read(5, 0x20000, 100)                   = -1 EBADF");
    assert_eq!(line(Sysno::read, &[5, B, 100], 0, &memory), "read(5, \"\", 100)                        = 0");
    assert_eq!(line(Sysno::lseek, &[5, 0, 2], 1221, &memory), "lseek(5, 0, SEEK_END)                   = 1221");
    assert_eq!(line(Sysno::umask, &[0o22], 0o22, &memory), "umask(022)                              = 022");
    let missing = line(Sysno::openat, &[CWD, 1, 0], -14, &memory);
    assert_eq!(missing, "openat(AT_FDCWD, 0x1, O_RDONLY)         = -1 EFAULT");
}

#[test]
fn bytes_are_escaped_as_in_c() {
    let memory = Places::default().with(A, *b"wo\trld\xff\x0012\x01x\"\\");
    assert_eq!(line(Sysno::write, &[4, A, 14], 14, &memory), "write(4, \"wo\\trld\\377\\00012\\1x\\\"\\\\\", 14) = 14");
}

#[test]
fn vectors_show_what_was_transferred() {
    let memory = Places::default().with_words(A, &[B, 5, C, 10]).with(B, "hello").with(C, *b"wo\trld\xff\x0a2\x01");
    let all = "{iov_base=\"hello\", iov_len=5}, {iov_base=\"wo\\trld\\377\\n2\\1\", iov_len=10}";
    assert_eq!(line(Sysno::writev, &[4, A, 2], 15, &memory), format!("writev(4, [{all}], 2) = 15"));
    let part = "{iov_base=\"hello\", iov_len=5}, {iov_base=\"wo\", iov_len=10}";
    assert_eq!(line(Sysno::readv, &[4, A, 2], 7, &memory), format!("readv(4, [{part}], 2) = 7"));
}

/// Returns a `stat` with a mode, a device and a length.
fn stat(mode: u32, device: u64, length: u64) -> Vec<u8> {
    let mut record = vec![0; 128];
    record[16..20].copy_from_slice(&mode.to_le_bytes());
    record[32..40].copy_from_slice(&device.to_le_bytes());
    record[48..56].copy_from_slice(&length.to_le_bytes());
    record
}

#[test]
fn statuses() {
    let memory = Places::default().with(A, "/etc/passwd\0").with(B, stat(0o100_644, 0, 1221)).with(C, "\0");
    assert_eq!(
        line(Sysno::fstatat, &[CWD, A, B, 0], 0, &memory),
        "newfstatat(AT_FDCWD, \"/etc/passwd\", {st_mode=S_IFREG|0644, st_size=1221, ...}, 0) = 0"
    );
    let memory = memory.with(B, stat(0o20_666, 0x103, 0));
    assert_eq!(
        line(Sysno::fstatat, &[0, C, B, 0x1000], 0, &memory),
        "newfstatat(0, \"\", {st_mode=S_IFCHR|0666, st_rdev=makedev(0x1, 0x3), ...}, AT_EMPTY_PATH) = 0"
    );
    let memory = memory.with(B, stat(0o10_600, 0, 0));
    assert_eq!(
        line(Sysno::fstatat, &[3, C, B, 0x1000], 0, &memory),
        "newfstatat(3, \"\", {st_mode=S_IFIFO|0600, st_size=0, ...}, AT_EMPTY_PATH) = 0"
    );
    assert_eq!(
        line(Sysno::fstatat, &[CWD, 1, B, 0], -14, &memory),
        "newfstatat(AT_FDCWD, 0x1, 0x20000, 0)   = -1 EFAULT"
    );
}

#[test]
fn memory() {
    let memory = Places::default();
    assert_eq!(
        line(Sysno::mmap, &[0, 4096, 3, 0x22, u64::MAX, 0], 0x7fde_7dbb_e000, &memory),
        "mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7fde7dbbe000"
    );
    assert_eq!(
        line(Sysno::mmap, &[0x7f99_c675_2000, 1_400_832, 5, 0x812, 3, 0x26000], 0x7f99_c675_2000, &memory),
        "mmap(0x7f99c6752000, 1400832, PROT_READ|PROT_EXEC, MAP_PRIVATE|MAP_FIXED|MAP_DENYWRITE, 3, 0x26000) = 0x7f99c6752000"
    );
    assert_eq!(line(Sysno::mprotect, &[0x1000, 4096, 0], 0, &memory), "mprotect(0x1000, 4096, PROT_NONE)       = 0");
    assert_eq!(
        line(Sysno::brk, &[0], 0x5609_0f40_e000, &memory),
        "brk(NULL)                               = 0x56090f40e000"
    );
    assert_eq!(
        line(Sysno::madvise, &[0x1000, 4096, 4], -12, &memory),
        "madvise(0x1000, 4096, MADV_DONTNEED)    = -1 ENOMEM"
    );
}

#[test]
fn signals() {
    let action = [1, 0x1400_0000, 0x7fde_7da0_f050, 1 << 1 | 1 << 9];
    let memory = Places::default().with_words(A, &action).with_words(B, &[0, 0, 0, 0]);
    assert_eq!(
        line(Sysno::rt_sigaction, &[17, A, B, 8], 0, &memory),
        "rt_sigaction(SIGCHLD, {sa_handler=SIG_IGN, sa_mask=[INT USR1], sa_flags=SA_RESTORER|SA_RESTART, \
         sa_restorer=0x7fde7da0f050}, {sa_handler=SIG_DFL, sa_mask=[], sa_flags=0}, 8) = 0"
    );
    let memory = memory.with_words(A, &[!(1 << 14 | 1 << 31 | 1 << 32)]);
    assert_eq!(
        line(Sysno::rt_sigprocmask, &[0, A, B, 8], 0, &memory),
        "rt_sigprocmask(SIG_BLOCK, ~[TERM RTMIN RT_1], [], 8) = 0"
    );
    assert_eq!(line(Sysno::rt_sigprocmask, &[2, B, 0, 8], 0, &memory), "rt_sigprocmask(SIG_SETMASK, [], NULL, 8) = 0");
    assert_eq!(line(Sysno::kill, &[0, 9], 0, &memory), "kill(0, SIGKILL)                        = 0");
}

#[test]
fn processes() {
    let words = |status: u32| Places::default().with(A, status.to_le_bytes());
    let wait = |status: u32, options: u64| line(Sysno::wait4, &[22846, A, options, 0], 22846, &words(status));
    assert_eq!(wait(0x300, 0), "wait4(22846, [{WIFEXITED(s) && WEXITSTATUS(s) == 3}], 0, NULL) = 22846");
    assert_eq!(wait(9, 2), "wait4(22846, [{WIFSIGNALED(s) && WTERMSIG(s) == SIGKILL}], WSTOPPED, NULL) = 22846");
    assert_eq!(
        wait(0x8b, 0),
        "wait4(22846, [{WIFSIGNALED(s) && WTERMSIG(s) == SIGSEGV && WCOREDUMP(s)}], 0, NULL) = 22846"
    );
    assert_eq!(wait(0x137f, 2), "wait4(22846, [{WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP}], WSTOPPED, NULL) = 22846");
    assert_eq!(wait(0xffff, 8), "wait4(22846, [{WIFCONTINUED(s)}], WCONTINUED, NULL) = 22846");
    assert_eq!(
        line(Sysno::wait4, &[0xffff_ffff, A, 3, 0], -10, &words(0)),
        "wait4(-1, 0x10000, WNOHANG|WSTOPPED, NULL) = -1 ECHILD"
    );
    let memory = Places::default().with(A, "/bin/true\0").with_words(B, &[C, C + 5, 0]).with(C, "true\0a\"b\0");
    assert_eq!(
        line(Sysno::execve, &[A, B, 0x1234], 0, &memory),
        "execve(\"/bin/true\", [\"true\", \"a\\\"b\"], 0x1234) = 0"
    );
    let exit = Trace::begin(Sysno::exit_group as u64, [0; 6], &memory).end_without_return();
    assert_eq!(exit, "exit_group(0)                           = ?");
}

#[test]
fn other_records() {
    let memory = Places::default()
        .with(A, [3u32, 4].map(u32::to_le_bytes).concat())
        .with_words(B, &[20000, u64::MAX])
        .with_words(C, &[0, 1000]);
    assert_eq!(line(Sysno::pipe2, &[A, 0o2000000], 0, &memory), "pipe2([3, 4], O_CLOEXEC)                = 0");
    assert_eq!(
        line(Sysno::prlimit64, &[0, 7, 0, B], 0, &memory),
        "prlimit64(0, RLIMIT_NOFILE, NULL, {rlim_cur=20000, rlim_max=RLIM64_INFINITY}) = 0"
    );
    assert_eq!(
        line(Sysno::clock_nanosleep, &[0, 0, C, 0x7ffe], 0, &memory),
        "clock_nanosleep(CLOCK_REALTIME, 0, {tv_sec=0, tv_nsec=1000}, 0x7ffe) = 0"
    );
    let memory = memory.with_words(B, &[5, 6, 0, 0x3fff_ffff]).with(A, "/nope\0");
    assert_eq!(
        line(Sysno::utimensat, &[CWD, A, B, 0x100], -2, &memory),
        "utimensat(AT_FDCWD, \"/nope\", [{tv_sec=5, tv_nsec=6}, UTIME_NOW], AT_SYMLINK_NOFOLLOW) = -1 ENOENT"
    );
    let memory = memory.with(A, *b"\x01\0/tmp/x\0\0\0").with(B, *b"\x02\0\x1f\x90\x7f\0\0\x01");
    assert_eq!(
        line(Sysno::connect, &[8, A, 11], 0, &memory),
        "connect(8, {sa_family=AF_UNIX, sun_path=\"/tmp/x\"}, 11) = 0"
    );
    assert_eq!(
        line(Sysno::connect, &[8, B, 8], 0, &memory),
        "connect(8, {sa_family=AF_INET, sin_port=htons(8080), sin_addr=inet_addr(\"127.0.0.1\")}, 8) = 0"
    );
    assert_eq!(line(Sysno::connect, &[8, 0, 3], -14, &memory), "connect(8, NULL, 3)                     = -1 EFAULT");
    assert_eq!(line(Sysno::socket, &[1, 0o2000001, 0], 8, &memory), "socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0) = 8");
    let memory = memory.with(C, [0u32, 3, 3, 1].map(u32::to_le_bytes).concat());
    assert_eq!(
        line(Sysno::ppoll, &[C, 2, 0, 0, 8], 1, &memory),
        "ppoll([{fd=0, events=POLLIN|POLLPRI}, {fd=3, events=POLLIN}], 2, NULL, NULL, 8) = 1"
    );
}

#[test]
fn what_is_unknown_is_shown_in_numbers() {
    let memory = Places::default();
    assert_eq!(
        line(Sysno::lookup_dcookie, &[1, 2, 3, 4, 5, 6], -38, &memory),
        "lookup_dcookie(0x1, 0x2, 0x3, 0x4, 0x5, 0x6) = -1 ENOSYS"
    );
    let unknown = Trace::begin(0xffff, [0; 6], &memory).end(0, &memory);
    assert_eq!(unknown, "syscall_0xffff(0, 0, 0, 0, 0, 0)        = 0");
    let huge = Trace::begin(u64::MAX, [0; 6], &memory).end(0, &memory);
    assert_eq!(huge, "syscall_0xffffffffffffffff(0, 0, 0, 0, 0, 0) = 0");
}

#[test]
fn a_line_begins_with_what_is_known_before_the_call() {
    let memory = Places::default().with(A, "/x\0").with(B, stat(0o100_644, 0, 3));
    let begun = Trace::begin(Sysno::fstatat as u64, [CWD, A, B, 0, 0, 0], &memory);
    assert_eq!(begun.text(), "newfstatat(AT_FDCWD, \"/x\"");
    let begun = Trace::begin(Sysno::clone as u64, [0x120_0011, 0, 0, 0, 0x99, 0], &memory);
    assert_eq!(begun.text(), "clone(CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD, NULL, NULL, 0, 0x99");
}

/// Arguments and memory come from programs, which may be hostile.
#[test]
fn every_call_has_a_line_whatever_its_arguments() {
    let memory = Places::default().with(A, vec![0xff; 65536]);
    for number in (0..512).chain([u64::MAX]) {
        for value in [0, 1, 8, A, A + 0xfff0, A + 0xffff, u64::MAX, 1 << 63, 0xffff_ffff] {
            for result in [0, 1, 64, u64::MAX, 1 << 63] {
                let line = Trace::begin(number, [value; 6], &memory).end(result, &memory);
                assert!(line.len() < 40_000, "{}", line.len());
            }
        }
    }
}
