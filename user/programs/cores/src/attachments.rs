//! Attachments: memory that is sent along with requests to another core, and with their replies. This program is both
//! sides: the guest is the same program, started on the other core.
//!
//! ```text
//!   host                                        guest
//!   its endpoint, with a badge  ── give ──────▶ takes it
//!   makes a buffer              ◀─ attach ───── asks for it, twice: the first is returned
//!   reverses bytes in it        ◀─ turn ─────── more of them than a message holds
//!   has the guest's frame,      ◀─ swap ─────── sends a frame,
//!   and replies with its own    ── reply ─────▶ and writes into the host's
//!   has it no more              ◀─ is_gone ──── revokes its own
//!   gives memory                ◀─ memory ───── makes a frame of it
//!   receives no request         ◀╳ hold ─────── cannot send a thread
//!   revokes everything          ◀─ done ─────── ends
//! ```

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use tench::abi::layout::slot;
use tench::memory::{self, Made, Window};
use tench::println;
use tench::server::slots;
use tench::shared::{Buffers, Connection};
use tench::sys::{
    Cap, CapAddress, Endpoint, Error as KernelError, Frame, Kind, MapFlags, OWN_CSPACE, Placement, Rights, Thread,
    Untyped, Wait,
};
use tench_mem_interface::{Block, Mem};
use tench_monitor_interface::Monitor;
use tench_monitor_interface::protocol::Transfer;
use tench_protocol::{
    Arrived, Event, Factory, Failure, Given, Port, Rejection, Replies, Sent, Shared, SharedMut, interface,
};

use crate::processes::{spawn, text, wait};
use crate::share::{FRAME_BITS, many, settled, take_slot, until};

/// Word of the transfer that brings the guest's capability, and the capability's badge.
const HOST: u64 = 7;
/// Size of the largest buffer, and number of bytes sent through it.
const LARGEST: u64 = 64 << 10;
const BYTES: usize = 20_000;
/// Log2 of the size of the memory that the host gives.
const MEMORY_BITS: u32 = 14;
/// Words that the sides write into frames.
const HERE: u64 = 0x6865_7265;
const THERE: u64 = 0x0074_6865_7265;
const RW: MapFlags = MapFlags::READ.union(MapFlags::WRITE);

/// The requests of the guest.
#[interface(client = AttachmentHost, version = 1)]
pub trait AttachmentHostService {
    /// Reverses bytes.
    #[method(1)]
    fn turn(&mut self, bytes: Shared<'_>, into: SharedMut<'_>) -> Result<(), Error>;

