//! R4's table: instructions of one Send-Receive-Reply by message size, kernel and library together.

use alloc::format;
use alloc::string::String;

use crate::support::figure;

/// Measures every case of the library.
pub fn run() -> Result<(), String> {
    tench_srr::measure::measure(figure).map_err(|error| format!("{error}"))
}
