//! Programs and maps in the running kernel: through the raw `bpf(2)` call, run by `BPF_PROG_TEST_RUN`.
//!
//! Without libbpf: the kernel gets exactly what our loader produced, so that a difference is between engines and not between
//! loaders. Everything belongs to descriptors and goes with them.
#![deny(unsafe_code)]

mod cpu;
mod error;
mod map;
mod mprog;
mod object;
mod probe;
mod program;
mod sys;
mod types;

pub use cpu::{Pinned, pin, possible_cpus};
pub use error::KernelError;
pub use map::{Contents, ElementTypes, Map, has_byte_contents};
pub use mprog::{Beside, Classifier, Ingress};
pub use object::{KernelObject, LoadError, LoadOptions, VerifierStats};
pub use probe::{Unavailable, probe};
pub use program::{
    ETHERNET_LEN, Lengths, MAX_PACKET, MIN_PACKET, Packet, Program, Request, SK_BUFF_MEMBERS, SkBuffBytes,
    TestRun, check_packet, load_btf, members_of,
};
pub use types::FIND_FUNCTION;
