//! The options of sockets.

use crate::control::Ipv6Header;
use crate::numbers::{ip, level, lite, option, tcp};
use crate::socket::{Domain, Kind, State};
use crate::{Errno, SocketId, Sockets};

/// The size of Unix sockets' and UDP's buffers, and the largest that a program may ask for.
const BUFFER: u32 = 212_992;
/// Sizes of TCP's buffers as far as programs see.
const TCP_SEND: u32 = 16_384;
const TCP_RECEIVE: u32 = 131_072;
/// The smallest buffers.
const LEAST_SEND: u32 = 4608;
const LEAST_RECEIVE: u32 = 2304;

/// The default hop limit.
const HOPS: u8 = 64;
/// The smallest checksum coverage: the bytes of a UDP header.
const LEAST_COVERAGE: u32 = 8;

/// Microseconds in a second.
const SECOND: i64 = 1_000_000;

/// Options that are on or off, and have the same form: those at the level `SOL_SOCKET`, by their numbers.
const SWITCHES: [u32; 6] =
    [option::REUSEADDR, option::REUSEPORT, option::KEEPALIVE, option::BROADCAST, option::DONTROUTE, option::OOBINLINE];

/// Options of TCP that are numbers: their limits and usual values.
const TCP_NUMBERS: [(u32, u32, u32, u32); 4] = [
    (tcp::KEEPIDLE, 1, 32767, 7200),
    (tcp::KEEPINTVL, 1, 32767, 75),
    (tcp::KEEPCNT, 1, 127, 9),
    (tcp::USER_TIMEOUT, 0, i32::MAX as u32, 0),
];

/// The options of a socket.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The switches that are on: a bit each, by their numbers.
    switches: u32,
    pub(crate) passes_credentials: bool,
    pub(crate) is_version_6_only: bool,
    pub(crate) send_buffer: u32,
    pub(crate) receive_buffer: u32,
    /// Sizes of buffers that the program has chosen.
    pub(crate) chosen_send_buffer: Option<u32>,
    pub(crate) chosen_receive_buffer: Option<u32>,
    /// Seconds that `close` waits.
    pub(crate) linger: Option<u32>,
    least_received: u32,
    priority: u32,
    /// Limits of time to receive and to send, in microseconds; 0 stands for none.
    times: [i64; 2],
    service: u8,
    has_no_delay: bool,
    is_corked: bool,
    tcp: [u32; 4],
    /// Header fields of IPv6 messages that the socket sends.
    pub(crate) header: Ipv6Header,
    /// Says whether the program wants to receive the hop limit, and the traffic class.
    wants: [bool; 2],
    /// Checksum coverage in bytes of messages that are sent, and the least of those received; 0 stands for all bytes.
    /// Only stored: no message has a checksum, since none leaves the machine.
    coverage: [u32; 2],
}

impl Options {
    pub(crate) const fn new(domain: Domain, kind: Kind) -> Options {
        let is_tcp = !matches!(domain, Domain::Unix) && matches!(kind, Kind::Stream);
        Options {
            switches: 0,
            passes_credentials: false,
            is_version_6_only: false,
            send_buffer: if is_tcp { TCP_SEND } else { BUFFER },
            receive_buffer: if is_tcp { TCP_RECEIVE } else { BUFFER },
            chosen_send_buffer: None,
            chosen_receive_buffer: None,
            linger: None,
            least_received: 1,
            priority: 0,
            times: [0; 2],
            service: 0,
            has_no_delay: false,
            is_corked: false,
            tcp: [TCP_NUMBERS[0].3, TCP_NUMBERS[1].3, TCP_NUMBERS[2].3, TCP_NUMBERS[3].3],
            header: Ipv6Header { hop_limit: Some(HOPS), class: Some(0) },
            wants: [false; 2],
            coverage: [0; 2],
        }
    }

    /// Returns the fields of a message that the program wants to receive.
    pub(crate) fn wanted_header(&self, header: Ipv6Header) -> Ipv6Header {
        Ipv6Header {
            hop_limit: header.hop_limit.filter(|_| self.wants[0]),
            class: header.class.filter(|_| self.wants[1]),
        }
    }

