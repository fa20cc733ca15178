//! Helpers that are inlined, because their code is shorter than a call.

use paceline_isa::{Condition, Insn, Operand, Reg, Width};
use paceline_verifier::KeyFact;

use crate::defer::{Base, Kept, Value};
use crate::emitter::Emitter;
use crate::error::CompileError;
use crate::links::{ArrayLink, Links};
use crate::plan::{SCRATCH, SCRATCH_2};
use crate::source::{Source, known_map};
use crate::x64::{Alu, Cond, Gpr, Label, Mem, OpSize, Scale, Shift, Width as NativeWidth};

pub(crate) const MAP_LOOKUP_ELEM: i32 = 1;
const GET_SMP_PROCESSOR_ID: i32 = 8;
const GET_NUMA_NODE_ID: i32 = 42;

/// Inlined operation of a helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inline {
    /// Look-up in an array, with the index if it is a known constant.
    Array(ArrayLink, Option<u32>),
    /// Number of the host's CPU.
    Cpu,
    /// The constant 0.
    Zero,
}

impl Inline {
    /// The inlined operation of a helper call, if it is inlined.
    pub(crate) fn of(source: &Source<'_>, links: &Links, slot: usize, helper: i32) -> Option<Self> {
        match helper {
            MAP_LOOKUP_ELEM => {
                let array = links.maps.get(known_map(source, slot)? as usize)?.array?;
                let small = i32::try_from(array.stride).is_ok() && i32::try_from(array.cpu_stride).is_ok();
                let key = match source.fact(slot).key {
                    Some(KeyFact::Always(key)) => Some(key),
                    _ => None,
                };
                small.then_some(Self::Array(array, key))
            }
            GET_SMP_PROCESSOR_ID => Some(Self::Cpu),
            GET_NUMA_NODE_ID => Some(Self::Zero),
            _ => None,
        }
    }

    /// Whether the operation needs the host.
    pub(crate) fn needs_host(self) -> bool {
        match self {
            Self::Array(array, _) => array.cpu_stride != 0,
            Self::Cpu => true,
            Self::Zero => false,
        }
    }
}

/// Use of a look-up's result by the next instruction.
enum Found {
    /// No known use: the result stays in `r0`.
    Kept,
    /// A comparison with null: the target, and whether it is for null (`true`) or not.
    Compared(Label, bool),
}

