//! Text that consists of bytes, since names of processes and files need not be UTF-8.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Arguments, Write};

/// Text in the making.
#[derive(Default)]
pub struct Text(pub Vec<u8>);

impl Write for Text {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.0.extend_from_slice(part.as_bytes());
        Ok(())
    }
}

impl Text {
    /// Adds what `format_args!` makes. That cannot fail, for memory only grows.
    pub fn add(&mut self, arguments: Arguments<'_>) {
        let _ = self.write_fmt(arguments);
    }

    /// Adds bytes, in which some characters stand as a backslash and their octal digits.
    pub fn add_escaped(&mut self, bytes: &[u8], escaped: &[u8]) {
        for byte in bytes {
            if escaped.contains(byte) {
                self.add(format_args!("\\{byte:03o}"));
            } else {
                self.0.push(*byte);
            }
        }
    }
}

/// Returns the text of 16 random bytes as a random identifier (version 4 of RFC 9562), with a line's end.
pub fn identifier(mut bytes: [u8; 16]) -> Vec<u8> {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::new();
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let _ = write!(text, "{byte:02x}");
    }
    text.push('\n');
    text.into_bytes()
}
