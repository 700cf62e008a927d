//! Rarely used operations.
//!
//! They are a third of the operations, and nobody waits for them in a loop. So the architecture may instantiate them
//! where the compiler optimises for size ([`Arch::perform_cold`]); the table of operations leads there.

use tench_abi::{Error, Operation};

use crate::entry::{Handler, Outcome, Table, argument, unknown};
use crate::object::Ref;
use crate::thread::Thread;
use crate::{Arch, Kernel};

/// The operations.
const COLD: &[Operation] = &[
    Operation::UntypedQuery,
    Operation::Identify,
    Operation::NodeInstall,
    Operation::NodeRemove,
    Operation::MappingQuery,
    Operation::ThreadReadFloat,
    Operation::ThreadWriteFloat,
    Operation::SchedulingReserve,
    Operation::AccountOpen,
    Operation::InterruptGet,
    Operation::InterruptBind,
    Operation::InterruptDoorbell,
    Operation::KernelPowerOff,
    Operation::KernelPrint,
    Operation::KernelQuery,
    Operation::KernelIrqOff,
    Operation::KernelMachine,
    Operation::KernelStartCore,
    Operation::KernelCorePower,
    Operation::KernelCounters,
];

/// A table of handlers, by the operation's number.
pub(crate) type Handlers<A> = [Handler<A>; Operation::LIMIT];

/// Returns a table in which `other` stands for each operation that is rarely used, or for each that is not.
pub(crate) const fn replace<A: Arch>(mut table: Handlers<A>, other: Handler<A>, cold: bool) -> Handlers<A> {
    let mut number = 0;
    while number < table.len() {
        let mut is_cold = false;
        let mut index = 0;
        while index < COLD.len() {
            is_cold |= COLD[index] as usize == number;
            index += 1;
        }
        if is_cold == cold {
            table[number] = other;
        }
        number += 1;
    }
    table
}

/// Performs the rarely used operation that `x10` names.
pub fn perform<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let number = argument(k, thread, 10);
    match Table::<A>::COLD.get(number as usize) {
        Some(handler) => handler(k, thread),
        None => unknown(k, thread),
    }
}
