//! Tests of threads.

use tench::abi::Operation;
use tench::abi::fault::Class;
use tench::abi::layout::slot;
use tench::abi::object::ThreadState;
use tench::sys::thread::{Binding, Bindings};
use tench::sys::{Cap, CapNode, Error, Frame, Message, PageTable, Rights, Thread, Wait, ipc::BOUND_REPLY};

use crate::assembly;
use crate::case::{Case, Outcome};
use crate::stage::{HIGH, LOW, Stage, is_empty, system_call};
use crate::worker::{Equipment, patience, pause};

pub const CASES: &[Case] = &[
    Case::new("THR0001", "a thread that is new runs only when it has all it needs", needs),
    Case::new("THR0002", "configuring takes a suspended thread", configure_state),
    Case::new("THR0003", "configuring needs the right kinds with the right rights", configure_kinds),
    Case::new("THR0004", "an IPC buffer lies aligned in its frame", buffer),
    Case::new("THR0005", "configuring again replaces what was there", configure_again),
    Case::new("THR0006", "a suspended thread stays where it is until it is resumed", suspend),
    Case::new("THR0007", "suspending ends every wait with Aborted", suspend_waits),
    Case::new("THR0008", "a thread suspends itself", suspend_itself),
    Case::new("THR0009", "each state is reported", states),
    Case::new("THR0010", "registers are read and written while a thread is suspended", registers),
    Case::new("THR0011", "registers of a running thread are neither read nor written", registers_state),
    Case::new("THR0012", "register transfer needs an IPC buffer, and known flags", registers_errors),
    Case::new("THR0013", "what is bound cannot be bound again", bound),
    Case::new("THR0014", "a reply object that holds a caller is not bound", busy),
    Case::new("THR0015", "bindings need the right kinds with the right rights", binding_kinds),
    Case::new("THR0016", "what was unbound can be bound elsewhere", unbind),
    Case::new("THR0017", "a thread without processor time waits for some", without_time),
    Case::new("THR0018", "a deleted thread is gone in every state", deleted),
    Case::new("THR0019", "a thread that deletes itself is gone", deletes_itself),
    Case::new("THR0027", "the memory of a thread that deleted itself is used again", revoked_itself),
    Case::new("THR0020", "a caller that is deleted gets a reply from nobody", deleted_caller),
    Case::new(
        "THR0021",
        "a server that is deleted leaves its caller waiting until the reply object goes",
        deleted_server,
    ),
    Case::new("THR0022", "a thread's bindings keep their objects alive", bindings_keep),
    Case::new("THR0023", "without its CSpace a thread reaches nothing", cspace_gone),
    Case::new("THR0024", "without its IPC buffer's frame a thread sends eight words", buffer_gone),
    Case::new("THR0025", "privileged flags cannot be written", privileged_flags),
    Case::new("THR0026", "program counters and stacks that lead nowhere end in faults", wild_registers),
];

/// Equipment of a worker that is not started.
const STOPPED: Equipment = Equipment { start: false, ..Equipment::at(HIGH) };

fn needs(stage: &mut Stage) -> Outcome {
    let thread = stage.make::<Thread>(0)?;
    let info = thread.query()?;
    equal!((info.state, info.priority, info.ticks), (ThreadState::Suspended, 0, 0));
    refused!(thread.resume(), NotConfigured);
    let operation = Operation::ThreadWriteRegisters as u64;
    refused!(system_call(operation, &[u64::from(thread.address().0), 1]), NotConfigured);
    equal!(thread.query()?.state, ThreadState::Suspended);
    thread.configure(Cap::new(slot::CSPACE), Cap::new(slot::VSPACE), None)?;
    thread.suspend()?;
    thread.suspend()?;
    equal!(thread.query()?.state, ThreadState::Suspended);
    Ok(())
}

fn configure_state(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let worker = stage.spawn(move || endpoint.receive(Wait::FOREVER).map(drop))?;
    let configure = || worker.thread.configure(Cap::new(slot::CSPACE), Cap::new(slot::VSPACE), None);
    refused!(configure(), WrongState);
    worker.thread.suspend()?;
    configure()?;
    Ok(())
}

