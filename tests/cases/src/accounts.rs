//! Tests of accounts of address spaces: which authority decides whether their threads run.

use tench::abi::layout::slot;
use tench::abi::object::ThreadState;
use tench::sys::{Cap, CapNode, PageTable, Rights, Thread};

use crate::case::{Case, Outcome};
use crate::stage::{HIGH, KERNEL, Stage};
use crate::worker::{Equipment, pause};

pub const CASES: &[Case] = &[
    Case::new("ACC0001", "a process neither suspends its own account nor lets it go on", own),
    Case::new("ACC0002", "nobody is let into the space of another account without GRANT", let_in),
    Case::new("ACC0003", "a thread of a suspended account runs nowhere", nowhere),
    Case::new("ACC0004", "an account is opened before anybody lives there", opened_late),
];

/// This program's CSpace.
const SPACE: Cap<CapNode> = Cap::new(slot::CSPACE);
const ROOT: Cap<PageTable> = Cap::new(slot::VSPACE);
/// Rights to a root that do not authorise decisions about its account.
const USE: Rights = Rights::READ.union(Rights::WRITE);

/// Makes a root with an account.
fn account(stage: &mut Stage) -> Outcome<Cap<PageTable>> {
    let root = stage.make::<PageTable>(0)?;
    root.open_account(KERNEL)?;
    Ok(root)
}

fn own(stage: &mut Stage) -> Outcome {
    // Whether the program holds the capability or has given it away: no program gets more rights than it has.
    let copy = stage.mint(ROOT, Rights::all(), 0)?;
    for root in [ROOT, copy] {
        refused!(root.suspend_account(true), MissingRights);
        refused!(root.suspend_account(false), MissingRights);
        check!(!root.account()?.suspended);
    }
    copy.delete()?;
    Ok(())
}

fn let_in(stage: &mut Stage) -> Outcome {
    let (root, thread) = (account(stage)?, stage.make::<Thread>(0)?);
    let weak = stage.mint(root, USE, 0)?;
    refused!(weak.suspend_account(true), MissingRights);
    refused!(thread.configure(SPACE, weak, None), MissingRights);
    equal!(root.account()?.threads, 0);
    thread.configure(SPACE, root, None)?;
    equal!(root.account()?.threads, 1);
    // The thread already belongs to that account, so this is no change.
    thread.configure(SPACE, weak, None)?;
    equal!(root.account()?.threads, 1);
    Ok(())
}

fn nowhere(stage: &mut Stage) -> Outcome {
    let (root, empty) = (account(stage)?, stage.make::<PageTable>(0)?);
    let stopped = Equipment { start: false, ..Equipment::at(HIGH) };
    let worker = stage.spawn_with(stopped, || ())?;
    worker.thread.configure(SPACE, root, None)?;
    root.suspend_account(true)?;
    // This program is not suspended and has all the capabilities needed; yet it cannot move the thread to its own
    // address space.
    refused!(worker.thread.configure(SPACE, ROOT, None), MissingRights);
    worker.thread.configure(SPACE, empty, None)?;
    worker.thread.resume()?;
    pause(stage)?;
    equal!(worker.state()?, ThreadState::Ready);
    equal!((root.account()?.threads, root.account()?.suspended), (1, true));
    root.suspend_account(false)?;
    pause(stage)?;
    // Nothing is mapped there.
    equal!(worker.state()?, ThreadState::Faulted);
    Ok(())
}

fn opened_late(stage: &mut Stage) -> Outcome {
    let (root, thread) = (stage.make::<PageTable>(0)?, stage.make::<Thread>(0)?);
    thread.configure(SPACE, root, None)?;
    refused!(root.open_account(KERNEL), Busy);
    thread.delete()?;
    root.open_account(KERNEL)?;
    equal!(root.account()?.threads, 0);
    Ok(())
}
