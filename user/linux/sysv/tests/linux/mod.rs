//! A process that makes calls of the Linux under these tests, as a script says. Programs in Rust could only do so
//! with unsafe code.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The process.
pub struct Linux {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// The result of a call, and buffers as they are after it.
pub type Answer = (i64, Vec<Vec<u8>>);

/// Returns the text of a buffer as an argument.
pub fn buffer(bytes: &[u8]) -> String {
    format!("b{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

fn bytes(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|index| u8::from_str_radix(&text[2 * index..2 * index + 2], 16).unwrap()).collect()
}

impl Linux {
    pub fn new() -> Linux {
        let mut command = Command::new("perl");
        command.args(["-e", include_str!("calls.pl")]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("perl is there to make the calls");
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Linux { process, input, output: BufReader::new(output) }
    }

    fn answer(&mut self) -> Answer {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let mut words = line.split_whitespace();
        let result = words.next().expect("an answer").parse().unwrap();
        (result, words.map(bytes).collect())
    }

    /// Returns the number of the process.
    pub fn own(&self) -> i64 {
        self.process.id().into()
    }

    /// Makes a call.
    pub fn call(&mut self, number: u32, arguments: &str) -> Answer {
        writeln!(self.input, "{number} {arguments}").unwrap();
        self.answer()
    }

    /// Lets a child make calls, and end. Returns its number, too.
    pub fn child(&mut self, calls: &[String]) -> (u32, Vec<Answer>) {
        writeln!(self.input, "child {}", calls.join(";")).unwrap();
        let (child, _) = self.answer();
        (child as u32, calls.iter().map(|_| self.answer()).collect())
    }
}

impl Drop for Linux {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