    /// Sets an option of IPv6.
    fn set_version_6(&mut self, name: u32, value: u32) -> Result<(), Errno> {
        let part = |usual: u8| match value.cast_signed() {
            -1 => Ok(Some(usual)),
            value => u8::try_from(value).map(Some).map_err(|_| Errno::EINVAL),
        };
        match name {
            ip::UNICAST_HOPS => self.header.hop_limit = part(HOPS)?,
            ip::TCLASS => self.header.class = part(0)?,
            ip::RECVHOPLIMIT => self.wants[0] = value != 0,
            ip::RECVTCLASS => self.wants[1] = value != 0,
            _ => return Err(Errno::ENOPROTOOPT),
        }
        Ok(())
    }

    /// Returns the value of an option of IPv6.
    fn version_6(&self, name: u32) -> Result<u32, Errno> {
        Ok(match name {
            ip::UNICAST_HOPS => self.header.hop_limit.unwrap_or(HOPS).into(),
            ip::TCLASS => self.header.class.unwrap_or(0).into(),
            ip::RECVHOPLIMIT => self.wants[0].into(),
            ip::RECVTCLASS => self.wants[1].into(),
            _ => return Err(Errno::ENOPROTOOPT),
        })
    }

    /// Returns whether a switch is on.
    pub(crate) const fn has(&self, switch: u32) -> bool {
        self.switches & 1 << switch != 0
    }
}

/// The value of an option, as the program sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionValue {
    bytes: [u8; 16],
    length: usize,
}

impl OptionValue {
    /// Returns the record. A program that has less room gets its beginning.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn new(record: &[u8]) -> OptionValue {
        let mut bytes = [0; 16];
        bytes[..record.len()].copy_from_slice(record);
        OptionValue { bytes, length: record.len() }
    }

    fn number(number: u32) -> OptionValue {
        OptionValue::new(&number.to_le_bytes())
    }

    fn numbers(first: u32, second: u32) -> OptionValue {
        OptionValue::new(&(u64::from(first) | u64::from(second) << 32).to_le_bytes())
    }
}

/// Returns the number at a place in an option's value.
fn number(value: &[u8], index: usize) -> Result<u32, Errno> {
    let bytes = value.get(4 * index..).and_then(|rest| rest.first_chunk());
    bytes.map(|bytes| u32::from_le_bytes(*bytes)).ok_or(Errno::EINVAL)
}

/// Parses a limit of time (`struct timeval`), in microseconds.
fn time(value: &[u8]) -> Result<i64, Errno> {
    let word = |index: usize| {
        value.get(8 * index..).and_then(|rest| rest.first_chunk()).map(|bytes| i64::from_le_bytes(*bytes))
    };
    let (seconds, rest) = (word(0).ok_or(Errno::EINVAL)?, word(1).ok_or(Errno::EINVAL)?);
    if !(0..SECOND).contains(&rest) {
        return Err(Errno::EDOM);
    }
    // A limit in the past is the shortest one; what is too long to be counted is none.
    Ok(if seconds < 0 { 1 } else { seconds.checked_mul(SECOND).and_then(|all| all.checked_add(rest)).unwrap_or(0) })
}

/// Returns the index of an option into the checksum coverages.
fn coverage(name: u32) -> Result<usize, Errno> {
    match name {
        lite::SEND_CSCOV => Ok(0),
        lite::RECV_CSCOV => Ok(1),
        _ => Err(Errno::ENOPROTOOPT),
    }
}

/// Returns the size of the buffer that a program gets that asks for one.
fn buffer(wanted: u32, least: u32) -> u32 {
    (wanted.min(BUFFER) * 2).max(least)
}

