//! Values of constants on AArch64, under Linux's names.

#![allow(missing_docs, reason = "these are Linux's names; its manual pages explain them")]

pub mod family {
    //! Families of addresses, also called domains.
    pub const UNSPEC: u16 = 0;
    pub const UNIX: u16 = 1;
    pub const INET: u16 = 2;
    pub const INET6: u16 = 10;
}

pub mod kind {
    //! Types of sockets.
    pub const STREAM: u32 = 1;
    pub const DGRAM: u32 = 2;
    pub const RAW: u32 = 3;
    pub const SEQPACKET: u32 = 5;
    /// Number of types.
    pub const MAX: u32 = 11;
}

pub mod protocol {
    //! Protocols of sockets.
    pub const UNIX: u32 = 1;
    pub const TCP: u32 = 6;
    pub const UDP: u32 = 17;
    pub const UDPLITE: u32 = 136;
    /// Number of protocols.
    pub const MAX: u32 = 263;
}

pub mod message {
    //! Flags of calls that send and receive.
    pub const OOB: u32 = 1;
    pub const PEEK: u32 = 2;
    pub const CTRUNC: u32 = 8;
    pub const TRUNC: u32 = 0x20;
    pub const DONTWAIT: u32 = 0x40;
    pub const EOR: u32 = 0x80;
    pub const WAITALL: u32 = 0x100;
    pub const NOSIGNAL: u32 = 0x4000;
    pub const CMSG_CLOEXEC: u32 = 0x4000_0000;
}

pub mod control {
    //! Types of control messages at the level `SOL_SOCKET`.
    pub const RIGHTS: u32 = 1;
    pub const CREDENTIALS: u32 = 2;
}

pub mod level {
    //! Levels of options.
    pub const IP: u32 = 0;
    pub const SOCKET: u32 = 1;
    pub const TCP: u32 = 6;
    pub const IPV6: u32 = 41;
    pub const UDPLITE: u32 = 136;
}

pub mod option {
    //! Options at the level `SOL_SOCKET`.
    pub const REUSEADDR: u32 = 2;
    pub const TYPE: u32 = 3;
    pub const ERROR: u32 = 4;
    pub const DONTROUTE: u32 = 5;
    pub const BROADCAST: u32 = 6;
    pub const SNDBUF: u32 = 7;
    pub const RCVBUF: u32 = 8;
    pub const KEEPALIVE: u32 = 9;
    pub const OOBINLINE: u32 = 10;
    pub const PRIORITY: u32 = 12;
    pub const LINGER: u32 = 13;
    pub const REUSEPORT: u32 = 15;
    pub const PASSCRED: u32 = 16;
    pub const PEERCRED: u32 = 17;
    pub const RCVLOWAT: u32 = 18;
    pub const SNDLOWAT: u32 = 19;
    pub const RCVTIMEO: u32 = 20;
    pub const SNDTIMEO: u32 = 21;
    pub const ACCEPTCONN: u32 = 30;
    pub const SNDBUFFORCE: u32 = 32;
    pub const RCVBUFFORCE: u32 = 33;
    pub const PROTOCOL: u32 = 38;
    pub const DOMAIN: u32 = 39;
}

pub mod tcp {
    //! Options at the level `IPPROTO_TCP`.
    pub const NODELAY: u32 = 1;
    pub const CORK: u32 = 3;
    pub const KEEPIDLE: u32 = 4;
    pub const KEEPINTVL: u32 = 5;
    pub const KEEPCNT: u32 = 6;
    pub const USER_TIMEOUT: u32 = 18;
}

pub mod ip {
    //! Options at the levels `IPPROTO_IP` and `IPPROTO_IPV6`.
    pub const TOS: u32 = 1;
    pub const UNICAST_HOPS: u32 = 16;
    pub const V6ONLY: u32 = 26;
    pub const RECVHOPLIMIT: u32 = 51;
    pub const HOPLIMIT: u32 = 52;
    pub const RECVTCLASS: u32 = 66;
    pub const TCLASS: u32 = 67;
}

pub mod lite {
    //! Options at the level `IPPROTO_UDPLITE`.
    pub const SEND_CSCOV: u32 = 10;
    pub const RECV_CSCOV: u32 = 11;
}

pub mod shutdown {
    //! Directions that `shutdown` ends.
    pub const READ: u32 = 0;
    pub const WRITE: u32 = 1;
    pub const BOTH: u32 = 2;
}
