//! Test cases of events and the clock server. Where real time passes, a case needs no more than some milliseconds for
//! all that it does between two ticks.

use super::Case;
use crate::{CLOCK_EVENT, EVENTS, Error, await_event, clock, create, idle_share, names, receive, reply, ticks, who_is};

/// The cases.
pub const CASES: &[Case] = &[
    Case { name: "events come in time", priority: 3, first: events, expected: "later right later right ", waiting: 0 },
    Case {
        name: "an event has one waiter, and there is only one",
        priority: 5,
        first: wrong_events,
        expected: "Err(-1) Err(-1) Err(-2) came ",
        waiting: 0,
    },
    Case {
        name: "delays end in the order of times, and equal ones in that of arrival",
        priority: 5,
        first: delays,
        expected: "made a b c d e ",
        waiting: 2,
    },
    Case {
        name: "a time in the past is no delay, and a negative one is refused",
        priority: 3,
        first: past_times,
        expected: "Ok(()) Ok(()) Ok(()) Err(-2) Err(-2) true 2 ",
        waiting: 0,
    },
    Case {
        name: "who is no clock server is -1",
        priority: 3,
        first: no_clock,
        expected: "Err(-1) Err(-1) Err(-1) Err(-1) ",
        waiting: 0,
    },
    Case {
        name: "a clock server that cannot have the event says so",
        priority: 3,
        first: taken_event,
        expected: "Err(-2) Ok(()) came ",
        waiting: 0,
    },
    Case {
        name: "while all wait for a time, nobody is busy",
        priority: 3,
        first: idling,
        expected: "true true ",
        waiting: 2,
    },
    Case { name: "a clock has a name", priority: 3, first: named_clock, expected: "true Ok(()) ", waiting: 0 },
];

fn events() {
    for _ in 0..2 {
        let (before, time) = (ticks(), await_event(CLOCK_EVENT).unwrap());
        show!("{}", if time > before { "later" } else { "not later" });
        show!("{}", if ticks() >= time { "right" } else { "wrong" });
    }
}

fn wrong_events() {
    create(6, || {
        await_event(CLOCK_EVENT).unwrap();
        show!("came");
    })
    .unwrap();
    for event in [-1, EVENTS, CLOCK_EVENT] {
        show!("{:?}", await_event(event).map(|_| ()).map_err(Error::code));
    }
}

fn delays() {
    let server = clock::start(8, None).unwrap();
    // All delays count from one time, however long it takes to create the tasks.
    let now = clock::time(server).unwrap() as i32;
    for (name, delay) in [("d", 4), ("b", 3), ("a", 2), ("c", 3), ("e", 4)] {
        create(6, move || {
            let time = clock::delay_until(server, now + delay).unwrap();
            assert!(time >= (now + delay) as u64, "too early");
            show!("{name}");
        })
        .unwrap();
    }
    show!("made");
}

fn past_times() {
    let server = clock::start(5, None).unwrap();
    let nothing = |result: Result<u64, Error>| result.map(|_| ()).map_err(Error::code);
    show!("{:?}", nothing(clock::delay(server, 0)));
    show!("{:?}", nothing(clock::delay(server, 2)));
    show!("{:?}", nothing(clock::delay_until(server, 1)));
    show!("{:?}", nothing(clock::delay(server, -1)));
    show!("{:?}", nothing(clock::delay_until(server, i32::MIN)));
    show!("{}", clock::time(server).unwrap() >= 2);
    // A task that waits for ever continues when the server ends.
    create(4, move || _ = clock::delay(server, i32::MAX)).unwrap();
    clock::shutdown(server).unwrap();
    show!("{}", clock::time(server).map_err(Error::code).unwrap_err().abs() + 1);
}

fn no_clock() {
    let gone = create(5, || ()).unwrap();
    let other = create(5, || {
        for _ in 0..3 {
            let (tid, _) = receive(&mut []);
            reply(tid, b"no clock").unwrap();
        }
    })
    .unwrap();
    show!("{:?}", clock::time(gone).map_err(Error::code));
    show!("{:?}", clock::time(other).map_err(Error::code));
    show!("{:?}", clock::delay(other, 1).map_err(Error::code));
    show!("{:?}", clock::delay_until(other, 1).map_err(Error::code));
}

fn taken_event() {
    let server = clock::start(5, None).unwrap();
    create(6, || {
        await_event(CLOCK_EVENT).unwrap();
        show!("came");
    })
    .unwrap();
    show!("{:?}", clock::delay(server, 1000).map(|_| ()).map_err(Error::code));
    show!("{:?}", clock::shutdown(server));
}

fn idling() {
    let server = clock::start(5, None).unwrap();
    show!("{}", idle_share() <= 1000);
    clock::delay(server, 20).unwrap();
    show!("{}", (900..=1000).contains(&idle_share()));
}

fn named_clock() {
    names::start().unwrap();
    let server = clock::start(5, Some("clock")).unwrap();
    show!("{}", who_is("clock") == Ok(server));
    clock::shutdown(server).unwrap();
    show!("{:?}", names::shutdown());
}
