//! What is known at a point of the program.

use std::collections::BTreeMap;

use paceline_isa::{Operand, Reg};

use crate::slice::value::{At, Value};

/// Bytes of a word.
const WORD: i32 = 8;

/// A word of the stack with something else than numbers that the slice has stored too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// The value that was spilled there.
    Spilled(Value),
    /// A bit for each byte that is unknown.
    Unknown(u8),
}

impl Word {
    fn unknown(self) -> u8 {
        match self {
            Self::Spilled(_) => u8::MAX,
            Self::Unknown(bytes) => bytes,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct State {
    registers: [Value; 11],
    /// Other words have only bytes that the slice has as well: zeros, or numbers that were stored.
    words: BTreeMap<At, Word>,
    /// Look-ups on the way here, at most.
    pub(crate) look_ups: usize,
}

/// The words that bytes lie in, each with a bit for each of its bytes among them.
fn words(at: At, bytes: i32) -> impl Iterator<Item = (At, u8)> {
    let first = at.offset.div_euclid(WORD);
    let last = at.offset.saturating_add(bytes - 1).div_euclid(WORD);
    (first..=last).map(move |word| {
        let start = word * WORD;
        let inside = |byte: &i32| (at.offset..at.offset + bytes).contains(&(start + byte));
        let bits = (0..WORD).filter(inside).fold(0, |bits, byte| bits | 1 << byte);
        (At { offset: start, ..at }, bits)
    })
}

impl State {
    /// The state in which a program begins.
    pub(crate) fn entry() -> Self {
        let mut state = Self { registers: [Value::Unknown; 11], words: BTreeMap::new(), look_ups: 0 };
        state.set(Reg::R1, Value::Context(0));
        state.set(Reg::R10, Value::Stack(At { frame: 0, offset: 0 }));
        state
    }

    pub(crate) fn get(&self, reg: Reg) -> Value {
        self.registers[usize::from(reg.number())]
    }

    pub(crate) fn set(&mut self, reg: Reg, value: Value) {
        self.registers[usize::from(reg.number())] = value;
    }

    pub(crate) fn operand(&self, operand: Operand) -> Value {
        operand.reg().map_or(Value::Number, |reg| self.get(reg))
    }

    /// The value of bytes on the stack. A function that is inlined may have been given an address of any alignment, which the verifier
    /// admits for memory of which it knows nothing more, and not for the stack that it is in the slice.
    pub(crate) fn load(&self, at: At, bytes: i32) -> Value {
        if at.offset.rem_euclid(bytes) != 0 {
            return Value::Unknown;
        }
        if bytes == WORD
            && let Some(Word::Spilled(value)) = self.words.get(&at)
        {
            return *value;
        }
        if self.has(at, bytes) { Value::Number } else { Value::Unknown }
    }

    /// Whether the slice has all of so many bytes, as numbers.
    pub(crate) fn has(&self, at: At, bytes: i32) -> bool {
        words(at, bytes)
            .all(|(word, bits)| self.words.get(&word).is_none_or(|word| word.unknown() & bits == 0))
    }

    /// Notes a store; whether the slice stores as well.
    pub(crate) fn store(&mut self, at: At, bytes: i32, value: Value) -> bool {
        let is_aligned = at.offset.rem_euclid(bytes) == 0;
        if bytes == WORD && is_aligned && !matches!(value, Value::Number | Value::Unknown) {
            self.words.insert(at, Word::Spilled(value));
            return value.is_held();
        }
        let is_number = value == Value::Number && is_aligned;
        for (word, bits) in words(at, bytes) {
            let before = self.words.get(&word).map_or(0, |word| word.unknown());
            match if is_number { before & !bits } else { before | bits } {
                0 => self.words.remove(&word),
                unknown => self.words.insert(word, Word::Unknown(unknown)),
            };
        }
        is_number
    }

    /// The state where this path and another one meet.
    pub(crate) fn join(&mut self, other: &Self) {
        for (value, other) in self.registers.iter_mut().zip(other.registers) {
            *value = value.join(other);
        }
        for (&at, &theirs) in &other.words {
            let ours = self.words.get(&at).copied();
            if ours != Some(theirs) {
                let unknown = ours.map_or(0, Word::unknown) | theirs.unknown();
                self.words.insert(at, Word::Unknown(unknown));
            }
        }
        for (at, ours) in &mut self.words {
            if !other.words.contains_key(at) {
                *ours = Word::Unknown(ours.unknown());
            }
        }
        self.look_ups = self.look_ups.max(other.look_ups);
    }
}
