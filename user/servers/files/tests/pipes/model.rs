//! Pipes against a slow model.

use super::*;

/// A pipe in the slow model.
#[derive(Default)]
struct Model {
    bytes: Vec<u8>,
    reading: Vec<(u64, u64, usize)>,
    writing: Vec<(u64, u64, Vec<u8>)>,
}

/// All pipes: by number, and for each end its pipe, whether it reads, and its owner.
#[derive(Default)]
struct Models {
    pipes: Vec<Model>,
    ends: BTreeMap<u64, (usize, bool, u64)>,
    /// Processes that have ended for ever.
    ended: BTreeSet<u64>,
}

impl Models {
    fn count(&self, pipe: usize, reads: bool) -> usize {
        self.ends.values().filter(|end| (end.0, end.1) == (pipe, reads)).count()
    }

    /// Lets all go on that can. `lost` returns whose bytes do not arrive.
    fn run_until_blocked(&mut self, lost: impl Fn(u64) -> bool) -> BTreeMap<u64, Completion> {
        let mut completions = BTreeMap::new();
        for number in 0..self.pipes.len() {
            let (readers, writers) = (self.count(number, true), self.count(number, false));
            let pipe = &mut self.pipes[number];
            loop {
                if !pipe.reading.is_empty() && (!pipe.bytes.is_empty() || writers == 0) {
                    let (reply, _, max) = pipe.reading.remove(0);
                    let count = max.min(pipe.bytes.len());
                    completions.insert(reply, Completion::Data(data(&pipe.bytes[..count])));
                    if !lost(reply) {
                        pipe.bytes.drain(..count);
                    }
                } else if !pipe.writing.is_empty() && readers == 0 {
                    completions.insert(pipe.writing.remove(0).0, Completion::Refused(Error::Broken));
                } else if !pipe.writing.is_empty() && pipe.bytes.len() + pipe.writing[0].2.len() <= CAPACITY {
                    let (reply, _, more) = pipe.writing.remove(0);
                    pipe.bytes.extend(more);
                    completions.insert(reply, Completion::Done);
                } else {
                    break;
                }
            }
        }
        completions
    }

    /// Closes ends. Returns those who waited there.
    fn close(&mut self, is_meant: impl Fn(u64, u64) -> bool) -> Vec<u64> {
        let gone: Vec<u64> = self.ends.iter().filter(|(end, at)| is_meant(**end, at.2)).map(|(end, _)| *end).collect();
        let mut refused = Vec::new();
        for end in gone {
            self.ends.remove(&end);
            for pipe in &mut self.pipes {
                refused.extend(pipe.reading.extract_if(.., |waits| waits.1 == end).map(|waits| waits.0));
                refused.extend(pipe.writing.extract_if(.., |waits| waits.1 == end).map(|waits| waits.0));
            }
        }
        refused.sort_unstable();
        refused
    }
}

