//! Requests and interrupts.

use tench::memory::{self, Error as MemoryError};
use tench_abi::layout::slot;
use tench_console::terminal::{Answer, GROWTH, Terminal};
use tench_console_client::protocol::{Error, Label, MAX_TEXT, Mode};
use tench_protocol::{DONE, Replies};
use tench_sys::thread::Binding;
use tench_sys::{
    Bindings, Cap, CapAddress, Endpoint, Error as Refusal, Frame, Interrupt, Kind, Message, Notification, OWN_SPACE,
    Received, Reply, Thread, Wait, offer_slots,
};

use crate::uart::Uart;

/// Where requests arrive.
const SERVICE: Cap<Endpoint> = Cap::new(slot::SERVICE);
/// The frame with the device's registers: first of what the system description gives.
const REGISTERS: Cap<Frame> = Cap::new(slot::EXTRA);
/// The device's interrupt line: second of what the system description gives.
const INTERRUPT: Cap<Interrupt> = Cap::new(CapAddress(slot::EXTRA.0 + 1));
/// The badge of those who may say that a process has ended.
const AUTHORITY: u64 = 0;
/// Threads that can wait.
const MAX_WAITERS: usize = 256;
/// Spare reply objects that are kept.
const MAX_SPARE: usize = 32;

/// The server's state.
pub struct Server {
    uart: Uart,
    terminal: Terminal<Cap<Reply>>,
    replies: Replies<MAX_SPARE>,
    /// What Ctrl-C signals.
    foreground: Option<Cap<Notification>>,
    /// The slot for a capability that comes with the next request; empty.
    incoming: Option<CapAddress>,
}

impl Server {
    /// Sets up the device and its interrupt.
    pub fn new() -> Result<Server, MemoryError> {
        memory::serve_without_faults(2 * GROWTH)?;
        let uart = Uart::new(REGISTERS)?;
        let notification = memory::make::<Notification>(0)?.leak();
        let bindings = Bindings { notification: Binding::To(notification), ..Bindings::KEEP };
        Cap::<Thread>::new(slot::THREAD).bind(bindings)?;
        INTERRUPT.bind(Some(notification))?;
        Ok(Server {
            uart,
            terminal: Terminal::new(MAX_WAITERS),
            replies: Replies::new(Cap::new(slot::REPLY)),
            foreground: None,
            incoming: None,
        })
    }

    /// Answers requests and interrupts for ever.
    pub fn serve(&mut self) {
        let mut next: Option<Message> = None;
        loop {
            self.offer();
            let wait = self.replies.wait(Wait::FOREVER);
            let received = match &next {
                Some(answer) => SERVICE.reply_receive(answer, wait),
                None => SERVICE.receive(wait),
            };
            next = match received {
                Ok(signal) if signal.is_notification() => {
                    self.interrupt();
                    self.deliver()
                }
                Ok(request) => self.answer(&request),
                Err(_) => None,
            };
        }
    }

    /// Offers a slot for a capability. Without one, Ctrl-C signals nothing.
    fn offer(&mut self) {
        self.incoming = self.incoming.or_else(|| memory::take_slot().ok());
        match self.incoming {
            Some(slot) => offer_slots(&[slot]),
            None => offer_slots(&[]),
        }
    }

    /// The device has received something, or has room to send.
    fn interrupt(&mut self) {
        self.uart.clear_interrupts();
        while let Some(byte) = self.uart.receive() {
            if self.terminal.typed(byte)
                && let Some(foreground) = self.foreground
            {
                // Who is not there any more cannot be interrupted.
                let _ = foreground.signal();
            }
        }
        self.send();
        // The line was bound above; acknowledging it cannot fail.
        let _ = INTERRUPT.acknowledge();
    }

    /// Sends what the device has room for, and asks for an interrupt if more is to come.
    fn send(&mut self) {
        while self.uart.can_send() {
            match self.terminal.output.pop() {
                Some(byte) => self.uart.send(byte),
                None => break,
            }
        }
        self.terminal.sent();
        self.uart.want_transmit_interrupt(!self.terminal.output.is_empty());
    }

    /// Answers those who need not wait any more. The last of them is answered together with the next receive: with what
    /// this answers.
    fn deliver(&mut self) -> Option<Message> {
        self.send();
        let mut due = self.terminal.next_answer();
        while let Some((reply, answer)) = due {
            let input = match &answer {
                Answer::Input(bytes) => Some(bytes),
                Answer::Refused(_) | Answer::Done => None,
            };
            due = match input {
                // Whether input has arrived must be known: otherwise it is for the next reader.
                Some(bytes) => {
                    if reply.reply(&message(&answer)) == Err(Refusal::NoCaller) {
                        self.terminal.undelivered(bytes);
                    }
                    self.release(reply);
                    self.terminal.next_answer()
                }
                None => match self.terminal.next_answer() {
                    None => {
                        self.resume(reply);
                        return Some(message(&answer));
                    }
                    more => {
                        // Who gave up meanwhile is answered nothing.
                        let _ = reply.reply(&message(&answer));
                        self.release(reply);
                        more
                    }
                },
            };
        }
        None
    }

