//! Everything that the processes of an instance share.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use tench_linux_calls::Sysno;
use tench_linux_calls::numbers::open;
use tench_linux_files::{Errno, Kind, NewNode, NodeId, Time, Tree};
use tench_linux_memory::{Memory, ObjectId, Objects, Pool};
use tench_linux_queues::Queues;
use tench_linux_sockets::{Limits, SentFile, Sockets};
use tench_linux_watches::Watches;

use crate::calls::{Adjustment, Notice};
use crate::descriptors::{Description, DescriptionId, Descriptions, Descriptor, Descriptors};
use crate::devices;
use crate::futexes::Futexes;
use crate::instance::FIRST;
use crate::ipc::Ipc;
use crate::locks::FileLocks;
use crate::log::Log;
use crate::mounts::Mounts;
use crate::mounts::errand::{Errand, Finding};
use crate::notices::Notices;
use crate::owners::Owners;
use crate::process::{Process, SignalTimer, TimerNames};
use crate::signals::{Info, number};
use crate::spaces::{SpaceId, Spaces};
use crate::specials::{Socket, Special, Specials};
use crate::terminal::Terminal;
use crate::terminals::{End, TerminalId, Terminals};
use crate::thread::Threads;
use crate::tracing::Traces;
use crate::vdso;
use crate::waiting::{Alarm, Key, Waiters, Waiting};

/// The most pages of an instance, 256 MiB: a table maps pages of eight frames, each as large as all before it.
const MOST_PAGES: u64 = 65_536;

/// The machine, as the personality needs it.
pub trait Machine: Threads {
    /// Returns the time since the machine started.
    fn monotonic(&self) -> Duration;

    /// Returns how often per second the processor's counter ticks.
    fn frequency(&self) -> u64;

    /// Returns the time from the beginning of 1970 to the machine's start, which stays the same; zero if nobody knows
    /// the date.
    fn start(&self) -> Duration;

    /// Returns how many more pages the machine could give now.
    fn further_pages(&self) -> u64;

    /// Returns the time since the beginning of 1970.
    fn realtime(&self) -> Duration {
        self.start().saturating_add(self.monotonic())
    }

    /// Returns which of the standard streams outside are a console: input, output, error output.
    fn are_console(&self) -> [bool; 3];

    /// Writes to a standard stream outside: 1 is output, 2 error output. Returns how many bytes were written.
    fn write_outside(&mut self, stream: u32, bytes: &[u8]) -> Result<usize, Errno>;

    /// Asks that the console give each byte as it is typed, and show nothing by itself. Returns whether it does.
    fn borrow_terminal(&mut self) -> bool;

    /// Asks that the next input from outside be reported to the instance. Asking once more changes nothing.
    fn await_input(&mut self);

    /// Keeps so many bytes: no more than the rest can be allocated as far as
    /// [that](tench_linux_memory::Hardware::can_allocate) is asked first.
    fn keep_room(&mut self, bytes: usize);

    /// Makes ready for errands.
    ///
    /// # Errors
    /// `ENOMEM`
    fn begin_errands(&mut self) -> Result<(), Errno>;

    /// Lets an errand be done while others are served. The finding is reported to the instance, with this number.
    fn send_errand(&mut self, number: u64, errand: Errand);

    /// Does an errand at once.
    ///
    /// # Errors
    /// Those of the file server.
    fn run_errand(&mut self, errand: Errand) -> Result<Finding, Errno>;

    /// Fills memory with random bytes.
    fn random(&mut self, into: &mut [u8]);

    /// Reports something to whoever runs the instance.
    fn report(&mut self, line: &str);
}

