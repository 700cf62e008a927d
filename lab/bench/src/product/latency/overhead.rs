//! Cost of timer interrupts to a computation (R3, section 5.1 and figure 4).
//!
//! A piece of work is a million instructions of arithmetic. Its length without any interrupt is known exactly; then it
//! is carried out many times while a thread of the highest priority waits for one deadline after another, a millisecond
//! apart on average. The excess is overhead: the interrupt, the switch to the waiting thread, its work, and the switch
//! back.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use tench::memory::make;
use tench::sys::{Notification, SchedulingContext};
use tench::thread;
use tench::time::{Instant, instructions};
use tench_random::Random;

use super::load::{Body, Load, compute};
use super::{Cap, problem};

/// Number of rounds of a piece of work.
const ROUNDS: u32 = 200_000;
/// Number of pieces whose overhead is measured, and of pieces without interrupts.
const PIECES: usize = 500;
const UNDISTURBED: usize = 4;
/// Distance of the deadlines in ticks: half a millisecond to one and a half.
const LEAST: u64 = 31_250;
const MORE: u64 = 62_500;
/// Priority of the waiting thread: the highest below the ceiling.
const HIGHEST: u8 = 254;

/// Does a piece of work; returns the instructions it took. It is one function in one place, so that each takes the
/// same.
#[inline(never)]
fn piece() -> u32 {
    let before = instructions();
    compute(1, ROUNDS);
    instructions().wrapping_sub(before) as u32
}

/// Measures. Returns the length of a piece, and the excess of each.
pub fn measure(seed: u64) -> Result<(u32, Vec<u32>), String> {
    let own = Cap::<SchedulingContext>::new(tench::abi::layout::slot::SCHEDULING);
    let info = own.query().map_err(problem("the own scheduling context"))?;
    // A thread without a time slice runs until it waits; a context may be given none only with priority and ceiling
    // below those of the authorising context.
    let authority = make::<SchedulingContext>(0).map_err(problem("a scheduling context"))?;
    authority.cap().configure(0, info.ceiling, info.slice, None).map_err(problem("the authority"))?;
    own.configure(info.priority, HIGHEST.into(), 0, None).map_err(problem("the time slice"))?;
    let work = undisturbed()?;
    let mut pieces = alloc::vec![0; PIECES];
    let timer = make::<Notification>(0).map_err(problem("a notification"))?;
    let timer_cap = timer.cap();
    let ticker: Body = Box::new(move |signal| {
        let mut random = Random::new(seed);
        let (mut deadline, mut count) = (Instant::now(), 0);
        while !signal.is_over() {
            deadline = deadline.after(LEAST + random.below(MORE));
            // It ends at its deadline: the notification is not signalled.
            let _ = timer_cap.wait_until(deadline);
            count += 1;
        }
        Ok(count)
    });
    let load = Load::start(alloc::vec![(HIGHEST, ticker)])?;
    for taken in &mut pieces {
        *taken = piece();
    }
    let interrupts = load.stop()?;
    own.configure(info.priority, info.ceiling, info.slice, Some(authority.cap())).map_err(problem("the time slice"))?;
    if interrupts.iter().sum::<u64>() < PIECES as u64 / 2 {
        return Err(alloc::format!("only {interrupts:?} timer interrupts in {PIECES} pieces of work"));
    }
    Ok((work, pieces.into_iter().map(|taken| taken.wrapping_sub(work)).collect()))
}

/// Returns the length of an uninterrupted piece, which is always the same.
fn undisturbed() -> Result<u32, String> {
    thread::yield_now();
    piece();
    let taken: [u32; UNDISTURBED] = core::array::from_fn(|_| piece());
    if taken.iter().all(|other| *other == taken[0]) {
        Ok(taken[0])
    } else {
        Err(alloc::format!("work takes {taken:?}"))
    }
}
