//! A process or thread: `stat`, `statm`, `status` and others of `/proc/PID`.

use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use crate::text::Text;

/// Size of a page in KiB.
const PAGE: u64 = 4;
/// Flag of a process that has started no program since it was made (`PF_FORKNOEXEC`).
const NOT_EXECUTED: u32 = 0x40;
/// The signals that `stat` shows.
const SHOWN: u64 = 0x7fff_ffff;

/// Activity of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The process runs, or could.
    Runs,
    /// The process waits.
    Sleeps,
    /// A signal has stopped the process.
    Stopped,
    /// The process has stopped for the one that traces it.
    Traced,
    /// The process has ended, and its parent does not know yet.
    Ended,
}

impl State {
    /// Returns the letter for the state.
    pub const fn letter(self) -> char {
        match self {
            State::Runs => 'R',
            State::Sleeps => 'S',
            State::Stopped => 'T',
            State::Traced => 't',
            State::Ended => 'Z',
        }
    }

    const fn word(self) -> &'static str {
        match self {
            State::Runs => "running",
            State::Sleeps => "sleeping",
            State::Stopped => "stopped",
            State::Traced => "tracing stop",
            State::Ended => "zombie",
        }
    }
}

/// The priority of what lets others run as much as they let it.
const USUAL_PRIORITY: i32 = 20;

/// Time that a process has used, in ticks of 10 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// In the program.
    pub user: u64,
    /// In the system.
    pub system: u64,
    /// In programs of children whose ends it has learnt.
    pub children_user: u64,
    /// In the system for those children.
    pub children_system: u64,
}

/// Sizes of a process's memory in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// All areas.
    pub size: u64,
    /// Pages that are its own.
    pub anonymous: u64,
    /// Pages of files.
    pub file: u64,
    /// Pages of memory that processes share.
    pub shared: u64,
    /// Areas with code of the program.
    pub code: u64,
    /// Areas with other code.
    pub libraries: u64,
    /// Private areas that can be written, without the stack.
    pub data: u64,
    /// The stack.
    pub stack: u64,
    /// Page tables.
    pub tables: u64,
}

impl Memory {
    const fn resident(&self) -> u64 {
        self.anonymous + self.file + self.shared
    }
}

/// Addresses of the parts of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Code of the program.
    pub code: Range<u64>,
    /// Data of the program.
    pub data: Range<u64>,
    /// Where the heap begins.
    pub heap: u64,
    /// The stack pointer with which the program has begun.
    pub stack: u64,
    /// The strings of its arguments.
    pub arguments: Range<u64>,
    /// The strings of its environment.
    pub environment: Range<u64>,
}

/// Signals of a process, as sets in which bit 0 is signal 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// Signals that have come for the thread.
    pub pending: u64,
    /// Signals that have come for the process.
    pub shared_pending: u64,
    /// Blocked signals.
    pub blocked: u64,
    /// Ignored signals.
    pub ignored: u64,
    /// Signals with a handler.
    pub caught: u64,
    /// Number of signals that have come for processes of the user.
    pub queued: u64,
    /// The most that may.
    pub most: u64,
}

