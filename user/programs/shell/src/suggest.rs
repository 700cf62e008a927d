//! Suggestions for mistyped words.

use alloc::vec;
use alloc::vec::Vec;

/// Returns the candidate nearest to `word`, if it is near enough to be meant: one mistake in short words, two in longer
/// ones.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = if word.chars().count() <= 3 { 1 } else { 2 };
    let near = candidates.map(|candidate| (distance(word, candidate), candidate));
    // Of several equally near candidates, the first is taken, so their order decides.
    let (mistakes, candidate) = near.min_by_key(|&(mistakes, _)| mistakes)?;
    (mistakes <= allowed && mistakes < word.chars().count()).then_some(candidate)
}

/// Returns how many characters have to be inserted, removed, replaced or exchanged with their neighbour to turn one
/// word into the other (optimal string alignment).
fn distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().collect();
    let to: Vec<char> = to.chars().collect();
    // Row `i` contains the distances between the first `i` characters of `from` and each prefix of `to`.
    let mut before_last: Vec<usize> = vec![0; to.len() + 1];
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for i in 1..=from.len() {
        let mut row = vec![i; to.len() + 1];
        for j in 1..=to.len() {
            let is_same = from[i - 1] == to[j - 1];
            let replaced = last[j - 1] + usize::from(!is_same);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = core::mem::replace(&mut last, row);
    }
    last[to.len()]
}
