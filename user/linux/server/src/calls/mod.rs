//! The calls, by subject. The table is below.

mod adjustments;
mod capabilities;
mod clone;
mod copies;
mod descriptors;
mod directories;
mod entrances;
mod epoll;
mod events;
mod filters;
mod foreign;
mod futex;
mod handles;
mod identity;
mod interfaces;
mod io_priorities;
mod ipc;
mod ipc_messages;
mod jobs;
mod length;
mod limits;
mod locks;
mod log;
mod memory;
mod messages;
mod modes;
mod mounts;
mod operations;
mod owners;
mod pairs;
mod paths;
mod permissions;
mod pipes;
mod poll;
mod processes;
mod programs;
mod queues;
mod scheduling;
mod seals;
mod segments;
mod semaphores;
mod signals;
mod slaves;
mod sockets;
mod splices;
mod status;
mod terminal;
mod time;
mod timers;
mod tracing;
mod transfer;
mod usage;
mod users;
mod watches;

use tench_linux_calls::numbers::schedule;
use tench_linux_calls::{Errno, Sysno};

pub use adjustments::Adjustment;
pub(crate) use identity::{HOST, system_name};
pub use queues::Notice;
pub(crate) use slaves::SLAVES_DEVICE;
pub(crate) use status::DEVICE;
pub(crate) use time::record as time_record;

use entrances::SET_ENTRANCE;

use crate::Machine;
use crate::caller::{Caller, Outcome, Result};

/// Returns whether programs do without a call, after they have asked for it once.
const fn is_dispensable(number: Sysno) -> bool {
    matches!(
        number,
        Sysno::rseq
            | Sysno::clone3
            | Sysno::faccessat2
            | Sysno::openat2
            | Sysno::io_uring_setup
            | Sysno::statx
            | Sysno::futex_waitv
            | Sysno::get_mempolicy
            | Sysno::fchmodat2
    )
}