/// Everything that the processes of an instance share.
#[derive(Debug)]
pub struct System<M: Machine> {
    /// Pages and objects, and the machine.
    pub memory: Memory<M>,
    /// Files.
    pub tree: Tree,
    /// Open files.
    pub descriptions: Descriptions,
    /// Set if calls are traced.
    pub traces: bool,
    /// Set if calls are traced, or if some thread has a filter of calls.
    pub inspects_calls: bool,
    /// Set if nobody is told which calls are missing.
    pub is_quiet: bool,
    /// The missing calls that were reported.
    pub(crate) reported: BTreeSet<Sysno>,
    /// Code that all programs find in their memory.
    pub(crate) trampoline: ObjectId,
    /// For each standard stream outside that is no console, the pipe, and its other end.
    outside: [Option<(NodeId, DescriptionId)>; 3],
    /// The date at the machine's start, if a program has set the clock.
    pub(crate) date_at_start: Option<Duration>,
    /// The log of reports.
    pub(crate) log: Log,
    /// Adjustment of the real-time clock.
    pub(crate) adjustment: Adjustment,
    /// The console, and pseudo-terminals.
    pub terminals: Terminals,
    /// Memory of the processes.
    pub spaces: Spaces<M>,
    /// Threads that wait for words in memory.
    pub futexes: Futexes,
    /// Locks of files.
    pub locks: FileLocks,
    /// Timers of the processes.
    pub(crate) timers: TimerNames,
    /// Sockets. Files that are sent are on their way as open files.
    pub sockets: Sockets<DescriptionId>,
    /// Mounts of Tench's files.
    pub mounts: Mounts,
    /// Watches of files.
    pub watches: Watches<NodeId>,
    /// Requests for signals about directories.
    pub(crate) notices: Notices,
    /// Message queues.
    pub queues: Queues<Option<Notice>>,
    /// Shared memory, semaphores and message queues of System V.
    pub ipc: Ipc,
    /// Set while files are closed that were in sockets.
    settles: bool,
    /// Things with descriptors that are no files.
    pub specials: Specials,
    /// The open files that tell somebody of their events by a signal.
    pub(crate) owners: Owners,
    /// A buffer through which calls copy.
    pub(crate) buffer: Vec<u8>,
    /// Number of further calls before it is checked whether memory is short.
    pub(crate) calls_left: u32,
    /// Set if memory was short when that was checked last.
    pub(crate) is_short: bool,
    /// Bytes that the machine keeps for telling those who watch something.
    pub(crate) kept: usize,
    /// Processes that wait, and for what.
    pub waiters: Waiters,
    /// Random bytes that stay as long as the instance, once somebody has asked for them.
    pub(crate) start_identifier: Option<[u8; 16]>,
    /// Threads that others trace.
    pub(crate) tracing: Traces,
    /// The host name and the domain name.
    pub(crate) names: [Vec<u8>; 2],
    /// Processes for which signals have come.
    pub(crate) signalled: VecDeque<u32>,
}

