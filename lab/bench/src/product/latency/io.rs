//! A load that is in the kernel most of the time, as packet processing is.
//!
//! ```text
//!   sender (this process)                     driver (this process, above)        peer (process of its own, above)
//!   for each burst:
//!     make a buffer of 64 pages, map it
//!     for each of 8 packets:
//!       write a device register ── interrupt ─► acknowledge it, quieten the device
//!       read two device registers
//!       three calls of 64 words ──────────────────────────────────────────────────► copy in, reply 64 words
//!       copy the reply to the buffer
//!       a few small system calls
//!     send the buffer's capability ───────────────────────────────────────────────► map it, read each page, unmap it,
//!     unmap the buffer, delete it                                                    delete the capability
//! ```
//! A buffer goes to another process, so it is made anew for each burst and the kernel zeroes it: no process sees
//! another's data in it. The device is the real-time clock, whose alarm has gone off once and for all: its mask
//! register raises and lowers the interrupt line.

use alloc::boxed::Box;
use alloc::string::String;

use tench::abi::layout::slot;
use tench::abi::memory::{PAGE_BITS, PAGE_SIZE};
use tench::abi::message::MAX_WORDS;
use tench::abi::{CapAddress, Rights};
use tench::memory::{self, Made, Window, make};
use tench::sys::{
    Cap, Endpoint, Frame, Interrupt, MapFlags, Message, Notification, OWN_CSPACE, Received, Untyped, Wait, offer_slots,
};
use tench::thread;

use super::load::{Body, Load, Signal};
use super::{PRIORITY, problem};
use crate::support::Child;

/// Priority of the peer and of the driver: arrivals are handled at once.
const PEER_PRIORITY: u8 = PRIORITY + 10;
const DRIVER_PRIORITY: u8 = PRIORITY + 20;
/// Argument that makes this program the peer.
pub const PEER: &str = "latency-peer";

/// Log2 of a buffer: 64 pages.
const BUFFER_BITS: u32 = PAGE_BITS + 6;
/// Packets of a burst, and the calls of 504 bytes that carry each: 1,512 bytes.
const PACKETS: usize = 8;
const PARTS: usize = 3;
/// Words of data in a message; the first word says where they belong.
const WORDS: usize = MAX_WORDS - 1;
const PART_BYTES: usize = WORDS * size_of::<u64>();

const _: () = assert!(PACKETS * PARTS * PART_BYTES <= 1 << BUFFER_BITS);

/// Labels of messages.
mod label {
    /// Words of a packet.
    pub const PART: u64 = 1;
    /// Capability of a buffer.
    pub const BUFFER: u64 = 2;
    /// A refusal of the request.
    pub const REFUSED: u64 = 3;
}

/// The real-time clock's registers and interrupt, as the system description gives them.
const REGISTERS: Cap<Frame> = Cap::new(slot::EXTRA);
const LINE: Cap<Interrupt> = Cap::new(CapAddress(slot::EXTRA.0 + 1));

/// Registers of Arm's PL031 real-time clock.
mod register {
    /// Seconds, read-only.
    pub const DATA: usize = 0x00;
    /// Seconds at which the interrupt is raised.
    pub const MATCH: usize = 0x04;
    /// 1: the raised interrupt reaches the line.
    pub const MASK: usize = 0x10;
    /// 1: the interrupt is raised.
    pub const RAW_STATUS: usize = 0x14;
}

const WRITABLE: MapFlags = MapFlags::READ.union(MapFlags::WRITE);
const DEVICE: MapFlags = WRITABLE.union(MapFlags::DEVICE);

/// Maps the device, with its alarm gone off.
fn device() -> Result<Window, String> {
    let device = Window::new(REGISTERS, PAGE_BITS, DEVICE).map_err(problem("the device's registers"))?;
    device.write32(register::MASK, 0);
    while device.read32(register::RAW_STATUS) & 1 == 0 {
        device.write32(register::MATCH, device.read32(register::DATA));
    }
    Ok(device)
}

/// Sender, driver and peer.
pub struct Io {
    load: Load,
    peer: Child,
    interrupt: Made<Notification>,
}

