//! Messages between the server, the players and the first task: a byte for the kind, and numbers.

use tench_srr::Tid;

use crate::moves::Move;

/// Size of the longest message in bytes.
pub const MAX_BYTES: usize = 9;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Configures the server (first task to server).
    ServerConfig {
        /// Set to wait for a key after each game.
        pause: bool,
    },
    /// Configures a player (first task to client).
    PlayerConfig {
        /// Number of games that it wants to play.
        games: u32,
        /// Number of the player, from 1.
        id: u32,
    },
    /// Signs up (client to server).
    Signup,
    /// Makes a move (client to server).
    Play(Move),
    /// Quits (client to server).
    Quit,
}

/// The result of a game for one player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// Both players made the same move.
    Draw = 0,
    /// The player won.
    Won = 1,
    /// The player lost.
    Lost = 2,
}

impl Outcome {
    /// Returns the result for the player that makes the move `mine` against `other`.
    pub const fn of(mine: Move, other: Move) -> Outcome {
        if mine.beats(other) {
            Outcome::Won
        } else if other.beats(mine) {
            Outcome::Lost
        } else {
            Outcome::Draw
        }
    }
}

/// A response of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// The signup has an opponent; or the quit was accepted.
    Ack,
    /// A game is over.
    Played(Outcome),
    /// The opponent has gone, and no player waits to take the place.
    OtherPlayerQuit,
    /// Every game is taken.
    OutOfSpace,
    /// The request is invalid, or invalid now.
    Refused,
}

/// A message as bytes.
#[derive(Clone, Copy, Debug)]
pub struct Encoded {
    bytes: [u8; MAX_BYTES],
    length: usize,
}

impl Encoded {
    /// Returns a message of these bytes.
    fn new(bytes: &[u8]) -> Encoded {
        let mut message = Encoded { bytes: [0; MAX_BYTES], length: bytes.len().min(MAX_BYTES) };
        message.bytes[..message.length].copy_from_slice(&bytes[..message.length]);
        message
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Request {
    /// Returns the request as bytes.
    pub fn encode(self) -> Encoded {
        match self {
            Request::ServerConfig { pause } => Encoded::new(&[0, u8::from(pause)]),
            Request::PlayerConfig { games, id } => {
                let [a, b, c, d] = games.to_le_bytes();
                let [e, f, g, h] = id.to_le_bytes();
                Encoded::new(&[1, a, b, c, d, e, f, g, h])
            }
            Request::Signup => Encoded::new(&[2]),
            Request::Play(choice) => Encoded::new(&[3, choice as u8]),
            Request::Quit => Encoded::new(&[4]),
        }
    }

    /// Returns the request that bytes mean, if any.
    pub fn decode(bytes: &[u8]) -> Option<Request> {
        Some(match *bytes {
            [0, pause] => Request::ServerConfig { pause: pause != 0 },
            [1, a, b, c, d, e, f, g, h] => {
                Request::PlayerConfig { games: u32::from_le_bytes([a, b, c, d]), id: u32::from_le_bytes([e, f, g, h]) }
            }
            [2] => Request::Signup,
            [3, choice] => Request::Play(Move::from_code(choice)?),
            [4] => Request::Quit,
            _ => return None,
        })
    }
}

impl Response {
    /// Returns the response as bytes.
    pub fn encode(self) -> Encoded {
        match self {
            Response::Ack => Encoded::new(&[0]),
            Response::Played(outcome) => Encoded::new(&[1, outcome as u8]),
            Response::OtherPlayerQuit => Encoded::new(&[2]),
            Response::OutOfSpace => Encoded::new(&[3]),
            Response::Refused => Encoded::new(&[4]),
        }
    }

    /// Returns the response that bytes mean, if any.
    pub fn decode(bytes: &[u8]) -> Option<Response> {
        Some(match bytes {
            [0] => Response::Ack,
            [1, 0] => Response::Played(Outcome::Draw),
            [1, 1] => Response::Played(Outcome::Won),
            [1, 2] => Response::Played(Outcome::Lost),
            [2] => Response::OtherPlayerQuit,
            [3] => Response::OutOfSpace,
            [4] => Response::Refused,
            _ => return None,
        })
    }
}

/// Sends a request and waits for the response.
/// Errors: those of [`tench_srr::send`]. An invalid response is `Refused`.
pub fn ask(server: Tid, request: Request) -> Result<Response, tench_srr::Error> {
    let mut buffer = [0; MAX_BYTES];
    let length = tench_srr::send(server, request.encode().as_bytes(), &mut buffer)?;
    Ok(Response::decode(&buffer[..length]).unwrap_or(Response::Refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_lead_back() {
        let requests = [
            Request::ServerConfig { pause: true },
            Request::ServerConfig { pause: false },
            Request::PlayerConfig { games: 99, id: 32 },
            Request::PlayerConfig { games: u32::MAX, id: 1 },
            Request::Signup,
            Request::Play(Move::Rock),
            Request::Play(Move::Paper),
            Request::Play(Move::Scissors),
            Request::Quit,
        ];
        for request in requests {
            assert_eq!(Request::decode(request.encode().as_bytes()), Some(request));
        }
        let outcomes = [Outcome::Draw, Outcome::Won, Outcome::Lost].map(Response::Played);
        let others = [Response::Ack, Response::OtherPlayerQuit, Response::OutOfSpace, Response::Refused];
        for response in outcomes.into_iter().chain(others) {
            assert_eq!(Response::decode(response.encode().as_bytes()), Some(response));
        }
    }

    #[test]
    fn nonsense_means_nothing() {
        for bytes in [&[][..], &[0], &[1, 2, 3], &[3], &[3, 0], &[3, 4], &[2, 0], &[9]] {
            assert_eq!(Request::decode(bytes), None, "{bytes:?}");
        }
        for bytes in [&[][..], &[1], &[1, 3], &[0, 0], &[5]] {
            assert_eq!(Response::decode(bytes), None, "{bytes:?}");
        }
    }
}
