//! Conveniences on top of the requests.

use tench_protocol::{Failure as AnyFailure, Rejection};

use crate::Failure;
use crate::protocol::{Error, Monitor, State};

impl Monitor {
    /// Returns why a request to the process server of a core ([`processes`](Self::processes)) failed, in the words of
    /// this interface: `Silent`, `Stopped`, `Broken` or `NotConnected`. Returns `None` if the server itself refused it,
    /// or the core was reached and something else is the cause.
    pub fn why_unreachable<E>(self, core: u64, failure: &AnyFailure<E>) -> Option<Failure> {
        let AnyFailure::Rejected(Rejection::Unreachable) = failure else { return None };
        Some(self.core(core).map_or_else(|failure| failure, |core| Failure::Refused(refusal(core.state))))
    }
}

/// Returns why a core in this state does not reply.
const fn refusal(state: State) -> Error {
    match state {
        State::Stopped => Error::Stopped,
        State::Broken => Error::Broken,
        // It may have been silent for a while only.
        State::Silent | State::Running | State::Here => Error::Silent,
        State::Starting | State::Refused | State::NoMemory | State::Unconnected => Error::NotConnected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_core_does_not_reply_is_said_by_its_state() {
        for (state, error) in [
            (State::Stopped, Error::Stopped),
            (State::Broken, Error::Broken),
            (State::Silent, Error::Silent),
            (State::Running, Error::Silent),
            (State::NoMemory, Error::NotConnected),
        ] {
            assert_eq!(refusal(state), error);
        }
    }
}