impl<R> Sockets<R> {
    /// Sets an option.
    ///
    /// # Errors
    /// - `ENOPROTOOPT`: there is no such option, or it cannot be set.
    /// - `EINVAL`: the value is too short, or not allowed.
    /// - `EDOM`: a time has too many microseconds.
    /// - `EOPNOTSUPP`: the socket's family has no such option.
    /// - `EBADF`
    pub fn set_option(&mut self, id: SocketId, level: u32, name: u32, value: &[u8]) -> Result<(), Errno> {
        let socket = self.open(id)?;
        let (domain, is_tcp, is_lite) = (socket.domain, socket.is_tcp(), socket.internet.is_lite);
        match (level, domain) {
            (level::SOCKET, _) => self.set_socket_option(id.0, name, value),
            (_, Domain::Unix) => Err(Errno::EOPNOTSUPP),
            (level::TCP, _) if is_tcp => self.set_tcp_option(id.0, name, value),
            (level::IP, _) if name == ip::TOS => {
                let first = *value.first().ok_or(Errno::EINVAL)?;
                self.at_mut(id.0).options.service = first;
                Ok(())
            }
            (level::IPV6, Domain::Internet6) if name == ip::V6ONLY => {
                let socket = self.at_mut(id.0);
                if socket.internet.has_port {
                    return Err(Errno::EINVAL);
                }
                socket.options.is_version_6_only = number(value, 0)? != 0;
                Ok(())
            }
            (level::IPV6, Domain::Internet6) => {
                let value = number(value, 0)?;
                self.at_mut(id.0).options.set_version_6(name, value)
            }
            (level::UDPLITE, _) if is_lite => {
                let value = number(value, 0)?;
                let coverage = &mut self.at_mut(id.0).options.coverage[coverage(name)?];
                *coverage = if value == 0 { 0 } else { value.clamp(LEAST_COVERAGE, u16::MAX.into()) };
                Ok(())
            }
            _ => Err(Errno::ENOPROTOOPT),
        }
    }

    fn set_socket_option(&mut self, index: u32, name: u32, value: &[u8]) -> Result<(), Errno> {
        let first = number(value, 0)?;
        let socket = self.at_mut(index);
        let is_unix = socket.is_unix();
        let options = &mut socket.options;
        match name {
            option::REUSEPORT if is_unix && first != 0 => return Err(Errno::EOPNOTSUPP),
            _ if SWITCHES.contains(&name) => {
                let bit = 1 << name;
                options.switches = if first != 0 { options.switches | bit } else { options.switches & !bit };
            }
            option::SNDBUF | option::SNDBUFFORCE => {
                options.send_buffer = buffer(first, LEAST_SEND);
                options.chosen_send_buffer = Some(options.send_buffer);
                self.tell_state(index);
            }
            option::RCVBUF | option::RCVBUFFORCE => {
                options.receive_buffer = buffer(first, LEAST_RECEIVE);
                options.chosen_receive_buffer = Some(options.receive_buffer);
                if let Some(peer) = self.at(index).peer {
                    self.tell(peer, crate::Event::Writable);
                }
            }
            option::LINGER => {
                let seconds = number(value, 1)?;
                options.linger = (first != 0).then_some(seconds);
            }
            option::PASSCRED if is_unix => options.passes_credentials = first != 0,
            option::PASSCRED => return Err(Errno::EOPNOTSUPP),
            option::RCVLOWAT => options.least_received = if first == 0 { 1 } else { first.min(i32::MAX as u32) },
            option::PRIORITY => options.priority = first,
            option::RCVTIMEO => options.times[0] = time(value)?,
            option::SNDTIMEO => options.times[1] = time(value)?,
            _ => return Err(Errno::ENOPROTOOPT),
        }
        Ok(())
    }

    fn set_tcp_option(&mut self, index: u32, name: u32, value: &[u8]) -> Result<(), Errno> {
        let first = number(value, 0)?;
        let options = &mut self.at_mut(index).options;
        match name {
            tcp::NODELAY => options.has_no_delay = first != 0,
            tcp::CORK => options.is_corked = first != 0,
            _ => {
                let found = TCP_NUMBERS.iter().position(|(number, ..)| *number == name);
                let place = found.ok_or(Errno::ENOPROTOOPT)?;
                let (_, least, most, _) = TCP_NUMBERS[place];
                if !(least..=most).contains(&first) {
                    return Err(Errno::EINVAL);
                }
                options.tcp[place] = first;
            }
        }
        Ok(())
    }

