//! Fields of the packet and of other memory: numbers that are put together from bytes or halves become one load, with a byte swap for
//! network order.

use paceline_isa::{Size, eval};

use crate::arena::Side;
use crate::cfg::Cfg;
use crate::entity::{Block, Inst, Value};
use crate::function::{Def, Function};
use crate::op::{BinaryOp, Op};
use crate::types::{Access, Span, Type};

/// Where a byte of a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Zero,
    /// A byte of memory, which a load of the block reads.
    Memory(Place),
}

/// A byte of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    base: Value,
    offset: i32,
    load: Inst,
}

/// The bytes of a number, the least significant one first.
type Bytes = [Source; 8];

/// How deep operations are looked at: eight bytes need seven sums, a shift and conversions.
const DEPTH: u32 = 12;

/// A block whose operations are looked at.
struct Here<'a> {
    function: &'a Function,
    block: Block,
    /// The blocks of instructions, as far as they were seen.
    places: &'a Side<Inst, Option<Block>>,
}

pub(super) fn run(function: &mut Function) {
    let cfg = Cfg::of(function);
    let mut places: Side<Inst, Option<Block>> = Side::default();
    for &block in cfg.order() {
        let insts = function.block(block).insts.clone();
        insts.iter().for_each(|inst| places[*inst] = Some(block));
        // Later operations first: the widest number is the last of its sums.
        for inst in insts.into_iter().rev() {
            if let Some(field) = Field::of(&Here { function, block, places: &places }, inst) {
                let made = field.replace(function, block, inst);
                made.into_iter().for_each(|inst| places[inst] = Some(block));
            }
        }
    }
    function.apply_aliases();
}

/// A number that one load gives.
struct Field {
    size: Size,
    swapped: bool,
    base: Value,
    offset: i32,
    access: Access,
    /// The last of the loads that read its bytes: the new one comes before it.
    last: Inst,
}

impl Field {
    /// The field that an operation puts together from several loads of its block.
    fn of(here: &Here<'_>, inst: Inst) -> Option<Self> {
        let Here { function, block, .. } = *here;
        let op = &function.inst(inst).op;
        let Op::Binary { op: BinaryOp::Or | BinaryOp::Add | BinaryOp::Xor, ty, .. } = *op else {
            return None;
        };
        let bytes = here.bytes_of_op(op, DEPTH)?;
        let count = bytes.iter().position(|byte| *byte == Source::Zero).unwrap_or(bytes.len());
        let size = Size::from_bytes(count as u64).filter(|size| *size > Size::B)?;
        if bytes[count..].iter().any(|byte| *byte != Source::Zero) || count > ty.bits() as usize / 8 {
            return None;
        }
        let mut places = [None; 8];
        for (place, byte) in places.iter_mut().zip(bytes) {
            *place = match byte {
                Source::Memory(place) => Some(place),
                Source::Zero => None,
            };
        }
        let (first, last) = (places[0]?, places[count - 1]?);
        let (offset, step) = if first.offset < last.offset { (first.offset, 1) } else { (last.offset, -1) };
        let expected = |at: usize| first.offset.checked_add(step * at as i32);
        let in_order = (0..count).all(|at| {
            places[at].is_some_and(|place| place.base == first.base && Some(place.offset) == expected(at))
        });
        let mut loads: Vec<Inst> = places.iter().flatten().map(|place| place.load).collect();
        loads.sort_unstable();
        loads.dedup();
        if !in_order || loads.len() < 2 {
            return None;
        }
        let last = only_reads_between(function, block, &loads)?;
        let access = joined(function, &loads, offset)?;
        let swapped = (step == 1) != cfg!(target_endian = "little");
        Some(Self { size, swapped, base: first.base, offset, access, last })
    }

    /// Puts the load before the last of those that it replaces, and its value in the place of the operation's.
    /// Returns the new instructions.
    fn replace(self, function: &mut Function, block: Block, inst: Inst) -> Vec<Inst> {
        let data = *function.inst(inst);
        let (Some(result), Some(ty)) = (data.result, data.op.result()) else { return Vec::new() };
        let slot = function.inst(self.last).slot;
        let mut made = Vec::new();
        let mut emit = |function: &mut Function, op| {
            let inst = function.create(op, slot);
            made.push(inst);
            function.inst(inst).result.unwrap_or(result)
        };
        let (size, access, base, offset) = (self.size, self.access, self.base, self.offset);
        let mut value = emit(function, Op::Load { size, signed: false, access, base, offset });
        if ty == Type::I32 {
            value = emit(function, Op::Truncate { arg: value });
        }
        if self.swapped {
            value = emit(function, Op::Swap { size, ty, arg: value });
        }
        function.replace(result, value);
        let insts = &mut function.block_mut(block).insts;
        insts.retain(|other| *other != inst);
        let at = insts.iter().position(|other| *other == self.last).unwrap_or(0);
        insts.splice(at..at, made.iter().copied());
        made
    }
}

