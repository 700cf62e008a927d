//! Fast paths of `ThreadReadRegisters`, which may stop the thread first, and of `ThreadWriteRegisters`, which may let
//! it go on.

use tench_abi::{Kind, Rights};

use super::{Fast, slot};
use crate::ipc_buffer::Buffer;
use crate::object::Ref;
use crate::thread::{Thread, ThreadState, control};
use crate::{Arch, Kernel, scheduler};

/// Returns the thread that a capability names, if it has these rights.
#[inline(always)]
fn target<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, address: u64, rights: Rights) -> Option<Ref<Thread>> {
    let slot = slot(k, thread, address)?;
    let cap = &k.get(slot).cap;
    if !cap.is_usable(Kind::Thread, rights) {
        return None;
    }
    // SAFETY: the capability is to a thread.
    Some(unsafe { cap.known() })
}

/// Fast path of `ThreadReadRegisters`, for a thread that helps no other.
#[inline(always)]
pub fn read_registers<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, address: u64, flags: u64) -> Fast {
    let Some(other) = target(k, thread, address, Rights::READ) else { return Fast::Slow };
    let Some(buffer) = Buffer::of(k, thread) else { return Fast::Slow };
    if flags > 1 {
        return Fast::Slow;
    }
    let stops = flags != 0 && other != thread;
    match k.get(other).state {
        ThreadState::Suspended | ThreadState::Faulted => {}
        ThreadState::Ready | ThreadState::Receiving(_) | ThreadState::Waiting(_) if stops => {
            // ── Point of no return ──
            control::suspend(k, other);
        }
        _ => return Fast::Slow,
    }
    // ── Point of no return ──
    buffer.store_registers(k, other);
    Fast::DONE
}

/// Fast path of `ThreadWriteRegisters`, for a stopped thread that has left no operation unfinished. If it is resumed,
/// its priority must not be higher than that of the running thread.
#[inline(always)]
pub fn write_registers<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, address: u64, flags: u64) -> Fast {
    let Some(other) = target(k, thread, address, Rights::WRITE) else { return Fast::Slow };
    let Some(buffer) = Buffer::of(k, thread) else { return Fast::Slow };
    let priority = k.get(thread).priority;
    let t = k.get(other);
    let is_at_rest = matches!(t.state, ThreadState::Suspended | ThreadState::Faulted) && t.kernel_stack_pointer == 0;
    let may_go_on = flags == 0 || flags == 1 && control::is_configured(t) && t.priority <= priority;
    if !is_at_rest || !may_go_on {
        return Fast::Slow;
    }
    // ── Point of no return ──
    buffer.load_registers(k, other);
    if flags != 0 {
        scheduler::make_ready(k, other);
    }
    Fast::DONE
}
