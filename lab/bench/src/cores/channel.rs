//! A channel, both of whose sides are played by one thread, so that nobody sleeps.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;

use tench::time::instructions;
use tench_channel::{Bell, Calls, Frame, Incoming, Line, Refused, Request, Side};

use super::{TOGETHER, by_number};
use crate::figure;

/// Lines of the channel: 16 KiB, as between monitors.
pub const LINES: usize = 256;
/// Requests in flight at most.
pub const LIMIT: u32 = 64;
/// Round trips, of which the mean is taken.
pub const TIMES: u64 = 64;
/// The longest message that is sent: 4 KiB.
pub const WORDS: [u64; 512] = [7; 512];
/// Words of a line.
pub const ONE_LINE: usize = 7;
/// Words of messages that are sent one after another.
const LENGTHS: [usize; 5] = [1, ONE_LINE, ONE_LINE + 1, 64, 512];
/// How often both sides are looked at for one round trip, at most.
const TURNS: u64 = 16;
/// Round trips before those that count.
pub const WARM_UP: u64 = 8;

/// Nobody sleeps.
#[derive(Clone, Copy)]
struct Silent;

impl Bell for Silent {
    fn ring(&self) {}
}

type Channel<'m> = Box<Calls<Frame<'m>, Silent>>;

/// Both sides of a channel.
fn channel(lines: &[Line]) -> Result<[Channel<'_>; 2], String> {
    let open = |side| Calls::open(&Frame::of(lines), side, Silent, LIMIT).map(Box::new);
    match (open(Side::First), open(Side::Second)) {
        (Ok(first), Ok(second)) => Ok([first, second]),
        _ => Err("cores: the channel could not be opened".into()),
    }
}

/// Measures.
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

/// The memory of a channel: zeros.
pub fn lines() -> Box<[Line; LINES]> {
    Box::new(core::array::from_fn(|_| Line::default()))
}

/// The work of one side for a round trip of so many words, with so many in flight together.
fn trips(client: &mut Channel<'_>, server: &mut Channel<'_>, words: usize, together: u64) -> Result<u64, String> {
    mean(|| trip(client, server, words, together)).map(|cost| cost / together / 2)
}

/// The same for messages that do not have room in the channel all together: each side goes on as far as it comes, and
/// then the other.
fn flow(client: &mut Channel<'_>, server: &mut Channel<'_>, words: usize, together: u64) -> Result<u64, String> {
    let message = WORDS.get(..words).ok_or("cores: the message is too long")?;
    let mut owed = VecDeque::with_capacity(LIMIT as usize);
    mean(|| stream(client, server, message, (together, &mut owed))).map(|cost| cost / together / 2)
}

/// What something costs on the average, when it has been done a few times.
pub fn mean(mut once: impl FnMut() -> Result<(), String>) -> Result<u64, String> {
    (0..WARM_UP).try_for_each(|_| once())?;
    let start = instructions();
    let overhead = instructions() - start;
    let start = instructions();
    (0..TIMES).try_for_each(|_| once())?;
    Ok((instructions() - start - overhead) / TIMES)
}

/// Requests, and their answers.
fn trip(client: &mut Channel<'_>, server: &mut Channel<'_>, words: usize, together: u64) -> Result<(), String> {
    let message = WORDS.get(..words).ok_or("cores: the message is too long")?;
    let failed = |what: &str| format!("cores: {what}");
    for _ in 0..together {
        client.request(1, message).map_err(|_| failed("a request was refused"))?;
    }
    let (mut asked, mut answered, mut turns) = (0, 0, 0);
    while answered < together {
        turns += 1;
        if turns > TURNS * together {
            return Err(failed("no answer came"));
        }
        // What is longer than the room there was goes on when the other side has taken some of it in.
        if asked < together
            && let Ok(Some(Incoming::Request(request, _))) = server.receive()
        {
            server.answer(request, message).map_err(|_| failed("an answer was refused"))?;
            asked += 1;
            if asked < together {
                continue;
            }
        }
        if let Ok(Some(Incoming::Answer(..))) = client.receive() {
            answered += 1;
        } else if asked == together {
            let _ = server.receive();
        }
    }
    Ok(())
}

/// Requests, and their answers, of which each side sends what there is room for. `owed` is for those that wait for
/// their answers.
fn stream(
    client: &mut Channel<'_>,
    server: &mut Channel<'_>,
    message: &[u64],
    (together, owed): (u64, &mut VecDeque<Request>),
) -> Result<(), String> {
    let (mut asked, mut answered, mut turns) = (0, 0, 0);
    while answered < together {
        turns += 1;
        if turns > TURNS * together {
            return Err("cores: no answer came".into());
        }
        while asked < together && sent(client.request(1, message).map(drop))? {
            asked += 1;
        }
        while let Some(incoming) = server.receive().map_err(|broken| format!("cores: {broken}"))? {
            if let Incoming::Request(request, _) = incoming {
                owed.push_back(request);
            }
            answer(server, owed, message)?;
        }
        answer(server, owed, message)?;
        while let Some(incoming) = client.receive().map_err(|broken| format!("cores: {broken}"))? {
            answered += u64::from(matches!(incoming, Incoming::Answer(..)));
        }
    }
    Ok(())
}

/// Answers those for whose answers there is room.
fn answer(server: &mut Channel<'_>, owed: &mut VecDeque<Request>, message: &[u64]) -> Result<(), String> {
    while let Some(request) = owed.front()
        && sent(server.answer(*request, message))?
    {
        owed.pop_front();
    }
    Ok(())
}

/// Whether there was room.
pub fn sent(result: Result<(), Refused>) -> Result<bool, String> {
    match result {
        Ok(()) => Ok(true),
        Err(Refused::Full) => Ok(false),
        Err(refused) => Err(format!("cores: {refused}")),
    }
}
