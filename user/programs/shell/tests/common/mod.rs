//! A made-up system: a typed script, a few processes and files, and programs whose ends are known before.

use std::collections::VecDeque;

use tench_abi::object::Statistic;
use tench_abi::{CapAddress, Kind, Rights};
use tench_mem_client::{Account, Extent, Totals};
use tench_procs_client::Capability;
use tench_procs_client::protocol::{FaultKind, State};
use tench_shell::shell::Shell;
use tench_shell::system::{End, File, Input, Name, OnInterrupt, Process, Refusal, System, Waited};

const SHELL: u64 = 7;
const FILES: [(&str, &[u8]); 7] = [
    ("bin/crash", b"\x7fELF\0"),
    ("bin/hello", b"\x7fELF\0"),
    ("bin/kill", b"\x7fELF\0"),
    ("bin/timer", b"\x7fELF\0"),
    ("etc/motd", b"Welcome.\n"),
    ("share/no-end.txt", b"no line feed at the end"),
    ("share/umlauts.txt", "ääääääääääääää\n".as_bytes()),
];

/// The system.
pub struct Fake {
    input: VecDeque<Input>,
    /// What was written, whoever wrote it.
    pub output: Vec<u8>,
    pub processes: Vec<Process>,
    /// Whether the terminal belongs to the shell.
    pub has_terminal: bool,
    /// Processes that were killed, and the statuses with which the machine was switched off.
    pub killed: Vec<u64>,
    pub power_offs: Vec<u8>,
    ticks: u64,
    instructions: u64,
}

fn process(pid: u64, parent: u64, name: &str) -> Process {
    let (state, detail) = (State::Running, 0);
    Process { pid, parent, state, detail, priority: 100 + pid, ticks: pid * 1_000, size: 4096, name: name.into() }
}

impl Fake {
    pub fn new(parent: &str) -> Fake {
        let mut processes = vec![process(1, 0, "init"), process(2, 1, "mem"), process(5, 1, "console")];
        processes.push(process(6, 5, parent));
        let parent = if parent == "init" { 1 } else { 6 };
        processes.push(process(SHELL, parent, "shell"));
        if parent == 1 {
            processes.retain(|process| process.pid != 6);
        }
        Fake {
            input: VecDeque::new(),
            output: Vec::new(),
            processes,
            has_terminal: true,
            killed: Vec::new(),
            power_offs: Vec::new(),
            ticks: 5_000_000,
            instructions: (1 << 32) - 5_000,
        }
    }

    /// Types something.
    pub fn types(&mut self, text: &str) {
        self.input.extend(text.bytes().map(Input::Byte));
    }

    /// Lets something else be read.
    pub fn reads(&mut self, input: Input) {
        self.input.push_back(input);
    }

    fn find(&mut self, pid: u64) -> Result<&mut Process, Refusal> {
        self.processes.iter_mut().find(|process| process.pid == pid).ok_or(Refusal("no such process".into()))
    }

    pub fn end(&mut self, pid: u64, state: State, detail: u64) {
        let process = self.find(pid).unwrap();
        (process.state, process.detail) = (state, detail);
    }

    fn ended(&mut self, pid: u64) -> Option<End> {
        let process = self.find(pid).unwrap();
        End::of(process.state, process.detail)
    }
}

impl System for Fake {
    fn write(&mut self, text: &[u8]) {
        self.output.extend_from_slice(text);
    }

    fn is_at_line_start(&mut self) -> bool {
        matches!(self.output.last(), None | Some(b'\n'))
    }

    fn read(&mut self) -> Input {
        self.input.pop_front().unwrap_or_else(|| panic!("nothing more to read"))
    }

    fn take_terminal(&mut self) -> bool {
        self.has_terminal
    }

    fn own_pid(&self) -> u64 {
        SHELL
    }

    fn process(&mut self, pid: u64) -> Result<Process, Refusal> {
        self.find(pid).cloned()
    }

    fn next_process(&mut self, after: u64) -> Option<Process> {
        self.processes.iter().find(|process| process.pid > after).cloned()
    }

    fn spawn(&mut self, words: &[String], quota: Option<u64>) -> Result<Option<u64>, Refusal> {
        let path = format!("bin/{}", words[0]);
        if !FILES.iter().any(|(file, _)| *file == path) {
            return Ok(None);
        }
        if quota.is_some_and(|bytes| bytes < 1 << 16) {
            return Err(Refusal("there is not enough memory".into()));
        }
        let pid = self.processes.last().unwrap().pid + 1;
        self.processes.push(process(pid, SHELL, &words[0]));
        Ok(Some(pid))
    }

    fn wait(&mut self, pid: u64, on_interrupt: OnInterrupt) -> Result<Waited, Refusal> {
        if let Some(end) = self.ended(pid) {
            return Ok(Waited::Ended(end));
        }
        let (state, detail) = match self.find(pid)?.name.as_str() {
            // What a program that is killed with Ctrl-C would do.
            "timer" if on_interrupt == OnInterrupt::StopWaiting => return Ok(Waited::Interrupted),
            "timer" => (State::Killed, 0),
            "crash" => (State::Faulted, FaultKind::GuardPage as u64),
            "kill" => (State::Exited, 3),
            _ => (State::Exited, 0),
        };
        let text: &[u8] = if state == State::Exited { b"hello, no line feed" } else { b"a report\n" };
        self.output.extend_from_slice(text);
        self.instructions = (self.instructions + 1_234_567) & 0xffff_ffff;
        self.ticks += 62_500;
        self.end(pid, state, detail);
        Ok(Waited::Ended(self.ended(pid).unwrap()))
    }

