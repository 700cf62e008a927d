//! How a process ended, as its status says.

use crate::protocol::{FaultKind, State, Status};

impl Status {
    /// Returns its exit code, if it has ended by itself.
    pub const fn exit_code(&self) -> Option<u64> {
        if matches!(self.state, State::Exited) { Some(self.detail) } else { None }
    }

    /// Returns the fault that ended it.
    pub const fn fault(&self) -> Option<FaultKind> {
        if matches!(self.state, State::Faulted) { FaultKind::from_code(self.detail) } else { None }
    }
}
