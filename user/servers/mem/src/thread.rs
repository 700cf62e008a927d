//! The main thread's block, which the user library would set up in other programs.

use tench_abi::layout::slot;
use tench_abi::process::Info;
use tench_sys::ThreadBlock;

/// The main thread's block.
struct MainThread(ThreadBlock);

// SAFETY: the server has one thread.
unsafe impl Sync for MainThread {}

static MAIN_THREAD: MainThread = MainThread(ThreadBlock::new());

/// Makes the message area usable. Called once, before everything else.
///
/// # Safety
/// `information` is what the first instruction found in `x0`.
pub unsafe fn set_up(information: &Info) {
    let block = &MAIN_THREAD.0;
    block.message_area.set(information.message_area as usize);
    block.thread.set(slot::THREAD);
    // SAFETY: the loader has mapped the message area there before it started this thread.
    unsafe { block.install() };
}
