//! From verified instructions to operations.

use std::sync::Arc;

use paceline_isa::{AluOp, Callee, Imm64, Insn, Operand, Reg, Size, SwapOrder, Width};
use paceline_maps::Map;
use paceline_runtime::helpers::{HelperFn, helper_fn, kfunc_fn};
use paceline_runtime::machine::SHADOW;
use paceline_runtime::rounds::calls_back;
use paceline_spec::context::{Permission, Place};
use paceline_spec::helper::{Helper, HelperId};
use paceline_verifier::{Base, FunctionFact, KeyFact, MapFact, MemoryFact, Verified};

use super::Operations;
use super::draft::{Draft, Drafts, Target};
use super::helpers;
use super::kind::{Kind, Reach, Source};

/// A jump over this many slots may exceed the offset of a conditional jump in operations: a slot
/// has at most five.
const FAR: i64 = (i16::MAX / 5) as i64;

struct Translator<'a> {
    verified: &'a Verified,
    maps: &'a [Arc<Map>],
    drafts: Drafts,
    slot: usize,
}

/// Translates a verified program to operations, which contain addresses of its maps.
pub(super) fn translate(verified: &Verified, maps: &[Arc<Map>]) -> Operations {
    let mut drafts = Drafts::new(verified.code().len());
    for (slot, insn) in verified.code().iter() {
        let target = insn.jump_target(slot).filter(|_| verified.fact(slot).may_jump || !is_conditional(insn));
        if let (true, Some(target)) = (verified.fact(slot).reached, target) {
            drafts.lead(target as usize);
        }
    }
    let mut translator = Translator { verified, maps, drafts, slot: 0 };
    for (index, function) in verified.functions().iter().enumerate() {
        translator.function(index, function);
    }
    translator.drafts.finish()
}

fn is_conditional(insn: &Insn) -> bool {
    matches!(insn, Insn::JumpIf { .. } | Insn::MayGoto { .. })
}

fn source(operand: Operand) -> Source {
    match operand {
        Operand::Reg(_) => Source::Reg,
        Operand::Imm(_) => Source::Imm,
    }
}

