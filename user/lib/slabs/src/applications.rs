//! R1's applications: the memory requests of starting each, and of its running; and the orders in which R1 starts and
//! stops them (its table 4.2).

use alloc::vec::Vec;
use core::ops::Range;

use crate::bundle::Descriptor;
use crate::replay::Accounting;
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
    /// Loads a model, transfers it and frees it: 1,157,376 B in 285 objects, of which 253 pages and their 8 KiB node
    /// are freed while it runs.
    Mltest,
}

use Application::{Fibonacci, Hello, Mltest, Timer};

impl Application {
    /// All applications.
    pub const ALL: [Application; 4] = [Hello, Timer, Fibonacci, Mltest];

    /// Returns the application's name for users.
    pub const fn name(self) -> &'static str {
        match self {
            Hello => "hello",
            Timer => "timer",
            Fibonacci => "fibonacci",
            Mltest => "mltest",
        }
    }

    /// Returns the trace of its start, as text.
    const fn text(self) -> &'static [u8] {
        match self {
            Hello => include_bytes!("../../../../lab/traces/hello.trace"),
            Timer => include_bytes!("../../../../lab/traces/timer.trace"),
            Fibonacci => include_bytes!("../../../../lab/traces/fibonacci.trace"),
            Mltest => include_bytes!("../../../../lab/traces/mltest.trace"),
        }
    }

    /// Returns the trace of its start.
    #[expect(clippy::missing_panics_doc, reason = "the trace is part of this crate; a test reads it")]
    pub fn start(self) -> Trace {
        Trace::parse(self.text()).expect("the traces of the applications are whole")
    }

    /// Returns the requests of its start whose objects it keeps while it runs. They are read from the trace when this
    /// crate is compiled: a program that makes them needs neither the text nor a heap.
    pub const fn kept(self) -> &'static [Descriptor] {
        match self {
            Hello => &const { kept::<{ kept::<0>(Hello).1 }>(Hello).0 },
            Timer => &const { kept::<{ kept::<0>(Timer).1 }>(Timer).0 },
            Fibonacci => &const { kept::<{ kept::<0>(Fibonacci).1 }>(Fibonacci).0 },
            Mltest => &const { kept::<{ kept::<0>(Mltest).1 }>(Mltest).0 },
        }
    }

    /// Returns the ranges of those requests that are freed while it runs, each range together.
    pub const fn freed_while_running(self) -> &'static [Range<usize>] {
        match self {
            // The pages of the model, then the node that held them.
            Mltest => {
                &[MODEL_FIRST..MODEL_FIRST + MODEL_PAGES, MODEL_FIRST + MODEL_PAGES..MODEL_FIRST + MODEL_PAGES + 1]
            }
            Hello | Timer | Fibonacci => &[],
        }
    }
}

/// Returns the first `N` requests whose objects an application keeps, and how many there are in all. A line of its
/// trace is a comment or requests objects of one size; any other does not compile.
const fn kept<const N: usize>(application: Application) -> ([Descriptor; N], usize) {
    let (text, freed) = (application.text(), application.freed_while_running());
    let mut found = ([Descriptor::new(0, 0); N], 0);
    let (mut at, mut requests) = (0, 0);
    while at < text.len() {
        if text[at] == b'#' {
            while text[at] != b'\n' {
                at += 1;
            }
        } else {
            let (count, space) = number(text, at + b"alloc ".len());
            let (size, end) = number(text, space + 1);
            let descriptor = Descriptor::new(size, count as u32);
            assert!(text[at] == b'a' && text[end] == b'\n' && descriptor.is_valid());
            at = end;
            let mut range = 0;
            while range < freed.len() && !(freed[range].start <= requests && requests < freed[range].end) {
                range += 1;
            }
            if range == freed.len() {
                if found.1 < N {
                    found.0[found.1] = descriptor;
                }
                found.1 += 1;
            }
            requests += 1;
        }
        at += 1;
    }
    found
}

/// Returns the decimal number at `at`, and the index of what follows it.
const fn number(text: &[u8], mut at: usize) -> (u64, usize) {
    let mut number = 0;
    while text[at].is_ascii_digit() {
        number = number * 10 + (text[at] - b'0') as u64;
        at += 1;
    }
    (number, at)
}

/// Number of pages of the model that `mltest` loads.
const MODEL_PAGES: usize = 253;
/// Number of `mltest`'s request for the first of them.
const MODEL_FIRST: usize = 18;

/// A start or a stop of an application; the second member distinguishes instances of the same application.
type Step = (Application, u8);

/// Table 4.2's three orders. The second occurrence of an application stops it.
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

/// Returns the trace of starting, running and stopping an application.
pub fn application(application: Application) -> Trace {
    sequence(&[(application, 1), (application, 1)])
}

/// Returns the trace of starting and stopping applications in this order: the second occurrence of an application stops
/// it. Each stop is one request, and so are an application's frees while it runs, as in R1's logs.
pub fn sequence(steps: &[Step]) -> Trace {
    play(steps).0
}

/// Returns the accounting that R1 printed for these steps, which misses applications' frees while they run.
pub fn printed_account(steps: &[Step]) -> Accounting {
    Accounting::Printed { missed: play(steps).1 }
}

/// Returns the trace, and the numbers of the requests that free while an application runs.
fn play(steps: &[Step]) -> (Trace, Vec<u32>) {
    let mut trace = Trace::new();
    let mut missed = Vec::new();
    let mut running: Vec<(Step, Vec<u32>)> = Vec::new();
    for &step in steps {
        if let Some(at) = running.iter().position(|(started, _)| *started == step) {
            trace.push_free(&running.remove(at).1);
            continue;
        }
        let own = step.0.start();
        let mut live = Vec::new();
        for request in own.requests() {
            if let Request::Alloc { bundle, lifetime } = request {
                live.push(trace.push_alloc(own.bundle(bundle), *lifetime));
            }
        }
        for part in step.0.freed_while_running() {
            missed.push(trace.requests().len() as u32);
            trace.push_free(&live[part.clone()]);
        }
        let freed = |at: &usize| step.0.freed_while_running().iter().any(|part| part.contains(at));
        let left = (0..live.len()).filter(|at| !freed(at)).map(|at| live[at]).collect();
        running.push((step, left));
    }
    (trace, missed)
}
