//! Accesses to memory, to the context and to the packet.

use paceline_compiler::codegen::lir::Operand;
use paceline_compiler::codegen::low::same;
use paceline_compiler::ir::{Access, BinaryOp, Op, Region, Type, Value};
use paceline_frame::Frame;
use paceline_isa::{Size, Width};
use paceline_spec::context::{Field, Permission, Place};

use super::Draft;
use super::choose::{Choice, defined, used, vreg};
use crate::interpreter::threaded::kind::{Kind, Reach, Source};

/// Where an access goes.
struct At {
    reach: Reach,
    /// The address that the offset is from, unless that is the packet's start or the end of the stack.
    base: Option<Operand>,
    in_stack: bool,
    offset: i32,
}

impl Choice<'_, '_> {
    pub(super) fn memory(&mut self, op: &Op, value: Value) {
        let result = defined(vreg(value));
        match *op {
            Op::Load { size, signed, access, base, offset } => {
                let at = self.place(base, offset, size, &access);
                let draft =
                    Draft { value: Some(value), ..Draft::new(Kind::Load { size, signed, reach: at.reach }) };
                self.push_at(draft, at, &[result]);
            }
            Op::Store { size, access, base, offset, value } => {
                let at = self.place(base, offset, size, &access);
                self.store(size, at, value);
            }
            Op::LoadAcquire { size, access, base, offset } => {
                let at = self.in_register(base, offset, size, &access);
                self.push_at(Draft::new(Kind::LoadAcquire(size)), at, &[result]);
            }
            Op::StoreRelease { size, access, base, offset, value } => {
                let at = self.in_register(base, offset, size, &access);
                let value = used(self.value(value));
                self.push_at(Draft::new(Kind::StoreRelease(size)), at, &[value]);
            }
            Op::Atomic { op, width, access, base, offset, value: operand, expected } => {
                let size = if width == Width::W32 { Size::W } else { Size::Dw };
                let at = self.in_register(base, offset, size, &access);
                let operand = used(self.value(operand));
                let expected = expected.map(|expected| used(self.value(expected)));
                let result = op.fetches().then_some(result);
                let operands: Vec<_> = [Some(operand), expected, result].into_iter().flatten().collect();
                self.push_at(Draft::new(Kind::Atomic { width, op }), at, &operands);
            }
            Op::PacketLoad { size, index, offset, .. } => {
                let index = index.map(|index| used(self.value(index)));
                let kind = Kind::LoadPacket { size, indexed: index.is_some() };
                self.push_each(Draft::new(kind).imm(offset), index.into_iter().chain([result]));
            }
            _ => {}
        }
    }

    fn push_at(&mut self, draft: Draft, at: At, others: &[Operand]) {
        let draft = Draft { in_stack: at.in_stack, ..draft.imm(at.offset) };
        self.push_each(draft, at.base.into_iter().chain(others.iter().copied()));
    }

    /// A store of the low bytes of a value.
    fn store(&mut self, size: Size, at: At, value: Value) {
        let ty = if size == Size::Dw { Type::I64 } else { Type::I32 };
        let draft = |src| Draft::new(Kind::Store { size, src, reach: at.reach });
        let number = self.immediate(ty, value).zip(i16::try_from(at.offset).ok());
        if let Some((imm, offset)) = number {
            let draft = Draft { offset, in_stack: at.in_stack, ..draft(Source::Imm).imm(imm) };
            return self.push_each(draft, at.base.into_iter());
        }
        let value = used(self.value(value));
        let draft = draft(Source::Reg);
        self.push_at(draft, at, &[value]);
    }

    /// A place in memory.
    fn place(&mut self, base: Value, offset: i32, size: Size, access: &Access) -> At {
        let known = self.known_place(base, offset);
        match (known, access.region) {
            (Some((Some(distance), _)), Region::Packet) => {
                At { reach: Reach::Start, base: None, in_stack: false, offset: distance }
            }
            _ => self.in_register(base, offset, size, access),
        }
    }

    /// A place in memory that is not said by its distance from the packet's start.
    fn in_register(&mut self, base: Value, offset: i32, size: Size, access: &Access) -> At {
        let reach = reach(access, size);
        match self.known_place(base, offset) {
            Some((_, Some(distance))) => At { reach, base: None, in_stack: true, offset: distance },
            _ => At { reach, base: Some(used(self.value(base))), in_stack: false, offset },
        }
    }

