//! Tests of the line editor: bytes in, bytes out, and their effect on a terminal.

use proptest::prelude::*;
use tench_shell::editor::{Completion, Editor, Event, MAX_LINE};

const PROMPT: &str = "tench> ";
const UP: &[u8] = b"\x1b[A";
const DOWN: &[u8] = b"\x1b[B";
const RIGHT: &[u8] = b"\x1b[C";
const LEFT: &[u8] = b"\x1b[D";
/// Bytes by which the editor asks for the terminal's width.
const QUESTION: &[u8] = b"\x1b[6n";

/// An editor at a terminal.
struct Session {
    editor: Editor,
    terminal: vt100::Parser,
    columns: u16,
    /// Set if the terminal replies to queries.
    replies: bool,
    sent: Vec<u8>,
}

impl Session {
    fn new(columns: u16) -> Session {
        let terminal = vt100::Parser::new(40, columns, 0);
        let mut session = Session { editor: Editor::new(PROMPT), terminal, columns, replies: true, sent: Vec::new() };
        session.begin_line();
        session
    }

    fn begin_line(&mut self) {
        let mut out = Vec::new();
        self.editor.begin_line(&mut out);
        self.show(&out);
    }

    /// Sends bytes to the terminal. Returns whether there was a question among them.
    fn show(&mut self, out: &[u8]) -> bool {
        self.sent.extend_from_slice(out);
        // The console server makes both of a line feed.
        for &byte in out {
            if byte == b'\n' {
                self.terminal.process(b"\r");
            }
            self.terminal.process(&[byte]);
        }
        out.windows(QUESTION.len()).any(|window| window == QUESTION)
    }

    fn feed(&mut self, byte: u8) -> Event {
        let mut out = Vec::new();
        let event = self.editor.feed(byte, &mut out);
        if self.show(&out) && self.replies {
            for byte in format!("\x1b[7;{}R", self.columns).bytes() {
                out.clear();
                assert_eq!(self.editor.feed(byte, &mut out), Event::Nothing);
                assert!(!self.show(&out));
            }
        }
        event
    }

    /// Types keys that do not complete a line.
    fn type_keys(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            assert_eq!(self.feed(byte), Event::Nothing);
        }
    }

    /// Types a line and begins the next. Returns the line.
    fn enter(&mut self, bytes: &[u8]) -> String {
        self.type_keys(bytes);
        let Event::Line(line) = self.feed(b'\r') else { panic!("no line") };
        self.begin_line();
        line
    }

    /// Returns what was sent since the last call.
    fn sent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.sent)
    }

    /// Returns the last line on the screen, from its prompt on, without the effects of wrapping.
    fn shown(&self) -> String {
        let contents = self.terminal.screen().contents();
        let start = contents.rfind(PROMPT).expect("no prompt");
        contents[start..].trim_end().to_string()
    }

    fn complete(&mut self, replaces: usize, text: &str, choices: &[&str]) {
        assert_eq!(self.feed(b'\t'), Event::Complete);
        let choices = choices.iter().map(|&choice| choice.into()).collect();
        let mut out = Vec::new();
        self.editor.complete(&Completion { replaces, text: text.into(), choices }, &mut out);
        self.show(&out);
    }
}

#[test]
fn typing_echoes_just_what_was_typed() {
    let mut session = Session::new(80);
    assert_eq!(session.enter(b"echo one"), "echo one");
    assert_eq!(session.sent(), b"tench> echo one\ntench> ");
    // This holds also for a line that is longer than a row.
    let long = "echo ".to_string() + &"x".repeat(200);
    assert_eq!(session.enter(long.as_bytes()), long);
    assert_eq!(session.sent(), (long + "\ntench> ").as_bytes());
}

#[test]
fn return_line_feed_and_both_end_a_line() {
    for (bytes, lines) in [(&b"\r"[..], 1), (b"\n", 1), (b"\r\n", 1), (b"\n\r", 2), (b"\r\r", 2), (b"\r\n\n", 2)] {
        let mut session = Session::new(80);
        let count = bytes.iter().filter(|&&byte| session.feed(byte) == Event::Line(String::new())).count();
        assert_eq!(count, lines, "{bytes:?}");
    }
}

