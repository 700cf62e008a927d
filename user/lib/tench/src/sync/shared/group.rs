//! Groups and their members.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use tench_abi::Kind;
use tench_protocol::{Arrived, Event, Factory, Port, Replies, Sent};
use tench_sync::shared::{Crowd, MEMBERS, Slept, Table};
use tench_sys::ipc::BOUND_REPLY;
use tench_sys::{
    Cap, CapAddress, Endpoint, Error as KernelError, Frame, Instant, MapFlags, Notification, OWN_CSPACE, Rights, Wait,
};

use super::protocol::{Error, GroupClient, GroupService};
use super::{LONG, SharedCondition, SharedLock, SharedPermits};
use crate::memory::{self, Made, Window};
use crate::server::slots;
use crate::sync::Mutex;
use crate::thread::{Builder, JoinHandle};
use crate::time;

/// Offset of the cells in the frame in bytes.
const CELLS: usize = 1024;
/// Size of a cell in bytes.
const CELL: usize = 64;

const _: () = assert!(size_of::<Table<AtomicUsize>>() <= CELLS);
const _: () = assert!(size_of::<SharedLock>() <= CELL && size_of::<SharedPermits>() <= CELL);

/// Reason why a group or a member could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupError {
    /// There is no memory, slot or address.
    Memory(memory::Error),
    /// The process that made the group did not accept the member.
    Refused(tench_protocol::Failure<Error>),
}

impl From<memory::Error> for GroupError {
    fn from(error: memory::Error) -> GroupError {
        GroupError::Memory(error)
    }
}

impl From<KernelError> for GroupError {
    fn from(error: KernelError) -> GroupError {
        GroupError::Memory(error.into())
    }
}

impl From<tench_protocol::Failure<Error>> for GroupError {
    fn from(error: tench_protocol::Failure<Error>) -> GroupError {
        GroupError::Refused(error)
    }
}

