//! The sockets of the Linux under these tests.

#![allow(dead_code, reason = "each test needs a part of it")]

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType,
};
use tench_linux_sockets::address::{Address, UnixName};
use tench_linux_sockets::{Errno, Readiness, Refusal};

/// Number of rights that are received at once at most.
const MOST_RIGHTS: usize = 10;

/// Flags under which no call waits or raises a signal.
const QUIET: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

/// Where a socket is bound or connected to.
#[derive(Clone, PartialEq, Eq)]
pub enum Place {
    Path(Vec<u8>),
    Abstract(Vec<u8>),
    Internet(SocketAddr),
}

impl std::fmt::Debug for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Path(path) => write!(formatter, "path {}", path.escape_ascii()),
            Place::Abstract(name) => write!(formatter, "abstract {}", name.escape_ascii()),
            Place::Internet(address) => write!(formatter, "{address}"),
        }
    }
}

impl Place {
    /// Returns the address, for Linux.
    pub fn there(&self) -> SocketAddrAny {
        match self {
            Place::Path(path) => SocketAddrUnix::new(&path[..]).unwrap().into(),
            Place::Abstract(name) => SocketAddrUnix::new_abstract_name(name).unwrap().into(),
            Place::Internet(address) => (*address).into(),
        }
    }
}

/// Everything that was received, in the form in which both are compared.
#[derive(PartialEq, Eq, Debug, Default)]
pub struct Got {
    pub count: usize,
    pub bytes: Vec<u8>,
    pub is_cut: bool,
    pub sender: String,
    pub credentials: Option<(u32, u32, u32)>,
    pub rights: Vec<u64>,
}

pub fn error(error: rustix::io::Errno) -> i32 {
    error.raw_os_error()
}

pub fn ours<T>(result: Result<T, Errno>) -> Result<T, i32> {
    result.map_err(Errno::into_raw)
}

pub fn refused<T>(result: Result<T, Refusal>) -> Result<T, i32> {
    result.map_err(|refusal| refusal.errno().into_raw())
}

/// Returns a name that was chosen automatically, or a port, as one that is equal on both sides.
fn chosen(port: u16) -> String {
    if port >= 32768 { "chosen".into() } else { port.to_string() }
}

/// Writes an address of ours.
pub fn show_here(address: &Address<'_>) -> String {
    match address {
        Address::Unix(None) => "unnamed".into(),
        Address::Unix(Some(UnixName::Node { path, .. })) => format!("path {}", path.escape_ascii()),
        Address::Unix(Some(UnixName::Abstract(name))) => show_abstract(name),
        Address::Internet(address) => format!("{} {}", address.ip(), chosen(address.port())),
    }
}

fn show_abstract(name: &[u8]) -> String {
    let is_chosen = name.len() == 5 && name.iter().all(u8::is_ascii_hexdigit);
    if is_chosen { "automatic".into() } else { format!("abstract {}", name.escape_ascii()) }
}

/// Writes an address of Linux's.
pub fn show_there(address: SocketAddrAny) -> String {
    if address.address_family() != AddressFamily::UNIX {
        let address = SocketAddr::try_from(address).unwrap();
        return format!("{} {}", address.ip(), chosen(address.port()));
    }
    // `SocketAddrUnix` takes no name for an empty one.
    if address.addr_len() as usize == size_of::<u16>() {
        return "unnamed".into();
    }
    let address = SocketAddrUnix::try_from(address).unwrap();
    match (address.path_bytes(), address.abstract_name()) {
        (Some(path), _) => format!("path {}", path.escape_ascii()),
        (_, Some(name)) => show_abstract(name),
        _ => "unnamed".into(),
    }
}

/// Returns an identity of an open file.
pub fn identity(file: impl AsFd) -> u64 {
    rustix::fs::fstat(file).unwrap().st_ino
}

pub fn socket(family: u16, kind: u32) -> OwnedFd {
    let (family, kind) = (AddressFamily::from_raw(family), SocketType::from_raw(kind));
    net::socket_with(family, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None).unwrap()
}

pub fn pair(kind: u32) -> (OwnedFd, OwnedFd) {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    net::socketpair(AddressFamily::UNIX, SocketType::from_raw(kind), flags, None).unwrap()
}

pub fn accept(socket: &OwnedFd) -> Result<OwnedFd, i32> {
    net::accept_with(socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK).map_err(error)
}

/// Connects, and waits for it if it is TCP.
pub fn connect(socket: &OwnedFd, place: &Place) -> Result<(), i32> {
    let waits = matches!(place, Place::Internet(_));
    rustix::io::ioctl_fionbio(socket, !waits).unwrap();
    let result = net::connect(socket, &place.there()).map_err(error);
    rustix::io::ioctl_fionbio(socket, true).unwrap();
    result
}

pub fn send(socket: &OwnedFd, bytes: &[u8], to: Option<&Place>, rights: &[&OwnedFd]) -> Result<usize, i32> {
    let rights: Vec<_> = rights.iter().map(|right| right.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); 256];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !rights.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(&rights)));
    }
    let parts = [IoSlice::new(bytes)];
    match to {
        Some(to) => net::sendmsg_addr(socket, &to.there(), &parts, &mut control, QUIET),
        None => net::sendmsg(socket, &parts, &mut control, QUIET),
    }
    .map_err(error)
}

pub fn receive(socket: &OwnedFd, room: usize, flags: u32) -> Result<Got, i32> {
    let mut bytes = vec![0; room];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_RIGHTS), ScmCredentials(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::from_bits_retain(flags) | RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let message = net::recvmsg(socket, &mut parts, &mut control, flags).map_err(error)?;
    let mut got = Got { count: message.bytes, is_cut: message.flags.contains(ReturnFlags::TRUNC), ..Got::default() };
    for message in control.drain() {
        match message {
            RecvAncillaryMessage::ScmRights(files) => got.rights.extend(files.map(identity)),
            RecvAncillaryMessage::ScmCredentials(all) => {
                got.credentials = Some((all.pid.as_raw_pid().cast_unsigned(), all.uid.as_raw(), all.gid.as_raw()));
            }
            _ => panic!("a control message that nobody wants"),
        }
    }
    bytes.truncate(message.bytes);
    got.bytes = bytes;
    let sender = message.address.map_or_else(|| "unnamed".into(), show_there);
    got.sender = sender;
    Ok(got)
}

/// Returns what can be done with a socket without waiting.
pub fn readiness(socket: &OwnedFd) -> Readiness {
    let all = PollFlags::IN | PollFlags::OUT | PollFlags::RDHUP;
    let mut records = [PollFd::new(socket, all)];
    poll(&mut records, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
    let events = records[0].revents();
    Readiness {
        is_readable: events.contains(PollFlags::IN),
        is_writable: events.contains(PollFlags::OUT),
        has_error: events.contains(PollFlags::ERR),
        is_hung_up: events.contains(PollFlags::HUP),
        receives_no_more: events.contains(PollFlags::RDHUP),
        lacks_room_of: None,
    }
}

/// Removes a file, if there is one.
pub fn remove(path: &[u8]) {
    let path = Path::new(std::str::from_utf8(path).unwrap());
    let _ = std::fs::remove_file(path);
}
