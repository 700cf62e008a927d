//! The adversary's threads.

use alloc::string::String;
use core::mem::offset_of;

use tench::abi::message::{IpcBuffer, MAX_CAPS};
use tench::memory::{Made, make};
use tench::sys::thread::{Binding, Bindings};
use tench::sys::{Error, Notification, Reply, SchedulingContext, Thread};

use super::{Arena, problem};
use crate::bare_threads::{BareThread, Code, Home};

impl Arena {
    /// Makes a thread of this priority.
    pub fn victim(&mut self, priority: u64, home: Home) -> Result<BareThread, Error> {
        let victim = BareThread { thread: self.make(0)?, scheduling: self.make(0)? };
        victim.set_up(priority, home)
    }

    /// Makes a thread with an IPC buffer that this program can write to, and a reply object. The buffer's number is
    /// below `BUFFERS`.
    pub fn correspondent(&mut self, priority: u64, buffer: usize) -> Result<BareThread, Error> {
        let home = Home { buffer: Some((self.buffers[buffer].frame(), 0)), ..Home::OWN };
        let victim = self.victim(priority, home)?;
        let reply = self.make::<Reply>(0)?;
        victim.thread.bind(Bindings { reply: Binding::To(reply), ..Bindings::KEEP })?;
        Ok(victim)
    }

    /// Writes which capabilities the thread with this IPC buffer sends, and where it receives.
    pub fn write_ipc_buffer(&self, buffer: usize, send: [u32; MAX_CAPS], receive: [u32; MAX_CAPS]) {
        let address = self.buffers[buffer].address();
        let fields = [(offset_of!(IpcBuffer, send_caps), send), (offset_of!(IpcBuffer, receive_slots), receive)];
        for (offset, caps) in fields {
            for (index, cap) in caps.into_iter().enumerate() {
                let pointer = core::ptr::with_exposed_provenance_mut::<u32>(address + offset + index * 4);
                // SAFETY: the page is mapped as long as `self` lives, and there are no references into it.
                unsafe { pointer.write_volatile(cap) };
            }
        }
    }
}

/// Ticks between two deadlines of the ticker; nothing else here takes a multiple of that.
const TICKS: u64 = 617;
/// Priority of the ticker: above all others.
const PRIORITY: u64 = 145;

/// A thread that is woken by the timer, again and again, as long as this value lives.
pub struct Ticker {
    // Dropped in this order: the thread first.
    _thread: Made<Thread>,
    _scheduling: Made<SchedulingContext>,
    _notification: Made<Notification>,
}

impl Ticker {
    /// Starts the ticker.
    pub fn start() -> Result<Ticker, String> {
        let thread = make::<Thread>(0).map_err(problem("a thread"))?;
        let scheduling = make::<SchedulingContext>(0).map_err(problem("a scheduling context"))?;
        let notification = make::<Notification>(0).map_err(problem("a notification"))?;
        let victim = BareThread { thread: thread.cap(), scheduling: scheduling.cap() };
        let waits_for = u64::from(notification.cap().address().0);
        let started =
            victim.set_up(PRIORITY, Home::OWN).and_then(|v| v.start(Code::Ticker, &[], [0, TICKS, waits_for]));
        started.map_err(problem("the ticker"))?;
        Ok(Ticker { _thread: thread, _scheduling: scheduling, _notification: notification })
    }
}
