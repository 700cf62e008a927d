//! An instance on a machine whose page tables are arrays, and a program in it.

#![allow(dead_code, reason = "each test needs a part of it")]

#[path = "../../../memory/tests/machine/mod.rs"]
mod machine;

use std::time::Duration;

use tench_linux::descriptors::Descriptors;
use tench_linux::{Caller, Machine, Outcome, Process, System};
use tench_linux_files::{Errno, Kind, Node, Tree};
use tench_linux_memory::{Access, Hardware, Page, Rights};

/// The machine, with a console that is recorded.
#[derive(Debug)]
pub struct Console {
    machine: machine::Machine,
    /// Everything that was written.
    pub output: Vec<u8>,
    /// Everything that was reported.
    pub reports: Vec<String>,
    time: Duration,
}

impl Hardware for Console {
    type Root = ();
    type Table = machine::Table;

    fn grow(&mut self, pages: u32) -> bool {
        self.machine.grow(pages)
    }
    fn bytes(&mut self, page: Page) -> &mut [u8; 4096] {
        self.machine.bytes(page)
    }
    fn copy(&mut self, from: Page, to: Page) {
        self.machine.copy(from, to);
    }
    fn make_root(&mut self) -> Result<(), Errno> {
        self.machine.make_root()
    }
    fn make_table(&mut self, root: &mut (), address: u64) -> Result<machine::Table, Errno> {
        self.machine.make_table(root, address)
    }
    fn map(&mut self, table: &mut machine::Table, first: usize, pages: &[Page], rights: Rights) -> Result<(), Errno> {
        self.machine.map(table, first, pages, rights)
    }
    fn unmap(&mut self, table: &mut machine::Table, first: usize, count: usize) {
        self.machine.unmap(table, first, count);
    }
    fn share(&mut self, from: &mut machine::Table, to: &mut machine::Table) -> Result<(), Errno> {
        self.machine.share(from, to)
    }
    fn drop_table(&mut self, root: &mut (), table: machine::Table) {
        self.machine.drop_table(root, table);
    }
    fn drop_root(&mut self, root: ()) {
        self.machine.drop_root(root);
    }
}

impl Machine for Console {
    fn monotonic(&self) -> Duration {
        self.time
    }
    fn realtime(&self) -> Duration {
        self.time
    }
    fn write_console(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.output.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn read_console(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        let line = &b"typed\n"[..into.len().min(6)];
        into[..line.len()].copy_from_slice(line);
        Ok(line.len())
    }
    fn random(&mut self, into: &mut [u8]) {
        into.fill(7);
    }
    fn sleep(&mut self, duration: Duration) {
        self.time = self.time.saturating_add(duration);
    }
    fn report(&mut self, line: &str) {
        self.reports.push(line.to_owned());
    }
}

impl Console {
    /// Returns the number of address spaces and tables that exist.
    pub fn alive(&self) -> usize {
        self.machine.alive
    }
}

/// An instance with a process.
pub struct Instance {
    pub system: System<Console>,
    pub process: Process<Console>,
}

/// Returns a program's file: a segment with code at 0x20_0000, one with data behind it.
pub fn program() -> Vec<u8> {
    let mut file = vec![0; 0x2000];
    let mut put = |offset: usize, bytes: &[u8]| file[offset..offset + bytes.len()].copy_from_slice(bytes);
    put(0, b"\x7fELF\x02\x01\x01");
    put(16, &[2, 0, 183, 0, 1, 0, 0, 0]);
    put(24, &0x20_0100u64.to_le_bytes());
    put(32, &64u64.to_le_bytes());
    put(52, &[64, 0, 56, 0, 2, 0]);
    for (index, (flags, offset, address, file_size, memory_size)) in
        [(5u32, 0u64, 0x20_0000u64, 0x1000u64, 0x1000u64), (6, 0x1000, 0x20_1000, 0x800, 0x5000)]
            .into_iter()
            .enumerate()
    {
        let at = 64 + 56 * index;
        put(at, &1u32.to_le_bytes());
        put(at + 4, &flags.to_le_bytes());
        let words = [offset, address, address, file_size, memory_size, 0x1000];
        put(at + 8, &words.map(u64::to_le_bytes).concat());
    }
    put(0x1000, b"data\0");
    file[0x1800..].fill(0xff);
    file
}

/// Returns a system with a program's file at `/bin/program`, with so many pages of memory.
pub fn system(file: Vec<u8>, pages: usize) -> System<Console> {
    let machine = machine::Machine::memory(pages).hardware;
    let console = Console { machine, output: Vec::new(), reports: Vec::new(), time: Duration::from_secs(1) };
    let mut system = System::new(console).unwrap();
    system.add_file(b"/bin/program", file.leak(), 0o755).unwrap();
    system
}

impl Instance {
    /// Returns an instance in which the program has just been started.
    pub fn new(pages: usize) -> Instance {
        let mut system = system(program(), pages);
        let mut descriptors = Descriptors::default();
        system.open_console(&mut descriptors).unwrap();
        let image = system.load(Tree::ROOT, b"/bin/program", &[b"program".to_vec()], &[b"A=b".to_vec()]).unwrap();
        system.tree.share(Tree::ROOT);
        let process = Process::first(image, b"/bin/program", descriptors, Tree::ROOT);
        Instance { system, process }
    }

    /// Makes a call.
    pub fn call(&mut self, number: u64, arguments: [u64; 6]) -> Outcome {
        Caller { system: &mut self.system, process: &mut self.process }.call(number, arguments)
    }

    /// Touches memory as the program. Returns whether it may.
    pub fn touch(&mut self, address: u64, access: Access) -> bool {
        self.process.space.fault(&mut self.system.memory, address, access).is_ok()
    }

    /// Checks all invariants.
    pub fn check(&self) {
        self.system.memory.check(self.process.space.pages()).unwrap();
        self.process.space.check(&self.system.memory, |table, index| table[index]).unwrap();
        self.system.tree.check().unwrap();
    }

    /// Ends the process as when it exits. All that it had is free afterwards, but for files with names.
    pub fn end(mut self) -> System<Console> {
        let descriptors: Vec<_> = self.process.descriptors.all().collect();
        for (_, descriptor) in descriptors {
            self.system.close(descriptor.description);
        }
        self.system.tree.release(&mut self.system.memory, self.process.directory);
        self.process.space.end(&mut self.system.memory);
        self.system.memory.check(core::iter::empty()).unwrap();
        self.system.tree.check().unwrap();
        assert_eq!(self.system.memory.hardware.alive(), 0, "address spaces and tables");
        assert_eq!(self.system.descriptions.count(), 0, "open files");
        let users: u32 = self.system.tree.nodes().map(Node::users).sum();
        assert_eq!(users, 1, "only the root stays without an entry");
        let files = self.system.tree.nodes().filter(|node| matches!(node.kind, Kind::Regular(_))).count();
        assert_eq!(self.system.memory.objects.all().count(), files, "only files have contents");
        self.system
    }
}
