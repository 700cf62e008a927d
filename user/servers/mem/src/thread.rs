//! The main thread's thread block, which the user library sets up in other programs.

use tench_abi::layout::slot;
use tench_abi::process::Info;
use tench_sys::ThreadBlock;

/// The main thread's thread block.
struct MainThread(ThreadBlock);

// SAFETY: the server has one thread.
unsafe impl Sync for MainThread {}

static MAIN_THREAD: MainThread = MainThread(ThreadBlock::new());

/// Makes the IPC buffer usable. Called once, before everything else.
///
/// # Safety
/// `information` must be what the first instruction found in `x0`.
pub unsafe fn set_up(information: &Info) {
    let block = &MAIN_THREAD.0;
    block.ipc_buffer.set(information.ipc_buffer as usize);
    block.thread.set(slot::THREAD);
    // SAFETY: the loader has mapped the IPC buffer there before it started this thread.
    unsafe { block.install() };
}
