//! Costs of requesting and returning a bundle in the running system: R1's figures 4.15 and 4.16, and its hypotheses H3
//! and H4, which it had to leave open.
//!
//! R1's random workload is played under each policy. A request is measured from before the library call to after it, so
//! it contains the message, the server's choice and tables, and the kernel's retypes or deletions.
//!
//! | key | what |
//! |---|---|
//! | `alloc_mean_POLICY_C`, `alloc_max_POLICY_C` | requests that were granted, with a chance of C per cent to free |
//! | `alloc_all_POLICY_C` | the mean including those that found no room |
//! | `free_mean_POLICY_C`, `free_max_POLICY_C` | returns |
//! | `alloc_other_POLICY_C` | the largest difference between two requests of the same kind: equal numbers of objects and failed retypes, and equal outcomes |
//!
//! So a spike that is not in `alloc_other` has a cause: more objects, failed retypes, or that the server's own arrays
//! grew, which the notes count.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tench::mem::protocol::Error;
use tench::mem::slabs::{Descriptor, Lifetime, Slabs};
use tench::mem::{Failure, Mem};
use tench::println;
use tench::procs::pid;
use tench::sys::Kind;
use tench::time::instructions;
use tench_slabs::{Policy, Random, RandomSettings, STANDARD_SLABS, STANDARD_STATIC_SLABS, Source, Step, StepKind};

use crate::support::{figure, problem};

const SLABS: Slabs = Slabs::STANDARD;
/// Chances to free, in per cent.
const CHANCES: [u32; 4] = [16, 32, 48, 64];
/// Policies and chances whose curves are printed.
const CURVES: [(Policy, &str); 2] = [(Policy::BestFit, "best"), (Policy::NextFitGuessing, "next")];

/// Cost of one request.
#[derive(Clone, Copy)]
struct Cost {
    instructions: u64,
    /// Bytes requested before.
    requested: u64,
    /// Bytes in use after.
    live: u64,
    objects: u64,
    failed: u64,
    granted: bool,
    /// Set if the server's own arrays or slots grew during the request.
    grew: bool,
}

/// Costs of a run's requests.
#[derive(Default)]
struct Run {
    allocs: Vec<Cost>,
    /// Cost of each return, and the number of requests for memory before it.
    frees: Vec<(usize, u64)>,
}

/// Returns the number of blocks on the server's own account.
fn server_blocks() -> Result<u64, String> {
    Ok(Mem::STANDARD.next_account(pid::MEM - 1).map_err(problem("the server's account"))?.blocks)
}

/// Runs the workload under a policy.
fn play(policy: Policy, chance: u32) -> Result<Run, String> {
    SLABS.set_policy(policy.code(), false).map_err(problem("setting the policy"))?;
    let mut source = Random::new(RandomSettings { chance, ..RandomSettings::default() });
    let mut step = Step::default();
    let mut live = BTreeMap::new();
    let mut run = Run::default();
    let mut number = 0;
    while source.next(&mut step) {
        match step.kind {
            StepKind::Alloc => {
                let wanted: Vec<Descriptor> = step
                    .bundle
                    .iter()
                    .map(|one| Descriptor { kind: Kind::Untyped, size: one.size.ilog2(), count: one.count })
                    .collect();
                let before = SLABS.figures().map_err(problem("figures"))?;
                let blocks = server_blocks()?;
                let start = instructions();
                let result = SLABS.ask(Lifetime::Dynamic, &wanted, None);
                let end = instructions();
                let after = SLABS.figures().map_err(problem("figures"))?;
                let granted = match result {
                    Ok(granted) => {
                        live.insert(number, granted.number);
                        true
                    }
                    Err(Failure::Refused(Error::OutOfMemory)) => false,
                    Err(failure) => return Err(problem("a bundle")(failure)),
                };
                source.note_outcome(granted);
                run.allocs.push(Cost {
                    instructions: end.wrapping_sub(start),
                    requested: before.requested,
                    live: after.live,
                    objects: wanted.iter().map(|one| u64::from(one.count)).sum(),
                    failed: after.failed_retypes - before.failed_retypes,
                    granted,
                    grew: server_blocks()? != blocks,
                });
            }
            StepKind::Free => {
                for bundle in step.numbers.iter().filter_map(|number| live.remove(number)) {
                    let start = instructions();
                    SLABS.free(bundle).map_err(problem("freeing"))?;
                    run.frees.push((run.allocs.len(), instructions().wrapping_sub(start)));
                }
            }
            StepKind::Failed => {}
        }
        number += 1;
    }
    for bundle in live.into_values() {
        SLABS.free(bundle).map_err(problem("freeing"))?;
    }
    Ok(run)
}