impl Emitter<'_> {
    pub(crate) fn inline(&mut self, slot: usize, insn: &Insn, inline: Inline) -> Result<(), CompileError> {
        match inline {
            Inline::Zero => self.deferred.set(Reg::R0, Value::Const(0)),
            Inline::Cpu => {
                self.before_write(Reg::R0);
                let cpu = self.host_cpu();
                self.asm.load(OpSize::Q64, Gpr::Rax, cpu);
                self.hold(Reg::R0, 64);
            }
            Inline::Array(array, key) => match key.or_else(|| self.stored_key()) {
                Some(key) if key < array.entries => {
                    self.look_up_within(slot, insn, &array, Some(key))?;
                }
                _ if self.stored_is_below(array.entries) => self.look_up_within(slot, insn, &array, None)?,
                _ => self.look_up(slot, insn, &array)?,
            },
        }
        Ok(())
    }

    /// An array look-up with a known index, or with the index that was stored as the key.
    fn look_up_within(
        &mut self,
        slot: usize,
        insn: &Insn,
        array: &ArrayLink,
        key: Option<u32>,
    ) -> Result<(), CompileError> {
        let next = slot + insn.slots();
        let found = self.use_of_result(next)?;
        if let Some(key) = key {
            self.make_store_after(slot, insn);
            let value = array.base.wrapping_add(u64::from(key).wrapping_mul(array.stride));
            self.deferred.set(Reg::R0, Value::Const(value));
            if array.cpu_stride != 0 {
                self.materialize(Reg::R0);
                self.add_lane(array);
                self.hold(Reg::R0, 64);
            }
        } else {
            self.before_write(Reg::R0);
            let index = self.index_of_key();
            self.make_store_after(slot, insn);
            self.value_at(array, index);
            self.hold(Reg::R0, 64);
        }
        if let (Found::Compared(target, false), Some(jump)) = (found, self.source.code.get(next)) {
            self.flush(self.liveness.at_target(next, jump));
            self.asm.jmp(target);
        }
        Ok(())
    }

    fn host_cpu(&self) -> Mem {
        Mem::at(self.plan.host, self.links.host.cpu)
    }

    fn look_up(&mut self, slot: usize, insn: &Insn, array: &ArrayLink) -> Result<(), CompileError> {
        let next = slot + insn.slots();
        let found = self.use_of_result(next)?;
        let null_is_read = match &found {
            Found::Kept => true,
            Found::Compared(_, is_null) => {
                let Some(jump) = self.source.code.get(next) else { return Ok(()) };
                let at_target = self.liveness.at_target(next, jump);
                self.flush(at_target.minus(paceline_isa::RegSet::of(Reg::R0)));
                let at_null = if *is_null { at_target } else { self.liveness.before(next + jump.slots()) };
                at_null.contains(Reg::R0)
            }
        };
        self.before_write(Reg::R0);
        let index = self.index_of_key();
        self.make_store_after(slot, insn);
        if null_is_read {
            self.set(Gpr::Rax, 0);
        }
        self.asm.alu_ri(Alu::Cmp, NativeWidth::D32, index, array.entries.cast_signed());
        let missing = match found {
            Found::Compared(target, true) => {
                self.asm.jcc(Cond::Ae, target);
                None
            }
            _ => {
                let missing = self.asm.new_label();
                self.asm.jcc(Cond::Ae, missing);
                Some(missing)
            }
        };
        self.value_at(array, index);
        if let Found::Compared(target, false) = found {
            self.asm.jmp(target);
        }
        missing.into_iter().for_each(|missing| self.asm.bind(missing));
        self.hold(Reg::R0, 64);
        Ok(())
    }

    /// Whether the next instruction compares the result with null, in which case it is fused with the look-up.
    fn use_of_result(&mut self, next: usize) -> Result<Found, CompileError> {
        let Some(insn @ Insn::JumpIf { width: Width::W64, condition, dst: Reg::R0, src, .. }) =
            self.source.code.get(next)
        else {
            return Ok(Found::Kept);
        };
        let fact = self.source.fact(next);
        let open = fact.reached && fact.may_jump && fact.may_fall_through && !self.is_target(next);
        let on_null = match condition {
            Condition::Eq => true,
            Condition::Ne => false,
            _ => return Ok(Found::Kept),
        };
        if *src != Operand::Imm(0) || !open {
            return Ok(Found::Kept);
        }
        self.skipped = Some(next);
        Ok(Found::Compared(self.target(next, insn.jump_target(next))?, on_null))
    }

    /// The stored key of the look-up.
    pub(crate) fn stored(&self) -> Option<Kept> {
        let Value::Sum(Base::Frame, disp) = self.deferred.get(Reg::R2) else { return None };
        self.deferred.stored.filter(|stored| stored.disp == disp).map(|stored| stored.what)
    }

    fn stored_key(&self) -> Option<u32> {
        match self.stored()? {
            Kept::Number(key) => Some(key.cast_unsigned()),
            Kept::Reg(..) => None,
        }
    }

    /// Whether the significant bits of the stored key bound it below `entries`.
    fn stored_is_below(&self, entries: u32) -> bool {
        matches!(self.stored(), Some(Kept::Reg(.., bits)) if bits < 32 && 1 << bits <= entries)
    }

    /// A register with the zero-extended index: the one that was stored as the key, if it still holds it.
    fn index_of_key(&mut self) -> Gpr {
        match self.stored() {
            Some(Kept::Reg(_, held, bits)) => {
                let gpr = self.asm.held(held);
                if bits <= 32 && gpr != Gpr::Rax {
                    return gpr;
                }
                self.asm.mov_rr(NativeWidth::D32, SCRATCH, gpr);
            }
            Some(Kept::Number(index)) => self.asm.mov_ri(SCRATCH, u64::from(index.cast_unsigned())),
            None => {
                self.make_store();
                let mem = self.deferred_address(Reg::R2, 0);
                self.asm.load(OpSize::D32, SCRATCH, mem);
            }
        }
        SCRATCH
    }

    /// Computes the address of a value into `rax`.
    fn value_at(&mut self, array: &ArrayLink, index: Gpr) {
        let (scaled, scale) = match array.stride {
            1 => (index, Scale::One),
            2 => (index, Scale::Two),
            4 => (index, Scale::Four),
            8 => (index, Scale::Eight),
            stride if stride.is_power_of_two() => {
                if index != SCRATCH {
                    self.asm.mov_rr(NativeWidth::D32, SCRATCH, index);
                }
                self.asm.shift_ri(Shift::Shl, NativeWidth::Q64, SCRATCH, stride.trailing_zeros() as u8);
                (SCRATCH, Scale::One)
            }
            stride => {
                self.asm.imul_rri(NativeWidth::Q64, SCRATCH, index, stride as i32);
                (SCRATCH, Scale::One)
            }
        };
        self.asm.mov_ri(Gpr::Rax, array.base);
        self.asm.lea(NativeWidth::Q64, Gpr::Rax, Mem::indexed(Gpr::Rax, scaled, scale, 0));
        if array.cpu_stride != 0 {
            self.add_lane(array);
        }
    }

    /// Adds the offset of the host's CPU to the address in `rax`.
    fn add_lane(&mut self, array: &ArrayLink) {
        let cpu = self.host_cpu();
        self.asm.load(OpSize::Q64, SCRATCH_2, cpu);
        if array.cpu_stride.is_power_of_two() {
            let bits = array.cpu_stride.trailing_zeros() as u8;
            self.asm.shift_ri(Shift::Shl, NativeWidth::Q64, SCRATCH_2, bits);
        } else {
            self.asm.imul_rri(NativeWidth::Q64, SCRATCH_2, SCRATCH_2, array.cpu_stride as i32);
        }
        self.asm.alu_rr(Alu::Add, NativeWidth::Q64, Gpr::Rax, SCRATCH_2);
    }
}
