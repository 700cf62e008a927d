//! Why the system could not be started.

use core::fmt;

use tench_loader::LoadError;
use tench_procs_interface::Failure as ProcsFailure;
use tench_procs_interface::protocol::Defect;
use tench_sys::Error;

/// Why `init` gives up.
#[derive(Clone, Copy, Debug)]
pub enum Failure {
    /// A reason in words.
    Text(&'static str),
    /// The kernel refused something.
    Kernel(&'static str, Error),
    /// There was no memory or no slot for this.
    Load(&'static str, LoadError),
    /// The archive has no such program.
    Missing(&'static str),
    /// The machine has no such device.
    NoDevice(&'static str),
    /// The machine has the device, but its registers are not among those that the kernel of this core hands over.
    OtherCore(&'static str),
    /// The description names a server that is not in it.
    NoServer(&'static str),
    /// There are not enough slots for what a program is to be given.
    TooMuch(&'static str),
    /// The process server could not start a program.
    Start(&'static str, ProcsFailure, Option<Defect>),
    /// A server without which nothing goes on has ended.
    Ended(&'static str),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Failure::Text(text) => f.write_str(text),
            Failure::Kernel(what, error) => write!(f, "{what}: {error}"),
            Failure::Load(what, error) => write!(f, "{what}: {error}"),
            Failure::Missing(name) => write!(f, "the boot archive has no program {name}"),
            Failure::NoDevice(name) => write!(f, "{name} needs a device that the machine's device tree does not show"),
            Failure::OtherCore(name) => {
                write!(f, "{name} needs a device that belongs to another core (`lines` in the system description)")
            }
            Failure::NoServer(name) => write!(f, "{name} is to be given a server that the description does not have"),
            Failure::TooMuch(name) => write!(f, "{name} is to be given more capabilities than there are slots"),
            Failure::Start(name, failure, None) => write!(f, "starting {name}: {failure}"),
            Failure::Start(name, failure, Some(defect)) => write!(f, "starting {name}: {failure}: {defect}"),
            Failure::Ended(name) => write!(f, "{name} has ended, and nothing can go on without it"),
        }
    }
}

impl core::error::Error for Failure {}
