//! Tests of the terminal: line discipline, echo, ownership.

use proptest::prelude::*;
use tench_console::terminal::{Key, Outcome, Terminal};
use tench_console_interface::protocol::{Error, Mode};
use tench_protocol::Powers;
use tench_quota::Client;
use tench_sys::Instant;

const SHELL: u64 = 5;
const CHILD: u64 = 6;

fn terminal() -> Terminal<&'static str> {
    Terminal::new(8)
}

fn type_text(terminal: &mut Terminal<&'static str>, text: &[u8]) -> bool {
    text.iter().any(|&byte| terminal.typed(byte) == Some(Key::Interrupt))
}

/// Returns what the terminal would show.
fn shown(terminal: &mut Terminal<&'static str>) -> String {
    let bytes: Vec<u8> = std::iter::from_fn(|| terminal.output.pop()).collect();
    terminal.sent(|_| false);
    String::from_utf8(bytes).unwrap()
}

fn input(text: &str) -> Outcome {
    Outcome::Input(text.as_bytes().to_vec())
}

/// Returns what one reader gets for `typed` in canonical mode.
fn line(typed: &[u8]) -> String {
    let mut terminal = terminal();
    terminal.read(Client::alone(SHELL), 100, None, "r");
    type_text(&mut terminal, typed);
    match terminal.next_outcome() {
        Some(("r", Outcome::Input(bytes))) => String::from_utf8(bytes).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_line_is_read_when_it_is_complete() {
    let mut terminal = terminal();
    terminal.read(Client::alone(SHELL), 100, None, "r");
    type_text(&mut terminal, b"hello");
    assert_eq!(terminal.next_outcome(), None);
    type_text(&mut terminal, b"\r");
    assert_eq!(terminal.next_outcome(), Some(("r", input("hello\n"))));
    assert_eq!(shown(&mut terminal), "hello\r\n");
}

#[test]
fn lines_can_be_typed_ahead() {
    let mut terminal = terminal();
    type_text(&mut terminal, b"one\rtwo\r");
    terminal.read(Client::alone(SHELL), 100, None, "a");
    terminal.read(Client::alone(SHELL), 2, None, "b");
    terminal.read(Client::alone(SHELL), 100, None, "c");
    assert_eq!(terminal.next_outcome(), Some(("a", input("one\n"))));
    assert_eq!(terminal.next_outcome(), Some(("b", input("tw"))));
    assert_eq!(terminal.next_outcome(), Some(("c", input("o\n"))));
}

#[test]
fn editing_keys_edit() {
    assert_eq!(line(b"cax\x7ft\r"), "cat\n");
    assert_eq!(line(b"\x08\x08cat\r"), "cat\n");
    assert_eq!(line("gr\u{fc}\x7fu\r".as_bytes()), "gru\n");
    assert_eq!(line(b"all gone\x15cat\r"), "cat\n");
    assert_eq!(line(b"rm -rf  \x17-i x\r"), "rm -i x\n");
    assert_eq!(line(b"\x17\x15cat\r"), "cat\n");
}

#[test]
fn rubbing_out_clears_the_screen_too() {
    let mut terminal = terminal();
    type_text(&mut terminal, "a\u{fc}\x01\x7f\x7f".as_bytes());
    assert_eq!(shown(&mut terminal), "a\u{fc}^A\x08 \x08\x08 \x08\x08 \x08");
}

#[test]
fn the_end_of_input_is_an_empty_read() {
    let mut terminal = terminal();
    terminal.read(Client::alone(SHELL), 100, None, "a");
    terminal.read(Client::alone(SHELL), 100, None, "b");
    type_text(&mut terminal, b"\x04");
    assert_eq!(terminal.next_outcome(), Some(("a", input(""))));
    assert_eq!(terminal.next_outcome(), None);
    type_text(&mut terminal, b"half\x04");
    assert_eq!(terminal.next_outcome(), Some(("b", input("half"))));
}

#[test]
fn ctrl_c_interrupts_and_forgets_the_line() {
    let mut terminal = terminal();
    terminal.read(Client::alone(SHELL), 100, None, "a");
    assert!(type_text(&mut terminal, b"oops\x03"));
    assert_eq!(terminal.next_outcome(), Some(("a", Outcome::Refused(Error::Interrupted))));
    assert_eq!(shown(&mut terminal), "oops^C\r\n");
    terminal.read(Client::alone(SHELL), 100, None, "b");
    type_text(&mut terminal, b"ok\r");
    assert_eq!(terminal.next_outcome(), Some(("b", input("ok\n"))));
}

#[test]
fn raw_mode_gives_every_byte_and_echoes_none() {
    let mut terminal = terminal();
    terminal.set_mode(SHELL, Powers::TERMINAL, Mode::Raw).unwrap();
    terminal.read(Client::alone(SHELL), 100, None, "a");
    assert!(!type_text(&mut terminal, b"\x03"));
    assert_eq!(terminal.next_outcome(), Some(("a", input("\x03"))));
    type_text(&mut terminal, b"\x1b[A\r\x04");
    terminal.read(Client::alone(SHELL), 100, None, "b");
    assert_eq!(terminal.next_outcome(), Some(("b", input("\x1b[A\r\x04"))));
    assert_eq!(shown(&mut terminal), "");
}

#[test]
fn typed_input_survives_a_change_of_mode() {
    let mut terminal = terminal();
    type_text(&mut terminal, b"li");
    terminal.set_mode(SHELL, Powers::TERMINAL, Mode::Raw).unwrap();
    terminal.read(Client::alone(SHELL), 100, None, "a");
    assert_eq!(terminal.next_outcome(), Some(("a", input("li"))));
}

#[test]
fn only_the_foreground_reads() {
    let mut terminal = terminal();
    terminal.set_foreground(SHELL, Powers::TERMINAL, CHILD).unwrap();
    terminal.read(Client::alone(SHELL), 100, None, "shell");
    terminal.read(Client::alone(CHILD), 100, None, "child");
    type_text(&mut terminal, b"for the child\r");
    assert_eq!(terminal.next_outcome(), Some(("child", input("for the child\n"))));
    type_text(&mut terminal, b"next\r");
    assert_eq!(terminal.next_outcome(), None);
    terminal.set_foreground(SHELL, Powers::TERMINAL, 0).unwrap();
    assert_eq!(terminal.next_outcome(), Some(("shell", input("next\n"))));
}

#[test]
fn the_terminal_is_its_owners_and_if_nobody_has_it_the_power_takes_it() {
    let mut terminal = terminal();
    let without = Powers::all().difference(Powers::TERMINAL);
    // The terminal has no owner, and still not every process may take it. (Process 0 stands for none.)
    for process in [0, CHILD] {
        assert_eq!(terminal.set_foreground(process, without, process), Err(Error::NotYours));
        assert_eq!(terminal.set_mode(process, without, Mode::Raw), Err(Error::NotYours));
        assert_eq!(terminal.check_control(process, without), Err(Error::NotYours));
    }
    terminal.set_foreground(SHELL, Powers::TERMINAL, 0).unwrap();
    assert_eq!(terminal.set_foreground(CHILD, without, CHILD), Err(Error::NotYours));
    assert_eq!(terminal.set_mode(CHILD, without, Mode::Raw), Err(Error::NotYours));
    terminal.set_mode(SHELL, without, Mode::Raw).unwrap();
    assert_eq!(terminal.process_ended(SHELL), (vec![], true));
    assert_eq!(terminal.mode(), (Mode::Canonical, 0, false));
    terminal.set_foreground(CHILD, Powers::TERMINAL, CHILD).unwrap();
    // The power does not take it from its owner.
    assert_eq!(terminal.set_foreground(SHELL, Powers::TERMINAL, 0), Err(Error::NotYours));
    assert_eq!(terminal.set_mode(SHELL, Powers::TERMINAL, Mode::Raw), Err(Error::NotYours));
    assert_eq!(terminal.check_control(SHELL, Powers::TERMINAL), Err(Error::NotYours));
    terminal.set_foreground(CHILD, without, 0).unwrap();
}

#[test]
fn an_ended_process_reads_nothing_more() {
    let mut terminal = terminal();
    terminal.set_foreground(SHELL, Powers::TERMINAL, CHILD).unwrap();
    terminal.read(Client::alone(CHILD), 100, None, "child");
    terminal.read(Client::alone(SHELL), 100, None, "shell");
    assert_eq!(terminal.process_ended(CHILD), (vec!["child"], false));
    type_text(&mut terminal, b"x\r");
    assert_eq!(terminal.next_outcome(), Some(("shell", input("x\n"))));
}

#[test]
fn the_owner_reads_after_the_foreground_has_ended() {
    let mut terminal = terminal();
    terminal.set_foreground(SHELL, Powers::TERMINAL, CHILD).unwrap();
    terminal.read(Client::alone(7), 100, None, "background");
    assert_eq!(terminal.process_ended(CHILD), (vec![], false));
    type_text(&mut terminal, b"for the shell\r");
    assert_eq!(terminal.next_outcome(), None);
    terminal.read(Client::alone(SHELL), 100, None, "shell");
    assert_eq!(terminal.next_outcome(), Some(("shell", input("for the shell\n"))));
}

#[test]
fn control_z_is_a_key_if_somebody_wants_it() {
    let mut terminal = terminal();
    terminal.read(Client::alone(SHELL), 100, None, "first");
    assert_eq!(terminal.typed(26), None);
    type_text(&mut terminal, b"\r");
    assert_eq!(terminal.next_outcome(), Some(("first", input("\x1a\n"))));
    terminal.set_suspends(true);
    terminal.read(Client::alone(SHELL), 100, None, "second");
    type_text(&mut terminal, b"given up");
    assert_eq!(terminal.typed(26), Some(Key::Suspend));
    assert_eq!(shown(&mut terminal), "^Z\r\ngiven up^Z\r\n");
    // A suspended reader goes on reading when it is resumed.
    type_text(&mut terminal, b"x\r");
    assert_eq!(terminal.next_outcome(), Some(("second", input("x\n"))));
    terminal.set_mode(SHELL, Powers::TERMINAL, Mode::Raw).unwrap();
    assert_eq!(terminal.typed(26), None);
}

#[test]
fn control_c_before_the_mode_changes_is_not_lost() {
    let mut terminal = terminal();
    terminal.set_mode(SHELL, Powers::TERMINAL, Mode::Raw).unwrap();
    type_text(&mut terminal, b"one\x03two\x03x\r");
    assert_eq!(terminal.set_mode(SHELL, Powers::TERMINAL, Mode::Raw), Ok(None));
    assert_eq!(terminal.set_mode(SHELL, Powers::TERMINAL, Mode::Canonical), Ok(Some(Key::Interrupt)));
    assert_eq!(shown(&mut terminal), "^C\r\n");
    assert_eq!(terminal.set_mode(SHELL, Powers::TERMINAL, Mode::Canonical), Ok(None));
    terminal.read(Client::alone(SHELL), 100, None, "r");
    assert_eq!(terminal.next_outcome(), Some(("r", input("x\n"))));
    // Ctrl-Z likewise, if it is a key; lines and the end of the input are treated as such for the next reader.
    terminal.set_mode(SHELL, Powers::TERMINAL, Mode::Raw).unwrap();
    type_text(&mut terminal, b"\x1a");
    assert_eq!(terminal.set_mode(SHELL, Powers::TERMINAL, Mode::Canonical), Ok(None));
    terminal.set_suspends(true);
    terminal.set_mode(SHELL, Powers::TERMINAL, Mode::Raw).unwrap();
    type_text(&mut terminal, b"one\x1atwo\rthree\r\x04");
    assert_eq!(terminal.set_mode(SHELL, Powers::TERMINAL, Mode::Canonical), Ok(Some(Key::Suspend)));
    assert_eq!(shown(&mut terminal), "^Z\r\n");
    for expected in ["two\n", "three\n", ""] {
        terminal.read(Client::alone(SHELL), 100, None, "r");
        assert_eq!(terminal.next_outcome(), Some(("r", input(expected))));
    }
}

#[test]
fn a_read_with_a_deadline_is_refused_at_that_time() {
    let mut terminal = terminal();
    let at = |ticks| Some(Instant::from_ticks(ticks));
    terminal.read(Client::alone(SHELL), 100, at(20), "late");
    terminal.read(Client::alone(SHELL), 100, at(10), "early");
    terminal.read(Client::alone(SHELL), 100, None, "patient");
    assert_eq!(terminal.next_deadline(), at(10));
    assert!(!terminal.expire_one(Instant::from_ticks(9)));
    assert!(terminal.expire_one(Instant::from_ticks(10)) && !terminal.expire_one(Instant::from_ticks(10)));
    assert_eq!(terminal.next_outcome(), Some(("early", Outcome::Refused(Error::TimedOut))));
    assert_eq!(terminal.next_deadline(), at(20));
    type_text(&mut terminal, b"x\r");
    assert_eq!(terminal.next_outcome(), Some(("late", input("x\n"))));
    assert_eq!(terminal.next_deadline(), None);
    assert!(!terminal.expire_one(Instant::from_ticks(u64::MAX)));
    type_text(&mut terminal, b"y\r");
    assert_eq!(terminal.next_outcome(), Some(("patient", input("y\n"))));
}

#[test]
fn a_read_that_does_not_wait_gets_the_available_input() {
    let mut terminal = terminal();
    let refused = Some(("now", Outcome::Refused(Error::TimedOut)));
    terminal.read_at_once(Client::alone(SHELL), 100, "now");
    assert_eq!(terminal.next_outcome(), refused);
    type_text(&mut terminal, b"x\r");
    terminal.read_at_once(Client::alone(SHELL), 100, "now");
    assert_eq!(terminal.next_outcome(), Some(("now", input("x\n"))));
    // Input for the process in the foreground is not for others.
    terminal.set_foreground(SHELL, Powers::TERMINAL, CHILD).unwrap();
    type_text(&mut terminal, b"y\r");
    terminal.read_at_once(Client::alone(SHELL), 100, "now");
    assert_eq!(terminal.next_outcome(), refused);
    terminal.read_at_once(Client::alone(CHILD), 100, "child");
    assert_eq!(terminal.next_outcome(), Some(("child", input("y\n"))));
}

/// However many wait, a request checks a few waits, and the next one others.
#[test]
fn abandoned_waits_are_found_a_few_at_a_time() {
    let mut terminal = Terminal::new(64);
    let mut looked_at = Vec::new();
    for number in 0..20 {
        match number % 2 {
            0 => terminal.read(Client::alone(CHILD), 1, None, number),
            _ => terminal.drain(Client::alone(CHILD), number),
        }
        terminal.read(Client::alone(SHELL), 1, None, 100 + number);
    }
    for _ in 0..7 {
        let gone = terminal.take_out_some(CHILD, 3, |number| {
            looked_at.push(*number);
            *number == 7
        });
        assert!(gone.is_empty() || gone == [7], "{gone:?}");
        drop(terminal.take_out_some(SHELL, 3, |_| false));
    }
    looked_at.sort_unstable();
    assert_eq!(looked_at, (0..20).collect::<Vec<_>>(), "each once");
}

#[test]
fn input_for_somebody_who_is_gone_goes_to_the_next() {
    let mut terminal = terminal();
    terminal.read(Client::alone(CHILD), 100, None, "child");
    type_text(&mut terminal, b"x\r\x04");
    let Some(("child", Outcome::Input(bytes))) = terminal.next_outcome() else { panic!("no reply") };
    terminal.undelivered(&bytes);
    terminal.read(Client::alone(SHELL), 100, None, "shell");
    terminal.read(Client::alone(SHELL), 100, None, "again");
    assert_eq!(terminal.next_outcome(), Some(("shell", input("x\n"))));
    assert_eq!(terminal.next_outcome(), Some(("again", input(""))));
}

#[test]
fn writers_wait_for_free_space_in_turn() {
    let mut terminal = terminal();
    let text = [b'x'; 448];
    for _ in 0..16 {
        terminal.write(Client::alone(CHILD), &text, "early");
    }
    assert_eq!(std::iter::from_fn(|| terminal.next_outcome()).count(), 16);
    // 16 × 448 bytes are in the buffer of 8000, and 448 more could become 896.
    terminal.write(Client::alone(CHILD), &text, "late");
    terminal.write(Client::alone(SHELL), b"short", "later");
    terminal.drain(Client::alone(SHELL), "drain");
    assert_eq!(terminal.next_outcome(), None);
    let mut bytes = 0;
    while terminal.output.pop().is_some() {
        bytes += 1;
        terminal.sent(|_| false);
    }
    assert_eq!(bytes, 17 * 448 + 5);
    let order: Vec<_> = std::iter::from_fn(|| terminal.next_outcome()).map(|(reply, _)| reply).collect();
    assert_eq!(order, ["late", "later", "drain"]);
}

/// Once a request has found no room, requests continue until all waits of its family have been checked: otherwise the
/// table would stay nearly full of abandoned waits, and every request would take as long as a check.
#[test]
fn looking_goes_on_until_all_have_been_looked_at() {
    let mut terminal = Terminal::new(64);
    (0..32).for_each(|_| terminal.read(Client::alone(CHILD), 1, None, "gone"));
    assert!(!terminal.may_wait(Client::alone(CHILD)) && !terminal.is_looking(CHILD));
    let mut goes = 0;
    while goes == 0 || terminal.is_looking(CHILD) {
        goes += 1;
        assert_eq!(terminal.take_out_some(CHILD, 8, |_| true).len(), 8);
        assert!(terminal.may_wait(Client::alone(CHILD)) && !terminal.is_looking(SHELL));
    }
    assert_eq!(goes, 4);
    // Waits that are still alive are also checked once each.
    (0..20).for_each(|_| terminal.read(Client::alone(CHILD), 1, None, "waits"));
    let looking: Vec<bool> = (0..3)
        .map(|_| {
            assert!(terminal.take_out_some(CHILD, 8, |_| false).is_empty());
            terminal.is_looking(CHILD)
        })
        .collect();
    assert_eq!(looking, [true, true, false]);
}

/// Texts of writers that had given up once came before those of others, unless all were checked whenever there was no
/// room.
#[test]
fn texts_of_writers_who_have_gone_are_not_shown() {
    let mut terminal = Terminal::new(64);
    let text = [b'x'; 448];
    (0..16).for_each(|_| _ = terminal.write(Client::alone(CHILD), &text, "early"));
    assert_eq!(std::iter::from_fn(|| terminal.next_outcome()).count(), 16);
    (0..20).for_each(|_| _ = terminal.write(Client::alone(CHILD), &text, "gone"));
    terminal.write(Client::alone(SHELL), b"other", "other");
    terminal.drain(Client::alone(SHELL), "drain");
    assert!(!terminal.has_capacity());
    while terminal.output.pop().is_some() {}
    // A few are checked at a time, and as long as there is room for another there is something to do.
    let (mut goes, mut looks) = (0, 0);
    while terminal.has_capacity() {
        goes += 1;
        let before = looks;
        terminal.sent(|reply| {
            looks += 1;
            *reply == "gone"
        });
        assert!(looks - before <= 8);
    }
    assert_eq!((goes, looks), (3, 21));
    let order: Vec<_> = std::iter::from_fn(|| terminal.next_outcome()).map(|(reply, _)| reply).collect();
    assert_eq!(order[19..], ["gone", "other"], "the line is not yet through");
    assert_eq!(shown(&mut terminal), "other");
    assert_eq!(terminal.next_outcome(), Some(("drain", Outcome::Done)));
}

#[test]
fn too_many_who_wait_are_an_error_and_nothing_is_read_at_once() {
    let mut terminal = terminal();
    for _ in 0..4 {
        terminal.read(Client::alone(CHILD), 1, None, "waits");
    }
    // As many are free as it has: the rest is for others.
    terminal.read(Client::alone(CHILD), 1, None, "fifth");
    assert_eq!(terminal.next_outcome(), Some(("fifth", Outcome::Refused(Error::Full))));
    terminal.drain(Client::alone(CHILD), "sixth");
    assert_eq!(terminal.next_outcome(), Some(("sixth", Outcome::Refused(Error::Full))));
    assert!(terminal.may_wait(Client::alone(SHELL)));
    terminal.drain(Client::alone(SHELL), "other");
    assert_eq!(terminal.next_outcome(), None);
    // A child of the child is no further process in this.
    let grandchild = Client { process: 99, family: CHILD };
    assert!(!terminal.may_wait(grandchild));
    assert_eq!(terminal.take_out_some(CHILD, 9, |_| true).len(), 4);
    assert!(terminal.may_wait(grandchild));
    assert!(terminal.may_wait(Client::alone(CHILD)));
    terminal.read(Client::alone(CHILD), 1, None, "again");
    assert_eq!(terminal.next_outcome(), None);
    terminal.read(Client::alone(CHILD), 0, None, "none");
    assert_eq!(terminal.next_outcome(), Some(("none", input(""))));
}

proptest! {
    #[test]
    fn lines_of_plain_text_arrive_unchanged(lines in prop::collection::vec("[ -~]{0,60}", 0..20), max in 1usize..80) {
        let mut terminal = terminal();
        let mut received = Vec::new();
        for line in &lines {
            type_text(&mut terminal, line.as_bytes());
            type_text(&mut terminal, b"\r");
            shown(&mut terminal);
            while !received.ends_with(b"\n") {
                terminal.read(Client::alone(SHELL), max, None, "r");
                match terminal.next_outcome() {
                    Some((_, Outcome::Input(bytes))) => {
                        prop_assert!(!bytes.is_empty() && bytes.len() <= max);
                        received.extend(bytes);
                    }
                    other => panic!("{other:?}"),
                }
            }
            prop_assert_eq!(std::mem::take(&mut received), format!("{line}\n").into_bytes());
        }
    }

    #[test]
    fn any_typing_is_harmless(bytes in prop::collection::vec(any::<u8>(), 0..6000), raw in any::<bool>()) {
        let mut terminal = terminal();
        terminal.set_mode(SHELL, Powers::TERMINAL, if raw { Mode::Raw } else { Mode::Canonical }).unwrap();
        for byte in bytes {
            terminal.typed(byte);
        }
        while terminal.output.pop().is_some() {}
    }
}

#[test]
fn complete_lines_are_recognised() {
    let mut terminal = terminal();
    let mut is_mid_line_after = |text: &str| {
        terminal.write(Client::alone(SHELL), text.as_bytes(), "w");
        shown(&mut terminal);
        terminal.mode().2
    };
    assert!(!is_mid_line_after(""));
    assert!(is_mid_line_after("no end"));
    assert!(is_mid_line_after("\n\r."));
    assert!(!is_mid_line_after("\n"));
    assert!(!is_mid_line_after(""));
}