#[test]
fn keys_edit_the_line() {
    let cases: &[(&[u8], &str)] = &[
        (b"abc\x7f", "ab"),
        (b"abc\x08\x08", "a"),
        (b"\xc3\xa4b\x7f\x7f", ""),
        (b"abc\x1b[D\x1b[Dx", "axbc"),
        (b"abc\x1b[D\x1b[D\x1b[Cx", "abxc"),
        (b"abc\x02\x02\x06x", "abxc"),
        (b"abc\x1b[H\x1b[3~", "bc"),
        (b"abc\x01\x04", "bc"),
        (b"abc\x01x\x05y", "xabcy"),
        (b"abc\x1bOHx\x1bOFy", "xabcy"),
        (b"abc\x1b[1~x\x1b[4~y", "xabcy"),
        (b"abc\x1b[7~x\x1b[8~y", "xabcy"),
        (b"abc def\x1b[D\x1b[D\x0b", "abc d"),
        (b"abc def\x1b[D\x1b[D\x15", "ef"),
        (b"abc def  \x17", "abc "),
        (b"abc def\x17\x17", ""),
        (b"abc def\x1b[D\x17", "abc f"),
        (b"one two three\x1b[1;5D\x1b[1;5Dx", "one xtwo three"),
        (b"one two three\x01\x1b[1;5Cx", "onex two three"),
        (b"one two three\x1bb\x1bb\x1bfx", "one twox three"),
        (b"ab\x1b[99;99;99;99;99;99;99;99~c", "abc"),
        (b"a\xc3b\xffc\x1b[200\x01d", "dabc"),
        ("öffnen €\u{1F41F}".as_bytes(), "öffnen €\u{1F41F}"),
    ];
    for (bytes, expected) in cases {
        let mut session = Session::new(80);
        session.type_keys(bytes);
        // Wide characters take two columns on the terminal, which the editor counts as one.
        if !expected.contains('\u{1F41F}') {
            assert_eq!(session.shown(), format!("{PROMPT}{expected}").trim_end(), "{bytes:?}");
        }
        assert_eq!(session.feed(b'\r'), Event::Line(expected.to_string()), "{bytes:?}");
    }
}

#[test]
fn edits_send_few_bytes() {
    let mut session = Session::new(80);
    session.type_keys(b"abc");
    session.sent();
    session.type_keys(b"\x7f");
    assert_eq!(session.sent(), b"\x08\x1b[K");
    session.type_keys(LEFT);
    assert_eq!(session.sent(), b"\x08");
    session.type_keys(b"x");
    assert_eq!(session.sent(), b"xb\x08");
    session.type_keys(RIGHT);
    assert_eq!(session.sent(), b"\x1b[C");
}

#[test]
fn impossible_keys_ring() {
    let mut session = Session::new(80);
    session.sent();
    for key in [b"\x7f", LEFT, RIGHT, b"\x1b[3~", UP, DOWN, b"\x1bx", b"\0", b"\xff"] {
        session.type_keys(key);
        assert_eq!(session.sent(), b"\x07", "{key:?}");
    }
}

#[test]
fn lines_have_an_end() {
    let mut session = Session::new(80);
    session.type_keys(&vec![b'x'; MAX_LINE]);
    session.sent();
    session.type_keys(b"y");
    assert_eq!(session.sent(), b"\x07");
    assert_eq!(session.enter(b""), "x".repeat(MAX_LINE));
}

#[test]
fn control_c_and_control_d() {
    let mut session = Session::new(80);
    assert_eq!(session.feed(4), Event::End);
    session.begin_line();
    session.type_keys(b"abc\x1b[D");
    session.sent();
    assert_eq!(session.feed(3), Event::Interrupted);
    assert_eq!(session.sent(), b"\x1b[C^C\n");
    session.begin_line();
    assert_eq!(session.enter(b"d"), "d");
}

#[test]
fn history_goes_back_and_forth() {
    let mut session = Session::new(80);
    for line in ["one", "two", "two", "  ", "three"] {
        session.enter(line.as_bytes());
    }
    assert_eq!(session.editor.history().collect::<Vec<_>>(), ["one", "two", "three"]);
    session.type_keys(b"draft");
    for (key, expected) in [(UP, "three"), (UP, "two"), (UP, "one"), (UP, "one"), (DOWN, "two"), (DOWN, "three")] {
        session.type_keys(key);
        assert_eq!(session.shown(), format!("{PROMPT}{expected}"));
    }
    session.type_keys(DOWN);
    assert_eq!(session.shown(), "tench> draft");
    // Editing an earlier line does not change it in the history.
    session.type_keys(b"\x10\x10x");
    assert_eq!(session.enter(b""), "twox");
    assert_eq!(session.editor.history().collect::<Vec<_>>(), ["one", "two", "three", "twox"]);
    // A dropped line does not stay behind as a draft.
    session.type_keys(b"lost");
    session.feed(3);
    session.begin_line();
    session.type_keys(UP);
    session.type_keys(DOWN);
    assert_eq!(session.shown(), PROMPT.trim_end());
}