    /// Exchanges the guest's frame for the host's. Errors: `Mistake`: the guest has not written into it.
    #[method(2)]
    fn swap(&mut self, frame: Arrived<'_, Frame>) -> Result<Sent<Frame>, Error>;

    /// Returns true if the guest's frame has been revoked, and the guest has written into the host's.
    #[method(3)]
    fn is_gone(&mut self) -> Result<bool, Error>;

    /// Gives memory. Errors: `Mistake`: there is none.
    #[method(4)]
    fn memory(&mut self) -> Result<Sent<Untyped, Given>, Error>;

    /// Receives a thread. The request never arrives.
    #[method(5)]
    fn hold(&mut self, thread: Arrived<'_, Thread>) -> Result<(), Error>;

    /// Ends the session: the guest has done everything.
    #[method(6)]
    fn done(&mut self) -> Result<(), Error>;
}

tench_protocol::codes! {
    /// Error of a request.
    pub enum Error {
        /// Something is not as it should be.
        Mistake = 1, "something is not as it should be";
    }
}

/// Returns an error as text.
fn wrong<E: core::fmt::Display>(error: E) -> String {
    error.to_string()
}

/// The host.
struct Host {
    /// The host's own frame, and the window to it.
    frame: Made<Frame>,
    window: Window,
    /// The guest's frame.
    guests: Option<(CapAddress, Window)>,
    /// The memory that the guest has.
    block: Option<Block>,
    outgoing: CapAddress,
    is_done: bool,
}

impl AttachmentHostService for Host {
    fn turn(&mut self, bytes: Shared<'_>, into: SharedMut<'_>) -> Result<(), Error> {
        let mut copy = vec![0; bytes.len()];
        bytes.read(0, &mut copy);
        copy.reverse();
        into.write(0, &copy);
        Ok(())
    }

    fn swap(&mut self, frame: Arrived<'_, Frame>) -> Result<Sent<Frame>, Error> {
        let window = Window::new(frame.cap(), FRAME_BITS, RW).map_err(|_| Error::Mistake)?;
        if window.read64(0) != THERE {
            return Err(Error::Mistake);
        }
        window.write64(8, HERE);
        self.guests = Some((frame.keep().address(), window));
        Ok(Sent::new(self.frame.cap()))
    }

    fn is_gone(&mut self) -> Result<bool, Error> {
        let (slot, _) = self.guests.as_ref().ok_or(Error::Mistake)?;
        let found = OWN_CSPACE.identify_at(*slot).map_err(|_| Error::Mistake)?;
        Ok(found.kind == Kind::Null && self.window.read64(8) == THERE)
    }

    fn memory(&mut self) -> Result<Sent<Untyped, Given>, Error> {
        let block = Mem::STANDARD.allocate(MEMORY_BITS, self.outgoing).map_err(|_| Error::Mistake)?;
        let memory = Sent::new(block.untyped);
        self.block = Some(block);
        Ok(memory)
    }

    fn hold(&mut self, _: Arrived<'_, Thread>) -> Result<(), Error> {
        Err(Error::Mistake)
    }

    fn done(&mut self) -> Result<(), Error> {
        self.is_done = true;
        Ok(())
    }
}

/// Serves a guest on another core, `times` times.
pub fn attachments(monitor: Monitor, core: u64, times: u64) -> Result<(), String> {
    many(monitor, core, times, host)
}

fn host(monitor: Monitor, core: u64, aloud: bool) -> Result<(), String> {
    let (_, own) = monitor.cores().map_err(text)?;
    let before = monitor.exchanged().map_err(text)?;
    let guest = spawn(monitor, core, &["cores", "attachments-of", if core == own { "here" } else { "there" }])?;
    let endpoint = memory::make::<Endpoint>(0).map_err(wrong)?;
    let public = take_slot()?;
    endpoint.cap().mint_to(public, Rights::WRITE | Rights::CALL | Rights::GRANT, HOST).map_err(wrong)?;
    monitor.give(guest, HOST, Cap::new(public)).map_err(text)?;

    let frame = memory::make::<Frame>(u64::from(FRAME_BITS)).map_err(wrong)?;
    let window = Window::new(frame.cap(), FRAME_BITS, RW).map_err(wrong)?;
    window.write64(0, HERE);
    let mut host = Host { frame, window, guests: None, block: None, outgoing: take_slot()?, is_done: false };
    let mut buffers = Buffers::new(LARGEST, 1);
    // The thread's own reply object suffices, because every reply is immediate.
    let replies = Replies::new(Cap::new(slot::REPLY), Factory::NONE);
    let mut port = Port::new(endpoint.cap(), replies, slots(1));
    while !host.is_done {
        if port.next(Wait::FOREVER) == Event::Request {
            port.carry_out_sharing(&mut buffers, |request, context, response| {
                AttachmentHost::dispatch(&mut host, request, context, response)
            });
        }
    }
    port.close().into_iter().for_each(memory::free_slot);
    let ended = wait(monitor, guest)?;
    if ended.exit_code() != Some(0) {
        return Err("the guest found something wrong".to_string());
    }
    if aloud {
        println!(
            "a program of core {core} shared a buffer with one of core {own}, and both sent each other frames and memory"
        );
    }
    buffers.forget(HOST);
    let Host { frame, window, guests, block, outgoing, .. } = host;
    drop((window, frame));
    if let Some((slot, window)) = guests {
        drop(window);
        let _ = OWN_CSPACE.delete_at(slot);
        memory::free_slot(slot);
    }
    if let Some(block) = block {
        until(|| Mem::STANDARD.free(block.number).is_ok())?;
    }
    [public, outgoing].into_iter().for_each(|slot| {
        let _ = OWN_CSPACE.delete_at(slot);
        memory::free_slot(slot);
    });
    let is_over = until(|| {
        monitor
            .exchanged()
            .is_ok_and(|exchanged| (exchanged.exports, exchanged.copies, exchanged.transfers) == (0, 0, 0))
    });
    is_over.map_err(|_| format!("something is still on another core: {:?}", monitor.exchanged()))?;
    // Objects dropped while another core had them are deleted together with objects dropped later.
    for _ in 0..4 {
        drop(memory::make::<Frame>(u64::from(FRAME_BITS)).map_err(wrong)?);
    }
    settled(monitor, &before)
}

/// Runs the guest, on the host's core or on another.
pub fn guest(monitor: Monitor, is_elsewhere: bool) -> Result<(), String> {
    let slot = take_slot()?;
    let (Transfer { word, .. }, _) = monitor.take(slot).map_err(text)?;
    if word != HOST {
        return Err(format!("{word} was sent"));
    }
    let host = Cap::<Endpoint>::new(slot);
    buffer(host)?;
    frames(host)?;
    lent(host)?;
    let sent = AttachmentHost::at(host).hold(Cap::new(slot::THREAD));
    match sent {
        Err(Failure::Rejected(Rejection::OtherCore)) if is_elsewhere => {}
        Err(Failure::Refused(Error::Mistake)) if !is_elsewhere => {}
        other => return Err(format!("a thread was sent: {other:?}")),
    }
    AttachmentHost::at(host).done().map_err(wrong)
}

/// Lets the host reverse bytes in a shared buffer.
fn buffer(host: Cap<Endpoint>) -> Result<(), String> {
    let too_large = AttachmentHost::at(host).attach_buffer(LARGEST + 1, take_slot()?);
    if !matches!(too_large, Err(Failure::Rejected(Rejection::NoBuffer))) {
        return Err(format!("a buffer that is too large: {too_large:?}"));
    }
    // The second buffer replaces the first.
    for bytes in [1, LARGEST] {
        let (frame, bits) = AttachmentHost::at(host).attach_buffer(bytes, take_slot()?).map_err(wrong)?;
        let connection = Connection::new(host, frame, bits).map_err(wrong)?;
        let count = if bytes == 1 { 1000 } else { BYTES };
        let there: Vec<u8> = (0..count).map(|index| (index % 251) as u8).collect();
        let mut back = vec![0; count];
        AttachmentHost::at(&connection).turn(&there, &mut back).map_err(wrong)?;
        if !back.iter().eq(there.iter().rev()) {
            return Err(format!("{count} bytes were not turned"));
        }
    }
    Ok(())
}

/// Swaps frames, and revokes the guest's own.
fn frames(host: Cap<Endpoint>) -> Result<(), String> {
    let arrival = take_slot()?;
    let frame = memory::make::<Frame>(u64::from(FRAME_BITS)).map_err(wrong)?;
    let window = Window::new(frame.cap(), FRAME_BITS, RW).map_err(wrong)?;
    window.write64(0, THERE);
    let hosts = AttachmentHost::at(host).swap(frame.cap(), arrival).map_err(wrong)?;
    if window.read64(8) != HERE {
        return Err("the host has not written into the frame".to_string());
    }
    let theirs = Window::new(hosts, FRAME_BITS, RW).map_err(wrong)?;
    if theirs.read64(0) != HERE {
        return Err("the host's frame is another".to_string());
    }
    theirs.write64(8, THERE);
    drop(window);
    // The thread that revokes the frame need not know which process has it, and where.
    until(|| match frame.cap().revoke() {
        Ok(_) => true,
        Err(why) => why != KernelError::RemoteCopies,
    })?;
    if !AttachmentHost::at(host).is_gone().map_err(wrong)? {
        return Err("the host still has the frame".to_string());
    }
    drop(theirs);
    OWN_CSPACE.delete_at(arrival).map_err(wrong)?;
    memory::free_slot(arrival);
    Ok(())
}

/// Uses memory of the host's.
fn lent(host: Cap<Endpoint>) -> Result<(), String> {
    let [arrival, made] = [take_slot()?, take_slot()?];
    let memory = AttachmentHost::at(host).memory(arrival).map_err(wrong)?;
    memory.retype_many(Kind::Frame, u64::from(FRAME_BITS), 1, Placement::Watermark, OWN_CSPACE, made).map_err(wrong)?;
    let window = Window::new(Cap::new(made), FRAME_BITS, RW).map_err(wrong)?;
    window.write64(0, THERE);
    if window.read64(0) != THERE {
        return Err("the memory cannot be written".to_string());
    }
    drop(window);
    for slot in [made, arrival] {
        OWN_CSPACE.delete_at(slot).map_err(wrong)?;
        memory::free_slot(slot);
    }
    Ok(())
}
