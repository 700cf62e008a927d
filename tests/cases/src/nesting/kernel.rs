//! Tests of columns 3 and 4: interrupts at preemption points of system calls and of exceptions.

use tench::abi::Operation;
use tench::abi::fault::{Class, Registers, reply};
use tench::abi::object::{Statistic, ThreadState};
use tench::println;
use tench::sys::{
    Cap, CapAddress, Endpoint, Frame, Kind, Mapping, Message, OWN_CSPACE, PageTable, Placement, Untyped, Wait,
    ipc::BOUND_REPLY,
};

use super::{Drill, depth, preemptible, preserved};
use crate::case::Outcome;
use crate::kernel::STACK_BOUND;
use crate::registers::{CALL, Given, LOAD, dump, fill, pattern, run, vectors};
use crate::space::{BASE, RW, read};
use crate::stage::{HIGH, KERNEL, LOW, Stage, identify, system_call};
use crate::worker::{Equipment, Shared, patience};

/// Instruction words of a system call, and of the load that faults.
const SVC: u64 = 0xd400_0021;
const LOAD_INSTRUCTION: u64 = 0xf940_001f;

/// Returns the instruction at an address.
fn instruction(address: u64) -> u64 {
    read(address & !7) >> (8 * (address & 4)) & 0xffff_ffff
}

// ── System calls ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// Memory of which endpoints are made for a drill to revoke: an operation with a preemption point after each few.
#[derive(Clone, Copy)]
struct Revocation {
    untyped: Cap<Untyped>,
    first: CapAddress,
    count: u32,
}

impl Revocation {
    fn new(stage: &mut Stage, count: u32) -> Outcome<Revocation> {
        Ok(Revocation { untyped: stage.make(13)?, first: stage.slots(count), count })
    }

    /// Makes the endpoints.
    fn prepare(&self) -> Outcome {
        let count = u64::from(self.count);
        self.untyped.retype_many(Kind::Endpoint, 0, count, Placement::Watermark, OWN_CSPACE, self.first)?;
        Ok(())
    }

    /// Returns the registers with which a drill revokes.
    fn given(&self) -> Given {
        let mut given = pattern(19);
        given[0] = 0;
        given[1] = u64::from(self.untyped.address().0);
        given[10] = Operation::Revoke as u64;
        given
    }

    /// Revokes. Returns whether everything is as it should be: result, registers, vector registers.
    fn carry_out(&self) -> bool {
        let given = self.given();
        fill(&vectors(3));
        let found = run(&given, CALL);
        found[..2] == [0, u64::from(self.count)] && preserved(&given, &found) && dump() == vectors(3)
    }

    /// Returns whether the revocation has begun and is not done.
    fn is_half_done(&self) -> Outcome<bool> {
        let last = CapAddress(self.first.0 + self.count - 1);
        Ok(identify(self.first)?.kind == Kind::Null && identify(last)?.kind != Kind::Null)
    }

    /// Makes a drill that revokes, and counts failures in word 0.
    fn drill(self, stage: &mut Stage) -> Outcome<Drill> {
        let wrong = stage.word(0)?;
        self.prepare()?;
        Drill::new(stage, move || {
            if !self.carry_out() {
                wrong.fetch_add();
            }
        })
    }
}

/// Ticks that the drill with 16 endpoints takes at most.
const WHOLE: u64 = 600;

pub fn stacks(stage: &mut Stage) -> Outcome {
    const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let preemptible = preemptible()?;
    let (order, wrong, never) = (stage.word(0)?, stage.word(1)?, stage.notification()?);
    let other = stage.spawn(move || never.wait().is_ok())?;
    let mut drills = [None; 3];
    for (digit, place) in (1..).zip(&mut drills) {
        let revocation = Revocation::new(stage, 60)?;
        revocation.prepare()?;
        let drill = Drill::new(stage, move || {
            if !revocation.carry_out() {
                wrong.fetch_add();
            }
            order.append(digit);
        })?;
        *place = Some((drill, revocation));
    }
    let [Some(first), Some(second), Some(third)] = drills else { unreachable!("all were made") };
    let drills = [first, second, third];
    let others = depth(other.thread)?;
    let (mut alone, mut deepest) = ([0; 3], 0);
    for (alone, (drill, _)) in alone.iter_mut().zip(drills) {
        *alone = depth(drill.worker.thread)?;
    }
    for permutation in ORDERS {
        order.set(0);
        // Leave one drill after the other in the middle of its operation.
        for (priority, (drill, revocation)) in (LOW - 8..).zip(drills) {
            revocation.prepare()?;
            drill.worker.scheduling.configure(priority, priority, 0, None)?;
            let met = drill.interrupt(0, 450)?;
            equal!((met.preempted, revocation.is_half_done()?), (preemptible, preemptible));
        }
        // The interrupts used the stacks of the operations under way, and no others.
        for ((drill, _), alone) in drills.into_iter().zip(alone) {
            let used = depth(drill.worker.thread)?;
            check!(used > alone || !preemptible);
            check!(used < STACK_BOUND);
            deepest = deepest.max(used);
        }
        equal!(depth(other.thread)?, others);
        // The drills go on in another order, each where it was.
        for (priority, which) in [LOW - 6, LOW - 7, LOW - 8].into_iter().zip(permutation) {
            drills[which].0.worker.scheduling.configure(priority, priority, 0, None)?;
        }
        for (drill, _) in drills {
            drill.end()?;
        }
        equal!(order.get(), permutation.iter().fold(0, |number, which| number * 10 + *which as u64 + 1));
    }
    equal!(wrong.get(), 0);
    println!("  stack of an operation: {} bytes; interrupted: {deepest} bytes", alone[0]);
    Ok(())
}

