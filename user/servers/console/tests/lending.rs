//! Tests of lending: what the process that is lent the terminal may do, and how it is taken back.

use tench_console::terminal::{Key, Outcome, Terminal};
use tench_console_interface::protocol::{Error, Mode};
use tench_protocol::Powers;
use tench_quota::Client;

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

/// Returns a terminal that the shell has lent to its child.
fn lent() -> Terminal<&'static str> {
    let mut terminal = terminal();
    terminal.set_foreground(SHELL, Powers::TERMINAL, CHILD).unwrap();
    terminal.lend(SHELL, Powers::empty(), CHILD, true).unwrap();
    terminal
}

/// Returns what the terminal shows of an escape character that a process writes.
fn shown_escape(terminal: &mut Terminal<&'static str>, process: u64) -> String {
    terminal.write_with(Client { process, family: CHILD }, Powers::empty(), b"\x1b", "w");
    assert_eq!(terminal.next_outcome(), Some(("w", Outcome::Done)));
    shown(terminal)
}

#[test]
fn who_is_lent_the_terminal_sets_the_mode_and_writes_as_it_likes_and_nothing_else() {
    let mut terminal = lent();
    let none = Powers::empty();
    assert_eq!(terminal.set_mode(CHILD, none, Mode::Raw), Ok(None));
    assert_eq!(shown_escape(&mut terminal, CHILD), "\x1b");
    terminal.read(Client::alone(CHILD), 100, None, "child");
    assert!(!type_text(&mut terminal, b"\x03"));
    assert_eq!(terminal.next_outcome(), Some(("child", input("\x03"))));
    // It does not choose who reads, nor who is told of keys, and cannot lend it on.
    for process in [0, CHILD, SHELL, 7] {
        assert_eq!(terminal.set_foreground(CHILD, none, process), Err(Error::NotYours));
        assert_eq!(terminal.lend(CHILD, none, process, true), Err(Error::NotYours));
    }
    assert_eq!(terminal.check_control(CHILD, none), Err(Error::NotYours));
    // Another process of its family, such as one that it has started, has got nothing.
    assert_eq!(terminal.set_mode(7, none, Mode::Canonical), Err(Error::NotYours));
    assert_eq!(shown_escape(&mut terminal, 7), "^[");
    // The owner still sets the mode.
    assert_eq!(terminal.set_mode(SHELL, none, Mode::Canonical), Ok(None));
}

#[test]
fn the_terminal_is_lent_by_its_owner_to_the_process_that_reads() {
    let mut terminal = terminal();
    let none = Powers::empty();
    // Nobody owns it, and every process reads.
    assert_eq!(terminal.lend(CHILD, none, CHILD, true), Err(Error::NotYours));
    for borrower in [0, CHILD] {
        assert_eq!(terminal.lend(SHELL, Powers::TERMINAL, borrower, true), Err(Error::NotReading));
    }
    terminal.set_foreground(SHELL, Powers::TERMINAL, CHILD).unwrap();
    assert_eq!(terminal.lend(CHILD, none, CHILD, true), Err(Error::NotYours));
    assert_eq!(terminal.lend(7, Powers::TERMINAL, CHILD, true), Err(Error::NotYours));
    assert_eq!(terminal.lend(SHELL, none, 7, true), Err(Error::NotReading));
    // Without a notification, Ctrl-] would tell nobody.
    assert_eq!(terminal.lend(SHELL, none, CHILD, false), Err(Error::NoSignal));
    assert_eq!(terminal.set_mode(CHILD, none, Mode::Raw), Err(Error::NotYours));
    assert_eq!(shown_escape(&mut terminal, CHILD), "^[");
    terminal.set_foreground(SHELL, none, 0).unwrap();
    assert_eq!(terminal.lend(SHELL, none, 0, true), Err(Error::NotReading));
}