/// The last of some loads of a block, if no write to what they read lies between the first and that.
fn only_reads_between(function: &Function, block: Block, loads: &[Inst]) -> Option<Inst> {
    let insts = &function.block(block).insts;
    let positions = || loads.iter().map(|load| insts.iter().position(|inst| inst == load));
    let first = positions().min().flatten()?;
    let last = positions().max().flatten()?;
    let read = loads.iter().map(|load| function.inst(*load).op.effects().reads);
    let read = read.reduce(crate::effects::Classes::union)?;
    let between = insts.get(first..last)?;
    let writes = between.iter().any(|inst| function.inst(*inst).op.effects().writes.intersects(read));
    (!writes).then(|| insts.get(last).copied()).flatten()
}

/// What is known of an access that covers those of some loads, at an offset from their base.
fn joined(function: &Function, loads: &[Inst], offset: i32) -> Option<Access> {
    let each = |load: &Inst| {
        let (_, at, _, access) = function.inst(*load).op.access()?;
        let span = access.span.and_then(|span| {
            let move_by = |bound: i32| bound.checked_sub(at.checked_sub(offset)?);
            Some(Span { min: move_by(span.min)?, max: move_by(span.max)? })
        });
        Some(Access { span, ..access })
    };
    let all: Option<Vec<Access>> = loads.iter().map(each).collect();
    all?.into_iter().reduce(|a, b| Access {
        region: a.region.join(b.region),
        // All say where the same address lies, so either is right.
        span: a.span.or(b.span),
        packet_bytes: a.packet_bytes.zip(b.packet_bytes).map(|(a, b)| a.max(b)),
    })
}

impl Here<'_> {
    /// The bytes of a value; `None` if one comes from elsewhere than from memory.
    fn bytes(&self, value: Value, depth: u32) -> Option<Bytes> {
        let function = self.function;
        let Def::Result(inst) = function.value(function.resolve(value)).def else { return None };
        match function.inst(inst).op {
            Op::Load { size, signed: false, base, offset, .. } => {
                if self.places[inst] != Some(self.block) {
                    return None;
                }
                let count = size.bytes();
                let mut bytes = [Source::Zero; 8];
                for (at, byte) in bytes.iter_mut().take(count).enumerate() {
                    let at = if cfg!(target_endian = "little") { at } else { count - 1 - at };
                    *byte = Source::Memory(Place {
                        base: function.resolve(base),
                        offset: offset.checked_add(at as i32)?,
                        load: inst,
                    });
                }
                Some(bytes)
            }
            ref op => self.bytes_of_op(op, depth.checked_sub(1)?),
        }
    }

    /// The bytes of an operation's result.
    fn bytes_of_op(&self, op: &Op, depth: u32) -> Option<Bytes> {
        let of = |value: Value| self.bytes(value, depth);
        let constant = |value: Value| self.function.as_const(self.function.resolve(value));
        match *op {
            Op::Binary { op: BinaryOp::Or | BinaryOp::Add | BinaryOp::Xor, args: [a, b], .. } => {
                let (a, b) = (of(a)?, of(b)?);
                let mut joined = a;
                for (byte, other) in joined.iter_mut().zip(b) {
                    *byte = match (*byte, other) {
                        (Source::Zero, other) => other,
                        (byte, Source::Zero) => byte,
                        _ => return None,
                    };
                }
                Some(joined)
            }
            Op::Binary { op: BinaryOp::Shl, ty, args: [a, by] } => {
                let count = whole_bytes(constant(by)?, ty)?;
                let mut bytes = of(a)?;
                bytes.rotate_right(count);
                bytes[..count].fill(Source::Zero);
                bytes[ty.bits() as usize / 8..].fill(Source::Zero);
                Some(bytes)
            }
            Op::Binary { op: BinaryOp::Lshr, ty, args: [a, by] } => {
                let count = whole_bytes(constant(by)?, ty)?;
                let mut bytes = of(a)?;
                bytes[..count].fill(Source::Zero);
                bytes.rotate_left(count);
                Some(bytes)
            }
            Op::Binary { op: BinaryOp::And, args: [a, mask], .. } => {
                let mask = constant(mask)?.to_le_bytes();
                let mut bytes = of(a)?;
                for (byte, mask) in bytes.iter_mut().zip(mask) {
                    match mask {
                        0 => *byte = Source::Zero,
                        0xff => {}
                        _ if *byte == Source::Zero => {}
                        _ => return None,
                    }
                }
                Some(bytes)
            }
            Op::ZeroExtend { arg } => of(arg),
            Op::Truncate { arg } => {
                let mut bytes = of(arg)?;
                bytes[4..].fill(Source::Zero);
                Some(bytes)
            }
            Op::Swap { size, arg, .. } => {
                let mut bytes = of(arg)?;
                bytes[..size.bytes()].reverse();
                bytes[size.bytes()..].fill(Source::Zero);
                Some(bytes)
            }
            _ => None,
        }
    }
}

/// The number of bytes that a shift moves, if these are whole ones.
fn whole_bytes(count: u64, ty: Type) -> Option<usize> {
    let count = eval::zero_extend(Size::B, count & u64::from(ty.bits() - 1));
    count.is_multiple_of(8).then_some(count as usize / 8)
}