impl<M: Machine> System<M> {
    /// Returns a system with the files that every system has.
    ///
    /// # Errors
    /// `ENOMEM`
    pub fn new(machine: M) -> Result<System<M>, Errno> {
        let mut memory = Memory { pool: Pool::new(), objects: Objects::new(), hardware: machine };
        let trampoline = memory.objects.make(vdso::IMAGE.len() as u64, vdso::IMAGE);
        let mut system = System {
            memory,
            tree: Tree::new(Time::default()),
            descriptions: Descriptions::default(),
            traces: false,
            inspects_calls: false,
            is_quiet: false,
            reported: BTreeSet::new(),
            trampoline,
            outside: [None; 3],
            date_at_start: None,
            log: Log::default(),
            adjustment: Adjustment::default(),
            terminals: Terminals::new(Terminal::new(FIRST)),
            spaces: Spaces::new(),
            futexes: Futexes::default(),
            locks: FileLocks::default(),
            timers: TimerNames::default(),
            sockets: Sockets::new(Limits::default()),
            mounts: Mounts::default(),
            watches: Watches::new(),
            notices: Notices::default(),
            queues: Queues::default(),
            ipc: Ipc::default(),
            settles: false,
            specials: Specials::default(),
            owners: Owners::new(),
            buffer: Vec::new(),
            calls_left: 0,
            is_short: false,
            kept: 0,
            waiters: Waiters::default(),
            start_identifier: None,
            tracing: Traces::default(),
            names: ["tench", "(none)"].map(Vec::from),
            signalled: VecDeque::new(),
        };
        system.update_time();
        for path in [&b"/dev"[..], b"/tmp", b"/etc", b"/root"] {
            system.tree.make_directories(&mut system.memory, path)?;
        }
        let places = (Tree::ROOT, Tree::ROOT);
        let temporary = system.tree.find(places, b"/tmp", tench_linux_files::Last::Follow)?;
        system.tree.node_mut(temporary).attributes.permissions = 0o1777;
        for (path, device) in devices::NODES {
            let place = system.tree.walk(Tree::ROOT, Tree::ROOT, path, tench_linux_files::Last::Name)?;
            // The console is what the super-user's programs talk to; a terminal of one's own is `/dev/tty`.
            let permissions = if *device == devices::CONSOLE { 0o600 } else { 0o666 };
            system.tree.make(&mut system.memory, &place, NewNode::Character(*device), permissions)?;
        }
        system.add_generated()?;
        system.add_slaves()?;
        Ok(system)
    }

    /// Returns the date: time since the beginning of 1970.
    pub fn date(&self) -> Duration {
        let hardware = &self.memory.hardware;
        self.date_at_start.map_or_else(|| hardware.realtime(), |start| hardware.monotonic().saturating_add(start))
    }

    /// Logs a line, and tells it to whoever runs the instance.
    pub(crate) fn report(&mut self, line: &str) {
        self.note(line);
        self.memory.hardware.report(line);
    }

    /// Adds a line to the log, which who waits for one reads.
    pub(crate) fn note(&mut self, line: &str) {
        let now = self.memory.hardware.monotonic();
        self.log.add(now, line);
        self.waiters.wake(Key::Log);
    }

    /// Sets the time that is recorded for changes of files.
    pub fn update_time(&mut self) {
        let now = self.date();
        self.tree.now = Time { seconds: now.as_secs().cast_signed(), nanoseconds: now.subsec_nanos() };
    }

    /// Adds a file with contents that stay.
    ///
    /// # Errors
    /// Those of [`Tree::make`].
    pub fn add_file(&mut self, path: &[u8], contents: &'static [u8], permissions: u32) -> Result<(), Errno> {
        let split = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        self.tree.make_directories(&mut self.memory, &path[..split])?;
        let place = self.tree.walk(Tree::ROOT, Tree::ROOT, path, tench_linux_files::Last::Name)?;
        self.tree.make(&mut self.memory, &place, NewNode::Regular(contents), permissions).map(drop)
    }

    /// Opens the standard streams of the first process: the console, or pipes to and from outside.
    ///
    /// # Errors
    /// Those of [`Tree::open`].
    pub fn open_streams(&mut self, descriptors: &mut Descriptors) -> Result<(), Errno> {
        let are_console = self.memory.hardware.are_console();
        if are_console[0] && self.memory.hardware.borrow_terminal() {
            self.terminals.console.is_lent = true;
            self.memory.hardware.await_input();
        }
        for (number, is_console) in (0..).zip(are_console) {
            let description = if is_console {
                let places = (Tree::ROOT, Tree::ROOT);
                let node = self.tree.open(&mut self.memory, places, b"/dev/console", open::RDWR, 0)?;
                self.open_end(node, open::RDWR, End::Terminal(TerminalId::Console))
            } else {
                self.open_outside(number)
            };
            descriptors.set(number, Some(Descriptor { description, closes_on_exec: false }));
        }
        Ok(())
    }

