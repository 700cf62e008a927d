//! The console of a session: texts that tasks print, and keys for which they wait.
//!
//! Text is only stored, until there is so much of it, a task waits for a key, or the session ends. Then the task itself
//! writes it. Meanwhile it is still the running task, so no other runs, and it is in a primitive, so no event
//! interferes.

use core::fmt;

use alloc::boxed::Box;
use alloc::string::String;

use tench::sync::Mutex;

use super::switch::{enter, leave};
use crate::Terminal;

/// Number of bytes of text that can be stored before they have to be printed.
const BUFFER: usize = 4096;

/// Text that tasks have printed.
static SAID: Mutex<String> = Mutex::new(String::new());

/// The session's terminal.
static TERMINAL: Mutex<Option<Box<dyn Terminal>>> = Mutex::new(None);

/// Sets the session's terminal.
pub fn open(terminal: Box<dyn Terminal>) {
    *TERMINAL.lock() = Some(terminal);
}

/// Prints the stored text, and gives the terminal up.
pub fn close() {
    flush();
    let _ = TERMINAL.lock().take();
}

/// Prints the stored text.
fn flush() {
    let mut said = SAID.lock();
    if !said.is_empty()
        && let Some(terminal) = &mut *TERMINAL.lock()
    {
        terminal.write(&said);
        said.clear();
    }
}

/// A writer that stores text, and prints it when there is no room for more.
struct Say;

impl fmt::Write for Say {
    fn write_str(&mut self, mut text: &str) -> fmt::Result {
        loop {
            let mut said = SAID.lock();
            if said.capacity() == 0 {
                said.reserve_exact(BUFFER);
            }
            let fits = text.floor_char_boundary((BUFFER - said.len()).min(text.len()));
            said.push_str(&text[..fits]);
            text = &text[fits..];
            drop(said);
            if text.is_empty() {
                return Ok(());
            }
            let me = enter();
            flush();
            leave(me);
        }
    }
}

pub fn print(text: fmt::Arguments<'_>) {
    // Writing never fails; a failing `Display` only loses its own output.
    let _ = fmt::Write::write_fmt(&mut Say, text);
}

pub fn wait_key() {
    let me = enter();
    flush();
    if let Some(terminal) = &mut *TERMINAL.lock() {
        terminal.wait_key();
    }
    leave(me);
}
