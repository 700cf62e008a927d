//! Tests of what the terminal receives of the output of ordinary programs.

use proptest::prelude::*;
use tench_console::terminal::Terminal;
use tench_protocol::Powers;
use tench_quota::Client;

const WITHOUT: Powers = Powers::all().difference(Powers::TERMINAL);

/// Returns what has been sent since the last call.
fn sent(terminal: &mut Terminal<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(byte) = terminal.output.pop() {
        bytes.push(byte);
        terminal.sent(|_| false);
    }
    while terminal.next_outcome().is_some() {}
    bytes
}

/// Returns what the terminal gets if a program writes these texts one after another.
fn shown(texts: &[&[u8]]) -> String {
    let mut terminal = Terminal::new(8);
    let mut bytes = Vec::new();
    for text in texts {
        terminal.write_with(Client::alone(5), WITHOUT, text, 0);
        bytes.extend(sent(&mut terminal));
    }
    String::from_utf8(bytes).unwrap()
}

/// A terminal that reports what it would do besides showing characters.
#[derive(Default)]
struct Model {
    /// Bytes of an incomplete character.
    begun: Vec<u8>,
    text: String,
}

impl Model {
    /// Takes a byte from the line. Fails if the terminal would interpret it, unless it is the end of a line, tabulator,
    /// carriage return or backspace, or if it is invalid UTF-8, which terminals treat differently.
    fn take(&mut self, byte: u8) -> Result<(), String> {
        if self.begun.is_empty() && (byte < b' ' && !b"\n\t\r\x08".contains(&byte) || byte == 0x7f) {
            return Err(format!("interprets {byte:#x}"));
        }
        self.begun.push(byte);
        match std::str::from_utf8(&self.begun) {
            Ok(text) if text.chars().all(|character| !('\u{80}'..='\u{9f}').contains(&character)) => {
                self.text.push_str(text);
                self.begun.clear();
                Ok(())
            }
            Ok(text) => Err(format!("interprets {text:?}")),
            Err(error) if error.error_len().is_none() => Ok(()),
            Err(_) => Err(format!("was sent {:?}", self.begun)),
        }
    }
}

#[test]
fn control_characters_are_shown() {
    assert_eq!(shown(&[b"a\x1b[2Jb\x07\x00\x7f\x9b31m"]), "a^[[2Jb^G^@^?\u{fffd}31m");
    assert_eq!(shown(&["\u{9b}31m\u{85}".as_bytes()]), "\u{fffd}31m\u{fffd}");
    assert_eq!(shown(&[b"1\t2\r3\x084\n"]), "1\t2\r3\x084\r\n");
}

#[test]
fn characters_may_come_in_parts() {
    assert_eq!(shown(&[b"gr\xc3", b"\xbcn \xe2", b"\x82", b"\xac \xf0\x9f\x90", b"\x9f"]), "grün € 🐟");
    assert_eq!(shown(&[b"\xe2\x82", b"a"]), "\u{fffd}a", "that was none");
    assert_eq!(shown(&[b"\xe2\x82a\xf0\x28"]), "\u{fffd}a\u{fffd}(");
    assert_eq!(shown(&[b"\xe2\x82", b"", b"\xac"]), "€");
}

#[test]
fn no_program_completes_a_character_of_another() {
    let mut terminal = Terminal::new(8);
    // Together they would be a control character.
    terminal.write_with(Client::alone(5), WITHOUT, b"\xc2", 0);
    terminal.write_with(Client::alone(6), WITHOUT, b"\x9b", 0);
    terminal.write_with(Client::alone(7), Powers::TERMINAL, b"\x1b[m", 0);
    terminal.write_with(Client::alone(5), WITHOUT, b"\xbd", 0);
    assert_eq!(String::from_utf8(sent(&mut terminal)).unwrap(), "\u{fffd}\x1b[m½");
    // Nothing is held for a process that has ended, whoever has its number.
    terminal.write_with(Client::alone(5), WITHOUT, b"\xc2", 0);
    terminal.process_ended(5);
    terminal.write_with(Client::alone(5), WITHOUT, b"\xbd", 0);
    assert_eq!(String::from_utf8(sent(&mut terminal)).unwrap(), "\u{fffd}");
}

