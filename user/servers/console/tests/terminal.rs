//! The terminal: line discipline, echo, who reads.

use proptest::prelude::*;
use tench_console::terminal::{Answer, Terminal};
use tench_console_client::protocol::{Error, Mode};

const SHELL: u64 = 5;
const CHILD: u64 = 6;

fn terminal() -> Terminal<&'static str> {
    Terminal::new(8)
}

fn type_text(terminal: &mut Terminal<&'static str>, text: &[u8]) -> bool {
    text.iter().any(|&byte| terminal.typed(byte))
}

/// What the terminal would show.
fn shown(terminal: &mut Terminal<&'static str>) -> String {
    let bytes: Vec<u8> = std::iter::from_fn(|| terminal.output.pop()).collect();
    terminal.sent();
    String::from_utf8(bytes).unwrap()
}

fn input(text: &str) -> Answer {
    Answer::Input(text.as_bytes().to_vec())
}

/// What one reader gets for `typed` in canonical mode.
fn line(typed: &[u8]) -> String {
    let mut terminal = terminal();
    terminal.read(SHELL, 100, "r");
    type_text(&mut terminal, typed);
    match terminal.next_answer() {
        Some(("r", Answer::Input(bytes))) => String::from_utf8(bytes).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_line_is_read_when_it_is_complete() {
    let mut terminal = terminal();
    terminal.read(SHELL, 100, "r");
    type_text(&mut terminal, b"hello");
    assert_eq!(terminal.next_answer(), None);
    type_text(&mut terminal, b"\r");
    assert_eq!(terminal.next_answer(), Some(("r", input("hello\n"))));
    assert_eq!(shown(&mut terminal), "hello\r\n");
}

#[test]
fn lines_can_be_typed_ahead() {
    let mut terminal = terminal();
    type_text(&mut terminal, b"one\rtwo\r");
    terminal.read(SHELL, 100, "a");
    terminal.read(SHELL, 2, "b");
    terminal.read(SHELL, 100, "c");
    assert_eq!(terminal.next_answer(), Some(("a", input("one\n"))));
    assert_eq!(terminal.next_answer(), Some(("b", input("tw"))));
    assert_eq!(terminal.next_answer(), Some(("c", input("o\n"))));
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
fn the_end_of_input_is_an_empty_answer() {
    let mut terminal = terminal();
    terminal.read(SHELL, 100, "a");
    terminal.read(SHELL, 100, "b");
    type_text(&mut terminal, b"\x04");
    assert_eq!(terminal.next_answer(), Some(("a", input(""))));
    assert_eq!(terminal.next_answer(), None);
    type_text(&mut terminal, b"half\x04");
    assert_eq!(terminal.next_answer(), Some(("b", input("half"))));
}

#[test]
fn ctrl_c_interrupts_and_forgets_the_line() {
    let mut terminal = terminal();
    terminal.read(SHELL, 100, "a");
    assert!(type_text(&mut terminal, b"oops\x03"));
    assert_eq!(terminal.next_answer(), Some(("a", Answer::Refused(Error::Interrupted))));
    assert_eq!(shown(&mut terminal), "oops^C\r\n");
    terminal.read(SHELL, 100, "b");
    type_text(&mut terminal, b"ok\r");
    assert_eq!(terminal.next_answer(), Some(("b", input("ok\n"))));
}

#[test]
fn raw_mode_gives_every_byte_and_echoes_none() {
    let mut terminal = terminal();
    terminal.set_mode(SHELL, Mode::Raw).unwrap();
    terminal.read(SHELL, 100, "a");
    assert!(!type_text(&mut terminal, b"\x03"));
    assert_eq!(terminal.next_answer(), Some(("a", input("\x03"))));
    type_text(&mut terminal, b"\x1b[A\r\x04");
    terminal.read(SHELL, 100, "b");
    assert_eq!(terminal.next_answer(), Some(("b", input("\x1b[A\r\x04"))));
    assert_eq!(shown(&mut terminal), "");
}

#[test]
fn what_was_typed_survives_a_change_of_mode() {
    let mut terminal = terminal();
    type_text(&mut terminal, b"li");
    terminal.set_mode(SHELL, Mode::Raw).unwrap();
    terminal.read(SHELL, 100, "a");
    assert_eq!(terminal.next_answer(), Some(("a", input("li"))));
}

#[test]
fn only_the_foreground_reads() {
    let mut terminal = terminal();
    terminal.set_foreground(SHELL, CHILD).unwrap();
    terminal.read(SHELL, 100, "shell");
    terminal.read(CHILD, 100, "child");
    type_text(&mut terminal, b"for the child\r");
    assert_eq!(terminal.next_answer(), Some(("child", input("for the child\n"))));
    type_text(&mut terminal, b"next\r");
    assert_eq!(terminal.next_answer(), None);
    terminal.set_foreground(SHELL, 0).unwrap();
    assert_eq!(terminal.next_answer(), Some(("shell", input("next\n"))));
}

#[test]
fn the_first_who_asks_owns_the_terminal() {
    let mut terminal = terminal();
    terminal.set_foreground(SHELL, 0).unwrap();
    assert_eq!(terminal.set_foreground(CHILD, CHILD), Err(Error::NotYours));
    assert_eq!(terminal.set_mode(CHILD, Mode::Raw), Err(Error::NotYours));
    terminal.set_mode(SHELL, Mode::Raw).unwrap();
    assert_eq!(terminal.process_ended(SHELL), (vec![], true));
    assert_eq!(terminal.mode(), (Mode::Canonical, 0, false));
    terminal.set_foreground(CHILD, CHILD).unwrap();
}

#[test]
fn an_ended_process_reads_nothing_more() {
    let mut terminal = terminal();
    terminal.set_foreground(SHELL, CHILD).unwrap();
    terminal.read(CHILD, 100, "child");
    terminal.read(SHELL, 100, "shell");
    assert_eq!(terminal.process_ended(CHILD), (vec!["child"], false));
    type_text(&mut terminal, b"x\r");
    assert_eq!(terminal.next_answer(), Some(("shell", input("x\n"))));
}

#[test]
fn input_for_somebody_who_is_gone_goes_to_the_next() {
    let mut terminal = terminal();
    terminal.read(CHILD, 100, "child");
    type_text(&mut terminal, b"x\r\x04");
    let Some(("child", Answer::Input(bytes))) = terminal.next_answer() else { panic!("no answer") };
    terminal.undelivered(&bytes);
    terminal.read(SHELL, 100, "shell");
    terminal.read(SHELL, 100, "again");
    assert_eq!(terminal.next_answer(), Some(("shell", input("x\n"))));
    assert_eq!(terminal.next_answer(), Some(("again", input(""))));
}

#[test]
fn writers_wait_for_room_in_turn() {
    let mut terminal = terminal();
    let text = [b'x'; 448];
    for _ in 0..16 {
        terminal.write(CHILD, &text, "early");
    }
    assert_eq!(std::iter::from_fn(|| terminal.next_answer()).count(), 16);
    // 16 × 448 bytes are in the buffer of 8000, and 448 more could become 896.
    terminal.write(CHILD, &text, "late");
    terminal.write(SHELL, b"short", "later");
    terminal.drain(SHELL, "drain");
    assert_eq!(terminal.next_answer(), None);
    let mut bytes = 0;
    while terminal.output.pop().is_some() {
        bytes += 1;
        terminal.sent();
    }
    assert_eq!(bytes, 17 * 448 + 5);
    let order: Vec<_> = std::iter::from_fn(|| terminal.next_answer()).map(|(reply, _)| reply).collect();
    assert_eq!(order, ["late", "later", "drain"]);
}

#[test]
fn too_many_who_wait_are_an_error_and_nothing_is_read_at_once() {
    let mut terminal = terminal();
    for _ in 0..4 {
        terminal.read(CHILD, 1, "waits");
    }
    // As many are free as it has: the rest is for others.
    terminal.read(CHILD, 1, "fifth");
    assert_eq!(terminal.next_answer(), Some(("fifth", Answer::Refused(Error::Full))));
    terminal.drain(CHILD, "sixth");
    assert_eq!(terminal.next_answer(), Some(("sixth", Answer::Refused(Error::Full))));
    assert!(terminal.may_wait(SHELL));
    terminal.drain(SHELL, "other");
    assert_eq!(terminal.next_answer(), None);
    assert_eq!(terminal.take_out(CHILD, |_| true).len(), 4);
    assert!(terminal.may_wait(CHILD));
    terminal.read(CHILD, 1, "again");
    assert_eq!(terminal.next_answer(), None);
    terminal.read(CHILD, 0, "none");
    assert_eq!(terminal.next_answer(), Some(("none", input(""))));
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
                terminal.read(SHELL, max, "r");
                match terminal.next_answer() {
                    Some((_, Answer::Input(bytes))) => {
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
        terminal.set_mode(SHELL, if raw { Mode::Raw } else { Mode::Canonical }).unwrap();
        for byte in bytes {
            terminal.typed(byte);
        }
        while terminal.output.pop().is_some() {}
    }
}

#[test]
fn it_is_known_whether_a_line_is_complete() {
    let mut terminal = terminal();
    let mut is_mid_line_after = |text: &str| {
        terminal.write(SHELL, text.as_bytes(), "w");
        shown(&mut terminal);
        terminal.mode().2
    };
    assert!(!is_mid_line_after(""));
    assert!(is_mid_line_after("no end"));
    assert!(is_mid_line_after("\n\r."));
    assert!(!is_mid_line_after("\n"));
    assert!(!is_mid_line_after(""));
}