fn configure_kinds(stage: &mut Stage) -> Outcome {
    let (thread, endpoint) = (stage.make::<Thread>(0)?, stage.endpoint()?);
    let (cspace, root) = (Cap::<CapNode>::new(slot::CSPACE), Cap::<PageTable>::new(slot::VSPACE));
    refused!(thread.configure(Cap::new(endpoint.address()), root, None), WrongType);
    refused!(thread.configure(cspace, Cap::new(endpoint.address()), None), WrongType);
    refused!(thread.configure(cspace, root, Some((Cap::new(endpoint.address()), 0))), WrongType);
    let empty = stage.slot();
    refused!(thread.configure(Cap::new(empty), root, None), InvalidCapability);
    refused!(thread.configure(cspace, Cap::new(empty), None), InvalidCapability);
    refused!(thread.configure(cspace, root, Some((Cap::new(empty), 0))), InvalidCapability);
    for level in 1..=3 {
        let table = stage.make::<PageTable>(level)?;
        refused!(thread.configure(cspace, table, None), WrongType);
    }
    let (node, table, frame) = (stage.make::<CapNode>(2)?, stage.make::<PageTable>(0)?, stage.make::<Frame>(12)?);
    let weak = stage.mint(node, Rights::READ, 0)?;
    refused!(thread.configure(weak, table, None), MissingRights);
    let weak = stage.mint(table, Rights::READ, 0)?;
    refused!(thread.configure(node, weak, None), MissingRights);
    for missing in [Rights::READ, Rights::WRITE] {
        let weak = stage.mint(frame, Rights::all().difference(missing), 0)?;
        refused!(thread.configure(node, table, Some((weak, 0))), MissingRights);
    }
    refused!(thread.resume(), NotConfigured);
    thread.configure(node, table, Some((frame, 0)))?;
    Ok(())
}

fn buffer(stage: &mut Stage) -> Outcome {
    let (thread, frame) = (stage.make::<Thread>(0)?, stage.make::<Frame>(12)?);
    let configure = |offset| thread.configure(Cap::new(slot::CSPACE), Cap::new(slot::VSPACE), Some((frame, offset)));
    for offset in [1, 8, 512, 1025, u64::MAX] {
        refused!(configure(offset), Misaligned);
    }
    for offset in [4096, 8192, 1 << 32, 1 << 63] {
        refused!(configure(offset), InvalidArgument);
    }
    for offset in [0, 1024, 2048, 3072] {
        configure(offset)?;
    }
    Ok(())
}

fn configure_again(stage: &mut Stage) -> Outcome {
    let (thread, frame) = (stage.make::<Thread>(0)?, stage.make::<Frame>(12)?);
    let (node, table) = (stage.make::<CapNode>(2)?, stage.make::<PageTable>(0)?);
    thread.configure(node, table, Some((frame, 0)))?;
    thread.configure(Cap::new(slot::CSPACE), Cap::new(slot::VSPACE), None)?;
    // The thread's copies are gone, so these are the last.
    check!(node.delete()?.freed.is_some());
    check!(table.delete()?.freed.is_some());
    check!(frame.delete()?.freed.is_some());
    Ok(())
}

fn suspend(stage: &mut Stage) -> Outcome {
    let word = stage.word(0)?;
    let worker = stage.spawn_with(Equipment::at(LOW), move || {
        loop {
            word.fetch_add();
        }
    })?;
    pause(stage)?;
    worker.thread.suspend()?;
    let before = word.get();
    check!(before > 0);
    pause(stage)?;
    equal!((word.get(), worker.state()?), (before, ThreadState::Suspended));
    worker.thread.resume()?;
    worker.thread.resume()?;
    pause(stage)?;
    check!(word.get() > before);
    Ok(())
}

fn suspend_waits(stage: &mut Stage) -> Outcome {
    let (empty, full, notification) = (stage.endpoint()?, stage.endpoint()?, stage.notification()?);
    let workers = [
        stage.spawn(move || full.send(&Message::new(1), Wait::FOREVER))?,
        stage.spawn(move || full.send(&Message::new(1), Wait::until(patience())))?,
    ];
    let others = [
        stage.spawn(move || empty.receive(Wait::FOREVER).map(drop))?.thread,
        stage.spawn(move || empty.receive(Wait::until(patience())).map(drop))?.thread,
    ];
    let waiter = stage.spawn(move || notification.wait())?;
    let called = stage.endpoint()?;
    let caller = stage.spawn(move || called.call(&Message::new(1)).map(drop))?;
    called.receive(Wait::until(patience()))?;
    for thread in workers.map(|w| w.thread).into_iter().chain(others).chain([waiter.thread, caller.thread]) {
        thread.suspend()?;
        equal!(thread.query()?.state, ThreadState::Suspended);
        thread.resume()?;
    }
    for worker in workers {
        equal!(worker.join()?, Err(Error::Aborted));
    }
    equal!(waiter.join()?, Err(Error::Aborted));
    equal!(caller.join()?, Err(Error::Aborted));
    refused!(BOUND_REPLY.reply(&Message::new(0)), NoCaller);
    Ok(())
}

