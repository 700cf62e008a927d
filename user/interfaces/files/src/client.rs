//! Conveniences on top of the requests.

use tench_abi::layout::slot;
use tench_procs_interface::Standing;

use crate::protocol::Files;

impl Files<Standing> {
    /// The file server, in the slot where every process finds it.
    pub const STANDARD: Files<Standing> = Files::at(Standing(slot::FILES));
}
