//! Whole sessions, event by event.

use std::sync::{Arc, Mutex};

use tench_rps::{options, play};
use tench_srr::Terminal;

/// R4's transcript from the first line that a task prints to the last, as printed there.
const REFERENCE: &str = include_str!("reference.txt");
/// R4's three players and their moves, as in its transcript.
const SCENARIO: &str = "--seed 2 --player 1:3 --player 2:5 --player 3:3 \
    --moves scissors,paper,paper,rock,rock,rock,rock,scissors,scissors,rock,paper";
/// The line between games when the program pauses.
const PAUSE: &str = "~~~~~ press any key to continue ~~~~~~";

/// A terminal that keeps the printed text, and counts keys.
#[derive(Clone, Default)]
struct Paper {
    text: Arc<Mutex<String>>,
    keys: Arc<Mutex<usize>>,
}

impl Terminal for Paper {
    fn write(&mut self, text: &str) {
        self.text.lock().unwrap().push_str(text);
    }

    fn wait_key(&mut self) {
        *self.keys.lock().unwrap() += 1;
    }
}

/// Plays a session. Returns the transcript, and how many keys were waited for.
fn session(line: &str) -> (String, usize) {
    let options = options::parse(line.split_whitespace(), tench_srr::max_priority()).unwrap();
    let paper = Paper::default();
    play(paper.clone(), options).unwrap();
    let text = paper.text.lock().unwrap().clone();
    let keys = *paper.keys.lock().unwrap();
    (text, keys)
}

/// Compares line by line, so that a failure names the first event that differs.
fn assert_same(text: &str, expected: &str) {
    for (number, (line, wanted)) in text.lines().zip(expected.lines()).enumerate() {
        assert_eq!(line, wanted, "line {} of\n{text}", number + 1);
    }
    assert_eq!(text, expected);
}

#[test]
fn the_reference_is_reproduced_without_pauses() {
    let expected: String = REFERENCE.lines().filter(|line| *line != PAUSE).map(|line| format!("{line}\n")).collect();
    let (text, keys) = session(SCENARIO);
    assert_same(&text, &expected);
    assert_eq!(keys, 0);
}

#[test]
fn the_reference_is_reproduced_with_pauses() {
    let (text, keys) = session(&format!("{SCENARIO} --pause"));
    assert_same(&text, REFERENCE);
    assert_eq!(keys, 5);
}

#[test]
fn the_same_seed_gives_the_same_transcript() {
    for line in ["--seed 1", "--seed 2 --players 32", "--seed 3 --players 7 --player 5:9 --player 0:20"] {
        assert_eq!(session(line), session(line));
    }
    assert_ne!(session("--seed 1 --player 1:20 --player 1:20"), session("--seed 2 --player 1:20 --player 1:20"));
}

/// Checks the lines of each player in a transcript, and that no player is left behind but an odd last one.
#[test]
fn all_players_play_and_leave() {
    for players in 0..=32 {
        let (text, _) = session(&format!("--seed {players} --players {players}"));
        let count = |part: &str| text.lines().filter(|line| line.contains(part)).count();
        assert_eq!(count("received player config"), players);
        assert_eq!(count("Sending signup"), players);
        let home = count("exiting");
        assert!(home == players || home + 1 == players, "{players} players:\n{text}");
        assert_eq!(count("I won!"), count("I lost :("));
        assert_eq!(count("it's a draw") % 2, 0);
    }
}
