//! All orders of two operations.

use tench_abi::Operation;
use tench_kernel::preemption_point::PREEMPTIBLE;

use crate::outcome::{References, explore};
use crate::world::{Subject, WITH_PREEMPTION_POINTS, WITHOUT_PREEMPTION_POINTS};

/// Operations whose handlers pass preemption points. An operation that passes some and is missing here fails in
/// `triples`. (Those that delete in parts are `Delete` and `Revoke` with an end; `parts` tests them.)
pub const HANDLERS: [Operation; 15] = [
    Operation::UntypedRetype,
    Operation::UntypedChildren,
    Operation::Delete,
    Operation::Revoke,
    Operation::FrameMap,
    Operation::MappingProtect,
    Operation::MappingClone,
    Operation::ThreadConfigure,
    Operation::ThreadBind,
    Operation::ThreadFaults,
    Operation::AccountQuery,
    Operation::AccountSuspend,
    Operation::ThreadQuery,
    Operation::KernelQuery,
    Operation::KernelPrint,
];

/// Further outcomes that orders of a pair may have: both subjects, the class, and the reason.
const DESCRIBED: &[(&str, &str, &str, &str)] = &[
    ("map", "map instructions", "A [0, 0], B SlotOccupied, like AB", "A took the slot, but not yet the entries"),
    (
        "map",
        "map instructions",
        "A SlotOccupied, B [0, 0], like A0B",
        "A had taken nothing yet; after a preemption point it looks at the slot before it looks at all entries again",
    ),
    ("map", "map one page in the middle", "A AlreadyMapped, B [0, 0], like A2B", "it stays as far as it came"),
    (
        "clone a scattered mapping",
        "clone a scattered mapping",
        "A [*, 0], B [*, 0], like AB",
        "each entry is copied by one of the two, and each says how many it has copied",
    ),
    (
        "ask an account",
        "suspend an account",
        "A [0, d], B [0, 0], like AB",
        "A was asking when B suspended the account: it says so, and stops when it has come to its end, like B",
    ),
    (
        "suspend an account",
        "suspend an account",
        "A [0, 0], B [0, 0], like AB",
        "both had begun; each stops when it has come to its end",
    ),
    (
        "suspend an account",
        "take the node out",
        "A InvalidCapability, B [0, 0], like ?",
        "A had said that nobody may run, and applies the suspension, whatever it is told",
    ),
    ("suspend an account", "delete the node", "A InvalidCapability, B [0, 0]+[1, 0], like ?", "likewise"),
    (
        "revoke the pool",
        "suspend an account",
        "A [1c, 0], B InvalidCapability, like ?",
        "B applied the suspension when it found the account's capability gone, and its address space, with the account, went after that",
    ),
    ("revoke all, both threads too", "suspend an account", "A never, B InvalidCapability, like ?", "likewise"),
    (
        "suspend an account",
        "let an account go on",
        "A [0, 0], B [0, 0], like A0B",
        "A had not come to B yet, which lifted the suspension; so each thread runs",
    ),
    (
        "delete a node with an exported capability",
        "revoke all, both threads too",
        "A never, B never, like ?",
        "the zombie stays, and says how far B had looked through the node when it deleted itself",
    ),
    (
        "revoke the pool",
        "lend some of the pool and borrow a page back",
        "A RemoteCopies, B [38000, 0]+[0, 0]+[0, 0], like ?",
        "A had passed what B had lent when B borrowed a page of it, and says that something stays",
    ),
    (
        "revoke all, both threads too",
        "lend some of the pool and borrow a page back",
        "A never, B [38000, 0]+[0, 0]+[0, 0], like ?",
        "likewise, and A deleted itself before it could say anything",
    ),
    (
        "configure a thread",
        "resume the thread",
        "A [0, 0], B NotConfigured, like B0A",
        "bindings go before others come",
    ),
];

/// Returns true if outcomes of this class are listed. A `*` in the list stands for any number.
pub fn is_described([one, other]: [&Subject; 2], class: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_hexdigit();
    let fits = |pattern: &str| {
        let mut rest = Some(class);
        for (index, part) in pattern.split('*').enumerate() {
            let from = rest.map(|rest| if index > 0 { rest.trim_start_matches(is_digit) } else { rest });
            rest = from.and_then(|from| from.strip_prefix(part));
        }
        rest == Some("")
    };
    DESCRIBED.iter().any(|(a, b, what, _)| (*a, *b) == (one.name, other.name) && fits(what))
}

/// Returns every pair with a preemption point: each two operations with preemption points, once, and each of these with
/// each operation without.
fn pairs() -> Vec<[&'static Subject; 2]> {
    let mut pairs = Vec::new();
    for (i, one) in WITH_PREEMPTION_POINTS.iter().enumerate() {
        pairs.extend(WITH_PREEMPTION_POINTS[i..].iter().chain(WITHOUT_PREEMPTION_POINTS).map(|other| [one, other]));
    }
    pairs
}

/// Plays every `of`th pair from the `part`th on.
fn play_pairs(part: usize, of: usize) {
    let (mut orders, mut sequential, mut strange) = (0, 0, String::new());
    let verbose = std::env::var("TENCH_WEAVE_SHOW").is_ok();
    for pair in pairs().into_iter().skip(part).step_by(of) {
        let references = References::of(pair);
        let explored = explore(pair, &references);
        orders += explored.orders;
        sequential += explored.sequential;
        let [one, other] = pair.map(|subject| subject.name);
        if verbose {
            println!("{one} | {other}: preemption points {:?}, orders {}", references.points, explored.orders);
        }
        for (class, (count, choices, difference)) in explored.strange {
            if !is_described(pair, &class) {
                strange += &format!("{one} | {other}: {count} × {class}; choices {choices:?}\n{difference}");
            }
        }
    }
    println!("{orders} orders, {sequential} of which as one after the other");
    assert!(strange.is_empty(), "not as described:\n{strange}");
}

#[test]
fn pairs_in_every_order_1() {
    play_pairs(0, 4);
}

#[test]
fn pairs_in_every_order_2() {
    play_pairs(1, 4);
}

#[test]
fn pairs_in_every_order_3() {
    play_pairs(2, 4);
}

#[test]
fn pairs_in_every_order_4() {
    play_pairs(3, 4);
}

#[test]
fn every_operation_with_preemption_points_meets_every_other() {
    for one in HANDLERS {
        for other in HANDLERS {
            let is = |subject: &Subject, operation| subject.points == Some(operation);
            let found = pairs().iter().any(|[a, b]| is(a, one) && is(b, other) || is(a, other) && is(b, one));
            assert!(found, "{one:?} and {other:?} never meet");
        }
    }
    if !PREEMPTIBLE {
        return;
    }
    for subject in WITH_PREEMPTION_POINTS {
        let points = References::of([subject, &WITHOUT_PREEMPTION_POINTS[0]]).points[0];
        assert!((1..=8).contains(&points), "{} passes {points} preemption points", subject.name);
    }
}