impl Translator<'_> {
    fn function(&mut self, index: usize, function: &FunctionFact) {
        self.drafts.lead(function.start);
        self.drafts.enter_function(function.start);
        if function.zeroed != 0 {
            self.push(Draft { weight: 0, ..Draft::with_word(Kind::Zero, function.zeroed) });
        }
        if self.has_may_goto(function) {
            self.push(Draft { weight: 0, ..Draft::new(Kind::AllowRounds) });
        }
        for slot in function.start..function.end {
            self.slot = slot;
            self.drafts.start_slot(slot);
            let Some(insn) = self.verified.code().get(slot) else { continue };
            if self.verified.fact(slot).reached {
                self.insn(*insn, index == 0);
            }
        }
    }

    fn has_may_goto(&self, function: &FunctionFact) -> bool {
        let is_one = |slot| matches!(self.verified.code().get(slot), Some(Insn::MayGoto { .. }));
        (function.start..function.end).any(|slot| self.verified.fact(slot).reached && is_one(slot))
    }

    fn push(&mut self, draft: Draft) {
        self.drafts.push(draft);
    }

    fn insn(&mut self, insn: Insn, main: bool) {
        match insn {
            Insn::Alu { width, op, dst, src } => self.alu(width, op, dst, src),
            Insn::Neg { width, dst } => self.push(Draft::new(Kind::Neg(width)).dst(dst)),
            Insn::MovSx { width, from, dst, src } => {
                self.push(Draft::new(Kind::MovSx { width, from }).dst(dst).src(src));
            }
            Insn::Swap { order, size, dst } => self.swap(order, size, dst),
            Insn::Load { size, signed, dst, base, offset } => self.load(size, signed, dst, base, offset),
            Insn::LoadAcquire { size, dst, base, offset } => {
                self.push(Draft::new(Kind::LoadAcquire(size)).dst(dst).src(base).offset(offset));
            }
            Insn::Store { size, base, offset, src } => self.store(size, base, offset, src),
            Insn::StoreRelease { size, base, offset, src } => {
                self.push(Draft::new(Kind::StoreRelease(size)).dst(base).src(src).offset(offset));
            }
            Insn::Atomic { width, op, base, offset, src } => {
                self.push(Draft::new(Kind::Atomic { width, op }).dst(base).src(src).offset(offset));
            }
            Insn::LoadImm64 { dst, value: Imm64::Code { .. } } => {
                let target = insn.subprogram_target(self.slot).map(|slot| Target::Function(slot as usize));
                self.push(Draft { target, ..Draft::new(Kind::LoadFunction).dst(dst) });
            }
            Insn::LoadImm64 { dst, value } => {
                let word = self.imm64(value);
                self.load_constant(dst, word);
            }
            Insn::LoadPacket { size, index, offset } => {
                let kind = Kind::LoadPacket { size, indexed: index.is_some() };
                self.push(Draft::new(kind).src(index.unwrap_or(Reg::R0)).imm(offset));
            }
            Insn::Jump { .. } | Insn::JumpLong { .. } => self.goto(insn),
            Insn::JumpIf { width, condition, dst, src, .. } => {
                let kind = Kind::JumpIf { width, condition, src: source(src) };
                self.jump_if(insn, Draft::new(kind).dst(dst).operand(src));
            }
            Insn::Call(Callee::Subprogram(_)) => {
                let target = insn.subprogram_target(self.slot).map(|slot| Target::Function(slot as usize));
                self.push(Draft { target, ..Draft::new(Kind::CallSubprogram) });
            }
            Insn::Call(Callee::Helper(Helper::TAIL_CALL)) => self.push(Draft::new(Kind::TailCall)),
            Insn::Call(Callee::Helper(id)) => self.call_helper(id),
            Insn::Exit => self.push(Draft::new(if main { Kind::End } else { Kind::Exit })),
            Insn::Call(Callee::Kfunc { btf_id, .. }) => {
                let kfunc = self.verified.program().kfunc(btf_id);
                self.call(kfunc.and_then(|kfunc| kfunc_fn(kfunc.name)));
            }
            Insn::MayGoto { .. } => self.jump_if(insn, Draft::new(Kind::MayGoto)),
            // Unsupported instructions were refused before, and instructions that the verifier refuses are not reached.
            Insn::AddrSpaceCast { .. } | Insn::CallReg(_) => self.push(Draft::new(Kind::End)),
        }
    }

    fn alu(&mut self, width: Width, op: AluOp, dst: Reg, src: Operand) {
        let kind = Kind::Alu { width, op, src: source(src) };
        self.push(Draft::new(kind).dst(dst).operand(src));
    }

    fn swap(&mut self, order: SwapOrder, size: Size, dst: Reg) {
        let reverse = match order {
            SwapOrder::Always => true,
            SwapOrder::ToBe => cfg!(target_endian = "little"),
            SwapOrder::ToLe => cfg!(target_endian = "big"),
        };
        match size {
            _ if reverse => self.push(Draft::new(Kind::Reverse(size)).dst(dst)),
            Size::Dw => self.drafts.skip(),
            Size::W => self.alu(Width::W32, AluOp::Mov, dst, Operand::Reg(dst)),
            Size::B | Size::H => self.alu(Width::W64, AluOp::And, dst, Operand::Imm(0xffff)),
        }
    }

    fn memory(&self) -> Option<MemoryFact> {
        self.verified.fact(self.slot).memory
    }

    fn reach(&self, size: Size) -> Reach {
        let aligned = |fact: &MemoryFact| {
            fact.min_offset == fact.max_offset && fact.min_offset % size.bytes() as i64 == 0
        };
        match self.memory() {
            Some(MemoryFact { base: Base::Packet, .. }) => Reach::Packet,
            // Values of maps and stack frames are aligned to eight.
            Some(fact @ MemoryFact { base: Base::OwnStack | Base::CallerStack | Base::MapValue(_), .. })
                if aligned(&fact) =>
            {
                Reach::Aligned
            }
            _ if size == Size::B => Reach::Aligned,
            _ => Reach::Any,
        }
    }

    fn load(&mut self, size: Size, signed: bool, dst: Reg, base: Reg, offset: i16) {
        match self.memory() {
            Some(MemoryFact { base: Base::Context, min_offset, .. }) => {
                self.load_context(min_offset as u64, size, dst);
                if signed {
                    let kind = Kind::MovSx { width: Width::W64, from: size };
                    self.push(Draft { weight: 0, ..Draft::new(kind).dst(dst).src(dst) });
                }
            }
            _ => {
                let reach = self.reach(size);
                if reach == Reach::Packet && dst == base {
                    // Removed again if dead.
                    let kind = Kind::Alu { width: Width::W64, op: AluOp::Mov, src: Source::Reg };
                    self.push(Draft { dst: SHADOW, weight: 0, ..Draft::new(kind).src(base) });
                }
                let kind = Kind::Load { size, signed, reach };
                self.push(Draft::new(kind).dst(dst).src(base).offset(offset));
            }
        }
    }

    fn load_context(&mut self, offset: u64, size: Size, dst: Reg) {
        let kind = self.verified.program().kind;
        let Some(field) = kind.context_field(offset, size.bytes() as u64, false) else {
            unreachable!("the verifier lets pass what has a field")
        };
        let within = offset - u64::from(field.offset);
        let (at, len) = field.part(offset, size.bytes() as u64);
        let draft = match (field.place, Size::from_bytes(len.into())) {
            (Place::Computed(_), _) => {
                let field = std::ptr::from_ref(field) as u64;
                Draft::with_word(Kind::LoadContext(size), field).dst(dst).imm(within as i32)
            }
            (Place::Frame { offset, .. }, Some(len)) => {
                Draft::new(Kind::LoadFrame(len)).dst(dst).imm(i32::from(offset + at))
            }
            (Place::Host { offset, .. }, Some(len)) => {
                Draft::new(Kind::LoadHost(len)).dst(dst).offset((offset + at) as i16)
            }
            (Place::Zero, _) | (_, None) => {
                let kind = Kind::Alu { width: Width::W64, op: AluOp::Mov, src: Source::Imm };
                Draft::new(kind).dst(dst)
            }
        };
        self.push(draft);
    }

    fn store(&mut self, size: Size, base: Reg, offset: i16, src: Operand) {
        let draft = match self.memory() {
            Some(MemoryFact { base: Base::Context, min_offset, .. }) => {
                let Some(draft) = self.store_context(min_offset as u64, size, src) else { return };
                draft
            }
            _ => {
                let kind = Kind::Store { size, src: source(src), reach: self.reach(size) };
                Draft::new(kind).dst(base).offset(offset)
            }
        };
        self.push(draft.operand(src));
    }

    /// A store to a field in the host; `None` if no byte is stored.
    fn store_context(&self, offset: u64, size: Size, src: Operand) -> Option<Draft> {
        let kind = self.verified.program().kind;
        let field = kind.context_field(offset, size.bytes() as u64, true)?;
        let Place::Host { offset: place, .. } = field.place else { return None };
        let (at, len) = field.part(offset, size.bytes() as u64);
        let below_max = field.permission == Permission::WriteBelowMax;
        let kind = Kind::StoreHost { size: Size::from_bytes(len.into())?, src: source(src), below_max };
        Some(Draft::new(kind).offset((place + at) as i16))
    }

    fn load_constant(&mut self, dst: Reg, word: u64) {
        match i32::try_from(word as i64) {
            Ok(imm) => self.alu(Width::W64, AluOp::Mov, dst, Operand::Imm(imm)),
            Err(_) => self.push(Draft::with_word(Kind::LoadImm64, word).dst(dst)),
        }
    }

    fn map(&self, index: i32) -> Option<&Arc<Map>> {
        usize::try_from(index).ok().and_then(|index| self.maps.get(index))
    }

    fn imm64(&self, value: Imm64) -> u64 {
        let word = match value {
            Imm64::Value(value) => Some(value),
            Imm64::MapIndex(index) => self.map(index).map(|map| Arc::as_ptr(map) as u64),
            Imm64::MapValueIndex { index, offset } => self
                .map(index)
                .and_then(|map| map.for_programs().direct_value(offset).ok())
                .map(|value| value.as_ptr() as u64),
            Imm64::Code { .. } | Imm64::MapFd(_) | Imm64::MapValueFd { .. } | Imm64::Variable { .. } => None,
        };
        // Unsupported functions were refused before.
        word.unwrap_or(0)
    }

    fn target(&self, insn: Insn) -> Option<Target> {
        insn.jump_target(self.slot).map(|slot| Target::Slot(slot as usize))
    }

    fn goto(&mut self, insn: Insn) {
        self.push(Draft { target: self.target(insn), ..Draft::new(Kind::Goto) });
    }

    fn jump_if(&mut self, insn: Insn, draft: Draft) {
        let fact = self.verified.fact(self.slot);
        let slots = insn.jump_target(self.slot).map_or(0, |slot| slot - self.slot as i64);
        match (fact.may_jump, fact.may_fall_through) {
            (true, false) => self.goto(insn),
            (false, _) => self.drafts.skip(),
            (true, true) if slots.abs() < FAR => {
                self.push(Draft { target: self.target(insn), ..draft });
            }
            (true, true) => {
                let next = self.drafts.next();
                let over = |operations| Some(Target::Draft(next + operations));
                self.push(Draft { target: over(2), ..draft });
                self.push(Draft { target: over(3), weight: 0, ..Draft::new(Kind::Goto) });
                self.push(Draft { target: self.target(insn), weight: 0, ..Draft::new(Kind::Goto) });
            }
        }
    }

    fn call_helper(&mut self, id: i32) {
        if let Some((_, callback)) = calls_back(id) {
            self.push(Draft::new(Kind::CallBack(callback)));
            self.push(Draft { weight: 0, ..Draft::new(Kind::CalledBack) });
            return;
        }
        let id = HelperId::from_imm(id);
        if id == Some(HelperId::MapLookupElem) && self.lookup() {
            return;
        }
        let kind = self.verified.program().kind;
        self.call(id.and_then(|id| helpers::printing(id).or_else(|| helper_fn(id, kind))));
    }

    fn call(&mut self, function: Option<HelperFn>) {
        match function {
            Some(function) => self.push(Draft::with_word(Kind::CallHelper, function as usize as u64)),
            None => self.push(Draft::new(Kind::End)),
        }
    }

    /// Translates a look-up in a known array; `false` if the map is another one.
    fn lookup(&mut self) -> bool {
        let fact = self.verified.fact(self.slot);
        let Some(MapFact::Always(map)) = fact.map else { return false };
        let layout = self
            .map(map.index as i32)
            .filter(|_| !map.inner)
            .and_then(|map| map.for_programs().array_layout());
        let Some(layout) = layout.filter(|layout| layout.cpu_stride == 0) else { return false };
        let Ok(stride) = i32::try_from(layout.stride) else { return false };
        let base = layout.base.as_ptr() as u64;
        match fact.key {
            Some(KeyFact::Always(index)) => {
                self.load_constant(Reg::R0, base + u64::from(index) * layout.stride as u64);
            }
            _ => {
                let draft = Draft::with_word(Kind::LookupArray, base).imm(layout.entries as i32);
                self.push(Draft { second: stride, ..draft });
            }
        }
        true
    }
}
