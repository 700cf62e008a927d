//! Sockets: single sequences of calls that went wrong, or easily could.

mod support;

use support::{Doing, Play};
use tench_linux_calls::Sysno;

/// Addresses in the program's data.
const DATA: u64 = 0x20_1300;
const HEADER: u64 = 0x20_1400;
const VECTORS: u64 = 0x20_1500;
const CONTROL: u64 = 0x20_1600;
const INTO: u64 = 0x20_3000;
const UNIX: u64 = 1;
const STREAM: u64 = 1;
const DATAGRAMS: u64 = 2;
const FORK: u64 = 17;
const THREAD: u64 = 0x5_0f00;
const DONT_WAIT: u64 = 0x40;

fn call(play: &mut Play, id: u32, call: Sysno, arguments: &[u64]) -> Option<i64> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    play.call(id, call as u64, all).map(u64::cast_signed)
}

/// Makes two sockets that are connected with each other. Returns their descriptors.
fn pair(play: &mut Play, kind: u64) -> [u64; 2] {
    assert_eq!(call(play, 1, Sysno::socketpair, &[UNIX, kind, 0, DATA]), Some(0));
    let mut ends = [0; 8];
    play.read(1, DATA, &mut ends);
    let [a, b, c, d, e, f, g, h] = ends;
    [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])].map(u64::from)
}

/// Writes the record of a message in these places, with so many bytes of control messages.
fn put_header(play: &mut Play, at: u64, places: &[[u64; 2]], control: u64) {
    play.put(1, VECTORS, places.as_flattened());
    play.put(1, at, &[0, 0, VECTORS, places.len() as u64, CONTROL, control, 0]);
}

/// Sends a byte, and with it an open file.
fn send_file(play: &mut Play, to: u64, file: u64) -> Option<i64> {
    put_header(play, HEADER, &[[DATA, 1]], 20);
    play.put(1, CONTROL, &[20, 1 << 32 | 1, file]);
    call(play, 1, Sysno::sendmsg, &[to, HEADER])
}

#[test]
fn a_message_is_read_into_several_places_and_no_other_is() {
    let mut play = Play::new(4096);
    let [one, other] = pair(&mut play, DATAGRAMS);
    for _ in 0..2 {
        assert_eq!(call(&mut play, 1, Sysno::write, &[one, DATA, 2]), Some(2));
    }
    play.put(1, VECTORS, &[INTO, 2, INTO + 2, 2]);
    assert_eq!(call(&mut play, 1, Sysno::readv, &[other, VECTORS, 2]), Some(2), "one message");
    assert_eq!(call(&mut play, 1, Sysno::recvfrom, &[other, INTO, 9, DONT_WAIT]), Some(2), "the next one is there");
    play.end();
}

#[test]
fn a_message_is_written_as_one_however_long() {
    let mut play = Play::new(4096);
    let [one, other] = pair(&mut play, DATAGRAMS);
    let area = call(&mut play, 1, Sysno::mmap, &[0, 100_000, 3, 0x22, u64::MAX, 0]).unwrap().cast_unsigned();
    assert_eq!(call(&mut play, 1, Sysno::write, &[one, area, 100_000]), Some(100_000));
    assert_eq!(call(&mut play, 1, Sysno::read, &[other, area, 100_000]), Some(100_000));
    assert_eq!(call(&mut play, 1, Sysno::write, &[one, area, 0]), Some(0));
    assert_eq!(call(&mut play, 1, Sysno::recvfrom, &[other, area, 9, DONT_WAIT]), Some(0), "an empty one");
    play.end();
}

#[test]
fn a_message_that_shrinks_while_it_waits_ends_the_call() {
    let mut play = Play::new(4096);
    let [one, other] = pair(&mut play, STREAM);
    let area = call(&mut play, 1, Sysno::mmap, &[0, 1 << 20, 3, 0x22, u64::MAX, 0]).unwrap().cast_unsigned();
    let thread = u32::try_from(call(&mut play, 1, Sysno::clone, &[THREAD, 0x20_5000]).unwrap()).unwrap();
    put_header(&mut play, HEADER, &[[area, 1 << 20]], 0);
    assert_eq!(call(&mut play, thread, Sysno::sendmsg, &[one, HEADER]), None, "there is no room for all");
    play.put(1, VECTORS, &[area, 1]);
    while play.doing(thread) == Some(Doing::Waits) {
        assert!(call(&mut play, 1, Sysno::read, &[other, INTO, 0x2000]).unwrap() > 0);
    }
    play.check();
    let sent = play.thread(thread).registers.x[0];
    assert!(sent > 1 << 16 && sent < 1 << 20, "{sent}");
    play.end();
}

