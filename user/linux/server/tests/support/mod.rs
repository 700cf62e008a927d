//! An instance on a machine whose page tables are arrays, and a program in it.

#![allow(dead_code, unused_imports, reason = "each test needs a part of it")]

mod console;
pub mod files;
pub mod limited;
#[path = "../../../memory/tests/machine/mod.rs"]
mod machine;
mod messages;
pub mod tracer;
mod tracing;

use std::cell::Cell;
use std::time::Duration;

pub use console::{Console, Doing, START, Thread};
pub use files::Files;
pub use messages::{ABORTED, RESULT_TAG};

use tench_linux::descriptors::Descriptor;
use tench_linux::mounts::Mount;
use tench_linux::mounts::errand::FileServer;
use tench_linux::terminals::End;
use tench_linux::thread::State;
use tench_linux::{Fault, Instance, Process, System};
use tench_linux_files::{Kind, Node, Version};
use tench_linux_locks::Owner;
use tench_linux_memory::{Access, Backing};

/// An instance in which programs are played.
pub struct Play {
    pub instance: Instance<Console>,
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
    let time = Duration::from_secs(1);
    let (output, reports) = (Vec::new(), Vec::new());
    let console = Console {
        machine,
        output,
        reports,
        time,
        passes: Duration::ZERO,
        read: Cell::new(0),
        are_console: [true; 3],
        stream: 0,
        lends: false,
        awaits_input: false,
        threads: 0,
        kept: 0,
        files: Files::default(),
    };
    let mut system = System::new(console).unwrap();
    system.add_file(b"/bin/program", file.leak(), 0o755).unwrap();
    system
}

impl Play {
    /// Returns an instance in which the program has just been started.
    pub fn new(pages: usize) -> Play {
        Play::with_streams(pages, true)
    }

    /// Returns an instance at a console that gives each byte as it is typed, or edits lines itself.
    pub fn with_terminal(pages: usize, is_lent: bool) -> Play {
        let mut system = system(program(), pages);
        system.memory.hardware.lends = is_lent;
        Play::start(system)
    }

    /// Returns an instance whose standard streams are a console, or are not.
    pub fn with_streams(pages: usize, are_console: bool) -> Play {
        let mut system = system(program(), pages);
        system.memory.hardware.are_console = [are_console; 3];
        Play::start(system)
    }

    /// Returns an instance of which only the output is no console.
    pub fn with_redirected_output(pages: usize) -> Play {
        let mut system = system(program(), pages);
        system.memory.hardware.are_console[1] = false;
        Play::start(system)
    }

    fn start(system: System<Console>) -> Play {
        let mut instance = Instance::new(system);
        instance.start(b"/bin/program", &[b"program".to_vec()], &[b"A=b".to_vec()]).unwrap();
        Play { instance }
    }

    /// Returns what a thread does, if it exists and has not ended.
    pub fn doing(&mut self, id: u32) -> Option<Doing> {
        let owner = self.instance.processes.owner(id)?;
        let process = self.instance.processes.get(owner)?;
        let thread = &process.threads[process.index_of(id).ok()?];
        (thread.state != State::Ended).then_some(thread.machine.doing)
    }

    /// Returns the process of a thread, which is the present one then.
    pub fn process_of(&mut self, thread: u32) -> Option<&mut Process<Console>> {
        let owner = self.instance.processes.owner(thread)?;
        let process = self.instance.processes.get(owner)?;
        process.present = process.index_of(thread).ok()?;
        Some(process)
    }

    /// Returns a thread.
    pub fn thread(&mut self, id: u32) -> &mut Thread {
        &mut self.process_of(id).unwrap().thread_mut().machine
    }