impl Io {
    /// Starts them.
    pub fn start() -> Result<Io, String> {
        let peer = Child::start(PEER, PEER_PRIORITY)?;
        let interrupt = make::<Notification>(0).map_err(problem("a notification"))?;
        let notification = interrupt.cap();
        LINE.bind(Some(notification)).map_err(problem("the device's interrupt"))?;
        let driver_device = device()?;
        let sender = Sender::new(device()?, peer.endpoint(), notification)?;
        let driver: Body = Box::new(move |signal| drive(&signal, &driver_device, notification));
        let sender: Body = Box::new(move |signal| sender.run(&signal));
        let load = Load::start(alloc::vec![(DRIVER_PRIORITY, driver), (PRIORITY, sender)])?;
        Ok(Io { load, peer, interrupt })
    }

    /// Ends them; returns the number of bursts.
    pub fn stop(self) -> Result<u64, String> {
        let rounds = self.load.stop()?;
        LINE.bind(None).map_err(problem("the device's interrupt"))?;
        self.peer.stop()?;
        drop(self.interrupt);
        match rounds[..] {
            // The last interrupt may be the signal that ends the driver.
            [interrupts, bursts] if bursts > 0 && interrupts >= bursts * PACKETS as u64 => Ok(bursts),
            _ => Err(alloc::format!("not every packet had its interrupt: {rounds:?}")),
        }
    }
}

/// Runs the driver, which handles interrupts.
fn drive(signal: &Signal, device: &Window, interrupt: Cap<Notification>) -> Result<u64, String> {
    let mut count = 0;
    loop {
        interrupt.wait().map_err(problem("waiting for an interrupt"))?;
        if signal.is_over() && device.read32(register::MASK) == 0 {
            return Ok(count);
        }
        device.write32(register::MASK, 0);
        LINE.acknowledge().map_err(problem("acknowledging an interrupt"))?;
        count += 1;
    }
}

/// Resources of the sender.
struct Sender {
    device: Window,
    peer: Cap<Endpoint>,
    interrupt: Cap<Notification>,
    /// Memory for buffers.
    memory: Made<Untyped>,
    /// Slot for a buffer, and slot for what small system calls make.
    buffer: CapAddress,
    other: CapAddress,
    doorbell: Made<Notification>,
    message: Message,
    received: Received,
}

impl Sender {
    fn new(device: Window, peer: Cap<Endpoint>, interrupt: Cap<Notification>) -> Result<Sender, String> {
        Ok(Sender {
            device,
            peer,
            interrupt,
            memory: make::<Untyped>(u64::from(BUFFER_BITS)).map_err(problem("memory for buffers"))?,
            buffer: memory::take_slot().map_err(problem("a slot"))?,
            other: memory::take_slot().map_err(problem("a slot"))?,
            doorbell: make::<Notification>(0).map_err(problem("a notification"))?,
            message: Message::new(label::PART),
            received: Received::new(),
        })
    }

    /// Sends bursts until the load is stopped, and wakes the driver for the last time.
    fn run(mut self, signal: &Signal) -> Result<u64, String> {
        let mut bursts = 0;
        while !signal.is_over() {
            self.burst(bursts)?;
            bursts += 1;
        }
        self.interrupt.signal().map_err(problem("a signal"))?;
        memory::free_slot(self.buffer);
        memory::free_slot(self.other);
        Ok(bursts)
    }

    /// Sends a burst of packets.
    fn burst(&mut self, number: u64) -> Result<(), String> {
        let what = "a buffer";
        let frame = self.memory.cap().retype::<Frame>(u64::from(BUFFER_BITS), self.buffer).map_err(problem(what))?;
        let window = Window::new(frame, BUFFER_BITS, WRITABLE).map_err(problem(what))?;
        for packet in 0..PACKETS {
            self.device.write32(register::MASK, 1);
            let _ = (self.device.read32(register::DATA), self.device.read32(register::RAW_STATUS));
            for part in 0..PARTS {
                self.part(number, packet * PARTS + part, &window)?;
            }
            self.small_calls().map_err(problem("small system calls"))?;
        }
        self.message.restart(label::BUFFER);
        self.message.copy_cap(frame);
        self.exchange()?;
        drop(window);
        let deleted = frame.delete().map_err(problem(what))?;
        if deleted.freed.is_some() { Ok(()) } else { Err("a buffer is still in use".into()) }
    }

