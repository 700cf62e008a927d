//! A fake system: a typed script, a few processes and files, and programs with predetermined ends.
//!
//! Programs run when they are waited for, one after the other, each to its end.

mod streams;

use std::collections::VecDeque;
use std::time::Duration;

use tench_abi::layout::slot;
use tench_abi::object::{IrqOffIntervals, Statistic};
use tench_abi::{CapAddress, Kind, Powers, Rights};
use tench_mem_interface::{Account, Extent, Totals};
use tench_procs_interface::Capability;
use tench_procs_interface::protocol::{FaultKind, State};
use tench_reserve_interface::Reservation;
use tench_shell::parse::Standard;
use tench_shell::shell::Shell;
use tench_shell::system::{
    BROKEN, End, Entry, How, Input, Name, OnKey, Process, Settings, Stream, System, SystemError, Terminal, Unwritten,
    Waited,
};

use streams::Streams;

const SHELL: u64 = 7;

/// The system.
pub struct Fake {
    input: VecDeque<Input>,
    /// All output on the terminal.
    pub output: Vec<u8>,
    pub processes: Vec<Process>,
    pub terminal: Terminal,
    /// Processes that were killed, and the statuses with which the machine was switched off.
    pub killed: Vec<u64>,
    pub power_offs: Vec<u8>,
    pub streams: Streams,
    /// Effect of Ctrl-Z or Ctrl-C on the next wait.
    pub key: Option<Waited>,
    /// Programs that do not start.
    pub defective: Vec<&'static str>,
    /// The last foreground: processes, reader, and effect of keys.
    pub foreground: (Vec<u64>, u64, Option<OnKey>),
    /// The processes to which the terminal was lent, in order, and their states then.
    pub lent: Vec<(u64, State)>,
    /// The core on which the fewest processes run.
    pub quiet: u64,
    /// Powers of this shell.
    pub powers: Powers,
    /// Settings of the prepared processes, in order.
    pub settings: Vec<Settings>,
    arguments: Vec<(u64, Vec<String>)>,
    ticks: u64,
    /// Time since 1970, if it is known.
    pub wall_clock: Option<Duration>,
    instructions: u64,
}

