//! Control messages: 128 bytes each, in the byte order of the machine, with the type in the first two (`memif.h` of VPP and DPDK).

/// Size of a message in bytes.
pub(super) const LEN: usize = 128;
/// The version of the protocol: major and minor number.
pub(super) const VERSION: u16 = 2 << 8;
/// Size in bytes of the names of programs and interfaces.
const NAME: usize = 32;
/// Size of a secret in bytes.
pub(super) const SECRET: usize = 24;
/// Size of the reason for the end of a connection in bytes.
const REASON: usize = 96;

const ACK: u16 = 1;
const HELLO: u16 = 2;
const INIT: u16 = 3;
const ADD_REGION: u16 = 4;
const ADD_RING: u16 = 5;
const CONNECT: u16 = 6;
const CONNECTED: u16 = 7;
const DISCONNECT: u16 = 8;

/// `MEMIF_MSG_ADD_RING_FLAG_S2M`: the ring is for packets from the client to the server.
const TO_SERVER: u16 = 1;

/// A message between client and server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// The server has accepted a message.
    Ack,
    /// The server's limits, its first message.
    Hello(Hello),
    /// The interface that the client wants.
    Init(Init),
    /// A memory, whose descriptor comes with the message.
    AddRegion { index: u16, size: u64 },
    /// A ring, whose event descriptor comes with the message.
    AddRing(AddRing),
    /// The client has added all that it wants to.
    Connect,
    /// The server uses the rings from now on.
    Connected,
    /// The other side ends the connection.
    Disconnect { reason: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) min_version: u16,
    pub(super) max_version: u16,
    /// Largest index of a memory.
    pub(super) max_region: u16,
    /// Largest indices of rings to the client, and to the server.
    pub(super) max_to_client: u16,
    pub(super) max_to_server: u16,
    /// Logarithm of the largest number of a ring's entries.
    pub(super) max_log2_entries: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Init {
    pub(super) version: u16,
    /// Number of the interface at the server's socket.
    pub(super) id: u32,
    /// 0: packets begin with an Ethernet header.
    pub(super) mode: u8,
    /// Ends with zeros.
    pub(super) secret: [u8; SECRET],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AddRing {
    pub(super) to_server: bool,
    pub(super) index: u16,
    /// The memory that has the ring, and its offset there in bytes.
    pub(super) region: u16,
    pub(super) offset: u32,
    /// Logarithm of the number of entries.
    pub(super) log2_entries: u8,
}

impl Message {
    /// Reads a message; `None` if it has no known type.
    pub(super) fn parse(bytes: &[u8; LEN]) -> Option<Self> {
        Some(match number(bytes, 0) {
            ACK => Self::Ack,
            HELLO => Self::Hello(Hello {
                min_version: number(bytes, 34),
                max_version: number(bytes, 36),
                max_region: number(bytes, 38),
                max_to_client: number(bytes, 40),
                max_to_server: number(bytes, 42),
                max_log2_entries: bytes[44],
            }),
            INIT => Self::Init(Init {
                version: number(bytes, 2),
                id: u32::from_ne_bytes(part(bytes, 4)),
                mode: bytes[8],
                secret: part(bytes, 9),
            }),
            ADD_REGION => {
                Self::AddRegion { index: number(bytes, 2), size: u64::from_ne_bytes(part(bytes, 4)) }
            }
            ADD_RING => Self::AddRing(AddRing {
                to_server: number(bytes, 2) & TO_SERVER != 0,
                index: number(bytes, 4),
                region: number(bytes, 6),
                offset: u32::from_ne_bytes(part(bytes, 8)),
                log2_entries: bytes[12],
            }),
            CONNECT => Self::Connect,
            CONNECTED => Self::Connected,
            DISCONNECT => Self::Disconnect { reason: text(&part::<REASON>(bytes, 6)) },
            _ => return None,
        })
    }

    pub(super) fn to_bytes(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        match self {
            Self::Ack => put(0, &ACK.to_ne_bytes()),
            Self::Hello(hello) => {
                put(0, &HELLO.to_ne_bytes());
                put(2, &padded::<NAME>("paceline"));
                let numbers = [
                    hello.min_version,
                    hello.max_version,
                    hello.max_region,
                    hello.max_to_client,
                    hello.max_to_server,
                ];
                for (index, number) in numbers.into_iter().enumerate() {
                    put(34 + 2 * index, &number.to_ne_bytes());
                }
                put(44, &[hello.max_log2_entries]);
            }
            Self::Init(init) => {
                put(0, &INIT.to_ne_bytes());
                put(2, &init.version.to_ne_bytes());
                put(4, &init.id.to_ne_bytes());
                put(8, &[init.mode]);
                put(9, &init.secret);
                put(33, &padded::<NAME>("paceline"));
            }
            Self::AddRegion { index, size } => {
                put(0, &ADD_REGION.to_ne_bytes());
                put(2, &index.to_ne_bytes());
                put(4, &size.to_ne_bytes());
            }
            Self::AddRing(ring) => {
                put(0, &ADD_RING.to_ne_bytes());
                put(2, &(if ring.to_server { TO_SERVER } else { 0 }).to_ne_bytes());
                put(4, &ring.index.to_ne_bytes());
                put(6, &ring.region.to_ne_bytes());
                put(8, &ring.offset.to_ne_bytes());
                put(12, &[ring.log2_entries]);
            }
            Self::Connect | Self::Connected => {
                let kind = if *self == Self::Connect { CONNECT } else { CONNECTED };
                put(0, &kind.to_ne_bytes());
                put(2, &padded::<NAME>("paceline"));
            }
            Self::Disconnect { reason } => {
                put(0, &DISCONNECT.to_ne_bytes());
                put(6, &padded::<REASON>(reason));
            }
        }
        bytes
    }
}

/// Bytes of a message from an offset on; every caller's are inside of it.
fn part<const N: usize>(bytes: &[u8; LEN], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[at..at + N]);
    part
}