#[test]
fn several_messages_are_received_as_they_come() {
    let mut play = Play::new(4096);
    let [one, other] = pair(&mut play, DATAGRAMS);
    let thread = u32::try_from(call(&mut play, 1, Sysno::clone, &[THREAD, 0x20_5000]).unwrap()).unwrap();
    play.put(1, VECTORS, &[INTO, 8]);
    for index in 0..3 {
        play.put(1, HEADER + 64 * index, &[0, 0, VECTORS, 1, 0, 0, 0, 0]);
    }
    assert_eq!(call(&mut play, thread, Sysno::recvmmsg, &[other, HEADER, 3, 0, 0]), None);
    for length in 1..=3 {
        assert_eq!(play.doing(thread), Some(Doing::Waits));
        assert_eq!(call(&mut play, 1, Sysno::write, &[one, DATA, length]), Some(length.cast_signed()));
    }
    assert_eq!(play.doing(thread), Some(Doing::Runs));
    assert_eq!(play.thread(thread).registers.x[0], 3);
    for index in 0..3u8 {
        let mut length = [0];
        play.read(1, HEADER + 64 * u64::from(index) + 56, &mut length);
        assert_eq!(length, [index + 1]);
    }
    play.end();
}

#[test]
fn a_file_that_was_sent_is_open_until_its_receiver_has_gone() {
    let mut play = Play::new(4096);
    let [one, other] = pair(&mut play, STREAM);
    assert_eq!(call(&mut play, 1, Sysno::pipe2, &[DATA, 0o4000]), Some(0));
    let (reader, writer) = (other + 1, other + 2);
    assert_eq!(send_file(&mut play, one, writer), Some(1));
    assert_eq!(call(&mut play, 1, Sysno::close, &[writer]), Some(0));
    assert_eq!(call(&mut play, 1, Sysno::read, &[reader, INTO, 1]), Some(-11), "somebody may write");
    assert_eq!(call(&mut play, 1, Sysno::close, &[other]), Some(0));
    assert_eq!(call(&mut play, 1, Sysno::read, &[reader, INTO, 1]), Some(0), "nobody writes");
    play.end();
}

#[test]
fn a_child_that_ends_with_files_on_the_way_leaves_none() {
    let mut play = Play::new(4096);
    let [one, other] = pair(&mut play, STREAM);
    let child = u32::try_from(call(&mut play, 1, Sysno::clone, &[FORK]).unwrap()).unwrap();
    assert_eq!(send_file(&mut play, one, 0), Some(1));
    for file in [one, other] {
        assert_eq!(call(&mut play, 1, Sysno::close, &[file]), Some(0));
    }
    assert_eq!(play.instance.system.sockets.held_rights(), 1);
    call(&mut play, child, Sysno::exit_group, &[]);
    assert_eq!(play.instance.system.sockets.held_rights(), 0);
    assert!(play.instance.system.sockets.is_empty());
    play.end();
}

#[test]
fn a_long_chain_of_sockets_in_sockets_ends() {
    let mut play = Play::new(4096);
    let mut last = 0;
    for _ in 0..3000 {
        let [one, other] = pair(&mut play, STREAM);
        assert_eq!(send_file(&mut play, one, last), Some(1));
        for file in [one, last] {
            assert_eq!(call(&mut play, 1, Sysno::close, &[file]), Some(0));
        }
        last = other;
    }
    assert_eq!(play.instance.system.sockets.held_rights(), 3000);
    assert_eq!(call(&mut play, 1, Sysno::close, &[last]), Some(0));
    play.check();
    assert!(play.instance.system.sockets.is_empty());
    play.end();
}

