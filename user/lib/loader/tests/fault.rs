//! Fault reports, word for word.

use tench_abi::fault::{Class, Report};
use tench_abi::memory::MapFlags;
use tench_loader::fault::{Fault, Layout, OwnReport, Part};
use tench_procs_interface::protocol::{FaultKind, RegionKind};

const READ: u64 = 0x9200_0007; // data abort, translation fault of level 3
const WRITE: u64 = READ | 1 << 6;
const WRITE_PERMISSION: u64 = 0x9200_004f;
const FETCH: u64 = 0x8200_0007;
const FETCH_PERMISSION: u64 = 0x8200_000f;

fn layout() -> Layout {
    let part = |address, size, flags| Part { address, size, flags };
    Layout {
        segments: [
            part(0x20_0000, 0x3000, MapFlags::READ | MapFlags::EXECUTE),
            part(0x20_4000, 0x1000, MapFlags::READ | MapFlags::WRITE),
        ]
        .into_iter()
        .collect(),
        stack_bottom: 0x7ffd_ffff_0000,
        stack_top: 0x7ffe_0000_0000,
        information: 0x7fff_0000_0000,
        messages: 0x7fff_0010_0000,
        dynamic: 0x1000_0000_0000,
        bias: 0x1f_0000,
        handles_faults: false,
    }
}

fn describe(class: Class, address: u64, syndrome: u64) -> (FaultKind, String) {
    let layout = layout();
    let report = Report { class: class as u64, address, instruction: 0x20_1004, syndrome };
    let fault = Fault { report, layout: &layout, own: None };
    (fault.kind(), fault.to_string())
}

#[track_caller]
fn page_fault(address: u64, syndrome: u64, kind: FaultKind, text: &str) {
    assert_eq!(describe(Class::PageFault, address, syndrome), (kind, text.to_string()));
}

#[track_caller]
fn exception(syndrome: u64, kind: FaultKind, text: &str) {
    assert_eq!(describe(Class::Exception, 0, syndrome), (kind, text.to_string()));
}

#[test]
fn null_dereferences() {
    page_fault(
        0,
        WRITE,
        FaultKind::NullDereference,
        "null dereference: write to 0x0 at instruction 0x201004 (region first page)",
    );
    page_fault(
        0xff8,
        READ,
        FaultKind::NullDereference,
        "null dereference: read from 0xff8 at instruction 0x201004 (region first page)",
    );
}

#[test]
fn the_guard_page() {
    page_fault(
        0x7ffd_fffe_fff8,
        WRITE,
        FaultKind::GuardPage,
        "guard page: write to 0x7ffdfffefff8 at instruction 0x201004 (region guard page below the stack)",
    );
}

#[test]
fn kernel_addresses() {
    page_fault(
        0xffff_0000_4000_0000,
        READ,
        FaultKind::KernelAddress,
        "kernel address: read from 0xffff000040000000 at instruction 0x201004 (region kernel's half)",
    );
}

#[test]
fn rights_violations() {
    page_fault(
        0x20_0010,
        WRITE_PERMISSION,
        FaultKind::RightsViolation,
        "rights violation: write to 0x200010 at instruction 0x201004 (region segment 0x200000..0x203000 r-x)",
    );
    page_fault(
        0x20_4000,
        FETCH_PERMISSION,
        FaultKind::RightsViolation,
        "rights violation: jump to 0x204000 at instruction 0x201004 (region segment 0x204000..0x205000 rw-)",
    );
    page_fault(
        0x7fff_0000_0000,
        WRITE_PERMISSION,
        FaultKind::RightsViolation,
        "rights violation: write to 0x7fff00000000 at instruction 0x201004 (region process information, read-only)",
    );
}

#[test]
fn addresses_that_were_never_allocated() {
    page_fault(
        0x1234_5678_9000,
        READ,
        FaultKind::NeverAllocated,
        "never allocated: read from 0x123456789000 at instruction 0x201004 (region dynamic memory)",
    );
    page_fault(
        0x30_0000,
        FETCH,
        FaultKind::NeverAllocated,
        "never allocated: jump to 0x300000 at instruction 0x201004 (region nothing there)",
    );
}

#[test]
fn instructions() {
    exception(
        0x0200_0000,
        FaultKind::UndefinedInstruction,
        "undefined instruction: at instruction 0x201004 (region segment 0x200000..0x203000 r-x)",
    );
    exception(
        0x6200_0000,
        FaultKind::PrivilegedInstruction,
        "privileged instruction: at instruction 0x201004 (region segment 0x200000..0x203000 r-x)",
    );
    exception(
        0xf200_0001,
        FaultKind::Breakpoint,
        "breakpoint: at instruction 0x201004 (region segment 0x200000..0x203000 r-x)",
    );
}