    /// Returns the value of an option. `SO_ERROR` takes the error.
    ///
    /// # Errors
    /// - `ENOPROTOOPT`: there is no such option.
    /// - `EOPNOTSUPP`: the socket's family has no such option.
    /// - `EBADF`
    pub fn option(&mut self, id: SocketId, level: u32, name: u32) -> Result<OptionValue, Errno> {
        let socket = self.open(id)?;
        let options = &socket.options;
        match (level, socket.domain) {
            (level::SOCKET, _) => self.socket_option(id.0, name),
            (_, Domain::Unix) => Err(Errno::EOPNOTSUPP),
            (level::TCP, _) if socket.is_tcp() => {
                let found = TCP_NUMBERS.iter().position(|(number, ..)| *number == name);
                Ok(OptionValue::number(match name {
                    tcp::NODELAY => options.has_no_delay.into(),
                    tcp::CORK => options.is_corked.into(),
                    _ => options.tcp[found.ok_or(Errno::ENOPROTOOPT)?],
                }))
            }
            (level::IP, _) if name == ip::TOS => Ok(OptionValue::number(options.service.into())),
            (level::IPV6, Domain::Internet6) if name == ip::V6ONLY => {
                Ok(OptionValue::number(options.is_version_6_only.into()))
            }
            (level::IPV6, Domain::Internet6) => options.version_6(name).map(OptionValue::number),
            // UDP's checksums always cover all bytes.
            (level::UDPLITE, _) if socket.kind == Kind::Datagram => {
                Ok(OptionValue::number(options.coverage[coverage(name)?]))
            }
            _ => Err(Errno::ENOPROTOOPT),
        }
    }

    fn socket_option(&mut self, index: u32, name: u32) -> Result<OptionValue, Errno> {
        let socket = self.at_mut(index);
        let options = &socket.options;
        Ok(OptionValue::number(match name {
            _ if SWITCHES.contains(&name) => options.has(name).into(),
            option::TYPE => socket.kind.number(),
            option::DOMAIN => socket.domain.number().into(),
            option::PROTOCOL => socket.protocol(),
            option::ERROR => socket.error.take().map_or(0, |error| error.into_raw().unsigned_abs()),
            option::ACCEPTCONN => (socket.state == State::Listening).into(),
            option::SNDBUF => options.send_buffer,
            option::RCVBUF => options.receive_buffer,
            option::PASSCRED if socket.is_unix() => options.passes_credentials.into(),
            option::PASSCRED => return Err(Errno::EOPNOTSUPP),
            option::RCVLOWAT => options.least_received,
            option::SNDLOWAT => 1,
            option::PRIORITY => options.priority,
            option::LINGER => {
                return Ok(OptionValue::numbers(options.linger.is_some().into(), options.linger.unwrap_or(0)));
            }
            option::PEERCRED => return Ok(OptionValue::new(&socket.credentials.to_record())),
            option::RCVTIMEO | option::SNDTIMEO => {
                let time = options.times[usize::from(name == option::SNDTIMEO)];
                let words = [(time / SECOND).to_le_bytes(), (time % SECOND).to_le_bytes()];
                return Ok(OptionValue::new(words.as_flattened()));
            }
            _ => return Err(Errno::ENOPROTOOPT),
        }))
    }

    /// Returns how long receiving, or sending, may wait, in microseconds (`SO_RCVTIMEO`, `SO_SNDTIMEO`).
    ///
    /// # Errors
    /// `EBADF`
    pub fn time_limit(&self, id: SocketId, sends: bool) -> Result<Option<u64>, Errno> {
        let time = self.open(id)?.options.times[usize::from(sends)];
        Ok((time != 0).then_some(time.unsigned_abs()))
    }
}
