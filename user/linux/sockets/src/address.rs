//! Addresses of sockets, as they are in memory.
//!
//! A Unix address is a family (2 bytes) and up to 108 bytes: a path, which may end with a zero; or a zero and an
//! abstract name, to which every byte up to the address's length belongs, further zeros, too.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use tench_linux_calls::records::{sockaddr, u16_at, u32_at};

use crate::Errno;
use crate::numbers::family;

/// Size of the record of a Unix address, and of an address of IPv4.
const UNIX_SIZE: usize = 110;
const INTERNET_SIZE: usize = 16;
/// Size of an address of IPv6, and the part of it that Linux insists on.
const INTERNET6_SIZE: usize = 28;
const INTERNET6_LEAST: usize = 24;
/// Places in an address of IPv6.
const FLOW: usize = 4;
const ADDRESS6: usize = 8;
const SCOPE: usize = 24;

/// The address of a Unix socket, as a program gives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnixAddress<'a> {
    /// The family alone: `bind` chooses an abstract name.
    Unnamed,
    /// A path, without the zero at its end.
    Path(&'a [u8]),
    /// An abstract name, without the zero before it.
    Abstract(&'a [u8]),
}

impl<'a> UnixAddress<'a> {
    /// Parses an address.
    ///
    /// # Errors
    /// `EINVAL`: too short for a family, too long, or of another family.
    pub fn parse(record: &'a [u8]) -> Result<UnixAddress<'a>, Errno> {
        if record.len() < sockaddr::PATH || record.len() > UNIX_SIZE || family_of(record)? != family::UNIX {
            return Err(Errno::EINVAL);
        }
        Ok(match &record[sockaddr::PATH..] {
            [] => UnixAddress::Unnamed,
            [0, name @ ..] => UnixAddress::Abstract(name),
            path => UnixAddress::Path(path.split(|byte| *byte == 0).next().unwrap_or_default()),
        })
    }
}

/// The name of a Unix socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UnixName {
    /// A node of the file system.
    Node {
        /// The node's key, which the caller chose.
        node: u64,
        /// The path to which the socket was bound, without a zero at the end.
        path: Vec<u8>,
    },
    /// An abstract name, without the zero before it.
    Abstract(Vec<u8>),
}

/// The address of a socket, as calls return it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address<'a> {
    /// A Unix socket's name; it may have none.
    Unix(Option<&'a UnixName>),
    /// An address of IPv4, or of IPv6. A socket of the family `AF_INET6` shows the former in the form of the latter.
    Internet(SocketAddr),
}

impl Address<'_> {
    /// Writes the record of an address. It is cut by the caller if there is less room in the program, which is told
    /// the whole length nevertheless.
    pub fn write(&self, into: &mut Vec<u8>) {
        match self {
            Address::Unix(name) => {
                into.extend(family::UNIX.to_le_bytes());
                match name {
                    None => {}
                    Some(UnixName::Node { path, .. }) => {
                        into.extend(path);
                        into.push(0);
                    }
                    Some(UnixName::Abstract(name)) => {
                        into.push(0);
                        into.extend(name);
                    }
                }
            }
            Address::Internet(SocketAddr::V4(address)) => {
                into.extend(family::INET.to_le_bytes());
                into.extend(address.port().to_be_bytes());
                into.extend(address.ip().octets());
                into.extend([0; 8]);
            }
            Address::Internet(SocketAddr::V6(address)) => {
                into.extend(family::INET6.to_le_bytes());
                into.extend(address.port().to_be_bytes());
                into.extend(address.flowinfo().to_le_bytes());
                into.extend(address.ip().octets());
                into.extend(address.scope_id().to_le_bytes());
            }
        }
    }
}

/// Returns the family of an address.
///
/// # Errors
/// `EINVAL`: too short.
pub fn family_of(record: &[u8]) -> Result<u16, Errno> {
    match record.len() {
        0..sockaddr::PATH => Err(Errno::EINVAL),
        _ => Ok(u16_at(record, sockaddr::FAMILY)),
    }
}

/// Parses an internet address for a socket of the family `AF_INET` or `AF_INET6`. An address of IPv4 in the form of
/// IPv6 is returned as one of IPv4. An address whose family is `AF_UNSPEC` may stand for no address; the caller looks
/// at [`family_of`] first where this is so.
///
/// # Errors
/// - `EINVAL`: too short.
/// - `EAFNOSUPPORT`: of another family.
pub fn parse_internet(own: u16, record: &[u8]) -> Result<SocketAddr, Errno> {
    let least = if own == family::INET6 { INTERNET6_LEAST } else { INTERNET_SIZE };
    // A socket of IPv6 may be given an address of IPv4 only in the form of IPv6.
    if record.len() < least {
        return Err(Errno::EINVAL);
    }
    if family_of(record)? != own {
        return Err(Errno::EAFNOSUPPORT);
    }
    let port = u16_at(record, sockaddr::PORT).swap_bytes();
    if own == family::INET {
        let ip = Ipv4Addr::from(u32_at(record, sockaddr::ADDRESS).swap_bytes());
        return Ok(SocketAddrV4::new(ip, port).into());
    }
    let octets: [u8; 16] = core::array::from_fn(|index| record[ADDRESS6 + index]);
    let scope = if record.len() >= INTERNET6_SIZE { u32_at(record, SCOPE) } else { 0 };
    Ok(match IpAddr::from(octets).to_canonical() {
        IpAddr::V4(ip) => SocketAddrV4::new(ip, port).into(),
        IpAddr::V6(ip) => SocketAddrV6::new(ip, port, u32_at(record, FLOW), scope).into(),
    })
}

