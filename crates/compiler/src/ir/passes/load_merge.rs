//! Fields of the packet and of other memory: numbers that are put together from bytes or halves become one load, with a byte swap for
//! network order. Bytes of memory that others may write at any time stay as they are: they are loaded once, and in their order.

use std::cell::OnceCell;

use paceline_isa::{Size, eval};
use smallvec::SmallVec;

use crate::ir::analyses::Analyses;
use crate::ir::arena::Side;
use crate::ir::effects::Classes;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::function::{Def, Function};
use crate::ir::op::{BinaryOp, Op};
use crate::ir::types::{Access, Span, Type};

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
    /// The positions of instructions in the last of the blocks that have them.
    places: &'a Side<Inst, u32>,
    /// The instructions of the block.
    insts: &'a [Inst],
    /// For each position, and the end, how many writes of each class of memory come before it; once it is asked for.
    writes: &'a OnceCell<Vec<[u32; Classes::COUNT]>>,
}

pub(super) fn run(function: &mut Function, analyses: &mut Analyses) {
    let cfg = analyses.cfg(function);
    let mut places: Side<Inst, u32> = Side::default();
    for &block in cfg.order() {
        // What is put together is the result of one of a few operations.
        if !function.block(block).insts.iter().any(|inst| is_sum(function, *inst)) {
            continue;
        }
        places.cover(function.insts.len());
        let insts = function.block(block).insts.clone();
        (0..).zip(&insts).for_each(|(at, inst)| places[*inst] = at);
        let writes = OnceCell::new();
        let mut changes = Changes::default();
        // Later operations first: the widest number is the last of its sums.
        for (at, &inst) in insts.iter().enumerate().rev() {
            if !is_sum(function, inst) {
                continue;
            }
            let here = Here { function, places: &places, insts: &insts, writes: &writes };
            if let Some(field) = Field::of(&here, inst) {
                let last = field.last;
                let made = field.replace(function, insts[last], inst);
                changes.before.extend(made.into_iter().map(|made| (last, made)));
                changes.gone.push(at);
            }
        }
        changes.apply(function, block);
    }
    if function.has_replaced {
        analyses.values_changed();
        function.apply_aliases();
    }
}

/// Whether an instruction may put bytes together: a number is no byte of memory.
fn is_sum(function: &Function, inst: Inst) -> bool {
    let is_number = |value: &Value| function.as_const(function.resolve(*value)).is_some();
    match &function.inst(inst).op {
        Op::Binary { op: BinaryOp::Or | BinaryOp::Add | BinaryOp::Xor, args: [a, b], .. } => {
            !is_number(b) && !is_number(a)
        }
        _ => false,
    }
}

/// Changes of a block.
#[derive(Default)]
struct Changes {
    /// Instructions that are added, each with the position that it comes before. Those for one position are in their order.
    before: Vec<(usize, Inst)>,
    /// Positions of instructions that go, the last first.
    gone: Vec<usize>,
}

impl Changes {
    fn apply(mut self, function: &mut Function, block: Block) {
        if self.gone.is_empty() {
            return;
        }
        // The sort keeps the order of those for one position.
        self.before.sort_by_key(|(position, _)| *position);
        let mut before = self.before.into_iter().peekable();
        let insts = std::mem::take(&mut function.block_mut(block).insts);
        let mut changed = Vec::with_capacity(insts.len() + before.len());
        for (at, inst) in insts.into_iter().enumerate() {
            while let Some((_, made)) = before.next_if(|(position, _)| *position == at) {
                changed.push(made);
            }
            if self.gone.pop_if(|gone| *gone == at).is_none() {
                changed.push(inst);
            }
        }
        function.block_mut(block).insts = changed;
    }
}

/// For each position among instructions, and the end, how many of them before it write each class of memory.
fn writes(function: &Function, insts: &[Inst]) -> Vec<[u32; Classes::COUNT]> {
    let mut counts = [0; Classes::COUNT];
    let mut all = Vec::with_capacity(insts.len() + 1);
    all.push(counts);
    for inst in insts {
        function.inst(*inst).op.effects().writes.positions().for_each(|class| counts[class] += 1);
        all.push(counts);
    }
    all
}

