//! The steps of generated programs.

use fastrand::Rng;
use paceline_isa::{AluOp, AtomicOp, Condition, Imm64, Insn, Operand, Reg, Size, SwapOrder, Width};

use super::mix::Mix;
use super::state::{MEMORY, MEMORY_AT, REGISTERS, SCRATCH_AT, STACK, interesting};

/// A step of a generated program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// One instruction without a jump.
    Plain(Insn),
    /// Several such instructions that belong together.
    Together(Vec<Insn>),
    /// A jump forward over this number of steps, or to the end if there are fewer.
    Skip {
        /// Width of the comparison.
        width: Width,
        /// The comparison.
        condition: Condition,
        /// First operand.
        dst: Reg,
        /// Second operand.
        src: Operand,
        /// Steps.
        steps: usize,
        /// How the jump is made.
        form: SkipForm,
    },
}

/// How a jump is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipForm {
    /// By the conditional jump.
    Direct,
    /// By `goto`; the inverted conditional jump skips it.
    Goto,
    /// The same with the long `gotol`.
    Long,
}

impl Step {
    pub(super) fn random(rng: &mut Rng, mix: &Mix) -> Self {
        let total = (mix.arithmetic + mix.jumps + mix.memory + mix.atomics).max(1);
        let mut pick = rng.u32(0..total);
        for (weight, make) in [
            (mix.arithmetic, arithmetic as fn(&mut Rng) -> Self),
            (mix.jumps, skip),
            (mix.memory, memory),
            (mix.atomics, atomic),
        ] {
            if pick < weight {
                return make(rng);
            }
            pick -= weight;
        }
        arithmetic(rng)
    }

    /// Number of following steps that it may skip.
    pub(super) fn skips(&self) -> usize {
        match self {
            Self::Plain(_) | Self::Together(_) => 0,
            Self::Skip { steps, .. } => *steps,
        }
    }

    /// Its instructions, if the skipped steps have this number of slots.
    pub(super) fn insns(&self, skipped: usize) -> Vec<Insn> {
        match *self {
            Self::Plain(insn) => vec![insn],
            Self::Together(ref insns) => insns.clone(),
            Self::Skip { width, condition, dst, src, form, .. } => {
                let offset = skipped as i16;
                let branch = |offset| Insn::JumpIf { width, condition, dst, src, offset };
                match form {
                    SkipForm::Direct => vec![branch(offset)],
                    SkipForm::Goto => vec![branch(1), Insn::Jump { offset }],
                    SkipForm::Long => vec![branch(1), Insn::JumpLong { offset: i32::from(offset) }],
                }
            }
        }
    }
}

pub(super) fn slots_of(insns: &[Insn]) -> usize {
    insns.iter().map(Insn::slots).sum()
}

fn register(rng: &mut Rng) -> Reg {
    rng.choice(REGISTERS).unwrap_or(Reg::R0)
}

fn width(rng: &mut Rng) -> Width {
    if rng.bool() { Width::W64 } else { Width::W32 }
}

fn operand(rng: &mut Rng) -> Operand {
    if rng.bool() { Operand::Reg(register(rng)) } else { Operand::Imm(interesting(rng) as i32) }
}

fn size(rng: &mut Rng) -> Size {
    rng.choice([Size::B, Size::H, Size::W, Size::Dw]).unwrap_or(Size::Dw)
}

fn arithmetic(rng: &mut Rng) -> Step {
    let dst = register(rng);
    if rng.u8(0..24) == 0 {
        return rotation(rng);
    }
    Step::Plain(match rng.u8(0..16) {
        0 => Insn::Neg { width: width(rng), dst },
        1 => sign_extension(rng, dst),
        2 => Insn::Swap {
            order: rng
                .choice([SwapOrder::ToLe, SwapOrder::ToBe, SwapOrder::Always])
                .unwrap_or(SwapOrder::ToBe),
            size: rng.choice([Size::H, Size::W, Size::Dw]).unwrap_or(Size::Dw),
            dst,
        },
        3 => Insn::LoadImm64 { dst, value: Imm64::Value(interesting(rng)) },
        _ => alu(rng, dst),
    })
}

/// Two shifts that are put together to a rotation, or nearly to one.
fn rotation(rng: &mut Rng) -> Step {
    let (dst, src) = (register(rng), register(rng));
    let [width, moved, joined] = [(); 3].map(|()| width(rng));
    let bits = if width == Width::W64 { 64 } else { 32 };
    let count = rng.i32(1..bits);
    let other = if rng.u8(0..8) == 0 { count } else { bits - count };
    let shift = |op, dst, count| Insn::Alu { width, op, dst, src: Operand::Imm(count) };
    let mut ops = [AluOp::Lsh, AluOp::Rsh];
    if rng.bool() {
        ops.reverse();
    }
    let op = rng.choice([AluOp::Or, AluOp::Xor, AluOp::Add]).unwrap_or(AluOp::Or);
    Step::Together(vec![
        Insn::Alu { width: moved, op: AluOp::Mov, dst: src, src: Operand::Reg(dst) },
        shift(ops[0], dst, count),
        shift(ops[1], src, other),
        Insn::Alu { width: joined, op, dst, src: Operand::Reg(src) },
    ])
}

