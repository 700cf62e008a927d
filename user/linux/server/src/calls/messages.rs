//! Sending and receiving.

use alloc::vec;
use alloc::vec::Vec;

use tench_linux_calls::Sysno;
use tench_linux_calls::numbers::{capability, open};
use tench_linux_calls::records::{msghdr, u32_at, u64_at};
use tench_linux_files::Errno;
use tench_linux_sockets::control::{self, Ipv6Header, Writer};
use tench_linux_sockets::numbers::{family, kind, message};
use tench_linux_sockets::{Credentials, Message, Received};

use super::sockets::Named;
use super::transfer::{MAX_VECTORS, Vector};
use crate::Machine;
use crate::caller::{Caller, Result, WAITS};
use crate::descriptors::{DescriptionId, Descriptor};
use crate::specials::Socket;
use crate::waiting::Waiting;

/// The most bytes that are copied at once.
const PART: usize = 64 * 1024;
/// The longest message that any socket takes is shorter.
const MAX_MESSAGE: u64 = 1 << 20;
/// The most messages of one call.
const MAX_MESSAGES: u64 = 1024;
/// The most bytes of control messages.
const MAX_CONTROL: u64 = 20 << 10;

/// Everything that is sent beside bytes.
#[derive(Default)]
struct Outgoing {
    to: Option<Named>,
    credentials: Option<Credentials>,
    version_6: Ipv6Header,
    rights: Vec<DescriptionId>,
    flags: u32,
}

/// A record of what is to be sent, or of where to put what is received.
struct Header {
    address: u64,
    record: [u8; msghdr::SIZE],
}

impl Header {
    fn word(&self, offset: usize) -> u64 {
        u64_at(&self.record, offset)
    }
}

