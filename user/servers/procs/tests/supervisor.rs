//! Tests the restarting of servers against a model.

use proptest::prelude::*;
use tench_procs::supervision::supervisor::{MAX_WAITERS, Policy, State, Supervisor, Verdict};
use tench_quota::Client;

const POLICY: Policy = Policy { attempts: 3, delay: 10, window: 1000 };

fn supervisor() -> Supervisor<(), u32> {
    let mut supervisor = Supervisor::default();
    supervisor.add("console", (), POLICY, 5).unwrap();
    supervisor
}

#[test]
fn delays_double_and_attempts_are_limited() {
    let mut supervisor = supervisor();
    assert_eq!(supervisor.ended(4, 0).0, Verdict::NotSupervised);
    let mut now = 100;
    for (process, delay) in [(5, 10), (6, 20), (7, 40)] {
        assert_eq!(supervisor.ended(process, now).0, Verdict::Again("console"));
        assert_eq!(supervisor.next_deadline(), Some(now + delay));
        assert_eq!(supervisor.due(now + delay - 1), None);
        now += delay;
        assert_eq!(supervisor.due(now), Some("console"));
        assert!(supervisor.started("console", process + 1).is_some());
        assert_eq!(supervisor.due(now), None);
    }
    assert!(supervisor.find("console").unwrap().wait(Client::alone(9), || Some(90)));
    assert_eq!(supervisor.ended(8, now).0, Verdict::GivenUp("console", vec![(Client::alone(9), 90)]));
    assert_eq!(supervisor.next_deadline(), None);
}

#[test]
fn ends_long_ago_do_not_count() {
    let mut supervisor = supervisor();
    for (process, now) in (5..100).zip((0..).step_by(500)) {
        assert_eq!(supervisor.ended(process, now).0, Verdict::Again("console"), "at {now}");
        supervisor.started("console", process + 1);
    }
}

#[test]
fn waiting_threads_get_one_reply_and_ended_ones_none() {
    let mut supervisor = supervisor();
    supervisor.ended(5, 0);
    let service = supervisor.find("console").unwrap();
    for (process, waiter) in [(20, 1), (21, 2), (20, 3)] {
        assert!(service.wait(Client::alone(process), || Some(waiter)));
    }
    assert!(!service.wait(Client::alone(22), || None), "it could not be kept");
    service.miss(Client::alone(30));
    assert_eq!(supervisor.ended(20, 1).1, [1, 3]);
    let started = supervisor.started("console", 6).unwrap();
    assert_eq!((started.waiters, started.missed), (vec![(Client::alone(21), 2)], vec![Client::alone(30)]));
    assert!(supervisor.started("console", 6).unwrap().waiters.is_empty());
}

#[test]
fn a_server_that_was_given_up_gathers_nothing() {
    let mut supervisor = supervisor();
    for process in 5..=8 {
        supervisor.ended(process, 0);
        supervisor.find("console").unwrap().miss(Client::alone(100 + process));
        if process < 8 {
            assert_eq!(supervisor.started("console", process + 1).unwrap().missed, [Client::alone(100 + process)]);
        }
    }
    assert_eq!(supervisor.state("console"), Some(State::GivenUp));
    assert!(supervisor.started("console", 9).unwrap().missed.is_empty());
}

#[test]
fn so_many_threads_wait_and_no_more() {
    let mut supervisor = supervisor();
    supervisor.ended(5, 0);
    let service = supervisor.find("console").unwrap();
    for waiter in 0..MAX_WAITERS as u32 {
        assert!(service.wait(Client::alone(20 + u64::from(waiter)), || Some(waiter)));
    }
    assert!(!service.wait(Client::alone(19), || unreachable!("nobody is kept whom there is no room for")));
    assert_eq!(supervisor.ended(20, 1).1.len(), 1);
    let service = supervisor.find("console").unwrap();
    assert!(
        service.wait(Client::alone(19), || Some(0))
            && !service.wait(Client::alone(18), || unreachable!("there is no room again"))
    );
}

