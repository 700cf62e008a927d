//! Tests of the console's persistent state.

use proptest::prelude::*;
use tench::server::Fragile;
use tench_console::kept::{Kept, Ownership, RING};
use tench_console::output::Output;
use tench_console::terminal::{OUTPUT_LIMIT, Terminal};
use tench_console_interface::protocol::Mode;
use tench_protocol::Powers;
use tench_quota::Client;

proptest! {
    /// All text that was saved and has not been sent is there; there may be more, but nothing else.
    #[test]
    fn no_accepted_byte_is_lost(
        steps in prop::collection::vec((prop::collection::vec(b'a'..=b'z', 0..20), 0..25usize), 1..40),
        left in 0..900usize,
    ) {
        let mut memory = Fragile { words: vec![0; 8 + 128], left };
        let mut output = Output::new(100);
        let (mut accepted, mut sent) = (Vec::new(), Vec::new());
        for (text, pops) in steps {
            if output.has_capacity_for(&text) {
                output.write(&text);
            } else {
                continue;
            }
            Kept::new(&mut memory).set_output(&output);
            if memory.left == 0 {
                break;
            }
            accepted.extend(text);
            for _ in 0..pops {
                sent.extend(output.pop());
            }
        }
        let resumed = Kept::new(&mut memory).output(100);
        let line: Vec<u8> = sent.into_iter().take(resumed.taken() as usize).chain(resumed.waiting().copied()).collect();
        prop_assert!(line.starts_with(&accepted), "{line:?} begins with {accepted:?}");
    }

    /// The saved ownership is the last that was reported as done, or a later one that was under way.
    #[test]
    fn the_terminals_owner_is_one_of_the_last_two_named(
        steps in prop::collection::vec((0..9u64, 0..9u64, any::<bool>(), any::<bool>()), 1..8),
        left in 0..48usize,
    ) {
        let mut memory = Fragile { words: vec![0; 16], left };
        let mut before = None;
        for (owner, foreground, raw, lent) in steps {
            let mode = if raw { Mode::Raw } else { Mode::Canonical };
            let now = Ownership { mode, owner, foreground, is_lent: lent && foreground != 0 };
            Kept::new(&mut memory).set_ownership(now);
            let found = Kept::new(&mut memory).ownership();
            prop_assert!(found == Some(now) || memory.left == 0 && found == before);
            if memory.left == 0 {
                return Ok(());
            }
            before = found;
        }
    }

    /// Accepted text is there after each of the writes that save it, whether the terminal has an owner or not.
    #[test]
    fn a_terminal_goes_on_with_its_text_whoever_owns_it(
        steps in prop::collection::vec((prop::collection::vec(b'a'..=b'z', 1..30), prop::option::of(1..5u64)), 1..12),
        left in 0..500usize,
    ) {
        let mut memory = Fragile { words: vec![0; 8192], left };
        let mut terminal = Terminal::<()>::new(4);
        let (mut accepted, mut owner, mut next) = (Vec::new(), None, None);
        for (text, who) in steps {
            terminal.write(Client::alone(0), &text, ());
            prop_assert!(terminal.next_outcome().is_some());
            let said = who.is_some_and(|who| terminal.set_foreground(who, Powers::TERMINAL, who + 10).is_ok());
            let mut kept = Kept::new(&mut memory);
            kept.set_output(&terminal.output);
            if said {
                kept.set_ownership(terminal.ownership());
            }
            // The last process to claim the terminal is the owner then, or not yet.
            next = if said { who } else { owner };
            if memory.left == 0 {
                break;
            }
            accepted.extend(text);
            owner = if said { who } else { owner };
        }
        let resumed = Terminal::<()>::resumed(4, &Kept::new(&mut memory));
        let waiting: Vec<u8> = resumed.output.waiting().copied().collect();
        prop_assert!(waiting.starts_with(&accepted) && waiting.len() <= OUTPUT_LIMIT);
        prop_assert!([owner, next].into_iter().any(|owner| resumed.ownership().owner == owner.unwrap_or(0)));
    }

    /// Whenever the console ends while the terminal is lent and given back, its successor goes on with one of the last
    /// two states: the borrower has raw mode and Ctrl-], or neither.
    #[test]
    fn lending_goes_on_as_it_was_reported(steps in prop::collection::vec(0..4u8, 1..12), left in 0..80usize) {
        let mut memory = Fragile { words: vec![0; 8192], left };
        let mut terminal = Terminal::<()>::new(4);
        let (owner, borrower) = (5, 6);
        terminal.set_foreground(owner, Powers::TERMINAL, borrower).unwrap();
        let mut known = Ownership { mode: Mode::Canonical, owner: 0, foreground: 0, is_lent: false };
        for step in steps {
            let none = Powers::empty();
            // Not each is permitted at any time.
            match step {
                0 => terminal.set_foreground(owner, none, borrower).unwrap(),
                1 => terminal.lend(owner, none, borrower, true).unwrap_or(()),
                2 => drop(terminal.set_mode(borrower, none, Mode::Raw)),
                _ => drop(terminal.process_ended(borrower)),
            }
            let now = terminal.ownership();
            Kept::new(&mut memory).set_ownership(now);
            let mut resumed = Terminal::<()>::resumed(4, &Kept::new(&mut memory));
            let found = resumed.ownership();
            prop_assert!(found == now || memory.left == 0 && found == known, "{found:?} for {now:?}");
            prop_assert_eq!(resumed.set_mode(borrower, none, Mode::Raw).is_ok(), found.is_lent);
            prop_assert_eq!(resumed.typed(29).is_some(), found.is_lent);
            if memory.left == 0 {
                return Ok(());
            }
            known = found;
        }
    }

    #[test]
    fn any_words_can_be_read(words in prop::collection::vec(prop_oneof![0..300u64, any::<u64>()], RING..RING + 32)) {
        let mut memory = Fragile { words, left: 0 };
        let output = Kept::new(&mut memory).output(100);
        prop_assert!(output.waiting().len() <= 32);
        Kept::new(&mut memory).ownership();
    }
}