    /// Makes a call of a process that runs. Returns its result, if the process runs afterwards.
    pub fn call(&mut self, id: u32, number: u64, arguments: [u64; 6]) -> Option<u64> {
        let thread = self.thread(id);
        assert_eq!(thread.doing, Doing::Runs);
        thread.doing = Doing::Waits;
        thread.registers.x[..6].copy_from_slice(&arguments);
        thread.registers.x[8] = number;
        thread.registers.pc = thread.registers.pc.wrapping_add(4);
        self.instance.call(id, number, &arguments);
        self.send_answer(id);
        (self.doing(id)? == Doing::Runs).then(|| self.thread(id).registers.x[0])
    }

    /// Shows a directory of the file server at a place.
    pub fn mount(&mut self, directory: &str, place: &str, is_read_only: bool) {
        let (directory, place) = (directory.to_owned(), place.to_owned());
        self.instance.system.mount(Mount { directory, mount_point: place, is_read_only }).unwrap();
    }

    /// Lets the file server do its next errand. Returns whether there was one.
    pub fn do_errand(&mut self) -> bool {
        let Some((number, finding)) = self.instance.system.memory.hardware.files.do_errand() else { return false };
        self.instance.take_finding(number, finding);
        true
    }

    /// Makes a call, for which the file server does what it has to. Returns its result.
    pub fn call_outside(&mut self, id: u32, number: u64, arguments: [u64; 6]) -> i64 {
        let result = self.call(id, number, arguments);
        while self.do_errand() {}
        let thread = self.thread(id);
        assert_eq!(thread.doing, Doing::Runs, "the call is over");
        result.unwrap_or(thread.registers.x[0]).cast_signed()
    }

    /// Touches memory as a process that runs. Returns whether it may; a process that may not gets a signal.
    pub fn touch(&mut self, id: u32, address: u64, access: Access) -> bool {
        let space = self.process_of(id).unwrap().space;
        let System { spaces, memory, .. } = &mut self.instance.system;
        spaces.get(space).space.fault(memory, address, access).is_ok()
    }

    /// Lets a process that runs make an access.
    pub fn fault(&mut self, id: u32, address: u64, access: Access) {
        self.thread(id).doing = Doing::Waits;
        self.instance.fault(id, Fault::Access { address, access, instruction: 0 });
        self.send_answer(id);
    }

    /// Lets a thread make the single step that it is to make, to the next instruction.
    pub fn make_step(&mut self, id: u32) {
        let thread = self.thread(id);
        assert!(thread.doing == Doing::Runs && std::mem::take(&mut thread.steps), "it makes none");
        thread.registers.pc = thread.registers.pc.wrapping_add(4);
        thread.doing = Doing::Waits;
        let at = thread.registers.pc;
        self.instance.fault(id, Fault::Step(at));
        self.send_answer(id);
    }

    /// Sends the answer to what was served last.
    fn send_answer(&mut self, id: u32) {
        let thread = self.process_of(id).map(|process| &mut process.thread_mut().machine);
        thread.into_iter().for_each(Thread::take_answer);
    }

    /// Writes bytes to a process's memory, as far as that is possible.
    pub fn write(&mut self, id: u32, address: u64, bytes: &[u8]) -> usize {
        let space = self.process_of(id).unwrap().space;
        self.instance.system.write(space, address, bytes)
    }

    /// Reads bytes of a process's memory, as far as that is possible.
    pub fn read(&mut self, id: u32, address: u64, into: &mut [u8]) -> usize {
        let space = self.process_of(id).unwrap().space;
        self.instance.system.read(space, address, into)
    }

    /// Writes numbers to a process's memory.
    pub fn put(&mut self, id: u32, address: u64, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(self.write(id, address, &bytes), bytes.len());
    }

    /// Returns the threads that run.
    pub fn running(&mut self) -> Vec<u32> {
        let threads = self.instance.processes.iter().flat_map(|process| &process.threads);
        threads.filter(|thread| thread.machine.doing == Doing::Runs).map(|thread| thread.id).collect()
    }

    /// Checks all invariants.
    pub fn check(&mut self) {
        self.check_mirrors();
        let system = &self.instance.system;
        let spaces = || system.spaces.iter().map(|used| &used.space);
        system.memory.check(spaces().flat_map(|space| space.pages())).unwrap();
        for space in spaces() {
            space.check(&system.memory, |table, index| table[index]).unwrap();
        }
        system.tree.check().unwrap();
        system.sockets.check();
        self.check_threads();
        self.check_ipc();
        self.check_terminals();
    }