#[test]
fn lending_ends_with_the_borrower_its_owner_or_the_next_reader() {
    let none = Powers::empty();
    let ends: [fn(&mut Terminal<&'static str>); 4] = [
        |terminal| drop(terminal.process_ended(CHILD)),
        |terminal| drop(terminal.process_ended(SHELL)),
        |terminal| terminal.set_foreground(SHELL, Powers::empty(), SHELL).unwrap(),
        // Even if the reader is the same.
        |terminal| terminal.set_foreground(SHELL, Powers::empty(), CHILD).unwrap(),
    ];
    for end in ends {
        let mut terminal = lent();
        terminal.set_mode(CHILD, none, Mode::Raw).unwrap();
        end(&mut terminal);
        assert_eq!(terminal.mode().0, Mode::Canonical);
        assert_eq!(terminal.set_mode(CHILD, none, Mode::Raw), Err(Error::NotYours));
        assert_eq!(shown_escape(&mut terminal, CHILD), "^[");
        assert_eq!(terminal.typed(29), None, "an ordinary character again");
    }
    // The end of others ends nothing; nor does the owner's raw mode end with the reader.
    let mut terminal = lent();
    terminal.process_ended(7);
    terminal.set_mode(CHILD, none, Mode::Raw).unwrap();
    terminal.set_foreground(SHELL, none, CHILD).unwrap();
    terminal.set_mode(SHELL, none, Mode::Raw).unwrap();
    terminal.process_ended(CHILD);
    assert_eq!(terminal.mode(), (Mode::Raw, SHELL, false));
}

#[test]
fn what_a_borrower_has_not_read_is_for_its_successor() {
    let mut terminal = lent();
    terminal.set_mode(CHILD, Powers::empty(), Mode::Raw).unwrap();
    type_text(&mut terminal, b"for it\x03next\r");
    terminal.process_ended(CHILD);
    terminal.read(Client::alone(SHELL), 100, None, "shell");
    assert_eq!(terminal.next_outcome(), Some(("shell", input("next\n"))));
    assert_eq!(shown(&mut terminal), "");
}

#[test]
fn control_bracket_interrupts_who_is_lent_the_terminal() {
    let mut terminal = lent();
    let interrupted = Some(("child", Outcome::Refused(Error::Interrupted)));
    terminal.read(Client::alone(CHILD), 100, None, "child");
    type_text(&mut terminal, b"half");
    assert_eq!(terminal.typed(29), Some(Key::Interrupt));
    assert_eq!(terminal.next_outcome(), interrupted);
    assert_eq!(shown(&mut terminal), "half^]\r\n");
    // In raw mode it is not delivered, nor is what was not read before, even if no more could be typed.
    terminal.set_mode(CHILD, Powers::empty(), Mode::Raw).unwrap();
    (0..5000).for_each(|_| _ = terminal.typed(b'x'));
    shown(&mut terminal);
    assert_eq!(terminal.typed(29), Some(Key::Interrupt));
    terminal.read(Client::alone(CHILD), 100, None, "child");
    assert_eq!(terminal.next_outcome(), None);
    assert_eq!(terminal.typed(29), Some(Key::Interrupt));
    assert_eq!(terminal.next_outcome(), interrupted);
    assert_eq!(shown(&mut terminal), "");
    // Elsewhere it is a character.
    let mut terminal = self::terminal();
    terminal.set_mode(SHELL, Powers::TERMINAL, Mode::Raw).unwrap();
    assert_eq!(terminal.typed(29), None);
    terminal.read(Client::alone(SHELL), 100, None, "shell");
    assert_eq!(terminal.next_outcome(), Some(("shell", input("\x1d"))));
}

#[test]
fn an_unfinished_character_does_not_outlast_the_beginning_of_the_loan() {
    let mut terminal = terminal();
    let write = |terminal: &mut Terminal<&'static str>, text: &[u8]| {
        terminal.write_with(Client::alone(CHILD), Powers::empty(), text, "w");
        shown(terminal)
    };
    terminal.set_foreground(SHELL, Powers::TERMINAL, CHILD).unwrap();
    assert_eq!(write(&mut terminal, b"\xc3"), "");
    terminal.lend(SHELL, Powers::empty(), CHILD, true).unwrap();
    assert_eq!(write(&mut terminal, b"a"), "a");
    terminal.set_foreground(SHELL, Powers::empty(), CHILD).unwrap();
    assert_eq!(write(&mut terminal, b"b"), "b");
}
