//! How members of a group come to know each other's notifications.

use tench_protocol::{Arrived, Sent, interface};
use tench_sys::Notification;

/// The members of a group.
#[interface(client = GroupClient, version = 1)]
pub trait GroupService {
    /// Becomes a member, which is woken by this notification. Returns the member's number.
    /// Errors: `Full`.
    #[method(1)]
    fn join(&mut self, notification: Arrived<'_, Notification>) -> Result<u64, Error>;

    /// The notification of a member.
    /// Errors: `NoSuchMember`.
    #[method(2)]
    fn member(&mut self, number: u64) -> Result<Sent<Notification>, Error>;

    /// A member leaves: it holds nothing and waits for nothing, and its number may be given to another.
    /// Errors: `NoSuchMember`.
    #[method(3)]
    fn leave(&mut self, number: u64) -> Result<(), Error>;

    /// Stops serving, once this has its reply.
    #[method(4, authority)]
    fn stop(&mut self) -> Result<(), Error>;
}

tench_protocol::codes! {
    /// Why a request was refused.
    pub enum Error {
        /// The group has 64 members, or had some that ended without leaving.
        Full = 1, "the group is full; make another";
        /// There is no such member any more.
        NoSuchMember = 2, "no such member; it has left or ended";
    }
}