impl<M: Machine> Caller<'_, M> {
    /// Answers a call that only asks for a number of the process, before any table is searched.
    #[inline(always)]
    pub(crate) fn own_number(&self, call: Sysno) -> Option<u64> {
        Some(match call {
            Sysno::getpid => self.process.id.into(),
            Sysno::gettid => self.process.thread().id.into(),
            Sysno::getppid => self.process.parent.into(),
            Sysno::getuid => self.process.thread().identity.user.real.into(),
            Sysno::geteuid => self.process.thread().identity.user.effective.into(),
            Sysno::getgid => self.process.thread().identity.group.real.into(),
            Sysno::getegid => self.process.thread().identity.group.effective.into(),
            _ => return None,
        })
    }

    /// Makes a call, whose arguments are the program's.
    pub(crate) fn dispatch(&mut self, call: Sysno, arguments: &[u64; 6]) -> Outcome {
        // All this is compiled into one function, with a table for each subject.
        if let Some(result) = self.file_call(call, arguments) {
            if self.system.is_watching() {
                self.observe(call, arguments, &result);
            }
            return result.into();
        }
        if let Some(result) = self.process_call(call, arguments) {
            self.system.settle_segments(self.process.id);
            return result.into();
        }
        if let Some(result) = self.system_call(call, arguments) {
            return result.into();
        }
        if let Some(result) = self.path_call(call, arguments) {
            if self.system.is_watching() {
                self.observe(call, arguments, &result);
            }
            return result.into();
        }
        if let Some(result) = self.socket_call(call, arguments) {
            return result.into();
        }
        if let Some(result) = self.rare_call(call, arguments) {
            return result.into();
        }
        if let Some(result) = self.ipc_call(call, arguments) {
            self.system.settle_segments(self.process.id);
            return result.into();
        }
        let [a, b, c, d, e, _] = *arguments;
        match call {
            Sysno::prctl => self.set_entrance(b, c),
            Sysno::rt_sigreturn => self.rt_sigreturn(),
            Sysno::exit => Outcome::EndThread(a as u8),
            Sysno::exit_group => Outcome::Exit(a as u8),
            Sysno::sched_yield => self.sched_yield(),
            Sysno::execve => self.execve(a, b, c),
            Sysno::execveat => self.execveat(a, b, [c, d], e),
            _ => self.missing(call).into(),
        }
    }

    /// Answers a call that is not there. Programs probe some; each of the others is reported once.
    fn missing(&mut self, call: Sysno) -> Result {
        if !is_dispensable(call) {
            let name = tench_linux_calls::table::name(call);
            self.report_once(call, &alloc::format!("there is no system call {name}"));
        }
        Err(Errno::ENOSYS)
    }

    /// Reports what is missing of a call, if that is wanted and was not reported before.
    pub(crate) fn report_once(&mut self, call: Sysno, what: &str) {
        if !self.system.is_quiet && self.system.reported.insert(call) {
            self.report_missing(what);
        }
    }

    /// Makes a call about files and descriptors.
    #[rustfmt::skip]
    #[inline(always)]
    fn file_call(&mut self, call: Sysno, &[a, b, c, d, e, f]: &[u64; 6]) -> Option<Result> {
        Some(match call {
            // Reading and writing.
            Sysno::read => self.read_file(a, b, c, None),
            Sysno::write => self.write_file(a, b, c, None),
            Sysno::pread64 => self.read_file(a, b, c, Some(d)),
            Sysno::pwrite64 => self.write_file(a, b, c, Some(d)),
            Sysno::readv => self.readv(a, b, c, None),
            Sysno::writev => self.writev(a, b, c, None),
            Sysno::preadv => self.readv(a, b, c, Some(d)),
            Sysno::pwritev => self.writev(a, b, c, Some(d)),
            Sysno::preadv2 => self.with_flags(a, d, f).and_then(|offset| self.readv(a, b, c, offset)),
            Sysno::pwritev2 => self.with_flags(a, d, f).and_then(|offset| self.writev(a, b, c, offset)),
            Sysno::sendfile => self.sendfile(a, b, c, d),
            Sysno::splice => self.splice([a, b, c, d], e, f),
            Sysno::tee => self.tee(a, b, c, d),
            Sysno::vmsplice => self.vmsplice(a, b, c, d),
            Sysno::copy_file_range => self.copy_file_range([a, b, c, d], e, f),
            Sysno::lseek => self.lseek(a, b, c),
            Sysno::ftruncate => self.ftruncate(a, b),
            Sysno::truncate => self.truncate(a, b),
            Sysno::fallocate => self.fallocate(a, b, c, d),
            Sysno::fsync | Sysno::fdatasync => self.fsync(a),
            Sysno::syncfs | Sysno::fadvise64 => self.descriptor(a).map(|_| 0),
            Sysno::sync => Ok(0),

            // Descriptors.
            Sysno::openat => self.openat(a, b, c, d),
            Sysno::memfd_create => self.memfd_create(a, b),
            Sysno::close => self.close(a),
            Sysno::close_range => self.close_range(a, b, c),
            Sysno::dup => self.dup(a),
            Sysno::dup3 => self.dup3(a, b, c),
            Sysno::fcntl => self.fcntl(a, b, c),
            Sysno::ioctl => self.ioctl(a, b, c),
            Sysno::flock => self.flock(a, b),

            // Message queues.
            Sysno::mq_open => self.mq_open(a, b, c, d),
            Sysno::mq_unlink => self.mq_unlink(a),
            Sysno::mq_timedsend => self.mq_timedsend(a, b, c, d, e),
            Sysno::mq_timedreceive => self.mq_timedreceive(a, b, c, d, e),
            Sysno::mq_notify => self.mq_notify(a, b),
            Sysno::mq_getsetattr => self.mq_getsetattr(a, b, c),

            Sysno::pipe2 => self.pipe2(a, b),
            Sysno::ppoll => self.ppoll(a, b, c, d, e),
            Sysno::pselect6 => self.pselect6(a, [b, c, d], e, f),

            // Events.
            Sysno::epoll_create1 => self.epoll_create1(a),
            Sysno::epoll_ctl => self.epoll_ctl(a, b, c, d),
            Sysno::epoll_pwait => self.epoll_pwait(a, b, c, d, e, f),
            Sysno::epoll_pwait2 => self.epoll_pwait2(a, b, c, d, e, f),
            Sysno::eventfd2 => self.eventfd2(a, b),
            Sysno::timerfd_create => self.timerfd_create(a, b),
            Sysno::timerfd_settime => self.timerfd_settime(a, b, c, d),
            Sysno::timerfd_gettime => self.timerfd_gettime(a, b),
            Sysno::signalfd4 => self.signalfd4(a, b, c, d),
            Sysno::inotify_init1 => self.inotify_init1(a),
            Sysno::inotify_add_watch => self.inotify_add_watch(a, b, c),
            Sysno::inotify_rm_watch => self.inotify_rm_watch(a, b),

            _ => return None,
        })
    }

    /// Makes a call about sockets.
    #[rustfmt::skip]
    #[inline(always)]
    fn socket_call(&mut self, call: Sysno, &[a, b, c, d, e, f]: &[u64; 6]) -> Option<Result> {
        Some(match call {
            Sysno::socket => self.socket(a, b, c),
            Sysno::socketpair => self.socketpair(a, b, c, d),
            Sysno::bind => self.bind(a, b, c),
            Sysno::listen => self.listen(a, b),
            Sysno::connect => self.connect(a, b, c),
            Sysno::accept => self.accept(a, b, c, 0),
            Sysno::accept4 => self.accept(a, b, c, d),
            Sysno::getsockname => self.getsockname(a, b, c),
            Sysno::getpeername => self.getpeername(a, b, c),
            Sysno::getsockopt => self.getsockopt(a, b, c, d, e),
            Sysno::setsockopt => self.setsockopt(a, b, c, d, e),
            Sysno::shutdown => self.shutdown(a, b),
            Sysno::sendto => self.sendto([a, b, c, d, e, f]),
            Sysno::recvfrom => self.recvfrom([a, b, c, d, e, f]),
            Sysno::sendmsg => self.sendmsg(a, b, c),
            Sysno::recvmsg => self.recvmsg(a, b, c),
            Sysno::sendmmsg => self.sendmmsg(a, b, c, d),
            Sysno::recvmmsg => self.recvmmsg(a, b, c, d, e),

            _ => return None,
        })
    }

    /// Makes a call about what System V has.
    #[rustfmt::skip]
    fn ipc_call(&mut self, call: Sysno, &[a, b, c, d, e, _]: &[u64; 6]) -> Option<Result> {
        Some(match call {
            Sysno::shmget => self.shmget(a, b, c),
            Sysno::shmat => self.shmat(a, b, c),
            Sysno::shmdt => self.shmdt(a),
            Sysno::shmctl => self.shmctl(a, b, c),
            Sysno::semget => self.semget(a, b, c),
            Sysno::semop => self.semtimedop(a, b, c, 0),
            Sysno::semtimedop => self.semtimedop(a, b, c, d),
            Sysno::semctl => self.semctl(a, b, c, d),
            Sysno::msgget => self.msgget(a, b),
            Sysno::msgsnd => self.msgsnd(a, b, c, d),
            Sysno::msgrcv => self.msgrcv(a, b, c, d, e),
            Sysno::msgctl => self.msgctl(a, b, c),

            _ => return None,
        })
    }

    /// Makes a call about asynchronous I/O, filters of calls, or the whole instance.
    #[rustfmt::skip]
    fn rare_call(&mut self, call: Sysno, &[a, b, c, d, e, f]: &[u64; 6]) -> Option<Result> {
        Some(match call {
            Sysno::io_setup => self.io_setup(a, b),
            Sysno::io_destroy => self.io_destroy(a),
            Sysno::io_submit => self.io_submit(a, b, c),
            Sysno::io_cancel => self.io_cancel(a, b),
            Sysno::io_getevents => self.io_getevents(a, b, c, d, e),
            Sysno::io_pgetevents => self.io_pgetevents(a, [b, c], d, e, f),
            Sysno::clock_adjtime => self.clock_adjtime(a, b),
            Sysno::adjtimex => self.clock_adjtime(0, a),
            Sysno::seccomp => self.seccomp(a, b, c),
            Sysno::syslog => self.syslog(a, b, c),
            Sysno::reboot => self.reboot([a, b], c),
            Sysno::sync_file_range => self.sync_file_range(a, b, c, d),

            _ => return None,
        })
    }

    /// Makes a call about paths, or what is recorded of files.
    #[rustfmt::skip]
    #[inline(always)]
    fn path_call(&mut self, call: Sysno, &[a, b, c, d, e, _]: &[u64; 6]) -> Option<Result> {
        Some(match call {
            // Paths.
            Sysno::mkdirat => self.mkdirat(a, b, c),
            Sysno::mknodat => self.mknodat(a, b, c, d),
            Sysno::unlinkat => self.unlinkat(a, b, c),
            Sysno::symlinkat => self.symlinkat(a, b, c),
            Sysno::linkat => self.linkat(a, b, c, d, e),
            Sysno::renameat => self.renameat(a, b, c, d, 0),
            Sysno::renameat2 => self.renameat(a, b, c, d, e),
            Sysno::readlinkat => self.readlinkat(a, b, c, d),
            Sysno::faccessat => self.faccessat(a, b, c),
            Sysno::chdir => self.chdir(a),
            Sysno::fchdir => self.fchdir(a),
            Sysno::chroot => self.chroot(a),
            Sysno::getcwd => self.getcwd(a, b),
            Sysno::getdents64 => self.getdents64(a, b, c),

            // What is recorded of files.
            Sysno::fstat => self.fstat(a, b),
            Sysno::fstatat => self.newfstatat(a, b, c, d),
            Sysno::statfs => self.statfs(a, b),
            Sysno::fstatfs => self.fstatfs(a, b),
            Sysno::fchmod => self.fchmod(a, b),
            Sysno::fchmodat => self.fchmodat(a, b, c),
            Sysno::fchown => self.fchown(a, b, c),
            Sysno::fchownat => self.fchownat(a, b, c, d, e),
            Sysno::utimensat => self.utimensat(a, b, c, d),
            Sysno::umask => self.umask(a),
            Sysno::getxattr | Sysno::lgetxattr | Sysno::fgetxattr => Err(Errno::EOPNOTSUPP),
            Sysno::listxattr | Sysno::llistxattr | Sysno::flistxattr => Err(Errno::EOPNOTSUPP),
            Sysno::setxattr | Sysno::lsetxattr | Sysno::fsetxattr => Err(Errno::EOPNOTSUPP),
            Sysno::removexattr | Sysno::lremovexattr | Sysno::fremovexattr => Err(Errno::EOPNOTSUPP),

            _ => return None,
        })
    }

    /// Makes a call about memory, signals and processes.
    #[rustfmt::skip]
    #[inline(always)]
    fn process_call(&mut self, call: Sysno, &[a, b, c, d, e, f]: &[u64; 6]) -> Option<Result> {
        Some(match call {
            // Memory.
            Sysno::brk => self.brk(a),
            Sysno::mmap => self.mmap(a, b, c, d, e, f),
            Sysno::munmap => self.munmap(a, b),
            Sysno::mremap => self.mremap(a, b, c, d, e),
            Sysno::mprotect => self.mprotect(a, b, c),
            Sysno::madvise => self.madvise(a, b, c),
            Sysno::msync => self.msync(a, b, c),
            Sysno::mincore => self.mincore(a, b, c),
            Sysno::membarrier => self.membarrier(a, b),
            Sysno::process_vm_readv => self.copy_foreign(a, [b, c], [d, e], f, false),
            Sysno::restart_syscall => self.restart(),
            Sysno::ptrace => self.ptrace(a, b, c, d),
            Sysno::process_vm_writev => self.copy_foreign(a, [b, c], [d, e], f, true),
            Sysno::mlock | Sysno::munlock => self.mlock(a, b),
            Sysno::mlockall => Self::mlockall(a),
            Sysno::munlockall => Ok(0),

            // Signals.
            Sysno::rt_sigaction => self.rt_sigaction(a, b, c, d),
            Sysno::rt_sigprocmask => self.rt_sigprocmask(a, b, c, d),
            Sysno::sigaltstack => self.sigaltstack(a, b),
            Sysno::rt_sigpending => self.rt_sigpending(a, b),
            Sysno::rt_sigsuspend => self.rt_sigsuspend(a, b),
            Sysno::rt_sigtimedwait => self.rt_sigtimedwait(a, b, c, d),
            Sysno::rt_sigqueueinfo => self.rt_sigqueueinfo(a, b, c),
            Sysno::rt_tgsigqueueinfo => self.rt_tgsigqueueinfo(a, b, c, d),
            Sysno::kill => self.kill(a, b),
            Sysno::tkill => self.tgkill(None, a, b),
            Sysno::pidfd_open => self.pidfd_open(a, b),
            Sysno::pidfd_send_signal => self.pidfd_send_signal(a, b, c, d),
            Sysno::tgkill => self.tgkill(Some(a), b, c),

            // Processes.
            Sysno::clone => self.clone(a, b, c, d, e),
            Sysno::futex => self.futex(a, b, c, d, e, f),
            Sysno::set_robust_list => self.set_robust_list(a, b),
            Sysno::get_robust_list => self.get_robust_list(a, b, c),
            Sysno::wait4 => self.wait4(a, b, c, d),
            Sysno::waitid => self.waitid(a, b, c, d, e),
            Sysno::setpgid => self.setpgid(a, b),
            Sysno::getpgid => self.getpgid(a),
            Sysno::getsid => self.getsid(a),
            Sysno::setsid => self.setsid(),

            _ => return None,
        })
    }

    /// Makes a call about users, limits, scheduling, time and the system.
    #[rustfmt::skip]
    #[inline(always)]
    fn system_call(&mut self, call: Sysno, &[a, b, c, d, e, _]: &[u64; 6]) -> Option<Result> {
        Some(match call {
            // Users and limits.
            Sysno::getgroups => self.getgroups(a, b),
            Sysno::setuid => self.setuid(a),
            Sysno::setgid => self.setgid(a),
            Sysno::setreuid => self.setreuid(a, b),
            Sysno::setregid => self.setregid(a, b),
            Sysno::setresuid => self.setresuid([a, b, c]),
            Sysno::setresgid => self.setresgid([a, b, c]),
            Sysno::setfsuid => self.setfsuid(a),
            Sysno::setfsgid => self.setfsgid(a),
            Sysno::setgroups => self.setgroups(a, b),
            Sysno::set_tid_address => Ok(self.set_clear_at_end(a).into()),
            Sysno::prlimit64 => self.prlimit64(a, b, c, d),
            Sysno::prctl if a != SET_ENTRANCE => self.prctl(a, [b, c, d, e]),
            Sysno::getrusage => self.getrusage(a, b),
            Sysno::getresuid => self.read_ids(self.identity().user, [a, b, c]),
            Sysno::getresgid => self.read_ids(self.identity().group, [a, b, c]),
            Sysno::personality => self.personality(a),
            Sysno::getrlimit => self.prlimit64(0, a, 0, b),
            Sysno::setrlimit => self.prlimit64(0, a, b, 0),

            // Scheduling.
            Sysno::sched_setscheduler => self.sched_setscheduler(a, b, c),
            Sysno::sched_getscheduler => self.sched_getscheduler(a),
            Sysno::sched_setparam => self.sched_setparam(a, b),
            Sysno::sched_getparam => self.sched_getparam(a, b),
            Sysno::sched_get_priority_min => Self::priority_limit(a, 1),
            Sysno::sched_get_priority_max => Self::priority_limit(a, schedule::MAX),
            Sysno::sched_rr_get_interval => self.sched_rr_get_interval(a, b),
            Sysno::sched_getaffinity => self.sched_getaffinity(a, b, c),
            Sysno::sched_setaffinity => self.sched_setaffinity(a, b, c),
            Sysno::capget => self.capget(a, b),
            Sysno::capset => self.capset(a, b),
            Sysno::getpriority => self.getpriority(a, b),
            Sysno::setpriority => self.setpriority(a, b, c),
            Sysno::ioprio_set => self.ioprio_set(a, b, c),
            Sysno::ioprio_get => self.ioprio_get(a, b),
            Sysno::getcpu => self.getcpu(a, b),

            // Time and the system.
            Sysno::clock_gettime => self.clock_gettime(a, b),
            Sysno::clock_settime => self.clock_settime(a, b),
            Sysno::clock_getres => self.clock_getres(a, b),
            Sysno::gettimeofday => self.gettimeofday(a, b),
            Sysno::nanosleep => self.nanosleep(a, b),
            Sysno::clock_nanosleep => self.clock_nanosleep(a, b, c, d),
            Sysno::setitimer => self.setitimer(a, b, c),
            Sysno::getitimer => self.getitimer(a, b),
            Sysno::timer_create => self.timer_create(a, b, c),
            Sysno::timer_settime => self.timer_settime(a, b, c, d),
            Sysno::timer_gettime => self.timer_gettime(a, b),
            Sysno::timer_getoverrun => self.timer_getoverrun(a),
            Sysno::timer_delete => self.timer_delete(a),
            Sysno::times => self.times(a),
            Sysno::uname => self.uname(a),
            Sysno::sethostname => self.set_name(identity::HOST, a, b),
            Sysno::setdomainname => self.set_name(identity::DOMAIN, a, b),
            Sysno::sysinfo => self.sysinfo(a),
            Sysno::getrandom => self.getrandom(a, b),

            _ => return None,
        })
    }
}
