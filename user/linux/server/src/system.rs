//! Everything that the processes of an instance share.

use alloc::collections::{BTreeSet, VecDeque};
use core::time::Duration;

use tench_linux_calls::Sysno;
use tench_linux_calls::numbers::open;
use tench_linux_files::{Errno, NewNode, NodeId, Time, Tree};
use tench_linux_memory::{Memory, ObjectId, Objects, Pool};

use crate::descriptors::{DescriptionId, Descriptions, Descriptor, Descriptors};
use crate::devices;
use crate::exec::TRAMPOLINE_CODE;
use crate::process::Process;
use crate::signals::{Info, number};
use crate::terminal::Terminal;
use crate::thread::Threads;
use crate::waiting::{Key, Waiters, Waiting};

/// The machine, as the personality needs it.
pub trait Machine: Threads {
    /// Returns the time since the machine started.
    fn monotonic(&self) -> Duration;

    /// Returns the time since the beginning of 1970.
    fn realtime(&self) -> Duration;

    /// Writes to the console. Returns how many bytes were written.
    fn write_console(&mut self, bytes: &[u8]) -> Result<usize, Errno>;

    /// Asks that the console's next input be reported to the instance. Asking once more changes nothing.
    fn await_input(&mut self);

    /// Fills memory with random bytes.
    fn random(&mut self, into: &mut [u8]);

    /// Reports something to whoever runs the instance.
    fn report(&mut self, line: &str);
}

/// Everything that the processes of an instance share.
#[derive(Debug)]
pub struct System<M> {
    /// Pages and objects, and the machine.
    pub memory: Memory<M>,
    /// Files.
    pub tree: Tree,
    /// Open files.
    pub descriptions: Descriptions,
    /// Set if calls are traced.
    pub traces: bool,
    /// Set if nobody is told which calls are missing.
    pub is_quiet: bool,
    /// The missing calls that were reported.
    pub(crate) reported: BTreeSet<Sysno>,
    /// Code that ends handlers.
    pub(crate) trampoline: ObjectId,
    /// The console's input.
    pub terminal: Terminal,
    /// Who waits for what.
    pub waiters: Waiters,
    /// Processes for which signals have come.
    pub(crate) attention: VecDeque<u32>,
}

impl<M: Machine> System<M> {
    /// Returns a system with the files that every system has.
    ///
    /// # Errors
    /// `ENOMEM`
    pub fn new(machine: M) -> Result<System<M>, Errno> {
        let mut memory = Memory { pool: Pool::new(), objects: Objects::new(), hardware: machine };
        let trampoline = memory.objects.make(TRAMPOLINE_CODE.len() as u64, TRAMPOLINE_CODE);
        let mut system = System {
            memory,
            tree: Tree::new(Time::default()),
            descriptions: Descriptions::default(),
            traces: false,
            is_quiet: false,
            reported: BTreeSet::new(),
            trampoline,
            terminal: Terminal::default(),
            waiters: Waiters::default(),
            attention: VecDeque::new(),
        };
        system.update_time();
        for path in [&b"/dev"[..], b"/tmp", b"/etc", b"/root"] {
            system.tree.make_directories(&mut system.memory, path)?;
        }
        for (path, device) in devices::NODES {
            let place = system.tree.walk(Tree::ROOT, Tree::ROOT, path, tench_linux_files::Last::Name)?;
            system.tree.make(&mut system.memory, &place, NewNode::Character(*device), 0o666)?;
        }
        Ok(system)
    }

    /// Sets the time that is recorded for changes of files.
    pub fn update_time(&mut self) {
        let now = self.memory.hardware.realtime();
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

    /// Opens the console as the standard streams of a process.
    ///
    /// # Errors
    /// Those of [`Tree::open`].
    pub fn open_console(&mut self, descriptors: &mut Descriptors) -> Result<(), Errno> {
        let places = (Tree::ROOT, Tree::ROOT);
        let node = self.tree.open(&mut self.memory, places, b"/dev/console", open::RDWR, 0)?;
        let description = self.open(node, open::RDWR);
        for number in 0..3 {
            if number > 0 {
                self.descriptions.share(description);
            }
            descriptors.set(number, Some(Descriptor { description, closes_on_exec: false }));
        }
        Ok(())
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
        let (reads, writes) = (open_file.reads(), open_file.writes());
        let Some(node) = self.descriptions.release(description) else { return };
        if let Some(pipe) = self.tree.pipe_mut(node) {
            pipe.close(reads, writes);
            self.waiters.wake(Key::Readable(node));
            self.waiters.wake(Key::Writable(node));
        }
        self.tree.release(&mut self.memory, node);
    }

    /// Sends a process a signal. It is delivered when the present call has been served.
    pub fn send(&mut self, process: &mut Process<M>, info: Info) {
        if process.has_ended() {
            return;
        }
        if info.signal == number::CONT && process.is_stopped {
            process.is_continued = true;
        }
        process.signals.send(info);
        self.attention.push_back(process.id);
        self.waiters.wake(Key::Signal(process.id));
    }

    /// Ends what a call has begun that is not made again.
    pub(crate) fn cancel(&mut self, waiting: &Waiting) {
        if let Some((description, _)) = waiting.opening {
            self.close(description);
        }
    }
}
