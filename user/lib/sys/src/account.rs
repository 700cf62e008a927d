//! Accounts of address spaces, which hold what the threads of a process have in common.

use tench_abi::{Error, Operation};

use crate::cap::Cap;
use crate::device::Kernel;
use crate::memory::PageTable;
use crate::raw;

/// An account as the kernel describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountInfo {
    /// Ticks of processor time that its threads have used, including deleted threads.
    pub ticks: u64,
    /// Number of threads.
    pub threads: u64,
    /// Set if the account is suspended, so that none of its threads runs.
    pub suspended: bool,
}

impl Cap<PageTable> {
    /// Opens the account of the address space with this root, which has no threads yet. Threads that are later
    /// configured with it belong to the account, and so do threads that one of them configures with an address space
    /// without an account. Rights: `WRITE`, also on `authority`. Errors: `AlreadyBound`, `Busy` (a thread lives there).
    pub fn open_account(self, authority: Cap<Kernel>) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call0(Operation::AccountOpen, self.raw(), authority.raw()) }.done()
    }

    /// Returns a description of the account. Rights: `READ`. Errors: `NotConfigured`.
    pub fn account(self) -> Result<AccountInfo, Error> {
        // SAFETY: no memory of the program changes.
        let result = unsafe { raw::call0(Operation::AccountQuery, self.raw(), 0) }.check()?;
        let [threads, suspended, ..] = result.words;
        Ok(AccountInfo { ticks: result.first, threads, suspended: suspended != 0 })
    }

    /// Suspends or resumes all threads of the account, including threads that join it. Their waits continue meanwhile.
    /// Rights: `GRANT`, which a process lacks for its own address space. Errors: `NotConfigured`.
    pub fn suspend_account(self, suspended: bool) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call0(Operation::AccountSuspend, self.raw(), u64::from(suspended)) }.done()
    }
}