fn suspend_itself(stage: &mut Stage) -> Outcome {
    let worker = stage.spawn(|| tench::thread::current_thread().suspend())?;
    equal!((worker.state()?, worker.has_ended()), (ThreadState::Suspended, false));
    worker.thread.resume()?;
    equal!(worker.join()?, Ok(()));
    Ok(())
}

fn states(stage: &mut Stage) -> Outcome {
    let (empty, full, notification) = (stage.endpoint()?, stage.endpoint()?, stage.notification()?);
    let ready = stage.spawn_with(Equipment::at(LOW), || ())?;
    equal!(ready.state()?, ThreadState::Ready);
    equal!(ready.thread.query()?.priority, LOW);
    equal!(stage.spawn(move || full.send(&Message::new(1), Wait::FOREVER))?.state()?, ThreadState::Sending);
    equal!(stage.spawn(move || empty.receive(Wait::FOREVER).map(drop))?.state()?, ThreadState::Receiving);
    equal!(stage.spawn(move || notification.wait())?.state()?, ThreadState::Waiting);
    // SAFETY: the fault stops the worker.
    let faulted = stage.spawn(|| unsafe { assembly::load(0) })?;
    equal!(faulted.state()?, ThreadState::Faulted);
    equal!(stage.spawn_with(STOPPED, || ())?.state()?, ThreadState::Suspended);
    equal!(tench::thread::current_thread().query()?.state, ThreadState::Ready);
    let called = stage.endpoint()?;
    let caller = stage.spawn(move || called.call(&Message::new(1)).map(drop))?;
    called.receive(Wait::until(patience()))?;
    equal!(caller.state()?, ThreadState::AwaitingReply);
    BOUND_REPLY.reply(&Message::new(1))?;
    Ok(())
}

fn registers(stage: &mut Stage) -> Outcome {
    let worker = stage.spawn_with(STOPPED, || 1)?;
    let mut registers = worker.thread.read_registers(false)?;
    equal!(registers.pc, assembly::begin as *const () as u64);
    let before = registers;
    registers.x = core::array::from_fn(|index| index as u64 * 3);
    (registers.flags, registers.thread_pointer, registers.sp) = (0x6000_0000, 0x1230, 0x4560);
    // SAFETY: the thread does not run with these registers.
    unsafe { worker.thread.write_registers(&registers, false) }?;
    equal!(worker.thread.read_registers(false)?, registers);
    // SAFETY: the registers are those with which the worker begins.
    unsafe { worker.thread.write_registers(&before, true) }?;
    equal!(worker.join()?, 1);
    Ok(())
}

fn registers_state(stage: &mut Stage) -> Outcome {
    let notification = stage.notification()?;
    let worker = stage.spawn(move || notification.wait())?;
    refused!(worker.thread.read_registers(false), WrongState);
    let registers = tench::abi::fault::Registers::ZERO;
    // SAFETY: that is refused.
    refused!(unsafe { worker.thread.write_registers(&registers, false) }, WrongState);
    // SAFETY: that is refused.
    refused!(unsafe { worker.thread.write_registers(&registers, true) }, WrongState);
    equal!(worker.state()?, ThreadState::Waiting);
    refused!(tench::thread::current_thread().read_registers(true), WrongState);
    worker.thread.read_registers(true)?;
    equal!(worker.state()?, ThreadState::Suspended);
    worker.thread.resume()?;
    equal!(worker.join()?, Err(Error::Aborted));
    Ok(())
}

fn registers_errors(stage: &mut Stage) -> Outcome {
    let subject = stage.spawn_with(STOPPED, || ())?;
    let thread = u64::from(subject.thread.address().0);
    let (read, write) = (Operation::ThreadReadRegisters as u64, Operation::ThreadWriteRegisters as u64);
    for flags in [4, 5, 1 << 32, u64::MAX] {
        refused!(system_call(read, &[thread, flags]), InvalidArgument);
        refused!(system_call(write, &[thread, flags]), InvalidArgument);
    }
    refused!(system_call(read, &[thread, 2]), InvalidArgument);
    let worker = stage.spawn_with(Equipment { buffer: false, ..Equipment::at(HIGH) }, move || {
        let attempt = |operation| system_call(operation, &[thread, 0]).map(drop);
        (attempt(read), attempt(write), attempt(Operation::UpcallReturn as u64))
    })?;
    let missing = Err(Error::NoIpcBuffer);
    equal!(worker.join()?, (missing, missing, missing));
    Ok(())
}