#[test]
fn misalignment() {
    exception(
        0x9a00_0000,
        FaultKind::Misaligned,
        "misaligned access: syndrome 0x9a000000 at instruction 0x201004 (region segment 0x200000..0x203000 r-x)",
    );
    page_fault(
        0x20_4001,
        0x9200_0021,
        FaultKind::Misaligned,
        "misaligned access: read from 0x204001 at instruction 0x201004 (region segment 0x204000..0x205000 rw-)",
    );
}

#[test]
fn foreign_calls() {
    let (kind, text) = describe(Class::ForeignCall, 0, 0);
    assert_eq!(kind, FaultKind::ForeignCall);
    assert_eq!(text, "foreign system call: svc #0 at instruction 0x201004 (region segment 0x200000..0x203000 r-x)");
}

#[test]
fn used_up_budgets() {
    let (kind, text) = describe(Class::Timeout, 640, 1);
    assert_eq!(kind, FaultKind::Timeout);
    assert_eq!(text, "budget used up: after 640 ticks at instruction 0x201004 (region segment 0x200000..0x203000 r-x)");
}

#[test]
fn unknown_classes_are_still_described() {
    let layout = Layout::default();
    let report = Report { class: 99, address: 5, instruction: 0, syndrome: u64::MAX };
    assert!(Fault { report, layout: &layout, own: None }.to_string().starts_with("exception: "));
}

#[test]
fn a_process_that_handles_its_faults_reports_none_but_those_of_its_handlers() {
    let layout = Layout { handles_faults: true, ..layout() };
    let kind = |address, syndrome| {
        let report = Report { class: Class::PageFault as u64, address, instruction: 0x20_1004, syndrome };
        let fault = Fault { report, layout: &layout, own: None };
        (fault.kind(), fault.to_string())
    };
    let text = "page fault in a fault handler: write to 0x123456789000 at instruction 0x201004 (region dynamic memory)";
    assert_eq!(kind(0x1234_5678_9000, WRITE), (FaultKind::InHandler, text.to_string()));
    assert_eq!(kind(0x30_0000, READ).0, FaultKind::InHandler);
    // Where no memory could have come on demand, the kind of access says more.
    assert_eq!(kind(8, READ).0, FaultKind::NullDereference);
    assert_eq!(kind(0x20_0010, WRITE_PERMISSION).0, FaultKind::RightsViolation);
    assert_eq!(kind(0x7ffd_fffe_fff8, WRITE).0, FaultKind::GuardPage);
}

#[test]
fn the_processs_own_description_takes_precedence() {
    let layout = layout();
    let heap = OwnReport { kind: FaultKind::OutOfMemory, region: Some((RegionKind::Heap, 0x1000_0000_0000, 0x2_0000)) };
    let describe = |address, own| {
        let report = Report { class: Class::PageFault as u64, address, instruction: 0x20_1004, syndrome: WRITE };
        let fault = Fault { report, layout: &layout, own };
        (fault.kind(), fault.to_string())
    };
    let text =
        "out of memory: write to 0x100000001000 at instruction 0x201004 (region heap 0x100000000000..0x100000020000)";
    assert_eq!(describe(0x1000_0000_1000, Some(heap)), (FaultKind::OutOfMemory, text.to_string()));
    // The layout knows the first page, and the parts that the loader made.
    assert_eq!(describe(8, Some(heap)), describe(8, None));
    assert_eq!(describe(0x20_1000, Some(heap)), describe(0x20_1000, None));
    // Wrong sizes do no harm.
    let lie = OwnReport { region: Some((RegionKind::Guard, u64::MAX, u64::MAX)), ..heap };
    assert_eq!(describe(0x1000_0000_1000, Some(lie)).0, FaultKind::OutOfMemory);
}

#[test]
fn addresses_of_the_program_are_reported_as_in_its_file() {
    let layout = layout();
    assert_eq!(layout.linked(0x20_1004), 0x1_1004);
    assert_eq!(layout.linked(0x20_4fff), 0x1_4fff);
    for elsewhere in [0, 0x20_3000, 0x7ffd_ffff_0000, 0x1000_0000_0000] {
        assert_eq!(layout.linked(elsewhere), elsewhere);
    }
}
