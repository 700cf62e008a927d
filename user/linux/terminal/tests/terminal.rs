//! Behaviour of a terminal which pseudo-terminals of Linux do not show: signals, reads that wait, limits.

use std::collections::VecDeque;

use tench_linux_terminal::{
    Ending, Errno, Modes, Progress, Signal, Terminal, WindowSize, index, input_modes, local, output_modes,
};

/// Returns a terminal after a change of its standard modes.
fn terminal(change: impl FnOnce(&mut Modes)) -> Terminal {
    let mut modes = Modes::STANDARD;
    change(&mut modes);
    let mut terminal = Terminal::new(Modes::STANDARD);
    terminal.set_modes(modes);
    terminal
}

/// Returns a terminal without lines and echo, in which a read waits for `minimum` bytes.
fn raw(minimum: u8, time: u8) -> Terminal {
    terminal(|modes| {
        (modes.input, modes.output, modes.local) = (0, 0, 0);
        modes.characters[index::VMIN] = minimum;
        modes.characters[index::VTIME] = time;
    })
}

fn read(terminal: &mut Terminal, wanted: usize) -> Vec<u8> {
    let mut reading = terminal.begin_read(wanted);
    assert_eq!(terminal.read(&mut reading), Progress::Done);
    reading.into_bytes()
}

#[test]
fn keys_raise_signals() {
    let mut terminal = terminal(|_| ());
    for (key, signal, number) in [(0x03, Signal::Interrupt, 2), (0x1c, Signal::Quit, 3), (0x1a, Signal::Suspend, 20)] {
        terminal.input(b"line\nmore");
        terminal.take_output();
        terminal.input(&[key]);
        assert_eq!(terminal.take_signals(), [signal]);
        assert_eq!(signal.number(), number);
        assert_eq!(terminal.take_output(), [b'^', key ^ 0x40]);
        assert_eq!(terminal.readable_bytes(), 0, "what was typed before is discarded");
        assert_eq!(terminal.take_signals(), []);
    }
    terminal.input(b"\x1a\x03\x1a");
    assert_eq!(terminal.take_signals(), [Signal::Suspend, Signal::Interrupt], "each once");
}

#[test]
fn keys_raise_no_signals_without_isig_nor_after_the_key_that_makes_them_literal() {
    let mut terminal = terminal(|modes| modes.local &= !local::ISIG);
    terminal.input(b"\x03\n");
    assert_eq!((terminal.take_signals(), read(&mut terminal, 9)), (vec![], b"\x03\n".to_vec()));
    terminal.set_modes(Modes::STANDARD);
    terminal.input(b"\x16\x03\n");
    assert_eq!((terminal.take_signals(), read(&mut terminal, 9)), (vec![], b"\x03\n".to_vec()));
}

#[test]
fn signals_of_keys_can_leave_input_alone() {
    let mut terminal = terminal(|modes| modes.local |= local::NOFLSH);
    terminal.input(b"line\n\x03");
    assert_eq!((terminal.take_signals(), read(&mut terminal, 9)), (vec![Signal::Interrupt], b"line\n".to_vec()));
}

#[test]
fn output_that_was_not_taken_is_discarded_by_a_signal() {
    let mut terminal = terminal(|_| ());
    assert_eq!(terminal.write(b"much"), Ok(4));
    terminal.input(b"ab\x03");
    assert_eq!(terminal.take_output(), b"^C");
}

#[test]
fn a_read_of_a_line_waits_for_its_end() {
    let mut terminal = terminal(|_| ());
    let mut reading = terminal.begin_read(100);
    assert_eq!(terminal.read(&mut reading), Progress::Waits(None));
    terminal.input(b"ab");
    assert_eq!(terminal.read(&mut reading), Progress::Waits(None));
    assert!(reading.taken().is_empty());
    terminal.input(b"c\ndef");
    assert_eq!(terminal.read(&mut reading), Progress::Done);
    assert_eq!(reading.into_bytes(), b"abc\n");
}

#[test]
fn a_read_waits_for_the_least_number_of_bytes() {
    let mut terminal = raw(3, 0);
    let mut reading = terminal.begin_read(100);
    terminal.input(b"ab");
    assert_eq!(terminal.read(&mut reading), Progress::Waits(None));
    assert_eq!((reading.taken(), terminal.readable_bytes()), (&b"ab"[..], 0));
    terminal.input(b"c");
    assert_eq!(terminal.read(&mut reading), Progress::Done);
    assert_eq!(reading.into_bytes(), b"abc");
}

#[test]
fn time_begins_with_the_first_byte_if_a_read_waits_for_several() {
    let mut terminal = raw(3, 7);
    let mut reading = terminal.begin_read(100);
    assert_eq!(terminal.read(&mut reading), Progress::Waits(None));
    terminal.input(b"a");
    assert_eq!(terminal.read(&mut reading), Progress::Waits(Some(7)));
    assert_eq!(reading.end(Ending::TimedOut), Ok(b"a".to_vec()));
}

#[test]
fn time_begins_with_the_read_if_it_waits_for_none() {
    let mut terminal = raw(0, 7);
    let mut reading = terminal.begin_read(100);
    assert_eq!(terminal.read(&mut reading), Progress::Waits(Some(7)));
    assert_eq!(reading.end(Ending::TimedOut), Ok(vec![]));
    assert_eq!(read(&mut raw(0, 0), 100), b"", "and without a time it waits for nothing");
}

