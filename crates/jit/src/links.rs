//! What code is linked with: addresses and offsets of the runtime, as data.

use paceline_spec::context::Rule;

/// Everything outside of the code that it refers to.
#[derive(Clone, Debug)]
pub struct Links {
    /// Helpers by number; `None` where there is none.
    pub helpers: Vec<Option<HelperLink>>,
    /// Kernel functions, by the index that the program's calls have; `None` where there is none.
    pub kfuncs: Vec<Option<HelperLink>>,
    /// The program's maps, by the index that its instructions have.
    pub maps: Vec<MapLink>,
    /// Address of what the runtime has of the program's maps, for helpers that are given addresses nobody checked, and how many
    /// there are.
    pub readable: (u64, i32),
    /// Where the fields of the host are.
    pub host: HostOffsets,
    /// Where a program's token has the address that tail calls enter at, in bytes from where the token points.
    pub tail_entry: i32,
    /// `extern "C" fn(&mut Host) -> u64` that ends a run on a host whose CPU the program's per-CPU arrays lack. What it
    /// returns is what the program returns.
    pub no_cpu: u64,
    /// `extern "C" fn(map, index) -> u64` that gives a program array's token at an index, or 0.
    pub find_program: u64,
    /// `extern "C" fn(&Frame) -> u64` for each [`Rule`] of contexts, in their order.
    pub rules: [u64; Rule::ALL.len()],
    /// `extern "C" fn(&mut Host, &Frame, &Layout)` that sets up the packet's own area in the host.
    pub enter: u64,
    /// `extern "C" fn(&mut Host)` that does what a run has left to its end.
    pub end: u64,
    /// Whether the runtime's functions are all within 2 GiB of the code, wherever in the arena that will be.
    pub near: bool,
    /// What checked code calls; needed for that alone.
    pub checked: Option<CheckedLinks>,
}

/// The function of a helper, or a kernel function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelperLink {
    /// Its address: `extern "C" fn(r1, r2, r3, r4, r5, &mut Host) -> u64`.
    pub address: u64,
}

/// A map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapLink {
    /// What a program has in a register that names the map.
    pub handle: u64,
    /// Address of the only value, for global data.
    pub value: Option<u64>,
    /// Where the values are, in arrays.
    pub array: Option<ArrayLink>,
    /// CPUs that a per-CPU array has values for.
    pub cpus: Option<u32>,
    /// Where the programs are, in program arrays.
    pub programs: Option<ProgArrayLink>,
    /// What finds values in this map, in place of `bpf_map_lookup_elem`, if there is such a function.
    pub look_up: Option<LookUpLink>,
}

/// A function that finds the values of one map: `extern "C" fn(context, key, cpu) -> u64`, which takes the key or its address
/// and gives that of the value, or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookUpLink {
    /// Its address.
    pub address: u64,
    /// What it takes first.
    pub context: u64,
    /// Bytes of the key, up to 8, where the function takes the key itself: these bytes in memory order, the others zero.
    pub key_bytes: Option<u8>,
    /// Whether it looks at the number of the CPU.
    pub takes_cpu: bool,
}

/// The values of an array: that of index `i` on CPU `c` is at `base + c * cpu_stride + i * stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayLink {
    /// Address of the value of index 0 on CPU 0.
    pub base: u64,
    /// Bytes from one index to the next.
    pub stride: u64,
    /// Bytes from one CPU to the next; 0 for arrays with the values of one CPU.
    pub cpu_stride: u64,
    /// Number of indices.
    pub entries: u32,
}

/// The programs of a program array: the token of index `i` is the 64-bit word at `base + i * stride`, 0 where there is
/// none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgArrayLink {
    /// Address of the token of index 0.
    pub base: u64,
    /// Bytes from one token to the next: 8 or 16.
    pub stride: u64,
    /// Number of indices.
    pub entries: u32,
}

/// Offsets in bytes into the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostOffsets {
    /// The packet's frame, which helpers go by.
    pub frame: i32,
    /// The 32-bit count of tail calls of this run.
    pub tail_calls: i32,
    /// Most tail calls of a run.
    pub max_tail_calls: i32,
    /// The packet's own area ([`SkBuff`](paceline_spec::context::SkBuff)).
    pub area: i32,
    /// The 64-bit number of the CPU that the host stands for.
    pub cpu: i32,
    /// 64 bits that are 0 unless the run just ended has no result.
    pub fault: i32,
    /// What such helpers may read, 64 bits each: [`Links::readable`], the address past the running function's stack, and its bytes.
    pub readable: i32,
    /// Address of the counts of a chain, 64 bits each: [`COUNTS`](crate::COUNTS) for each node, then the packets for
    /// which too many programs would have run.
    pub counts: i32,
}

/// What checked code calls, each `extern "C" fn(&mut Run, slot: u64, pointer: u64) -> u64`. They find `r0` to `r5` in the
/// run, and may change them there. A result of 0 ends the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedLinks {
    /// Checks the access of an instruction through a pointer, and gives the address to use. For a context field that is
    /// [`RunOffsets::value`], where the field's value lies as 64 bits; a store puts its value there before, and is done.
    pub access: u64,
    /// Does what an instruction does that is no plain computation: 1 to go on, 2 to leave the function, or for
    /// `may_goto` to jump. A helper that calls a function of the program leaves it in [`RunOffsets::callback`].
    pub execute: u64,
    /// A function returns: gives 1, and may change [`RunOffsets::callback`].
    pub leave: u64,
    /// The budget is spent: gives 0.
    pub exhausted: u64,
    /// Where the fields of the run are.
    pub run: RunOffsets,
}

/// Offsets in bytes into the state of a checked run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOffsets {
    /// The native stack pointer that the run returns with.
    pub stack_pointer: i32,
    /// Instructions that may still be executed, 64 bits.
    pub budget: i32,
    /// Value of a context field, 64 bits.
    pub value: i32,
    /// `r0` to `r5`, 64 bits each.
    pub registers: i32,
    /// `r10` of the running function.
    pub frame_pointer: i32,
    /// 64 bits: the slot of the function that a helper calls next; not any slot when it returns.
    pub callback: i32,
}
