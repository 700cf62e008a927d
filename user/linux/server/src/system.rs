//! Everything that the processes of an instance share.

use alloc::collections::BTreeSet;
use core::time::Duration;

use tench_linux_calls::Sysno;
use tench_linux_calls::numbers::open;
use tench_linux_files::{Errno, NewNode, Time, Tree};
use tench_linux_memory::{Hardware, Memory, Objects, Pool};

use crate::descriptors::{DescriptionId, Descriptions, Descriptor, Descriptors};
use crate::devices;

/// The machine, as the personality needs it.
pub trait Machine: Hardware {
    /// Returns the time since the machine started.
    fn monotonic(&self) -> Duration;

    /// Returns the time since the beginning of 1970.
    fn realtime(&self) -> Duration;

    /// Writes to the console. Returns how many bytes were written.
    fn write_console(&mut self, bytes: &[u8]) -> Result<usize, Errno>;

    /// Reads from the console, and waits for that if there is nothing. Returns how many bytes were read; 0 at the end.
    fn read_console(&mut self, into: &mut [u8]) -> Result<usize, Errno>;

    /// Fills memory with random bytes.
    fn random(&mut self, into: &mut [u8]);

    /// Waits.
    fn sleep(&mut self, duration: Duration);

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
}

impl<M: Machine> System<M> {
    /// Returns a system with the files that every system has.
    ///
    /// # Errors
    /// `ENOMEM`
    pub fn new(machine: M) -> Result<System<M>, Errno> {
        let memory = Memory { pool: Pool::new(), objects: Objects::new(), hardware: machine };
        let mut system = System {
            memory,
            tree: Tree::new(Time::default()),
            descriptions: Descriptions::default(),
            traces: false,
            is_quiet: false,
            reported: BTreeSet::new(),
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
        let description = self.descriptions.add(node, open::RDWR);
        for number in 0..3 {
            if number > 0 {
                self.descriptions.share(description);
            }
            descriptors.set(number, Some(Descriptor { description, closes_on_exec: false }));
        }
        Ok(())
    }

    /// Closes a descriptor's open file, if nobody else uses it.
    pub fn close(&mut self, description: DescriptionId) {
        if let Some(node) = self.descriptions.release(description) {
            self.tree.release(&mut self.memory, node);
        }
    }
}
