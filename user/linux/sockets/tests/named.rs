//! Named cases of sockets, compared with what those of the Linux under these tests do.

mod support;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Result as Theirs;
use rustix::net::{Shutdown, sockopt};
use support::{Place, error, ours, refused};
use tench_linux_sockets::address::{Address, UnixName};
use tench_linux_sockets::control::Ipv6Header;
use tench_linux_sockets::numbers::{family, kind, level, message, option, tcp};
use tench_linux_sockets::{Credentials, Errno, Event, Limits, Message, Readiness, Refusal, SocketId, Sockets, Target};

const CREDENTIALS: Credentials = Credentials { process: 7, user: 8, group: 9 };
const PLAIN: Message<'static> =
    Message { to: None, credentials: CREDENTIALS, states_credentials: false, header: Ipv6Header::DEFAULT, flags: 0 };

type Here = Sockets<u64>;

fn sockets() -> Here {
    Sockets::new(Limits::default())
}

fn send(here: &mut Here, from: SocketId, bytes: &[u8]) -> Result<usize, Refusal> {
    here.send(from, &[bytes], &PLAIN, &mut Vec::new())
}

fn receive(here: &mut Here, at: SocketId, room: usize) -> Result<Vec<u8>, i32> {
    let mut bytes = vec![0; room];
    let received = refused(here.receive(at, &mut [&mut bytes], message::DONTWAIT))?;
    bytes.truncate(received.count);
    Ok(bytes)
}

fn receive_there(socket: &OwnedFd, room: usize) -> Result<Vec<u8>, i32> {
    support::receive(socket, room, 0).map(|got| got.bytes)
}

/// Waits until Linux says of a socket what is said here.
fn settle(here: &Here, id: SocketId, there: &OwnedFd) {
    let expected = Readiness { lacks_room_of: None, ..here.readiness(id).unwrap() };
    let begin = Instant::now();
    while support::readiness(there) != expected {
        assert!(begin.elapsed() < Duration::from_secs(5), "{expected:?} here, {:?} there", support::readiness(there));
        std::thread::yield_now();
    }
}

/// Returns a port of this process's own.
fn port(index: u16) -> u16 {
    30_100 + (std::process::id() as u16 % 100) * 20 + index
}

/// A connection of TCP: both sides here, and there.
fn connection(here: &mut Here, port: u16) -> [(SocketId, OwnedFd); 2] {
    let address: SocketAddr = ([127, 0, 0, 1], port).into();
    let [listener, client] = [(); 2].map(|()| here.socket(family::INET.into(), kind::STREAM, 0).unwrap());
    here.bind_internet(listener, address).unwrap();
    here.listen(listener, 1, CREDENTIALS).unwrap();
    here.connect(client, Target::Internet(address), CREDENTIALS).unwrap();
    let server = here.accept(listener, false).unwrap();
    here.close(listener).unwrap();
    let there = std::net::TcpListener::bind(address).unwrap();
    let client_there = support::socket(family::INET, kind::STREAM);
    support::connect(&client_there, &Place::Internet(address)).unwrap();
    let server_there: OwnedFd = there.accept().unwrap().0.into();
    rustix::io::ioctl_fionbio(&server_there, true).unwrap();
    [(client, client_there), (server, server_there)]
}

/// Fills a pair's queue. Returns how many bytes, or messages, it took here, and there.
fn fill(kind: u32, length: usize) -> (usize, usize) {
    let mut here = sockets();
    let [one, _] = here.pair(family::UNIX.into(), kind, 0, CREDENTIALS).unwrap();
    let (first, _second) = support::pair(kind);
    let bytes = vec![1; length];
    let (mut count, mut count_there) = (0, 0);
    while let Ok(sent) = send(&mut here, one, &bytes) {
        count += sent;
    }
    while let Ok(sent) = support::send(&first, &bytes, None, &[]) {
        count_there += sent;
    }
    assert!(!here.readiness(one).unwrap().is_writable && !support::readiness(&first).is_writable);
    here.check();
    (count, count_there)
}