/// A number that one load gives.
struct Field {
    size: Size,
    swapped: bool,
    base: Value,
    offset: i32,
    access: Access,
    /// Position of the last of the loads that read its bytes: the new one comes before it.
    last: usize,
}

impl Field {
    /// The field that an operation puts together from several loads of its block.
    fn of(here: &Here<'_>, inst: Inst) -> Option<Self> {
        let function = here.function;
        let op = &function.inst(inst).op;
        let Op::Binary { op: BinaryOp::Or | BinaryOp::Add | BinaryOp::Xor, ty, .. } = *op else {
            return None;
        };
        let bytes = here.bytes_of_op(op, DEPTH)?;
        // default: without a zero byte all belong to the number.
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
        let mut loads: SmallVec<[Inst; 8]> = places.iter().flatten().map(|place| place.load).collect();
        loads.sort_unstable();
        loads.dedup();
        if !in_order || loads.len() < 2 {
            return None;
        }
        let last = here.only_reads_between(&loads)?;
        let access = joined(function, &loads, offset)?;
        let swapped = (step == 1) != cfg!(target_endian = "little");
        Some(Self { size, swapped, base: first.base, offset, access, last })
    }

    /// Makes the load, which goes before the last of those that it replaces, and replaces an operation's value by its.
    /// Returns the new instructions.
    fn replace(self, function: &mut Function, last: Inst, inst: Inst) -> SmallVec<[Inst; 3]> {
        let result = function.result(inst);
        let ty = function.value(result).ty;
        let slot = function.inst(last).slot;
        let mut made = SmallVec::new();
        let mut emit = |function: &mut Function, op| {
            let inst = function.create(op, slot);
            made.push(inst);
            function.result(inst)
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
        made
    }
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
    let join = |a: Access, b: Access| Access {
        region: a.region.join(b.region),
        // All say where the same address lies, so either is right.
        span: a.span.or(b.span),
        packet_bytes: a.packet_bytes.zip(b.packet_bytes).map(|(a, b)| a.max(b)),
    };
    let (first, others) = loads.split_first()?;
    others.iter().try_fold(each(first)?, |all, load| Some(join(all, each(load)?)))
}

impl Here<'_> {
    /// The position of an instruction in the block, if it is there.
    fn position(&self, inst: Inst) -> Option<usize> {
        let at = self.places[inst] as usize;
        (self.insts.get(at) == Some(&inst)).then_some(at)
    }

    /// Position of the last of some loads of the block, if no write to what they read lies between the first and that.
    fn only_reads_between(&self, loads: &[Inst]) -> Option<usize> {
        let positions = || loads.iter().map(|load| self.position(*load));
        let (first, last) = (positions().min().flatten()?, positions().max().flatten()?);
        let writes = self.writes.get_or_init(|| writes(self.function, self.insts));
        let (before, after) = (writes.get(first)?, writes.get(last)?);
        let reads = loads.iter().map(|load| self.function.inst(*load).op.effects().reads);
        let read = reads.reduce(Classes::union)?;
        read.positions().all(|class| before[class] == after[class]).then_some(last)
    }

    /// Whether a value may have bytes that come from memory.
    fn may_have_bytes(&self, value: Value) -> bool {
        match self.function.op_of(self.function.resolve(value)) {
            Some(Op::Load { signed, access, .. }) => !signed && !access.region.is_shared(),
            Some(Op::Binary { .. } | Op::ZeroExtend { .. } | Op::Truncate { .. } | Op::Swap { .. }) => true,
            _ => false,
        }
    }

    /// The bytes of a value; `None` if one comes from elsewhere than from memory.
    fn bytes(&self, value: Value, depth: u32) -> Option<Bytes> {
        let function = self.function;
        let Def::Result(inst) = function.value(function.resolve(value)).def else { return None };
        match function.inst(inst).op {
            Op::Load { size, signed: false, base, offset, access } => {
                if self.position(inst).is_none() || access.region.is_shared() {
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
                // A number is no byte of memory.
                if constant(b).is_some() || constant(a).is_some() {
                    return None;
                }
                if !self.may_have_bytes(b) {
                    return None;
                }
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
