//! The emulator's own console, which stops a running machine and reads its physical memory.
//!
//! It is QEMU's machine protocol (QMP): a line of JSON for each command and each reply, and others for events between
//! them.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use miette::{IntoDiagnostic, Result, WrapErr, miette};
use serde_json::{Value, json};

/// A connection to the console.
pub struct Console {
    replies: BufReader<UnixStream>,
}

/// Returns a path for a machine's socket: a short one, because socket paths are limited.
pub fn socket() -> PathBuf {
    std::env::temp_dir().join(format!("tench-{}.socket", std::process::id()))
}

/// Makes an emulator listen at a socket.
pub fn listen(command: &mut Command, socket: &Path) {
    command.arg("-qmp").arg(format!("unix:{},server=on,wait=off", socket.display()));
}

impl Console {
    /// Connects to a listening emulator.
    pub fn connect(socket: &Path) -> Result<Console> {
        let stream = UnixStream::connect(socket).into_diagnostic().wrap_err("the emulator's console does not reply")?;
        let mut console = Console { replies: BufReader::new(stream) };
        console.line()?;
        console.execute("qmp_capabilities", Value::Null)?;
        Ok(console)
    }

    /// Stops all cores.
    pub fn stop(&mut self) -> Result<()> {
        self.execute("stop", Value::Null)
    }

    /// Resumes all cores.
    pub fn go_on(&mut self) -> Result<()> {
        self.execute("cont", Value::Null)
    }

    /// Writes `size` bytes of physical memory from an address on to a file.
    pub fn save(&mut self, address: u64, size: u64, file: &Path) -> Result<()> {
        self.execute("pmemsave", json!({ "val": address, "size": size, "filename": file }))
    }

    /// Executes a command, and waits for its reply.
    fn execute(&mut self, command: &str, arguments: Value) -> Result<()> {
        let mut line = json!({ "execute": command });
        if !arguments.is_null() {
            line["arguments"] = arguments;
        }
        writeln!(self.replies.get_mut(), "{line}").into_diagnostic()?;
        loop {
            let reply = self.line()?;
            if let Some(error) = reply.get("error") {
                return Err(miette!("the emulator refused {command}: {error}"));
            }
            if reply.get("return").is_some() {
                return Ok(());
            }
        }
    }

    fn line(&mut self) -> Result<Value> {
        let mut line = String::new();
        if self.replies.read_line(&mut line).into_diagnostic()? == 0 {
            return Err(miette!("the emulator's console was closed"));
        }
        serde_json::from_str(&line).into_diagnostic()
    }
}