impl<M: Machine> Caller<'_, M> {
    /// Sends bytes, at first from where a call that has waited has come to.
    fn send(&mut self, socket: &Socket, own: u32, vectors: &[Vector], mut outgoing: Outgoing) -> Result {
        let result = if socket.is_stream() {
            self.send_stream(socket, own, vectors, &mut outgoing)
        } else {
            self.send_message(socket, own, vectors, &mut outgoing)
        };
        // Rights that were not sent.
        for description in outgoing.rights {
            self.system.close(description);
        }
        let is_told = outgoing.flags & message::NOSIGNAL == 0 && matches!(socket.kind, kind::STREAM | kind::SEQPACKET);
        match result {
            Err(Errno::EPIPE) if is_told => Err(self.broken_pipe()),
            result => result,
        }
    }

    fn send_stream(&mut self, socket: &Socket, own: u32, vectors: &[Vector], outgoing: &mut Outgoing) -> Result {
        let length: u64 = vectors.iter().map(|vector| vector.length).sum();
        let mut done = self.done();
        let mut buffer = self.take_buffer();
        let result = loop {
            // The program may have changed how much there is to send.
            let part = length.saturating_sub(done).min(PART as u64) as usize;
            let filled = self.gather(vectors, done, &mut buffer[..part]);
            if filled < part {
                break Err(Errno::EFAULT);
            }
            match self.send_part(socket, own, &buffer[..filled], outgoing) {
                Ok(count) => done += count as u64,
                Err(error) => break Err(error),
            }
            if done >= length {
                break Ok(done);
            }
        };
        self.system.buffer = buffer;
        match result {
            Err(WAITS) => {
                if let Some(waiting) = self.waiting_mut() {
                    waiting.done = done;
                }
                Err(WAITS)
            }
            Err(_) if done > 0 => Ok(done),
            result => result,
        }
    }

    fn send_message(&mut self, socket: &Socket, own: u32, vectors: &[Vector], outgoing: &mut Outgoing) -> Result {
        let length: u64 = vectors.iter().map(|vector| vector.length).sum();
        if length > MAX_MESSAGE {
            return Err(Errno::EMSGSIZE);
        }
        let mut bytes = vec![0; length as usize];
        if self.gather(vectors, 0, &mut bytes) < bytes.len() {
            return Err(Errno::EFAULT);
        }
        self.send_part(socket, own, &bytes, outgoing).map(|count| count as u64)
    }

    /// Sends bytes once, and with the first ones the rights.
    fn send_part(&mut self, socket: &Socket, own: u32, bytes: &[u8], outgoing: &mut Outgoing) -> Result<usize> {
        let credentials = outgoing.credentials.unwrap_or(self.real_credentials());
        let sent = Message {
            to: outgoing.to.as_ref().map(Named::target),
            credentials,
            states_credentials: outgoing.credentials.is_some(),
            header: outgoing.version_6,
            flags: outgoing.flags,
        };
        // One call may send many messages.
        if self.system.is_short || self.system.calls_left == 0 && !self.system.check_reserve() {
            return Err(Errno::ENOBUFS);
        }
        let result = self.system.sockets.send(socket.id, &[bytes], &sent, &mut outgoing.rights);
        if self.system.sockets.take_growth() {
            self.system.calls_left = 0;
        }
        let may_wait = (own & open::NONBLOCK) == 0 && outgoing.flags & message::DONTWAIT == 0;
        self.socket_result(socket.id, result, may_wait, true)
    }

    /// Receives bytes into several places. A call that wants all bytes of a stream goes on from where it has come to.
    fn receive(
        &mut self,
        socket: &Socket,
        own: u32,
        vectors: &[Vector],
        flags: u32,
    ) -> Result<Received<DescriptionId>> {
        let may_wait = own & open::NONBLOCK == 0 && flags & message::DONTWAIT == 0;
        let flags = if may_wait { flags } else { flags | message::DONTWAIT };
        let length: u64 = vectors.iter().map(|vector| vector.length).sum();
        let most = if socket.is_stream() { PART as u64 } else { MAX_MESSAGE };
        let mut done = self.done();
        loop {
            let mut bytes = self.take_buffer();
            // The program may have changed how much there is room for.
            let part = length.saturating_sub(done).min(most) as usize;
            bytes.resize(part.max(PART), 0);
            let result = self.system.sockets.receive(socket.id, &mut [&mut bytes[..part]], flags);
            // What has come already is the result of a call that would have to wait for more.
            let waits = may_wait && (done == 0 || flags & message::WAITALL != 0);
            let result = self.socket_result(socket.id, result, waits, false);
            let mut received = match result {
                Ok(received) => received,
                Err(error) => {
                    self.system.buffer = bytes;
                    return self.received_before(error, done);
                }
            };
            let count = received.count.min(part);
            let written = self.scatter(vectors, done, &bytes[..count]);
            self.system.buffer = bytes;
            if written < count {
                self.let_go(received);
                return Err(Errno::EFAULT);
            }
            done += count as u64;
            let is_over = !socket.is_stream() || done >= length || count == 0 || received.has_rights;
            if is_over || flags & message::PEEK != 0 || count < part && flags & message::WAITALL == 0 {
                received.count += done as usize - count;
                return Ok(received);
            }
        }
    }

    /// Returns what a call returns that has received so many bytes before it failed or has to wait.
    fn received_before(&mut self, error: Errno, done: u64) -> Result<Received<DescriptionId>> {
        match self.waiting_mut() {
            Some(waiting) if error == WAITS => waiting.done = done,
            _ if done > 0 => return Ok(Received::of_bytes(done as usize)),
            _ => {}
        }
        Err(error)
    }

    /// Closes the files that were received and that nobody gets.
    fn let_go(&mut self, received: Received<DescriptionId>) {
        for description in received.rights {
            self.system.close(description);
        }
    }

    /// Reads what a socket has received, from one message into several places. Files that came with it are closed.
    pub(super) fn read_socket(&mut self, descriptor: u64, vectors: &[Vector]) -> Result {
        if vectors.iter().all(|vector| vector.length == 0) {
            return Ok(0);
        }
        let (socket, _, own) = self.socket_of(descriptor)?;
        let received = self.receive(&socket, own, vectors, 0)?;
        let count = received.count as u64;
        self.let_go(received);
        Ok(count)
    }

    /// Reads what a socket has received, as much as there is room for. Files that came with it are closed.
    pub(super) fn receive_bytes(&mut self, socket: &Socket, waits: bool, into: &mut [u8]) -> Result<usize> {
        let room = into.len();
        let flags = if waits { 0 } else { message::DONTWAIT };
        let result = self.system.sockets.receive(socket.id, &mut [into], flags);
        let received = self.socket_result(socket.id, result, waits, false)?;
        let count = received.count.min(room);
        self.let_go(received);
        Ok(count)
    }

    /// Writes to a socket, one message from several places.
    pub(super) fn write_socket(&mut self, descriptor: u64, vectors: &[Vector]) -> Result {
        let (socket, _, own) = self.socket_of(descriptor)?;
        self.send(&socket, own, vectors, Outgoing::default())
    }

    /// Writes bytes of a file to a socket.
    pub(crate) fn send_bytes(&mut self, socket: &Socket, flags: u32, from: &[u8]) -> Result<usize> {
        let result = self.send_part(socket, flags, from, &mut Outgoing::default());
        match result {
            Err(Errno::EPIPE) if matches!(socket.kind, kind::STREAM | kind::SEQPACKET) => Err(self.broken_pipe()),
            result => result,
        }
    }

    /// Sends bytes from one place.
    pub fn sendto(&mut self, [descriptor, address, length, flags, name, name_length]: [u64; 6]) -> Result {
        let (socket, _, own) = self.socket_of(descriptor)?;
        let to = self.receiver(&socket, name, name_length)?;
        let outgoing = Outgoing { to, flags: flags as u32, ..Outgoing::default() };
        self.send(&socket, own, &[Vector { address, length }], outgoing)
    }

    /// Returns to whom the process sends, if it says so.
    fn receiver(&mut self, socket: &Socket, name: u64, length: u64) -> Result<Option<Named>> {
        if name == 0 || length == 0 {
            return Ok(None);
        }
        let record = self.read_address(name, length)?;
        self.named(socket, &record).map(Some)
    }

    /// Receives bytes into one place.
    pub fn recvfrom(&mut self, [descriptor, address, length, flags, name, name_length]: [u64; 6]) -> Result {
        let (socket, _, own) = self.socket_of(descriptor)?;
        let received = self.receive(&socket, own, &[Vector { address, length }], flags as u32)?;
        let count = received.count;
        let record = sender(&received);
        self.let_go(received);
        if name != 0 {
            self.write_address(&record, name, name_length)?;
        }
        Ok(count as u64)
    }

    fn read_header(&mut self, address: u64) -> Result<Header> {
        let record = self.read_record(address)?;
        Ok(Header { address, record })
    }

    /// Reads where the parts of a message are.
    fn message_vectors(&mut self, header: &Header) -> Result<Vec<Vector>> {
        let count = header.word(msghdr::VECTOR_COUNT);
        if count > MAX_VECTORS {
            return Err(Errno::EMSGSIZE);
        }
        self.read_vectors(header.word(msghdr::VECTORS), count)
    }

    /// Sends bytes from several places, and open files.
    pub fn sendmsg(&mut self, descriptor: u64, header: u64, flags: u64) -> Result {
        let (socket, _, own) = self.socket_of(descriptor)?;
        let header = self.read_header(header)?;
        let vectors = self.message_vectors(&header)?;
        let name_length = u32_at(&header.record, msghdr::NAME_LENGTH).into();
        let to = self.receiver(&socket, header.word(msghdr::NAME), name_length)?;
        let mut outgoing = Outgoing { to, flags: flags as u32, ..Outgoing::default() };
        let (control, length) = (header.word(msghdr::CONTROL), header.word(msghdr::CONTROL_LENGTH));
        // What was sent before the call waited was sent with these.
        if control != 0 && length != 0 && self.done() == 0 {
            self.read_control(&socket, control, length, &mut outgoing)?;
        }
        self.send(&socket, own, &vectors, outgoing)
    }

    /// Returns the credentials that come with what the process sends.
    fn real_credentials(&self) -> Credentials {
        let identity = self.identity();
        Credentials { process: self.process.id, user: identity.user.real, group: identity.group.real }
    }

    /// Reads the control messages that are sent with bytes.
    fn read_control(&mut self, socket: &Socket, address: u64, length: u64, outgoing: &mut Outgoing) -> Result<()> {
        if length > MAX_CONTROL {
            return Err(Errno::ENOBUFS);
        }
        let records = self.read(address, length as usize)?;
        if socket.family == family::INET6 && socket.kind == kind::DGRAM {
            outgoing.version_6 = Ipv6Header::parse(&records)?;
        }
        let sent = control::parse(&records)?;
        if let Some(credentials) = sent.credentials {
            let own = self.identity();
            let is_own = (credentials.process == self.process.id || own.has(capability::SYS_ADMIN))
                && (own.user.has(credentials.user) || own.has(capability::SETUID))
                && (own.group.has(credentials.group) || own.has(capability::SETGID));
            if !is_own {
                return Err(Errno::EPERM);
            }
            let is_there = credentials.process == self.process.id || self.others.owner(credentials.process).is_some();
            outgoing.credentials = Some(credentials).filter(|_| is_there);
            outgoing.credentials.ok_or(Errno::ESRCH)?;
        }
        let rights = sent.descriptors.iter().map(|number| self.descriptor(u64::from(*number)));
        let rights: Vec<DescriptionId> = rights.collect::<Result<_>>()?;
        for description in &rights {
            self.system.descriptions.share(*description);
        }
        outgoing.rights = rights;
        Ok(())
    }

    /// Receives bytes into several places, and open files.
    pub fn recvmsg(&mut self, descriptor: u64, header: u64, flags: u64) -> Result {
        let (socket, _, own) = self.socket_of(descriptor)?;
        let flags = flags as u32;
        let header = self.read_header(header)?;
        let vectors = self.message_vectors(&header)?;
        let mut received = self.receive(&socket, own, &vectors, flags)?;
        let (count, record) = (received.count, sender(&received));
        if flags & message::PEEK != 0 && received.has_rights {
            received.rights = self.system.sockets.rights_ahead(socket.id)?.to_vec();
            received.rights.iter().for_each(|description| self.system.descriptions.share(*description));
        }
        let mut told = received.flags;
        let closes_on_exec = flags & message::CMSG_CLOEXEC != 0;
        let (control, cut) = self.received_control(&header, received, closes_on_exec);
        told |= cut | flags & message::CMSG_CLOEXEC;
        if header.word(msghdr::NAME) != 0 {
            self.write_address(&record, header.word(msghdr::NAME), header.address + msghdr::NAME_LENGTH as u64)?;
        }
        self.write_if_wanted(header.word(msghdr::CONTROL), &control)?;
        self.write(header.address + msghdr::CONTROL_LENGTH as u64, &(control.len() as u64).to_le_bytes())?;
        self.write(header.address + msghdr::FLAGS as u64, &told.to_le_bytes())?;
        Ok(count as u64)
    }

    /// Returns the control messages with what was received, as many as there is room for. The process has descriptors
    /// for the files in them.
    fn received_control(
        &mut self,
        header: &Header,
        received: Received<DescriptionId>,
        closes_on_exec: bool,
    ) -> (Vec<u8>, u32) {
        let has_place = header.word(msghdr::CONTROL) != 0;
        let room = if has_place { header.word(msghdr::CONTROL_LENGTH).min(MAX_CONTROL) as usize } else { 0 };
        let mut writer = Writer::new(room);
        if let Some(credentials) = received.credentials {
            writer.credentials(credentials);
        }
        writer.header(received.header);
        if !received.rights.is_empty() {
            let fitting = writer.room_for_descriptors(received.rights.len());
            let mut numbers = Vec::new();
            for (index, description) in received.rights.into_iter().enumerate() {
                let descriptor = Descriptor { description, closes_on_exec };
                match self.use_free_number(descriptor, 0) {
                    Ok(number) if index < fitting => numbers.push(number),
                    Ok(number) => {
                        self.process.descriptors.set(number, None);
                        self.system.close(description);
                    }
                    Err(_) => self.system.close(description),
                }
            }
            writer.descriptors(&numbers);
        }
        writer.end()
    }

    /// Sends several messages. Returns their number: fewer than asked for if one cannot be sent.
    pub fn sendmmsg(&mut self, descriptor: u64, headers: u64, count: u64, flags: u64) -> Result {
        let count = u64::from(count as u32).min(MAX_MESSAGES);
        self.socket_of(descriptor)?;
        self.several(headers, count, |caller, header, _| caller.sendmsg(descriptor, header, flags))
    }

    /// Receives several messages. Returns their number: fewer than asked for if one cannot be received, or if the
    /// program wants to wait for one only.
    pub fn recvmmsg(&mut self, descriptor: u64, headers: u64, count: u64, flags: u64, time: u64) -> Result {
        const FOR_ONE: u64 = 0x10000;
        self.socket_of(descriptor)?;
        if time != 0 {
            self.read_time(time)?;
        }
        self.several(headers, u64::from(count as u32), |caller, header, index| {
            let waits = flags & FOR_ONE == 0 || index == 0;
            let flags = flags & !FOR_ONE | if waits { 0 } else { message::DONTWAIT.into() };
            caller.recvmsg(descriptor, header, flags)
        })
    }

    /// Ends the message, of several, for which a call waits that a handler interrupts: with the part of it that was
    /// sent or received, if there is one.
    pub(crate) fn end_message(&mut self, waiting: &mut Waiting) {
        let is_of_several = [Sysno::sendmmsg, Sysno::recvmmsg].iter().any(|call| *call as u64 == waiting.number);
        if !is_of_several || waiting.done == 0 {
            return;
        }
        let header = waiting.arguments[1].wrapping_add(waiting.messages * msghdr::SIZE_OF_SEVERAL as u64);
        let place = header.wrapping_add(msghdr::DONE as u64);
        if self.write(place, &(waiting.done as u32).to_le_bytes()).is_ok() {
            waiting.messages += 1;
        }
    }

    /// Does something to each of several messages until it cannot be done, and writes each one's length. A call that
    /// has waited goes on with the message for which it did.
    fn several(&mut self, headers: u64, count: u64, mut each: impl FnMut(&mut Self, u64, u64) -> Result) -> Result {
        /// As with Linux.
        const MOST: u64 = 1024;
        let count = count.min(MOST);
        let mut index = self.waiting().map_or(0, |waiting| waiting.messages);
        while index < count {
            let header = headers.wrapping_add(index * msghdr::SIZE_OF_SEVERAL as u64);
            let written = each(self, header, index).and_then(|length| {
                self.write(header.wrapping_add(msghdr::DONE as u64), &(length as u32).to_le_bytes())
            });
            match written {
                Ok(()) => index += 1,
                Err(WAITS) => {
                    // It may have to ask about an address in a mount, and not wait yet.
                    self.process.thread_mut().waiting.get_or_insert_default().messages = index;
                    return Err(WAITS);
                }
                Err(_) if index > 0 => return Ok(index),
                Err(error) => return Err(error),
            }
            // The next one waits for itself.
            self.process.thread_mut().waiting = None;
        }
        Ok(count)
    }
}

/// Returns the record of the address from which something was received; an empty one if there is none.
fn sender(received: &Received<DescriptionId>) -> Vec<u8> {
    let mut record = Vec::new();
    if let Some(address) = received.sender.address() {
        address.write(&mut record);
    }
    record
}
