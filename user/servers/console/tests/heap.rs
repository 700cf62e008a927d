//! Tests that the heap reserved by the server suffices for any one request or typed byte.

use tench_console::terminal::{GROWTH, Terminal};
use tench_console_interface::protocol::{MAX_TEXT, Mode};
use tench_counting::{Counting, peak};
use tench_protocol::Powers;
use tench_quota::Client;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const WAITERS: u64 = 256;

#[test]
fn no_request_needs_more_than_is_kept_in_reserve() {
    let mut terminal = Terminal::<u64>::new(WAITERS as usize);
    let mut most = 0;
    let mut count = |bytes: usize| most = most.max(bytes);
    let text = [b'a'; MAX_TEXT];
    // Some write until their texts have to wait, some wait for input, and one waits until everything is sent.
    let mut number = 0;
    while number < WAITERS {
        count(peak(|| terminal.write(Client::alone(number % 3), &text, number)).1);
        count(peak(|| terminal.read(Client::alone(number % 3), MAX_TEXT, None, number)).1);
        count(peak(|| terminal.drain(Client::alone(number % 3), number)).1);
        while terminal.next_outcome().is_some() {}
        number += 1;
    }
    // Everything that can be typed ahead, and read at once.
    for _ in 0..5 {
        (0..1023).for_each(|_| count(peak(|| terminal.typed(b'x')).1));
        count(peak(|| terminal.typed(b'\n')).1);
    }
    count(peak(|| terminal.set_mode(0, Powers::TERMINAL, Mode::Raw)).1);
    count(peak(|| terminal.typed(b'y')).1);
    for family in 0..2 * WAITERS {
        count(peak(|| terminal.take_out_some(family, 8, |number| number % 7 == 0)).1);
    }
    for process in 0..3 {
        count(peak(|| terminal.process_ended(process)).1);
    }
    while terminal.output.pop().is_some() {}
    count(peak(|| terminal.sent(|number| number % 5 == 0)).1);
    let mut read = 0;
    while let Some((_, outcome)) = terminal.next_outcome() {
        if let tench_console::terminal::Outcome::Input(bytes) = outcome {
            read += bytes.len();
            let (_, bytes) = peak(|| terminal.undelivered(&bytes));
            count(bytes);
        }
    }
    assert!(read > 0);
    assert!(most <= GROWTH && most > GROWTH / 16, "{most} bytes");
}
