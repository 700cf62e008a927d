//! The server: matches players, and decides games.
//!
//! One player can wait for an opponent. A game has two players or none; as soon as both have moved it is decided, and
//! begins again. When a player quits, the waiting player takes the place, and a move that the remaining player has made
//! already stays. When no player waits, the game ends, and the remaining player is told in the reply to the next move.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use tench_srr::{Tid, my_tid, print, receive, register_as, reply, say, wait_key, who_is};

use crate::SERVER_NAME;
use crate::moves::Move;
use crate::protocol::{MAX_BYTES, Outcome, Request, Response};

/// Maximum number of games at the same time.
pub const MAX_GAMES: usize = 32;

/// The effects of the rules.
pub trait Effects {
    /// Replies to a player.
    fn reply(&mut self, player: Tid, response: Response);
    /// Prints a line.
    fn say(&mut self, line: fmt::Arguments<'_>);
    /// Ends a game: both players have been told the result.
    fn game_over(&mut self);
}

/// A player of a game, with the move once it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seat {
    player: Tid,
    choice: Option<Move>,
}

/// The state of the rules.
#[derive(Debug)]
pub struct Rules {
    /// A player without an opponent.
    waiting: Option<Tid>,
    games: Vec<Option<[Seat; 2]>>,
}

impl Rules {
    /// Returns the state in which nobody plays; `games` games can take place at the same time.
    pub fn new(games: usize) -> Rules {
        Rules { waiting: None, games: vec![None; games] }
    }

    /// Carries out one request.
    pub fn handle(&mut self, player: Tid, request: Option<Request>, effects: &mut impl Effects) {
        match request {
            Some(Request::Signup) => self.signup(player, effects),
            Some(Request::Play(choice)) => self.play(player, choice, effects),
            Some(Request::Quit) => self.quit(player, effects),
            _ => effects.reply(player, Response::Refused),
        }
    }

    /// Returns the game of a player.
    fn game_of(&mut self, player: Tid) -> Option<&mut Option<[Seat; 2]>> {
        self.games.iter_mut().find(|game| game.is_some_and(|seats| seats.iter().any(|seat| seat.player == player)))
    }

    /// Signs a player up.
    fn signup(&mut self, player: Tid, effects: &mut impl Effects) {
        if self.waiting == Some(player) || self.game_of(player).is_some() {
            effects.reply(player, Response::Refused);
            return;
        }
        let Some(other) = self.waiting.take() else {
            self.waiting = Some(player);
            return;
        };
        let pair = [player, other];
        let response = match self.games.iter_mut().find(|game| game.is_none()) {
            Some(game) => {
                effects.say(format_args!("[{SERVER_NAME}] matching tids {player} and {other}"));
                *game = Some(pair.map(|player| Seat { player, choice: None }));
                Response::Ack
            }
            None => Response::OutOfSpace,
        };
        for player in pair {
            effects.reply(player, response);
        }
    }

    /// Makes a player's move.
    fn play(&mut self, player: Tid, choice: Move, effects: &mut impl Effects) {
        let Some(Some(seats)) = self.game_of(player) else {
            effects.reply(player, Response::OtherPlayerQuit);
            return;
        };
        for seat in seats.iter_mut().filter(|seat| seat.player == player) {
            seat.choice = Some(choice);
        }
        let [Seat { player: a, choice: Some(of_a) }, Seat { player: b, choice: Some(of_b) }] = *seats else { return };
        for seat in seats {
            seat.choice = None;
        }
        effects.reply(a, Response::Played(Outcome::of(of_a, of_b)));
        effects.reply(b, Response::Played(Outcome::of(of_b, of_a)));
        effects.game_over();
    }

    /// Lets a player quit.
    fn quit(&mut self, player: Tid, effects: &mut impl Effects) {
        let waiting = self.waiting;
        if let Some(game) = self.game_of(player)
            && let Some([a, b]) = *game
        {
            let remaining = if a.player == player { b } else { a };
            match waiting {
                Some(waiting) => {
                    effects.say(format_args!(
                        "[{SERVER_NAME}] tid {player} quit, but tid {waiting} is waiting. Matching tids {} and {waiting}",
                        remaining.player
                    ));
                    *game = Some([remaining, Seat { player: waiting, choice: None }]);
                    self.waiting = None;
                    effects.reply(waiting, Response::Ack);
                }
                None => {
                    effects.say(format_args!("[{SERVER_NAME}] tid {player} quit, but no players are waiting."));
                    *game = None;
                    // A player that has moved waits for the result, which would never come.
                    if remaining.choice.is_some() {
                        effects.reply(remaining.player, Response::OtherPlayerQuit);
                    }
                }
            }
        }
        effects.reply(player, Response::Ack);
    }
}

/// The effects in the running program, over the primitives.
struct Live {
    pause: bool,
}

impl Effects for Live {
    fn reply(&mut self, player: Tid, response: Response) {
        // A player waits for the reply until it has it, so this cannot fail; and if it could, it would be the player's
        // loss.
        let _ = reply(player, response.encode().as_bytes());
    }

    fn say(&mut self, line: fmt::Arguments<'_>) {
        print(format_args!("{line}\n"));
    }

    fn game_over(&mut self) {
        if self.pause {
            say!("~~~~~ press any key to continue ~~~~~~");
            wait_key();
        }
    }
}

/// Runs the server task. Serves for ever.
pub fn serve() {
    if register_as(SERVER_NAME).is_err() || who_is(SERVER_NAME) != Ok(my_tid()) {
        say!("[{SERVER_NAME}] cannot register with the name server");
        return;
    }
    let mut buffer = [0; MAX_BYTES];
    let (first, length) = receive(&mut buffer);
    let pause = matches!(Request::decode(&buffer[..length]), Some(Request::ServerConfig { pause: true }));
    let mut live = Live { pause };
    live.reply(first, Response::Ack);
    say!("[{SERVER_NAME}] accepting signups...");
    let mut rules = Rules::new(MAX_GAMES);
    loop {
        let (player, length) = receive(&mut buffer);
        rules.handle(player, Request::decode(&buffer[..length]), &mut live);
    }
}
