//! Accounts of address spaces: what all threads of a process have in common.

use tench_abi::{Error, Operation};

use crate::cap::Cap;
use crate::device::Kernel;
use crate::memory::PageTable;
use crate::raw;

/// What the kernel knows about an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountInfo {
    /// Ticks of processor time that its threads have used, those that are gone included.
    pub ticks: u64,
    /// Its threads.
    pub threads: u64,
    /// Whether none of them may run.
    pub suspended: bool,
}

impl Cap<PageTable> {
    /// Opens the account of the address space with this root, where nobody lives yet: whatever thread does later
    /// belongs to it, and what such a thread makes. Rights: `WRITE`, also on `authority`. Errors: `AlreadyBound`,
    /// `Busy` (a thread lives there).
    pub fn open_account(self, authority: Cap<Kernel>) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call0(Operation::AccountOpen, self.raw(), authority.raw()) }.done()
    }

    /// What is known about its account. Rights: `READ`. Errors: `NotConfigured`.
    pub fn account(self) -> Result<AccountInfo, Error> {
        // SAFETY: no memory of the program changes.
        let answer = unsafe { raw::call0(Operation::AccountQuery, self.raw(), 0) }.check()?;
        let [threads, suspended, ..] = answer.words;
        Ok(AccountInfo { ticks: answer.first, threads, suspended: suspended != 0 })
    }

    /// Stops all threads of its account, and those that join it, or lets them go on. What they wait for goes on.
    /// Rights: `GRANT`, which a process lacks for its own. Errors: `NotConfigured`.
    pub fn suspend_account(self, suspended: bool) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call0(Operation::AccountSuspend, self.raw(), u64::from(suspended)) }.done()
    }
}
