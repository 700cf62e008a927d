//! The options of the command line.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::moves::Move;

/// Usage of the program.
pub const USAGE: &str =
    "usage: rps [--seed N] [--pause] [--players N] [--player PRIORITY:GAMES]... [--moves rock,paper,...]";

/// Maximum number of players.
pub const MAX_PLAYERS: usize = 32;
/// Maximum number of games that a player can want.
pub const MAX_GAMES: u32 = 99;
/// Default number of players.
const DEFAULT_PLAYERS: usize = 3;

/// One player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Player {
    /// Priority of its task.
    pub priority: i32,
    /// Number of games that it wants to play.
    pub games: u32,
}

impl Player {
    /// The default player.
    pub const DEFAULT: Player = Player { priority: 1, games: 3 };
}

/// The parameters of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Seed of the moves.
    pub seed: u64,
    /// Set to wait for a key after each game.
    pub pause: bool,
    /// The players.
    pub players: Vec<Player>,
    /// The first moves.
    pub moves: Vec<Move>,
}

/// Parses the arguments after the program's name. Players can have priorities up to `max_priority`. The error is a line
/// for the user.
pub fn parse<'a>(arguments: impl IntoIterator<Item = &'a str>, max_priority: i32) -> Result<Options, String> {
    let mut options = Options { seed: 0, pause: false, players: Vec::new(), moves: Vec::new() };
    let mut count = None;
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("rps: {argument} needs a value; {USAGE}"));
        match argument {
            "--seed" => options.seed = number(argument, value()?, u64::MAX)?,
            "--pause" => options.pause = true,
            "--players" => count = Some(number(argument, value()?, MAX_PLAYERS as u64)? as usize),
            "--player" => options.players.push(player(value()?, max_priority)?),
            "--moves" => options.moves = moves(value()?)?,
            _ => return Err(format!("rps: unknown argument '{argument}'; {USAGE}")),
        }
    }
    let given = options.players.len();
    let count = count.unwrap_or(if given > 0 { given } else { DEFAULT_PLAYERS });
    if given > count || count > MAX_PLAYERS {
        let most = count.min(MAX_PLAYERS);
        return Err(format!("rps: {given} times --player, but there are at most {most} players"));
    }
    options.players.resize(count, Player::DEFAULT);
    Ok(options)
}

/// Parses a number from 0 to `max`.
fn number(name: &str, text: &str, max: u64) -> Result<u64, String> {
    match text.parse() {
        Ok(value) if value <= max => Ok(value),
        _ => Err(format!("rps: {name} takes a number from 0 to {max}, not '{text}'")),
    }
}

/// Parses `PRIORITY:GAMES`.
fn player(text: &str, max_priority: i32) -> Result<Player, String> {
    let parsed = text
        .split_once(':')
        .and_then(|(priority, games)| Some(Player { priority: priority.parse().ok()?, games: games.parse().ok()? }));
    match parsed {
        Some(player) if (0..=max_priority).contains(&player.priority) && player.games <= MAX_GAMES => Ok(player),
        _ => Err(format!(
            "rps: --player takes PRIORITY:GAMES, at most {max_priority}:{MAX_GAMES} here, for example 1:3, not '{text}'"
        )),
    }
}

/// Parses names of moves, with commas between them.
fn moves(text: &str) -> Result<Vec<Move>, String> {
    let choice = |name: &str| {
        Move::from_name(name)
            .ok_or_else(|| format!("rps: --moves takes rock, paper and scissors with commas between, not '{name}'"))
    };
    text.split(',').map(choice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses arguments with spaces between them.
    fn parsed(line: &str) -> Result<Options, String> {
        parse(line.split_whitespace(), 9)
    }

    #[test]
    fn the_default_is_three_ordinary_players() {
        let options = Options { seed: 0, pause: false, players: [Player::DEFAULT; 3].to_vec(), moves: Vec::new() };
        assert_eq!(parsed(""), Ok(options));
    }

    #[test]
    fn all_options_are_parsed() {
        let options = Options {
            seed: 7,
            pause: true,
            players: [Player { priority: 9, games: 99 }, Player { priority: 0, games: 0 }, Player::DEFAULT].to_vec(),
            moves: [Move::Paper, Move::Rock].to_vec(),
        };
        let line = "--moves paper,rock --seed 7 --pause --player 9:99 --players 3 --player 0:0";
        assert_eq!(parsed(line), Ok(options));
        assert_eq!(parsed("--players 0").unwrap().players, []);
        assert_eq!(parsed("--player 2:5").unwrap().players, [Player { priority: 2, games: 5 }]);
    }

    #[test]
    fn every_mistake_has_one_helpful_line() {
        let mistakes = [
            ("--sed 1", "unknown argument '--sed'"),
            ("7", "unknown argument '7'"),
            ("--seed", "--seed needs a value"),
            ("--seed -1", "--seed takes a number from 0 to"),
            ("--players 33", "--players takes a number from 0 to 32, not '33'"),
            ("--players many", "not 'many'"),
            ("--player 1", "--player takes PRIORITY:GAMES"),
            ("--player 10:1", "at most 9:99 here"),
            ("--player -1:1", "not '-1:1'"),
            ("--player 1:100", "at most 9:99 here"),
            ("--players 1 --player 1:1 --player 1:1", "2 times --player, but there are at most 1 players"),
            ("--moves rock,stone", "not 'stone'"),
            ("--moves rock,", "not ''"),
        ];
        for (line, part) in mistakes {
            let error = parsed(line).unwrap_err();
            assert!(error.contains(part) && !error.contains('\n'), "{line}: {error}");
        }
        let many = "--player 1:1 ".repeat(33);
        assert!(parsed(&many).unwrap_err().contains("at most 32 players"));
    }
}
