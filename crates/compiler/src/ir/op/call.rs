//! Addresses, and what calls consist of.

use crate::ir::arena::Key;
use crate::ir::entity::{FuncId, Value};

/// An address that is known when the program is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A map, by its index in the program's list.
    Map(u32),
    /// A place in the only value of a map.
    MapValue {
        /// Index of the map.
        map: u32,
        /// Offset in bytes.
        offset: u32,
    },
    /// A function of the program, for helpers that call it.
    Function(FuncId),
}

/// What a call calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callee {
    /// A helper by its number.
    Helper(i32),
    /// A kernel function.
    Kfunc {
        /// Its index in the program's list.
        index: i32,
        /// Index of the descriptor of its BTF; 0 for the kernel's own.
        module: i16,
    },
    /// A function of the program.
    Function(FuncId),
    /// A look-up in a map of short keys, by the key's bytes as a number in memory order. Only native code has it, in place of a helper's
    /// call.
    LookUp {
        /// Index of the map.
        map: u32,
    },
    /// `bpf_tail_call`: runs another program in place of the running function and returns its result from that. There is no such
    /// program, or too many ran, if the call returns. It has no result.
    TailCall,
    /// `bpf_tail_call` in a function that goes on after the other program has ended: the low half of that program's result, or
    /// [`NO_PROGRAM`](Self::NO_PROGRAM).
    Program,
}

impl Callee {
    /// Result of [`Program`](Self::Program) if there is no such program, or too many ran.
    pub const NO_PROGRAM: u64 = 1 << 32;
}

/// Arguments of a call: `r1` and the following ones, or those of a function's parameters.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Args {
    values: [Value; Self::MAX],
    len: u8,
}

impl Args {
    /// The greatest number of arguments.
    pub const MAX: usize = 5;

    /// These arguments; `None` if they are too many.
    #[must_use]
    pub fn new(given: &[Value]) -> Option<Self> {
        let mut values = [given.first().map_or(Value::new(0), |first| *first); Self::MAX];
        values.get_mut(..given.len())?.copy_from_slice(given);
        // The rest is equal for equal arguments, so that calls can be compared.
        Some(Self { values, len: given.len() as u8 })
    }

    /// The arguments.
    #[must_use]
    pub fn as_slice(&self) -> &[Value] {
        &self.values[..usize::from(self.len)]
    }

    pub(super) fn map(self, change: &mut impl FnMut(Value) -> Value) -> Self {
        let mut values = self.values;
        values[..usize::from(self.len)].iter_mut().for_each(|value| *value = change(*value));
        let first = values[0];
        values[usize::from(self.len)..].fill(first);
        Self { values, ..self }
    }
}

impl std::fmt::Debug for Args {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}
