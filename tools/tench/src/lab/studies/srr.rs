//! R4's table: the cost of Send-Receive-Reply by message size.

use crate::lab::reference;
use crate::lab::support::{Column, Experiment, PLAIN, Run, USUAL};

/// Send-Receive-Reply.
pub const SRR: Experiment = Experiment {
    name: "srr",
    title: "Send-Receive-Reply by message size (r: the receiver waits first, s: the sender does), beside choochoos",
    runs: &[PLAIN, Run { prefix: "unoptimised_", optimised: false, ..PLAIN }],
    columns: &[
        Column { title: "choochoos", values: reference::CHOOCHOOS },
        Column { title: "its µs", values: reference::CHOOCHOOS_MICROSECONDS },
    ],
    ..USUAL
};