fn bound(stage: &mut Stage) -> Outcome {
    let worker = stage.spawn_with(STOPPED, || ())?;
    let other = stage.spawn_with(STOPPED, || ())?;
    let notification = stage.notification()?;
    let scheduling = |cap| Bindings { scheduling: Binding::To(cap), ..Bindings::KEEP };
    let reply = |cap| Bindings { reply: Binding::To(cap), ..Bindings::KEEP };
    let notified_by = |cap| Bindings { notification: Binding::To(cap), ..Bindings::KEEP };
    worker.thread.bind(notified_by(notification))?;
    let thread = stage.make::<Thread>(0)?;
    for bindings in [scheduling(worker.scheduling), reply(worker.reply), notified_by(notification)] {
        // Each object already has a thread, and the thread has its objects.
        refused!(thread.bind(bindings), AlreadyBound);
    }
    let (spare_scheduling, spare_reply, spare_notification) = (stage.make(0)?, stage.reply()?, stage.notification()?);
    for bindings in [scheduling(spare_scheduling), reply(spare_reply), notified_by(spare_notification)] {
        refused!(worker.thread.bind(bindings), AlreadyBound);
    }
    // Nothing is bound if one binding is impossible.
    let both = Bindings {
        scheduling: Binding::To(spare_scheduling),
        reply: Binding::To(other.reply),
        notification: Binding::Keep,
    };
    refused!(thread.bind(both), AlreadyBound);
    thread.bind(scheduling(spare_scheduling))?;
    Ok(())
}

fn busy(stage: &mut Stage) -> Outcome {
    let (endpoint, reply, thread) = (stage.endpoint()?, stage.reply()?, stage.make::<Thread>(0)?);
    let caller = stage.spawn(move || endpoint.call(&Message::new(1)).map(drop))?;
    endpoint.receive(Wait::until(patience()).with_reply(reply))?;
    let bindings = Bindings { reply: Binding::To(reply), ..Bindings::KEEP };
    refused!(thread.bind(bindings), Busy);
    reply.reply(&Message::new(0))?;
    caller.join()??;
    thread.bind(bindings)?;
    Ok(())
}

fn binding_kinds(stage: &mut Stage) -> Outcome {
    let (thread, endpoint, notification) = (stage.make::<Thread>(0)?, stage.endpoint()?, stage.notification()?);
    let (wrong, empty) = (u64::from(endpoint.address().0), u64::from(stage.slot().0));
    let operation = Operation::ThreadBind as u64;
    for place in 1..=3 {
        for (address, error) in [(wrong, Error::WrongType), (empty, Error::InvalidCapability)] {
            let mut arguments = [u64::from(thread.address().0), 0, 0, 0];
            arguments[place] = address;
            equal!((place, system_call(operation, &arguments)), (place, Err(error)));
        }
    }
    let weak = stage.mint(notification, Rights::WRITE, 0)?;
    refused!(thread.bind(Bindings { notification: Binding::To(weak), ..Bindings::KEEP }), MissingRights);
    let reply = stage.reply()?;
    let weak = stage.mint(reply, Rights::READ, 0)?;
    refused!(thread.bind(Bindings { reply: Binding::To(weak), ..Bindings::KEEP }), MissingRights);
    thread.bind(Bindings { notification: Binding::Unbind, reply: Binding::Unbind, scheduling: Binding::Unbind })?;
    Ok(())
}

fn unbind(stage: &mut Stage) -> Outcome {
    let (worker, thread) = (stage.spawn_with(STOPPED, || ())?, stage.make::<Thread>(0)?);
    let all = Bindings { scheduling: Binding::Unbind, reply: Binding::Unbind, notification: Binding::Unbind };
    worker.thread.bind(all)?;
    thread.bind(Bindings {
        scheduling: Binding::To(worker.scheduling),
        reply: Binding::To(worker.reply),
        notification: Binding::Keep,
    })?;
    equal!((thread.query()?.priority, worker.thread.query()?.priority), (HIGH, 0));
    // A thread that waits with a reply object stops waiting when the object is taken from it.
    let endpoint = stage.endpoint()?;
    let receiver = stage.spawn(move || endpoint.receive(Wait::FOREVER).map(drop))?;
    receiver.thread.bind(Bindings { reply: Binding::Unbind, ..Bindings::KEEP })?;
    equal!(receiver.join()?, Err(Error::Aborted));
    Ok(())
}

