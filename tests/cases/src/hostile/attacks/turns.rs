//! Turns of the cores, in a machine with several: the emulator runs one after the other.
//!
//! A core's turn lasts until the next event of any core, or until it changes the time of its own next event. So that
//! each core gets on while others are busy, as if they ran at the same time, somebody on each makes events while
//! something is attacked. (Without that, a core whose one thread computes would keep all others standing, and a flood
//! from there would be a trickle.)

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use tench::abi::Powers;
use tench::procs::Procs;
use tench::sys::Instant;
use tench::thread::{Builder, JoinHandle};
use tench::time::{frequency, sleep};

use super::said;
use crate::case::Outcome;

/// Microseconds between two events of another core, and of this one: that gives the others several turns each time.
const BEAT_ELSEWHERE: u64 = 50;
const BEAT_HERE: u64 = 200;
/// Priority of who makes them on other cores: above everybody who may be busy there.
const ELSEWHERE: u8 = 180;
/// And of who makes them here: above everybody who may be busy.
const HERE: u8 = 199;

/// Events are to be made here.
static GOES_ON: AtomicBool = AtomicBool::new(false);

/// Those who make them.
pub struct Turns {
    elsewhere: Vec<(Procs, u64)>,
    here: Option<JoinHandle<()>>,
}

impl Turns {
    /// Starts who makes them on other cores. They rest.
    pub fn new(others: &[Procs]) -> Outcome<Turns> {
        let mut elsewhere = Vec::new();
        for procs in others {
            let child = procs.prepare("cases")?;
            child.argument("beat")?;
            child.configure(ELSEWHERE, ELSEWHERE, 0, Powers::empty())?;
            elsewhere.push((*procs, child.start()?));
        }
        sleep(Duration::from_millis(10));
        elsewhere.iter().try_for_each(|(procs, process)| procs.suspend(*process))?;
        Ok(Turns { elsewhere, here: None })
    }

    /// There are events from now on, if there are several cores.
    pub fn begin(&mut self) -> Outcome {
        if self.elsewhere.is_empty() {
            return Ok(());
        }
        GOES_ON.store(true, Ordering::SeqCst);
        let make = || {
            while GOES_ON.load(Ordering::SeqCst) {
                let _ = make_event(BEAT_HERE);
            }
        };
        self.here = Some(said(Builder::new().priority(HERE).spawn(make))?);
        Ok(self.elsewhere.iter().try_for_each(|(procs, process)| procs.resume(*process))?)
    }

    /// And now no more.
    pub fn end(&mut self) -> Outcome {
        GOES_ON.store(false, Ordering::SeqCst);
        self.here.take().into_iter().for_each(JoinHandle::join);
        Ok(self.elsewhere.iter().try_for_each(|(procs, process)| procs.suspend(*process))?)
    }
}

/// Waits for a moment.
fn make_event(microseconds: u64) -> Option<()> {
    let event = tench::thread::own_notification()?;
    let _ = event.wait_until(Instant::now().after(microseconds * frequency() / 1_000_000));
    Some(())
}

/// Is who makes events on another core. Goes on until somebody kills it.
pub fn beat_for_ever() -> Option<i32> {
    loop {
        make_event(BEAT_ELSEWHERE)?;
    }
}