/// A process or thread.
#[derive(Clone, Debug)]
pub struct Process<'a> {
    /// Number of the thread.
    pub thread: u32,
    /// Number of its process.
    pub id: u32,
    /// Number of the parent.
    pub parent: u32,
    /// Number of the thread that traces it; 0 for none.
    pub tracer: u32,
    /// Number of the group.
    pub group: u32,
    /// Number of the session.
    pub session: u32,
    /// Device of its terminal, and the group that uses that.
    pub terminal: Option<(u32, Option<u32>)>,
    /// Name.
    pub name: &'a [u8],
    /// Activity.
    pub state: State,
    /// The process has started a program since it was made.
    pub has_executed: bool,
    /// Number of threads.
    pub threads: u32,
    /// When it was made, in ticks since the start of the machine.
    pub started: u64,
    /// How much it lets others run in its place: from -20 to 19.
    pub nice: i32,
    /// Time that it has used.
    pub times: Times,
    /// Sizes, unless it has ended.
    pub memory: Option<Memory>,
    /// Addresses.
    pub layout: Layout,
    /// Signals.
    pub signals: Signals,
    /// Users: the real, the effective and the saved one, and the one for files.
    pub users: [u32; 4],
    /// Groups, in the same order.
    pub group_ids: [u32; 4],
    /// Capabilities: those that can be inherited, those that are permitted, those that count, those that a program of
    /// the super-user gets, and those that every program gets.
    pub capabilities: [u64; 5],
    /// No program that it runs gives it more power.
    pub has_no_new_privileges: bool,
    /// The mode in which its calls are filtered, as `prctl` names it, and the number of filters.
    pub filtering: (u32, usize),
    /// Permissions that new files do not get.
    pub mask: u32,
    /// IDs of supplementary groups, in ascending order.
    pub groups: &'a [u32],
    /// Number of descriptors for which there is room.
    pub descriptors: u32,
    /// The signal that its parent gets when it ends.
    pub end_signal: u32,
    /// How it has ended, as `wait4` says it.
    pub end: u32,
}

