//! What the way to another core costs.
//!
//! ```text
//!   bench cores              the channel alone, both of its sides played by one thread
//!   bench cores ping         on two cores: from this program over both monitors and back
//! ```
//! | key | what |
//! |---|---|
//! | `poll_W` | a request of `W` words and its answer, of as many, over a channel whose sides poll: the work of one side, half of both |
//! | `poll_1_of_N` | the same with 7 words, for each of `N` requests that are in flight together |
//! | `sleep_1` | a ping from a program by the monitors of two cores, which sleep: both kernels, both interrupts and both monitors |
//!
//! Instructions are those of all cores together. What reading the counter costs is taken off.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};

use tench::memory;
use tench::time::instructions;
use tench_channel::{Bell, Calls, Frame, Incoming, Line, Side};
use tench_monitor_client::Monitor;
use tench_monitor_client::protocol::State;
use tench_names_client::Names;

use crate::figure;

/// Lines of the channel: 16 KiB, as between monitors.
const LINES: usize = 256;
/// Requests in flight at most.
const LIMIT: u32 = 64;
/// Round trips, of which the mean is taken.
const TIMES: u64 = 64;
/// How often both sides are looked at for one round trip, at most.
const TURNS: u64 = 16;
/// Round trips before those that count.
const WARM_UP: u64 = 8;

/// Nobody sleeps.
#[derive(Clone, Copy)]
struct Silent;

impl Bell for Silent {
    fn ring(&self) {}
}

type Channel<'m> = Box<Calls<Frame<'m>, Silent>>;

/// Measures.
pub fn run() -> Result<(), String> {
    match tench::args().nth(2) {
        Some("ping") => ping(),
        _ => poll(),
    }
}

/// Both sides of a channel.
fn channel(lines: &[Line]) -> Result<[Channel<'_>; 2], String> {
    let open = |side| Calls::open(&Frame::of(lines), side, Silent, LIMIT).map(Box::new);
    match (open(Side::First), open(Side::Second)) {
        (Ok(first), Ok(second)) => Ok([first, second]),
        _ => Err("cores: the channel could not be opened".into()),
    }
}

fn poll() -> Result<(), String> {
    let lines: Box<[Line; LINES]> = Box::new(core::array::from_fn(|_| Line::default()));
    let [mut client, mut server] = channel(&lines[..])?;
    for words in [1, 7, 8, 64, 512] {
        figure(&format!("poll_{words}"), trips(&mut client, &mut server, words, 1)?);
    }
    for together in [8, 64] {
        figure(&format!("poll_1_of_{together}"), trips(&mut client, &mut server, 7, together)?);
    }
    Ok(())
}

/// The work of one side for a round trip of so many words, with so many in flight together.
fn trips(client: &mut Channel<'_>, server: &mut Channel<'_>, words: usize, together: u64) -> Result<u64, String> {
    for _ in 0..WARM_UP {
        trip(client, server, words, together)?;
    }
    let start = instructions();
    let overhead = instructions() - start;
    let start = instructions();
    for _ in 0..TIMES {
        trip(client, server, words, together)?;
    }
    Ok((instructions() - start - overhead) / TIMES / together / 2)
}

/// Requests, and their answers.
fn trip(client: &mut Channel<'_>, server: &mut Channel<'_>, words: usize, together: u64) -> Result<(), String> {
    static WORDS: [u64; 512] = [7; 512];
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

/// Pings the second core.
fn ping() -> Result<(), String> {
    let slot = memory::take_slot().map_err(|_| "cores: no slot")?;
    let monitor = Monitor::at(Names::STANDARD.look_up(Monitor::NAME, slot).map_err(|failure| failure.to_string())?);
    let problem = |failure: tench_monitor_client::Failure| format!("cores: {failure}");
    while monitor.core(1).map_err(problem)?.state != State::Running {
        tench::time::sleep(tench::time::Duration::from_millis(1));
    }
    for _ in 0..WARM_UP {
        monitor.ping(1).map_err(problem)?;
    }
    let start = instructions();
    for _ in 0..TIMES {
        monitor.ping(1).map_err(problem)?;
    }
    figure("sleep_1", (instructions() - start) / TIMES);
    Ok(())
}