#[test]
fn a_text_that_was_refused_changes_nothing() {
    let mut terminal = Terminal::new(3);
    terminal.write_with(Client::alone(5), WITHOUT, b"\xc2", 0);
    while terminal.next_outcome().is_some() {}
    // The line is busy, and all waits are taken.
    terminal.output.write(&[b'x'; 8000]);
    let refused = |terminal: &mut Terminal<u64>| {
        terminal.write_with(Client::alone(5), WITHOUT, b"\xbd", 1);
        terminal.next_outcome().is_some()
    };
    assert!(!refused(&mut terminal));
    terminal.write_with(Client::alone(5), WITHOUT, b"\xc3", 2);
    assert!(refused(&mut terminal), "it may not have more entries than are free");
    let text = String::from_utf8(sent(&mut terminal)).unwrap();
    assert!(text.ends_with("x½"), "{text:?}");
    terminal.write_with(Client::alone(5), WITHOUT, b"\xbc", 3);
    assert_eq!(String::from_utf8(sent(&mut terminal)).unwrap(), "ü");
}

#[test]
fn many_may_begin_characters() {
    let mut terminal = Terminal::new(8);
    let mut text = Vec::new();
    for byte in [b"\xc3", b"\xbc"] {
        for process in 1..100 {
            terminal.write_with(Client::alone(process), WITHOUT, byte, 0);
            text.extend(sent(&mut terminal));
        }
    }
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.matches('ü').count(), 64);
    assert_eq!(text.matches('\u{fffd}').count(), 35, "the oldest made room");
}

/// Incomplete characters of one family's processes once kept those of all others from becoming complete.
#[test]
fn no_family_has_all_beginnings() {
    let mut terminal = Terminal::new(8);
    let of_family = |process| Client { process, family: 1 << 38 };
    let others = || (200..216).map(Client::alone);
    others().for_each(|client| terminal.write_with(client, WITHOUT, b"\xc3", 0));
    (1..100).for_each(|process| terminal.write_with(of_family(process), WITHOUT, b"\xc3", 0));
    others().for_each(|client| terminal.write_with(client, WITHOUT, b"\xbc", 0));
    assert_eq!(String::from_utf8(sent(&mut terminal)).unwrap(), "ü".repeat(16));
    (1..100).for_each(|process| terminal.write_with(of_family(process), WITHOUT, b"\xbc", 0));
    let text = String::from_utf8(sent(&mut terminal)).unwrap();
    assert_eq!(text, "\u{fffd}".repeat(75) + &"ü".repeat(24), "half of what others left");
}

/// Returns bytes that a program may write: any bytes, often those that terminals interpret.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let fragment = prop_oneof![
        3 => "\\PC{0,8}".prop_map(String::into_bytes),
        1 => prop::sample::select(vec![&b"\x1b[2J"[..], b"\x1b]0;t\x07", b"\x9b6n", b"\xc2", b"\x9b", b"\xc2\x9b", b"\xe2\x82", b"\x1b"])
            .prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(fragment, 0..6).prop_map(|fragments| fragments.concat())
}

proptest! {
    #[test]
    fn no_ordinary_program_controls_the_terminal(
        texts in prop::collection::vec((1..4u64, text(), any::<bool>()), 0..60)
    ) {
        let (mut terminal, mut model) = (Terminal::new(8), Model::default());
        for (process, text, ends) in texts {
            terminal.write_with(Client::alone(process), WITHOUT, &text, 0);
            if ends {
                terminal.process_ended(process);
            }
            for byte in sent(&mut terminal) {
                prop_assert_eq!(model.take(byte), Ok(()));
            }
            prop_assert!(model.begun.is_empty(), "between two writes, every character is whole");
        }
    }

    #[test]
    fn text_arrives_whole(
        lines in prop::collection::vec("\\PC{0,40}", 1..6),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let text = lines.join("\n");
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).chain([0, text.len()]).collect();
        cuts.sort_unstable();
        let parts: Vec<&[u8]> = cuts.windows(2).map(|cut| &text.as_bytes()[cut[0]..cut[1]]).collect();
        prop_assert_eq!(shown(&parts), text.replace('\n', "\r\n"));
    }

    #[test]
    fn with_the_power_bytes_arrive_as_they_are(text in prop::collection::vec(any::<u8>().prop_filter("", |byte| *byte != b'\n'), 0..400)) {
        let mut terminal = Terminal::new(8);
        terminal.write_with(Client::alone(5), Powers::TERMINAL, &text, 0);
        prop_assert_eq!(sent(&mut terminal), text);
    }
}