#[test]
fn history_forgets_the_oldest() {
    let mut session = Session::new(80);
    for number in 0..300 {
        session.enter(number.to_string().as_bytes());
    }
    assert_eq!(session.editor.history().count(), 256);
    assert_eq!(session.editor.history().next(), Some("44"));
}

#[test]
fn completion_inserts_rings_and_lists() {
    let mut session = Session::new(80);
    session.type_keys(b"he x\x1b[D\x1b[D");
    assert_eq!(session.editor.before_cursor(), "he");
    session.complete(2, "help", &["help"]);
    assert_eq!(session.shown(), "tench> help x");
    session.sent();
    session.complete(0, "", &["a", "bc"]);
    assert_eq!(session.sent(), b"\x07");
    session.complete(0, "", &["a", "bc"]);
    assert_eq!(session.sent(), b"\x1b[C\x1b[C\na   bc\ntench> help x\x08\x08".replace_moves());
    session.complete(0, "", &[]);
    assert_eq!(session.sent(), b"\x07");
    assert_eq!(session.enter(b"s"), "helps x");
}

trait ReplaceMoves {
    fn replace_moves(&self) -> Vec<u8>;
}

impl ReplaceMoves for [u8] {
    /// Replaces two moves to the right by one of two columns.
    fn replace_moves(&self) -> Vec<u8> {
        String::from_utf8_lossy(self).replace("\x1b[C\x1b[C", "\x1b[2C").into_bytes()
    }
}

#[test]
fn control_l_keeps_the_line() {
    let mut session = Session::new(80);
    session.enter(b"one");
    session.type_keys(b"two\x1b[D\x0c");
    assert_eq!(session.terminal.screen().contents().trim_end(), "tench> two");
    assert_eq!(session.terminal.screen().cursor_position(), (0, 9));
}

#[test]
fn a_terminal_that_does_not_reply_has_80_columns() {
    let mut session = Session::new(80);
    session.replies = false;
    session.type_keys(&[b'x'; 100]);
    session.type_keys(b"\x1b[Hab\x7fc");
    assert_eq!(session.shown().replace('\n', ""), format!("{PROMPT}ac{}", "x".repeat(100)));
    assert_eq!(session.terminal.screen().cursor_position(), (0, 9));
}

/// Returns keys for random sessions, and bytes that belong to none.
fn keys() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let key = prop_oneof![
        8 => "[a-z äß]{1,40}".prop_map(String::into_bytes),
        4 => prop::sample::select(vec![UP, DOWN, LEFT, RIGHT, b"\x1b[H", b"\x1b[F", b"\x1b[3~", b"\x1bb", b"\x1bf"])
            .prop_map(<[u8]>::to_vec),
        4 => prop::sample::select(vec![1u8, 2, 5, 6, 8, 11, 12, 16, 14, 21, 23, 127]).prop_map(|byte| vec![byte]),
        1 => Just(vec![b'\r']),
        1 => Just(vec![3]),
    ];
    prop::collection::vec(key, 1..60)
}

proptest! {
    #[test]
    fn the_screen_shows_the_line(columns in 60u16..130, keys in keys()) {
        let mut session = Session::new(columns);
        for key in keys {
            for byte in key {
                if !matches!(session.feed(byte), Event::Nothing) {
                    session.begin_line();
                }
            }
            let expected = PROMPT.to_string() + &session.editor.line();
            let position = PROMPT.len() + session.editor.before_cursor().chars().count();
            let screen = session.terminal.screen();
            let rows: Vec<String> = screen.rows(0, columns).collect();
            let first = rows.iter().rposition(|row| row.starts_with(PROMPT.trim_end())).unwrap();
            let width = usize::from(columns);
            let shown: String = rows[first..].iter().map(|row| format!("{row:width$}")).collect();
            prop_assert_eq!(shown.trim_end(), expected.trim_end());
            // In a full last row, the cursor counts as behind the last column.
            let (row, column) = screen.cursor_position();
            prop_assert_eq!((usize::from(row) - first) * width + usize::from(column), position);
        }
    }

    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut session = Session::new(80);
        session.replies = false;
        for byte in bytes {
            match session.feed(byte) {
                Event::Nothing => {}
                Event::Complete => session.editor.complete(&Completion::default(), &mut Vec::new()),
                _ => session.begin_line(),
            }
        }
    }
}