pub fn saved(stage: &mut Stage) -> Outcome {
    let (preemptible, revocation) = (preemptible()?, Revocation::new(stage, 60)?);
    let (drill, given) = (revocation.drill(stage)?, revocation.given());
    for late in 0..8 {
        revocation.prepare()?;
        let met = drill.interrupt(late, 450 + 37 * late)?;
        equal!(met.preempted, preemptible);
        if preemptible {
            equal!(met.state, ThreadState::Ready);
            let registers = drill.worker.thread.read_registers(true)?;
            equal!(instruction(registers.pc - 4), SVC);
            equal!(registers.x[..13], given[..13]);
            equal!(registers.x[19..], given[19..31]);
            equal!(registers.thread_pointer, given[31]);
            check!(revocation.is_half_done()?);
            drill.worker.thread.resume()?;
        }
        drill.end()?;
    }
    equal!(Shared::existing(0).get(), 0);
    Ok(())
}

pub fn switched(stage: &mut Stage) -> Outcome {
    let (preemptible, revocation) = (preemptible()?, Revocation::new(stage, 60)?);
    let drill = revocation.drill(stage)?;
    let (mut halves, mut latest) = (0, 0);
    for late in 0..16 {
        revocation.prepare()?;
        let before = KERNEL.query(Statistic::PreemptionPoints)?;
        let met = drill.interrupt(late, 450 + 31 * late)?;
        check!(KERNEL.query(Statistic::PreemptionPoints)? > before);
        halves += u64::from(revocation.is_half_done()?);
        latest = latest.max(met.latency);
        drill.end()?;
    }
    if preemptible {
        equal!(halves, 16);
        check!(latest < 250);
    } else {
        // The main thread waited for the end of the operation each time.
        equal!(halves, 0);
        check!(latest > 500);
    }
    equal!(Shared::existing(0).get(), 0);
    Ok(())
}

pub fn restored(stage: &mut Stage) -> Outcome {
    let (preemptible, revocation) = (preemptible()?, Revocation::new(stage, 16)?);
    let drill = revocation.drill(stage)?;
    let mut preempted = 0;
    for tick in 0..WHOLE {
        revocation.prepare()?;
        fill(&vectors(tick | 1));
        preempted += u64::from(drill.interrupt(tick * 7, tick)?.preempted);
        check!(dump() == vectors(tick | 1));
        drill.end()?;
    }
    equal!(Shared::existing(0).get(), 0);
    if preemptible {
        // Interrupts that arrived between preemption points were taken at the next.
        check!(preempted > 100);
    } else {
        equal!(preempted, 0);
    }
    Ok(())
}

// ── Exceptions ───────────────────────────────────────────────────────────────────────────────────────────────────────

/// Ticks over which the interrupt is moved. The load faults somewhere in the middle.
const AROUND: u64 = 110;

/// A drill that loads from a page that is absent until the main thread maps it.
struct Faulting {
    drill: Drill,
    endpoint: Cap<Endpoint>,
    frame: Cap<Frame>,
    table: Cap<PageTable>,
    mapping: CapAddress,
}

/// Returns the drill's registers.
fn given() -> Given {
    let mut given = pattern(37);
    given[0] = BASE;
    given
}

impl Faulting {
    fn new(stage: &mut Stage) -> Outcome<Faulting> {
        let (endpoint, wrong) = (stage.endpoint()?, stage.word(0)?);
        let (table, frame, mapping) = (stage.tables()?.level3, stage.make(12)?, stage.slot());
        let drill = Drill::stopped(stage, Equipment::at(LOW), move || {
            let given = given();
            fill(&vectors(5));
            let found = run(&given, LOAD);
            if found[..32] != given || found[32..] != [0x1000_0000, 0] || dump() != vectors(5) {
                wrong.fetch_add();
            }
        })?;
        drill.worker.thread.faults_to(Class::PageFault, Some(endpoint))?;
        drill.worker.thread.resume()?;
        let faulting = Faulting { drill, endpoint, frame, table, mapping };
        drill.go.signal()?;
        faulting.handle()?;
        Ok(faulting)
    }

