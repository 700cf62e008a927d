//! Ways of making calls besides exceptions, for programs that know that they run on Tench.

use alloc::boxed::Box;

use tench_linux_files::Errno;
use tench_linux_memory::{Backing, MapRequest, Placement, Rights};

use crate::Machine;
use crate::caller::{Caller, Entering, Outcome, Result};
use crate::thread::Entrance;

/// Operation of `prctl` that sets how the thread makes calls. Linux does not have it, and refuses it with `EINVAL`.
pub(super) const SET_ENTRANCE: u64 = 0x5465_6e63;

/// The operation's arguments, one for each [`Entrance`].
const EXCEPTIONS: u64 = 0;
const MESSAGES: u64 = 1;
const UPCALLS: u64 = 2;

const PAGE: u64 = 4096;

impl<M: Machine> Caller<'_, M> {
    /// Sets how the thread makes calls. Returns 0 for exceptions, the address of the capability for messages, and for
    /// upcalls the address of the page in which the handler at `entry` finds the interrupted registers.
    pub(super) fn set_entrance(&mut self, way: u64, entry: u64) -> Outcome {
        let entrance = match way {
            EXCEPTIONS => Ok(Entering { entrance: Entrance::Exceptions, buffer: None }),
            MESSAGES => Ok(Entering { entrance: Entrance::Messages, buffer: None }),
            UPCALLS => self.map_buffer(entry),
            _ => Err(Errno::EINVAL),
        };
        match entrance {
            Ok(entering) => Outcome::Enter(Box::new(entering)),
            Err(error) => Err(error).into(),
        }
    }

    /// Maps a page for upcalls. The page lives as long as the thread, even if the program unmaps it.
    fn map_buffer(&mut self, entry: u64) -> Result<Entering> {
        let memory = &mut self.system.memory;
        let object = memory.objects.make(PAGE, &[]);
        let request = MapRequest {
            placement: Placement::Hint(0),
            length: PAGE,
            rights: Rights::READ | Rights::WRITE,
            allowed: Rights::READ | Rights::WRITE,
            shared: true,
            backing: Backing::Object(object, 0),
            grows: false,
        };
        let page = memory.objects.page(&mut memory.pool, &mut memory.hardware, object, 0);
        let (space, memory) = self.space();
        match page.and_then(|page| Ok((page, space.map(memory, &request)?))) {
            Ok((buffer, address)) => {
                Ok(Entering { entrance: Entrance::Upcalls { entry, buffer }, buffer: Some((object, address)) })
            }
            Err(error) => {
                memory.objects.release(&mut memory.pool, object);
                Err(error)
            }
        }
    }
}