proptest! {
    #[test]
    fn never_more_starts_in_a_window_than_allowed(steps in prop::collection::vec((0..4u8, 0..400u64), 1..200)) {
        let mut supervisor = supervisor();
        let (mut now, mut process, mut starts, mut waiting) = (0, 5, Vec::<u64>::new(), 0);
        for (step, pause) in steps {
            now += pause;
            match (step, supervisor.state("console").unwrap()) {
                (0, State::Up(up)) => {
                    prop_assert_eq!(up, process);
                    if let (Verdict::GivenUp(_, in_vain), _) = supervisor.ended(up, now) {
                        waiting -= in_vain.len();
                    }
                }
                (1, State::Down(_)) => {
                    prop_assert!(supervisor.find("console").unwrap().wait(Client::alone(99), || Some(7)));
                    waiting += 1;
                }
                (2, State::Down(until)) => {
                    prop_assert_eq!(supervisor.due(now).is_some(), until <= now);
                    if until <= now {
                        process += 1;
                        starts.push(now);
                        waiting -= supervisor.started("console", process).unwrap().waiters.len();
                    }
                }
                (3, State::Down(until)) if until <= now => waiting -= supervisor.not_started("console", now).len(),
                _ => {}
            }
            let recent = starts.iter().filter(|start| now - **start < POLICY.window).count();
            prop_assert!(recent <= POLICY.attempts as usize + 1);
        }
        waiting -= supervisor.started("console", 0).unwrap().waiters.len();
        prop_assert_eq!(waiting, 0);
    }
}

#[test]
fn a_family_leaves_capacity_for_others_that_wait() {
    let mut supervisor = supervisor();
    supervisor.ended(5, 0);
    let service = supervisor.find("console").unwrap();
    let of_family = |process| Client { process, family: 1 << 38 };
    let waiting = (0..MAX_WAITERS as u32)
        .filter(|waiter| service.wait(of_family(20 + u64::from(*waiter) % 12), || Some(*waiter)));
    assert_eq!(waiting.count(), MAX_WAITERS / 2);
    assert!(service.wait(Client::alone(20), || Some(0)), "somebody else");
}

#[test]
fn a_process_with_many_threads_leaves_capacity_for_others_that_wait() {
    let mut supervisor = supervisor();
    supervisor.ended(5, 0);
    let service = supervisor.find("console").unwrap();
    let waiting = (0..MAX_WAITERS as u32).filter(|waiter| service.wait(Client::alone(20), || Some(*waiter))).count();
    assert_eq!(waiting, MAX_WAITERS / 2);
    assert!(service.wait(Client::alone(21), || Some(0)));
}

/// Three servers, each with a policy of its own.
const POLICIES: [(&str, Policy); 3] = [
    ("console", Policy { attempts: 3, delay: 10, window: 1000 }),
    ("names", Policy { attempts: 1, delay: 50, window: 300 }),
    ("clock", Policy { attempts: 6, delay: 1, window: 5000 }),
];

/// A server in the model: its state, the times at which it ended or failed to start, its waiters, and the ends that it
/// missed.
struct Model {
    policy: Policy,
    state: State,
    ends: Vec<u64>,
    waiters: Vec<(Client, u32)>,
    missed: Vec<Client>,
}

impl Model {
    /// Records an end or a failed start. Returns the clients that wait in vain.
    fn fail(&mut self, now: u64) -> Vec<(Client, u32)> {
        self.ends.push(now);
        let recent = self.ends.iter().filter(|end| now - **end < self.policy.window).count() as u32;
        if recent > self.policy.attempts {
            self.state = State::GivenUp;
            self.missed.clear();
            return std::mem::take(&mut self.waiters);
        }
        self.state = State::Down(now + self.policy.delay * (1 << (recent - 1)));
        Vec::new()
    }
}

