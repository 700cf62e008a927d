//! Checks of what is ordered by time or priority: heaps and the refills of budgets.

use tench_abi::object::MIN_BUDGET;
use tench_kernel::budget::{Budget, Refill};
use tench_kernel::heap::{EMPTY, Node, node, rank};
use tench_kernel::{Kernel, Ref};

use crate::host::Host;

/// Calls `visit` with each node of a heap, from the root down. Panics unless the heap is well-formed.
pub fn check_heap(k: &mut Kernel<Host>, root: u32, visit: &mut dyn FnMut(Ref<Node>)) {
    check_below(k, root, EMPTY, visit);
}

/// Checks a subtree.
fn check_below(k: &mut Kernel<Host>, at: u32, parent: u32, visit: &mut dyn FnMut(Ref<Node>)) {
    let Some(this) = node(k, at) else { return };
    let n = *k.get(this);
    visit(this);
    assert!(n.parent == parent, "a child names its parent");
    if let Some(above) = node(k, parent) {
        assert!(n.sort_key() >= k.get(above).sort_key(), "no child comes before its parent");
    }
    let (left, right) = (rank(k, n.left), rank(k, n.right));
    assert!(left >= right && n.rank == right + 1, "ranks are leftist");
    check_below(k, n.left, at, visit);
    check_below(k, n.right, at, visit);
}

/// Panics unless the refills of a budget are in order and make up the budget.
pub fn check_budget(budget: &Budget) {
    let refills = budget.refills();
    if !budget.is_limited() {
        assert!(*budget == Budget::default(), "nothing is left of a budget that was taken off");
        return;
    }
    assert!(MIN_BUDGET <= budget.budget && budget.budget <= budget.period, "the budget is one");
    assert_eq!(refills.iter().map(|refill| refill.amount).sum::<u64>(), budget.budget, "the amounts are the budget");
    assert!(refills.is_sorted_by_key(|refill| refill.time), "refills are in the order of their times");
    assert!(refills[0].amount >= MIN_BUDGET, "the first refill is large enough to run on");
    assert!(budget.places[refills.len()..].iter().all(|refill| *refill == Refill::default()), "the rest is empty");
}