fn number(bytes: &[u8; LEN], at: usize) -> u16 {
    u16::from_ne_bytes(part(bytes, at))
}

/// A text, cut so that a zero follows it.
pub(super) fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let len = text.len().min(N - 1);
    bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
    bytes
}

/// The text before the first zero. Other programs write it, so control characters become blanks.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    String::from_utf8_lossy(&bytes[..end]).chars().map(printable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_are_written() {
        let hello = Hello {
            min_version: VERSION,
            max_version: VERSION + 1,
            max_region: 2,
            max_to_client: 3,
            max_to_server: 4,
            max_log2_entries: 14,
        };
        let init = Init { version: VERSION, id: 0x0102_0304, mode: 1, secret: padded("secret") };
        let ring = AddRing { to_server: true, index: 1, region: 2, offset: 0x0304_0506, log2_entries: 7 };
        for message in [
            Message::Ack,
            Message::Hello(hello),
            Message::Init(init),
            Message::AddRegion { index: 5, size: 1 << 40 },
            Message::AddRing(ring),
            Message::AddRing(AddRing { to_server: false, ..ring }),
            Message::Connect,
            Message::Connected,
            Message::Disconnect { reason: "it ends".to_owned() },
        ] {
            assert_eq!(Message::parse(&message.to_bytes()), Some(message));
        }
    }

    #[test]
    fn a_reason_is_cut_and_printable() {
        let long = "x".repeat(200);
        let read = Message::parse(&Message::Disconnect { reason: long }.to_bytes());
        assert_eq!(read, Some(Message::Disconnect { reason: "x".repeat(REASON - 1) }));
        let mut bytes = Message::Disconnect { reason: String::new() }.to_bytes();
        bytes[6..].fill(0xff);
        bytes[6] = 0x1b;
        let Some(Message::Disconnect { reason }) = Message::parse(&bytes) else { panic!("a reason") };
        assert!(reason.starts_with(" \u{fffd}") && reason.chars().count() == REASON, "{reason}");
    }

    #[test]
    fn unknown_types_are_none() {
        for kind in [0, 9, u16::MAX] {
            let mut bytes = [0; LEN];
            bytes[..2].copy_from_slice(&kind.to_ne_bytes());
            assert_eq!(Message::parse(&bytes), None);
        }
    }
}
