//! A channel both of whose sides are played by one thread, which never sleeps.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;

use tench::time::instructions;
use tench_channel::{Calls, Frame, Incoming, Line, Notifier, Refused, Request, Side};

use super::{TOGETHER, by_number};
use crate::support::{figure, problem};

/// Lines of the channel: 16 KiB, as between monitors.
pub const LINES: usize = 256;
/// Maximum number of requests in flight.
pub const LIMIT: u32 = 64;
/// Number of round trips that a mean is taken of.
pub const TIMES: u64 = 64;
/// The longest message that is sent: 4 KiB.
pub const WORDS: [u64; 512] = [7; 512];
/// Words of a line.
pub const ONE_LINE: usize = 7;
/// Words of messages that are sent one after another.
const LENGTHS: [usize; 5] = [1, ONE_LINE, ONE_LINE + 1, 64, 512];
/// Maximum number of polls of both sides for one round trip.
const TURNS: u64 = 16;
/// Number of round trips before those that count.
pub const WARM_UP: u64 = 8;

/// A waker that does nothing, since no side sleeps.
#[derive(Clone, Copy)]
struct Silent;

impl Notifier for Silent {
    fn notify(&self) {}
}

type Channel<'m> = Box<Calls<Frame<'m>, Silent>>;

/// Makes both sides of a channel.
fn channel(lines: &[Line]) -> Result<[Channel<'_>; 2], String> {
    let open = |side| Calls::open(&Frame::of(lines), side, Silent, LIMIT).map(Box::new);
    match (open(Side::First), open(Side::Second)) {
        (Ok(first), Ok(second)) => Ok([first, second]),
        _ => Err("the channel could not be opened".into()),
    }
}

/// Runs the experiment.
pub fn run() -> Result<(), String> {
    let lines = lines();
    let [mut client, mut server] = channel(&lines[..])?;
    for words in LENGTHS {
        figure(&format!("poll_{words}"), trips(&mut client, &mut server, words, 1)?);
    }
    for together in TOGETHER {
        by_number("poll_7", together, trips(&mut client, &mut server, ONE_LINE, together)?);
    }
    for words in [64, 512] {
        for together in TOGETHER {
            by_number(&format!("poll_{words}"), together, flow(&mut client, &mut server, words, together)?);
        }
    }
    Ok(())
}

/// Makes the memory of a channel: zeros.
pub fn lines() -> Box<[Line; LINES]> {
    Box::new(core::array::from_fn(|_| Line::default()))
}

/// Measures the work of one side for a round trip of this many words, with this many in flight together.
fn trips(client: &mut Channel<'_>, server: &mut Channel<'_>, words: usize, together: u64) -> Result<u64, String> {
    mean(|| trip(client, server, words, together)).map(|cost| cost / together / 2)
}

/// Measures messages that do not all fit into the channel together: each side goes on as far as it can, and then the
/// other.
fn flow(client: &mut Channel<'_>, server: &mut Channel<'_>, words: usize, together: u64) -> Result<u64, String> {
    let message = WORDS.get(..words).ok_or("the message is too long")?;
    let mut owed = VecDeque::with_capacity(LIMIT as usize);
    mean(|| stream(client, server, message, (together, &mut owed))).map(|cost| cost / together / 2)
}

/// Returns the mean cost of an operation, after some warm-up.
pub fn mean(mut once: impl FnMut() -> Result<(), String>) -> Result<u64, String> {
    (0..WARM_UP).try_for_each(|_| once())?;
    let start = instructions();
    let overhead = instructions() - start;
    let start = instructions();
    (0..TIMES).try_for_each(|_| once())?;
    Ok((instructions() - start - overhead) / TIMES)
}

/// Makes requests, and awaits their replies.
fn trip(client: &mut Channel<'_>, server: &mut Channel<'_>, words: usize, together: u64) -> Result<(), String> {
    let message = WORDS.get(..words).ok_or("the message is too long")?;
    for _ in 0..together {
        client.request(1, message).map_err(|_| "a request was refused")?;
    }
    let (mut asked, mut replied, mut turns) = (0, 0, 0);
    while replied < together {
        turns += 1;
        if turns > TURNS * together {
            return Err("no reply came".into());
        }
        // A message longer than the room goes on when the other side has received some of it.
        if asked < together
            && let Ok(Some(Incoming::Request(request, _))) = server.receive()
        {
            server.reply(request, message).map_err(|_| "a reply was refused")?;
            asked += 1;
            if asked < together {
                continue;
            }
        }
        if let Ok(Some(Incoming::Reply(..))) = client.receive() {
            replied += 1;
        } else if asked == together {
            let _ = server.receive();
        }
    }
    Ok(())
}

/// Makes requests, and awaits their replies, of which each side sends what there is room for. `owed` holds requests
/// that wait for their replies.
fn stream(
    client: &mut Channel<'_>,
    server: &mut Channel<'_>,
    message: &[u64],
    (together, owed): (u64, &mut VecDeque<Request>),
) -> Result<(), String> {
    let (mut asked, mut replied, mut turns) = (0, 0, 0);
    while replied < together {
        turns += 1;
        if turns > TURNS * together {
            return Err("no reply came".into());
        }
        while asked < together && sent(client.request(1, message).map(drop))? {
            asked += 1;
        }
        while let Some(incoming) = server.receive().map_err(problem("the channel"))? {
            if let Incoming::Request(request, _) = incoming {
                owed.push_back(request);
            }
            reply(server, owed, message)?;
        }
        reply(server, owed, message)?;
        while let Some(incoming) = client.receive().map_err(problem("the channel"))? {
            replied += u64::from(matches!(incoming, Incoming::Reply(..)));
        }
    }
    Ok(())
}

/// Replies to the requests for whose replies there is room.
fn reply(server: &mut Channel<'_>, owed: &mut VecDeque<Request>, message: &[u64]) -> Result<(), String> {
    while let Some(request) = owed.front()
        && sent(server.reply(*request, message))?
    {
        owed.pop_front();
    }
    Ok(())
}

/// Returns whether there was room.
pub fn sent(result: Result<(), Refused>) -> Result<bool, String> {
    match result {
        Ok(()) => Ok(true),
        Err(Refused::Full) => Ok(false),
        Err(refused) => Err(format!("{refused}")),
    }
}
