//! Packet filters: tcpdump's expressions and classic BPF programs, as programs that run on every engine.
//!
//! ```
//! use paceline::filter::{self, ConvertOptions, Filter, PacketFilter, Purpose, text};
//! use paceline::{Burst, Engine, FrameMeta, Host};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // From an expression, where libpcap is installed:
//! //   Libpcap::open()?.compile("ip", Target::default())?
//! let insns = text::parse("ldh [12]\n jne #0x800, drop\n ret #-1\n drop: ret #0")?;
//! let ip = Filter::new(insns, Purpose::Socket)?; // checked as the kernel does
//! let ip = PacketFilter::new("ip", ip, &ConvertOptions::default(), Engine::best())?;
//!
//! let mut burst = Burst::default();
//! burst.push(&[0; 60], FrameMeta::default())?;
//! assert_eq!(ip.matches(&mut burst, &mut Host::default())?, 0); // bit 0: the first packet
//! # Ok(())
//! # }
//! ```
//!
//! A filter that is to be a link of a [`Chain`](crate::Chain) comes from [`program`] with
//! [`Returns::PASS_OR_DROP`]; [`select()`] sorts the packets of a capture by several filters at once.

#[cfg(feature = "analysis")]
mod compare;
#[cfg(feature = "libpcap")]
mod compile;
#[cfg(feature = "libpcap")]
mod locate;
mod packet;
mod seccomp;
#[cfg(feature = "captures")]
mod select;

#[cfg(feature = "analysis")]
pub use compare::{CompareFiltersError, Comparison, compare};
#[cfg(feature = "libpcap")]
pub use compile::compile_checked;
#[cfg(feature = "libpcap")]
pub use locate::locate;
#[cfg(feature = "libpcap")]
pub use paceline_classic::libpcap::{CompileError, Libpcap, MAX_SNAPLEN, Missing, Packets, Target};
pub use paceline_classic::{
    Action, CheckError, ConvertError, ConvertOptions, Converted, Filter, Purpose, Returns, Rule, Rules,
    SECCOMP_DATA_BYTES, SockFilter, SystemCall, text,
};
#[cfg(feature = "libpcap")]
pub use packet::ExpressionError;
pub use packet::{FilterError, PacketFilter, program};
pub use seccomp::Seccomp;
#[cfg(feature = "captures")]
pub use select::{Matched, Select, SelectError, Selection, Teller, select};

#[cfg(all(feature = "captures", feature = "libpcap"))]
use paceline_capture::{ByteOrder, Link};

/// The target of expressions that select packets of a capture, as tcpdump compiles them for a file.
#[cfg(all(feature = "captures", feature = "libpcap"))]
#[must_use]
pub fn target_of(link: Link) -> Target {
    let Link { link_type, snaplen, order } = link;
    let packets = Packets::Capture { big_endian: order == ByteOrder::Big };
    Target { link_type: link_type.0, snaplen, packets, ..Target::default() }
}