    /// Sends one part of a packet, and copies the reply to the buffer.
    fn part(&mut self, burst: u64, part: usize, buffer: &Window) -> Result<(), String> {
        let data: [u64; WORDS] = core::array::from_fn(|word| burst << 32 | (part * WORDS + word) as u64);
        self.message.restart(label::PART);
        self.message.push(part as u64);
        self.message.extend(&data);
        self.exchange()?;
        let replied = &self.received.words()[1..];
        if replied.first() != data.last() || replied.len() != WORDS {
            return Err("a packet came back damaged".into());
        }
        for (word, value) in replied.iter().enumerate() {
            buffer.write64(part * PART_BYTES + word * size_of::<u64>(), *value);
        }
        Ok(())
    }

    /// Calls the peer.
    fn exchange(&mut self) -> Result<(), String> {
        self.peer.call_into(&self.message, &mut self.received).map_err(problem("a call"))?;
        if self.received.label() == label::REFUSED { Err("the peer has failed".into()) } else { Ok(()) }
    }

    /// Makes each of the short system calls once.
    fn small_calls(&self) -> Result<(), tench::abi::Error> {
        let doorbell = self.doorbell.cap();
        doorbell.signal()?;
        doorbell.poll()?;
        doorbell.identify()?;
        let minted = doorbell.mint_to(self.other, Rights::WRITE, 0)?;
        minted.signal()?;
        minted.delete()?;
        doorbell.poll()?;
        thread::current_thread().query()?;
        self.memory.cap().query()?;
        thread::yield_now();
        Ok(())
    }
}

/// Runs the peer, a process that receives what is sent and replies as much.
pub fn peer() -> Result<(), String> {
    let endpoint = Cap::<Endpoint>::new(slot::SERVICE);
    let slot = memory::take_slot().map_err(problem("a slot"))?;
    let mut ring = alloc::vec![0_u64; PACKETS * PARTS * WORDS];
    let (mut message, mut received) = (Message::new(label::PART), Received::new());
    offer_slots(&[slot]);
    endpoint.receive_into(Wait::FOREVER, &mut received).map_err(problem("receiving"))?;
    loop {
        let reply = match received.label() {
            label::PART => take_part(&received, &mut ring, &mut message),
            _ => take_buffer(&received, slot),
        };
        if reply.is_none() {
            message.restart(label::REFUSED);
        } else if received.label() != label::PART {
            message.restart(label::BUFFER);
        }
        offer_slots(&[slot]);
        endpoint.reply_receive_into(&message, Wait::FOREVER, &mut received).map_err(problem("receiving"))?;
    }
}

/// Copies a part of a packet into the ring, and makes the reply: the same words in reverse order.
fn take_part(received: &Received, ring: &mut [u64], message: &mut Message) -> Option<()> {
    let (part, data) = received.words().split_first()?;
    let slot = ring.chunks_exact_mut(WORDS).nth(*part as usize).filter(|slot| slot.len() == data.len())?;
    for (to, from) in slot.iter_mut().zip(data.iter().rev()) {
        *to = *from;
    }
    message.restart(label::PART);
    message.push(*part);
    message.extend(slot);
    Some(())
}

/// Reads each page of a buffer, and deletes it.
fn take_buffer(received: &Received, slot: CapAddress) -> Option<()> {
    let [cap, ..] = received.caps() else { return None };
    let frame = Cap::<Frame>::new(*cap);
    let window = Window::new(frame, BUFFER_BITS, MapFlags::READ).ok()?;
    // The rest must be zero, not another process's data.
    let used = PACKETS * PARTS * PART_BYTES;
    let clean =
        (used.next_multiple_of(PAGE_SIZE)..window.size()).step_by(PAGE_SIZE).all(|page| window.read64(page) == 0);
    let filled = window.read64(0) != 0 && window.read64(used - size_of::<u64>()) != 0;
    drop(window);
    OWN_CSPACE.delete_at(slot).ok()?;
    (clean && filled && *cap == slot).then_some(())
}
