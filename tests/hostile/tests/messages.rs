//! Tests for each interface that valid values reach the server and come back as they were, and that nothing else
//! reaches it.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tench_hostile::{Probe, hostile, round_trip};

/// Number of bytes: enough requests to reach every method.
const BYTES: usize = 60_000;

/// Returns pseudorandom bytes that are always the same.
fn bytes() -> Vec<u8> {
    let mut random = tench_random::Random::new(4);
    (0..BYTES).map(|_| random.below(256) as u8).collect()
}

/// Checks that the bytes reach every method.
fn reaches_everything<P: Probe>() {
    let all: BTreeSet<u64> = P::METHODS.iter().map(|method| method.label).collect();
    assert_eq!(round_trip::<P>(&bytes()), all, "{}", P::NAME);
    assert!(hostile::<P>(&bytes()) > P::METHODS.len(), "{}", P::NAME);
}

macro_rules! interfaces {
    ($($name:ident)*) => { $(
        mod $name {
            use super::*;
            use tench_hostile::$name::Probe;

            #[test]
            fn every_method_is_reached() {
                reaches_everything::<Probe>();
            }

            proptest! {
                #[test]
                fn values_arrive_as_they_were(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
                    round_trip::<Probe>(&bytes);
                }

                #[test]
                fn no_invalid_message_reaches_the_server(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
                    hostile::<Probe>(&bytes);
                }
            }
        }
    )* };
}

interfaces! { clock console files mem monitor names notes pager procs reserve slabs stream }