#[test]
fn queues_of_unix_sockets_take_about_as_much_as_linuxs() {
    for kind in [kind::STREAM, kind::DGRAM, kind::SEQPACKET] {
        for length in [1, 100, 1000, 4096, 16_000, 65_536, 200_000] {
            let (here, there) = fill(kind, length);
            assert!(here * 3 >= there * 2 && here * 2 <= there * 3, "{length} at once: {here} here, {there} there");
        }
    }
}

#[test]
fn a_queue_of_messages_takes_eleven_from_strangers() {
    let mut here = sockets();
    let [receiver, sender] = [(); 2].map(|()| here.socket(family::UNIX.into(), kind::DGRAM, 0).unwrap());
    here.bind_abstract(receiver, b"r").unwrap();
    here.connect(sender, Target::Abstract(b"r"), CREDENTIALS).unwrap();
    let place = Place::Abstract(format!("tench full {}", std::process::id()).into_bytes());
    let [receiver_there, sender_there] = [(); 2].map(|()| support::socket(family::UNIX, kind::DGRAM));
    rustix::net::bind(&receiver_there, &place.there()).unwrap();
    support::connect(&sender_there, &place).unwrap();
    for _ in 0..11 {
        assert_eq!(refused(send(&mut here, sender, b"x")), support::send(&sender_there, b"x", None, &[]));
    }
    assert_eq!(send(&mut here, sender, b"x"), Err(Refusal::Waits(receiver, Event::Room)));
    assert_eq!(support::send(&sender_there, b"x", None, &[]), Err(Errno::EAGAIN.into_raw()));
    let readiness = here.readiness(sender).unwrap();
    assert!(!readiness.is_writable && readiness.lacks_room_of == Some(receiver));
    assert!(!support::readiness(&sender_there).is_writable);
    here.take_events().for_each(drop);
    assert_eq!(receive(&mut here, receiver, 1), receive_there(&receiver_there, 1));
    assert_eq!(here.take_events().collect::<Vec<_>>(), [(receiver, Event::Room)]);
    assert_eq!(receive(&mut here, receiver, 1), receive_there(&receiver_there, 1));
    assert_eq!(here.take_events().count(), 0, "there was room before");
    assert!(here.readiness(sender).unwrap().is_writable && support::readiness(&sender_there).is_writable);
}

#[test]
fn messages_are_as_long_as_linux_allows() {
    for length in [4608 - 32, 4608 - 31] {
        let mut here = sockets();
        let [one, _] = here.pair(family::UNIX.into(), kind::DGRAM, 0, CREDENTIALS).unwrap();
        here.set_option(one, level::SOCKET, option::SNDBUF, &[0; 4]).unwrap();
        let (first, _second) = support::pair(kind::DGRAM);
        sockopt::set_socket_send_buffer_size(&first, 0).unwrap();
        let there = support::send(&first, &vec![0; length], None, &[]);
        assert_eq!(refused(send(&mut here, one, &vec![0; length])), there, "{length} bytes");
    }
}

#[test]
fn events_are_told_once_to_whom_they_concern() {
    let mut here = sockets();
    let [one, other] = here.pair(family::UNIX.into(), kind::STREAM, 0, CREDENTIALS).unwrap();
    for _ in 0..3 {
        send(&mut here, one, b"abc").unwrap();
    }
    assert_eq!(here.take_events().collect::<Vec<_>>(), [(other, Event::Readable)]);
    while send(&mut here, one, &[0; 5000]).is_ok() {}
    here.take_events().for_each(drop);
    assert_eq!(send(&mut here, one, b"x"), Err(Refusal::Waits(one, Event::Writable)));
    while !here.readiness(one).unwrap().is_writable {
        assert_eq!(here.take_events().count(), 0, "room that poll does not see is not told");
        receive(&mut here, other, 5000).unwrap();
    }
    assert_eq!(here.take_events().collect::<Vec<_>>(), [(one, Event::Writable)]);
    assert!(here.unsent_bytes(one).unwrap() * 4 <= 212_992, "a quarter of the buffer");
    here.close(other).unwrap();
    let events: Vec<_> = here.take_events().collect();
    assert!(events.contains(&(one, Event::Readable)) && events.contains(&(one, Event::Writable)));
}

