//! Links: addresses and offsets of the runtime that code refers to, as data.

use crate::ir::expand::Table;
use paceline_spec::ProgramKind;
use paceline_spec::context::Rule;
use paceline_spec::helper::Helper;

pub use crate::ir::expand::ArrayLink;

/// All external references of the code.
#[derive(Clone, Debug)]
pub struct Links {
    /// The function of a helper for programs of a type; `None` for an unsupported one.
    pub helper: fn(&Helper, ProgramKind) -> Option<HelperLink>,
    /// Kernel functions, by the index in the program's calls; `None` for unsupported ones.
    pub kfuncs: Vec<Option<HelperLink>>,
    /// The program's maps, by the index in its instructions.
    pub maps: Vec<MapLink>,
    /// Address of the runtime's table of the program's maps, for helpers that are given unverified addresses, and its length.
    pub readable: (u64, i32),
    /// Offsets of the host's fields.
    pub host: HostOffsets,
    /// Offset in bytes of the tail entry's address in the structure that a program's token points to.
    pub tail_entry: i32,
    /// `extern "C" fn(&mut Host) -> u64` that ends a run on a host for whose CPU the program's per-CPU arrays have no values. Its
    /// result is the program's result.
    pub no_cpu: u64,
    /// `extern "C" fn(map, index) -> u64` that returns a program array's token at an index, or 0.
    pub find_program: u64,
    /// `extern "C" fn(&Frame) -> u64` for each [`Rule`] of contexts, in their order.
    pub rules: [u64; Rule::ALL.len()],
    /// `extern "C" fn(&mut Host, &Frame, uses: u64)` that initializes what a run uses of the packet's own area in the host
    /// ([`AreaUse::to_bits`](paceline_spec::context::AreaUse::to_bits)).
    pub enter: u64,
    /// `extern "C" fn(&mut Host)` that does the work that a run has deferred to its end.
    pub end: u64,
    /// Whether the runtime's functions are within 2 GiB of the code for any placement in the arena.
    pub near: bool,
}

/// The function of a helper or kernel function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelperLink {
    /// Its address: `extern "C" fn(r1, r2, r3, r4, r5, &mut Host) -> u64`.
    pub address: u64,
}

/// A map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapLink {
    /// Value of a register that refers to the map.
    pub handle: u64,
    /// Address of the only value, for global data.
    pub value: Option<u64>,
    /// Layout of the values, for arrays.
    pub array: Option<ArrayLink>,
    /// Number of CPUs for which a per-CPU array has values.
    pub cpus: Option<u32>,
    /// Layout of the tokens, for program arrays.
    pub programs: Option<ProgArrayLink>,
    /// Specialized look-up function of this map, which replaces `bpf_map_lookup_elem`, if one exists.
    pub look_up: Option<LookUpLink>,
}

/// A function that looks up values of one map: `extern "C" fn(context, key, member) -> u64`, which takes the key or its address and
/// returns the address of the value, or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookUpLink {
    /// Its address.
    pub address: u64,
    /// Its first argument.
    pub context: u64,
    /// Size of the key in bytes, up to 8, if the function takes the key by value: its bytes in memory order, zero-extended.
    pub key_bytes: Option<u8>,
    /// Offset of the host's 64-bit member that is its third argument, if it has one.
    pub member: Option<i32>,
}

impl MapLink {
    /// The map as one whose look-ups are expanded.
    pub(crate) fn table(&self) -> Option<Table> {
        match (self.array, self.look_up) {
            (Some(array), _) => Some(Table::Array(array)),
            (None, look_up) => look_up?.key_bytes.map(Table::Function),
        }
    }
}

/// Layout of a program array: the token of index `i` is the 64-bit word at `base + i * stride`, 0 for an empty entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgArrayLink {
    /// Address of the token of index 0.
    pub base: u64,
    /// Distance between tokens in bytes: 8 or 16.
    pub stride: u64,
    /// Number of indices.
    pub entries: u32,
}

/// Offsets in bytes into the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostOffsets {
    /// The packet's frame, which helpers use.
    pub frame: i32,
    /// The 32-bit tail call counter of this run.
    pub tail_calls: i32,
    /// The maximum number of tail calls of a run.
    pub max_tail_calls: i32,
    /// The packet's own area ([`SkBuff`](paceline_spec::context::SkBuff)).
    pub area: i32,
    /// What that area holds when packets arrive.
    pub arriving: i32,
    /// The 64-bit number of the host's CPU.
    pub cpu: i32,
    /// 64-bit fault flag: nonzero if the last run faulted, and has no result.
    pub fault: i32,
    /// Readable regions for helpers with unverified addresses, 64 bits each: the two of [`Links::readable`], the end address of the
    /// running function's stack, and its size in bytes.
    pub readable: i32,
    /// Address of a chain's 64-bit counters: [`COUNTS`](paceline_spec::graph::COUNTS) for each node, then one for packets that exceeded the
    /// allowed number of program runs.
    pub counts: i32,
}
