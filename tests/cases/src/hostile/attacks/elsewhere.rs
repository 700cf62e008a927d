//! Floods from another core: processes of the second core make as many requests of the first core's servers as they
//! can. The first core's monitor and its threads serve them, so their share of that core's time is checked.

use tench::abi::layout::slot;
use tench::files::Files;
use tench::mem::Mem;
use tench::names::Names;
use tench::procs::protocol::Error;
use tench::procs::{Failure, Procs, pid};
use tench::sys::{Cap, Endpoint, Instant, Message, Wait};
use tench_monitor_interface::Monitor;
use tench_protocol::{DONE, label};

use super::floods::{flood, together};
use super::{Attack, empty, procs_of, said, soon};
use crate::case::Outcome;

pub const ATTACKS: &[Attack] = &[
    Attack::new("elsewhere-spin", "who is busy on another core takes nothing of this one", || {
        together(core::hint::spin_loop)
    })
    .endless()
    .second(),
    Attack::new("elsewhere-names", "a flood from another core to the name server takes no more than its share", || {
        flood("names")
    })
    .endless()
    .second(),
    Attack::new("elsewhere-clock", "nor one to the clock", || flood("clock")).endless().second(),
    Attack::new("elsewhere-console", "nor one to the console", || flood("console")).endless().second(),
    Attack::new("elsewhere-files", "nor one to the file server", || flood("files")).endless().second(),
    Attack::new("elsewhere-procs", "nor one to the process server", processes).endless().second().unlimited(),
    Attack::new("elsewhere-mem", "nor one for the memory of this core", memory).endless().second().unlimited(),
    Attack::new("elsewhere-starts", "nor one that starts programs here", starts).endless().second().unlimited(),
    Attack::new("elsewhere-unheard", "nor one of requests whose replies nobody hears", unheard).endless().second(),
    Attack::new("elsewhere-sent", "what is sent to a server of another core is not done", sent).second().unlimited(),
    Attack::new("elsewhere-pings", "nor one that asks the monitor whether it is there", pings).endless().second(),
];

/// Core that is attacked.
const VICTIM: u64 = 0;

fn monitor() -> Outcome<Monitor> {
    Ok(Monitor::at(said(Names::STANDARD.look_up(Monitor::NAME, empty()?))?))
}

fn processes() -> Outcome {
    let procs = procs_of(monitor()?, VICTIM)?;
    together(move || {
        let _ = procs.load();
        if let Ok(child) = procs.prepare("hello") {
            let _ = child.argument("x");
            child.abandon();
        }
    })
}

fn memory() -> Outcome {
    let monitor = monitor()?;
    let procs = procs_of(monitor, VICTIM)?;
    together(move || {
        let _ = (monitor.memory(VICTIM), procs.memory(pid::PROCS), procs.next(0), Mem::STANDARD.totals());
    })
}

fn starts() -> Outcome {
    let procs = procs_of(monitor()?, VICTIM)?;
    together(move || {
        let _ = procs.spawn("hello", &["x"]).map(|child| procs.wait(child));
    })
}

/// Sends to the proxy of another core's server instead of calling: the server must do nothing for such a client.
fn sent() -> Outcome {
    let procs = procs_of(monitor()?, VICTIM)?;
    let child = said(procs.spawn("cases", &["attack", "idle"]))?;
    let kill = Message::with_words(Procs::KILL, &[child]);
    // The proxy receives the message, and then the other core refuses it.
    said(procs.way().send(&kill, Wait::until(soon(20_000))))?;
    let _ = procs.way().try_send(&kill);
    let outcome = procs.wait_until(child, soon(20_000));
    equal!(outcome, Err(Failure::Refused(Error::TimedOut)));
    // The request is carried out when it is made by a call.
    equal!(said(procs.way().call_with(&kill, Wait::FOREVER))?.label(), DONE);
    Ok(())
}

fn unheard() -> Outcome {
    together(move || {
        let wanted = Message::with_words(label(Files::<()>::INTERFACE, Files::<()>::VERSION, 1), &[0, 0, 0]);
        for server in [slot::NAMES, slot::FILES, slot::CONSOLE] {
            let server = Cap::<Endpoint>::new(server);
            // The client has given up when the request is forwarded.
            let _ = server.call_with(&wanted, Wait::until(Instant::now()));
            let _ = server.try_send(&wanted);
        }
    })
}

fn pings() -> Outcome {
    let monitor = monitor()?;
    together(move || {
        let _ = monitor.ping(VICTIM);
    })
}