#[test]
fn sockets_that_hold_each_other_in_messages_end_with_the_last_descriptor() {
    let mut play = Play::new(4096);
    let close = |play: &mut Play, file| assert_eq!(call(play, 1, Sysno::close, &[file]), Some(0));
    let [first, second] = pair(&mut play, STREAM);
    let [third, fourth] = pair(&mut play, STREAM);
    for (to, file) in [(first, fourth), (third, second), (third, second), (first, 0)] {
        assert_eq!(send_file(&mut play, to, file), Some(1));
    }
    for file in [first, third, fourth] {
        close(&mut play, file);
        assert_eq!(play.instance.system.sockets.held_rights(), 4, "all can be received through {second}");
    }
    close(&mut play, second);
    assert_eq!((play.instance.system.sockets.held_rights(), play.instance.system.sockets.len()), (0, 0));
    let [one, other] = pair(&mut play, STREAM);
    assert_eq!(send_file(&mut play, one, other), Some(1));
    close(&mut play, other);
    assert_eq!(play.instance.system.sockets.len(), 2, "{one} can be written to");
    assert!(play.instance.system.sockets.held_rights() == 0, "and nobody can read there");
    close(&mut play, one);
    assert!(play.instance.system.sockets.is_empty());
    play.end();
}

#[test]
fn a_listener_that_lies_in_a_connection_that_it_has_not_accepted_ends() {
    let mut play = Play::new(4096);
    play.write(1, DATA, &[UNIX as u8, 0, 0, b'n']);
    let [listener, client] =
        [(); 2].map(|()| call(&mut play, 1, Sysno::socket, &[UNIX, STREAM, 0]).unwrap().cast_unsigned());
    assert_eq!(call(&mut play, 1, Sysno::bind, &[listener, DATA, 4]), Some(0));
    assert_eq!(call(&mut play, 1, Sysno::listen, &[listener, 1]), Some(0));
    assert_eq!(call(&mut play, 1, Sysno::connect, &[client, DATA, 4]), Some(0));
    assert_eq!(send_file(&mut play, client, listener), Some(1));
    assert_eq!(call(&mut play, 1, Sysno::close, &[client]), Some(0));
    assert_eq!(play.instance.system.sockets.held_rights(), 1, "it can be accepted");
    assert_eq!(call(&mut play, 1, Sysno::close, &[listener]), Some(0));
    assert!(play.instance.system.sockets.is_empty() && play.instance.system.sockets.held_rights() == 0);
    play.end();
}

#[test]
fn a_handler_ends_one_of_several_messages_with_the_part_that_was_sent() {
    const HANDLER: u64 = 0x20_0100;
    const RESTART: u64 = 0x1000_0000;
    const USR1: u64 = 10;
    for flags in [0, RESTART] {
        let mut play = Play::new(4096);
        let [one, _other] = pair(&mut play, STREAM);
        let length = 1 << 20;
        let memory = call(&mut play, 1, Sysno::mmap, &[0, length, 3, 0x22, u64::MAX, 0]).unwrap().cast_unsigned();
        play.put(1, DATA, &[HANDLER, flags, 0, 0]);
        assert_eq!(call(&mut play, 1, Sysno::rt_sigaction, &[USR1, DATA, 0, 8]), Some(0));
        put_header(&mut play, HEADER, &[[memory, length]], 0);
        put_header(&mut play, HEADER + 64, &[[memory, length]], 0);
        let child = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
        assert_eq!(call(&mut play, child, Sysno::sendmmsg, &[one, HEADER, 2, 0]), None);
        assert_eq!(call(&mut play, 1, Sysno::kill, &[child.into(), USR1]), Some(0));
        call(&mut play, child, Sysno::rt_sigreturn, &[]);
        assert_eq!(play.thread(child).registers.x[0], 1);
        let mut sent = [0; 4];
        play.read(child, HEADER + 56, &mut sent);
        assert!((1..length).contains(&u32::from_le_bytes(sent).into()));
        play.check();
        play.end();
    }
}

#[test]
fn one_call_sends_1024_messages_at_most() {
    let mut play = Play::new(4096);
    let [one, _other] = pair(&mut play, STREAM);
    let headers = call(&mut play, 1, Sysno::mmap, &[0, 64 * 2000, 3, 0x22, u64::MAX, 0]).unwrap().cast_unsigned();
    assert_eq!(call(&mut play, 1, Sysno::sendmmsg, &[one, headers, 1000, 0]), Some(1000));
    assert_eq!(call(&mut play, 1, Sysno::sendmmsg, &[one, headers, 2000, 0]), Some(1024));
    play.check();
    play.end();
}