    /// Checks that files have the contents of their originals, if they say so and nothing is under way.
    fn check_mirrors(&mut self) {
        let System { memory, mounts, .. } = &self.instance.system;
        if mounts.inquiries() > 0 || !memory.hardware.files.errands.is_empty() {
            return;
        }
        let copies: Vec<_> = self.instance.system.copies().collect();
        for (name, version, object) in copies {
            let System { memory, .. } = &mut self.instance.system;
            let files = &mut memory.hardware.files;
            let Ok(status) = files.status(&name.path) else { continue };
            let present = Version { changes: status.changes, modified: status.modified };
            if status.identity == name.original && present == version {
                let original = files.contents(&name.path).unwrap();
                let mut copy = vec![0; memory.objects.get(object).length() as usize];
                memory.objects.read(&mut memory.hardware, object, 0, &mut copy);
                assert!(copy == original, "the copy of {} is another than the original", name.path);
            }
        }
    }

    /// Checks that a session and its terminal know each other.
    fn check_terminals(&self) {
        if self.instance.status().is_some() {
            return;
        }
        let Instance { system, processes, .. } = &self.instance;
        let session = |id| system.terminals.get(id).and_then(|terminal| terminal.discipline.session());
        for process in processes.iter().filter(|process| !process.has_ended()) {
            if let Some(id) = process.terminal {
                assert_eq!(session(id), Some(process.session), "process {} has a terminal", process.id);
            }
        }
        for (id, terminal) in system.terminals.iter() {
            if let Some(session) = terminal.discipline.session() {
                let leader = processes.find(session).expect("a terminal's session has a leader");
                assert_eq!((leader.terminal, leader.has_ended()), (Some(id), false), "the leader {session}");
            }
        }
        assert!(system.terminals.hang_ups.is_empty(), "sessions were told");
        let open = system.descriptions.all().filter(|open| matches!(open.end, Some(End::Master(_)))).count();
        assert!(open <= system.terminals.count(), "each master has a slave");
    }

    /// Checks that each thread is where its state says.
    fn check_threads(&self) {
        let Instance { system, processes, .. } = &self.instance;
        system.futexes.check().unwrap();
        self.check_locks();
        for process in processes.iter() {
            assert_eq!(process.has_ended(), process.threads.is_empty(), "{}", process.id);
            for (index, thread) in process.threads.iter().enumerate() {
                assert_eq!(process.index_of(thread.id), Ok(index));
                assert_eq!(thread.machine.number, thread.id);
                assert_eq!(processes.owner(thread.id), Some(process.id));
                if tracing::is_trapped(processes, thread) {
                    continue;
                }
                let runs = thread.machine.doing == Doing::Runs;
                assert!(!(runs && process.is_stopped), "thread {} runs, whose process is stopped", thread.id);
                let doing = match thread.state {
                    State::Runs if thread.stopped_at.is_none() => Doing::Runs,
                    State::Waits if thread.stopped_at.is_none() => Doing::Waits,
                    _ => Doing::Stopped,
                };
                assert_eq!(thread.machine.doing, doing, "thread {} of {}", thread.id, process.id);
                assert_eq!(thread.state == State::Waits, thread.waiting.is_some() && doing == Doing::Waits);
            }
        }
        let waits = |id: u32| {
            let process = processes.find(processes.owner(id)?)?;
            Some(process.threads[process.index_of(id).ok()?].state == State::Waits)
        };
        for id in system.futexes.threads().chain(system.locks.threads()) {
            assert_eq!(waits(id), Some(true), "thread {id} stands in a queue");
        }
    }