/// Returns an address as a socket of the family `AF_INET6` shows it.
pub(crate) fn in_version_6(address: SocketAddr) -> SocketAddr {
    match address {
        // No address at all is the same in both versions.
        SocketAddr::V4(address) if address.ip().is_unspecified() => {
            SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, address.port(), 0, 0).into()
        }
        SocketAddr::V4(address) => SocketAddrV6::new(address.ip().to_ipv6_mapped(), address.port(), 0, 0).into(),
        SocketAddr::V6(_) => address,
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec;

    use super::*;

    fn unix(rest: &[u8]) -> Vec<u8> {
        [&[1, 0], rest].concat()
    }

    #[test]
    fn unix_addresses_are_told_apart() {
        assert_eq!(UnixAddress::parse(&unix(b"")), Ok(UnixAddress::Unnamed));
        assert_eq!(UnixAddress::parse(&unix(b"/a\0b")), Ok(UnixAddress::Path(b"/a")));
        assert_eq!(UnixAddress::parse(&unix(&[b'x'; 108])), Ok(UnixAddress::Path(&[b'x'; 108])));
        assert_eq!(UnixAddress::parse(&unix(b"\0")), Ok(UnixAddress::Abstract(b"")));
        assert_eq!(UnixAddress::parse(&unix(b"\0a\0b\0")), Ok(UnixAddress::Abstract(b"a\0b\0")));
    }

    #[test]
    fn each_mistake_in_a_unix_address_has_its_error() {
        assert_eq!(UnixAddress::parse(&[1]), Err(Errno::EINVAL), "no room for a family");
        assert_eq!(UnixAddress::parse(&unix(&[b'x'; 109])), Err(Errno::EINVAL), "too long");
        assert_eq!(UnixAddress::parse(&[2, 0, b'/']), Err(Errno::EINVAL), "of another family");
    }

    #[test]
    fn internet_addresses_are_parsed_and_written() {
        let record = [2, 0, 0x1f, 0x90, 127, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0];
        let address = parse_internet(family::INET, &record).unwrap();
        assert_eq!(address, "127.0.0.2:8080".parse().unwrap());
        let mut written = vec![];
        Address::Internet(address).write(&mut written);
        assert_eq!(written, record);
        let mut written = vec![];
        Address::Internet(in_version_6(address)).write(&mut written);
        assert_eq!((written.len(), &written[..2], &written[2..4]), (INTERNET6_SIZE, &[10, 0][..], &record[2..4]));
        assert_eq!(written[8..24], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 2]);
        assert_eq!(parse_internet(family::INET6, &written), Ok(address));
        let one: SocketAddr = "[::1]:80".parse().unwrap();
        let mut written = vec![];
        Address::Internet(one).write(&mut written);
        assert_eq!(parse_internet(family::INET6, &written[..INTERNET6_LEAST]), Ok(one));
    }

    #[test]
    fn each_mistake_in_an_internet_address_has_its_error() {
        assert_eq!(parse_internet(family::INET, &[2; 15]), Err(Errno::EINVAL), "too short");
        assert_eq!(parse_internet(family::INET, &[1; 16]), Err(Errno::EAFNOSUPPORT), "of another family");
        assert_eq!(parse_internet(family::INET6, &[10; 23]), Err(Errno::EINVAL), "too short");
        assert_eq!(parse_internet(family::INET6, &[2; 24]), Err(Errno::EAFNOSUPPORT), "of another family");
        assert_eq!(family_of(&[1]), Err(Errno::EINVAL), "no room for a family");
    }

    #[test]
    fn names_of_unix_sockets_are_written_with_their_length() {
        let path = UnixName::Node { node: 1, path: b"/run/x".to_vec() };
        for (name, record) in [
            (None, &b"\x01\0"[..]),
            (Some(&path), b"\x01\0/run/x\0"),
            (Some(&UnixName::Abstract(b"x\0".to_vec())), b"\x01\0\0x\0"),
        ] {
            let mut written = vec![];
            Address::Unix(name).write(&mut written);
            assert_eq!(written, record);
        }
    }
}