    fn kill(&mut self, pid: u64) -> Result<(), Refusal> {
        self.killed.push(pid);
        self.end(pid, State::Killed, 0);
        Ok(())
    }

    fn suspend(&mut self, pid: u64) -> Result<(), Refusal> {
        self.find(pid)?.state = State::Suspended;
        Ok(())
    }

    fn resume(&mut self, pid: u64) -> Result<(), Refusal> {
        self.find(pid)?.state = State::Running;
        Ok(())
    }

    fn capabilities(&mut self, _: u64) -> Result<Vec<Capability>, Refusal> {
        let capability = |address, kind, rights, size_bits, badge, object| Capability {
            address: CapAddress(address),
            kind,
            rights,
            size_bits,
            badge,
            object,
        };
        Ok(vec![
            capability(1, Kind::CapNode, Rights::all(), 7, 0, 0),
            capability(8, Kind::Endpoint, Rights::all(), 5, 9, 0),
            capability(16, Kind::Interrupt, Rights::WRITE, 0, 0, 33),
            capability(48, Kind::Frame, Rights::READ, 12, 0, 0x4123_4000),
            capability(300, Kind::Frame, Rights::empty(), 21, 0, 0x4120_0000),
        ])
    }

    fn memory(&mut self) -> Result<Totals, Refusal> {
        Ok(Totals { total: 1 << 30, free: 700 << 20, largest: 512 << 20, blocks: 9, accounts: 3 })
    }

    fn extents(&mut self, from: u64) -> Result<Vec<Extent>, Refusal> {
        let extent = |address, size, account| Extent { address, size, account };
        let all = [
            extent(0x4000_0000, 3 << 20, Some(2)),
            extent(0x4030_0000, 1 << 20, None),
            extent(0x4050_0000, 512 << 10, Some(7)),
            extent(0x4058_0000, 128 << 10, None),
            extent(0x405a_0000, 0x4060_0000 - 0x405a_0000, None),
        ];
        // Two at a time, so that several answers are needed.
        Ok(all.into_iter().filter(|extent| extent.address >= from).take(2).collect())
    }

    fn next_account(&mut self, after: u64) -> Option<Account> {
        let accounts = [
            Account { process: 2, used: 300 << 10, quota: u64::MAX, blocks: 4, objects: 0 },
            Account { process: 7, used: 1_300_000, quota: 4 << 20, blocks: 5, objects: 0 },
        ];
        accounts.into_iter().find(|account| account.process > after)
    }

    fn next_name(&mut self, after: &str) -> Option<Name> {
        let names = [("clock", 99), ("console", 5)];
        let (name, pid) = names.into_iter().find(|&(name, _)| name > after)?;
        Some(Name { pid, name: name.into() })
    }

    fn file(&mut self, index: u64) -> Option<File> {
        let (path, contents) = FILES.get(index as usize)?;
        Some(File { path: (*path).into(), size: contents.len() as u64 })
    }

    fn read_file(&mut self, path: &str, offset: u64) -> Result<Vec<u8>, Refusal> {
        let (_, contents) = FILES.iter().find(|(file, _)| *file == path).ok_or(Refusal("no such file".into()))?;
        let rest = &contents[offset as usize..];
        // Few bytes at a time, so that characters are cut.
        Ok(rest[..rest.len().min(5)].to_vec())
    }

    fn ticks(&mut self) -> u64 {
        self.ticks
    }

    fn ticks_per_second(&mut self) -> u64 {
        1_000_000
    }

    fn instructions(&mut self) -> u64 {
        self.instructions
    }

    fn statistic(&mut self, which: Statistic) -> Result<u64, Refusal> {
        Ok(match which {
            Statistic::IdleTicks => 3_333_000,
            Statistic::Preemptible => 1,
            _ => 1_000 + which as u64,
        })
    }

    fn power_off(&mut self, status: u8) -> Refusal {
        self.power_offs.push(status);
        Refusal("the test goes on".into())
    }
}

/// What lines lead to, without greeting.
pub fn answers(lines: &[&str]) -> String {
    answers_of(&mut Fake::new("init"), lines)
}

/// What lines lead to in a system.
pub fn answers_of(system: &mut Fake, lines: &[&str]) -> String {
    let mut shell = Shell::new(system);
    for line in lines {
        shell.execute(line);
    }
    String::from_utf8(std::mem::take(&mut system.output)).unwrap()
}

/// What a session shows in which `typed` is typed and then the end of the input.
pub fn session(system: &mut Fake, typed: &str) -> String {
    system.types(typed);
    system.reads(Input::End);
    Shell::new(system).run();
    String::from_utf8(std::mem::take(&mut system.output)).unwrap()
}
