//! The text of single values in a trace.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use crate::names::{self, Choices, Flags};

/// Writing to a string cannot fail.
pub(crate) fn kept(result: core::fmt::Result) {
    debug_assert!(result.is_ok(), "a string takes everything");
}

/// Returns a number in octal, as C writes it.
pub(crate) fn octal(number: u64) -> String {
    if number == 0 { "0".into() } else { format!("{number:#o}").replacen("0o", "0", 1) }
}

/// Shows an array of which `count` elements exist, perhaps more than are shown.
pub(crate) fn list(shown: &[String], count: u64) -> String {
    let dots = if count > shown.len() as u64 { ", ..." } else { "" };
    format!("[{}{dots}]", shown.join(", "))
}

pub(crate) fn address(value: u64) -> String {
    if value == 0 { "NULL".into() } else { format!("{value:#x}") }
}

pub(crate) fn number(value: u64) -> String {
    if value == 0 { "0".into() } else { format!("{value:#x}") }
}

/// Returns a signed number. One that fits into 32 bits has been passed as such: the upper half is unspecified.
pub(crate) fn signed(value: u64) -> String {
    if value >> 32 == 0 { format!("{}", (value as u32).cast_signed()) } else { format!("{}", value.cast_signed()) }
}

pub(crate) fn signal(number: u32) -> String {
    match names::signal(number) {
        Some(name) => format!("SIG{name}"),
        None => format!("{number}"),
    }
}

pub(crate) fn set(flags: &Flags, value: u32) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = value;
    if let Some((mask, choices)) = flags.choice {
        parts.push(one(choices, value & mask));
        rest &= !mask;
    }
    for (bits, name) in flags.names {
        if rest & bits == *bits {
            parts.push((*name).into());
            rest &= !bits;
        }
    }
    if rest != 0 {
        parts.push(format!("{rest:#x}"));
    }
    if parts.is_empty() { flags.none.into() } else { parts.join("|") }
}

pub(crate) fn one(choices: &Choices, value: u32) -> String {
    choices.name(value).map_or_else(|| number(value.into()), Into::into)
}

/// Returns bytes in quotation marks, with the escapes of C.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            0x0b => text.push_str("\\v"),
            0x0c => text.push_str("\\f"),
            b' '..=b'~' => text.push(char::from(*byte)),
            // As few digits as possible, but three before another digit.
            _ if bytes.get(index + 1).is_some_and(u8::is_ascii_digit) => kept(write!(text, "\\{byte:03o}")),
            _ => kept(write!(text, "\\{byte:o}")),
        }
    }
    text.push('"');
    text
}
