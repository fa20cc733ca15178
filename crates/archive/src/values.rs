//! The numbers in a map's value.

use std::ops::Range;

use paceline::MapSpec;
use paceline::btf::{Btf, Int, IntEncoding, Type, TypeId};

/// The places of the numbers in a value of the map, by its type, or without one as words of 8 bytes, or of 4 where the size is no multiple
/// of 8. `None` if a member is no integer, or a bitfield.
pub(crate) fn numbers(spec: &MapSpec, btf: Option<&Btf>) -> Option<Vec<Range<usize>>> {
    let mut found = Vec::new();
    match btf {
        Some(btf) if spec.value_type != 0 => {
            let size = spec.value_size as usize;
            let mut numbers = Numbers { btf, size, found: Vec::new(), types: 0, depth: 0 };
            numbers.add(spec.value_type, 0)?;
            found = numbers.found;
        }
        _ => {
            let size = spec.value_size as usize;
            let word = if size.is_multiple_of(8) { 8 } else { 4 };
            if !size.is_multiple_of(word) {
                return None;
            }
            found.extend((0..size).step_by(word).map(|at| at..at + word));
        }
    }
    Some(found)
}

/// Types that are looked at, at most: arrays may have any length.
const MOST_TYPES: usize = 1 << 16;
/// Types in one another, at most: they may be cyclic.
const DEEPEST: usize = 32;

/// The numbers in a value of a type.
struct Numbers<'a> {
    btf: &'a Btf,
    /// Size of the value in bytes.
    size: usize,
    found: Vec<Range<usize>>,
    types: usize,
    depth: usize,
}

impl Numbers<'_> {
    /// Adds the numbers of a type at an offset.
    fn add(&mut self, ty: TypeId, at: usize) -> Option<()> {
        (self.types, self.depth) = (self.types + 1, self.depth + 1);
        if self.types > MOST_TYPES || self.depth > DEEPEST || at > self.size {
            return None;
        }
        self.add_resolved(ty, at)?;
        self.depth -= 1;
        Some(())
    }

    fn add_resolved(&mut self, ty: TypeId, at: usize) -> Option<()> {
        let btf = self.btf;
        match btf.resolve(ty).ok()?.1 {
            Type::Int(int) if is_number(int) => {
                let place = at..at + int.size as usize;
                self.found.push(Some(place).filter(|place| place.end <= self.size)?);
            }
            Type::Array { element, count, .. } => {
                let size = usize::try_from(btf.size_of(*element).ok()?).ok().filter(|size| *size > 0)?;
                for index in 0..*count as usize {
                    self.add(*element, at + index * size)?;
                }
            }
            Type::Struct(composite) => {
                for member in &composite.members {
                    if member.bit_size != 0 || !member.bit_offset.is_multiple_of(8) {
                        return None;
                    }
                    self.add(member.ty, at + member.bit_offset as usize / 8)?;
                }
            }
            Type::DataSection(section) => {
                for var in &section.vars {
                    self.add(var.ty, at + var.offset as usize)?;
                }
            }
            Type::Var { ty, .. } => self.add(*ty, at)?,
            _ => return None,
        }
        Some(())
    }
}

/// Whether an integer is a number of whole bytes, and no truth value.
fn is_number(int: &Int) -> bool {
    u32::from(int.bits) == int.size * 8 && int.encoding != IntEncoding::Bool
}

/// Adds the differences of the numbers in `value` and `before` to those in `sum`, modulo their size.
pub(crate) fn add_difference(places: &[Range<usize>], sum: &mut [u8], value: &[u8], before: &[u8]) {
    for place in places {
        let number = |bytes: &[u8]| number(bytes.get(place.clone()).unwrap_or_default());
        let total = number(sum).wrapping_add(number(value)).wrapping_sub(number(before));
        set_number(sum.get_mut(place.clone()).unwrap_or_default(), total);
    }
}

/// The number in bytes of the machine's order; the low 128 bits of a longer one.
fn number(bytes: &[u8]) -> u128 {
    let digit = |number: u128, byte: &u8| number << 8 | u128::from(*byte);
    if cfg!(target_endian = "little") {
        bytes.iter().rev().fold(0, digit)
    } else {
        bytes.iter().fold(0, digit)
    }
}

fn set_number(bytes: &mut [u8], mut number: u128) {
    let mut set = |byte: &mut u8| {
        *byte = number as u8;
        number >>= 8;
    };
    if cfg!(target_endian = "little") {
        bytes.iter_mut().for_each(set)
    } else {
        bytes.iter_mut().rev().for_each(&mut set)
    }
}