    /// Carries out a request. Answers what the caller in the current reply object is to be told.
    fn answer(&mut self, request: &Received) -> Option<Message> {
        let cap = request.caps().first().copied();
        let next = match self.carry_out(request, cap) {
            Ok(Some(answer)) => Some(answer),
            Ok(None) => self.deliver(),
            Err(error) => Some(Message::new(error as u64)),
        };
        if let (Some(cap), Some(slot)) = (cap, self.incoming)
            && cap == slot
        {
            // Nobody has kept it; the slot is for the next one.
            let _ = OWN_SPACE.delete_at(slot);
        }
        next
    }

    /// Carries out a request. Without an answer, the terminal has the reply object.
    fn carry_out(&mut self, request: &Received, cap: Option<CapAddress>) -> Result<Option<Message>, Error> {
        let label = Label::from_code(request.label()).filter(|_| !request.is_fault()).ok_or(Error::BadRequest)?;
        let process = request.badge();
        let argument = || request.words().first().copied().ok_or(Error::BadRequest);
        match label {
            Label::Write => {
                let text = request.reader().text().filter(|text| text.len() <= MAX_TEXT).ok_or(Error::BadRequest)?;
                let reply = self.keep()?;
                self.terminal.write(process, text, reply);
                Ok(None)
            }
            Label::Read => {
                let max = usize::try_from(argument()?).map_err(|_| Error::BadRequest)?;
                let reply = self.keep()?;
                self.terminal.read(process, max, reply);
                Ok(None)
            }
            Label::Drain => {
                self.uart.flush();
                let reply = self.keep()?;
                self.terminal.drain(process, reply);
                Ok(None)
            }
            Label::SetMode => {
                let mode = Mode::from_code(argument()?).ok_or(Error::BadRequest)?;
                self.terminal.set_mode(process, mode)?;
                Ok(Some(Message::new(DONE)))
            }
            Label::Mode => {
                let (mode, foreground, is_mid_line) = self.terminal.mode();
                Ok(Some(Message::with_words(DONE, &[mode as u64, foreground, u64::from(is_mid_line)])))
            }
            Label::SetForeground => {
                self.terminal.set_foreground(process, argument()?)?;
                self.set_interrupt(cap);
                Ok(Some(Message::new(DONE)))
            }
            Label::ProcessEnded => {
                if process != AUTHORITY {
                    return Err(Error::NotAllowed);
                }
                self.process_ended(argument()?);
                Ok(Some(Message::new(DONE)))
            }
        }
    }

    /// Keeps what Ctrl-C signals from now on.
    fn set_interrupt(&mut self, cap: Option<CapAddress>) {
        self.forget_interrupt();
        let is_notification =
            |cap: &CapAddress| OWN_SPACE.identify_at(*cap).is_ok_and(|identity| identity.kind == Kind::Notification);
        if let Some(cap) = cap.filter(is_notification) {
            self.foreground = Some(Cap::new(cap));
            self.incoming = None;
        }
    }

    fn forget_interrupt(&mut self) {
        if let Some(old) = self.foreground.take() {
            discard(old.address());
        }
    }

    fn process_ended(&mut self, process: u64) {
        let (replies, was_owner) = self.terminal.process_ended(process);
        for reply in replies {
            self.release(reply);
        }
        if was_owner {
            self.forget_interrupt();
        }
    }

    /// Keeps the current reply object for the terminal.
    fn keep(&mut self) -> Result<Cap<Reply>, Error> {
        // As much again stays for what is typed, and for those who end.
        memory::reserve_heap(2 * GROWTH).map_err(|_| Error::Full)?;
        self.replies.keep(make_reply).map_err(|_| Error::Full)
    }

    /// The caller in a kept reply object is answered at once.
    fn resume(&mut self, reply: Cap<Reply>) {
        if let Some(surplus) = self.replies.make_current(reply) {
            discard(surplus.address());
        }
    }

    /// A reply object is done with.
    fn release(&mut self, reply: Cap<Reply>) {
        if let Some(surplus) = self.replies.release(reply) {
            discard(surplus.address());
        }
    }
}

/// An answer as a message.
fn message(answer: &Answer) -> Message {
    match answer {
        Answer::Input(bytes) => {
            let mut message = Message::new(DONE);
            message.push_text(bytes);
            message
        }
        Answer::Refused(error) => Message::new(*error as u64),
        Answer::Done => Message::new(DONE),
    }
}

/// Deletes a capability and gives its slot back.
fn discard(cap: CapAddress) {
    if OWN_SPACE.delete_at(cap).is_ok() {
        memory::free_slot(cap);
    }
}

/// A new reply object.
fn make_reply() -> Result<Cap<Reply>, Refusal> {
    memory::make::<Reply>(0).map(|made| made.leak()).map_err(|_| Refusal::OutOfMemory)
}
