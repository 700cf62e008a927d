//! Memory requests of studied applications.

use core::ffi::{c_char, c_int};

use tench_profile::Application;

use crate::text::bytes;

/// Makes the memory requests of R1's application of this name, if slabs are set up. Returns 0, or -1.
///
/// # Safety
/// `name` must be a string.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn tench_profile(name: *const c_char) -> c_int {
    // SAFETY: the caller guarantees that it is a string.
    let name = unsafe { bytes(name, usize::MAX) };
    let application = Application::ALL.into_iter().find(|one| one.name().as_bytes() == name);
    match application.map(tench_profile::start) {
        Some(Ok(_)) => 0,
        Some(Err(_)) | None => -1,
    }
}
