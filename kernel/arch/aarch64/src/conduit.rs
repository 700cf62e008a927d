//! The two ways to the firmware.

/// The instruction that calls the firmware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conduit {
    /// `hvc`.
    Hypervisor,
    /// `smc`.
    SecureMonitor,
}
