//! Requests and interrupts of the console server.

use tench::memory::{self, Error as MemoryError, Window};
use tench::server::{Watch, missed_signals};
use tench_abi::layout::slot;
use tench_console::kept::{Kept, Ownership};
use tench_console::terminal::{GROWTH, Key, Outcome, Terminal};
use tench_console_interface::Console;
use tench_console_interface::protocol::{ConsoleService, Error, MAX_TEXT, Mode};
use tench_protocol::replies::write;
use tench_protocol::{Arrived, Bytes, Caller, Event, Later, Pending, Port, Powers, Replies};
use tench_quota::pace::Pace;
use tench_sys::thread::Binding;
use tench_sys::{
    Bindings, Cap, CapAddress, Error as KernelError, Frame, Instant, Interrupt, Kind, Notification, OWN_CSPACE, Thread,
    Wait,
};

use crate::uart::Uart;

/// Frame with the device's registers: the first extra capability of the system description.
const REGISTERS: Cap<Frame> = Cap::new(slot::EXTRA);
/// The device's interrupt line: the second extra capability.
const INTERRUPT: Cap<Interrupt> = Cap::new(CapAddress(slot::EXTRA.0 + 1));
/// Maximum number of threads that can wait.
const MAX_WAITERS: usize = 256;
/// Number of waits that are checked when a request finds no room, or a process has ended. Few, because the device may
/// signal meanwhile and make the rest of the check as urgent as the console.
const LOOKS: usize = 8;
/// Nanoseconds of a [pause](Pace) between expired reads that are ended.
const PAUSE: u64 = 250_000;
/// Bytes of persistent state, if the system description gives none.
const MEMORY: u64 = 64 * 1024;

/// A thread that waits for input, or until output has been sent.
type Waiter = tench_protocol::Waiter<Outcome>;

/// Returns the waiter for input.
fn reader(pending: Pending<Bytes<'static, MAX_TEXT>, Error>) -> Waiter {
    pending.waiter(|outcome, message| match outcome {
        Outcome::Input(bytes) => write::<_, Error>(&Ok(Bytes::<MAX_TEXT>::first_of(bytes)), message),
        Outcome::Done => write::<_, Error>(&Ok(Bytes::<MAX_TEXT>::first_of(&[])), message),
        Outcome::Refused(why) => write::<(), _>(&Err(*why), message),
    })
}

/// Returns the waiter for the end of output.
fn writer(pending: Pending<(), Error>) -> Waiter {
    pending.waiter(|outcome, message| match outcome {
        Outcome::Input(_) | Outcome::Done => write::<_, Error>(&Ok(()), message),
        Outcome::Refused(why) => write::<(), _>(&Err(*why), message),
    })
}

/// The server's state.
pub struct Server {
    uart: Uart,
    terminal: Terminal<Waiter>,
    /// Notification that Ctrl-C signals, in a persistent slot.
    interrupt: Option<Cap<Notification>>,
    /// Notification that Ctrl-Z signals, in a persistent slot.
    suspend: Option<Cap<Notification>>,
    kept: Kept<Window>,
    /// Ownership, as in the persistent state.
    ownership: Ownership,
    /// The persistent slots.
    slots: [CapAddress; 2],
    /// Tells which reply objects still hold a waiting thread.
    watch: Watch,
    /// Limits how many expired reads are ended at a time.
    pace: Pace,
}

impl Server {
    /// Sets up the device and its interrupt.
    pub fn new() -> Result<Server, MemoryError> {
        memory::serve_without_faults(2 * GROWTH)?;
        let (slots, window) = tench::server::Kept::open(MEMORY, 1)?;
        let kept = Kept::new(window);
        let mut terminal = Terminal::resumed(MAX_WAITERS, &kept);
        let slots = [slots.slot(0), slots.slot(1)];
        let [interrupt, suspend] = slots.map(|slot| is_notification(slot).then_some(Cap::new(slot)));
        terminal.set_suspends(suspend.is_some());
        let ownership = terminal.ownership();
        let uart = Uart::new(REGISTERS)?;
        let notification = memory::make::<Notification>(0)?.leak();
        let bindings = Bindings { notification: Binding::To(notification), ..Bindings::KEEP };
        Cap::<Thread>::new(slot::THREAD).bind(bindings)?;
        INTERRUPT.bind(Some(notification))?;
        Ok(Server {
            uart,
            terminal,
            interrupt,
            suspend,
            kept,
            ownership,
            slots,
            watch: Watch::new()?,
            pace: Pace::new(PAUSE, tench::time::frequency()),
        })
    }