    /// Opens a pipe from or to a standard stream outside.
    fn open_outside(&mut self, stream: u32) -> DescriptionId {
        let node = self.tree.make_pipe();
        let (inner, outer) = if stream == 0 { (open::RDONLY, open::WRONLY) } else { (open::WRONLY, open::RDONLY) };
        let description = self.open(node, inner);
        self.tree.share(node);
        self.outside[stream as usize] = Some((node, self.open(node, outer)));
        description
    }

    /// Returns the standard stream outside to which a pipe leads.
    pub(crate) fn stream_of(&self, pipe: NodeId) -> Option<u32> {
        let streams = (0..).zip(&self.outside);
        streams
            .filter_map(|(stream, outside)| Some((stream, outside.as_ref()?.0)))
            .find(|(_, node)| *node == pipe)
            .map(|(stream, _)| stream)
    }

    /// Closes the other ends of pipes from and to outside.
    pub(crate) fn close_outside(&mut self) {
        for (_, description) in core::mem::take(&mut self.outside).into_iter().flatten() {
            self.close(description);
        }
    }

    /// Takes input from outside; nothing at its end.
    pub(crate) fn input(&mut self, bytes: &[u8]) {
        let Some((node, _)) = self.outside[0] else {
            self.terminals.console.input(bytes);
            // Echo that nobody sees is no reason to lose input.
            let _ = self.show_console();
            if self.terminals.console.is_lent {
                // Keys that are signals count even if nobody reads.
                self.memory.hardware.await_input();
            }
            self.waiters.wake(Key::TerminalOutput(TerminalId::Console));
            return self.waiters.wake(Key::Terminal(TerminalId::Console));
        };
        if bytes.is_empty() {
            if let Some((_, description)) = self.outside[0].take() {
                self.close(description);
            }
        } else if let Some(pipe) = self.tree.pipe_mut(node) {
            // There is room: input is asked for when the pipe is empty.
            let written = pipe.write(bytes);
            debug_assert_eq!(written, bytes.len());
        }
        self.waiters.wake(Key::Readable(node));
    }

    /// Opens a node that was found, with a user for the open file.
    pub fn open(&mut self, node: NodeId, flags: u32) -> DescriptionId {
        let id = self.descriptions.add(node, flags);
        let description = self.descriptions.get(id);
        let (reads, writes) = (description.reads(), description.writes());
        if let Some(pipe) = self.tree.pipe_mut(node) {
            pipe.open(reads, writes);
            self.waiters.wake(Key::Opened(node));
        }
        id
    }

    /// Closes a descriptor's open file, if nobody else uses it.
    pub fn close(&mut self, description: DescriptionId) {
        let open_file = self.descriptions.get(description);
        let (reads, writes, watchers) = (open_file.reads(), open_file.writes(), open_file.watchers);
        let end = open_file.end;
        if watchers > 0 && self.descriptions.is_last(description) {
            self.end_watching(description);
        }
        let is_watched = self.is_watching();
        if is_watched && self.descriptions.is_last(description) {
            self.tell_of_closing(description);
        }
        let Some(node) = self.descriptions.release(description) else { return self.collect_sockets(description) };
        if !self.locks.is_empty() {
            self.drop_locks(node, description);
        }
        if let Some(pipe) = self.tree.pipe_mut(node) {
            pipe.close(reads, writes);
            self.waiters.wake(Key::Readable(node));
            self.waiters.wake(Key::Writable(node));
        }
        if let Some(end) = end {
            self.close_end(end);
        }
        let closed = self.tree.node(node);
        // Another user is an open file that is only a path.
        if let Kind::Special(number) = closed.kind
            && closed.users() == 1
        {
            self.end_special(number);
        }
        self.tree.release(&mut self.memory, node);
        if is_watched {
            self.settle_watches();
        }
    }