proptest! {
    /// The supervisor agrees with the model, for each server separately, and every waiter gets a reply in the end.
    #[test]
    fn each_server_has_its_policy(steps in prop::collection::vec((0..7u8, 0..3usize, 0..300u64), 1..300)) {
        let mut supervisor = Supervisor::<(), u32>::default();
        let mut models = Vec::new();
        for (number, (name, policy)) in POLICIES.into_iter().enumerate() {
            let process = 5 + number as u64;
            supervisor.add(name, (), policy, process).unwrap();
            let state = State::Up(process);
            models.push(Model { policy, state, ends: Vec::new(), waiters: Vec::new(), missed: Vec::new() });
        }
        let (mut now, mut last, mut replies) = (0, 100, 0);
        for (step, which, pause) in steps {
            now += pause / 3;
            let (name, _) = POLICIES[which];
            let model = &mut models[which];
            match (step, model.state) {
                (0, State::Up(process)) => {
                    let in_vain = model.fail(now);
                    let expected = match model.state {
                        State::GivenUp => Verdict::GivenUp(name, in_vain),
                        _ => Verdict::Again(name),
                    };
                    prop_assert_eq!(supervisor.ended(process, now), (expected, vec![]));
                }
                (1, State::Down(_)) => {
                    replies += 1;
                    prop_assert!(supervisor.find(name).unwrap().wait(Client::alone(20 + pause % 4), || Some(replies)));
                    model.waiters.push((Client::alone(20 + pause % 4), replies));
                }
                (2, State::Down(_) | State::Up(_)) => {
                    supervisor.find(name).unwrap().miss(Client::alone(pause));
                    model.missed.push(Client::alone(pause));
                }
                (3 | 4, State::Down(until)) if until <= now && step == 3 => {
                    last += 1;
                    let started = supervisor.started(name, last).unwrap();
                    prop_assert_eq!(started.waiters, std::mem::take(&mut model.waiters));
                    prop_assert_eq!(started.missed, std::mem::take(&mut model.missed));
                    model.state = State::Up(last);
                }
                (4, State::Down(until)) if until <= now => {
                    let in_vain = model.fail(now);
                    prop_assert_eq!(supervisor.not_started(name, now), in_vain);
                }
                (5, _) => {
                    // A client ends: its waits end without a reply.
                    let client = 20 + pause % 4;
                    let mut gone = Vec::new();
                    for model in &mut models {
                        gone.extend(model.waiters.extract_if(.., |(one, _)| one.process == client).map(|(_, reply)| reply));
                    }
                    prop_assert_eq!(supervisor.ended(client, now), (Verdict::NotSupervised, gone));
                }
                (6, _) => {
                    // All running servers are told which ends they missed, in turn.
                    let wants = |model: &Model| matches!(model.state, State::Up(_)) && !model.missed.is_empty();
                    let mut notified = Vec::new();
                    for _ in 0..models.iter().filter(|model| wants(model)).count() {
                        let (name, process) = supervisor.missed().unwrap();
                        let place = POLICIES.iter().position(|(other, _)| *other == name).unwrap();
                        prop_assert!(wants(&models[place]) && !notified.contains(&place));
                        prop_assert_eq!(models[place].missed.remove(0), process);
                        notified.push(place);
                    }
                    prop_assert!(models.iter().any(wants) || supervisor.missed().is_none());
                }
                _ => {}
            }
            for (model, (name, _)) in models.iter().zip(POLICIES) {
                prop_assert_eq!(supervisor.state(name), Some(model.state));
                prop_assert!(model.state != State::GivenUp || model.waiters.is_empty(), "somebody waits for ever");
            }
            let deadlines = models.iter().filter_map(|model| match model.state {
                State::Down(until) => Some(until),
                _ => None,
            });
            let next = deadlines.min();
            prop_assert_eq!(supervisor.next_deadline(), next);
            prop_assert_eq!(supervisor.due(now).is_some(), next.is_some_and(|next| next <= now));
        }
        // A client still waits only for a server with a known restart time.
        for (model, (name, _)) in models.iter_mut().zip(POLICIES) {
            if let State::Down(until) = model.state {
                prop_assert!(supervisor.due(until).is_some());
                prop_assert_eq!(supervisor.started(name, 999).unwrap().waiters, std::mem::take(&mut model.waiters));
            }
            prop_assert!(model.waiters.is_empty());
        }
    }
}

/// Five requests that named one server twice once kept the process server busy for ever: it looked for the server whose
/// time had come, and started the first of that name.
#[test]
fn a_name_is_supervised_once() {
    let mut supervisor = Supervisor::<u8, u32>::default();
    supervisor.add("console", 1, POLICY, 5).unwrap();
    for process in 6..11 {
        assert_eq!(supervisor.add("console", 2, POLICY, process), Err(2));
    }
    // The end of these processes has no consequence, whatever happens to the server.
    assert_eq!(supervisor.ended(7, 0).0, Verdict::NotSupervised);
    assert_eq!(supervisor.ended(5, 0).0, Verdict::Again("console"));
    assert_eq!(supervisor.add("console", 3, POLICY, 12), Err(3), "its name is taken while it is started again");
    assert_eq!(supervisor.due(1000), Some("console"));
    supervisor.started("console", 13).unwrap();
    assert_eq!(supervisor.due(1000), None, "what was due has been done");
    for process in 13.. {
        if let Verdict::GivenUp(..) = supervisor.ended(process, 0).0 {
            break;
        }
        supervisor.started("console", process + 1).unwrap();
    }
    assert_eq!(supervisor.add("console", 4, POLICY, 99), Err(4), "nobody takes the place of one that was given up");
}