    /// Serves requests and interrupts for ever.
    pub fn serve(&mut self) -> ! {
        let mut port = tench::server::port(1, 1);
        // Keys may have been typed before the console was there.
        self.take_interrupt();
        loop {
            match port.next(self.next_wait()) {
                Event::Signal(_) => self.take_interrupt(),
                Event::Request => {
                    port.carry_out(|request, context, reply| Console::dispatch(self, request, context, reply))
                }
                Event::Nothing => {}
            }
            self.expire();
            self.send();
            // The check for waiting threads may have lost a signal of the device.
            while missed_signals() != 0 {
                self.take_interrupt();
            }
            // The state must be saved before the reply says that it is done.
            self.keep();
            self.deliver(&mut port);
        }
    }

    /// Returns how the server waits for the next event: not at all, while there is something to do.
    fn next_wait(&self) -> Wait {
        if self.terminal.has_capacity() {
            return Wait::until(Instant::from_ticks(0));
        }
        let deadline = self.terminal.next_deadline().map(|deadline| self.pace.earliest(deadline.ticks()));
        deadline.map_or(Wait::FOREVER, |deadline| Wait::until(Instant::from_ticks(deadline)))
    }

    /// Ends some of the expired reads.
    fn expire(&mut self) {
        // The clock is read only if some wait has a deadline.
        if self.terminal.next_deadline().is_none() {
            return;
        }
        let now = Instant::now();
        while self.pace.admits(now.ticks()) && self.terminal.expire_one(now) {
            self.pace.count(now.ticks());
        }
    }

    /// Saves the state that must survive a restart.
    fn keep(&mut self) {
        self.kept.set_output(&self.terminal.output);
        let ownership = self.terminal.ownership();
        if self.ownership != ownership {
            self.kept.set_ownership(ownership);
            self.ownership = ownership;
        }
    }

    /// Handles the device's interrupt: it has received something, or has room to send.
    fn take_interrupt(&mut self) {
        self.uart.clear_interrupts();
        while let Some(byte) = self.uart.receive() {
            let key = self.terminal.typed(byte);
            self.signal(key);
        }
        self.send();
        // The line was bound above; acknowledging it cannot fail.
        let _ = INTERRUPT.acknowledge();
    }

    /// Signals a key to the process that controls the foreground process.
    fn signal(&self, key: Option<Key>) {
        let signalled = match key {
            None => None,
            Some(Key::Interrupt) => self.interrupt,
            Some(Key::Suspend) => self.suspend,
        };
        // If that process has ended, there is nothing to signal.
        let _ = signalled.map(Cap::<Notification>::signal);
    }

    /// Sends what the device has room for, and requests an interrupt if more is to come.
    fn send(&mut self) {
        while self.uart.can_send() {
            let Some(byte) = self.terminal.output.front() else { break };
            self.uart.send(byte);
            self.terminal.output.pop();
        }
        let watch = self.watch;
        self.terminal.sent(|waiter| watch.has_gone(waiter));
        self.uart.want_transmit_interrupt(!self.terminal.output.is_empty());
    }

    /// Replies to threads that need not wait any more. The last reply is sent together with the next receive, unless
    /// the reply to the current request is.
    fn deliver(&mut self, port: &mut Port) {
        while let Some((waiter, outcome)) = self.terminal.next_outcome() {
            let Outcome::Input(bytes) = &outcome else {
                port.finish_waiter(waiter, &outcome);
                continue;
            };
            // Delivery must be known: input that does not arrive is for the next reader.
            if port.replies.send_to(waiter, &outcome) == Err(KernelError::NoCaller) {
                self.terminal.undelivered(bytes);
            }
        }
    }

    /// Stores the notification that a key signals from now on, in its slot.
    fn keep_signal(slot: CapAddress, notification: Cap<Notification>) -> Option<Cap<Notification>> {
        // The slot's old content is of no use any more; the slot may also be empty.
        let _ = OWN_CSPACE.delete_at(slot);
        notification.copy_to(slot).ok()
    }

    /// Keeps a request for a later reply of the terminal.
    fn keep_request<T>(&mut self, caller: Caller, mut later: Later<'_, T, Error>) -> Result<Pending<T, Error>, Error> {
        if !self.terminal.may_wait(caller) || self.terminal.is_looking(caller.family) {
            let watch = self.watch;
            let has_gone = |waiter: &Waiter| watch.has_gone(waiter);
            let mut gone = self.terminal.take_out_some(caller.family, LOOKS, has_gone);
            if !self.terminal.may_wait(caller) {
                gone.extend(self.terminal.take_out_any(LOOKS, has_gone));
            }
            gone.into_iter().for_each(|waiter| later.others().forget(waiter));
        }
        // As much again stays for typed input, and for processes that end.
        memory::reserve_heap(2 * GROWTH).map_err(|_| Error::Full)?;
        later.keep().map_err(|_| Error::Full)
    }

