//! Experiments' common means: printing, counting, saying why they failed, and servers in processes of their own.

use alloc::format;
use alloc::string::String;
use core::fmt::{Display, Write as _};

use tench::abi::Powers;
use tench::abi::Rights;
use tench::abi::layout::slot;
use tench::memory::{self, Made, make};
use tench::println;
use tench::procs::Procs;
use tench::sys::{Cap, Endpoint, Kernel, OWN_CSPACE};
use tench::time::instructions;

/// The kernel object, given by the system description.
pub const KERNEL: Cap<Kernel> = Cap::new(slot::KERNEL);

/// Number of values in a line.
const IN_A_LINE: usize = 32;

/// Prints a figure.
pub fn figure(key: &str, value: impl Display) {
    println!("figure: {key} {value}");
}

/// Prints a point of a curve and, as a figure, its value.
pub fn point(series: &str, x: impl Display, value: impl Display) {
    figure(&format!("{series}_{x}"), &value);
    println!("sample: {series} {x} {value}");
}

/// Prints the mean of some costs as a point of a curve, and the largest as one of the curve of the most expensive.
pub fn curve(series: impl Display, x: usize, costs: &[u64]) {
    println!("sample: {series} {x} {}", mean(costs));
    println!("sample: {series}_worst {x} {}", costs.iter().max().unwrap_or(&0));
}

/// Prints a curve, one value for each whole number from 0 on.
pub fn values(series: &str, values: &[u32]) {
    for (line, some) in values.chunks(IN_A_LINE).enumerate() {
        let mut text = format!("values: {series} {}", line * IN_A_LINE);
        for value in some {
            // Writing to text does not fail.
            let _ = write!(text, " {value}");
        }
        println!("{text}");
    }
}

/// Returns the mean of some costs, rounded down.
pub fn mean(costs: &[u64]) -> u64 {
    costs.iter().sum::<u64>() / costs.len() as u64
}

/// Returns a quotient with one decimal, rounded down.
pub fn decimal(sum: u64, count: u64) -> String {
    format!("{}.{}", sum / count, sum % count * 10 / count)
}

/// Returns one number in percent of another, with one decimal.
pub fn percent(part: u64, whole: u64) -> String {
    decimal(part * 100, whole)
}

/// Returns a function that says what failed.
pub fn problem<E: Display>(what: &str) -> impl Fn(E) -> String {
    move |error| format!("{what}: {error}")
}

/// Returns the cost of two readings of the counter.
pub fn reading() -> u64 {
    let once = |_| {
        let before = instructions();
        instructions() - before
    };
    (0..8).map(once).min().unwrap_or(0)
}

/// Returns the result of an operation, and its instructions.
#[inline(always)]
pub fn cost<T>(operation: impl FnOnce() -> T) -> (T, u64) {
    let before = instructions();
    let readings = instructions() - before;
    let before = instructions();
    let result = operation();
    (result, instructions() - before - readings)
}

/// A process that receives at one of the measuring process's endpoints.
pub struct Child {
    process: u64,
    endpoint: Made<Endpoint>,
}

impl Child {
    /// Starts the process with this argument and priority.
    pub fn start(argument: &str, priority: u8) -> Result<Child, String> {
        let problem = |error: &dyn core::fmt::Display| format!("{argument}: starting it: {error}");
        let endpoint = make::<Endpoint>(0).map_err(|error| problem(&error))?;
        let slot = memory::take_slot().map_err(|error| problem(&error))?;
        let receive = endpoint.cap().mint_to(slot, Rights::READ, 0).map_err(|error| problem(&error))?;
        let starting = || {
            let spawn = Procs::STANDARD.prepare("bench")?;
            spawn.give_in(receive, slot::SERVICE)?;
            spawn.argument(argument)?;
            spawn.configure(priority, priority, 0, Powers::empty())?;
            spawn.start()
        };
        let process = starting().map_err(|error| problem(&error))?;
        OWN_CSPACE.delete_at(slot).map_err(|error| problem(&error))?;
        memory::free_slot(slot);
        Ok(Child { process, endpoint })
    }

    /// Returns the endpoint at which the process receives.
    pub const fn endpoint(&self) -> Cap<Endpoint> {
        self.endpoint.cap()
    }

    /// Kills the process.
    pub fn stop(self) -> Result<(), String> {
        Procs::STANDARD.kill(self.process).map_err(|error| format!("stopping a server: {error}"))
    }
}
