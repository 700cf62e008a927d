//! What the console keeps when it is started again.

use proptest::prelude::*;
use tench_console::kept::{Kept, Memory, Ownership};
use tench_console::output::Output;
use tench_console_client::protocol::Mode;

/// Memory whose writer can end after any number of writes.
struct Fragile {
    words: Vec<u64>,
    left: usize,
}

impl Memory for &mut Fragile {
    fn size(&self) -> usize {
        self.words.len()
    }

    fn read(&self, index: usize) -> u64 {
        self.words[index]
    }

    fn write(&mut self, index: usize, word: u64) {
        if self.left > 0 {
            self.left -= 1;
            self.words[index] = word;
        }
    }
}

proptest! {
    /// Of what was said to be kept, everything that has not left for the line is there; and nothing else but more.
    #[test]
    fn no_accepted_byte_is_lost(
        steps in prop::collection::vec((prop::collection::vec(b'a'..=b'z', 0..20), 0..25usize), 1..40),
        left in 0..900usize,
    ) {
        let mut memory = Fragile { words: vec![0; 8 + 128], left };
        let mut output = Output::new(100);
        let (mut accepted, mut sent) = (Vec::new(), Vec::new());
        for (text, pops) in steps {
            if output.has_room_for(&text) {
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

    #[test]
    fn ownership_is_whole_or_not_there(owner in 0..9u64, foreground in 0..9u64, left in 0..10usize) {
        let mut memory = Fragile { words: vec![0; 16], left };
        prop_assert_eq!(Kept::new(&mut memory).ownership(), None);
        let wanted = Ownership { mode: Mode::Raw, owner, foreground };
        Kept::new(&mut memory).set_ownership(wanted);
        let found = Kept::new(&mut memory).ownership();
        prop_assert!(found.is_none() || found == Some(wanted));
        prop_assert_eq!(found.is_some(), left >= 4);
    }

    #[test]
    fn any_words_can_be_read(words in prop::collection::vec(prop_oneof![0..300u64, any::<u64>()], 8..40)) {
        let mut memory = Fragile { words, left: 0 };
        let output = Kept::new(&mut memory).output(100);
        prop_assert!(output.waiting().len() <= 32);
        Kept::new(&mut memory).ownership();
    }
}
