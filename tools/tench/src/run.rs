//! The command `./tench run`, which boots the system, for a person at the terminal or for a script.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{IsTerminal, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use miette::{IntoDiagnostic, Result, WrapErr, miette};

use crate::build::Build;
use crate::cli::RunOptions;
use crate::linux;
use crate::piped;
use crate::prepare;
use crate::process;
use crate::qemu::{CLOCK_OF_HOST, Machine, Serial};
use crate::script::{self, End, Patience};
use crate::symbols::{Explainer, Symbols};
use crate::system::{Packages, System};
use crate::workspace::{self, Workspace};

/// Status of a session whose guest crashed the emulator or hung, as `timeout` returns it.
const HUNG: u8 = 124;

/// Builds, boots, and returns the guest's status.
pub fn run(workspace: &Workspace, options: &RunOptions) -> Result<u8> {
    let packages = Packages::find(workspace)?;
    let system = System::load(workspace, &packages, &options.system)?;
    let steps = match &options.script {
        None => None,
        Some(file) => Some(script::parse(&read_script(file)?)?),
    };
    // Before anything is built, which may take long.
    let linux = linux::pack(&options.linux)?;
    let build = Build::new(workspace, &packages, &[&system])?;
    let build = build.with_kernel(workspace, &packages, &system, options.kernel)?;
    let files = prepare::prepare(workspace, &build, &system, &options.system, &options.with, linux.as_deref())?;
    let symbols = build.symbols(workspace, &system, &files)?;
    let usual = Machine::default();
    let machine = Machine {
        cores: options.cores,
        memory: options.memory.clone(),
        cpu: options.cpu.clone(),
        icount: options.icount,
        gdb: options.gdb,
        seed: options.seed.unwrap_or_else(fresh_seed),
        // A run with counted instructions can be repeated, so it always starts at the same time.
        clock: if options.icount { usual.clock } else { CLOCK_OF_HOST },
        ..usual
    };
    machine.check(&files)?;
    if options.seed.is_none() {
        eprintln!("addresses are chosen from --seed {}", machine.seed);
    }
    if options.gdb {
        let kernel = build.kernel(&system)?.display();
        eprintln!("waiting for: gdb-multiarch {kernel} -ex 'target remote :1234'");
    }
    match steps {
        None if std::io::stdin().is_terminal() => attach(&mut machine.command(&files, Serial::Terminal), symbols),
        None => pipe(&mut machine.command(&files, Serial::Pipe), options.timeout, symbols),
        Some(steps) => play(&mut machine.command(&files, Serial::Pipe), &steps, options.timeout, symbols),
    }
}

/// Returns an unpredictable seed, short enough to be typed again.
fn fresh_seed() -> u64 {
    RandomState::new().build_hasher().finish() >> 16
}

fn read_script(file: &Path) -> Result<String> {
    if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin()).into_diagnostic().wrap_err("cannot read the script")
    } else {
        workspace::read_text(file)
    }
}

/// Gives the terminal to the guest. The emulator reads the keyboard itself; its output passes through here.
fn attach(command: &mut Command, symbols: Symbols) -> Result<u8> {
    process::show(command);
    let mut guest =
        command.stdout(Stdio::piped()).spawn().into_diagnostic().wrap_err_with(|| process::cannot_start(command))?;
    let mut serial = guest.stdout.take().ok_or_else(|| miette!("the guest has no output"))?;
    let mut explainer = Explainer::new(symbols);
    let mut terminal = std::io::stdout().lock();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = serial.read(&mut buffer) {
        // If the reader has gone, the guest still runs until its own end.
        let _ = terminal.write_all(&explainer.pass(&buffer[..count])).and_then(|()| terminal.flush());
    }
    let status = guest.wait().into_diagnostic().wrap_err("cannot wait for the guest")?;
    Ok(status.code().map_or(HUNG, |code| code as u8))
}

/// Types what standard input, which is no terminal, has.
fn pipe(command: &mut Command, timeout: u64, symbols: Symbols) -> Result<u8> {
    let mut explainer = Explainer::new(symbols);
    let mut output = std::io::stdout();
    let end = piped::run(command, std::io::stdin(), Duration::from_secs(timeout), |bytes| {
        // If the reader has gone, the guest still runs until its own end.
        let _ = output.write_all(&explainer.pass(bytes)).and_then(|()| output.flush());
    })?;
    match end {
        End::Exited(status) => Ok(status),
        End::Stopped(reason) => {
            eprintln!("\nThe guest was stopped: {reason}.");
            Ok(HUNG)
        }
    }
}

/// Types a script; the transcript goes to standard output.
fn play(command: &mut Command, steps: &[script::Step], timeout: u64, mut symbols: Symbols) -> Result<u8> {
    let print = |line: &str| {
        let explanations = symbols.explain(line);
        println!("{line}");
        explanations.iter().for_each(|explanation| println!("{explanation}"));
        explanations
    };
    let outcome = script::run(command, steps, Patience::silence(timeout), print)?;
    match &outcome.end {
        End::Exited(status) => Ok(*status),
        End::Stopped(reason) => {
            eprintln!("\nThe guest was stopped: {reason}. What was last on its terminal:\n{}", outcome.last_screen());
            Ok(HUNG)
        }
    }
}
