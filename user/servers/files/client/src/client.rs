//! What is easier to use than the requests themselves.

use tench_abi::layout::slot;
use tench_procs_client::Standing;

use crate::protocol::Files;

impl Files<Standing> {
    /// The file server as every process finds it.
    pub const STANDARD: Files<Standing> = Files::at(Standing(slot::FILES));
}
