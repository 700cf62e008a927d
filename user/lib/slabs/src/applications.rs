//! R1's applications: what starting each asks for, and what it frees while it runs; and the orders in which R1 starts
//! and stops them (its table 4.2).

use alloc::vec::Vec;

use crate::trace::{Request, Trace};

/// One of R1's applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Application {
    /// Prints two lines: 46,400 B in 15 objects.
    Hello,
    /// Waits for timers: 104,448 B in 29 objects.
    Timer,
    /// Computes and waits: 104,448 B in 29 objects.
    Fibonacci,
    /// Loads a model, hands it over and frees it: 1,157,376 B in 285 objects, of which 253 pages and their 8 KiB node
    /// are freed while it runs.
    Mltest,
}

use Application::{Fibonacci, Hello, Mltest, Timer};

impl Application {
    /// All of them.
    pub const ALL: [Application; 4] = [Hello, Timer, Fibonacci, Mltest];

    /// The name people use.
    pub const fn name(self) -> &'static str {
        match self {
            Hello => "hello",
            Timer => "timer",
            Fibonacci => "fibonacci",
            Mltest => "mltest",
        }
    }

    /// What starting it asks for.
    const fn text(self) -> &'static [u8] {
        match self {
            Hello => include_bytes!("../../../../lab/traces/hello.trace"),
            Timer => include_bytes!("../../../../lab/traces/timer.trace"),
            Fibonacci => include_bytes!("../../../../lab/traces/fibonacci.trace"),
            Mltest => include_bytes!("../../../../lab/traces/mltest.trace"),
        }
    }

    /// Requests that are freed while it runs, in order.
    const fn freed_while_running(self) -> core::ops::Range<usize> {
        match self {
            // The pages of the model one by one, then the node that held them.
            Mltest => MODEL_FIRST..MODEL_FIRST + MODEL_PAGES + 1,
            Hello | Timer | Fibonacci => 0..0,
        }
    }
}

/// Pages of the model that `mltest` loads.
const MODEL_PAGES: usize = 253;
/// The request of `mltest` that asks for the first of them.
const MODEL_FIRST: usize = 18;

/// A start or a stop of an application; the second member tells two of the same apart.
type Step = (Application, u8);

/// Table 4.2's three orders. An application that is named for the second time is stopped.
pub const SEQUENCES: [[Step; 16]; 3] = [
    [
        (Hello, 1),
        (Hello, 1),
        (Timer, 1),
        (Timer, 1),
        (Mltest, 1),
        (Mltest, 1),
        (Fibonacci, 1),
        (Fibonacci, 1),
        (Hello, 2),
        (Hello, 2),
        (Timer, 2),
        (Timer, 2),
        (Mltest, 2),
        (Mltest, 2),
        (Fibonacci, 2),
        (Fibonacci, 2),
    ],
    [
        (Hello, 1),
        (Timer, 1),
        (Mltest, 1),
        (Fibonacci, 1),
        (Hello, 2),
        (Timer, 2),
        (Mltest, 2),
        (Fibonacci, 2),
        (Fibonacci, 2),
        (Mltest, 2),
        (Timer, 2),
        (Hello, 2),
        (Fibonacci, 1),
        (Mltest, 1),
        (Timer, 1),
        (Hello, 1),
    ],
    [
        (Hello, 1),
        (Timer, 1),
        (Mltest, 1),
        (Timer, 1),
        (Mltest, 1),
        (Fibonacci, 1),
        (Hello, 2),
        (Timer, 2),
        (Hello, 1),
        (Fibonacci, 1),
        (Mltest, 2),
        (Fibonacci, 2),
        (Fibonacci, 2),
        (Mltest, 2),
        (Hello, 2),
        (Timer, 2),
    ],
];

/// An application that is started, runs and is stopped.
pub fn application(application: Application) -> Trace {
    sequence(&[(application, 1), (application, 1)])
}

/// Applications that are started and stopped in this order: naming one for the second time stops it.
#[expect(clippy::missing_panics_doc, reason = "the applications' traces are part of this crate; a test reads them")]
pub fn sequence(steps: &[Step]) -> Trace {
    let mut trace = Trace::new();
    let mut running: Vec<(Step, Vec<u32>)> = Vec::new();
    for &step in steps {
        if let Some(at) = running.iter().position(|(started, _)| *started == step) {
            running.remove(at).1.into_iter().for_each(|number| trace.push_free(number));
            continue;
        }
        let own = Trace::parse(step.0.text()).expect("the traces of the applications are whole");
        let mut live = Vec::new();
        for request in own.requests() {
            if let Request::Alloc { bundle, lifetime } = request {
                live.push(trace.push_alloc(own.bundle(bundle), *lifetime));
            }
        }
        live.drain(step.0.freed_while_running()).for_each(|number| trace.push_free(number));
        running.push((step, live));
    }
    trace
}
