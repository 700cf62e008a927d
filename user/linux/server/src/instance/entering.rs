//! Calls that programs send as messages.

use alloc::boxed::Box;

use tench_linux_calls::Sysno;
use tench_linux_files::Errno;

use super::Instance;
use crate::Machine;
use crate::caller::{Entering, Outcome};
use crate::process::Process;
use crate::thread::{Rest, State};

/// Returns whether a call needs or sets its thread's registers, and so must be made as an exception.
fn needs_registers(number: u64) -> bool {
    use Sysno::{clone, clone3, execve, execveat, prctl, rt_sigreturn, sigaltstack};
    [clone, clone3, execve, execveat, prctl, rt_sigreturn, sigaltstack].iter().any(|call| *call as u64 == number)
}

impl<M: Machine> Instance<M> {
    /// Serves a call that a thread has sent. Calls that need registers fail with `ENOSYS`.
    pub fn call_by_message(&mut self, thread: u32, number: u64, arguments: &[u64; 6]) {
        let Some(mut process) = self.processes.take_thread(thread) else { return };
        self.forget_call(&mut process);
        process.thread_mut().sends = true;
        let outcome = if needs_registers(number) {
            Err(Errno::ENOSYS).into()
        } else {
            self.caller(&mut process).call(number, arguments)
        };
        self.conclude(process, outcome);
        self.settle();
    }

    /// Ends the previous call of a process's present thread, if that was sent and is still being served: the thread
    /// need not have waited for the reply.
    #[cold]
    pub(super) fn forget_call(&mut self, process: &mut Process<M>) {
        let thread = process.thread_mut();
        thread.sends = false;
        if core::mem::replace(&mut thread.state, State::Runs) != State::Waits {
            return;
        }
        if let Some(waiting) = thread.waiting.take() {
            let id = thread.id;
            self.system.waiters.remove(id, &waiting);
            self.system.cancel(id, &waiting);
        }
        self.system.memory.hardware.forget(&mut process.thread_mut().machine);
        self.caller(process).end_trace(None);
    }

    /// Replies with a result to the present thread of a process, which has sent its call, and delivers the thread's
    /// signals. Their handlers interrupt the thread where it has received the reply.
    pub(super) fn go_on_after_message(&mut self, mut process: Box<Process<M>>, result: u64) {
        let hardware = &mut self.system.memory.hardware;
        let thread = process.thread_mut();
        thread.sends = false;
        hardware.answer(&mut thread.machine, Some(result));
        let registers = self.stop_thread(&mut process);
        self.go_on(process, registers, Rest::Stopped);
    }

    /// Sets how a process's present thread makes its calls.
    pub(super) fn enter(&mut self, mut process: Box<Process<M>>, &Entering { entrance, buffer }: &Entering) {
        let mut registers = self.system.memory.hardware.registers(&process.thread().machine);
        let (memory, spaces) = (&mut self.system.memory, &mut self.system.spaces);
        memory.hardware.stop(&mut process.thread_mut().machine);
        let root = spaces.get(process.space).space.root();
        let entered = memory.hardware.set_entrance(&mut process.thread_mut().machine, root, entrance);
        let (object, result) = match (entered, buffer) {
            (Ok(_), Some((object, address))) => (Some(object), Ok(address)),
            (entered, buffer) => (buffer.map(|(object, _)| object), entered),
        };
        let keeps = result.is_ok();
        let thread = process.thread_mut();
        if keeps {
            self.system.set_buffer(thread, object);
        } else if let Some(object) = object {
            self.system.memory.objects.release(&mut self.system.memory.pool, object);
        }
        let Outcome::Return(result) = result.into() else { return self.processes.put(process) };
        registers.x[0] = result;
        self.go_on(process, registers, Rest::Stopped);
    }
}