    /// Ends something without a name that nobody has open.
    fn end_special(&mut self, number: u32) {
        match self.specials.remove(number) {
            Some(Special::Timer(timer)) => self.waiters.set_alarm(Alarm::Timer, number, timer.next, None),
            Some(Special::Epoll(epoll)) => self.end_epoll(number, epoll),
            Some(Special::Socket(socket)) => self.end_socket(&socket),
            Some(Special::Queue(queue)) => self.queues.close(queue),
            Some(Special::Watches(instance)) => self.watches.close(instance),
            Some(Special::Counter(_) | Special::Signals(_) | Special::Process(_)) | None => {}
        }
    }

    /// Ends a socket that nobody has open.
    fn end_socket(&mut self, socket: &Socket) {
        let closed = self.sockets.close(socket.id);
        debug_assert!(closed.is_ok(), "a socket is closed once");
        if let Some(node) = socket.node {
            self.release_node(node);
        }
        self.settle_sockets();
    }

    /// Wakes who waits for what has happened to sockets, and closes the files that nobody can receive any more.
    pub(crate) fn settle_sockets(&mut self) {
        // A file that is closed may be a socket with files in it, and so on: they are closed one after the other, and
        // not each within the one before, for which the stack might be too small.
        if core::mem::replace(&mut self.settles, true) {
            return;
        }
        loop {
            for (socket, event) in self.sockets.take_events() {
                self.waiters.wake(Key::Socket(socket, event));
            }
            let rights = self.sockets.take_rights();
            if rights.is_empty() {
                break;
            }
            for description in rights {
                self.close(description);
            }
        }
        self.settles = false;
    }

    /// Ends the sockets that only hold each other, by messages that nobody can receive, if an open file that has lost a
    /// user may have been the last of them that a process had.
    fn collect_sockets(&mut self, description: DescriptionId) {
        if self.sockets.held_rights() == 0 {
            return;
        }
        let System { sockets, specials, descriptions, tree, .. } = self;
        let file = |right| {
            let description: &Description = descriptions.find(right);
            let socket = match tree.node(description.node).kind {
                Kind::Special(number) if !description.is_path() => specials.socket(number),
                _ => None,
            };
            SentFile { users: description.users(), socket }
        };
        if let Some(socket) = file(description).socket {
            sockets.collect(socket, file);
            self.settle_sockets();
        }
    }

    /// Records that a timer with a file descriptor has expired. No alarm is set for its next expiry until its count is
    /// read, since many short timers would leave no time for anything else.
    pub(crate) fn pass_timer(&mut self, number: u32, now: Duration) {
        if let Special::Timer(timer) = self.specials.get(number) {
            timer.pass(now);
            self.waiters.wake(Key::Timer(number));
        }
    }

    /// Takes the number of expiries of a timer with a file descriptor, and sets an alarm for the next one.
    pub(crate) fn take_timer(&mut self, number: u32, now: Duration) -> u64 {
        let Special::Timer(timer) = self.specials.get(number) else { return 0 };
        let before = timer.next;
        timer.pass(now);
        let (count, next) = (core::mem::take(&mut timer.count), timer.next);
        self.waiters.set_alarm(Alarm::Timer, number, before, next);
        count
    }

    /// Lets what is to happen to a process at a date happen at another time, since the clock was set.
    pub(crate) fn move_timers(&mut self, process: &mut Process<M>, moved: impl Fn(Duration) -> Duration) {
        for SignalTimer { name, timer, .. } in process.timers.values_mut().filter(|one| one.timer.is_by_date) {
            let before = timer.next;
            timer.next = before.map(&moved);
            self.waiters.set_alarm(Alarm::SignalTimer, *name, before, timer.next);
        }
        for thread in &mut process.threads {
            let (id, waiting) = (thread.id, thread.waiting.as_mut().filter(|waiting| waiting.is_by_date));
            if let Some(Waiting { deadline, .. }) = waiting {
                let before = *deadline;
                *deadline = before.map(&moved);
                self.waiters.set_alarm(Alarm::Wait, id, before, *deadline);
            }
        }
    }