#[derive(Clone, Debug)]
enum Step {
    Pipe {
        process: u64,
    },
    Share {
        end: usize,
        process: u64,
    },
    Close {
        end: usize,
    },
    /// A process ends; with `for_ever` unset, its capabilities are used afterwards, too.
    Ended {
        process: u64,
        for_ever: bool,
    },
    Read {
        end: usize,
        max: usize,
    },
    Write {
        end: usize,
        length: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let (end, process) = (0..16_usize, 1..5_u64);
    prop_oneof![
        1 => process.clone().prop_map(|process| Step::Pipe { process }),
        2 => (end.clone(), process.clone()).prop_map(|(end, process)| Step::Share { end, process }),
        1 => end.clone().prop_map(|end| Step::Close { end }),
        1 => (process, any::<bool>()).prop_map(|(process, for_ever)| Step::Ended { process, for_ever }),
        8 => (end.clone(), 0..600_usize).prop_map(|(end, max)| Step::Read { end, max }),
        12 => (end, 0..=MAX_DATA).prop_map(|(end, length)| Step::Write { end, length }),
    ]
}

/// Does a step on both. `reply` is a unique number, which also determines the bytes.
fn run(ends: &mut Ends<u64>, models: &mut Models, step: &Step, reply: u64) {
    let known: Vec<u64> = models.ends.keys().copied().collect();
    let at = |end: usize| known.get(end % known.len().max(1)).copied();
    match *step {
        Step::Pipe { process } => {
            let (reader, writer) = ends.pipe(Client::alone(process)).unwrap();
            let number = models.pipes.len();
            models.pipes.push(Model::default());
            models.ends.insert(reader, (number, true, process));
            models.ends.insert(writer, (number, false, process));
        }
        Step::Share { end, process } => {
            let Some(end) = at(end) else { return };
            // A process that shares without limit is refused; the limits have a test of their own.
            let Ok(shared) = ends.share(end, process) else { return };
            let (pipe, reads, _) = models.ends[&end];
            models.ends.insert(shared, (pipe, reads, process));
        }
        Step::Close { end } => {
            let Some(end) = at(end) else { return };
            let mut refused = Vec::new();
            ends.close(end, |reply| refused.push(reply)).unwrap();
            refused.sort_unstable();
            assert_eq!(refused, models.close(|number, _| number == end));
        }
        Step::Ended { process, for_ever } => {
            let mut refused = ended(ends, process);
            refused.sort_unstable();
            assert_eq!(refused, models.close(|_, owner| owner == process));
            if for_ever {
                models.ended.insert(process)
            } else {
                models.ended.remove(&process)
            };
            let mut asked = 0;
            while let Some(process) = ends.question(1) {
                asked += 1;
                assert!(asked <= 16, "about each, and again as often as another is found to have ended");
                if models.ended.contains(&process) {
                    let mut refused = ended(ends, process);
                    refused.sort_unstable();
                    assert_eq!(refused, models.close(|_, owner| owner == process));
                } else {
                    assert_eq!(lives(ends, process), []);
                }
            }
            assert!(models.ended.iter().all(|process| ends.opened(*process) == 0), "nothing stays of who has ended");
        }
        Step::Read { end, max } => {
            let Some(end) = at(end) else { return };
            let (number, reads, _) = models.ends[&end];
            let writers = models.count(number, false);
            let pipe = &mut models.pipes[number];
            match read(ends, end, max, reply) {
                None => pipe.reading.push((reply, end, max.min(MAX_DATA))),
                Some(Ok(bytes)) => {
                    assert!(reads && pipe.reading.is_empty() || max == 0);
                    assert!(!pipe.bytes.is_empty() || writers == 0 || max == 0);
                    let count = max.min(pipe.bytes.len()).min(MAX_DATA);
                    assert_eq!(&bytes[..], pipe.bytes.drain(..count).collect::<Vec<_>>());
                }
                Some(Err(error)) => assert!(error == Error::Full || !reads && error == Error::NotForReading),
            }
        }
        Step::Write { end, length } => {
            let Some(end) = at(end) else { return };
            let (number, reads, _) = models.ends[&end];
            let readers = models.count(number, true);
            let bytes: Vec<u8> = (0..length as u64).map(|n| (reply * 7 + n) as u8).collect();
            let pipe = &mut models.pipes[number];
            match write(ends, end, &bytes, reply) {
                None => pipe.writing.push((reply, end, bytes)),
                Some(Ok(())) => {
                    assert!(!reads && pipe.writing.is_empty());
                    pipe.bytes.extend(bytes);
                }
                Some(Err(Error::Broken)) => assert!(!reads && readers == 0),
                Some(Err(error)) => assert!(error == Error::Full || reads && error == Error::NotForWriting),
            }
        }
    }
}

proptest! {
    #[test]
    fn pipes_do_what_the_model_does(steps in prop::collection::vec(step(), 1..200), unlucky in 2..9_u64) {
        let (mut ends, mut models) = (ends(), Models::default());
        for process in 1..4 {
            run(&mut ends, &mut models, &Step::Pipe { process }, 0);
        }
        let lost = |reply: u64| reply.is_multiple_of(unlucky);
        for (step, reply) in steps.iter().zip(1..) {
            run(&mut ends, &mut models, step, reply);
            let mut completions = BTreeMap::new();
            while let Some(due) = ends.next_due() {
                if let Completion::Data(bytes) = &due.completion
                    && lost(due.reply)
                {
                    ends.undelivered(due.from, bytes);
                }
                completions.insert(due.reply, due.completion);
                ends.check_invariants();
            }
            prop_assert_eq!(completions, models.run_until_blocked(lost));
            ends.check_invariants();
        }
    }
}