fn mean(values: impl Iterator<Item = u64> + Clone) -> u64 {
    values.clone().sum::<u64>() / (values.count() as u64).max(1)
}

impl Run {
    /// Returns the largest difference between requests of the same kind.
    fn apart(&self) -> u64 {
        let mut kinds: BTreeMap<(u64, u64, bool), (u64, u64)> = BTreeMap::new();
        for cost in self.allocs.iter().filter(|cost| !cost.grew) {
            let kind = kinds.entry((cost.objects, cost.failed, cost.granted));
            let (least, most) = kind.or_insert((u64::MAX, 0));
            (*least, *most) = ((*least).min(cost.instructions), (*most).max(cost.instructions));
        }
        kinds.values().map(|(least, most)| most - least).max().unwrap_or(0)
    }

    /// Prints the run's figures.
    fn print(&self, policy: Policy, chance: u32) {
        let name = policy.key();
        let granted = self.allocs.iter().filter(|cost| cost.granted && !cost.grew).map(|cost| cost.instructions);
        let all = self.allocs.iter().filter(|cost| !cost.grew).map(|cost| cost.instructions);
        figure(&format!("alloc_mean_{name}_{chance}"), mean(granted.clone()));
        figure(&format!("alloc_max_{name}_{chance}"), granted.max().unwrap_or(0));
        figure(&format!("alloc_all_{name}_{chance}"), mean(all));
        figure(&format!("alloc_other_{name}_{chance}"), self.apart());
        figure(&format!("free_mean_{name}_{chance}"), mean(self.frees.iter().map(|(_, cost)| *cost)));
        figure(&format!("free_max_{name}_{chance}"), self.frees.iter().map(|(_, cost)| *cost).max().unwrap_or(0));
        let grew = self.allocs.iter().filter(|cost| cost.grew).count();
        let failed: u64 = self.allocs.iter().map(|cost| cost.failed).sum();
        let full = self.allocs.iter().filter(|cost| !cost.granted).count();
        println!(
            "note: {name}, {chance} %: {} requests, {full} found no room, {failed} retypes failed, {grew} times the \
             server's own arrays grew (not counted above)",
            self.allocs.len()
        );
    }

    /// Prints the run's curves.
    fn print_curves(&self, name: &str, chance: u32) {
        for cost in &self.allocs {
            println!("sample: live_{name}_{chance} {} {}", cost.requested, cost.live);
            println!("sample: alloc_{name}_{chance} {} {}", cost.requested, cost.instructions);
            if !cost.granted {
                println!("sample: full_{name}_{chance} {} {}", cost.requested, cost.instructions);
            } else if cost.failed > 0 {
                println!("sample: failed_{name}_{chance} {} {}", cost.requested, cost.instructions);
                println!("sample: failures_{name}_{chance} {} {}", cost.requested, cost.failed);
            }
        }
        for (after, cost) in &self.frees {
            let requested =
                after.checked_sub(1).and_then(|last| self.allocs.get(last)).map_or(0, |last| last.requested);
            println!("sample: free_{name}_{chance} {requested} {cost}");
        }
    }
}

/// Runs the experiment.
pub fn run() -> Result<(), String> {
    let bits = |sizes: &[u64]| sizes.iter().map(|size| size.ilog2() as u8).collect::<Vec<_>>();
    SLABS.set_up(&bits(&STANDARD_SLABS), &bits(&STANDARD_STATIC_SLABS)).map_err(problem("setting up"))?;
    for policy in Policy::ALL {
        for chance in CHANCES {
            let run = play(policy, chance)?;
            run.print(policy, chance);
            if let Some((_, name)) = CURVES.iter().find(|(curve, _)| *curve == policy)
                && chance <= 32
            {
                run.print_curves(name, chance);
            }
        }
    }
    SLABS.take_down().map_err(|failure| failure.to_string())
}