    /// Receives the fault, maps the page, and lets the load be retried.
    fn handle(&self) -> Outcome {
        let received = self.endpoint.receive(Wait::until(patience()))?;
        check!(received.is_fault());
        equal!([received.word(0), received.word(1)], [Class::PageFault as u64, BASE]);
        equal!(instruction(received.word(2)), LOAD_INSTRUCTION);
        let mapping: Cap<Mapping> = self.frame.map(self.table, 0, 1, 0, RW, self.mapping)?;
        BOUND_REPLY.reply(&Message::new(reply::RESUME))?;
        self.drill.end()?;
        mapping.delete()?;
        Ok(())
    }

    /// Interrupts the drill, which begins `late` instructions late, at a tick. Returns whether that was at the
    /// preemption point before the fault is sent.
    fn interrupt(&self, late: u64, tick: u64) -> Outcome<bool> {
        let met = self.drill.interrupt(late, tick)?;
        Ok(met.preempted && met.state == ThreadState::Ready)
    }

    /// Interrupts the drill at all ticks around the fault, runs `what` at the preemption point, and then lets the fault
    /// be handled.
    fn sweep(&self, mut what: impl FnMut(&Faulting) -> Outcome) -> Outcome {
        let mut met = 0;
        for tick in 0..AROUND {
            if self.interrupt(tick * 7, tick)? {
                met += 1;
                what(self)?;
            }
            self.handle()?;
        }
        equal!(met > 0, preemptible()?);
        equal!(Shared::existing(0).get(), 0);
        Ok(())
    }
}

pub fn fault_stack(stage: &mut Stage) -> Outcome {
    let never = stage.notification()?;
    let other = stage.spawn_with(Equipment::at(HIGH), move || never.wait().is_ok())?;
    let faulting = Faulting::new(stage)?;
    let (alone, others) = (depth(faulting.drill.worker.thread)?, depth(other.thread)?);
    faulting.sweep(|faulting| {
        // The fault is under way on this stack, and the interrupt was taken below it.
        let used = depth(faulting.drill.worker.thread)?;
        check!(used > alone && used < STACK_BOUND);
        equal!(depth(other.thread)?, others);
        Ok(())
    })
}

/// Returns the registers of a drill at the preemption point before its fault is sent; the drill is stopped.
fn registers_at_preemption_point(faulting: &Faulting) -> Outcome<Registers> {
    let (registers, given) = (faulting.drill.worker.thread.read_registers(true)?, given());
    equal!(instruction(registers.pc), LOAD_INSTRUCTION);
    equal!(registers.x, given[..31]);
    equal!(registers.flags, 0x1000_0000);
    equal!(registers.thread_pointer, given[31]);
    Ok(registers)
}

pub fn fault_saved(stage: &mut Stage) -> Outcome {
    Faulting::new(stage)?.sweep(|faulting| {
        registers_at_preemption_point(faulting)?;
        faulting.drill.worker.thread.resume()?;
        Ok(())
    })
}

pub fn fault_switched(stage: &mut Stage) -> Outcome {
    Faulting::new(stage)?.sweep(|faulting| {
        // The endpoint's queue is still empty, and the main thread runs.
        let address = u64::from(faulting.endpoint.address().0);
        refused!(system_call(Operation::TryReceive as u64, &[address]), WouldBlock);
        Ok(())
    })
}

pub fn fault_restored(stage: &mut Stage) -> Outcome {
    let faulting = Faulting::new(stage)?;
    let mut met = 0;
    for late in 0..4 {
        for tick in 0..AROUND {
            fill(&vectors(tick | 1));
            met += u64::from(faulting.interrupt(late * 4, tick)?);
            check!(dump() == vectors(tick | 1));
            faulting.handle()?;
        }
    }
    equal!(met > 0, preemptible()?);
    equal!(Shared::existing(0).get(), 0);
    Ok(())
}

pub fn fault_forgotten(stage: &mut Stage) -> Outcome {
    let faulting = Faulting::new(stage)?;
    let mut forgotten = 0;
    for tick in 0..AROUND {
        if !faulting.interrupt(tick * 7, tick)? {
            faulting.handle()?;
            continue;
        }
        forgotten += 1;
        let mut registers = registers_at_preemption_point(&faulting)?;
        registers.pc += 4;
        // SAFETY: the drill goes on in `probe`, behind the load whose result it does not use.
        unsafe { faulting.drill.worker.thread.write_registers(&registers, true) }?;
        faulting.drill.end()?;
        let address = u64::from(faulting.endpoint.address().0);
        refused!(system_call(Operation::TryReceive as u64, &[address]), WouldBlock);
    }
    equal!(forgotten > 0, preemptible()?);
    equal!(Shared::existing(0).get(), 0);
    Ok(())
}
