//! The reaper is a thread of this server that only requests the next part of what is left to do, at the priority of the
//! ended process or of its killer, whichever is higher. So long teardown runs at the right urgency, and blocks this
//! server for one part at most.

use alloc::vec::Vec;
use core::time::Duration;

use tench::memory;
use tench::thread::Builder;
use tench::time;
use tench_abi::Rights;
use tench_abi::layout::slot;
use tench_abi::process::DEFAULT_PRIORITY;
use tench_procs_interface::pid;
use tench_sys::{Cap, Endpoint, Message, Notification, SchedulingContext, Wait};

use crate::spawn::SERVICE;

/// Size of the reaper's stack in bytes.
const STACK: usize = 8 << 10;
/// Pause before a server that did not reply is told again that a process has ended.
const PAUSE: Duration = Duration::from_millis(100);

/// A part of the work.
pub enum Work {
    /// A part of destroying this process.
    End(u64),
    /// A process builder of this process of another core is to be discarded.
    Forget(u64),
    /// Servers are to be told again of ended processes, if any.
    Tell,
}

/// Work that is left after a part.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing is left.
    Nothing,
    /// There is a next part.
    Part,
    /// There is a next part, after a pause.
    Later,
}

/// The reaper thread and its work.
pub struct Reaper {
    /// Badge of its requests.
    badge: u64,
    context: Cap<SchedulingContext>,
    wake: Cap<Notification>,
    /// Processes that are being destroyed, each with the priority of its teardown.
    endings: Vec<(u8, u64)>,
    /// Processes of other cores that have ended, and whose process builders here are to be discarded.
    foreign: Vec<u64>,
    /// Priority at which servers are told again of ended processes; 0 if none is to be told.
    tell_priority: u8,
    /// The thread's current priority, if it has been set.
    priority: Option<u8>,
}

impl Reaper {
    /// Starts the thread. It has this server's priority until there is work.
    pub fn start(core: u64) -> Option<Reaper> {
        let wake = memory::make::<Notification>(0).ok()?.leak();
        let way = memory::take_slot().ok()?;
        let badge = pid::pid_base(core) | pid::PROCS;
        let service = SERVICE.mint_to(way, Rights::WRITE | Rights::CALL, badge).ok()?;
        let thread =
            Builder::new().name("reaper").stack_size(STACK).spawn(move || ask_for_parts(service, wake)).ok()?;
        let context = thread.scheduling()?;
        thread.detach();
        let (endings, foreign) = (Vec::new(), Vec::new());
        Some(Reaper { badge, context, wake, endings, foreign, tell_priority: 0, priority: None })
    }

    /// Returns whether a message with this badge comes from the reaper.
    pub const fn is_own(&self, badge: u64) -> bool {
        badge == self.badge
    }

    /// Adds a process, at the priority 0, whose teardown takes further parts. Returns whether there is memory for that.
    pub fn add(&mut self, process: u64) -> bool {
        let has_room = self.endings.try_reserve(1).is_ok();
        if has_room {
            self.endings.push((0, process));
        }
        has_room
    }

    /// Adds a process of another core whose process builders are to be discarded, and wakes the reaper. Returns whether
    /// there is memory for that.
    pub fn add_foreign(&mut self, process: u64) -> bool {
        let has_room = self.foreign.try_reserve(1).is_ok();
        if has_room {
            self.foreign.push(process);
            self.wake();
        }
        has_room
    }

    /// Raises the priority of a teardown.
    pub fn hasten(&mut self, process: u64, priority: u8) {
        let mut found = self.endings.iter_mut().filter(|(_, ending)| *ending == process);
        if let Some((now, _)) = found.find(|(now, _)| *now < priority) {
            *now = priority;
            self.update_priority();
        }
    }

    /// Makes the reaper tell, at this priority, a running server that missed the end of a process.
    pub fn tell_later(&mut self, priority: u8) {
        self.tell_priority = self.tell_priority.max(priority);
        self.wake();
    }

    /// Notes that every server has been told.
    pub const fn all_are_told(&mut self) {
        self.tell_priority = 0;
    }

    /// Begins a part. Returns the next work.
    pub fn next_work(&mut self) -> Work {
        self.update_priority();
        if let Some(process) = self.first() {
            return Work::End(process);
        }
        self.foreign.pop().map_or(Work::Tell, Work::Forget)
    }

    /// Returns the next process to work on: the first of those with the highest priority.
    fn first(&self) -> Option<u64> {
        let highest = self.highest()?;
        self.endings.iter().find(|(priority, _)| *priority == highest).map(|(_, process)| *process)
    }

    fn highest(&self) -> Option<u8> {
        self.endings.iter().map(|(priority, _)| *priority).max()
    }

    /// Records that a part is done: the process moves behind the others of its priority, or out of the queue if it has
    /// ended.
    pub fn is_done_with(&mut self, process: u64, has_ended: bool) {
        if let Some(index) = self.endings.iter().position(|(_, ending)| *ending == process) {
            let ending = self.endings.remove(index);
            if !has_ended {
                self.endings.push(ending);
            }
        }
    }

    /// Sets the thread's priority to that of the next work, if there is any. This is not done before the next part
    /// begins: until then this server replies to those who waited for the part before.
    fn update_priority(&mut self) {
        let foreign = (!self.foreign.is_empty()).then_some(DEFAULT_PRIORITY);
        let tell_priority = (self.tell_priority > 0).then_some(self.tell_priority);
        let Some(priority) = self.highest().or(foreign).or(tell_priority) else { return };
        if self.priority != Some(priority) && set_priority(self.context, priority) {
            self.priority = Some(priority);
        }
    }

    /// Wakes the reaper for new work.
    pub fn wake(&mut self) {
        self.update_priority();
        // The thread waits for this signal, or sees it when it has done its part.
        let _ = self.wake.signal();
    }
}

fn set_priority(context: Cap<SchedulingContext>, priority: u8) -> bool {
    let main = Cap::<SchedulingContext>::new(slot::SCHEDULING);
    let Ok(like) = main.query() else { return false };
    context.configure(u64::from(priority), like.ceiling, like.slice, Some(main)).is_ok()
}

/// Requests one part after another while there is work.
fn ask_for_parts(service: Cap<Endpoint>, wake: Cap<Notification>) {
    while wake.wait().is_ok() {
        loop {
            match service.call_with(&Message::new(0), Wait::FOREVER).map(|reply| reply.label()) {
                Ok(label) if label == Next::Part as u64 => {}
                // The pause also ends when new work arrives.
                Ok(label) if label == Next::Later as u64 => drop(wake.wait_until(time::deadline(PAUSE))),
                _ => break,
            }
        }
    }
}