fn process(pid: u64, parent: u64, name: &str) -> Process {
    let (state, detail) = (State::Running, 0);
    let (ticks, priority) = (pid % 1_000 * 1_000, 100 + pid % 1_000);
    Process { pid, parent, state, detail, priority, ticks, size: 4096, name: name.into() }
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
            terminal: Terminal::Ours,
            killed: Vec::new(),
            power_offs: Vec::new(),
            streams: Streams::default(),
            key: None,
            defective: Vec::new(),
            foreground: (Vec::new(), 0, None),
            lent: Vec::new(),
            quiet: 0,
            powers: Powers::all(),
            settings: Vec::new(),
            arguments: Vec::new(),
            ticks: 5_000_000,
            wall_clock: Some(Duration::new(1_767_225_603, 999_999_999)),
            instructions: (1 << 32) - 5_000,
        }
    }

    /// Types text.
    pub fn types(&mut self, text: &str) {
        self.input.extend(text.bytes().map(Input::Byte));
    }

    /// Sets the next input.
    pub fn reads(&mut self, input: Input) {
        self.input.push_back(input);
    }

    pub fn find(&mut self, pid: u64) -> Result<&mut Process, SystemError> {
        self.processes.iter_mut().find(|process| process.pid == pid).ok_or(SystemError("no such process".into()))
    }

    pub fn end(&mut self, pid: u64, state: State, detail: u64) {
        let process = self.find(pid).unwrap();
        (process.state, process.detail) = (state, detail);
        self.streams.process_ended(pid);
    }

    fn ended(&mut self, pid: u64) -> Option<End> {
        let process = self.find(pid).unwrap();
        End::of(process.state, process.detail)
    }

    /// Writes a program's output.
    fn program_writes(&mut self, pid: u64, standard: Standard, text: &[u8]) {
        if !self.streams.written_by(pid, standard, text) {
            self.output.extend_from_slice(text);
        }
    }

    /// Runs a program to its end.
    fn run(&mut self, pid: u64) {
        let name = self.find(pid).unwrap().name.clone();
        let arguments = self.arguments.iter().find(|(owner, _)| *owner == pid).map(|(_, words)| words.clone()).unwrap();
        let input = self.streams.input_of(pid);
        let mut end = (State::Exited, 0);
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        match name.as_str() {
            "timer" => end.0 = State::Killed,
            "crash" => (end, errors) = ((State::Faulted, FaultKind::GuardPage as u64), b"a report\n".to_vec()),
            "fail" | "kill" => (end.1, output) = (3, b"hello, no line feed".to_vec()),
            "cat" => {
                let files = arguments.iter().flat_map(|path| self.streams.contents(path).unwrap());
                output = if arguments.is_empty() { input } else { files.collect() };
            }
            "grep" => {
                let text = String::from_utf8(input).unwrap();
                let lines = text.lines().filter(|line| line.contains(&arguments[0]));
                output = lines.flat_map(|line| format!("{line}\n").into_bytes()).collect();
            }
            "yes" => end.1 = BROKEN as u64,
            "warn" => errors = b"a warning\n".to_vec(),
            _ => output = b"hello, no line feed".to_vec(),
        }
        if name == "timer" {
            errors = b"a report\n".to_vec();
        }
        self.program_writes(pid, Standard::Output, &output);
        self.program_writes(pid, Standard::Errors, &errors);
        self.instructions = (self.instructions + 1_234_567) & 0xffff_ffff;
        self.ticks += 62_500;
        self.end(pid, end.0, end.1);
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
        let input = self.input.pop_front().unwrap_or_else(|| panic!("nothing more to read"));
        if input == Input::End {
            self.input.push_front(Input::End);
        }
        input
    }

    fn read_until(&mut self, deadline: u64) -> Option<Input> {
        match self.input.pop_front() {
            // Nothing comes in time.
            None | Some(Input::Byte(0)) => {
                self.ticks = deadline;
                None
            }
            input => input,
        }
    }

    fn take_terminal(&mut self) -> Terminal {
        self.terminal
    }

    fn own_pid(&self) -> u64 {
        SHELL
    }

    fn process(&mut self, pid: u64) -> Result<Process, SystemError> {
        self.find(pid).cloned()
    }

    fn next_process(&mut self, after: u64) -> Option<Process> {
        self.processes.iter().find(|process| process.pid > after).cloned()
    }

    fn memory_of(&mut self, pid: u64) -> Option<u64> {
        if pid >> 32 != 0 {
            return Some(8192);
        }
        self.next_account(pid - 1).filter(|account| account.process == pid).map(|account| account.used)
    }

    fn powers(&self) -> Powers {
        self.powers
    }

    fn prepare(&mut self, core: u64, words: &[String], settings: Settings) -> Result<Option<u64>, SystemError> {
        if core > 2 {
            return Err(SystemError("the machine has no such core".into()));
        }
        if self.streams.entry(&format!("bin/{}", words[0])).is_err() {
            return Ok(None);
        }
        self.settings.push(settings);
        if settings.quota.is_some_and(|bytes| bytes < 1 << 16) {
            return Err(SystemError("there is not enough memory".into()));
        }
        let last = self.processes.iter().rfind(|process| process.pid >> 32 == core);
        let pid = last.map_or(core << 32, |process| process.pid) + 1;
        self.processes.push(Process { state: State::Preparing, ..process(pid, SHELL, &words[0]) });
        self.processes.sort_by_key(|process| process.pid);
        self.arguments.push((pid, words[1..].to_vec()));
        Ok(Some(pid))
    }

    fn least_loaded(&mut self) -> Result<u64, SystemError> {
        Ok(self.quiet)
    }

    fn give(&mut self, pid: u64, standard: Standard, stream: Stream) -> Result<(), SystemError> {
        self.streams.share(pid, standard, stream)
    }

    fn start(&mut self, pid: u64) -> Result<(), SystemError> {
        let process = self.find(pid)?;
        process.state = State::Running;
        let name = process.name.clone();
        if self.defective.iter().any(|defective| *defective == name) {
            self.abandon(pid);
            return Err(SystemError(format!("{name} cannot be loaded")));
        }
        Ok(())
    }

    fn abandon(&mut self, pid: u64) {
        self.streams.process_ended(pid);
        self.processes.retain(|process| process.pid != pid);
    }

    fn set_foreground(&mut self, pids: &[u64], reader: u64, on_key: OnKey) {
        self.foreground = (pids.to_vec(), reader, Some(on_key));
    }

    fn lend(&mut self, pid: u64) -> Result<(), SystemError> {
        if self.terminal != Terminal::Ours {
            return Err(SystemError("the terminal is not this shell's".into()));
        }
        assert_eq!(self.foreground, (vec![pid], pid, Some(OnKey::Handle)));
        let state = self.find(pid)?.state;
        self.lent.push((pid, state));
        Ok(())
    }

    fn wait(&mut self, pids: &[u64]) -> Result<Waited, SystemError> {
        if let Some(waited) = self.key.take() {
            if waited == Waited::Suspended {
                pids.iter().for_each(|pid| self.suspend(*pid).unwrap());
            }
            return Ok(waited);
        }
        let mut ends = Vec::new();
        for &pid in pids {
            if self.ended(pid).is_none() {
                // What a program that is killed with Ctrl-C would do.
                if self.foreground.2 == Some(OnKey::StopWaiting) && self.find(pid)?.name == "timer" {
                    return Ok(Waited::Interrupted);
                }
                self.run(pid);
            }
            ends.push(self.ended(pid));
        }
        self.foreground = (Vec::new(), SHELL, None);
        Ok(Waited::Ended(ends))
    }

    fn kill(&mut self, pid: u64) -> Result<(), SystemError> {
        self.killed.push(pid);
        self.end(pid, State::Killed, 0);
        Ok(())
    }

    fn suspend(&mut self, pid: u64) -> Result<(), SystemError> {
        self.find(pid)?.state = State::Suspended;
        Ok(())
    }

    fn resume(&mut self, pid: u64) -> Result<(), SystemError> {
        self.find(pid)?.state = State::Running;
        Ok(())
    }

    fn capabilities(&mut self, _: u64) -> Result<Vec<Capability>, SystemError> {
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
            capability(9, Kind::Endpoint, Rights::all(), 5, (Powers::MEMORY | Powers::POWER).badge(9), 0),
            capability(slot::KERNEL.0, Kind::Kernel, Rights::all(), 0, Powers::all().badge(9), 0),
            capability(16, Kind::Interrupt, Rights::WRITE, 0, 0, 33),
            capability(48, Kind::Frame, Rights::READ, 12, 0, 0x4123_4000),
            capability(300, Kind::Frame, Rights::empty(), 21, 0, 0x4120_0000),
            // The badge is of a process's own making.
            capability(301, Kind::Endpoint, Rights::all(), 5, u64::MAX, 0),
        ])
    }

    fn memory(&mut self) -> Result<Totals, SystemError> {
        Ok(Totals { total: 1 << 30, free: 700 << 20, largest: 512 << 20, blocks: 9, accounts: 3 })
    }

    fn extents(&mut self, from: u64) -> Result<Vec<Extent>, SystemError> {
        let extent = |address, size, account| Extent { address, size, account };
        let all = [
            extent(0x4000_0000, 3 << 20, Some(2)),
            extent(0x4030_0000, 1 << 20, None),
            extent(0x4050_0000, 512 << 10, Some(7)),
            extent(0x4058_0000, 128 << 10, None),
            extent(0x405a_0000, 0x4060_0000 - 0x405a_0000, None),
        ];
        // Two at a time, so that several replies are needed.
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

    fn next_reservation(&mut self, after: u64) -> Result<Option<Reservation>, SystemError> {
        let reservation = Reservation {
            id: 3,
            process: 5,
            budget: 1_000_000,
            period: 10_000_000,
            deadline: 5_000_000,
            share: 100_000,
            priority: 155,
            response: 1_260_000,
            used: 2_500_000_000,
        };
        let second = Reservation { id: 8, process: (1 << 32) + 77, share: 25_001, priority: 142, ..reservation };
        Ok([reservation, second].into_iter().find(|found| found.id > after))
    }

    fn entries(&mut self, directory: &str) -> Result<Vec<Entry>, SystemError> {
        self.streams.entries(directory)
    }

    fn entry(&mut self, path: &str) -> Result<Entry, SystemError> {
        self.streams.entry(path)
    }

    fn make_directory(&mut self, path: &str) -> Result<(), SystemError> {
        self.streams.make_directory(path)
    }

    fn remove(&mut self, path: &str) -> Result<(), SystemError> {
        self.streams.remove(path)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), SystemError> {
        self.streams.rename(from, to)
    }

    fn pipe(&mut self) -> Result<(Stream, Stream), SystemError> {
        self.streams.pipe()
    }

    fn open(&mut self, path: &str, how: How) -> Result<Stream, SystemError> {
        self.streams.open(path, how)
    }

    fn read_stream(&mut self, stream: Stream) -> Result<Vec<u8>, SystemError> {
        Ok(self.streams.read(stream))
    }

    fn write_stream(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), Unwritten> {
        self.streams.write(stream, bytes)
    }

    fn close(&mut self, stream: Stream) {
        self.streams.close(stream);
    }

    fn ticks(&mut self) -> u64 {
        self.ticks
    }

    fn ticks_per_second(&mut self) -> u64 {
        1_000_000
    }

    fn wall_clock(&mut self) -> Result<Duration, SystemError> {
        self.wall_clock.ok_or_else(|| SystemError("nobody knows the date".into()))
    }

    fn instructions(&mut self) -> u64 {
        self.instructions
    }

    fn statistic(&mut self, which: Statistic) -> Result<u64, SystemError> {
        Ok(match which {
            Statistic::IdleTicks => 3_333_000,
            Statistic::Preemptible => 1,
            _ => 1_000 + which as u64,
        })
    }

    fn irq_off_intervals(&mut self, path: u64) -> Result<IrqOffIntervals, SystemError> {
        let known =
            IrqOffIntervals { longest: 1_890, address: 0xffff_fff0_4008_0400, count: 3_000, sum: 300_000, squares: 0 };
        Ok(if path == 33 || path == 124 { known } else { IrqOffIntervals::default() })
    }

    fn power_off(&mut self, status: u8) -> SystemError {
        self.power_offs.push(status);
        SystemError("the test goes on".into())
    }
}

/// Returns the output of lines, without greeting.
pub fn output(lines: &[&str]) -> String {
    output_of(&mut Fake::new("init"), lines)
}

/// Returns the output of lines in a system.
pub fn output_of(system: &mut Fake, lines: &[&str]) -> String {
    let mut shell = Shell::new(system);
    for line in lines {
        shell.execute(line);
    }
    assert_eq!(system.streams.held_by_shell(), 0, "{lines:?}");
    String::from_utf8(std::mem::take(&mut system.output)).unwrap()
}

/// Returns what a session shows in which `typed` is typed and then the end of the input.
pub fn session(system: &mut Fake, typed: &str) -> String {
    system.types(typed);
    system.reads(Input::End);
    Shell::new(system).run();
    String::from_utf8(std::mem::take(&mut system.output)).unwrap()
}