fn without_time(stage: &mut Stage) -> Outcome {
    let worker = stage.spawn_with(Equipment { priority: None, ..Equipment::at(0) }, || 5)?;
    equal!((worker.state()?, worker.has_ended()), (ThreadState::Ready, false));
    pause(stage)?;
    check!(!worker.has_ended());
    worker.scheduling.configure(HIGH, HIGH, 0, None)?;
    worker.thread.bind(Bindings { scheduling: Binding::To(worker.scheduling), ..Bindings::KEEP })?;
    equal!(worker.join()?, 5);
    Ok(())
}

fn deleted(stage: &mut Stage) -> Outcome {
    let (empty, full, notification) = (stage.endpoint()?, stage.endpoint()?, stage.notification()?);
    let called = stage.endpoint()?;
    let caller = stage.spawn(move || called.call(&Message::new(1)).map(drop))?;
    called.receive(Wait::until(patience()))?;
    let threads = [
        caller.thread,
        stage.spawn(move || full.send(&Message::new(1), Wait::until(patience())))?.thread,
        stage.spawn(move || empty.receive(Wait::until(patience())).map(drop))?.thread,
        stage.spawn(move || notification.wait_until(patience()))?.thread,
        stage.spawn_with(Equipment::at(LOW), || ())?.thread,
        stage.spawn_with(STOPPED, || ())?.thread,
        // SAFETY: the fault stops the worker.
        stage.spawn(|| unsafe { assembly::load(0) })?.thread,
    ];
    for thread in threads {
        check!(thread.delete()?.freed.is_some());
        check!(is_empty(thread));
    }
    refused!(BOUND_REPLY.reply(&Message::new(1)), NoCaller);
    refused!(full.try_receive(Wait::FOREVER), WouldBlock);
    refused!(empty.try_send(&Message::new(1)), WouldBlock);
    notification.signal()?;
    equal!(notification.poll()?, 1);
    pause(stage)
}

fn deletes_itself(stage: &mut Stage) -> Outcome {
    let worker = stage.spawn_with(STOPPED, || tench::thread::current_thread().delete().is_ok())?;
    worker.thread.resume()?;
    check!(!worker.has_ended());
    // The operation removes as many of the thread's bindings as it can before its last preemption point; deleting the
    // rest is up to the caller.
    refused!(worker.thread.query(), InvalidCapability);
    if !is_empty(worker.thread) {
        equal!(worker.thread.identify()?.rights, Rights::empty());
        check!(worker.thread.delete()?.freed.is_some());
    }
    check!(is_empty(worker.thread));
    // The thread's scheduling context is free for another.
    let thread = stage.make::<Thread>(0)?;
    thread.bind(Bindings { scheduling: Binding::To(worker.scheduling), ..Bindings::KEEP })?;
    Ok(())
}

fn revoked_itself(stage: &mut Stage) -> Outcome {
    for _ in 0..3 {
        let worker = stage.spawn_with(STOPPED, || tench::thread::current_thread().delete().is_ok())?;
        worker.thread.resume()?;
        equal!(worker.thread.identify()?.rights, Rights::empty());
        stage.clear()?;
        let next = stage.spawn(|| 5)?;
        equal!(next.join()?, 5);
        let pool = stage.pool;
        let last = stage.spawn_with(STOPPED, move || pool.revoke().is_ok())?;
        last.thread.resume()?;
        stage.clear()?;
    }
    equal!(stage.spawn(|| 6)?.join()?, 6);
    Ok(())
}

fn deleted_caller(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let caller = stage.spawn(move || endpoint.call(&Message::new(1)).map(drop))?;
    endpoint.receive(Wait::until(patience()))?;
    caller.thread.delete()?;
    refused!(BOUND_REPLY.reply(&Message::new(1)), NoCaller);
    // The deletion does not disturb a server that replies and receives either.
    let next = stage.spawn(move || endpoint.call(&Message::new(2)).map(|reply| reply.label()))?;
    equal!(endpoint.reply_receive(&Message::new(0), Wait::until(patience()))?.label(), 2);
    BOUND_REPLY.reply(&Message::new(3))?;
    equal!(next.join()?, Ok(3));
    Ok(())
}