    /// Distance from the packet's start, if the address is in the packet and valid, or from the end of the stack.
    fn known_place(&self, base: Value, offset: i32) -> Option<(Option<i32>, Option<i32>)> {
        let (mut base, mut offset) = (same(self.function, base), offset);
        loop {
            match *self.function.op_of(base)? {
                Op::Binary { op: BinaryOp::Add, ty: Type::I64, args: [inner, number] } => {
                    offset = offset.checked_add(self.immediate(Type::I64, number)?)?;
                    base = same(self.function, inner);
                }
                Op::StackAddress { offset: start } => return Some((None, Some(start.checked_add(offset)?))),
                Op::ContextLoad { size, offset: field, .. } => {
                    let field = self.field(size, field, false)?;
                    let is_start = matches!(field.place, Place::Frame { offset, .. } if usize::from(offset) == Frame::OFFSET_DATA);
                    return is_start.then_some((Some(offset), None));
                }
                _ => return None,
            }
        }
    }

    pub(super) fn field(&self, size: Size, offset: i32, write: bool) -> Option<&'static Field> {
        let offset = u64::try_from(offset).ok()?;
        self.selector.program.kind.context_field(offset, size.bytes() as u64, write)
    }

    pub(super) fn load_context(&mut self, size: Size, signed: bool, offset: i32, value: Value) {
        let draft = |kind| Draft { value: Some(value), ..Draft::new(kind) };
        let Some(field) = self.field(size, offset, false) else {
            return self.selector.lacks("a field of the context");
        };
        let (at, len) = field.part(offset as u64, size.bytes() as u64);
        let load = match (field.place, Size::from_bytes(len.into())) {
            (Place::Computed(_), _) => {
                let within = offset - i32::from(field.offset);
                draft(Kind::LoadContext(size)).imm(within).word(std::ptr::from_ref(field) as u64)
            }
            (Place::Frame { offset, .. }, _) if usize::from(offset) == Frame::OFFSET_DATA => {
                draft(Kind::Address)
            }
            (Place::Frame { offset, .. }, Some(len)) => {
                draft(Kind::LoadFrame(len)).imm(i32::from(offset + at))
            }
            (Place::Host { offset, .. }, Some(len)) => {
                Draft { offset: (offset + at) as i16, ..draft(Kind::LoadHost(len)) }
            }
            (Place::Zero, _) | (_, None) => draft(Kind::Number),
        };
        let result = vreg(value);
        if !signed || size == Size::Dw {
            return self.push(load, &[defined(result)]);
        }
        let part = self.fresh();
        self.push(load, &[defined(part)]);
        let extend =
            Draft { value: Some(value), ..Draft::new(Kind::SignExtend { width: Width::W64, from: size }) };
        self.push(extend, &[used(part), defined(result)]);
    }

    /// A store to a field in the host. Others have no bytes that are stored.
    pub(super) fn store_context(&mut self, size: Size, offset: i32, value: Value) {
        let Some(field) = self.field(size, offset, true) else {
            return self.selector.lacks("a field of the context");
        };
        let (at, len) = field.part(offset as u64, size.bytes() as u64);
        let (Place::Host { offset, .. }, Some(size)) = (field.place, Size::from_bytes(len.into())) else {
            return;
        };
        let below_max = field.permission == Permission::WriteBelowMax;
        let (src, imm) = match self.immediate(Type::I64, value) {
            Some(imm) => (Source::Imm, imm),
            None => (Source::Reg, 0),
        };
        let kind = Kind::StoreHost { size, src, below_max };
        let draft = Draft { offset: (offset + at) as i16, ..Draft::new(kind).imm(imm) };
        let value = (src == Source::Reg).then(|| used(self.value(value)));
        self.push_each(draft, value.into_iter());
    }
}

/// The reach of an access, by its region and alignment.
fn reach(access: &Access, size: Size) -> Reach {
    let bytes = size.bytes() as i32;
    let is_aligned = access.span.is_some_and(|span| span.min == span.max && span.min % bytes == 0);
    match access.region {
        Region::Packet => Reach::Packet,
        // Values of maps and stack frames are aligned to eight.
        Region::Stack | Region::CallerStack | Region::MapValue(_) | Region::Constant(_) if is_aligned => {
            Reach::Aligned
        }
        _ if size == Size::B => Reach::Aligned,
        _ => Reach::Any,
    }
}
