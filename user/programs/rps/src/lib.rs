//! Rock-paper-scissors, by R4's rules: a server that matches players, and players that are tasks.
//!
//! ```text
//!   first task ── creates ──▶ name server (tid 1), server (tid 2), a client for each player (tid 3…)
//!
//!   client ── who is RPSServer? ──▶ name server
//!   client ── signup ──▶ server     replies when there is an opponent
//!   client ── play ────▶ server     replies when both have played: won, lost, draw
//!   client ── quit ────▶ server     replies at once; a waiting player takes the place
//! ```
//!
//! The rules are in `server`, which knows nothing of tasks but their identifiers; the players are in `client`; the
//! messages between them are in `protocol`, and the moves in `moves`. The same options always give the same transcript,
//! because [`tench_srr`] puts events in one order and because the moves are a list or come from a seed.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod client;
pub mod moves;
pub mod options;
pub mod protocol;
pub mod server;

use alloc::sync::Arc;

use tench_srr::{Ending, Error, Terminal, create, names, run, say, send};

use moves::Moves;
use options::Options;
use protocol::Request;

/// The name under which the server is found.
pub const SERVER_NAME: &str = "RPSServer";
/// Priority of the server, and of the name server.
pub const SERVER_PRIORITY: i32 = 0;
/// Priority of the first task, as in R4's kernel.
pub const FIRST_PRIORITY: i32 = 4;

/// Plays until all players have gone home.
/// Errors: those of [`run`].
pub fn play(terminal: impl Terminal + 'static, options: Options) -> Result<Ending, Error> {
    run(terminal, FIRST_PRIORITY, move || {
        if let Err(error) = first_task(&options) {
            say!("rps: cannot start: {error}");
        }
    })
}

/// Creates the servers and the players, and sends each its configuration.
fn first_task(options: &Options) -> Result<(), Error> {
    names::start()?;
    let server = create(SERVER_PRIORITY, server::serve)?;
    send(server, Request::ServerConfig { pause: options.pause }.encode().as_bytes(), &mut [])?;
    let moves = Arc::new(Moves::new(options.seed, &options.moves));
    for (player, id) in options.players.iter().zip(1..) {
        let moves = moves.clone();
        let client = create(player.priority, move || client::play(&moves))?;
        send(client, Request::PlayerConfig { games: player.games, id }.encode().as_bytes(), &mut [])?;
    }
    Ok(())
}