fn deleted_server(stage: &mut Stage) -> Outcome {
    let (endpoint, never) = (stage.endpoint()?, stage.notification()?);
    let server = stage.spawn(move || {
        let _ = endpoint.receive(Wait::FOREVER);
        never.wait()
    })?;
    let caller = stage.spawn(move || endpoint.call(&Message::new(1)).map(drop))?;
    server.thread.delete()?;
    equal!(caller.state()?, ThreadState::AwaitingReply);
    server.reply.delete()?;
    equal!(caller.join()?, Err(Error::Aborted));
    Ok(())
}

fn bindings_keep(stage: &mut Stage) -> Outcome {
    let (endpoint, worker) = (stage.endpoint()?, stage.spawn_with(STOPPED, || 1)?);
    worker.thread.faults_to(Class::PageFault, Some(endpoint))?;
    equal!(endpoint.delete()?.freed, None);
    equal!(worker.reply.delete()?.freed, None);
    equal!(worker.scheduling.delete()?.freed, None);
    worker.thread.resume()?;
    equal!(worker.join()?, 1);
    Ok(())
}

fn cspace_gone(stage: &mut Stage) -> Outcome {
    let (root, never) = (stage.make::<CapNode>(2)?, stage.notification()?);
    let stopped = Equipment { start: false, ..Equipment::at(LOW) };
    let worker = stage.spawn_with(stopped, move || never.wait())?;
    worker.thread.configure(root, Cap::new(slot::VSPACE), None)?;
    root.revoke()?;
    refused!(worker.thread.resume(), NotConfigured);
    worker.thread.configure(root, Cap::new(slot::VSPACE), None)?;
    worker.thread.resume()?;
    // The CSpace is empty: the thread can neither wait, nor signal its end, nor suspend itself, and loops.
    pause(stage)?;
    equal!((worker.state()?, worker.has_ended()), (ThreadState::Ready, false));
    worker.thread.suspend()?;
    root.revoke()?;
    root.delete()?;
    refused!(worker.thread.resume(), NotConfigured);
    Ok(())
}

fn buffer_gone(stage: &mut Stage) -> Outcome {
    let (endpoint, frame) = (stage.endpoint()?, stage.make::<Frame>(12)?);
    let address = u64::from(endpoint.address().0);
    let worker = stage.spawn_with(STOPPED, move || {
        let tag = |length| tench::sys::Tag::new(1, length).0;
        let long = system_call(Operation::Send as u64, &[address, tag(9)]).map(drop);
        (long, system_call(Operation::Send as u64, &[address, tag(8)]).map(drop))
    })?;
    worker.thread.configure(Cap::new(slot::CSPACE), Cap::new(slot::VSPACE), Some((frame, 1024)))?;
    frame.revoke()?;
    frame.delete()?;
    worker.thread.resume()?;
    equal!(endpoint.receive(Wait::until(patience()))?.words().len(), 8);
    equal!(worker.join()?, (Err(Error::NoIpcBuffer), Ok(())));
    Ok(())
}

fn privileged_flags(stage: &mut Stage) -> Outcome {
    let worker = stage.spawn_with(STOPPED, || 1)?;
    let mut registers = worker.thread.read_registers(false)?;
    registers.flags = !0;
    // SAFETY: the worker starts again at its entry point.
    unsafe { worker.thread.write_registers(&registers, false) }?;
    equal!(worker.thread.read_registers(false)?.flags, 0xf000_0000);
    worker.thread.resume()?;
    equal!(worker.join()?, 1);
    Ok(())
}

fn wild_registers(stage: &mut Stage) -> Outcome {
    let (root, worker) = (stage.make::<PageTable>(0)?, stage.spawn_with(STOPPED, || ())?);
    worker.thread.configure(Cap::new(slot::CSPACE), root, None)?;
    for pc in [0, 1, 0xffff_8000_0000_0000, u64::MAX, u64::MAX - 3, 1 << 48, 1 << 63, 0x7fff_ffff_fffc] {
        let mut registers = tench::abi::fault::Registers::ZERO;
        (registers.pc, registers.sp, registers.flags) = (pc, pc, pc);
        // SAFETY: the thread lives in an empty address space.
        unsafe { worker.thread.write_registers(&registers, true) }?;
        equal!((pc, worker.state()?), (pc, ThreadState::Faulted));
    }
    Ok(())
}
