//! System calls as operations see them: arguments, the capabilities that arguments name, and outcomes.
//!
//! A kernel capability without a badge permits everything. One with a badge permits only what the [`Powers`] in its
//! badge say: so a program that may power the machine off need not be able to import memory.

use tench_abi::{Error, Kind, Powers, Rights};

use crate::object::Ref;
use crate::slot::{Named, SlotRef};
use crate::thread::Thread;
use crate::{Arch, Kernel, cspace};

/// The effect of a system call on its thread's registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Success without results: the caller clears `x0`..`x10`.
    Done,
    /// The registers are complete, or a later operation completes them.
    Written,
}

impl Outcome {
    /// Writes a success with these results (at most 8) from `x1` on, and clears the rest of `x0`..`x10`.
    pub fn results<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, values: &[u64]) -> Outcome {
        let x = &mut k.get(thread).registers.x;
        clear(x);
        for (register, value) in x[1..].iter_mut().zip(values) {
            *register = *value;
        }
        Outcome::Written
    }
}

/// Number of result registers: `x0`..`x10`.
const RESULT_REGISTERS: usize = 11;

/// Clears the result registers.
#[inline(always)]
pub fn clear(x: &mut [u64; 31]) {
    let first = x.as_mut_ptr().cast::<u128>();
    debug_assert!(first.is_aligned(), "registers are what a thread begins with");
    let clear_two = |pair: usize| {
        // SAFETY: two of the registers.
        let two = unsafe { first.add(pair) };
        // SAFETY: as above, and they are aligned. Volatile, because the compiler would call a routine that fills
        // memory, which for so few words takes five times as long.
        unsafe { two.write_volatile(0) };
    };
    // Not a loop, which takes as many instructions again.
    const _: () = assert!(RESULT_REGISTERS == 11);
    clear_two(0);
    clear_two(1);
    clear_two(2);
    clear_two(3);
    clear_two(4);
    x[RESULT_REGISTERS - 1] = 0;
}

/// Returns argument `i` of the system call, unchecked: register `x(i)`.
#[inline(always)]
pub fn argument<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, i: usize) -> u64 {
    k.get(thread).registers.x[i]
}

/// Returns the slot that `x0` names, if its capability is of this kind and has these rights.
#[inline(always)]
pub fn capability_slot<A: Arch>(
    k: &mut Kernel<A>,
    thread: Ref<Thread>,
    kind: Kind,
    rights: Rights,
) -> Result<SlotRef, Error> {
    let address = argument(k, thread, 0);
    slot_at(k, address, kind, rights)
}

/// Returns the slot at an address in the running thread's CSpace, if its capability is of this kind and has these
/// rights.
#[inline(never)]
pub fn slot_at<A: Arch>(k: &mut Kernel<A>, address: u64, kind: Kind, rights: Rights) -> Result<SlotRef, Error> {
    let thread = k.current();
    let slot = cspace::find(k, thread, address)?;
    let cap = &k.slot(slot).cap;
    if cap.kind != kind {
        return Err(Error::WrongType);
    }
    if !cap.allows(rights) {
        return Err(Error::MissingRights);
    }
    Ok(slot)
}

/// Returns the object that `x0` names, if the capability has these rights.
#[inline(always)]
pub fn capability<A: Arch, T: Named>(k: &mut Kernel<A>, thread: Ref<Thread>, rights: Rights) -> Result<Ref<T>, Error> {
    let address = argument(k, thread, 0);
    capability_at(k, address, rights)
}

/// Returns the object of the capability at an address in the running thread's CSpace, if it has these rights.
pub fn capability_at<A: Arch, T: Named>(k: &mut Kernel<A>, address: u64, rights: Rights) -> Result<Ref<T>, Error> {
    let slot = slot_at(k, address, T::KIND, rights)?;
    // SAFETY: `slot_at` has compared the kind.
    Ok(unsafe { k.slot(slot).cap.known() })
}

/// Checks the kernel capability at an address in the running thread's CSpace. Returns its badge.
pub fn permitted<A: Arch>(k: &mut Kernel<A>, address: u64, rights: Rights, powers: Powers) -> Result<u64, Error> {
    let slot = slot_at(k, address, Kind::Kernel, rights)?;
    let badge = k.slot(slot).cap.badge();
    if badge == 0 || Powers::of_badge(badge).intersects(powers) { Ok(badge) } else { Err(Error::MissingRights) }
}

/// Checks that an address in the running thread's CSpace names a kernel capability that permits everything: it has
/// `WRITE`, and no badge.
///
/// # Errors
/// `MissingRights`; those of [`slot_at`].
pub fn whole<A: Arch>(k: &mut Kernel<A>, address: u64) -> Result<(), Error> {
    permitted(k, address, Rights::WRITE, Powers::empty()).map(drop)
}

/// Returns whether the running thread may learn physical addresses: argument `number` names a kernel capability that
/// permits it, or is 0.
///
/// # Errors
/// `MissingRights` if the capability lacks `READ` or the power `MEMORY`; those of [`slot_at`].
pub fn may_see_addresses<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, number: usize) -> Result<bool, Error> {
    match argument(k, thread, number) {
        0 => Ok(false),
        address => permitted(k, address, Rights::READ, Powers::MEMORY).map(|_| true),
    }
}
