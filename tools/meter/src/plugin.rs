//! The plug-in's entry, which chooses what is counted.

use std::ffi::{CStr, c_char, c_int, c_void};

/// Version that tells the emulator for which interface this was made.
// SAFETY: no other symbol of this name is in a plug-in.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the emulator looks for this name")]
pub static qemu_plugin_version: c_int = 1;

/// Begins to count what the argument says. Fails if there is an argument that does not exist.
// SAFETY: no other symbol of this name is in a plug-in.
#[unsafe(no_mangle)]
pub extern "C" fn qemu_plugin_install(
    plugin: u64,
    _machine: *const c_void,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    if count == 0 {
        crate::count_turns::install(plugin);
        return 0;
    }
    // SAFETY: the emulator passes an array with this many arguments.
    let first = unsafe { arguments.read() };
    // SAFETY: each is a string that ends with zero.
    let first = unsafe { CStr::from_ptr(first) };
    match first.to_str().ok().and_then(|text| text.strip_prefix("lines=")) {
        Some(path) if count == 1 => {
            crate::count_lines::install(plugin, path);
            0
        }
        _ => -1,
    }
}