impl core::fmt::Display for GroupError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            GroupError::Memory(error) => error.fmt(f),
            GroupError::Refused(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for GroupError {}

/// Resources of the process that made the group. They are dropped in this order, after the thread was told to stop.
struct Founded {
    server: Option<JoinHandle<()>>,
    /// The capability that the others get.
    badged: CapAddress,
    endpoint: Made<Endpoint>,
    _frame: Made<Frame>,
}

/// A process's view of memory that it shares with others, and of the threads that use it.
pub struct Group {
    window: Window,
    frame: Cap<Frame>,
    endpoint: Cap<Endpoint>,
    /// Slot of each member's notification in this process; 0 for none yet.
    known: [AtomicU32; MEMBERS],
    /// Held while a notification is requested.
    asking: Mutex<()>,
    founded: Option<Founded>,
}

impl Group {
    /// Makes a group with at least this many cells.
    pub fn new(cells: usize) -> Result<Group, GroupError> {
        let bits = (CELLS + cells * CELL).next_power_of_two().ilog2().max(12);
        let frame = memory::make::<Frame>(u64::from(bits))?;
        let endpoint = memory::make::<Endpoint>(0)?;
        let badged = memory::take_slot()?;
        let (own, shared) = (frame.cap(), endpoint.cap());
        let others = shared.mint_to(badged, Rights::WRITE | Rights::CALL | Rights::GRANT, 1);
        let window =
            others.map_err(GroupError::from).and_then(|_| Ok(map(own, bits)?)).inspect_err(|_| give_up(badged))?;
        let server = Builder::new().name("group").spawn(move || Server::new().run(shared));
        let server = server.inspect_err(|_| give_up(badged))?;
        let founded = Founded { server: Some(server), badged, endpoint, _frame: frame };
        Ok(Group::with(window, own, Cap::new(badged), Some(founded)))
    }

    /// Joins a group that another process has made, by its frame of `1 << bits` bytes and its endpoint.
    pub fn join(frame: Cap<Frame>, endpoint: Cap<Endpoint>) -> Result<Group, GroupError> {
        let bits = frame.identify()?.size_bits;
        Ok(Group::with(map(frame, bits)?, frame, endpoint, None))
    }

    fn with(window: Window, frame: Cap<Frame>, endpoint: Cap<Endpoint>, founded: Option<Founded>) -> Group {
        let known = [const { AtomicU32::new(0) }; MEMBERS];
        Group { window, frame, endpoint, known, asking: Mutex::new(()), founded }
    }

    /// Returns the capabilities with which others join.
    pub const fn capabilities(&self) -> (Cap<Frame>, Cap<Endpoint>) {
        (self.frame, self.endpoint)
    }

    /// Returns the number of cells in the frame.
    pub const fn cells(&self) -> usize {
        (self.window.size() - CELLS) / CELL
    }

    /// Returns the range of addresses of all cells, for objects of other sizes.
    pub const fn memory(&self) -> core::ops::Range<usize> {
        let start = self.window.address() + CELLS;
        start..start + self.cells() * CELL
    }

    /// Returns the address of a cell. Panics if there is none with this index.
    fn cell(&self, index: usize) -> usize {
        assert!(index < self.cells(), "a group of {} cells has no cell {index}", self.cells());
        self.window.address() + CELLS + index * CELL
    }

    /// Returns the lock in a cell. All processes have to agree on the use of each cell. Panics if there is no such
    /// cell.
    pub fn lock(&self, index: usize) -> &SharedLock {
        // SAFETY: the cell is mapped as long as the group lives, it is large enough and aligned, and any bits are valid
        // atomic words.
        unsafe { &*core::ptr::with_exposed_provenance(self.cell(index)) }
    }

    /// Returns the semaphore in a cell; as for [`lock`](Self::lock).
    pub fn permits(&self, index: usize) -> &SharedPermits {
        // SAFETY: as in `lock`.
        unsafe { &*core::ptr::with_exposed_provenance(self.cell(index)) }
    }

    /// Returns the condition variable in a cell; as for [`lock`](Self::lock).
    pub fn condition(&self, index: usize) -> &SharedCondition {
        // SAFETY: as in `lock`.
        unsafe { &*core::ptr::with_exposed_provenance(self.cell(index)) }
    }

    /// Returns the first word of a cell, for data; as for [`lock`](Self::lock).
    pub fn word(&self, index: usize) -> &AtomicUsize {
        // SAFETY: as in `lock`.
        unsafe { &*core::ptr::with_exposed_provenance(self.cell(index)) }
    }

    /// Makes the running thread a member. Dropping the member leaves the group.
    pub fn member(&self) -> Result<Member<'_>, GroupError> {
        let notification = memory::make::<Notification>(0)?;
        let number = GroupClient::at(self.endpoint).join(notification.cap())?;
        let Some(known) = self.known.get(number as usize) else {
            return Err(GroupError::Refused(tench_protocol::Failure::Malformed));
        };
        let slot = known.swap(notification.cap().address().0, Ordering::Release);
        if slot != 0 {
            // The notification was that of a former member, which has left or ended.
            give_up(CapAddress(slot));
        }
        Ok(Member { group: self, number: number as usize, notification, is_abandoned: false })
    }

    /// Returns a member's notification, if this process has it.
    fn known(&self, member: usize) -> Option<Cap<Notification>> {
        let slot = self.known.get(member)?.load(Ordering::Acquire);
        (slot != 0).then_some(Cap::new(CapAddress(slot)))
    }

    /// Requests a member's notification, which is unknown or was deleted. Returns `None` if the member has ended.
    #[cold]
    fn ask(&self, member: usize) -> Option<Cap<Notification>> {
        let _asking = self.asking.lock();
        let place = self.known.get(member)?;
        let slot = match self.known(member) {
            Some(known) if exists(known) => return Some(known),
            // The object was deleted, and so its capability: the slot is empty.
            Some(known) => known.address(),
            None => memory::take_slot().ok()?,
        };
        let result = GroupClient::at(self.endpoint).member(member as u64, slot);
        if result.is_err() {
            place.store(0, Ordering::Release);
            memory::free_slot(slot);
            return None;
        }
        place.store(slot.0, Ordering::Release);
        Some(Cap::new(slot))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for known in &self.known {
            let slot = known.swap(0, Ordering::Relaxed);
            if slot != 0 {
                give_up(CapAddress(slot));
            }
        }
        let Some(founded) = &mut self.founded else { return };
        if let Some(server) = founded.server.take() {
            // The thread replies, unless it has ended already.
            let _ = GroupClient::at(founded.endpoint.cap()).stop();
            server.join();
        }
        give_up(founded.badged);
    }
}

fn map(frame: Cap<Frame>, bits: u32) -> Result<Window, memory::Error> {
    Window::new(frame, bits, MapFlags::READ | MapFlags::WRITE)
}

