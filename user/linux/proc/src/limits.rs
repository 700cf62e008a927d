//! Limits of a process: `/proc/PID/limits`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::text::Text;

/// A limit: what counts, and how far it can be raised. Nothing stands for no limit.
pub type Limit = (Option<u64>, Option<u64>);

/// Names and units of the limits, by their numbers.
const NAMES: [(&str, &str); 16] = [
    ("Max cpu time", "seconds"),
    ("Max file size", "bytes"),
    ("Max data size", "bytes"),
    ("Max stack size", "bytes"),
    ("Max core file size", "bytes"),
    ("Max resident set", "bytes"),
    ("Max processes", "processes"),
    ("Max open files", "files"),
    ("Max locked memory", "bytes"),
    ("Max address space", "bytes"),
    ("Max file locks", "locks"),
    ("Max pending signals", "signals"),
    ("Max msgqueue size", "bytes"),
    ("Max nice priority", ""),
    ("Max realtime priority", ""),
    ("Max realtime timeout", "us"),
];

/// Returns the text of the limits, which are given by their numbers.
pub fn limits(limits: &[Limit; 16]) -> Vec<u8> {
    let mut text = Text::default();
    text.add(format_args!("{:<25} {:<20} {:<20} {:<10}\n", "Limit", "Soft Limit", "Hard Limit", "Units"));
    let value = |limit: Option<u64>| limit.map_or_else(|| String::from("unlimited"), |limit| format!("{limit}"));
    for ((name, unit), (soft, hard)) in NAMES.iter().zip(limits) {
        text.add(format_args!("{name:<25} {:<20} {:<20} ", value(*soft), value(*hard)));
        if unit.is_empty() {
            text.add(format_args!("\n"));
        } else {
            text.add(format_args!("{unit:<10}\n"));
        }
    }
    text.0
}