impl Process<'_> {
    /// Returns the text of `stat`.
    pub fn stat(&self) -> Vec<u8> {
        let mut text = Text::default();
        text.add(format_args!("{} (", self.thread));
        text.0.extend_from_slice(self.name);
        let (device, foreground) = match self.terminal {
            Some((device, group)) => (device, group.map_or(-1, u32::cast_signed)),
            None => (0, -1),
        };
        text.add(format_args!(
            ") {} {} {} {} {device} {foreground} {}",
            self.state.letter(),
            self.parent,
            self.group,
            self.session,
            if self.has_executed { 0 } else { NOT_EXECUTED },
        ));
        let Times { user, system, children_user, children_system } = self.times;
        let memory = self.memory.unwrap_or_default();
        // Faults; times; priority, niceness, threads, an obsolete timer; start; sizes and the limit of the second.
        text.add(format_args!(
            " 0 0 0 0 {user} {system} {children_user} {children_system} {} {} {} 0 {} {} {} {}",
            USUAL_PRIORITY + self.nice,
            self.nice,
            self.threads,
            self.started,
            memory.size * PAGE * 1024,
            memory.resident(),
            u64::MAX,
        ));
        let Layout { code, data, heap, stack, arguments, environment } = &self.layout;
        let Signals { pending, blocked, ignored, caught, .. } = self.signals;
        let [pending, blocked, ignored, caught] = [pending, blocked, ignored, caught].map(|set| set & SHOWN);
        // Addresses; where it runs; signals; where it waits; swapped pages; end; processor, scheduling, delays.
        text.add(format_args!(
            " {} {} {stack} 0 0 {pending} {blocked} {ignored} {caught} 0 0 0 {} 0 0 0 0 0 0",
            code.start, code.end, self.end_signal,
        ));
        text.add(format_args!(
            " {} {} {heap} {} {} {} {} {}\n",
            data.start, data.end, arguments.start, arguments.end, environment.start, environment.end, self.end,
        ));
        text.0
    }

    /// Returns the text of `statm`.
    pub fn statm(&self) -> Vec<u8> {
        let memory = self.memory.unwrap_or_default();
        let shared = memory.file + memory.shared;
        let (size, resident, code, data) = (memory.size, memory.resident(), memory.code, memory.data + memory.stack);
        format!("{size} {resident} {shared} {code} 0 {data} 0\n").into_bytes()
    }

    /// Returns the text of `status`.
    pub fn status(&self) -> Vec<u8> {
        let mut text = Text::default();
        text.add(format_args!("Name:\t"));
        for byte in self.name {
            match byte {
                b'\n' => text.0.extend_from_slice(b"\\n"),
                b'\\' => text.0.extend_from_slice(b"\\\\"),
                other => text.0.push(*other),
            }
        }
        let (letter, word) = (self.state.letter(), self.state.word());
        text.add(format_args!("\nUmask:\t{:04o}\nState:\t{letter} ({word})\n", self.mask));
        text.add(format_args!(
            "Tgid:\t{}\nNgid:\t0\nPid:\t{}\nPPid:\t{}\nTracerPid:\t{}\n",
            self.id, self.thread, self.parent, self.tracer
        ));
        for (name, ids) in [("Uid", self.users), ("Gid", self.group_ids)] {
            let [real, effective, saved, files] = ids;
            text.add(format_args!("{name}:\t{real}\t{effective}\t{saved}\t{files}\n"));
        }
        text.add(format_args!("FDSize:\t{}\nGroups:\t", self.descriptors));
        for (index, group) in self.groups.iter().enumerate() {
            text.add(format_args!("{}{group}", if index > 0 { " " } else { "" }));
        }
        text.add(format_args!(" \n"));
        text.add(format_args!(
            "NStgid:\t{}\nNSpid:\t{}\nNSpgid:\t{}\nNSsid:\t{}\n",
            self.id, self.thread, self.group, self.session
        ));
        if let Some(memory) = &self.memory {
            add_memory(&mut text, memory);
        }
        text.add(format_args!("Threads:\t{}\n", self.threads));
        self.add_signals(&mut text);
        let names = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];
        for (name, set) in names.into_iter().zip(self.capabilities) {
            text.add(format_args!("{name}:\t{set:016x}\n"));
        }
        let no_new = u32::from(self.has_no_new_privileges);
        let (mode, filters) = self.filtering;
        text.add(format_args!("NoNewPrivs:\t{no_new}\nSeccomp:\t{mode}\nSeccomp_filters:\t{filters}\n"));
        text.add(format_args!("Speculation_Store_Bypass:\tunknown\nSpeculationIndirectBranch:\tunknown\n"));
        text.add(format_args!("Cpus_allowed:\t1\nCpus_allowed_list:\t0\nMems_allowed:\t1\nMems_allowed_list:\t0\n"));
        text.add(format_args!("voluntary_ctxt_switches:\t0\nnonvoluntary_ctxt_switches:\t0\n"));
        text.0
    }

    fn add_signals(&self, text: &mut Text) {
        let signals = &self.signals;
        text.add(format_args!("SigQ:\t{}/{}\n", signals.queued, signals.most));
        let sets = [
            ("SigPnd", signals.pending),
            ("ShdPnd", signals.shared_pending),
            ("SigBlk", signals.blocked),
            ("SigIgn", signals.ignored),
            ("SigCgt", signals.caught),
        ];
        for (name, set) in sets {
            text.add(format_args!("{name}:\t{set:016x}\n"));
        }
    }
}

fn add_memory(text: &mut Text, memory: &Memory) {
    let lines: [(&str, u64); 15] = [
        // What it was at most is not recorded, so that is what it is.
        ("VmPeak", memory.size),
        ("VmSize", memory.size),
        ("VmLck", 0),
        ("VmPin", 0),
        ("VmHWM", memory.resident()),
        ("VmRSS", memory.resident()),
        ("RssAnon", memory.anonymous),
        ("RssFile", memory.file),
        ("RssShmem", memory.shared),
        ("VmData", memory.data),
        ("VmStk", memory.stack),
        ("VmExe", memory.code),
        ("VmLib", memory.libraries),
        ("VmPTE", memory.tables),
        ("VmSwap", 0),
    ];
    for (name, pages) in lines {
        text.add(format_args!("{name}:\t{:>8} kB\n", pages * PAGE));
    }
    text.add(format_args!("HugetlbPages:\t{:>8} kB\nCoreDumping:\t0\nTHP_enabled:\t0\n", 0));
}
