//! Tests of columns 1 and 2: interrupts in user mode.

use core::mem::offset_of;

use tench::abi::fault::{Class, Registers};
use tench::abi::message::IpcBuffer;
use tench::abi::object::{Statistic, ThreadState};
use tench::sys::thread::upcall_resume;
use tench::sys::{Error, Instant};

use super::{Drill, depth};
use crate::case::Outcome;
use crate::kernel::STACK_BOUND;
use crate::registers::{FOREIGN, Found, Given, SLIDE, dump, extended, fill, pattern, run, vectors};
use crate::space::read;
use crate::stage::{KERNEL, LOW, Stage};
use crate::worker::{Equipment, Shared, Worker};

/// Ticks until a worker that was just released is in the middle of its 4,096 instructions.
const MIDDLE: u64 = 140;
/// Ticks that a drill takes from beginning to end.
const WHOLE: u64 = 330;
/// Two `nop` instructions.
const NOPS: u64 = 0xd503_201f_d503_201f;

/// Returns the expected registers after 4,096 `nop` instructions.
fn slid(given: &Given) -> Found {
    let mut found = extended(given);
    found[32] = 0x6000_0000;
    found
}

/// Reads a field of a worker's IPC buffer, which the worker shares with its kernel.
fn field(worker: &Worker<u64>, offset: usize) -> u64 {
    (worker.page + offset) as u64
}

/// Returns the registers saved in a worker's IPC buffer.
fn buffer_registers(worker: &Worker<u64>) -> [u64; size_of::<Registers>() / 8] {
    core::array::from_fn(|i| read(field(worker, offset_of!(IpcBuffer, registers) + 8 * i)))
}

/// Sleeps for `ticks`; a worker of lower priority runs meanwhile. Returns the lateness of the wake-up.
fn sleep(stage: &mut Stage, ticks: u64) -> Outcome<u64> {
    let never = stage.notification()?;
    let deadline = Instant::now().after(ticks);
    refused!(never.wait_until(deadline), TimedOut);
    let late = Instant::now().since(deadline);
    never.delete()?;
    Ok(late)
}

/// Spawns a worker that fills its registers and then executes 4,096 `nop` instructions. The worker returns whether its
/// registers were preserved.
fn slider(stage: &mut Stage) -> Outcome<Worker<u64>> {
    stage.spawn_with(Equipment { start: false, ..Equipment::at(LOW) }, || {
        let given = pattern(17);
        u64::from(run(&given, SLIDE) == slid(&given))
    })
}

/// Returns whether a stopped worker is in the middle of the 4,096 `nop` instructions. Single `nop` instructions are
/// everywhere: the linker shortens code and fills the rest.
fn slides(registers: &Registers) -> bool {
    let four = registers.pc & !15;
    [read(four), read(four + 8)] == [NOPS; 2]
}

/// Interrupts a worker that has never been in the kernel.
fn stack_of(stage: &mut Stage, disabled: bool) -> Outcome {
    let never = stage.notification()?;
    let other = stage.spawn(move || never.wait().is_ok())?;
    let worker = slider(stage)?;
    if disabled {
        crate::space::write(field(&worker, offset_of!(IpcBuffer, upcall_running)), 1);
    }
    let before = depth(other.thread)?;
    equal!(depth(worker.thread)?, 0);
    worker.thread.resume()?;
    sleep(stage, MIDDLE)?;
    let used = depth(worker.thread)?;
    check!(used > 0 && used < STACK_BOUND);
    equal!(depth(other.thread)?, before);
    equal!(worker.state()?, ThreadState::Ready);
    equal!(worker.join()?, 1);
    Ok(())
}

pub fn stack(stage: &mut Stage) -> Outcome {
    stack_of(stage, false)
}

pub fn stack_disabled(stage: &mut Stage) -> Outcome {
    stack_of(stage, true)
}

/// Checks where a thread's registers are while it does not run and is in the middle of the 4,096 instructions.
fn has_its_registers(worker: &Worker<u64>, given: &Given) -> Outcome {
    let registers = worker.thread.read_registers(true)?;
    check!(slides(&registers));
    equal!(registers.x, given[..31]);
    equal!(registers.flags, 0x6000_0000);
    equal!(registers.thread_pointer, given[31]);
    worker.thread.resume()?;
    Ok(())
}

pub fn saved(stage: &mut Stage) -> Outcome {
    let worker = slider(stage)?;
    let place = field(&worker, offset_of!(IpcBuffer, registers));
    for i in 0..size_of::<Registers>() as u64 / 8 {
        crate::space::write(place + 8 * i, !i);
    }
    let before = buffer_registers(&worker);
    worker.thread.resume()?;
    sleep(stage, MIDDLE)?;
    has_its_registers(&worker, &pattern(17))?;
    equal!(buffer_registers(&worker), before);
    equal!(worker.join()?, 1);
    Ok(())
}

pub fn switched(stage: &mut Stage) -> Outcome {
    let worker = slider(stage)?;
    worker.thread.resume()?;
    let before = KERNEL.query(Statistic::Switches)?;
    let late = sleep(stage, MIDDLE)?;
    check!(late < 100);
    check!(KERNEL.query(Statistic::Switches)? >= before + 2);
    equal!(worker.state()?, ThreadState::Ready);
    check!(slides(&worker.thread.read_registers(true)?));
    worker.thread.resume()?;
    equal!(worker.join()?, 1);
    Ok(())
}

