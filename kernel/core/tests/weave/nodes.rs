//! Operations whose capabilities lie in a node that is removed from its CSpace, and deleted.

use tench_abi::Operation;
use tench_arch_host::weave::Call;

use crate::outcome::{References, explore};
use crate::pairs::is_described;
use crate::world::{Subject, WITH_PREEMPTION_POINTS, part, slots};

/// Removes the node.
const TAKE_OUT: Subject = Subject {
    name: "take the node out",
    parts: 0,
    points: None,
    calls: |_| vec![Call::new(Operation::NodeRemove, &[0, 4, slots::NEW_COPY])],
    remains: None,
};

/// Removes the node, and deletes it with its contents.
const DELETE: Subject = Subject {
    name: "delete the node",
    parts: 0,
    points: Some(Operation::Delete),
    calls: |_| {
        let delete = Call::new(Operation::Delete, &[0, slots::NEW_COPY]);
        vec![Call::new(Operation::NodeRemove, &[0, 4, slots::NEW_COPY]), delete]
    },
    remains: None,
};

#[test]
fn the_node_that_holds_the_capabilities_goes() {
    let (mut orders, mut strange) = (0, String::new());
    for subject in WITH_PREEMPTION_POINTS {
        let subject = Subject { parts: subject.parts | part::APART, ..*subject };
        for other in [&TAKE_OUT, &DELETE] {
            let explored = explore([&subject, other], &References::of([&subject, other]));
            orders += explored.orders;
            for (class, (count, choices, difference)) in explored.strange {
                if is_described([&subject, other], &class) {
                    continue;
                }
                strange +=
                    &format!("{} | {}: {count} × {class}; choices {choices:?}\n{difference}", subject.name, other.name);
            }
        }
    }
    println!("{orders} orders");
    assert!(strange.is_empty(), "not as described:\n{strange}");
}
