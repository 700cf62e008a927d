//! The cores of the machine: starting a core, and its power state, both through the firmware (PSCI).

use core::sync::atomic::{AtomicBool, Ordering};

use arrayvec::ArrayVec;
use smccc::psci::{self, AffinityState, LowestAffinityLevel, error::Error as PsciError};
use tench_abi::Error;
use tench_abi::object::CorePower;

use crate::layout::MAX_CORES;
use crate::power::Firmware;

/// Mask of the affinity fields in `MPIDR_EL1`, which identify a core.
const AFFINITY: u64 = 0xff_00ff_ffff;

/// The cores that the device tree names, in its order.
pub struct Cores {
    affinities: ArrayVec<u64, MAX_CORES>,
    /// Index of this core.
    pub own: u64,
}

impl Cores {
    /// Returns the cores of a machine, which have these affinities.
    ///
    /// # Errors
    /// A sentence, if the device tree does not name the core that runs this.
    pub fn new(affinities: ArrayVec<u64, MAX_CORES>) -> Result<Cores, &'static str> {
        let affinity = own_affinity();
        let own = affinities.iter().position(|core| *core == affinity);
        let own = own.ok_or("the device tree does not name this core")? as u64;
        Ok(Cores { affinities, own })
    }

    /// Returns the number of cores.
    pub fn count(&self) -> u64 {
        self.affinities.len() as u64
    }

    /// Returns a core's affinity, as in `MPIDR_EL1`.
    pub fn affinity(&self, core: u64) -> Option<u64> {
        self.affinities.get(core as usize).copied()
    }

    /// Starts a core with the kernel at physical address `image`, and with `boot` in its first register.
    ///
    /// # Errors
    /// `NoSuchCore`, `CoreRunning`, `CoreRefused`.
    pub fn start(&self, core: u64, image: u64, boot: u64) -> Result<(), Error> {
        let affinity = self.affinity(core).ok_or(Error::NoSuchCore)?;
        let started = psci::cpu_on::<Firmware>(affinity, image, boot);
        started.map_err(|error| match error {
            PsciError::AlreadyOn | PsciError::OnPending => Error::CoreRunning,
            _ => Error::CoreRefused,
        })
    }

    /// Returns the power state of a core.
    ///
    /// # Errors
    /// `NoSuchCore`, `CoreRefused`.
    pub fn power(&self, core: u64) -> Result<CorePower, Error> {
        let affinity = self.affinity(core).ok_or(Error::NoSuchCore)?;
        match psci::affinity_info::<Firmware>(affinity, LowestAffinityLevel::All) {
            Ok(AffinityState::On) => Ok(CorePower::On),
            Ok(AffinityState::Off) => Ok(CorePower::Off),
            Ok(AffinityState::OnPending) => Ok(CorePower::Starting),
            Err(_) => Err(Error::CoreRefused),
        }
    }
}

/// Set if another core's user code started this kernel.
static IS_FURTHER: AtomicBool = AtomicBool::new(false);

/// Records that another core's user code started this kernel.
pub fn set_further() {
    IS_FURTHER.store(true, Ordering::Relaxed);
}

/// Returns whether another core's user code started this kernel.
pub fn is_further() -> bool {
    IS_FURTHER.load(Ordering::Relaxed)
}

/// Returns this core's affinity.
pub fn own_affinity() -> u64 {
    let value: u64;
    // SAFETY: reads an identification register.
    unsafe { core::arch::asm!("mrs {}, mpidr_el1", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value & AFFINITY
}
