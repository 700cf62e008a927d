//! A player: signs up, plays as many games as it was told, and goes home.

use core::fmt;

use tench_srr::{my_tid, receive, reply, say, who_is};

use crate::SERVER_NAME;
use crate::moves::Moves;
use crate::protocol::{MAX_BYTES, Outcome, Request, Response, ask};

/// The prefix of each line that a player prints.
struct Prefix {
    tid: tench_srr::Tid,
    /// Number of the player; 0 until it knows.
    id: u32,
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            0 => write!(f, "[Client tid={} id=?]", self.tid),
            id => write!(f, "[Client tid={} id={id}]", self.tid),
        }
    }
}

/// The player's task.
pub fn play(moves: &Moves) {
    let mut me = Prefix { tid: my_tid(), id: 0 };
    say!("{me} waiting for player config");
    let mut buffer = [0; MAX_BYTES];
    let (parent, length) = receive(&mut buffer);
    let Some(Request::PlayerConfig { games, id }) = Request::decode(&buffer[..length]) else {
        say!("{me} that is no player config, exiting");
        return;
    };
    if reply(parent, Response::Ack.encode().as_bytes()).is_err() {
        say!("{me} nobody waits for this player, exiting");
        return;
    }
    say!("{me} received player config (num_games={games}, id={id})");
    me.id = id;
    say!("{me} querying nameserver for '{SERVER_NAME}'");
    let server = match who_is(SERVER_NAME) {
        Ok(server) => server,
        Err(error) => {
            say!("{me} found no {SERVER_NAME}: {error}");
            return;
        }
    };
    say!("{me} received reply from nameserver: {SERVER_NAME}={server}");
    if games_with(&me, server, games, moves) {
        say!("{me} sending quit");
        if let Err(error) = ask(server, Request::Quit) {
            say!("{me} could not quit: code={}", error.code());
        }
    }
    say!("{me} exiting");
}

/// Signs up and plays. Returns true if the player is still in a game and has to quit.
fn games_with(me: &Prefix, server: tench_srr::Tid, games: u32, moves: &Moves) -> bool {
    say!("{me} I want to play {games} games. Sending signup...");
    match ask(server, Request::Signup) {
        Ok(Response::Ack) => say!("{me} received signup ack"),
        Ok(Response::OutOfSpace) => {
            say!("{me} the server has no space for another game");
            return false;
        }
        Ok(_) => {
            say!("{me} received non-ack response");
            return false;
        }
        Err(error) => {
            say!("{me} could not sign up: code={}", error.code());
            return false;
        }
    }
    for left in (1..=games).rev() {
        let choice = moves.take();
        let noun = if left > 1 { "games" } else { "game" };
        say!("{me} I want to play {left} more {noun}. Sending {choice}...");
        match ask(server, Request::Play(choice)) {
            Ok(Response::Played(Outcome::Won)) => say!("{me} I won!"),
            Ok(Response::Played(Outcome::Lost)) => say!("{me} I lost :("),
            Ok(Response::Played(Outcome::Draw)) => say!("{me} it's a draw"),
            Ok(Response::OtherPlayerQuit) => {
                say!("{me} other player quit! I guess I'll go home :(");
                return false;
            }
            Ok(_) => {
                say!("{me} invalid reply from server");
                return false;
            }
            Err(error) => {
                say!("{me} could not send play message: code={}", error.code());
                return false;
            }
        }
    }
    true
}