/// Deletes a capability, if it still exists, and frees its slot.
fn give_up(slot: CapAddress) {
    // An empty slot is fine.
    let _ = OWN_CSPACE.delete_at(slot);
    memory::free_slot(slot);
}

/// Returns whether a notification still exists.
fn exists(notification: Cap<Notification>) -> bool {
    notification.identify().is_ok_and(|found| found.kind == Kind::Notification)
}

/// The running thread as a member of a group.
pub struct Member<'g> {
    group: &'g Group,
    number: usize,
    notification: Made<Notification>,
    is_abandoned: bool,
}

impl Member<'_> {
    /// Returns its number in the group.
    pub const fn number(&self) -> usize {
        self.number
    }

    /// Ends the membership as the end of the process would: the next members get the locks that this one holds with
    /// [`Taken::OwnerDied`](super::Taken), and no other member gets its number.
    pub fn abandon(mut self) {
        self.is_abandoned = true;
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        if let Some(known) = self.group.known.get(self.number) {
            known.store(0, Ordering::Release);
        }
        if self.is_abandoned {
            return;
        }
        // If the group's process has ended, there is nobody to tell.
        let _ = GroupClient::at(self.group.endpoint).leave(self.number as u64);
    }
}

impl Crowd for Member<'_> {
    type Word = AtomicUsize;

    #[inline]
    fn me(&self) -> usize {
        self.number
    }

    #[inline]
    fn table(&self) -> &Table<AtomicUsize> {
        // SAFETY: the frame begins with the table and is mapped as long as the group lives; any bits are valid atomic
        // words.
        unsafe { &*core::ptr::with_exposed_provenance(self.group.window.address()) }
    }

    fn sleep(&self, deadline: Option<u64>) -> Slept {
        let long = time::deadline(LONG);
        let until = deadline.map_or(long, |deadline| long.min(Instant::from_ticks(deadline)));
        match self.notification.cap().wait_until(until) {
            Ok(_) => Slept::Woken,
            Err(_) if deadline.is_some_and(|deadline| Instant::now().ticks() >= deadline) => Slept::TimedOut,
            Err(_) => Slept::Long,
        }
    }

    fn wake(&self, member: usize) -> bool {
        let known = self.group.known(member);
        known.is_some_and(|known| known.signal().is_ok())
            || self.group.ask(member).is_some_and(|known| known.signal().is_ok())
    }

    fn is_alive(&self, member: usize) -> bool {
        self.group.known(member).is_some_and(exists) || self.group.ask(member).is_some_and(exists)
    }
}

/// The thread that knows the members' notifications.
struct Server {
    /// The notification of each number that was assigned and not returned.
    members: [Option<Cap<Notification>>; MEMBERS],
    stopped: bool,
}

impl Server {
    const fn new() -> Server {
        Server { members: [None; MEMBERS], stopped: false }
    }

    /// Serves until it is told to stop.
    fn run(mut self, endpoint: Cap<Endpoint>) {
        let mut port = Port::new(endpoint, Replies::new(BOUND_REPLY, Factory::NONE), slots(1));
        while !self.stopped {
            if port.next(Wait::FOREVER) == Event::Request {
                port.carry_out(|request, context, result| GroupClient::dispatch(&mut self, request, context, result));
            }
        }
        port.close().into_iter().for_each(memory::free_slot);
        self.members.into_iter().flatten().for_each(|member| give_up(member.address()));
    }
}

impl GroupService for Server {
    fn join(&mut self, notification: Arrived<'_, Notification>) -> Result<u64, Error> {
        let number = self.members.iter().position(Option::is_none).ok_or(Error::Full)?;
        self.members[number] = Some(notification.keep());
        Ok(number as u64)
    }

    fn member(&mut self, number: u64) -> Result<Sent<Notification>, Error> {
        let member = usize::try_from(number).ok().and_then(|number| self.members.get(number)).copied().flatten();
        // The number of a member that ended without leaving is not reused: it may still be recorded as the owner of a
        // lock.
        member.filter(|member| exists(*member)).map(Sent::new).ok_or(Error::NoSuchMember)
    }

    fn leave(&mut self, number: u64) -> Result<(), Error> {
        let place = usize::try_from(number).ok().and_then(|number| self.members.get_mut(number));
        let member = place.and_then(Option::take).ok_or(Error::NoSuchMember)?;
        give_up(member.address());
        Ok(())
    }

    fn stop(&mut self) -> Result<(), Error> {
        self.stopped = true;
        Ok(())
    }
}
