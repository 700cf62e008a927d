//! The machine of an instance: page tables that are arrays, a console that is recorded, and threads that do nothing by
//! themselves.

use std::cell::Cell;
use std::time::Duration;

use tench_linux::mounts::errand::{self, Errand, Finding};
use tench_linux::thread::{Entrance, FloatRegisters, Registers, Rest};
use tench_linux::{Machine, Threads};
use tench_linux_files::Errno;
use tench_linux_memory::{Hardware, Page, Place, Rights};

use super::files::Files;
use super::machine;
use super::messages::{ABORTED, RESULT_TAG};

/// Time from the beginning of 1970 to the machine's start.
pub const START: Duration = Duration::from_secs(1_767_225_600);

/// The machine, with a console that is recorded.
#[derive(Debug)]
pub struct Console {
    pub(super) machine: machine::Machine,
    /// Everything that was written.
    pub output: Vec<u8>,
    /// Everything that was reported.
    pub reports: Vec<String>,
    /// Time since the machine started, without what `read` adds.
    pub time: Duration,
    /// Time that passes with each reading of the clock.
    pub passes: Duration,
    /// Number of readings of the clock.
    pub(super) read: Cell<u32>,
    /// Standard streams that are a console.
    pub are_console: [bool; 3],
    /// The stream that was written last.
    pub stream: u32,
    /// Set if the console gives each byte as it is typed.
    pub lends: bool,
    /// Set if input is awaited.
    pub awaits_input: bool,
    /// Number of threads that exist.
    pub threads: usize,
    /// Bytes that are kept beside those that can be allocated.
    pub kept: usize,
    /// The file server outside.
    pub files: Files,
}

/// Activity of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// The thread runs.
    Runs,
    /// The thread's call or fault is being served, or waits.
    Waits,
    /// The thread is stopped.
    Stopped,
}

impl Thread {
    /// Lets the thread go on, if its call was answered.
    pub(super) fn take_answer(&mut self) {
        let Some(result) = self.answer.take() else { return };
        (self.doing, self.is_kept) = (Doing::Runs, false);
        if std::mem::take(&mut self.has_sent) {
            self.registers.x[..3].copy_from_slice(&[0, RESULT_TAG, result.unwrap_or(0)]);
        } else {
            self.registers.x[0] = result.unwrap_or(self.registers.x[0]);
        }
    }
}

/// A thread, which does nothing by itself.
#[derive(Debug)]
pub struct Thread {
    /// The number with which its calls come.
    pub(super) number: u32,
    /// Activity of the thread.
    pub doing: Doing,
    /// How long it has run.
    pub used: Duration,
    /// How long it runs while others wait.
    pub turn: u32,
    /// Registers of the thread.
    pub registers: Registers,
    /// Others are served while it waits.
    pub(super) is_kept: bool,
    /// Set if the thread has sent its call, so that its registers are out of reach.
    pub(super) has_sent: bool,
    /// The thread is to make a single step.
    pub steps: bool,
    /// The way in which it makes its calls.
    pub entrance: Entrance,
    /// The answer that it gets when the call that is being served is over.
    pub(super) answer: Option<Option<u64>>,
    pub(super) float: FloatRegisters,
}

impl Hardware for Console {
    type Root = ();
    type Table = machine::Table;

    fn can_allocate(&mut self, bytes: usize) -> bool {
        self.machine.can_allocate(bytes + self.kept)
    }
    fn grow(&mut self, pages: u32) -> bool {
        self.machine.grow(pages)
    }
    fn bytes(&mut self, page: Page) -> &mut [u8; 4096] {
        self.machine.bytes(page)
    }
    fn copy(&mut self, from: Place, to: Place, length: usize) {
        self.machine.copy(from, to, length);
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
    fn share(
        &mut self,
        from: &mut machine::Table,
        to: &mut machine::Table,
        used: std::ops::Range<usize>,
    ) -> Result<(), Errno> {
        self.machine.share(from, to, used)
    }
    fn drop_table(&mut self, root: &mut (), table: machine::Table) {
        self.machine.drop_table(root, table);
    }
    fn drop_root(&mut self, root: ()) {
        self.machine.drop_root(root);
    }
}

impl Threads for Console {
    type Thread = Thread;

