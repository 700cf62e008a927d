//! Tests of what holds for every operation: it checks its capability first.

use tench::abi::Operation;
use tench::abi::layout::slot;
use tench::sys::{Cap, CapAddress, CapNode, Error, Frame, Interrupt, InterruptControl, Kind, MapFlags, PageTable};
use tench::sys::{Mapping, Rights, Trigger, raw};

use crate::case::{Case, Failure, Outcome};
use crate::cores::SILENT;
use crate::stage::{EMPTY_INDEX, RTC_LINE, Stage, system_call};

/// Defines a case for each operation that takes a capability, from the kinds that it accepts and the rights that it
/// needs.
macro_rules! operations {
    ($($id:literal $operation:ident [$($kind:ident),*] $($right:ident)*;)*) => {
        pub const CASES: &[Case] = &[
            $(Case::new(
                $id,
                concat!(stringify!($operation), " refuses empty slots, other kinds of capabilities and missing rights"),
                |stage| {
                    let needed = Rights::empty()$(.union(Rights::$right))*;
                    refuses(stage, Operation::$operation, &[$(Kind::$kind),*], needed)
                },
            ),)*
            Case::new("OPS0060", "numbers of no operation are refused", unknown),
            Case::new("OPS0061", "a refused call leaves zeros in the registers", cleared),
        ];
    };
}

operations! {
    "OPS0000" Call [Endpoint] WRITE CALL;
    "OPS0001" ReplyReceive [Endpoint, Notification] READ;
    "OPS0002" Receive [Endpoint, Notification] READ;
    "OPS0003" Send [Endpoint] WRITE;
    "OPS0004" TrySend [Endpoint] WRITE;
    "OPS0005" TryReceive [Endpoint, Notification] READ;
    "OPS0006" Reply [Reply] WRITE;
    "OPS0008" Signal [Notification, Doorbell] WRITE;
    "OPS0010" UntypedRetype [Untyped];
    "OPS0011" UntypedQuery [Untyped];
    "OPS0012" Copy [CapNode] READ;
    "OPS0013" Mint [CapNode] READ;
    "OPS0014" Move [CapNode] WRITE;
    "OPS0015" Delete [CapNode] WRITE;
    "OPS0016" Revoke [CapNode] WRITE;
    "OPS0058" DeletePart [CapNode] WRITE;
    "OPS0059" RevokePart [CapNode] WRITE;
    "OPS0017" Identify [CapNode] READ;
    "OPS0018" NodeInstall [CapNode] WRITE;
    "OPS0019" NodeRemove [CapNode] WRITE;
    "OPS0020" FrameMap [Frame] READ;
    "OPS0021" MappingProtect [Mapping];
    "OPS0022" MappingQuery [Mapping];
    "OPS0083" FrameScatter [Frame] READ;
    "OPS0084" MappingSet [Mapping];
    "OPS0085" MappingClone [Mapping];
    "OPS0023" PageTableMap [PageTable] WRITE;
    "OPS0024" PageTableUnmap [PageTable] WRITE;
    "OPS0025" ThreadConfigure [Thread] WRITE;
    "OPS0026" ThreadBind [Thread] WRITE;
    "OPS0027" ThreadFaults [Thread] WRITE;
    "OPS0028" ThreadResume [Thread] WRITE;
    "OPS0029" ThreadSuspend [Thread] WRITE;
    "OPS0030" ThreadReadRegisters [Thread] READ;
    "OPS0031" ThreadWriteRegisters [Thread] WRITE;
    "OPS0032" ThreadQuery [Thread] READ;
    "OPS0033" SchedulingConfigure [SchedulingContext] WRITE;
    "OPS0034" SchedulingQuery [SchedulingContext] READ;
    "OPS0082" SchedulingReserve [SchedulingContext] WRITE;
    "OPS0035" InterruptGet [InterruptControl] WRITE;
    "OPS0036" InterruptBind [Interrupt] WRITE;
    "OPS0037" InterruptAcknowledge [Interrupt] WRITE;
    "OPS0038" KernelPowerOff [Kernel] WRITE;
    "OPS0039" KernelPrint [Kernel] WRITE;
    "OPS0040" KernelQuery [Kernel] READ;
    "OPS0046" KernelIrqOff [Kernel] READ;
    "OPS0049" KernelExport [Kernel] WRITE;
    "OPS0050" KernelUnexport [Kernel] WRITE;
    "OPS0051" KernelImport [Kernel] WRITE;
    "OPS0052" KernelHolders [Kernel] WRITE;
    "OPS0041" UntypedSplit [Untyped];
    "OPS0042" UntypedChildren [Untyped];
    "OPS0043" AccountOpen [PageTable] WRITE;
    "OPS0044" AccountQuery [PageTable] READ;
    "OPS0045" AccountSuspend [PageTable] GRANT;
    "OPS0048" ThreadServe [Thread] WRITE;
    "OPS0053" InterruptDoorbell [InterruptControl] WRITE;
    "OPS0054" KernelMachine [Kernel] READ;
    "OPS0055" KernelStartCore [Kernel] WRITE;
    "OPS0056" KernelCorePower [Kernel] READ;
    "OPS0057" KernelCounters [Kernel] WRITE;
}

