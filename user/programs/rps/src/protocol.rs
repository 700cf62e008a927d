//! What travels between the server, the players and the first task: a byte that says what it is, and numbers.

use tench_srr::Tid;

use crate::moves::Move;

/// Bytes of the longest message.
pub const MAX_BYTES: usize = 9;

/// What somebody sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// First task to server: whether to wait for a key after each game.
    ServerConfig {
        /// Wait.
        pause: bool,
    },
    /// First task to client: who it is.
    PlayerConfig {
        /// How many games it wants to play.
        games: u32,
        /// Number of the player, from 1.
        id: u32,
    },
    /// Client to server: I want to play.
    Signup,
    /// Client to server: this is my move.
    Play(Move),
    /// Client to server: I have played enough.
    Quit,
}

/// How a game ended for the player who is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// Both showed the same.
    Draw = 0,
    /// The player won.
    Won = 1,
    /// The player lost.
    Lost = 2,
}

impl Outcome {
    /// How a game ends for somebody who shows `mine` against `other`.
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

/// What the server replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// The signup has an opponent; the quit is noted.
    Ack,
    /// A game is over.
    Played(Outcome),
    /// The opponent has gone, and nobody waits to take the place.
    OtherPlayerQuit,
    /// Every game is taken.
    OutOfSpace,
    /// The request makes no sense, or not now.
    Refused,
}

/// A message as bytes.
#[derive(Clone, Copy, Debug)]
pub struct Encoded {
    bytes: [u8; MAX_BYTES],
    length: usize,
}

impl Encoded {
    /// A message of these bytes.
    fn new(bytes: &[u8]) -> Encoded {
        let mut message = Encoded { bytes: [0; MAX_BYTES], length: bytes.len().min(MAX_BYTES) };
        message.bytes[..message.length].copy_from_slice(&bytes[..message.length]);
        message
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Request {
    /// As bytes.
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

    /// What bytes mean, if anything.
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
    /// As bytes.
    pub fn encode(self) -> Encoded {
        match self {
            Response::Ack => Encoded::new(&[0]),
            Response::Played(outcome) => Encoded::new(&[1, outcome as u8]),
            Response::OtherPlayerQuit => Encoded::new(&[2]),
            Response::OutOfSpace => Encoded::new(&[3]),
            Response::Refused => Encoded::new(&[4]),
        }
    }

    /// What bytes mean, if anything.
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
/// Errors: those of [`tench_srr::send`]. A response that nobody can read is `Refused`.
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
