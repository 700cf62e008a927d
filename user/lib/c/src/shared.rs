//! Memory that processes share, and the threads that use what lies in it.
//!
//! ```text
//! Region   a group of tench::sync::shared: its cells are the memory that C gets
//! Place    the running thread as a member of a region's group, made when it first uses an object there
//! ```
//! An object in a region is shared by all processes that have the region, whatever its attributes say: objects of one
//! process hold pointers, which other processes must not be able to change. Regions stay until the process ends.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::ffi::{c_int, c_void};
use core::ops::Range;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use tench::sync::Once;
use tench::sync::shared::{Group, GroupError, Member};
use tench::sys::{Cap, CapAddress};

use crate::errno::{EAGAIN, EINVAL, ENOMEM, fail, set};
use crate::start::at_exit;

/// Size of a group's cell in bytes. A region is a whole number of cells.
const CELL: usize = 64;
/// Maximum size of a region in bytes. With the group's table, it fits into the largest frame.
const MAX_SIZE: usize = 1 << 29;

/// Memory that this process shares with others.
pub struct Region {
    group: Group,
    memory: Range<usize>,
    /// The region that was added before this one.
    next: Option<&'static Region>,
}

/// The region that was added last. Regions are never removed.
static NEWEST: AtomicPtr<Region> = AtomicPtr::new(null_mut());

/// The running thread as a member of a region's group.
pub struct Place {
    region: &'static Region,
    member: Option<Member<'static>>,
    /// Number of locks of the region that the thread holds.
    held: Cell<usize>,
}

tench::thread_local! {
    static PLACES: RefCell<Vec<Place>> = RefCell::new(Vec::new());
}

impl Drop for Place {
    fn drop(&mut self) {
        // The locks that an ending thread holds must go to the next threads as those of an owner that died.
        if let Some(member) = self.member.take_if(|_| self.held.get() > 0) {
            member.abandon();
        }
    }
}

fn newest() -> Option<&'static Region> {
    // SAFETY: the pointer is null, or `add` took it from a region that is never freed.
    unsafe { NEWEST.load(Ordering::Acquire).as_ref() }
}

/// Returns the region in which an object lies.
#[inline]
pub fn region<T>(object: *const T) -> Option<&'static Region> {
    let mut found = newest();
    while let Some(region) = found {
        if region.memory.contains(&object.addr()) {
            return Some(region);
        }
        found = region.next;
    }
    None
}

impl Region {
    /// Returns whether an object lies in this region.
    pub fn contains<T>(&self, object: *const T) -> bool {
        self.memory.contains(&object.addr())
    }

    /// Runs a function with the running thread as a member of the region's group, and with the number of the region's
    /// locks that the thread holds.
    /// Errors: `EAGAIN` if the group has no room for the thread, or there is no memory.
    pub fn with<R>(&'static self, function: impl FnOnce(&Member<'static>, &Cell<usize>) -> R) -> Result<R, c_int> {
        PLACES.with(|places| {
            let known = |places: &[Place]| places.iter().position(|place| core::ptr::eq(place.region, self));
            let index = known(&places.borrow());
            let index = match index {
                Some(index) => index,
                None => {
                    let member = self.group.member().map_err(|_| EAGAIN)?;
                    let place = Place { region: self, member: Some(member), held: Cell::new(0) };
                    places.borrow_mut().push(place);
                    places.borrow().len() - 1
                }
            };
            let places = places.borrow();
            let place = places.get(index).ok_or(EAGAIN)?;
            place.member.as_ref().map(|member| function(member, &place.held)).ok_or(EAGAIN)
        })
    }
}

/// Ends the running thread's memberships of all groups, at the end of the process.
fn leave() {
    PLACES.with(|places| drop(places.take()));
}

/// Adds a group's memory to the regions, and returns its address.
fn add(group: Group) -> *mut c_void {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| at_exit(leave));
    let memory = group.memory();
    let address = memory.start;
    let region = Box::leak(Box::new(Region { group, memory, next: None }));
    loop {
        region.next = newest();
        let before = region.next.map_or(null_mut(), |next| core::ptr::from_ref(next).cast_mut());
        if NEWEST.compare_exchange(before, region, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            return core::ptr::with_exposed_provenance_mut(address);
        }
    }
}

/// Adds the memory of a group that was made or joined, and returns its address; or sets `errno`, and returns null.
fn added(group: Result<Group, GroupError>) -> *mut c_void {
    match group {
        Ok(group) => add(group),
        Err(GroupError::Memory(tench::memory::Error::Kernel(_))) => {
            set(EINVAL);
            null_mut()
        }
        Err(_) => {
            set(ENOMEM);
            null_mut()
        }
    }
}

/// Returns zeroed memory of at least `size` bytes that other processes can join, or null.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_shared_make(size: usize) -> *mut c_void {
    if size == 0 || size > MAX_SIZE {
        set(EINVAL);
        return null_mut();
    }
    added(Group::new(size.div_ceil(CELL)))
}

/// Returns memory that another process has made, given the capabilities to it, or null.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_shared_join(frame: u32, endpoint: u32) -> *mut c_void {
    added(Group::join(Cap::new(CapAddress(frame)), Cap::new(CapAddress(endpoint))))
}

/// Stores the slots of the capabilities with which others join: a frame's and an endpoint's.
///
/// # Safety
/// `capabilities` must point to memory for two numbers.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn tench_shared_capabilities(memory: *const c_void, capabilities: *mut u32) -> c_int {
    let Some(region) = region(memory) else { return fail(EINVAL) };
    let (frame, endpoint) = region.group.capabilities();
    // SAFETY: the caller guarantees it.
    unsafe { capabilities.cast::<[u32; 2]>().write_unaligned([frame.address().0, endpoint.address().0]) };
    0
}