    fn make_thread(&mut self, _: &(), number: u32) -> Result<Thread, Errno> {
        self.threads += 1;
        let float = FloatRegisters { q: [0; 32], status: 0, control: 0 };
        Ok(Thread {
            number,
            used: Duration::ZERO,
            turn: 1024,
            doing: Doing::Stopped,
            registers: Registers::ZERO,
            is_kept: false,
            has_sent: false,
            steps: false,
            answer: None,
            entrance: Entrance::Exceptions,
            float,
        })
    }
    fn end_thread(&mut self, _: Thread) {
        self.threads -= 1;
    }
    fn answer(&mut self, thread: &mut Thread, result: Option<u64>) {
        if thread.doing == Doing::Runs && std::mem::take(&mut thread.is_kept) {
            // It has given up waiting.
            return;
        }
        assert_eq!(thread.doing, Doing::Waits, "only who waits gets an answer");
        thread.answer = Some(result);
        if thread.is_kept {
            thread.take_answer();
        }
    }
    fn give_way(&mut self, thread: &mut Thread, result: u64) {
        self.answer(thread, Some(result));
        thread.take_answer();
    }
    fn keep(&mut self, thread: &mut Thread) {
        assert_eq!(thread.doing, Doing::Waits);
        thread.is_kept = true;
    }
    fn forget(&mut self, thread: &mut Thread) {
        thread.is_kept = false;
    }
    fn set_entrance(&mut self, thread: &mut Thread, _: &(), entrance: Entrance) -> Result<u64, Errno> {
        assert_eq!(thread.doing, Doing::Stopped);
        thread.entrance = entrance;
        Ok(if entrance == Entrance::Exceptions { 0 } else { 1 })
    }
    fn stop(&mut self, thread: &mut Thread) {
        thread.take_answer();
        thread.is_kept = false;
        if std::mem::take(&mut thread.has_sent) {
            thread.registers.x[..3].copy_from_slice(&[ABORTED, 0, 0]);
        }
        thread.doing = Doing::Stopped;
    }
    fn registers(&mut self, thread: &Thread) -> Registers {
        assert!(thread.doing != Doing::Runs && !thread.has_sent, "registers can be read only at rest");
        thread.registers
    }
    fn float_registers(&mut self, thread: &Thread) -> FloatRegisters {
        assert_ne!(thread.doing, Doing::Runs, "registers can be read only at rest");
        thread.float
    }
    fn set_registers(&mut self, thread: &mut Thread, registers: &Registers) {
        assert!(thread.doing == Doing::Waits && !thread.has_sent);
        thread.registers = *registers;
    }
    fn step(&mut self, thread: &mut Thread, registers: &Registers, rest: Rest) {
        match rest {
            Rest::Waits => self.set_registers(thread, registers),
            Rest::Stopped => self.run(thread, registers),
        }
        thread.steps = true;
    }
    fn set_float_registers(&mut self, thread: &mut Thread, registers: &FloatRegisters) {
        assert_ne!(thread.doing, Doing::Runs, "registers can be set only at rest");
        thread.float = *registers;
    }
    fn move_thread(&mut self, thread: &mut Thread, _: &()) {
        assert_eq!(thread.doing, Doing::Stopped);
        thread.entrance = Entrance::Exceptions;
    }
    fn set_turn(&mut self, thread: &mut Thread, parts: u32) {
        thread.turn = parts;
    }
    fn used(&mut self, thread: &Thread) -> Duration {
        thread.used
    }
    fn run(&mut self, thread: &mut Thread, registers: &Registers) {
        assert_eq!(thread.doing, Doing::Stopped);
        (thread.doing, thread.registers) = (Doing::Runs, *registers);
    }
}

impl Machine for Console {
    fn further_pages(&self) -> u64 {
        100
    }
    fn monotonic(&self) -> Duration {
        self.read.set(self.read.get() + 1);
        self.time + self.passes * self.read.get()
    }
    fn frequency(&self) -> u64 {
        62_500_000
    }
    fn start(&self) -> Duration {
        START
    }
    fn are_console(&self) -> [bool; 3] {
        self.are_console
    }
    fn write_outside(&mut self, stream: u32, bytes: &[u8]) -> Result<usize, Errno> {
        self.stream = stream;
        self.output.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn borrow_terminal(&mut self) -> bool {
        self.lends
    }
    fn await_input(&mut self) {
        self.awaits_input = true;
    }
    fn keep_room(&mut self, bytes: usize) {
        self.kept = bytes;
    }
    fn begin_errands(&mut self) -> Result<(), Errno> {
        if self.files.is_short { Err(Errno::ENOMEM) } else { Ok(()) }
    }
    fn send_errand(&mut self, number: u64, errand: Errand) {
        self.files.errands.push_back((number, errand));
    }
    fn run_errand(&mut self, errand: Errand) -> Result<Finding, Errno> {
        errand::run(&mut self.files, errand)
    }
    fn random(&mut self, into: &mut [u8]) {
        into.fill(7);
    }
    fn report(&mut self, line: &str) {
        self.reports.push(line.to_owned());
    }
}

impl Console {
    /// Lets a function say how much memory there is for the personality itself.
    pub fn set_can_allocate(&mut self, function: fn(usize) -> bool) {
        self.machine.can_allocate = function;
    }

    /// Returns the number of address spaces and tables that exist.
    pub fn alive(&self) -> usize {
        self.machine.alive
    }
}