pub fn restored(stage: &mut Stage) -> Outcome {
    let wrong = stage.word(0)?;
    let drill = Drill::new(stage, move || {
        let given = pattern(23);
        fill(&vectors(3));
        if run(&given, SLIDE) != slid(&given) || dump() != vectors(3) {
            wrong.fetch_add();
        }
    })?;
    sweep(&drill)?;
    equal!(wrong.get(), 0);
    Ok(())
}

/// Interrupts a drill at each tick that it takes, while the main thread's vector registers hold other values.
fn sweep(drill: &Drill) -> Outcome {
    let mut in_the_middle = 0;
    for tick in 0..WHOLE {
        fill(&vectors(tick | 1));
        let met = drill.interrupt(tick * 7, tick)?;
        in_the_middle += u64::from(met.state == ThreadState::Ready);
        check!(dump() == vectors(tick | 1));
        drill.end()?;
    }
    // Most of the ticks were inside the drill.
    check!(in_the_middle > WHOLE / 2);
    Ok(())
}

/// Words that an upcall and the main thread share: rounds of 4,096 instructions to do and done, and number of failures.
const TO_DO: usize = 0;
const DONE: usize = 1;
const WRONG: usize = 2;

/// An upcall that goes on where it came from after some rounds of `nop` instructions.
unsafe extern "C" fn slide(_: u64, _: u64, _: u64, _: u64) -> ! {
    let [to_do, done, wrong] = [TO_DO, DONE, WRONG].map(Shared::existing);
    let given = pattern(29);
    for _ in 0..to_do.get() {
        fill(&vectors(11));
        if run(&given, SLIDE) != slid(&given) || dump() != vectors(11) {
            wrong.fetch_add();
        }
        done.fetch_add();
    }
    // SAFETY: a foreign system call needs no repair, and the registers in the IPC buffer are unchanged.
    unsafe { upcall_resume() };
    loop {
        core::hint::spin_loop();
    }
}

/// Makes the thread's foreign system calls upcalls.
fn with_upcall(worker: tench::sys::Cap<tench::sys::Thread>) -> Result<(), Error> {
    // SAFETY: the upcall ends with the return from it, on the stack of what it interrupted.
    unsafe { worker.faults_upcall(Class::ForeignCall, None, slide as *const () as usize, 0) }
}

/// Spawns a worker whose foreign system call is an upcall of `rounds` rounds. The worker returns whether its registers
/// were preserved.
fn caller(stage: &mut Stage, rounds: u64) -> Outcome<Worker<u64>> {
    for (word, value) in [(TO_DO, rounds), (DONE, 0), (WRONG, 0)] {
        stage.word(word)?.set(value);
    }
    let worker = stage.spawn_with(Equipment { start: false, ..Equipment::at(LOW) }, || {
        let given = pattern(13);
        u64::from(run(&given, FOREIGN) == extended(&given))
    })?;
    with_upcall(worker.thread)?;
    Ok(worker)
}

/// Lets a worker go on for a while. Returns whether the worker is then inside its upcall's `nop` instructions, in this
/// round.
fn slides_in_round(stage: &mut Stage, worker: &Worker<u64>, round: u64) -> Outcome<bool> {
    sleep(stage, 60)?;
    check!(!worker.has_ended());
    let found = slides(&worker.thread.read_registers(true)?);
    worker.thread.resume()?;
    Ok(found && Shared::existing(DONE).get() == round)
}

pub fn saved_disabled(stage: &mut Stage) -> Outcome {
    let worker = caller(stage, 2)?;
    worker.thread.resume()?;
    // In the first round, and in the second.
    for round in 0..2 {
        while !slides_in_round(stage, &worker, round)? {}
        equal!(read(field(&worker, offset_of!(IpcBuffer, upcall_running))), 1);
        let kept = buffer_registers(&worker);
        equal!(kept[..31], pattern(13)[..31]);
        has_its_registers(&worker, &pattern(29))?;
        equal!(buffer_registers(&worker), kept);
    }
    equal!(worker.join()?, 1);
    equal!(read(field(&worker, offset_of!(IpcBuffer, upcall_running))), 0);
    Ok(())
}

pub fn switched_disabled(stage: &mut Stage) -> Outcome {
    let worker = caller(stage, 12)?;
    let done = Shared::existing(DONE);
    worker.thread.resume()?;
    let mut seen = [0; 8];
    for seen in &mut seen {
        let late = sleep(stage, 300)?;
        check!(late < 100);
        equal!(read(field(&worker, offset_of!(IpcBuffer, upcall_running))), 1);
        equal!(worker.state()?, ThreadState::Ready);
        *seen = done.get();
    }
    // The upcall made progress between the switches.
    check!(seen.is_sorted() && seen[7] > seen[0] + 2 && seen[7] < 12);
    equal!(worker.join()?, 1);
    equal!(Shared::existing(WRONG).get(), 0);
    Ok(())
}

pub fn restored_disabled(stage: &mut Stage) -> Outcome {
    for (word, value) in [(TO_DO, 1), (DONE, 0), (WRONG, 0)] {
        stage.word(word)?.set(value);
    }
    let wrong = stage.word(3)?;
    let drill = Drill::stopped(stage, Equipment::at(LOW), move || {
        let given = pattern(31);
        if run(&given, FOREIGN) != extended(&given) {
            wrong.fetch_add();
        }
    })?;
    with_upcall(drill.worker.thread)?;
    drill.worker.thread.resume()?;
    drill.warm_up()?;
    sweep(&drill)?;
    equal!(wrong.get(), 0);
    equal!(Shared::existing(WRONG).get(), 0);
    equal!(Shared::existing(DONE).get(), WHOLE + 1);
    Ok(())
}
