//! Slabs: memory in the manner of seL4's untyped objects, and everything about its allocation that needs no system
//! call.
//!
//! A *slab* is a block of untyped memory that can only be used from the bottom up. The kernel keeps a *watermark*,
//! above which the next object goes, aligned to its own size; the watermark returns to 0 when the last object of the
//! slab is deleted. So memory is lost in two ways, each of which has a name here:
//!
//! ```text
//!   0                                        watermark                          size
//!   ┌───────┬╌╌╌╌╌╌╌┬───────────┬▒▒▒▒▒▒▒▒▒▒▒┬───────────────────────────────────┐
//!   │object │ lost  │  object   │ lost to   │ free                              │
//!   │       │ to    │           │ the water-│                                   │
//!   │       │ align-│           │ mark: was │                                   │
//!   │       │ ment  │           │ an object │                                   │
//!   └───────┴╌╌╌╌╌╌╌┴───────────┴▒▒▒▒▒▒▒▒▒▒▒┴───────────────────────────────────┘
//! ```
//! Lost memory comes back when the slab is empty: that is a *reset*. A *policy* chooses the slab of each object, and so
//! determines how much is lost.
//!
//! The users of this crate are the memory server, which keeps its metadata in [`Slabs`], with the kernel as
//! [`Backend`]; a replay on the target; and the host's tool, with [`Model`] in place of the kernel. All of them run
//! this code, so results agree.
//!
//! ```
//! use tench_slabs::{Descriptor, Lifetime, Model, Policy, STANDARD_SLABS, Slabs};
//!
//! let mut slabs = Slabs::standard();
//! let mut kernel = Model::new(&slabs);
//! slabs.set_policy(Policy::BestFit);
//! let bundle = [Descriptor::new(4096, 3), Descriptor::new(16, 1)];
//! let allocations = slabs.grant(&bundle, Lifetime::Dynamic, &mut kernel).unwrap();
//! assert_eq!(slabs.figures().live, 3 * 4096 + 16);
//! for allocation in allocations {
//!     for (address, size) in allocation.objects(&slabs) {
//!         kernel.delete(address, size);
//!         slabs.freed(address, size).unwrap();
//!     }
//! }
//! assert_eq!(slabs.figures().live, 0);
//! assert_eq!(STANDARD_SLABS.len(), 22);
//! ```
//!
//! | module | content |
//! |---|---|
//! | `slab`, `holes` | one slab and its metadata; its free ranges when the watermark rule is lifted |
//! | `slabs` | all slabs: granting bundles, freeing objects |
//! | `policy` | the choice of a slab |
//! | `backend` | making objects: a trait, and a model of the kernel |
//! | `trace`, `applications`, `random` | workloads: recorded, of applications, random |
//! | `replay` | running a workload and collecting statistics |
//! | `recorder` | recording the requests to a running system |

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod applications;
mod backend;
mod bundle;
mod holes;
mod policy;
mod random;
mod recorder;
mod replay;
mod slab;
mod slabs;
mod trace;

pub use applications::{Application, SEQUENCES, application, printed_account, sequence};
pub use backend::{Backend, Model, Placement, Refused};
pub use bundle::{Allocation, Descriptor, Lifetime, MAX_COUNT, MIN_SIZE};
pub use policy::Policy;
pub use random::{Random, RandomSettings};
pub use recorder::Recorder;
pub use replay::{
    Accounting, Bar, Means, Meter, Options, Outcome, Peaks, Point, Replay, Snapshot, Source, Step, StepKind, replay,
};
pub use slab::{Account, Slab};
pub use slabs::{Error, Figures, STANDARD_SLABS, STANDARD_STATIC_SLABS, Slabs};
pub use trace::{Damage, Mistake, Request, Trace, TraceSource};