    /// Checks that segments know who has them attached, and that who waits for System V's semaphores and messages, or
    /// wants something to be undone, is there.
    fn check_ipc(&self) {
        let Instance { system, processes, .. } = &self.instance;
        let ipc = &system.ipc;
        ipc.segments.check().unwrap();
        ipc.semaphores.check().unwrap();
        ipc.queues.check().unwrap();
        for entry in ipc.segments.iter() {
            let areas = system.spaces.iter().flat_map(|used| used.space.areas().iter());
            let content = entry.value.content;
            let of_it = areas.filter(|(_, area)| matches!(area.backing, Backing::Object(id, _) if id == content));
            assert_eq!(of_it.count() as u64, entry.value.attachments, "segment {} is attached", entry.id);
        }
        for id in ipc.semaphores.threads().chain(ipc.queues.threads()) {
            let process = processes.find(processes.owner(id).unwrap()).unwrap();
            let state = process.threads[process.index_of(id).unwrap()].state;
            assert_eq!(state, State::Waits, "thread {id} waits for System V's");
        }
        for id in ipc.semaphores.processes() {
            assert!(processes.find(id).is_some_and(|process| !process.has_ended()), "process {id} undoes");
        }
    }

    /// Checks that who has a lock has the file open.
    fn check_locks(&self) {
        let Instance { system, processes, .. } = &self.instance;
        system.locks.check().unwrap();
        for (file, record) in system.locks.records() {
            match record.owner {
                Owner::Description(description) => assert_eq!(system.descriptions.find(description).node, file),
                Owner::Process(id) => {
                    let mut all = processes.find(id).unwrap().descriptors.all();
                    let node = |descriptor: Descriptor| system.descriptions.find(descriptor.description).node;
                    assert!(all.any(|(_, descriptor)| node(descriptor) == file), "process {id} has a lock");
                }
            }
        }
        for (file, description, _) in system.locks.whole() {
            assert_eq!(system.descriptions.find(description).node, file);
        }
    }

    /// Ends the first process, and with it all others. All that they had is free afterwards, but for files with names.
    pub fn end(mut self) -> System<Console> {
        while self.do_errand() {}
        if self.instance.status().is_none() {
            let first = self.thread(1);
            if first.doing == Doing::Runs {
                self.call(1, 94, [0; 6]);
            } else {
                let first = self.instance.processes.get(1).unwrap();
                self.instance.system.send(first, tench_linux::signals::Info::from_system(9));
                self.instance.pass_time();
            }
        }
        assert!(self.instance.status().is_some());
        let Instance { system, processes, .. } = self.instance;
        assert_eq!(processes.count(), 0, "processes");
        system.memory.check(core::iter::empty()).unwrap();
        system.tree.check().unwrap();
        assert_eq!((system.memory.hardware.alive(), system.memory.hardware.threads), (0, 0), "address spaces, threads");
        assert_eq!(system.spaces.iter().count(), 0, "memory");
        assert_eq!(system.futexes.threads().count(), 0, "nobody waits for words");
        system.sockets.check();
        assert_eq!(system.sockets.held_rights(), 0, "files that were sent");
        assert!(system.sockets.is_empty(), "sockets");
        assert!(system.locks.is_empty() && system.locks.threads().count() == 0, "locks");
        assert_eq!(system.descriptions.count(), 0, "open files");
        assert_eq!(system.terminals.count(), 0, "pseudo-terminals");
        assert!(system.waiters.is_over(), "nobody waits");
        assert!(system.watches.is_empty() && system.watches.count() == 0, "watches");
        assert_eq!(system.watches.bytes(), 0, "events that nobody has read");
        let users: u32 = system.tree.nodes().map(Node::users).sum();
        let always = 2 + system.mounts.count() as u32;
        assert_eq!(users, always, "only the root, the directory of slaves and mounts have users");
        assert_eq!(system.mounts.inquiries(), 0, "calls that ask");
        let files = system.tree.nodes().filter(|node| matches!(node.kind, Kind::Regular(_))).count();
        // The code that ends handlers.
        assert_eq!(system.memory.objects.all().count(), files + 1, "only files have contents");
        system
    }
}