#[test]
fn closing_with_unread_bytes_resets_a_connection() {
    let mut here = sockets();
    for (index, is_finished) in [(0, false), (1, true)] {
        let [(client, client_there), (server, server_there)] = connection(&mut here, port(index));
        for bytes in [&b"unread"[..], b"more"] {
            assert_eq!(refused(send(&mut here, client, bytes)), support::send(&client_there, bytes, None, &[]));
        }
        send(&mut here, server, b"answer").unwrap();
        support::send(&server_there, b"answer", None, &[]).unwrap();
        if is_finished {
            here.shut_down(server, 1).unwrap();
            rustix::net::shutdown(&server_there, Shutdown::Write).unwrap();
        }
        settle(&here, server, &server_there);
        here.close(server).unwrap();
        drop(server_there);
        settle(&here, client, &client_there);
        assert!(here.readiness(client).unwrap().has_error);
        for _ in 0..3 {
            assert_eq!(receive(&mut here, client, 10), receive_there(&client_there, 10));
            assert_eq!(refused(send(&mut here, client, b"x")), support::send(&client_there, b"x", None, &[]));
        }
        settle(&here, client, &client_there);
        here.close(client).unwrap();
        here.check();
    }
}

#[test]
fn a_full_connection_takes_more_when_some_is_read() {
    let mut here = sockets();
    let [(client, _), (server, _)] = connection(&mut here, port(2));
    let mut count = 0;
    while let Ok(sent) = send(&mut here, client, &[1; 100_000]) {
        count += sent;
    }
    assert_eq!(count, Here::TCP_BYTES);
    assert_eq!(send(&mut here, client, b"x"), Err(Refusal::Waits(client, Event::Writable)));
    here.take_events().for_each(drop);
    receive(&mut here, server, Here::TCP_BYTES / 4).unwrap();
    assert_eq!(here.take_events().count(), 0);
    receive(&mut here, server, Here::TCP_BYTES / 4).unwrap();
    assert_eq!(here.take_events().collect::<Vec<_>>(), [(client, Event::Writable)]);
    assert!(here.readiness(client).unwrap().is_writable);
    receive(&mut here, server, 1000).unwrap();
    assert_eq!(here.take_events().count(), 0, "there was room before");
}

#[test]
fn nobody_at_a_port_refuses_messages_of_who_is_connected() {
    let mut here = sockets();
    let nobody: SocketAddr = ([127, 0, 0, 1], port(3)).into();
    let id = here.socket(family::INET.into(), kind::DGRAM, 0).unwrap();
    let there = support::socket(family::INET, kind::DGRAM);
    let to = Message { to: Some(Target::Internet(nobody)), ..PLAIN };
    assert_eq!(here.send(id, &[b"x"], &to, &mut vec![]), Ok(1));
    assert_eq!(support::send(&there, b"x", Some(&Place::Internet(nobody)), &[]), Ok(1));
    settle(&here, id, &there);
    assert!(!here.readiness(id).unwrap().has_error, "who is not connected is not told");
    here.connect(id, Target::Internet(nobody), CREDENTIALS).unwrap();
    support::connect(&there, &Place::Internet(nobody)).unwrap();
    assert_eq!(refused(send(&mut here, id, b"x")), support::send(&there, b"x", None, &[]));
    settle(&here, id, &there);
    assert!(here.readiness(id).unwrap().has_error);
    for _ in 0..2 {
        assert_eq!(receive(&mut here, id, 1), receive_there(&there, 1));
    }
    for (ip, port) in [([255; 4], 9), ([127, 255, 255, 255], 9), ([127, 0, 0, 1], 0)] {
        let place = SocketAddr::from((ip, port));
        let to = Message { to: Some(Target::Internet(place)), ..PLAIN };
        let result = refused(here.send(id, &[b"x"], &to, &mut vec![]));
        assert_eq!(result, support::send(&there, b"x", Some(&Place::Internet(place)), &[]), "to {place}");
    }
    for length in [65_507, 65_508, 65_536] {
        here.option(id, level::SOCKET, option::ERROR).unwrap();
        let _ = sockopt::socket_error(&there).unwrap();
        let there = support::send(&there, &vec![0; length], None, &[]);
        assert_eq!(refused(send(&mut here, id, &vec![0; length])), there, "{length} bytes");
    }
}

