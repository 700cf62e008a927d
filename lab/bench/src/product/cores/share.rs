//! A frame of which processes on other cores have copies, and which is taken back from all of them: the cost by the
//! number of cores.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tench::memory;
use tench::sys::{Cap, Error, Frame, Instant};
use tench::time::{self, instructions};
use tench_monitor_interface::Monitor;

use super::{monitor, problem, procs};
use crate::support::figure;

/// Number of cores of the machine.
const CORES: u64 = 8;
/// Numbers of other cores with a copy.
const NUMBERS: [u64; 4] = [1, 2, 4, 7];
/// Number of measured repetitions, and of repetitions before them.
const TIMES: u64 = 16;
const WARM_UP: u64 = 2;
/// Time within which monitors find unused proxies.
const PATIENCE: time::Duration = time::Duration::from_secs(10);
/// Log2 of the frame's bytes.
const FRAME_BITS: u64 = 12;

/// Runs the experiment.
pub fn run() -> Result<(), String> {
    let monitor = monitor(CORES - 1)?;
    let mut holders = Vec::new();
    for core in 1..CORES {
        let procs = procs(monitor, core)?;
        let holder = procs.spawn("bench", &["cores-holder"]);
        holders.push(holder.map_err(problem("starting who takes the frame"))?);
        procs.way().delete().map_err(problem("giving up a process server"))?;
        memory::free_slot(procs.way().address());
    }
    // While there are proxies, the monitor asks the kernel for unused ones, which would count in the figures.
    let deadline = time::deadline(PATIENCE);
    while monitor.exchanged().map_err(problem("the monitor"))?.proxies > 0 {
        if Instant::now() > deadline {
            return Err("the monitor keeps proxies that nobody uses".into());
        }
        time::sleep(time::Duration::from_millis(100));
    }
    let frame = memory::make::<Frame>(FRAME_BITS).map_err(|error| error.to_string())?;
    for number in NUMBERS {
        let holders = holders.iter().take(number as usize);
        let (mut copying, mut revoking) = (0, 0);
        for round in 0..WARM_UP + TIMES {
            let start = instructions();
            for holder in holders.clone() {
                monitor.give(*holder, round, Cap::new(frame.cap().address())).map_err(problem("sending a frame"))?;
            }
            let sent = instructions();
            take_back(monitor, frame.cap())?;
            if round >= WARM_UP {
                copying += sent - start;
                revoking += instructions() - sent;
            }
        }
        figure(&format!("copy_{number}"), copying / TIMES);
        figure(&format!("revoke_{number}"), revoking / TIMES);
    }
    Ok(())
}

/// Revokes the frame: the kernel refuses, the monitor revokes on the other cores, and then the kernel does it.
fn take_back(monitor: Monitor, frame: Cap<Frame>) -> Result<(), String> {
    if frame.revoke() != Err(Error::RemoteCopies) {
        return Err("a frame with copies on other cores was revoked at once".into());
    }
    monitor.revoke(Cap::new(frame.address())).map_err(problem("taking a frame back"))?;
    frame.revoke().map(drop).map_err(problem("revoking a frame"))
}

/// Runs the process on each of the other cores: it receives what it is sent into a slot that is empty again when that
/// was taken back.
pub fn holder() -> Result<(), String> {
    let (monitor, slot) = (monitor(0)?, memory::take_slot().map_err(|error| error.to_string())?);
    loop {
        monitor.take(slot).map_err(problem("taking a frame"))?;
    }
}