    /// Forgets which notifications keys signal.
    fn forget_signals(&mut self) {
        let signals = [self.interrupt.take(), self.suspend.take()];
        self.terminal.set_suspends(false);
        for (slot, _) in self.slots.iter().zip(signals).filter(|(_, signal)| signal.is_some()) {
            // The slot is not empty, unless the process that gave the capability has ended.
            let _ = OWN_CSPACE.delete_at(*slot);
        }
    }
}

impl ConsoleService for Server {
    fn put(
        &mut self,
        caller: Caller,
        powers: Powers,
        later: Later<'_, (), Error>,
        text: Bytes<'_, MAX_TEXT>,
    ) -> Result<Option<()>, Error> {
        let pending = self.keep_request(caller, later)?;
        self.terminal.write_with(caller, powers, &text, writer(pending));
        Ok(None)
    }

    fn get(
        &mut self,
        caller: Caller,
        later: Later<'_, Bytes<'static, MAX_TEXT>, Error>,
        max: usize,
    ) -> Result<Option<Bytes<'_, MAX_TEXT>>, Error> {
        let pending = self.keep_request(caller, later)?;
        self.terminal.read(caller, max, None, reader(pending));
        Ok(None)
    }

    fn get_until(
        &mut self,
        caller: Caller,
        later: Later<'_, Bytes<'static, MAX_TEXT>, Error>,
        max: usize,
        deadline: Instant,
    ) -> Result<Option<Bytes<'_, MAX_TEXT>>, Error> {
        let pending = self.keep_request(caller, later)?;
        if deadline <= Instant::now() {
            self.terminal.read_at_once(caller, max, reader(pending));
        } else {
            self.terminal.read(caller, max, Some(deadline), reader(pending));
        }
        Ok(None)
    }

    fn set_suspend_signal(
        &mut self,
        caller: Caller,
        powers: Powers,
        suspend: Arrived<'_, Notification>,
    ) -> Result<(), Error> {
        self.terminal.check_control(caller.process, powers)?;
        self.suspend = Server::keep_signal(self.slots[1], suspend.cap());
        self.terminal.set_suspends(self.suspend.is_some());
        Ok(())
    }

    fn lend(&mut self, caller: Caller, powers: Powers, process: u64) -> Result<(), Error> {
        self.terminal.lend(caller.process, powers, process, self.interrupt.is_some())
    }

    fn set_mode(&mut self, caller: Caller, powers: Powers, mode: Mode) -> Result<(), Error> {
        let key = self.terminal.set_mode(caller.process, powers, mode)?;
        self.signal(key);
        Ok(())
    }

    fn state(&mut self) -> Result<(Mode, u64, bool), Error> {
        Ok(self.terminal.mode())
    }

    fn set_reader(&mut self, caller: Caller, powers: Powers, process: u64) -> Result<(), Error> {
        self.terminal.set_foreground(caller.process, powers, process)?;
        self.forget_signals();
        Ok(())
    }

    fn set_reader_and_signal(
        &mut self,
        caller: Caller,
        powers: Powers,
        process: u64,
        interrupt: Arrived<'_, Notification>,
    ) -> Result<(), Error> {
        self.terminal.set_foreground(caller.process, powers, process)?;
        self.forget_signals();
        self.interrupt = Server::keep_signal(self.slots[0], interrupt.cap());
        Ok(())
    }

    fn process_ended(&mut self, replies: &mut Replies, process: u64) -> Result<(), Error> {
        let (waiters, was_owner) = self.terminal.process_ended(process);
        waiters.into_iter().for_each(|waiter| replies.forget(waiter));
        // Requests in its name, or in that of a process that ended before, may have come since and been given up.
        let watch = self.watch;
        let gone = self.terminal.take_out_any(LOOKS, |waiter| watch.has_gone(waiter));
        gone.into_iter().for_each(|waiter| replies.forget(waiter));
        if was_owner {
            self.forget_signals();
        }
        Ok(())
    }

    fn drain(&mut self, caller: Caller, later: Later<'_, (), Error>) -> Result<Option<()>, Error> {
        let pending = self.keep_request(caller, later)?;
        self.uart.flush();
        self.terminal.drain(caller, writer(pending));
        Ok(None)
    }
}

/// Returns whether a slot contains a notification.
fn is_notification(slot: CapAddress) -> bool {
    OWN_CSPACE.identify_at(slot).is_ok_and(|found| found.kind == Kind::Notification)
}
