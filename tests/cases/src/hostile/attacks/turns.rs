//! The turns of the cores, in a machine with several: the emulator runs one after the other.
//!
//! A core's turn lasts until the next event of any core, or until it changes the time of its own next event. So that
//! each core makes progress while others are busy, as if they ran at the same time, a thread on each makes events
//! during an attack. (Without that, a core whose one thread computes would stop all others, and a flood from there
//! would be a trickle.)

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

/// Microseconds between two events of another core, and of this one, which gives the others several turns each time.
const BEAT_ELSEWHERE: u64 = 50;
const BEAT_HERE: u64 = 200;
/// Priority of the event makers on other cores: above all threads that may be busy there.
const ELSEWHERE: u8 = 180;
/// Priority of this core's event maker: above all threads that may be busy here.
const HERE: u8 = 199;

/// Set while this core's event maker is to go on.
static GOES_ON: AtomicBool = AtomicBool::new(false);

/// The event makers.
pub struct Turns {
    elsewhere: Vec<(Procs, u64)>,
    here: Option<JoinHandle<()>>,
}

impl Turns {
    /// Starts the event makers on other cores, paused.
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

    /// Begins to make events, if there are several cores.
    pub fn start_events(&mut self) -> Outcome {
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

    /// Stops making events.
    pub fn stop_events(&mut self) -> Outcome {
        GOES_ON.store(false, Ordering::SeqCst);
        self.here.take().into_iter().for_each(JoinHandle::join);
        Ok(self.elsewhere.iter().try_for_each(|(procs, process)| procs.suspend(*process))?)
    }
}

/// Makes an event by waiting for `microseconds`.
fn make_event(microseconds: u64) -> Option<()> {
    let event = tench::thread::own_notification()?;
    let _ = event.wait_until(Instant::now().after(microseconds * frequency() / 1_000_000));
    Some(())
}

/// Runs the event maker of another core until it is killed.
pub fn beat_for_ever() -> Option<i32> {
    loop {
        make_event(BEAT_ELSEWHERE)?;
    }
}
