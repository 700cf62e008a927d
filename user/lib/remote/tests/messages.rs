//! Encoding of messages.

use proptest::prelude::*;
use tench_abi::Rights;
use tench_remote::{Core, Cores, Error, Kind, Malformed, Message, ObjectId, RequestId, Shape, WORDS};

fn core() -> impl Strategy<Value = Core> {
    (0_u8..64).prop_map(|number| Core::new(number).unwrap())
}

fn object() -> impl Strategy<Value = ObjectId> {
    (core(), 0_u32..1 << 24, any::<u32>()).prop_map(|(owner, number, generation)| ObjectId {
        owner,
        number,
        generation,
    })
}

fn result() -> impl Strategy<Value = Result<(), Error>> {
    (0_u8..=255).prop_map(|code| Error::new(code).map_or(Ok(()), Err))
}

fn message() -> impl Strategy<Value = Message> {
    let kind = prop_oneof![Just(Kind::Untyped), Just(Kind::Frame)];
    let shape = (kind, any::<[u64; 2]>()).prop_map(|(kind, [base, bytes])| Shape { kind, base, bytes });
    let rights = (0_u8..16).prop_map(Rights::from_bits_truncate);
    (0..8, (object(), shape, rights), (any::<[u64; 3]>(), core(), result())).prop_map(|(which, what, rest)| {
        let ((object, shape, rights), ([first, count, set], core, result)) = (what, rest);
        let (request, tainted) = (RequestId(first), Cores(set));
        match which {
            0 => Message::Ask { object, to: core, rights, request },
            1 => Message::Reply { object, to: core, request, result },
            2 => Message::Grant { object, shape, rights, count, requester: core, request },
            3 => Message::Taken { object, count, requester: core, request, result },
            4 => Message::Release { object, count },
            5 => Message::Withdraw { object, count },
            6 => Message::Withdrawn { object, count, tainted },
            _ => Message::Gone { core, tainted },
        }
    })
}

proptest! {
    #[test]
    fn encoded_messages_are_decoded(message in message()) {
        prop_assert_eq!(Message::decode(&message.encode()), Ok(message));
    }

    /// Words have at most one meaning, and a meaning has one form.
    #[test]
    fn decoded_messages_are_encoded_to_the_same_words(words: [u64; WORDS], tag in 0_u64..10, small: bool) {
        let mut words = words;
        if small {
            words[0] = words[0] & 0x0f0f_0f00 | tag;
            words[1] &= !0xc0;
        }
        if let Ok(message) = Message::decode(&words) {
            prop_assert_eq!(message.encode(), words);
        }
    }

    /// A message with one bit flipped is another message or none.
    #[test]
    fn every_bit_counts(message in message(), word in 0..WORDS, bit in 0..64) {
        let mut words = message.encode();
        words[word] ^= 1_u64 << bit;
        prop_assert_ne!(Message::decode(&words), Ok(message));
    }
}

#[test]
fn meaningless_words_are_malformed() {
    let object = ObjectId { owner: Core::new(1).unwrap(), number: 2, generation: 3 };
    let release = Message::Release { object, count: 4 }.encode();
    assert_eq!(release, [5, 3 << 32 | 2 << 8 | 1, 0, 4, 0, 0]);
    let change = |word: usize, value: u64| {
        let mut words = release;
        words[word] = value;
        Message::decode(&words)
    };
    assert_eq!(change(0, 0), Err(Malformed), "no tag");
    assert_eq!(change(0, 9), Err(Malformed), "unknown tag");
    assert_eq!(change(0, 5 | 1 << 32), Err(Malformed), "more in the head");
    assert_eq!(change(1, 64), Err(Malformed), "owner 64");
    assert_eq!(change(2, 1), Err(Malformed), "a word that is not used");
    let reply = Message::Reply { object, to: object.owner, request: RequestId(0), result: Err(Error::Lent) }.encode();
    assert_eq!(reply[0] >> 16, Error::Lent as u64);
    let unknown = [reply[0] | 0xff << 16, reply[1], 0, 0, 0, 0];
    assert_eq!(Message::decode(&unknown), Err(Malformed), "unknown error");
    let (to, shape) = (object.owner, Shape { kind: Kind::Frame, base: 0x1000, bytes: 0x1000 });
    let (rights, request) = (Rights::READ, RequestId(0));
    let grant = Message::Grant { object, shape, rights, count: 1, requester: to, request }.encode();
    for kind in [tench_abi::Kind::Endpoint, tench_abi::Kind::Notification] {
        let mut other = grant;
        other[0] = grant[0] & 0xff_ffff | (kind as u64) << 24;
        assert_eq!(Message::decode(&other), Err(Malformed), "{kind:?}: only memory is exported");
    }
}