/// Makes a capability of each kind.
fn one_of_each(stage: &mut Stage) -> Outcome<[(Kind, CapAddress); 14]> {
    let (table, frame) = (stage.make::<PageTable>(3)?, stage.make::<Frame>(12)?);
    let (mapping, interrupt) = (stage.slot(), stage.slot());
    let mapping: Cap<Mapping> = frame.map(table, 7, 1, 0, MapFlags::READ, mapping)?;
    let control = Cap::<InterruptControl>::new(slot::INTERRUPT_CONTROL);
    let interrupt: Cap<Interrupt> = control.get(RTC_LINE, Trigger::Level, interrupt)?;
    let doorbell = stage.slot();
    let doorbell = control.doorbell(0, SILENT, doorbell)?;
    Ok([
        (Kind::Untyped, stage.make_kind(Kind::Untyped, 12)?),
        (Kind::CapNode, stage.make_kind(Kind::CapNode, 1)?),
        (Kind::Frame, frame.address()),
        (Kind::PageTable, table.address()),
        (Kind::Mapping, mapping.address()),
        (Kind::Thread, stage.make_kind(Kind::Thread, 0)?),
        (Kind::SchedulingContext, stage.make_kind(Kind::SchedulingContext, 0)?),
        (Kind::Endpoint, stage.make_kind(Kind::Endpoint, 0)?),
        (Kind::Reply, stage.make_kind(Kind::Reply, 0)?),
        (Kind::Notification, stage.make_kind(Kind::Notification, 0)?),
        (Kind::Interrupt, interrupt.address()),
        (Kind::InterruptControl, slot::INTERRUPT_CONTROL),
        (Kind::Kernel, slot::KERNEL),
        (Kind::Doorbell, doorbell.address()),
    ])
}

/// Tries an operation on everything that it must refuse.
fn refuses(stage: &mut Stage, operation: Operation, kinds: &[Kind], needed: Rights) -> Outcome {
    let everything = one_of_each(stage)?;
    let attempt = |address: u64| system_call(operation as u64, &[address]);
    let empty = stage.slot();
    let missing = [empty, CapAddress::new(EMPTY_INDEX, 3), CapAddress::new(64, 0), CapAddress(u32::MAX)];
    for address in missing {
        refused!(attempt(u64::from(address.0)), InvalidCapability);
    }
    for (kind, address) in everything {
        let address = u64::from(address.0);
        refused!(attempt(address | 1 << 32), InvalidCapability);
        refused!(attempt(address | 1 << 63), InvalidCapability);
        if !kinds.contains(&kind) {
            let result = attempt(address);
            equal!((kind, result.err()), (kind, Some(Error::WrongType)));
        }
    }
    for right in needed.iter() {
        for (_, address) in everything.into_iter().filter(|(kind, _)| kinds.contains(kind)) {
            let weak = stage.mint(Cap::<CapNode>::new(address), Rights::all().difference(right), 0)?;
            refused!(attempt(u64::from(weak.address().0)), MissingRights);
        }
    }
    tidy(&everything)
}

/// Deletes the objects that are not deleted with the pool.
fn tidy(everything: &[(Kind, CapAddress)]) -> Outcome {
    for (kind, address) in everything {
        if *kind == Kind::Interrupt {
            let line = Cap::<Interrupt>::new(*address);
            line.revoke()?;
            line.delete()?;
        }
    }
    let node = crate::stage::NODE_INDEX;
    for number in 0..256 {
        let cap = Cap::<CapNode>::new(CapAddress::new(node, number));
        if matches!(cap.identify()?.kind, Kind::Kernel | Kind::InterruptControl | Kind::Interrupt | Kind::Doorbell) {
            cap.delete()?;
        }
    }
    Ok(())
}

fn unknown(_: &mut Stage) -> Outcome {
    let numbers = (0..1024).chain([1 << 32, 1 << 32 | 7, 1 << 63, u64::MAX]);
    for number in numbers.filter(|number| Operation::from_code(*number).is_none()) {
        refused!(system_call(number, &[0; 10]), UnknownOperation);
    }
    Ok(())
}

fn cleared(_: &mut Stage) -> Outcome {
    for (operation, error) in [
        (Operation::Call as u64, Error::InvalidCapability),
        (Operation::ReplyReceive as u64, Error::InvalidCapability),
        (Operation::Signal as u64, Error::InvalidCapability),
        (Operation::Identify as u64, Error::InvalidCapability),
        (10, Error::UnknownOperation),
    ] {
        let x: [u64; 13] = core::array::from_fn(|index| 0x9999_0000 + index as u64);
        // SAFETY: there is no such capability, so nothing happens.
        let result = unsafe { raw::anything(operation, &x) };
        equal!(result[0], error as u64);
        if result[1..].iter().any(|register| *register != 0) {
            return Err(Failure::new("a register held something after a refused call"));
        }
    }
    Ok(())
}
