//! Priorities for reservations: all different, in the order of deadlines.
//!
//! When a reservation comes between two others with adjacent priorities, some others have to move. They move one at a
//! time, each to a free priority between the same neighbours as before, beginning with the one next to a gap. So after
//! each single step all are in the right order, and no reservation is ever below one with a longer deadline.

use tench_protocol::ArrayVec;
use tench_reserve_interface::protocol::{FIRST_PRIORITY, LAST_PRIORITY, MAX_RESERVATIONS};

const _: () =
    assert!(MAX_RESERVATIONS <= (LAST_PRIORITY - FIRST_PRIORITY) as usize + 1, "there are too few priorities");

/// A change of a priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Position of the reservation in the order.
    pub position: usize,
    /// New priority of the reservation.
    pub to: u8,
}

/// Changes, in the order in which they are made.
pub type Moves = ArrayVec<Move, MAX_RESERVATIONS>;

/// Makes room for one more. `levels` are the priorities of all others, highest first; the new one comes before the one
/// at `position`, or last. Returns the moves, and the new one's priority; `None` if there are as many as priorities.
pub fn insert(levels: &[u8], position: usize) -> Option<(Moves, u8)> {
    // Unused priorities bound both ends.
    let level = |index: usize| levels.get(index).map_or(FIRST_PRIORITY - 1, |level| *level);
    let above = |index: usize| index.checked_sub(1).map_or(LAST_PRIORITY + 1, level);
    let has_gap = |index: &usize| above(*index) - level(*index) > 1;
    let up = (0..=position).rev().find(has_gap);
    let down = (position..=levels.len()).find(has_gap);
    let mut moves = Moves::new();
    let is_up = match (up, down) {
        (Some(up), Some(down)) => position - up < down - position,
        (up, _) => up.is_some(),
    };
    if is_up {
        // Those between the gap and the place go up by one, in order; the last of them leaves its priority to the new
        // one.
        let gap = up?;
        for position in gap..position {
            moves.try_push(Move { position, to: level(position) + 1 }).ok()?;
        }
        return Some((moves, level(position - 1)));
    }
    let gap = down?;
    if gap == position {
        let between = level(position) + (above(position) - level(position)) / 2;
        return Some((moves, between));
    }
    for position in (position..gap).rev() {
        moves.try_push(Move { position, to: level(position) - 1 }).ok()?;
    }
    Some((moves, level(position)))
}
