//! The rules of the server, request by request.

use std::collections::HashMap;
use std::fmt;

use proptest::prelude::*;
use tench_rps::moves::Move::{self, Paper, Rock, Scissors};
use tench_rps::protocol::Outcome::{Draw, Lost, Won};
use tench_rps::protocol::Request::{Play, Quit, ServerConfig, Signup};
use tench_rps::protocol::Response::{Ack, OtherPlayerQuit, OutOfSpace, Played, Refused};
use tench_rps::protocol::{Request, Response};
use tench_rps::server::{Effects, Rules};
use tench_srr::Tid;

/// An effect of the rules.
#[derive(Clone, Debug, PartialEq)]
enum Event {
    Reply(u32, Response),
    Say(String),
    Over,
}

/// A record of the effects.
#[derive(Default)]
struct Record(Vec<Event>);

impl Effects for Record {
    fn reply(&mut self, player: Tid, response: Response) {
        self.0.push(Event::Reply(player.0, response));
    }

    fn say(&mut self, line: fmt::Arguments<'_>) {
        self.0.push(Event::Say(line.to_string()));
    }

    fn game_over(&mut self) {
        self.0.push(Event::Over);
    }
}

/// The rules under test.
struct Table(Rules);

impl Table {
    fn new(games: usize) -> Table {
        Table(Rules::new(games))
    }

    /// Makes a request. Returns its effects.
    fn on(&mut self, player: u32, request: Request) -> Vec<Event> {
        let mut record = Record::default();
        self.0.handle(Tid(player), Some(request), &mut record);
        record.0
    }

    /// Makes a request. Returns the replies.
    fn replies(&mut self, player: u32, request: Request) -> Vec<(u32, Response)> {
        let reply = |event| if let Event::Reply(player, response) = event { Some((player, response)) } else { None };
        self.on(player, request).into_iter().filter_map(reply).collect()
    }

    /// Lets two players sign up.
    fn pair(&mut self, first: u32, second: u32) {
        assert_eq!(self.replies(first, Signup), []);
        assert_eq!(self.replies(second, Signup), [(second, Ack), (first, Ack)]);
    }
}

fn say(text: &str) -> Event {
    Event::Say(text.to_string())
}

#[test]
fn the_second_player_is_matched_with_the_first() {
    let mut table = Table::new(4);
    assert_eq!(table.on(5, Signup), []);
    let said = say("[RPSServer] matching tids 4 and 5");
    assert_eq!(table.on(4, Signup), [said, Event::Reply(4, Ack), Event::Reply(5, Ack)]);
    assert_eq!(table.on(6, Signup), [], "the queue is empty again");
}

#[test]
fn every_pair_of_moves() {
    let mut table = Table::new(4);
    table.pair(1, 2);
    for (of_2, of_1, to_2, to_1) in [
        (Rock, Rock, Draw, Draw),
        (Rock, Paper, Lost, Won),
        (Rock, Scissors, Won, Lost),
        (Paper, Rock, Won, Lost),
        (Paper, Paper, Draw, Draw),
        (Paper, Scissors, Lost, Won),
        (Scissors, Rock, Lost, Won),
        (Scissors, Paper, Won, Lost),
        (Scissors, Scissors, Draw, Draw),
    ] {
        let expected = [Event::Reply(2, Played(to_2)), Event::Reply(1, Played(to_1)), Event::Over];
        assert_eq!(table.on(2, Play(of_2)), []);
        assert_eq!(table.on(1, Play(of_1)), expected, "the newer player is told first, whoever moved last");
        assert_eq!(table.on(1, Play(of_1)), []);
        assert_eq!(table.on(2, Play(of_2)), expected);
    }
}

#[test]
fn a_swap_preserves_the_move_of_the_player_who_stays() {
    for (quits, stays) in [(1, 2), (2, 1)] {
        let mut table = Table::new(4);
        table.pair(1, 2);
        assert_eq!(table.on(3, Signup), []);
        assert_eq!(table.on(stays, Play(Rock)), []);
        let said = format!("[RPSServer] tid {quits} quit, but tid 3 is waiting. Matching tids {stays} and 3");
        assert_eq!(table.on(quits, Quit), [say(&said), Event::Reply(3, Ack), Event::Reply(quits, Ack)]);
        let expected = [(stays, Played(Won)), (3, Played(Lost))];
        assert_eq!(table.replies(3, Play(Scissors)), expected);
    }
}

