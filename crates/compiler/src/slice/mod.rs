//! Slices of programs: the part of a program that computes the keys of its first look-ups.
//!
//! A slice is an ordinary program of one function. It contains those instructions of the program that the keys depend on, and a
//! call of `bpf_map_lookup_elem` for each look-up whose result it ignores. It stores to its own stack only ([`is_quiet`] checks that),
//! so that a run of it with look-ups that have no effect has no effect at all: engines run it over a burst before the program to
//! bring the elements into the cache. A wrong key costs time, and never a result.
//!
//! # How it works
//! `trace` follows the program forward, subprograms inlined, with what is known of each register and stack byte: a value that the slice
//! computes too, or an unknown one, such as the result of a look-up and all that depends on it. Instructions on unknown values are
//! left out. A branch on one follows the side on which more look-ups come (`distance`); if both have as many, the side on which the
//! result of a look-up is found, and otherwise the next instruction. The slice ends at jumps back, tail calls, kernel functions, helpers
//! that move the packet, call functions of the program or write to the stack, at the fifth look-up of a path, and after 1,024 points.
//! `trim` goes backward over the result and removes what no key needs. `layout` makes it a program.
//!
//! Stores to the packet and to values of maps, and calls of all other helpers are left out: what the program reads back from there is stale
//! in the slice, which makes a wrong key at worst.

mod distance;
mod functions;
mod layout;
mod look_ups;
mod quiet;
mod state;
mod step;
mod trace;
mod trim;
mod value;

use paceline_isa::Code;
use paceline_spec::ProgramKind;

pub use look_ups::LookUps;
pub use quiet::is_quiet;

/// The slice of a program of a type, whose maps are taken as said, by index; `None` if it has no look-up whose key can be computed ahead.
#[must_use]
pub fn slice(code: &Code, kind: ProgramKind, maps: &[LookUps]) -> Option<Code> {
    if !maps.iter().any(|map| matches!(map, LookUps::Ahead { .. })) {
        return None;
    }
    let mut steps = trace::trace(code, kind, maps);
    trim::trim(&mut steps, maps).then(|| layout::layout(&steps)).flatten()
}