#[test]
fn reads_that_end_without_bytes_say_why() {
    let waiting = || {
        let mut terminal = terminal(|_| ());
        let mut reading = terminal.begin_read(1);
        assert_eq!(terminal.read(&mut reading), Progress::Waits(None));
        reading
    };
    assert_eq!(waiting().end(Ending::WouldBlock), Err(Errno::EAGAIN));
    assert_eq!(waiting().end(Ending::Interrupted), Err(Errno::EINTR));
}

#[test]
fn a_read_that_waits_ends_when_the_terminal_hangs_up() {
    let mut terminal = terminal(|_| ());
    let mut reading = terminal.begin_read(1);
    assert_eq!(terminal.read(&mut reading), Progress::Waits(None));
    terminal.hang_up();
    assert_eq!(terminal.read(&mut reading), Progress::Done);
    assert_eq!(reading.into_bytes(), b"");
    assert_eq!(terminal.input(b"nobody types"), 12);
    assert_eq!((terminal.readable_bytes(), terminal.take_output().len()), (0, 0));
}

#[test]
fn received_bytes_wait_for_room_up_to_a_limit() {
    let mut terminal = raw(1, 0);
    let typed = vec![b'x'; 20_000];
    let count = terminal.input(&typed);
    assert_eq!((terminal.readable_bytes(), terminal.waiting_input()), (4095, 8192 - 4095));
    let more = terminal.input(&typed[count..]);
    assert_eq!((count + more, terminal.input(b"x")), (4095 + 8192, 0));
    let mut all = 0;
    while terminal.readiness().is_readable {
        all += read(&mut terminal, 1000).len();
    }
    assert_eq!((all, terminal.waiting_input()), (4095 + 8192, 0));
}

/// Bytes 255 come twice with `PARMRK`, so that a long line gets a byte more than there is room for, in each step.
#[test]
fn marked_bytes_at_the_end_of_a_long_line_do_no_harm() {
    let mut terminal = terminal(|modes| modes.input |= input_modes::PARMRK);
    terminal.input(&[0xff; 6000]);
    terminal.take_output();
    terminal.input(&[0xff; 6000]);
    terminal.input(b"\n");
    assert!((4000..=4097).contains(&read(&mut terminal, 9999).len()));
}

#[test]
fn output_has_a_limit() {
    let mut terminal = terminal(|modes| modes.output = output_modes::OPOST | output_modes::ONLCR | output_modes::XTABS);
    let lines = [b'\n'; 9000];
    assert_eq!(terminal.write(&lines), Ok(4096));
    assert!(!terminal.readiness().is_writable);
    assert_eq!(terminal.write(b"x"), Ok(0));
    terminal.input(b"typed");
    assert_eq!(terminal.take_output().len(), 8192);
    assert_eq!(terminal.write(b"\tx"), Ok(2));
    assert_eq!(terminal.take_output(), b"typed   x", "the echo has waited");
}

#[test]
fn output_moves_as_far_as_the_device_has_room() {
    let mut terminal = raw(1, 0);
    let mut device = VecDeque::from(*b"ab");
    assert_eq!(terminal.write(b"cdefg"), Ok(5));
    assert_eq!((terminal.move_output(&mut device, 4), terminal.waiting_output()), (2, 3));
    assert_eq!((terminal.move_output(&mut device, 4), terminal.move_output(&mut device, 3)), (0, 0));
    terminal.flush_output();
    assert_eq!((terminal.move_output(&mut device, 9), device), (0, VecDeque::from(*b"abcd")));
}

#[test]
fn received_bytes_can_be_discarded_before_there_is_room() {
    let mut terminal = raw(1, 0);
    assert_eq!(terminal.input_room(), 8192);
    terminal.input(&[b'x'; 8192]);
    assert_eq!(terminal.input_room(), 4095);
    terminal.discard_received();
    assert_eq!((terminal.input_room(), terminal.readable_bytes()), (8192, 4095));
    read(&mut terminal, 5000);
    assert_eq!((terminal.readable_bytes(), terminal.input(b"y")), (0, 1));
    assert_eq!(read(&mut terminal, 10), b"y");
}

#[test]
fn stopped_output_waits_and_goes_on() {
    let mut terminal = terminal(|_| ());
    terminal.input(b"\x13ab");
    assert!(terminal.is_stopped());
    assert_eq!((terminal.write(b"x"), terminal.take_output()), (Ok(0), vec![]));
    terminal.input(b"\x11");
    assert!(!terminal.is_stopped());
    assert_eq!(terminal.take_output(), b"ab");
}

#[test]
fn values_are_kept() {
    let mut terminal = terminal(|_| ());
    let window = WindowSize { rows: 24, columns: 80, ..WindowSize::default() };
    assert!(terminal.set_window(window) && !terminal.set_window(window));
    assert_eq!(terminal.window(), window);
    terminal.set_foreground(Some(7));
    terminal.set_session(Some(5));
    assert_eq!((terminal.foreground(), terminal.session()), (Some(7), Some(5)));
}