#[test]
fn a_swap_forgets_the_move_of_the_player_who_goes() {
    let mut table = Table::new(4);
    table.pair(1, 2);
    assert_eq!(table.on(3, Signup), []);
    assert_eq!(table.on(1, Play(Rock)), []);
    table.on(1, Quit);
    assert_eq!(table.on(3, Play(Paper)), []);
    assert_eq!(table.replies(2, Play(Paper)), [(2, Played(Draw)), (3, Played(Draw))]);
}

#[test]
fn the_opponent_is_told_of_a_quit_when_no_player_waits() {
    let said = say("[RPSServer] tid 1 quit, but no players are waiting.");
    let mut table = Table::new(4);
    table.pair(1, 2);
    assert_eq!(table.on(1, Quit), [said.clone(), Event::Reply(1, Ack)]);
    assert_eq!(table.replies(2, Play(Rock)), [(2, OtherPlayerQuit)], "with its next move");

    let mut table = Table::new(4);
    table.pair(1, 2);
    assert_eq!(table.on(2, Play(Rock)), []);
    let expected = [said, Event::Reply(2, OtherPlayerQuit), Event::Reply(1, Ack)];
    assert_eq!(table.on(1, Quit), expected, "at once if it has moved already");
}

#[test]
fn a_player_without_a_game_may_quit_and_sign_up_again() {
    let mut table = Table::new(1);
    assert_eq!(table.on(9, Quit), [Event::Reply(9, Ack)]);
    table.pair(1, 2);
    table.on(1, Quit);
    assert_eq!(table.on(2, Quit), [Event::Reply(2, Ack)]);
    table.pair(2, 1);
}

#[test]
fn out_of_space() {
    let mut table = Table::new(1);
    table.pair(1, 2);
    assert_eq!(table.on(3, Signup), []);
    assert_eq!(table.on(4, Signup), [Event::Reply(4, OutOfSpace), Event::Reply(3, OutOfSpace)]);
    assert_eq!(table.on(5, Signup), [], "the queue is empty again");
    table.on(1, Play(Rock));
    assert_eq!(table.replies(2, Play(Rock)), [(2, Played(Draw)), (1, Played(Draw))], "and the game goes on");
}

#[test]
fn senseless_requests_are_refused() {
    let mut table = Table::new(2);
    let mut record = Record::default();
    table.0.handle(Tid(1), None, &mut record);
    assert_eq!(record.0, [Event::Reply(1, Refused)]);
    assert_eq!(table.on(1, ServerConfig { pause: true }), [Event::Reply(1, Refused)]);
    table.pair(1, 2);
    assert_eq!(table.on(1, Signup), [Event::Reply(1, Refused)], "it plays already");
    assert_eq!(table.on(3, Signup), []);
    assert_eq!(table.on(3, Signup), [Event::Reply(3, Refused)], "it waits already");
}

proptest! {
    /// Checks arbitrary requests of players that wait for their replies, as the primitives make them: each gets exactly
    /// one reply, at most one player waits for an opponent, and results come in pairs that agree.
    #[test]
    fn every_request_gets_one_reply(steps in proptest::collection::vec((0..9u32, 0..5u8), 1..300)) {
        let mut table = Table::new(3);
        let mut waiting: HashMap<u32, Request> = HashMap::new();
        for (player, what) in steps {
            if waiting.contains_key(&player) {
                continue;
            }
            let request = match what {
                0 => Quit,
                1 => Signup,
                code => Play(Move::from_code(code - 1).unwrap()),
            };
            waiting.insert(player, request);
            let replies = table.replies(player, request);
            for (to, response) in &replies {
                let of = waiting.remove(to);
                prop_assert!(of.is_some(), "{to} was not waiting");
                if matches!(response, Played(_)) {
                    prop_assert!(matches!(of, Some(Play(_))));
                }
            }
            let outcomes: Vec<_> = replies.iter().filter_map(|(_, r)| if let Played(o) = r { Some(*o) } else { None }).collect();
            prop_assert!(matches!(outcomes[..], [] | [Draw, Draw] | [Won, Lost] | [Lost, Won]));
            let queued = waiting.values().filter(|request| **request == Signup).count();
            prop_assert!(queued <= 1, "{queued} wait for an opponent");
            prop_assert!(!waiting.values().any(|request| *request == Quit));
        }
    }
}