#[test]
fn only_loopback_can_be_reached() {
    let mut here = sockets();
    let id = here.socket(family::INET.into(), kind::STREAM, 0).unwrap();
    let far = SocketAddr::from(([192, 0, 2, 200], 80));
    let unreachable = here.connect(id, Target::Internet(far), CREDENTIALS);
    assert_eq!(unreachable, Err(Refusal::Fails(Errno::ENETUNREACH)));
    assert_eq!(here.bind_internet(id, far), Err(Errno::EADDRNOTAVAIL));
    let there = support::socket(family::INET, kind::STREAM);
    let place = Place::Internet(([198, 51, 100, 7], 80).into());
    assert_eq!(rustix::net::bind(&there, &place.there()).map_err(error), Err(Errno::EADDRNOTAVAIL.into_raw()));
}

/// Sockets that are bound one after the other: family, type, address, port, whether `SO_REUSEADDR` and `SO_REUSEPORT`
/// are set, and whether it listens.
type Bound = (u16, u32, &'static str, bool, bool, bool);

#[test]
fn ports_are_shared_as_linux_shares_them() {
    const TCP: u32 = kind::STREAM;
    const UDP: u32 = kind::DGRAM;
    let cases: [[Bound; 2]; 13] = [
        [(2, TCP, "127.0.0.1", false, false, false), (2, TCP, "127.0.0.1", false, false, false)],
        [(2, TCP, "127.0.0.1", true, false, false), (2, TCP, "127.0.0.1", true, false, false)],
        [(2, TCP, "127.0.0.1", true, false, true), (2, TCP, "127.0.0.1", true, false, false)],
        [(2, TCP, "127.0.0.1", true, false, false), (2, TCP, "127.0.0.1", false, false, false)],
        [(2, TCP, "127.0.0.1", false, true, true), (2, TCP, "127.0.0.1", false, true, true)],
        [(2, TCP, "127.0.0.1", false, false, true), (2, TCP, "127.0.0.2", false, false, true)],
        [(2, TCP, "0.0.0.0", false, false, true), (2, TCP, "127.0.0.2", false, false, true)],
        [(2, TCP, "127.0.0.1", false, false, true), (2, UDP, "127.0.0.1", false, false, false)],
        [(2, UDP, "127.0.0.1", true, false, false), (2, UDP, "127.0.0.1", true, false, false)],
        [(2, UDP, "0.0.0.0", false, false, false), (2, UDP, "127.0.0.1", true, false, false)],
        [(10, TCP, "::", false, false, true), (2, TCP, "0.0.0.0", false, false, true)],
        [(10, TCP, "::1", false, false, true), (2, TCP, "127.0.0.1", false, false, true)],
        [(10, TCP, "::", false, false, true), (10, TCP, "::1", false, false, true)],
    ];
    for case in cases {
        let mut here = sockets();
        let mut results = Vec::new();
        let mut keep = Vec::new();
        for (family, kind, ip, shares_address, shares_port, listens) in case {
            let address = SocketAddr::new(ip.parse().unwrap(), port(4));
            let id = here.socket(family.into(), kind, 0).unwrap();
            let there = support::socket(family, kind);
            here.set_option(id, level::SOCKET, option::REUSEADDR, &[shares_address.into(), 0, 0, 0]).unwrap();
            here.set_option(id, level::SOCKET, option::REUSEPORT, &[shares_port.into(), 0, 0, 0]).unwrap();
            sockopt::set_socket_reuseaddr(&there, shares_address).unwrap();
            sockopt::set_socket_reuseport(&there, shares_port).unwrap();
            let mut result = ours(here.bind_internet(id, address));
            let mut result_there = rustix::net::bind(&there, &address).map_err(error);
            if listens && result.is_ok() && result_there.is_ok() {
                result = ours(here.listen(id, 1, CREDENTIALS));
                result_there = rustix::net::listen(&there, 1).map_err(error);
            }
            results.push((result, result_there));
            keep.push(there);
            here.check();
        }
        for (here, there) in results {
            assert_eq!(here, there, "here, and there: {case:?}");
        }
    }
}

#[test]
fn sockets_of_version_6_show_addresses_of_version_4() {
    let mut here = sockets();
    let any: SocketAddr = (std::net::Ipv6Addr::UNSPECIFIED, port(5)).into();
    let server = here.socket(family::INET6.into(), kind::STREAM, 0).unwrap();
    here.bind_internet(server, any).unwrap();
    here.listen(server, 5, CREDENTIALS).unwrap();
    let there = support::socket(family::INET6, kind::STREAM);
    sockopt::set_socket_reuseaddr(&there, true).unwrap();
    rustix::net::bind(&there, &any).unwrap();
    rustix::net::listen(&there, 5).unwrap();
    for (family, ip) in [(family::INET, "127.0.0.3"), (family::INET6, "::1")] {
        let address = SocketAddr::new(ip.parse().unwrap(), port(5));
        let client = here.socket(family.into(), kind::STREAM, 0).unwrap();
        here.connect(client, Target::Internet(address), CREDENTIALS).unwrap();
        let accepted = here.accept(server, false).unwrap();
        let client_there = support::socket(family, kind::STREAM);
        support::connect(&client_there, &Place::Internet(address)).unwrap();
        let accepted_there = support::accept(&there).unwrap();
        for (id, there) in [(client, &client_there), (accepted, &accepted_there)] {
            let name = support::show_here(&here.name(id).unwrap());
            assert_eq!(name, support::show_there(rustix::net::getsockname(there).unwrap()));
            let peer = support::show_here(&here.peer_name(id).unwrap());
            assert_eq!(peer, support::show_there(rustix::net::getpeername(there).unwrap().unwrap()));
        }
    }
    here.check();
}

/// Returns an option of ours as a number.
fn number(here: &mut Here, id: SocketId, level: u32, name: u32) -> u32 {
    let value = here.option(id, level, name).unwrap();
    u32::from_le_bytes(*value.as_bytes().first_chunk().unwrap())
}

#[test]
fn options_have_linuxs_values() {
    let mut here = sockets();
    for (family, kind) in [(1, 1), (1, 2), (1, 5), (2, 1), (2, 2), (10, 1), (10, 2)] {
        let id = here.socket(u32::from(family), kind, 0).unwrap();
        let there = support::socket(family, kind);
        let mut same = |name, there: u32| assert_eq!(number(&mut here, id, level::SOCKET, name), there, "{name}");
        same(option::TYPE, sockopt::socket_type(&there).unwrap().as_raw());
        same(option::DOMAIN, sockopt::socket_domain(&there).unwrap().as_raw().into());
        same(option::PROTOCOL, sockopt::socket_protocol(&there).unwrap().map_or(0, |all| all.as_raw().get()));
        same(option::SNDBUF, sockopt::socket_send_buffer_size(&there).unwrap() as u32);
        same(option::RCVBUF, sockopt::socket_recv_buffer_size(&there).unwrap() as u32);
        for wanted in [0, 1, 3000, 50_000, 212_992] {
            here.set_option(id, level::SOCKET, option::SNDBUF, &u32::to_le_bytes(wanted)).unwrap();
            here.set_option(id, level::SOCKET, option::RCVBUF, &u32::to_le_bytes(wanted)).unwrap();
            sockopt::set_socket_send_buffer_size(&there, wanted as usize).unwrap();
            sockopt::set_socket_recv_buffer_size(&there, wanted as usize).unwrap();
            let mut same = |name, there: usize| {
                assert_eq!(number(&mut here, id, level::SOCKET, name) as usize, there, "{name}, {wanted} wanted");
            };
            same(option::SNDBUF, sockopt::socket_send_buffer_size(&there).unwrap());
            same(option::RCVBUF, sockopt::socket_recv_buffer_size(&there).unwrap());
        }
    }
    let id = here.socket(2, 1, 0).unwrap();
    let there = support::socket(2, 1);
    let seconds = |time: Theirs<Duration>| time.unwrap().as_secs() as u32;
    assert_eq!(number(&mut here, id, level::TCP, tcp::KEEPIDLE), seconds(sockopt::tcp_keepidle(&there)));
    assert_eq!(number(&mut here, id, level::TCP, tcp::KEEPINTVL), seconds(sockopt::tcp_keepintvl(&there)));
    assert_eq!(number(&mut here, id, level::TCP, tcp::KEEPCNT), sockopt::tcp_keepcnt(&there).unwrap());
    for wanted in [0, 1, 127, 128] {
        let result = ours(here.set_option(id, level::TCP, tcp::KEEPCNT, &u32::to_le_bytes(wanted)));
        assert_eq!(result, sockopt::set_tcp_keepcnt(&there, wanted).map_err(error), "{wanted} probes");
    }
}

#[test]
fn each_mistake_with_an_option_has_its_error() {
    let mut here = sockets();
    let unix = here.socket(1, 1, 0).unwrap();
    let tcp_socket = here.socket(2, 1, 0).unwrap();
    let mut set = |id, level, name, value: &[u8]| here.set_option(id, level, name, value);
    assert_eq!(set(unix, level::SOCKET, option::KEEPALIVE, &[1, 0, 0]), Err(Errno::EINVAL), "too short");
    assert_eq!(set(unix, level::SOCKET, option::LINGER, &[1, 0, 0, 0]), Err(Errno::EINVAL), "too short");
    assert_eq!(set(unix, level::SOCKET, 4711, &[0; 4]), Err(Errno::ENOPROTOOPT), "unknown");
    assert_eq!(set(unix, level::SOCKET, option::TYPE, &[0; 4]), Err(Errno::ENOPROTOOPT), "not to be set");
    assert_eq!(set(unix, level::TCP, tcp::NODELAY, &[0; 4]), Err(Errno::EOPNOTSUPP), "of another family");
    assert_eq!(set(tcp_socket, level::TCP, 4711, &[0; 4]), Err(Errno::ENOPROTOOPT), "unknown");
    assert_eq!(set(tcp_socket, level::IPV6, 26, &[0; 4]), Err(Errno::ENOPROTOOPT), "of another family");
    let time = [1u64.to_le_bytes(), 1_000_000u64.to_le_bytes()];
    assert_eq!(set(unix, level::SOCKET, option::RCVTIMEO, time.as_flattened()), Err(Errno::EDOM));
    let time = [1u64.to_le_bytes(), 500_000u64.to_le_bytes()];
    assert_eq!(set(unix, level::SOCKET, option::RCVTIMEO, time.as_flattened()), Ok(()));
    assert_eq!(here.option(unix, level::SOCKET, option::RCVTIMEO).unwrap().as_bytes(), time.as_flattened());
    assert_eq!((here.time_limit(unix, false), here.time_limit(unix, true)), (Ok(Some(1_500_000)), Ok(None)));
    assert_eq!(here.option(unix, level::SOCKET, 4711), Err(Errno::ENOPROTOOPT));
}

#[test]
fn each_kind_of_socket_that_there_is_not_has_its_error() {
    let mut here = sockets();
    for (family, kind, protocol) in [
        (1, 1, 0),
        (1, 1, 1),
        (1, 1, 2),
        (1, 4, 0),
        (1, 11, 0),
        (46, 1, 0),
        (2, 1, 17),
        (2, 2, 6),
        (2, 5, 0),
        (2, 4, 0),
    ] {
        let there = rustix::net::socket(
            rustix::net::AddressFamily::from_raw(family),
            rustix::net::SocketType::from_raw(kind),
            std::num::NonZero::new(protocol).map(rustix::net::Protocol::from_raw),
        );
        let result = ours(here.socket(family.into(), kind, protocol).map(drop));
        assert_eq!(result, there.map(drop).map_err(error), "{family} {kind} {protocol}");
    }
    assert_eq!(here.pair(2, 1, 0, CREDENTIALS), Err(Errno::EOPNOTSUPP));
    assert_eq!(here.close(SocketId::default()), Ok(()));
    assert_eq!(here.close(SocketId::default()), Err(Errno::EBADF));
}

#[test]
fn credentials_of_peers_are_those_of_who_connected_and_who_listens() {
    let mut here = sockets();
    let [server, client] = [(); 2].map(|()| here.socket(1, 1, 0).unwrap());
    here.bind_abstract(server, b"s").unwrap();
    let owner = Credentials { process: 1, user: 2, group: 3 };
    here.listen(server, 1, owner).unwrap();
    here.connect(client, Target::Abstract(b"s"), CREDENTIALS).unwrap();
    let accepted = here.accept(server, false).unwrap();
    let mut told = |id| here.option(id, level::SOCKET, option::PEERCRED).unwrap().as_bytes().to_vec();
    assert_eq!(told(client), owner.to_record());
    assert_eq!(told(accepted), CREDENTIALS.to_record());
    // Who wants to be told who sends gets a name, so that others are told, too.
    here.set_option(client, level::SOCKET, option::PASSCRED, &[1, 0, 0, 0]).unwrap();
    let [one, _] = here.pair(1, 2, 0, CREDENTIALS).unwrap();
    here.set_option(one, level::SOCKET, option::PASSCRED, &[1, 0, 0, 0]).unwrap();
    send(&mut here, one, b"x").unwrap();
    assert!(matches!(here.name(one), Ok(Address::Unix(Some(UnixName::Abstract(name)))) if name.len() == 5));
}

#[test]
fn limits_hold_whatever_programs_do() {
    let limits = Limits { sockets: 4, bytes: 100, rights: 3 };
    let mut here: Here = Sockets::new(limits);
    let [one, other] = here.pair(1, 1, 0, CREDENTIALS).unwrap();
    let mut rights = vec![1, 2, 3, 4];
    let refusal = here.send(one, &[b"x"], &PLAIN, &mut rights);
    assert_eq!((refusal, rights.len()), (Err(Refusal::Fails(Errno::ETOOMANYREFS)), 4));
    rights.pop();
    assert_eq!(here.send(one, &[b"x"], &PLAIN, &mut rights), Ok(1));
    assert!(rights.is_empty());
    assert_eq!(send(&mut here, one, &[0; 100]), Err(Refusal::Fails(Errno::ENOBUFS)));
    assert_eq!(send(&mut here, one, &[0; 99]), Ok(99));
    let [_, _] = here.pair(1, 1, 0, CREDENTIALS).unwrap();
    assert_eq!(here.pair(1, 1, 0, CREDENTIALS), Err(Errno::ENFILE));
    here.check();
    here.close(other).unwrap();
    assert_eq!(here.take_rights(), [1, 2, 3], "rights that nobody can receive any more");
    assert_eq!(here.pair(1, 1, 0, CREDENTIALS), Err(Errno::ENFILE), "a half of a pair is not left");
    here.check();
    assert_eq!(here.len(), 4, "a socket that is closed is kept as long as its peer is there");
    here.close(one).unwrap();
    assert_eq!(here.len(), 2);
}
