//! Requests to another process: R0's figures 15 and 16.
//!
//! | key | what |
//! |---|---|
//! | `string_N` | a string of N bytes goes to a server in another address space, which keeps a copy and replies: the median of 1,000 |
//! | `string_N_99`, `string_N_worst` | the 99th percentile and the most expensive of them |
//! | `echo_N` | the string comes back with the reply |
//! | `parts_N` | N bytes as parts of 448, a request each, where otherwise memory is shared |
//! | `ram_local`, `ram_remote` | an untyped of 4 KiB: from tables in this process, and from the memory server: see [`ram`] |
//!
//! Strings of 16 and 128 bytes are sent in messages; 1,024 bytes and 64 KiB through memory that is shared with the
//! server. The client copies the string into that memory and the server out of it: both are part of the figure.

mod ram;
mod server;

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use tench::memory;
use tench::println;
use tench::shared::Connection;
use tench::time::instructions;

use crate::support::figure;
use crate::support::{Child, problem, reading};
pub use server::serve;
use server::{PART, Strings};

/// Number of requests of each size.
const ROUNDS: usize = 1000;
/// Priority of the server: above its client's, as servers' are.
const PRIORITY: u8 = 130;

/// Costs in ascending order.
struct Costs(Vec<u64>);

impl Costs {
    fn new(mut costs: Vec<u64>) -> Costs {
        costs.sort_unstable();
        Costs(costs)
    }

    /// Returns the cost that `thousandths` of a thousand do not exceed.
    fn within(&self, thousandths: usize) -> u64 {
        let index = (self.0.len() * thousandths).div_ceil(1000).saturating_sub(1);
        self.0.get(index).copied().unwrap_or(0)
    }

    /// Prints median, 99th percentile and largest, and the distribution function: which percentage costs at most this
    /// much.
    fn print(&self, key: &str) {
        figure(key, self.within(500));
        figure(&format!("{key}_99"), self.within(990));
        figure(&format!("{key}_worst"), self.within(1000));
        println!("sample: {key} {} 0", self.within(1));
        for (index, cost) in self.0.iter().enumerate() {
            if self.0.get(index + 1) != Some(cost) {
                let thousandths = (index + 1) * 1000 / self.0.len();
                println!("sample: {key} {cost} {}.{}", thousandths / 10, thousandths % 10);
            }
        }
    }
}

/// Measures the requests, each of which returns whether it was right.
fn measure(key: &str, reading: u64, mut request: impl FnMut() -> Result<bool, String>) -> Result<(), String> {
    let mut costs = Vec::with_capacity(ROUNDS);
    // The first round populates pages that are touched for the first time.
    for round in 0..=ROUNDS {
        let before = instructions();
        let outcome = request();
        let cost = instructions() - before - reading;
        if !outcome? {
            return Err(format!("{key}: the reply is wrong"));
        }
        if round > 0 {
            costs.push(cost);
        }
    }
    Costs::new(costs).print(key);
    Ok(())
}

/// Runs all measurements.
pub fn run() -> Result<(), String> {
    let reading = reading();
    let child = Child::start("rpc-server", PRIORITY)?;
    let client = Strings::at(child.endpoint());
    let slot = memory::take_slot().map_err(problem("a slot"))?;
    let (frame, bits) = client.attach_buffer(2 * server::LARGEST, slot).map_err(problem("a buffer"))?;
    let connection = Connection::new(child.endpoint(), frame, bits).map_err(problem("a connection"))?;
    let shared = Strings::at(&connection);

    let (short, long) = ("sixteen letters!", String::from(&"an even longer one ".repeat(7)[..128]));
    measure("string_16", reading, || client.short(short).map(|length| length == 16).map_err(problem("a string")))?;
    measure("string_128", reading, || client.long(&long).map(|length| length == 128).map_err(problem("a string")))?;
    // Comparing would cost as much as the request.
    measure("echo_16", reading, || client.echo_short(short).map(|text| text.len() == 16).map_err(problem("an echo")))?;
    measure("echo_128", reading, || client.echo_long(&long).map(|text| text.len() == 128).map_err(problem("an echo")))?;
    let same = |one: Result<bool, _>| one.map_err(problem("an echo"));
    if !same(client.echo_short(short).map(|text| *text == *short))?
        || !same(client.echo_long(&long).map(|text| *text == *long))?
    {
        return Err("another string came back".into());
    }
    for size in [1024, server::LARGEST as usize] {
        let bytes: Vec<u8> = (0..size).map(|index| b'a' + (index % 26) as u8).collect();
        let mut back = vec![0; size];
        let whole = || shared.whole(&bytes).map(|length| length == size as u64).map_err(problem("shared memory"));
        measure(&format!("string_{size}"), reading, whole)?;
        let parts = || {
            let mut length = 0;
            for part in bytes.chunks(PART) {
                length += client.part(part).map_err(problem("a part"))?;
            }
            Ok(length == size as u64)
        };
        measure(&format!("parts_{size}"), reading, parts)?;
        let echo = || {
            shared.echo(&bytes, &mut back).map_err(problem("an echo"))?;
            Ok(back[size - 1] == bytes[size - 1])
        };
        measure(&format!("echo_{size}"), reading, echo)?;
        if back != bytes {
            return Err("other bytes came back".into());
        }
    }
    child.stop()?;
    ram::run(reading)
}
