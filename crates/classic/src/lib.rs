//! Classic BPF: packet filters of tcpdump and `SO_ATTACH_FILTER`, and seccomp programs.
//!
//! [`Filter::new`] checks a program by the kernel's rules. [`Filter::to_xdp`] and [`Filter::to_socket_filter`] convert it to
//! ordinary programs, which verifiers accept and all engines run, and [`Filter::to_seccomp`] to a program over a record of a system
//! call.
//!
//! Semantics are the kernel's, or with [`Rules::Libpcap`] those of tcpdump for captures:
//!
//! | property | the kernel | libpcap's `bpf_filter` |
//! |---|---|---|
//! | shift by an index register of 32 or more | count masked to five bits | result is 0 |
//! | offset + index register over 2^32 | wraps | out of bounds |
//! | negative offsets | relative to headers, or ancillary words | out of bounds |
//! | length | available bytes | wire length |
//!
//! A filter of [`Purpose::UserSpace`] may have loops. The converted program iterates each at most twice per byte of the packet:
//! libpcap's loop over the headers of `protochain` cannot iterate more often without repeating a state, so a loop that exceeds the
//! limit never ends in libpcap, and ends without a match here.

#![deny(unsafe_code)]

mod ancillary;
mod check;
mod convert;
mod demand;
mod emit;
mod extent;
mod insn;
mod ir;
#[cfg(feature = "libpcap")]
#[allow(unsafe_code, reason = "functions of a C library")]
pub mod libpcap;
mod loops;
mod options;
mod order;
mod seccomp;
mod seccomp_load;
mod simplify;
mod site;
mod socket_load;
pub mod table;
pub mod text;
mod xdp_load;

pub use ancillary::{ANCILLARY_OFFSET, Ancillary, LINK_LAYER_OFFSET, NETWORK_OFFSET};
pub use check::{CheckError, Filter, Purpose, Rule};
pub use convert::{ConvertError, Converted};
pub use insn::{
    AluOp, Condition, LoadFrom, MAX_INSNS, MAX_USER_INSNS, MEMORY_WORDS, Operation, Register, Size,
    SockFilter, Source,
};
pub use options::{ConvertOptions, Returns, Rules};
pub use seccomp::{Action, SECCOMP_DATA_BYTES, SystemCall};
