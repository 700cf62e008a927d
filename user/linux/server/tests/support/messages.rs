//! Threads that send their calls.

use super::{Doing, Play};

/// Tag of the reply to a call that was sent.
pub const RESULT_TAG: u64 = 1 << 16 | 1;
/// The kernel's error of a message whose sender was stopped.
pub const ABORTED: u64 = 13;

impl Play {
    /// Sends a call from a running process. Returns its result, if the process still runs afterwards.
    pub fn send(&mut self, id: u32, number: u64, arguments: [u64; 6]) -> Option<u64> {
        let thread = self.thread(id);
        assert_eq!(thread.doing, Doing::Runs);
        (thread.doing, thread.has_sent) = (Doing::Waits, true);
        thread.registers.pc = thread.registers.pc.wrapping_add(4);
        self.instance.call_by_message(id, number, &arguments);
        self.send_answer(id);
        (self.doing(id)? == Doing::Runs).then(|| self.thread(id).registers.x[2])
    }

    /// Makes a process that has sent a call stop waiting for the reply, which the personality does not notice.
    pub fn give_up(&mut self, id: u32) {
        let thread = self.thread(id);
        assert!(thread.doing == Doing::Waits && thread.has_sent);
        (thread.doing, thread.has_sent) = (Doing::Runs, false);
    }
}