fn sign_extension(rng: &mut Rng, dst: Reg) -> Insn {
    let (width, from) = rng
        .choice([
            (Width::W32, Size::B),
            (Width::W32, Size::H),
            (Width::W64, Size::B),
            (Width::W64, Size::H),
            (Width::W64, Size::W),
        ])
        .unwrap_or((Width::W64, Size::B));
    Insn::MovSx { width, from, dst, src: register(rng) }
}

fn alu(rng: &mut Rng, dst: Reg) -> Insn {
    use AluOp as A;
    let ops = [
        A::Add,
        A::Sub,
        A::Mul,
        A::Div,
        A::SDiv,
        A::Mod,
        A::SMod,
        A::Or,
        A::And,
        A::Xor,
        A::Lsh,
        A::Rsh,
        A::Arsh,
        A::Mov,
    ];
    let op = rng.choice(ops).unwrap_or(A::Add);
    let width = width(rng);
    let bits = if width == Width::W64 { 64 } else { 32 };
    let src = match (op, operand(rng)) {
        // The verifier refuses invalid constants.
        (A::Lsh | A::Rsh | A::Arsh, Operand::Imm(_)) => Operand::Imm(rng.i32(0..bits)),
        (A::Div | A::SDiv | A::Mod | A::SMod, Operand::Imm(0)) => Operand::Imm(-1),
        (_, src) => src,
    };
    Insn::Alu { width, op, dst, src }
}

fn skip(rng: &mut Rng) -> Step {
    use Condition as C;
    let conditions = [C::Eq, C::Ne, C::Gt, C::Ge, C::Lt, C::Le, C::Set, C::SGt, C::SGe, C::SLt, C::SLe];
    Step::Skip {
        width: width(rng),
        condition: rng.choice(conditions).unwrap_or(C::Eq),
        dst: register(rng),
        src: operand(rng),
        steps: rng.usize(0..6),
        form: rng
            .choice([SkipForm::Direct, SkipForm::Direct, SkipForm::Goto, SkipForm::Long])
            .unwrap_or(SkipForm::Direct),
    }
}

/// An offset for an access of this size in memory or stack. The verifier requires alignment of stack accesses, and of all
/// atomic ones.
fn place(rng: &mut Rng, bytes: usize, aligned: bool) -> (Reg, i16) {
    if rng.bool() {
        let slot = rng.usize(0..STACK / bytes);
        return (Reg::R10, (slot * bytes) as i16 - STACK as i16);
    }
    let step = if aligned { bytes } else { 1 };
    let at = rng.usize(0..=(MEMORY - bytes) / step) * step;
    (Reg::R9, (MEMORY_AT + at) as i16)
}

fn memory(rng: &mut Rng) -> Step {
    let size = size(rng);
    let (base, offset) = place(rng, size.bytes(), false);
    Step::Plain(match rng.u8(0..10) {
        0..=4 => {
            Insn::Load { size, signed: size != Size::Dw && rng.bool(), dst: register(rng), base, offset }
        }
        5..=8 => Insn::Store { size, base, offset, src: operand(rng) },
        _ => {
            let (base, offset) = place(rng, size.bytes(), true);
            if rng.bool() {
                Insn::LoadAcquire { size, dst: register(rng), base, offset }
            } else {
                Insn::StoreRelease { size, base, offset, src: register(rng) }
            }
        }
    })
}

fn atomic(rng: &mut Rng) -> Step {
    let width = width(rng);
    let bytes = if width == Width::W64 { 8 } else { 4 };
    let (base, offset) = place(rng, bytes, true);
    let fetch = rng.bool();
    let ops = [
        AtomicOp::Add { fetch },
        AtomicOp::Or { fetch },
        AtomicOp::And { fetch },
        AtomicOp::Xor { fetch },
        AtomicOp::Xchg,
        AtomicOp::CmpXchg,
    ];
    let op = rng.choice(ops).unwrap_or(AtomicOp::Xchg);
    let src = register(rng);
    let mut insns = vec![Insn::Atomic { width, op, base, offset, src }];
    let fetched = match op {
        AtomicOp::CmpXchg => Reg::R0,
        _ => src,
    };
    if (width, op) == (Width::W32, AtomicOp::CmpXchg) {
        // Linux 6.18 leaves the upper half of r0 as it was on some paths: cmpxchg_join.case in tests/cases/isa/atomic32.
        insns.push(Insn::Alu { width, op: AluOp::Mov, dst: Reg::R0, src: Operand::Reg(Reg::R0) });
    }
    let fetches = !matches!(
        op,
        AtomicOp::Add { fetch: false }
            | AtomicOp::Or { fetch: false }
            | AtomicOp::And { fetch: false }
            | AtomicOp::Xor { fetch: false }
    );
    if fetches && base == Reg::R10 {
        // The verifier tracks stack contents, but Linux 6.18 loses the origin of a value fetched from there, and prunes
        // paths that it must explore: fetch_precision.case in tests/cases/isa/atomic64. Therefore the value is made unknown.
        insns.extend(forgotten(fetched));
    }
    Step::Together(insns)
}

/// Passes a register through memory that the verifier does not track.
fn forgotten(reg: Reg) -> [Insn; 2] {
    let offset = SCRATCH_AT as i16;
    [
        Insn::Store { size: Size::Dw, base: Reg::R9, offset, src: Operand::Reg(reg) },
        Insn::Load { size: Size::Dw, signed: false, dst: reg, base: Reg::R9, offset },
    ]
}
