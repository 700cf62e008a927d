//! Tests of the journal of names.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tench::server::Fragile;
use tench_names::kept::Journal;
use tench_quota::Client;

fn found(memory: &mut Fragile) -> BTreeMap<u32, (Client, String)> {
    let journal = Journal::new(memory, 256);
    let entries = (0..journal.used()).filter_map(|number| journal.entry(number));
    entries.map(|entry| (entry.number, (entry.owner, entry.name.to_string()))).collect()
}

proptest! {
    #[test]
    fn whenever_the_writer_ends_an_entry_is_whole_or_not_there(
        names in prop::collection::vec(("[a-zä]{1,120}", 0..9u64, any::<bool>()), 1..12),
        left in 0..400usize,
    ) {
        let mut memory = Fragile { words: vec![0; 1 + 34 * 8 + 5], left };
        let mut wanted = BTreeMap::new();
        for (name, owner, clears) in names {
            let mut journal = Journal::new(&mut memory, 256);
            prop_assert_eq!(journal.count(), 8);
            let before = wanted.clone();
            if let Some(number) = journal.free_entry().filter(|_| !clears) {
                // Some are of a family, 0 is alone.
                let owner = Client::of_badge(owner << 38 | owner);
                journal.write(number, owner, &name);
                wanted.insert(number, (owner, name));
            } else if let Some(number) = wanted.keys().next().copied() {
                journal.clear(number);
                wanted.remove(&number);
            }
            let now = found(&mut memory);
            prop_assert!(now == wanted || memory.left == 0 && now == before);
            if memory.left == 0 {
                return Ok(());
            }
        }
    }

    #[test]
    fn any_words_are_entries_or_none(words in prop::collection::vec(prop_oneof![Just(0), 0..300u64, any::<u64>()], 0..100)) {
        found(&mut Fragile { words, left: 0 });
    }
}
