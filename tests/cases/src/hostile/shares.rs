//! The requests of a hostile client to the reservation server.

use tench::abi::layout::slot;
use tench::reserve::Reserve;
use tench::sys::{CapAddress, Message};
use tench_protocol::label;
use tench_random::Random;

use crate::child::Arguments;

/// Returns requests for shares of every size, mostly for the main thread's scheduling context, sometimes for another
/// capability; releases of any number; queries.
pub fn request(random: &mut Random) -> Message {
    let message = |method| Message::new(label(Reserve::<()>::INTERFACE, Reserve::<()>::VERSION, method));
    let most = 1 << (20 + random.below(14));
    let period = 400_000 + random.below(most);
    match random.below(16) {
        0 => {
            let mut message = message(2);
            message.push(random.below(200));
            message
        }
        1..4 => {
            let mut message = message(4);
            message.extend(&[period, random.below(2) * period]);
            message
        }
        4 => {
            let mut message = message(3);
            message.push(random.argument());
            message
        }
        _ => {
            let mut message = message(1);
            message.extend(&[15_000 + random.below(period / 3), period, random.below(3) * period / 2]);
            let context = if random.below(4) == 0 { CapAddress(random.object() as u32) } else { slot::SCHEDULING };
            message.copy_cap(context);
            message
        }
    }
}
