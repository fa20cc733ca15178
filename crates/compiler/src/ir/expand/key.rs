//! Keys of look-ups on the stack, as numbers: loaded in the parts that were stored, so that each load is one of a stored value, which
//! passes replace by the value.

use paceline_isa::Size;

use crate::ir::entity::{Block, Value};
use crate::ir::function::Function;
use crate::ir::op::{BinaryOp, Op};
use crate::ir::types::{Access, Region, Span, Type};

/// Places in the stack that a function stores to, by their first and last offsets.
pub(super) struct Stores(Vec<(i32, i32)>);

impl Stores {
    /// The stores of a function to constant offsets.
    pub(super) fn of(function: &Function) -> Self {
        let insts = function.layout.iter().flat_map(|block| &function.block(*block).insts);
        let place =
            |op: &Op| match *op {
                Op::Store {
                    size, access: Access { region: Region::Stack, span: Some(span), .. }, ..
                } if span.min == span.max => Some((span.min, span.min + size.bytes() as i32)),
                _ => None,
            };
        let mut places: Vec<_> = insts.filter_map(|inst| place(&function.inst(*inst).op)).collect();
        places.sort_unstable();
        places.dedup();
        Self(places)
    }

    /// The parts of a key, by offsets: as they are stored if stores do not overlap each other, or as few as there are otherwise.
    fn parts(&self, start: i32, end: i32) -> Vec<(i32, Size)> {
        let within = || self.0.iter().filter(|(first, last)| *first < end && *last > start);
        let mut parts = Vec::new();
        let mut at = start;
        for &(first, last) in within() {
            if first < at || last > end {
                return fill(start, end);
            }
            parts.extend(fill(at, first));
            parts.extend(Size::from_bytes((last - first).unsigned_abs().into()).map(|size| (first, size)));
            at = last;
        }
        parts.extend(fill(at, end));
        parts
    }
}

/// As few parts as there are for the bytes between two offsets.
fn fill(mut at: i32, end: i32) -> Vec<(i32, Size)> {
    let mut parts = Vec::new();
    for size in [Size::Dw, Size::W, Size::H, Size::B] {
        while end - at >= size.bytes() as i32 {
            parts.push((at, size));
            at += size.bytes() as i32;
        }
    }
    parts
}

/// Appends the load of a key of some bytes at an address, which is at an offset in the function's stack. `None` if an operation has no
/// result.
pub(super) fn load(
    function: &mut Function,
    stores: &Stores,
    block: Block,
    (base, offset, bytes): (Value, i32, u8),
    slot: Option<u32>,
) -> Option<Value> {
    let mut key = None;
    for (at, size) in stores.parts(offset, offset + i32::from(bytes)) {
        let span = Some(Span { min: at, max: at });
        let access = Access { region: Region::Stack, span, packet_bytes: None };
        let load = Op::Load { size, signed: false, access, base, offset: at - offset };
        let part = function.append(block, load, slot)?;
        key = Some(match key {
            None => part,
            Some(low) => {
                let distance = Op::constant(Type::I64, 8 * u64::from((at - offset).unsigned_abs()));
                let distance = function.append(block, distance, slot)?;
                let binary = |op, args| Op::Binary { op, ty: Type::I64, args };
                let high = function.append(block, binary(BinaryOp::Shl, [part, distance]), slot)?;
                function.append(block, binary(BinaryOp::Or, [low, high]), slot)?
            }
        });
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_that_are_stored() {
        let stores = Stores(vec![(-16, -8), (-8, -4), (-4, -2), (-2, -1)]);
        let parts = |start: i32, end: i32| stores.parts(start, end);
        assert_eq!(parts(-8, 0), [(-8, Size::W), (-4, Size::H), (-2, Size::B), (-1, Size::B)]);
        assert_eq!(parts(-16, -8), [(-16, Size::Dw)]);
        // A store that is not within the key, and one that overlaps another.
        assert_eq!(parts(-12, -4), [(-12, Size::Dw)]);
        assert_eq!(Stores(vec![(-8, 0), (-8, -4)]).parts(-8, 0), [(-8, Size::Dw)]);
        assert_eq!(Stores(Vec::new()).parts(-7, 0), [(-7, Size::W), (-3, Size::H), (-1, Size::B)]);
    }
}