    /// Lets timers with descriptors that are due at a date be due at another time, since the clock was set.
    pub(crate) fn move_date_timers(&mut self, moved: impl Fn(Duration) -> Duration) {
        for (number, timer) in self.specials.timers().filter(|(_, timer)| timer.is_by_date) {
            let before = timer.next;
            timer.next = before.map(&moved);
            self.waiters.set_alarm(Alarm::Timer, number, before, timer.next);
        }
    }

    /// Sends a process a signal. It is delivered when the present call has been served.
    pub fn send(&mut self, process: &mut Process<M>, info: Info) {
        self.send_to(process, info, None);
    }

    /// Sends a signal to a process, or to its thread with an index. It is delivered when the present call has been
    /// served.
    pub(crate) fn send_to(&mut self, process: &mut Process<M>, info: Info, thread: Option<usize>) {
        if process.has_ended() {
            return;
        }
        if info.signal == number::CONT && process.is_stopped {
            process.is_continued = true;
        }
        process.send(info, thread);
        self.signalled.push_back(process.id);
        self.waiters.wake(Key::Signal(process.id));
    }

    /// Has a traced thread attended to when the present call has been served.
    pub(crate) fn touch_traced(&mut self, thread: u32) {
        self.tracing.touched.push_back(thread);
        self.signalled.push_back(thread);
    }

    /// Returns the number of all pages and of those that are free, with those that the instance could still get.
    pub(crate) fn count_pages(&self) -> (u64, u64) {
        let (total, free) = (self.memory.pool.total() as u64, self.memory.pool.free() as u64);
        let more = self.memory.hardware.further_pages().min(MOST_PAGES.saturating_sub(total));
        (total + more, free + more)
    }

    /// Copies bytes of a process until one cannot be read. Returns their number.
    pub fn read(&mut self, space: SpaceId, address: u64, into: &mut [u8]) -> usize {
        self.spaces.get(space).space.read(&mut self.memory, address, into)
    }

    /// Copies bytes to a process until one cannot be written. Returns their number.
    pub fn write(&mut self, space: SpaceId, address: u64, bytes: &[u8]) -> usize {
        self.spaces.get(space).space.write(&mut self.memory, address, bytes)
    }

    /// As [`write`](Self::write), also where the process may only read, as long as others do not see it.
    pub(crate) fn write_by_force(&mut self, space: SpaceId, address: u64, bytes: &[u8]) -> usize {
        self.spaces.get(space).space.write_by_force(&mut self.memory, address, bytes)
    }

    /// Removes a process from its memory, which ends with the last one.
    pub(crate) fn release_space(&mut self, id: SpaceId) {
        if let Some(space) = self.spaces.release(id) {
            space.end(&mut self.memory);
        }
    }

    /// Shows the console's output: by the first of the two output streams that leads there. If none
    /// does, nobody sees it.
    ///
    /// # Errors
    /// Those of the machine.
    pub(crate) fn show_console(&mut self) -> Result<(), Errno> {
        let mut output = &self.terminals.console.take_output()[..];
        let [_, is_output, is_error] = self.memory.hardware.are_console();
        let stream = match (is_output, is_error) {
            (true, _) => 1,
            (false, true) => 2,
            (false, false) => return Ok(()),
        };
        while !output.is_empty() {
            let count = self.memory.hardware.write_outside(stream, output)?;
            output = &output[count..];
        }
        Ok(())
    }

    /// Ends what a thread's call has begun that is not made again.
    pub(crate) fn cancel(&mut self, thread: u32, waiting: &Waiting) {
        self.futexes.remove(thread);
        self.locks.end_wait(thread);
        self.ipc.end_wait(thread);
        self.end_inquiry(thread);
        self.terminals.end_reads(thread, &waiting.keys);
        if let Some((description, _)) = waiting.opening {
            self.close(description);
        }
    }
}
